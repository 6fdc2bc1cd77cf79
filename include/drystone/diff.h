/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DIFF_H
#define DRY_DIFF_H

/*
 * Compare runs, ranks, or the devices of one file, owner by owner.
 *
 *     struct dry_diff_subject subjects[] = {{a, moment_of_a}, {b, moment_of_b}};
 *     if (dry_diff_create(subjects, 2, NULL, &diff, &err) != DRY_OK) ...
 *     const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
 *
 * A subject is one device at one moment. Two files never share addresses, paths or line
 * numbers, so owners are matched by name. A file is identified by as many of its last
 * path components as make it unique in its subject. Earlier components (home folders,
 * environments, site-packages, eggs) and hashes of compiled code are ignored. Functions
 * are matched by name.
 *
 * The lines of a function are matched by the shift that pairs most of them; shift 0 wins
 * ties. Another shift means that the source was edited: if both sides then have equally
 * many unmatched lines, these are paired in order. Subjects of one trace ran the same
 * source: their lines must be equal.
 *
 * Ownership  create / destroy; the timelines and their traces must outlive the diff.
 *            Names belong to the diff and are bytes of the file, as in
 *            <drystone/owners.h>.
 * Errors     ARGUMENT, MEMORY; see dry_diff_create().
 * Threads    Any number may read at once.
 * Units      Bytes.
 * Cost       All of it is in dry_diff_create(); reading is O(1), or as the function says.
 */

#include <stdbool.h>

#include <drystone/field.h>
#include <drystone/owners.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_diff;

#define DRY_DIFF_SUBJECTS_MAX 64u

struct dry_diff_subject {
    const struct dry_timeline *timeline;
    uint32_t moment;
    uint32_t reserved;
    const struct dry_categories *categories; /* for DRY_OWNER_CATEGORY, else NULL */
};

struct dry_diff_cell {
    uint32_t subject;
    uint32_t count; /* number of its allocations */
    uint64_t line;  /* line number in this subject; 0: the owner is not a line */
    uint64_t bytes;
};

struct dry_diff_row {
    const char *name; /* its name in the first subject that has the owner;
                         zero-terminated */
    size_t name_length;
    const char *what; /* its operation in that subject, see <drystone/owners.h> */
    size_t what_length;
    /* Bytes over all subjects; a subject without the owner counts as 0. */
    uint64_t min, median, max;         /* median: the lower one of an even number */
    uint64_t spread;                   /* max - min */
    uint32_t outlier;                  /* the first subject farthest from the median */
    size_t cell_count;                 /* number of subjects that have the owner */
    const struct dry_diff_cell *cells; /* sorted by subject */
};

/* A setting or a count, compared between the subjects. */
struct dry_diff_fact {
    const char *name;          /* "PYTORCH_CUDA_ALLOC_CONF", "streams", ... */
    const char *const *values; /* one for each subject; "unknown" if its file does not
                                  have it */
    bool is_known;             /* known in all subjects */
    bool is_equal;             /* equal in all subjects that know it */
};

enum dry_diff_part { DRY_DIFF_CELL, DRY_DIFF_ROW, DRY_DIFF_FACT };
/* Return the table of numbers and flags of struct dry_diff_cell, _row or _fact. */
DRY_API struct dry_fields dry_diff_get_fields(enum dry_diff_part part);

struct dry_diff_options {
    size_t struct_size; /* set by dry_diff_options_init() */
    const struct dry_memory *memory;
    /* Default DRY_OWNER_LINE. STACK and STEP are not allowed: their names mean nothing in
       another file. */
    enum dry_owner_key key;
};
/* Set all options to their defaults. */
DRY_API void dry_diff_options_init_sized(struct dry_diff_options *options,
                                         size_t struct_size);
#define dry_diff_options_init(options)                                                   \
    dry_diff_options_init_sized(options, sizeof *(options))

/*
 * Compare the `count` subjects, 1 to DRY_DIFF_SUBJECTS_MAX. The result is *diff. O(owners
 * log owners + frames of the traces). Errors: ARGUMENT (too few or too many subjects, a
 * moment beyond the dump, a key that cannot be compared), MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_diff_create(
    const struct dry_diff_subject *subjects, size_t count,
    const struct dry_diff_options *options, struct dry_diff **diff,
    struct dry_error *err);
/* End the diff. NULL is fine. */
DRY_API void dry_diff_destroy(struct dry_diff *diff);

/*
 * Return all owners of all subjects, the widest spread first; ties by name.
 */
DRY_API const struct dry_diff_row *dry_diff_get_rows(const struct dry_diff *diff,
                                                     size_t *count);
/*
 * Return the bytes of `row` in `subject`; 0 if the owner is not there. O(log subjects).
 */
DRY_API uint64_t dry_diff_bytes(const struct dry_diff_row *row, uint32_t subject);
/* Return the active bytes of all owners together, with a cell for each subject. */
DRY_API const struct dry_diff_row *dry_diff_get_total(const struct dry_diff *diff);
/* Return the recorded settings, and the counts of streams and private pools. */
DRY_API const struct dry_diff_fact *dry_diff_get_facts(const struct dry_diff *diff,
                                                       size_t *count);

#ifdef __cplusplus
}
#endif

#endif
