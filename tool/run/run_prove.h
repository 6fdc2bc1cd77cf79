/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PROVE_H
#define TOOL_RUN_PROVE_H

/*
 * Compare samples of a program with the plan. Samples of a fully grown program tell more
 * than those of one starting up. So the findings use the last sample with at least half
 * of the maximum resident memory; but CPU violations of any sample count.
 */

#include <stdio.h>

#include "run/run_sample.h"

enum run_verdict { RUN_PROVEN, RUN_NOT_SO, RUN_UNPROVEN };

struct run_finding {
    enum run_verdict verdict;
    const char *name;
    char text[RUN_REASON_MAX + 64];
};

#define RUN_FINDINGS_MAX 8

struct run_proof {
    size_t sample_count;
    uint64_t most_bytes;
    size_t stray_count; /* maximum number of threads outside the plan's CPUs */
    struct dry_topology_cpus cpus;
    struct run_sample best;
    size_t finding_count;
    struct run_finding findings[RUN_FINDINGS_MAX];
};

/* Take a sample. Requires that `proof` was zeroed at first. */
void run_proof_take(struct run_proof *proof, const struct run_sample *sample);
/* Derive the findings. Returns true if none is RUN_NOT_SO. */
bool run_proof_judge(struct run_proof *proof, const struct run_plan *plan);
void run_proof_print(const struct run_proof *proof, FILE *out);

#endif
