/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DOCTOR_H
#define DRY_DOCTOR_H

/*
 * Find settings of a machine that slow down or break host memory for deep learning, and
 * how to fix them.
 *
 *     struct dry_doctor_options options;
 *     dry_doctor_options_init(&options);
 *     options.purpose = DRY_DOCTOR_TRAINING;
 *     status = dry_doctor_create(&options, &doctor, &err);
 *     for (size_t i = 0; i < dry_doctor_get_finding_count(doctor); i++) {
 *         dry_doctor_get_finding(doctor, i, &finding);
 *         ...
 *     }
 *     dry_doctor_destroy(doctor);
 *
 * A finding has the current state, the recommended state for this purpose, and the
 * reason. It has commands to fix it, to undo the fix, and to keep it over a reboot. A fix
 * that writes a word to a file of /sys or /proc/sys is also given as a change, which a
 * program can apply. The library itself writes nothing.
 *
 * All files are read under an optional root: a folder with the /sys and /proc of another
 * machine. A fact that cannot be read is NOT_KNOWN in its finding; no call fails for it.
 *
 * Ownership  dry_doctor_create() and dry_doctor_destroy(). Texts belong to the doctor.
 *            They may contain bytes of the files and variables that were read; escape
 *            them before printing.
 * Errors     Each function names its own.
 * Threads    Objects are independent. Calls on one object only read it.
 * Units      Bytes.
 * Cost       Create reads some 200 small files, once. With `process` it also reads that
 *            process's list of mappings, four times.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of these enums never change; new ones are appended. */
enum dry_doctor_purpose {
    DRY_DOCTOR_TRAINING = 0,  /* on a GPU, with DataLoader workers and pinned memory */
    DRY_DOCTOR_INFERENCE = 1, /* on a GPU, where weights are read once and stay */
    DRY_DOCTOR_CPU = 2,       /* no GPU: tensors are in host memory */
};
#define DRY_DOCTOR_PURPOSE_COUNT 3

enum dry_doctor_topic {
    DRY_DOCTOR_POOLS = 0,
    DRY_DOCTOR_THP = 1,
    DRY_DOCTOR_FRAGMENTATION = 2,
    DRY_DOCTOR_NUMA = 3,
    DRY_DOCTOR_LIMITS = 4,
    DRY_DOCTOR_CGROUP = 5,
    DRY_DOCTOR_KERNEL = 6,
    DRY_DOCTOR_GPU = 7,
    DRY_DOCTOR_MALLOC = 8,
    DRY_DOCTOR_PYTORCH = 9,
};
#define DRY_DOCTOR_TOPIC_COUNT 10

/* Verdicts, from good to bad. */
enum dry_doctor_verdict {
    DRY_DOCTOR_GOOD = 0,
    DRY_DOCTOR_NOT_KNOWN = 1,
    DRY_DOCTOR_COULD_BE_BETTER = 2,
    DRY_DOCTOR_WRONG = 3, /* something fails, or takes several times as long */
};
#define DRY_DOCTOR_VERDICT_COUNT 4

#define DRY_DOCTOR_ANY_NODE (-1)
#define DRY_DOCTOR_ROWS_MAX 512

/* An environment variable of the program that will run. */
struct dry_doctor_variable {
    const char *name, *value;
};

struct dry_doctor_options {
    size_t struct_size; /* set by dry_doctor_options_init() */
    const struct dry_memory *memory;
    enum dry_doctor_purpose purpose;
    const char *root; /* prefix of /sys and /proc; NULL or "": this machine */
    /* The environment of the program; the library reads none. NULL: unknown, which leaves
       out findings about malloc and PyTorch. */
    const struct dry_doctor_variable *variables;
    size_t variable_count;
    /* The needs: sizes of the regions that the program will have in huge pages. Each is
       rounded up separately. */
    const uint64_t *needs_bytes;
    size_t need_count;
    /* The NUMA node for all needs; DRY_DOCTOR_ANY_NODE: any nodes. */
    int32_t node;
    /* The huge page size; 0: the kernel's default, or 2 MiB if it has none. */
    uint64_t page_bytes;
    /*
     * The id of a running program; 0: a program still to be started. For a running
     * program, limits, control groups, mounts and allowed nodes are read from its /proc
     * entries. Its malloc and PyTorch are found in /proc/N/maps. Its variables are those
     * of /proc/N/environ, followed by `variables`.
     */
    int64_t process;
};

/* Set the defaults: training, this machine, an unknown environment, no needs, any node,
   no process. */
DRY_API void dry_doctor_options_init_sized(struct dry_doctor_options *options,
                                           size_t struct_size);
#define dry_doctor_options_init(options)                                                 \
    dry_doctor_options_init_sized(options, sizeof *(options))

struct dry_doctor;

/*
 * Examine the machine. Errors:
 *     ARGUMENT  An option is invalid.
 *     LIMIT     The needs are more than 2^63 bytes, or the process has more than 8 MiB of
 *               variables.
 *     MEMORY    There is no memory for the findings.
 *     SYSTEM    The process's environment cannot be read. os_errno is ENOENT or ESRCH if
 *               there is no such process, EACCES or EPERM if it is another user's.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_doctor_create(
    const struct dry_doctor_options *options, struct dry_doctor **doctor,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_doctor_destroy(struct dry_doctor *doctor);

/* Facts for a program to print above the findings. */
struct dry_doctor_machine {
    size_t struct_size;                                      /* DRY_INIT sets it */
    uint32_t kernel_major, kernel_minor;                     /* 0: not known */
    uint64_t memory_bytes, base_page_bytes, huge_page_bytes; /* 0: not known, or none */
    size_t node_count; /* nodes with memory; 0: not known */
    bool has_nvidia_driver;
};
DRY_API enum dry_status dry_doctor_get_machine(const struct dry_doctor *doctor,
                                               struct dry_doctor_machine *machine);

/*
 * One check and its result. `id` is a key such as "thp-enabled" or "pool-2048kb", the
 * same in all releases. The other texts are sentences without a full stop, commands, or
 * "" if not applicable. Commands are one a line. Advice that is not a command begins with
 * "# ".
 */
struct dry_doctor_finding {
    size_t struct_size; /* DRY_INIT sets it */
    const char *id;
    enum dry_doctor_topic topic;
    enum dry_doctor_verdict verdict;
    const char *title;
    const char *is, *should_be, *why;
    const char *fix, *undo, *persist; /* persist: a file name, a colon, its lines */
    bool needs_root, needs_reboot;    /* needed by the fix */
    size_t first_change, change_count;
};
DRY_API size_t dry_doctor_get_finding_count(const struct dry_doctor *doctor);
DRY_API enum dry_status dry_doctor_get_finding(const struct dry_doctor *doctor, size_t i,
                                               struct dry_doctor_finding *finding);

/* A word to write to a file. Paths do not include the root. For a file that offers a
   choice ("always [madvise] never"), the values are the chosen words. */
struct dry_doctor_change {
    size_t struct_size; /* DRY_INIT sets it */
    const char *path, *old_value, *new_value;
};
DRY_API enum dry_status dry_doctor_get_change(const struct dry_doctor *doctor, size_t i,
                                              struct dry_doctor_change *change);

/* Return whether a change of this library may write this word to this file. A program
   that reads changes back from a file checks them by this before it writes. */
DRY_API bool dry_doctor_may_write(const char *path, const char *value);

/*
 * The pages of one size that the needs take, on the whole machine or on one node. There
 * is a row for each size. If there is more than one node, there is also a row for each
 * size and node, as if all needs were on that node. With options.node there are only that
 * node's rows.
 */
struct dry_doctor_row {
    size_t struct_size; /* DRY_INIT sets it */
    int32_t node;       /* DRY_DOCTOR_ANY_NODE: the whole machine */
    uint64_t page_bytes;
    uint64_t needed_count, total_count, free_count, missing_count;
    /*
     * Memory that may become pinned or huge; UINT64_MAX: not known. It is the smaller of
     * what control groups allow, and of the available memory minus a reserve. The reserve
     * is a tenth of the memory, at least 4 GiB.
     */
    uint64_t budget_bytes;
    uint64_t cache_bytes; /* page cache that must be dropped to get the missing pages */
    bool fits;            /* the missing pages are within the budget */
    bool is_recommended;  /* the size that the finding "pool-need" recommends */
};
DRY_API size_t dry_doctor_get_row_count(const struct dry_doctor *doctor);
DRY_API enum dry_status dry_doctor_get_row(const struct dry_doctor *doctor, size_t i,
                                           struct dry_doctor_row *row);

/* Return the key: "training", "pools", "could-be-better"; NULL for other numbers. */
DRY_API const char *dry_doctor_purpose_name(enum dry_doctor_purpose purpose);
DRY_API const char *dry_doctor_topic_name(enum dry_doctor_topic topic);
DRY_API const char *dry_doctor_verdict_name(enum dry_doctor_verdict verdict);

#ifdef __cplusplus
}
#endif

#endif
