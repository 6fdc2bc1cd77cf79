/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_REPORT_H
#define TOOL_DOCTOR_REPORT_H

/* The findings of `drystone pages`, as text and as JSON. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/doctor.h>
#include <drystone/topology.h>

struct doctor_report {
    const struct dry_doctor *doctor;
    const struct dry_topology_view *topology; /* printed in text, if no ids are given */
    enum dry_doctor_purpose purpose;
    const char *root; /* "": this machine */
    int64_t process;  /* 0: a process yet to be started */
    const uint64_t *needs_bytes;
    size_t need_count;
    /* Findings to print; NULL: all. */
    const char *const *ids;
    size_t id_count;
    bool shows_good;
};

/* Tell whether a finding was asked for. */
bool doctor_report_has(const struct doctor_report *r, const char *id);
/* Count the findings with a verdict. */
size_t doctor_report_count(const struct doctor_report *r,
                           enum dry_doctor_verdict verdict);

/* Return how to fix a finding. The texts are here, because the library must not name the
   tool's commands. */
const char *doctor_report_fix(const struct dry_doctor_finding *f);

/* Print the findings as text. Returns false if memory ran out. */
bool doctor_report_print(const struct doctor_report *r);
/* Print the findings as JSON. Returns an exit_code. */
int doctor_report_print_json(const struct doctor_report *r);

#endif
