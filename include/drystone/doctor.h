/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DOCTOR_H
#define DRY_DOCTOR_H

/*
 * What of a machine stands in the way of the host memory of deep learning, and what mends it.
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
 * A finding says what is, what should be for this purpose, why, the command that mends it, how
 * to undo that and how to make it last over a reboot. Where the mending is a word written to a
 * file of /sys or /proc/sys, it is also there as a change, for programs that want to make it;
 * the library itself writes nothing.
 *
 * Everything is read under a root that may be given: a folder with the /sys and /proc of
 * another machine. What cannot be read is not known, and said to be; no check fails for it.
 *
 * Ownership  create / destroy. Texts belong to the doctor. They may hold bytes of the files
 *            and variables that were read, which are hostile: make them printable.
 * Threads    Objects are independent; one that exists is only read.
 * Units      Bytes.
 * Cost       Some two hundred small files, read once, by create; of a process its list of
 *            mappings too, four times.
 */

#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of all of these are fixed for ever; new ones are only appended. */
enum dry_doctor_purpose {
    DRY_DOCTOR_TRAINING = 0,  /* on a GPU: DataLoader's workers, pinned memory */
    DRY_DOCTOR_INFERENCE = 1, /* on a GPU: weights are read once and stay */
    DRY_DOCTOR_CPU = 2,       /* no GPU: the tensors are in host memory */
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

/* From good to bad. */
enum dry_doctor_verdict {
    DRY_DOCTOR_GOOD = 0,
    DRY_DOCTOR_NOT_KNOWN = 1,
    DRY_DOCTOR_COULD_BE_BETTER = 2,
    DRY_DOCTOR_WRONG = 3, /* something fails, or costs a multiple */
};
#define DRY_DOCTOR_VERDICT_COUNT 4

#define DRY_DOCTOR_ANY_NODE (-1)
#define DRY_DOCTOR_ROWS_MAX 512

/* A variable of the program that will run. */
struct dry_doctor_variable {
    const char *name, *value;
};

struct dry_doctor_options {
    size_t struct_size; /* set by dry_doctor_options_init() */
    const struct dry_memory *memory;
    enum dry_doctor_purpose purpose;
    const char *root; /* in front of /sys and /proc; NULL or "": this machine */
    /*
     * The environment of the program; the library reads none. NULL: not known, then nothing is
     * said of malloc and PyTorch.
     */
    const struct dry_doctor_variable *variables;
    size_t variable_count;
    /* The memory the program is to have in huge pages, each region by itself rounded up. */
    const uint64_t *needs_bytes;
    size_t need_count;
    /* Where all of it shall lie; DRY_DOCTOR_ANY_NODE: wherever there is room. */
    int32_t node;
    /* Of the pages it shall have; 0: the kernel's default pool, else 2 MiB. */
    uint64_t page_bytes;
    /*
     * A program that runs already, by its number; 0: one that will be started. Limits, control
     * groups, mounts and allowed nodes are its own then; its malloc and PyTorch are those in
     * its memory (/proc/N/maps); its variables those it was started with (/proc/N/environ),
     * behind which come the ones given above.
     */
    int64_t process;
};

/* Training, this machine, an unknown environment, no needs, any node, no process. */
DRY_API void dry_doctor_options_init(struct dry_doctor_options *options);

struct dry_doctor;

/*
 * Errors     ARGUMENT: an option is impossible. LIMIT: needs of more than 2^63 bytes,
 *            or a process with more than 8 MiB of variables.
 *            MEMORY: no memory for the findings. SYSTEM: the process's environment cannot
 *            be read: os_errno is ENOENT or ESRCH where there is no such process, EACCES or
 *            EPERM where it is another user's.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_doctor_create(
    const struct dry_doctor_options *options, struct dry_doctor **doctor,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_doctor_destroy(struct dry_doctor *doctor);

/* What a program that shows the findings wants to say first. */
struct dry_doctor_machine {
    uint32_t kernel_major, kernel_minor;                     /* 0: not known */
    uint64_t memory_bytes, base_page_bytes, huge_page_bytes; /* 0: not known, or none */
    size_t node_count; /* with memory; 0: not known */
    int has_nvidia_driver;
};
DRY_API void dry_doctor_get_machine(const struct dry_doctor *doctor,
                                    struct dry_doctor_machine *machine);

/*
 * `id` is a word for programs, "thp-enabled" or "pool-2048kb", the same in all releases. The
 * other texts are sentences without a full stop, commands, or "" where there is nothing to say.
 * Several commands stand in lines of their own; advice that is no command begins with "# ".
 */
struct dry_doctor_finding {
    const char *id;
    enum dry_doctor_topic topic;
    enum dry_doctor_verdict verdict;
    const char *title;
    const char *is, *should_be, *why;
    const char *fix, *undo, *persist; /* persist: a file's name, a colon, its lines */
    int needs_root, needs_reboot;     /* of the fix */
    size_t first_change, change_count;
};
DRY_API size_t dry_doctor_get_finding_count(const struct dry_doctor *doctor);
DRY_API void dry_doctor_get_finding(const struct dry_doctor *doctor, size_t i,
                                    struct dry_doctor_finding *finding);

/*
 * A word for a file. Paths do not contain the root. Of files with a choice ("always [madvise]
 * never") the values are the chosen words.
 */
struct dry_doctor_change {
    const char *path, *old_value, *new_value;
};
DRY_API void dry_doctor_get_change(const struct dry_doctor *doctor, size_t i,
                                   struct dry_doctor_change *change);
/*
 * Whether this is a file and a word that a change of ours may name: what a program that reads
 * such pairs back from a file asks before it writes.
 */
DRY_API int dry_doctor_may_write(const char *path, const char *value);

/*
 * Of the needs: the pages of each size that are needed, free and missing; one row a size for
 * the whole machine and, where there is more than one node, one a size and node, as if all of
 * it were to lie there. With options.node that node's alone.
 */
struct dry_doctor_row {
    int32_t node; /* DRY_DOCTOR_ANY_NODE: the whole machine */
    uint64_t page_bytes;
    uint64_t needed_count, total_count, free_count, missing_count;
    /*
     * What may become pinned or huge: the least of what control groups leave and of what is
     * available less a tenth of the memory, at least 4 GiB; UINT64_MAX: not known.
     */
    uint64_t budget_bytes;
    uint64_t cache_bytes; /* of files, that has to go for the missing pages */
    int fits;             /* the missing pages are within the budget */
    int is_recommended;   /* the size that the finding "pool-need" speaks of */
};
DRY_API size_t dry_doctor_get_row_count(const struct dry_doctor *doctor);
DRY_API void dry_doctor_get_row(const struct dry_doctor *doctor, size_t i,
                                struct dry_doctor_row *row);

/* Words for programs: "training", "pools", "could-be-better"; NULL for other numbers. */
DRY_API const char *dry_doctor_purpose_name(enum dry_doctor_purpose purpose);
DRY_API const char *dry_doctor_topic_name(enum dry_doctor_topic topic);
DRY_API const char *dry_doctor_verdict_name(enum dry_doctor_verdict verdict);

#ifdef __cplusplus
}
#endif

#endif
