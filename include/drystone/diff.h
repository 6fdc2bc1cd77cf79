/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DIFF_H
#define DRY_DIFF_H

/*
 * What differs: runs, ranks, or the devices of one file, owner by owner.
 *
 *     struct dry_diff_subject subjects[] = {{a, moment_of_a}, {b, moment_of_b}};
 *     if (dry_diff_create(subjects, 2, NULL, &diff, &err) != DRY_OK) ...
 *     const struct dry_diff_row *rows = dry_diff_get_rows(diff, &count);
 *
 * Two files never share addresses, paths or line numbers, so owners are matched by what they
 * mean. A file counts by its last components, as many as tell it from the others of its
 * subject; what is before them (home folders, environments, site-packages, eggs) and the
 * hashes of compiled code do not. Functions are matched by name. The lines of a function are
 * matched by the shift that brings most of them together, none if that is as good; if there
 * is a shift, the source was edited, and lines left over on both sides are paired in order
 * where they are equally many. Subjects of one trace ran the same source: their lines must
 * be equal.
 *
 * Ownership  create / destroy; the timelines and their traces must outlive the diff. Names
 *            belong to it, as with owners: bytes of the file.
 * Threads    Read by any number at once.
 * Units      Bytes.
 */

#include <drystone/owners.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_diff;

#define DRY_DIFF_SUBJECTS_MAX 64u

/* What is compared: a device at a moment. */
struct dry_diff_subject {
    const struct dry_timeline *timeline;
    uint32_t moment;
    uint32_t reserved;
    const struct dry_categories *categories; /* for DRY_OWNER_CATEGORY, else NULL */
};

/* An owner in one subject. */
struct dry_diff_cell {
    uint32_t subject;
    uint32_t count; /* of allocations */
    uint32_t line;  /* in this subject; 0: the owner is no line */
    uint32_t reserved;
    uint64_t bytes;
};

struct dry_diff_row {
    const char *name; /* as in the first subject that has it; zero-terminated */
    size_t name_length;
    const char *what; /* there */
    size_t what_length;
    /* Over all subjects; those without it count as 0. */
    uint64_t min, median, max;         /* median: the lower one of an even number */
    uint32_t min_subject, max_subject; /* the first ones */
    uint32_t outlier;                  /* the first one farthest from the median */
    size_t cell_count;                 /* subjects that have it */
    const struct dry_diff_cell *cells; /* by subject */
};

/* A setting or a count that may differ. */
struct dry_diff_fact {
    const char *name;          /* "PYTORCH_CUDA_ALLOC_CONF", "streams", ... */
    const char *const *values; /* by subject; "unknown" where a file does not say */
    int is_known;              /* in all subjects */
    int is_equal;              /* those that are known */
};

struct dry_diff_options {
    size_t struct_size; /* set by dry_diff_options_init() */
    const struct dry_memory *memory;
    /* Default DRY_OWNER_LINE. Not STACK and not STEP, which mean nothing elsewhere. */
    enum dry_owner_key key;
};
DRY_API void dry_diff_options_init(struct dry_diff_options *options);

/*
 * 1 to DRY_DIFF_SUBJECTS_MAX subjects. O(owners log owners + frames of the traces).
 * ARGUMENT: too few or too many, a moment beyond the dump, a key that cannot be compared.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_diff_create(
    const struct dry_diff_subject *subjects, size_t count,
    const struct dry_diff_options *options, struct dry_diff **diff,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_diff_destroy(struct dry_diff *diff);

/* All owners of all subjects, the widest spread (max - min) first; ties by name. */
DRY_API const struct dry_diff_row *dry_diff_get_rows(const struct dry_diff *diff,
                                                     size_t *count);
/* The bytes of a row in a subject; 0 if it has none. O(log subjects). */
DRY_API uint64_t dry_diff_bytes(const struct dry_diff_row *row, uint32_t subject);
/* Active bytes by subject at its moment. */
DRY_API const uint64_t *dry_diff_get_totals(const struct dry_diff *diff, size_t *count);
/* The recorded settings, and counts of streams and private pools. */
DRY_API const struct dry_diff_fact *dry_diff_get_facts(const struct dry_diff *diff,
                                                       size_t *count);

#ifdef __cplusplus
}
#endif

#endif
