/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RUN_PROVE_H
#define TOOL_RUN_PROVE_H

/*
 * The samples of a program, held against the plan. Samples of a program that has grown tell
 * more than those of one that begins. So the last one counts in which it held at least half
 * of the most it ever held; but a thread that has ever left its CPUs has left them.
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
    size_t stray_count; /* the most threads outside of the plan's CPUs */
    struct dry_topology_cpus cpus;
    struct run_sample best;
    size_t finding_count;
    struct run_finding findings[RUN_FINDINGS_MAX];
};

/* `proof` begins zeroed. */
void run_proof_take(struct run_proof *proof, const struct run_sample *sample);
/* Makes the findings; true: none is NOT_SO. */
bool run_proof_judge(struct run_proof *proof, const struct run_plan *plan);
void run_proof_print(const struct run_proof *proof, FILE *out);

#endif
