/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_DOCTOR_INSIDE_H
#define DRYI_HOST_DOCTOR_INSIDE_H

/*
 * How findings are made. A doctor first reads facts of the whole machine; then each
 * topic's file makes its findings, one at a time:
 *
 *     dryi_doctor_begin(d, &check);                      good until judged
 *     dryi_doctor_is(d, "%llu files", soft);
 *     if (soft < 65536) {
 *         dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
 *         dryi_doctor_should_be(d, "65536 or more");
 *         dryi_doctor_fix(d, "ulimit -n 65536");       for a shell; advice begins "# "
 *     }
 *     dryi_doctor_end(d);
 *
 * Texts are stored one after another in one buffer and identified by their offset.
 * Running out of memory sets lacks_memory, which dry_doctor_create() reports at its end:
 * no function here returns it.
 */

#include <stdarg.h>
#include <stdbool.h>

#include <drystone/doctor.h>
#include <drystone/topology.h>

#include "host/facts/facts.h"
#include "os/kernel.h"

/* A check: the parts of a finding that are the same for every machine. */
struct dryi_check {
    enum dry_doctor_topic topic;
    const char *id, *title, *why;
};

enum dryi_doctor_text {
    DRYI_TEXT_IS,
    DRYI_TEXT_SHOULD_BE,
    DRYI_TEXT_WHY, /* replaces the check's own */
    DRYI_TEXT_FIX,
    DRYI_TEXT_UNDO,
    DRYI_TEXT_PERSIST,
    DRYI_TEXT_ID, /* only if the check's own is just a prefix */
};
#define DRYI_TEXT_COUNT 7

struct dryi_finding {
    const struct dryi_check *check;
    enum dry_doctor_verdict verdict;
    size_t texts[DRYI_TEXT_COUNT]; /* offset in the buffer; 0: none */
    bool needs_root, needs_reboot;
    size_t first_change, change_count;
};

struct dryi_change {
    size_t path, old_value, new_value; /* offsets of texts */
};

#define DRYI_MAPPED_MAX 1024

/* A running program; its strings are valid while checks are made. */
struct dryi_process {
    char *environment;
    size_t length, capacity;
    struct dry_doctor_variable *variables;
    size_t variable_count, variable_capacity;
    /* Paths of mapped files, "": not mapped; valid if knows_files. */
    bool knows_files;
    char torch[DRYI_MAPPED_MAX], malloc[DRYI_MAPPED_MAX];
};

struct dry_doctor {
    struct dry_memory memory;
    struct dryi_kernel kernel;
    struct dryi_facts facts;
    struct dry_doctor_options options;
    bool is_here; /* the doctor examines this process, so system calls also apply */
    struct dryi_process process;

    /* Facts of the machine, used by all topics. */
    struct dry_doctor_machine machine;
    struct dry_pages_nodes nodes, allowed_nodes, cpu_nodes; /* empty: not known */
    uint64_t pools[DRYI_FACTS_POOLS_MAX];                   /* sorted, largest first */
    size_t pool_count;
    uint64_t default_pool;
    uint64_t driver_major; /* NVIDIA's driver release; 0: not known */
    /* Valid while checks are made; NULL: no memory. */
    struct dry_topology *topology;
    const struct dry_topology_view *view;

    struct dryi_finding *findings;
    size_t finding_count, finding_capacity;
    struct dryi_change *changes;
    size_t change_count, change_capacity;
    struct dry_doctor_row *rows;
    size_t row_count, row_capacity;
    char *text;
    size_t text_used, text_capacity;
    bool lacks_memory;
};

/* Create a doctor by the calls of a given kernel; see dry_doctor_create(). */
DRY_CHECK_RESULT enum dry_status dryi_doctor_create(
    const struct dry_doctor_options *options, const struct dryi_kernel *kernel,
    struct dry_doctor **doctor, struct dry_error *err);

/* --- a finding's making ------------------------------------------------------------------- */

void dryi_doctor_begin(struct dry_doctor *d, const struct dryi_check *check);
/* Finish a finding: derive commands from its changes. A finding without a state becomes
   NOT_KNOWN. */
void dryi_doctor_end(struct dry_doctor *d);
/* Worsen the verdict to `verdict`; it never improves. */
void dryi_doctor_judge(struct dry_doctor *d, enum dry_doctor_verdict verdict);
/* No check has worsened it so far. */
bool dryi_doctor_is_good(const struct dry_doctor *d);
/* Append to a text of the finding: after a semicolon, or in a new line for commands. */
__attribute__((format(printf, 3, 4))) void dryi_doctor_say(struct dry_doctor *d,
                                                           enum dryi_doctor_text which,
                                                           const char *format, ...);
#define dryi_doctor_is(d, ...) dryi_doctor_say(d, DRYI_TEXT_IS, __VA_ARGS__)
#define dryi_doctor_should_be(d, ...) dryi_doctor_say(d, DRYI_TEXT_SHOULD_BE, __VA_ARGS__)
#define dryi_doctor_because(d, ...) dryi_doctor_say(d, DRYI_TEXT_WHY, __VA_ARGS__)
#define dryi_doctor_fix(d, ...) dryi_doctor_say(d, DRYI_TEXT_FIX, __VA_ARGS__)
#define dryi_doctor_undo(d, ...) dryi_doctor_say(d, DRYI_TEXT_UNDO, __VA_ARGS__)
#define dryi_doctor_persist(d, ...) dryi_doctor_say(d, DRYI_TEXT_PERSIST, __VA_ARGS__)
/* Mark the fix as needing root; dryi_doctor_write() does so itself. */
void dryi_doctor_needs_root(struct dry_doctor *d);
/* Add a fix on the kernel's command line: `words` to add, and to remove for undo. */
void dryi_doctor_fix_at_boot(struct dry_doctor *d, const char *words);
/* Add a change: a word to write to a file. The fix, its undo and its persistence follow
   from the change. */
void dryi_doctor_write(struct dry_doctor *d, const char *path, const char *old_value,
                       const char *new_value);
void dryi_doctor_write_number(struct dry_doctor *d, const char *path, uint64_t old_value,
                              uint64_t new_value);
/* Make a complete finding that `path` cannot be read: NOT_KNOWN. */
void dryi_doctor_not_known(struct dry_doctor *d, const struct dryi_check *check,
                           const char *path);

/* --- --- doctor_common.c: shared by topics --- -------------------------------------------- */

#define DRYI_BYTES_TEXT 32
/* Format bytes as "2 MiB", "1.5 GiB": binary units, at most two decimals. */
const char *dryi_doctor_bytes(uint64_t bytes, char text[DRYI_BYTES_TEXT]);
/* Format a page size as the kernel and control groups do: "2M". */
const char *dryi_doctor_page(uint64_t page_bytes, char text[DRYI_BYTES_TEXT]);
/* Return part * 100 / whole; 0 if `whole` is 0. */
uint64_t dryi_doctor_percent(uint64_t part, uint64_t whole);
size_t dryi_doctor_count_nodes(const struct dry_pages_nodes *nodes);
/* Return the value of an environment variable; NULL: not set. Requires that the
   environment is known. */
const char *dryi_doctor_variable(const struct dry_doctor *d, const char *name);
bool dryi_doctor_knows_variables(const struct dry_doctor *d);
bool dryi_doctor_kernel_is_before(const struct dry_doctor *d, uint32_t major,
                                  uint32_t minor);
/* Return the needs in pages of a size; UINT64_MAX: above 64 bits. */
uint64_t dryi_doctor_needed_pages(const struct dry_doctor *d, uint64_t page_bytes);
bool dryi_doctor_has_gpu_purpose(const struct dry_doctor *d);

/* --- the topics ----------------------------------------------------------------------------- */

/* Read the process options.process, if set; its variables replace those of the
   options. */
DRY_CHECK_RESULT enum dry_status dryi_doctor_take_process(struct dry_doctor *d,
                                                          struct dry_error *err);
void dryi_doctor_forget_process(struct dry_doctor *d);
void dryi_doctor_read_machine(
    struct dry_doctor *d); /* reads facts of the whole machine */
void dryi_doctor_check_pools(struct dry_doctor *d);
void dryi_doctor_check_needs(struct dry_doctor *d);
void dryi_doctor_check_thp(struct dry_doctor *d);
void dryi_doctor_check_fragmentation(struct dry_doctor *d);
void dryi_doctor_check_numa(struct dry_doctor *d);
void dryi_doctor_check_limits(struct dry_doctor *d);
void dryi_doctor_check_cgroup(struct dry_doctor *d);
void dryi_doctor_check_kernel(struct dry_doctor *d);
void dryi_doctor_check_gpu(struct dry_doctor *d);
void dryi_doctor_check_malloc(struct dry_doctor *d);
void dryi_doctor_check_pytorch(struct dry_doctor *d);

#endif
