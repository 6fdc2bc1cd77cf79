/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DOCTOR_REPORT_H
#define TOOL_DOCTOR_REPORT_H

/* What `drystone pages` finds, for people and for programs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/doctor.h>
#include <drystone/topology.h>

struct doctor_report {
    const struct dry_doctor *doctor;
    const struct dry_topology_view *topology; /* to print; only without ids, if as text */
    enum dry_doctor_purpose purpose;
    const char *root; /* "": this machine */
    int64_t process;  /* 0: one that is to be started */
    const uint64_t *needs_bytes;
    size_t need_count;
    /* Only these; NULL: all. */
    const char *const *ids;
    size_t id_count;
    bool shows_good;
};

/* Tell whether a finding is among those asked for. */
bool doctor_report_has(const struct doctor_report *r, const char *id);
/* How many of a verdict. */
size_t doctor_report_count(const struct doctor_report *r,
                           enum dry_doctor_verdict verdict);

/* Return how a finding is mended; the library knows no commands of ours. */
const char *doctor_report_fix(const struct dry_doctor_finding *f);

/* False: there was no memory. */
bool doctor_report_print(const struct doctor_report *r);
/* An exit_code. */
int doctor_report_print_json(const struct doctor_report *r);

#endif
