/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_MESSAGE_H
#define DRY_MESSAGE_H

/*
 * Find messages such as "CUDA out of memory. Tried to allocate ..." in a text, read their
 * numbers, check whether they are consistent, and conclude the cause.
 *
 *     struct dry_message m = DRY_INIT(struct dry_message);
 *     struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
 *     if (dry_message_parse(text, length, NULL, &m, &err) == DRY_OK) {
 *         dry_message_judge(&m, &j);
 *         printf("%s\n", dry_cause_name(j.cause));
 *     }
 *
 * A log of any size goes through a finder in portions, or at once through
 * dry_message_find(). The reader knows PyTorch's texts from 1.0 on, for CUDA, HIP, XPU,
 * MPS and NPU, with the native allocator and with cudaMallocAsync. It also knows texts of
 * other programs, of libraries, and of those that kill a process: `kind` names them.
 * Blanks and line ends may be
 * anywhere, even inside words. At the beginning of a line, the reader skips colours, time
 * stamps, comment signs and the marks of ranks ("[rank3]:", "(worker pid=17)", "0: ").
 * Lines of different ranks may be interleaved.
 *
 * Numbers in a message are rounded. Each has the interval of values that print so, and
 * all sums are sums of intervals. A verdict is certain only if it holds for all values in
 * the intervals.
 *
 * Ownership  A message and a judgement are plain data. A finder is created and destroyed.
 * Errors     A text without a message is no error: no call of `found`, or DRY_END.
 * Threads    One at a time per finder; the rest may be called from any thread.
 * Units      Bytes.
 * Cost       Finding is O(length of the text) and takes about 200 KiB; judging allocates
 *            no memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/cause.h>
#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a message ---------------------------------------------------------------------------- */

enum dry_message_known {
    DRY_MESSAGE_ABSENT, /* not in the text */
    DRY_MESSAGE_KNOWN,
    /* Printed, but 256 PiB or more, so not a memory size. "17179869184.00 GiB" is 2^64:
       NVML's value for "unknown" (Windows, WSL), and cudaMallocAsync's for "no limit". */
    DRY_MESSAGE_BEYOND,
};

/*
 * A number of the text, and the interval of values that print so.
 *
 *     "1.95 GiB"   2093796557 bytes, give or take half a unit of the last digit
 *     "N bytes"    exact
 *     "GB"         2^30 bytes in old texts of MPS; elsewhere ambiguous, so that the
 *                  interval holds 10^9 too
 */
struct dry_message_size {
    enum dry_message_known known;
    uint64_t bytes;     /* the printed value */
    uint64_t low, high; /* bounds of the values that print so, both included */
};

/* The numbers of all enums below never change; new ones are appended. */
enum dry_message_form {
    DRY_MESSAGE_SHORT,    /* "CUDA out of memory.", perhaps with the requested size */
    DRY_MESSAGE_CLASSIC,  /* "(GPU 0; 8.00 GiB total capacity; ...": up to 2.0, and NPU */
    DRY_MESSAGE_MODERN,   /* "GPU 0 has a total capacity of ...": from 2.1 on */
    DRY_MESSAGE_ASYNC,    /* "Allocation on device 0 would exceed ...": cudaMallocAsync */
    DRY_MESSAGE_MPS,      /* "MPS backend out of memory (MPS allocated: ..." */
    DRY_MESSAGE_REJECTED, /* "Allocation was preemptively rejected ..." */
    DRY_MESSAGE_HUGE,     /* "Tried to allocate more than 1EB memory" */
    DRY_MESSAGE_DRIVER,   /* "CUDA error: out of memory": not from PyTorch's allocator */
    DRY_MESSAGE_HOST,     /* "DefaultCPUAllocator: can't allocate memory": host memory */
    DRY_MESSAGE_XLA,      /* "RESOURCE_EXHAUSTED: Out of memory": JAX, TensorFlow */
    DRY_MESSAGE_XLA_PROGRAM, /* "Ran out of memory in memory space": XLA's compiler */
    DRY_MESSAGE_KV_CACHE,    /* "No available memory for the cache blocks": vLLM */
    DRY_MESSAGE_NCCL,        /* "Cuda failure 'out of memory'": NCCL's own buffers */
    DRY_MESSAGE_LIBRARY, /* "CUBLAS_STATUS_ALLOC_FAILED", or cuDNN's, cuSOLVER's ... */
    DRY_MESSAGE_KILLED,  /* "Out of memory: Killed process": the kernel, whole machine */
    DRY_MESSAGE_KILLED_IN_GROUP, /* "Memory cgroup out of memory: Killed process" */
    DRY_MESSAGE_SLURM,           /* "Detected 1 oom_kill event in StepId=...": Slurm */
    DRY_MESSAGE_STATED,          /* another program's text: `kind` names it */
};
#define DRY_MESSAGE_FORM_COUNT 18
/* Return the name of a form: "modern" ... */
DRY_API const char *dry_message_form_name(enum dry_message_form form);

enum dry_message_backend {
    DRY_MESSAGE_BACKEND_UNKNOWN, /* "Out of memory. Tried to allocate ..." */
    DRY_MESSAGE_CUDA,
    DRY_MESSAGE_HIP,
    DRY_MESSAGE_XPU,
    DRY_MESSAGE_BACKEND_MPS,
    DRY_MESSAGE_NPU,
    DRY_MESSAGE_BACKEND_HOST, /* host memory */
    DRY_MESSAGE_BACKEND_XLA,  /* a GPU or a TPU under XLA */
};
#define DRY_MESSAGE_BACKEND_COUNT 8
/* Return the name of a backend. */
DRY_API const char *dry_message_backend_name(enum dry_message_backend backend);

enum dry_message_variable {
    DRY_MESSAGE_VARIABLE_NONE,
    DRY_MESSAGE_VARIABLE_CUDA,    /* PYTORCH_CUDA_ALLOC_CONF */
    DRY_MESSAGE_VARIABLE_GENERIC, /* PYTORCH_ALLOC_CONF, some releases from 2.9 on */
    DRY_MESSAGE_VARIABLE_HIP,     /* PYTORCH_HIP_ALLOC_CONF */
};

/* A number of a text, or of a sum. */
enum dry_message_quantity {
    DRY_MESSAGE_TRIED,
    DRY_MESSAGE_TOTAL,
    DRY_MESSAGE_FREE,
    DRY_MESSAGE_PROCESS,
    DRY_MESSAGE_OTHERS, /* sum over the other processes */
    DRY_MESSAGE_ALLOWED,
    DRY_MESSAGE_ALLOCATED,
    DRY_MESSAGE_PRIVATE_POOLS,
    DRY_MESSAGE_UNALLOCATED,
    DRY_MESSAGE_RESERVED,
    DRY_MESSAGE_NON_PYTORCH, /* of this process, outside PyTorch */
    DRY_MESSAGE_CONTEXT,     /* 1 GiB: assumed upper bound of a CUDA context */
    DRY_MESSAGE_EXPANDABLE_RESERVE,
    /* The others stand in `figures`. */
    DRY_MESSAGE_ACTIVE,       /* NPU: allocated, or in use by a stream */
    DRY_MESSAGE_LARGEST_FREE, /* the largest free piece */
    DRY_MESSAGE_ROUNDED,      /* the request, rounded up by the allocator */
    DRY_MESSAGE_POOL,         /* a pool with the request */
    DRY_MESSAGE_WEIGHTS,
    DRY_MESSAGE_ACTIVATIONS,
    DRY_MESSAGE_NON_TORCH,   /* vLLM's non-torch memory */
    DRY_MESSAGE_GRAPHS,      /* vLLM's estimate for CUDA graphs */
    DRY_MESSAGE_CACHE,       /* memory left for the KV cache */
    DRY_MESSAGE_FREE_BEFORE, /* free before the weights, or before a measurement */
    DRY_MESSAGE_FREE_AFTER,
    DRY_MESSAGE_ENGINE, /* TensorRT-LLM's engine, and what its context takes */
    DRY_MESSAGE_EXECUTION,
    DRY_MESSAGE_HELD, /* DeepSpeed's MA, Max_MA, CA and Max_CA */
    DRY_MESSAGE_HELD_PEAK,
    DRY_MESSAGE_CACHED,
    DRY_MESSAGE_CACHED_PEAK,
    DRY_MESSAGE_HOST_USED, /* the host's memory in use, and its share */
    DRY_MESSAGE_HOST_SHARE,
    DRY_MESSAGE_TASK,       /* memory of the killed task */
    DRY_MESSAGE_VIRTUAL,    /* a killed process's addresses, and its pages of files */
    DRY_MESSAGE_FILE_PAGES, /* of a killed process */
    DRY_MESSAGE_GROUP_USED, /* of the control group */
    DRY_MESSAGE_GROUP_LIMIT,
    DRY_MESSAGE_THRESHOLD,       /* bytes that a node keeps free */
    DRY_MESSAGE_THRESHOLD_SHARE, /* the share that may be used */
    DRY_MESSAGE_POD_REQUEST,
    DRY_MESSAGE_PARAMETERS, /* XLA's table of a program */
    DRY_MESSAGE_CONSTANTS,
    DRY_MESSAGE_LIVE_OUT,
    DRY_MESSAGE_TEMPORARIES,
    DRY_MESSAGE_PROGRAM_TOTAL,
    DRY_MESSAGE_PROGRAM_WASTE,
    DRY_MESSAGE_PROGRAM,
    DRY_MESSAGE_ARGUMENTS,
    DRY_MESSAGE_SHORTAGE,
    DRY_MESSAGE_LENGTH_WANTED, /* tokens */
    DRY_MESSAGE_LENGTH_POSSIBLE,
    DRY_MESSAGE_FRACTION, /* the share of the device that was given */
    DRY_MESSAGE_FRACTION_NEEDED,
    DRY_MESSAGE_FRACTION_LEAST,
    DRY_MESSAGE_EVENTS, /* how often it happened, by the text */
    DRY_MESSAGE_DUMMIES,
    DRY_MESSAGE_CACHE_TOKENS,    /* which an engine's KV cache holds */
    DRY_MESSAGE_GRAPHS_CAPTURED, /* bytes that CUDA graphs took at their capture */
};
#define DRY_MESSAGE_QUANTITY_COUNT 58
/* Return the key of a quantity, for machines: "private_pools". */
DRY_API const char *dry_message_quantity_name(enum dry_message_quantity quantity);
/* Return the words for a quantity, for people: "free in private pools". */
DRY_API const char *dry_message_quantity_text(enum dry_message_quantity quantity);

enum dry_message_unit {
    DRY_MESSAGE_BYTES,
    DRY_MESSAGE_COUNT,      /* tokens, requests, events */
    DRY_MESSAGE_MILLIONTHS, /* a share: 950000 is 95 % */
};
DRY_API enum dry_message_unit dry_message_quantity_unit(
    enum dry_message_quantity quantity);

/* A number that no member of a message is for, in the quantity's unit. */
struct dry_message_figure {
    enum dry_message_quantity quantity;
    bool is_negative; /* `size` has no sign */
    struct dry_message_size size;
};
#define DRY_MESSAGE_FIGURES_MAX 24

/* Bits for the advice in the text. */
#define DRY_MESSAGE_HINT_EXPANDABLE 1u /* recommends expandable_segments:True */
#define DRY_MESSAGE_HINT_MAX_SPLIT 2u  /* recommends max_split_size_mb */
/* Recommends expandable_segments_reserve: expandable segments are on. */
#define DRY_MESSAGE_HINT_RESERVE 4u
#define DRY_MESSAGE_HINT_EMPTY_CACHE 8u /* recommends empty_cache(), XPU */
#define DRY_MESSAGE_HINT_WATERMARK 16u  /* recommends PYTORCH_MPS_HIGH_WATERMARK_RATIO */

#define DRY_MESSAGE_PROCESSES_MAX 16
#define DRY_MESSAGE_LABEL_BYTES 32

/* A message: every number that the text has. */
struct dry_message {
    size_t struct_size; /* DRY_INIT sets it */
    enum dry_message_form form;
    enum dry_message_backend backend;
    bool has_device;
    uint32_t device;
    bool is_cut; /* the text ends before the form is complete */

    /* Requested from the driver: for an allocation of 1.5 MiB it is 20 MiB. */
    struct dry_message_size tried;
    struct dry_message_size total; /* total memory of the device */
    /* free memory of the device, after PyTorch released its whole cache */
    struct dry_message_size free;
    /* memory of this process, including memory that PyTorch did not allocate; for a
       killed process, the anonymous memory */
    struct dry_message_size process;
    /* allowed by the memory fraction, by MPS' high watermark, or for vLLM's cache */
    struct dry_message_size allowed;
    /*
     * Bytes that the program holds. In texts from 2.2 on they include `private_pools`,
     * the bytes that are free inside private pools, because a CUDA graph may still use
     * them.
     */
    struct dry_message_size allocated;
    struct dry_message_size private_pools;
    struct dry_message_size unallocated; /* reserved but not allocated */
    /* Allocated plus unallocated; only CLASSIC and MPS print it. */
    struct dry_message_size reserved;
    struct dry_message_size non_pytorch; /* MPS's "other allocations" */
    /* Addresses reserved for one expandable segment. */
    struct dry_message_size expandable_reserve;

    /* "Process 17 has 1.00 GiB memory in use", in the order of the text. */
    struct {
        uint64_t pid;
        struct dry_message_size bytes;
    } others[DRY_MESSAGE_PROCESSES_MAX];
    size_t other_count; /* used entries of `others` */
    size_t other_dropped;

    enum dry_message_variable variable;
    uint32_t hints;
    /*
     * The releases of PyTorch that print this text, "2.2 to 2.4"; NULL: not known.
     * Inferred from the wording and the name of the exception; the range errs on the wide
     * side.
     */
    const char *releases;

    uint64_t offset; /* the byte offset at which "CUDA out of memory" begins */
    uint64_t line;   /* the line of that byte, from 1 */
    char label[DRY_MESSAGE_LABEL_BYTES]; /* "rank3" of "[rank3]:"; "": none */

    /* Which text of another program it is, "vllm-length"; NULL: PyTorch's allocator of a
       device wrote it. */
    const char *kind;
    /* More numbers, of the text or of lines before it that belong to it. */
    struct dry_message_figure figures[DRY_MESSAGE_FIGURES_MAX];
    size_t figure_count;
};

/* Return whether `a` and `b` are the same message: all numbers and words read are equal.
   `offset`, `line` and label are ignored. */
DRY_API bool dry_message_is_same(const struct dry_message *a,
                                 const struct dry_message *b);

/* Copy a message that `found` was called with, which may be longer than the caller's
   struct. */
DRY_API enum dry_status dry_message_copy(const struct dry_message *message,
                                         struct dry_message *copy);

/* Return who wrote a message, for people: "vLLM, when it measures its memory". NULL:
   PyTorch's allocator of a device, or not known. */
DRY_API const char *dry_message_get_writer(const struct dry_message *message);

/* --- finding ------------------------------------------------------------------------------ */

struct dry_message_options {
    size_t struct_size; /* set by dry_message_options_init() */
    const struct dry_memory *memory;
    /*
     * Required: called for each message, in the order in which their ends are certain. If
     * lines of several ranks alternate, this is not always the order of `offset`. A
     * result of true ends the search with CANCELLED. The message belongs to the finder
     * and is valid during the call only; dry_message_copy() keeps it.
     */
    bool (*found)(void *self, const struct dry_message *message);
    void *found_self;
};

/* Set all options to their defaults; the caller must then set `found`. */
DRY_API void dry_message_options_init_sized(struct dry_message_options *options,
                                            size_t struct_size);
#define dry_message_options_init(options)                                                \
    dry_message_options_init_sized(options, sizeof *(options))

struct dry_message_finder;

/* Make a finder, which takes about 200 KiB, once. Errors: ARGUMENT (no `found`),
   UNSUPPORTED, MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_message_finder_create(
    const struct dry_message_options *options, struct dry_message_finder **finder,
    struct dry_error *err);

/*
 * Feed the next `count` bytes of the text; a portion may end anywhere. O(count). Errors:
 * CANCELLED.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_message_finder_feed(
    struct dry_message_finder *finder, const char *bytes, size_t count);

/* End the text: open messages are passed to `found`. The finder can then be fed another
   text. Errors: CANCELLED. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_message_finder_end(
    struct dry_message_finder *finder);

/* End the finder. NULL is fine. */
DRY_API void dry_message_finder_destroy(struct dry_message_finder *finder);

/*
 * Find all messages of a text in memory, by a finder. Errors: those of the finder's
 * calls.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_message_find(
    const char *text, size_t length, const struct dry_message_options *options,
    struct dry_error *err);

/* Find the first message of a text in memory; the result is *message. A `memory` of NULL
   is malloc. DRY_END: the text has no message. Errors: MEMORY. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_message_parse(
    const char *text, size_t length, const struct dry_memory *memory,
    struct dry_message *message, struct dry_error *err);

/*
 * Write a message as Drystone's own text: it has the form of PyTorch's newest text, so
 * that tools for that text can read it. At most `capacity` bytes are written, with the
 * zero. Returns the length of the whole text, like snprintf; `text` may be NULL if
 * `capacity` is 0.
 *
 * Reading the text gives the message again, except for offset, line and label, if the
 * message was MODERN, REJECTED or HUGE and its numbers were in PyTorch's units. CLASSIC,
 * ASYNC and MPS become MODERN, with `unallocated` computed if possible.
 */
DRY_API size_t dry_message_write(const struct dry_message *message, char *text,
                                 size_t capacity);

/* --- judging ------------------------------------------------------------------------------ */

/* A sum of rounded numbers; may be negative. */
struct dry_message_sum {
    int64_t bytes;     /* the sum of the numbers as printed */
    int64_t low, high; /* bounds of the sum over the intervals */
};

#define DRY_MESSAGE_TERMS_MAX 5
struct dry_message_term {
    enum dry_message_quantity quantity;
    int sign; /* +1 or -1 */
    struct dry_message_sum value;
};

/* A relation that must hold if the numbers are of one moment. (Reserved bytes may exceed
   the allowed ones, because a limit can be set late.) */
enum dry_message_equation {
    DRY_MESSAGE_EQ_DEVICE, /* total - free - process - others >= 0 */
    /* process - allocated - unallocated >= 0: this process's non-PyTorch bytes */
    DRY_MESSAGE_EQ_PROCESS,
    /* total - free - reserved >= 0: all bytes that are not PyTorch's */
    DRY_MESSAGE_EQ_PYTORCH,
    DRY_MESSAGE_EQ_POOLS,     /* allocated - private_pools >= 0 */
    DRY_MESSAGE_EQ_FREE,      /* total - free >= 0 */
    DRY_MESSAGE_EQ_ALLOCATED, /* reserved - allocated >= 0 */
};
#define DRY_MESSAGE_EQUATION_COUNT 6
/* Return a key for programs, the same in all releases. */
DRY_API const char *dry_message_equation_name(enum dry_message_equation equation);
/* Return the words for an equation's remainder: "held by no process in the text". */
DRY_API const char *dry_message_equation_text(enum dry_message_equation equation);

enum dry_message_result {
    DRY_MESSAGE_HOLDS, /* true for all values in the intervals */
    DRY_MESSAGE_OPEN,  /* true for some of them */
    DRY_MESSAGE_FAILS, /* true for none */
};

struct dry_message_check {
    enum dry_message_equation equation;
    enum dry_message_result result;
    struct dry_message_term terms[DRY_MESSAGE_TERMS_MAX];
    size_t term_count;
    struct dry_message_sum remainder; /* the value of the left side, an interval */
};

/* An argument for or against a cause: a sentence and its sum. */
enum dry_message_reason {
    DRY_MESSAGE_REASON_HUGE,
    DRY_MESSAGE_REASON_REJECTED,
    DRY_MESSAGE_REASON_REQUEST_EXCEEDS_DEVICE, /* tried - total > 0 */
    DRY_MESSAGE_REASON_LIVE_EXCEEDS_DEVICE,    /* allocated + tried - total > 0 */
    /* Shortage: tried - unallocated - free > 0 */
    DRY_MESSAGE_REASON_LIVE_EXCEEDS_REACH,
    DRY_MESSAGE_REASON_LIMIT,              /* reserved + tried - allowed > 0 */
    DRY_MESSAGE_REASON_LIMIT_LIVE,         /* allocated + tried - allowed > 0 */
    DRY_MESSAGE_REASON_LIMIT_PIECES,       /* allowed - allocated - tried >= 0 */
    DRY_MESSAGE_REASON_WATERMARK,          /* MPS: held + tried - allowed > 0 */
    DRY_MESSAGE_REASON_EXPANDABLE_RESERVE, /* tried - expandable_reserve > 0 */
    DRY_MESSAGE_REASON_SHORT,  /* new memory is needed but missing: tried - free > 0 */
    DRY_MESSAGE_REASON_PIECES, /* unallocated - (tried - free) >= 0 */
    /* The text does not say whether the free bytes are pending or another stream's. */
    DRY_MESSAGE_REASON_WHICH_PIECES,
    DRY_MESSAGE_REASON_SMALL_POOL, /* tried is 2 MiB: a segment for small blocks */
    /* unallocated + free - tried < tried: nearly full */
    DRY_MESSAGE_REASON_SECOND_REQUEST,
    DRY_MESSAGE_REASON_OTHER_PROCESSES, /* others - shortage >= 0 */
    DRY_MESSAGE_REASON_NON_PYTORCH,     /* non_pytorch - 1 GiB - shortage >= 0 */
    DRY_MESSAGE_REASON_NOT_PYTORCH,     /* total - free - reserved - 1 GiB - shortage */
    DRY_MESSAGE_REASON_PRIVATE_POOLS,   /* private_pools - shortage >= 0 */
    DRY_MESSAGE_REASON_REFUSED_THOUGH_FREE, /* free - tried >= 0 */
    DRY_MESSAGE_REASON_THIS_IS_PROCESS, /* one of the listed processes must be this one */
    DRY_MESSAGE_REASON_ROUNDED,         /* the printed digits allow both outcomes */
    DRY_MESSAGE_REASON_CONTRADICTION,   /* an equation fails */
    DRY_MESSAGE_REASON_HOST_SPILL,      /* PyTorch holds more than the device has */
    DRY_MESSAGE_REASON_CACHE_UNKNOWN,   /* cudaMallocAsync prints no reserved bytes */
    DRY_MESSAGE_REASON_CUT,             /* the text ends before the deciding numbers */
    DRY_MESSAGE_REASON_DRIVER,          /* not from PyTorch's allocator */
    DRY_MESSAGE_REASON_HOST_REFUSED,
    DRY_MESSAGE_REASON_XLA_REQUEST,
    DRY_MESSAGE_REASON_XLA_PROGRAM,
    DRY_MESSAGE_REASON_KV_CACHE_SHORT, /* tried - allowed > 0 */
    DRY_MESSAGE_REASON_KV_CACHE_NONE,
    DRY_MESSAGE_REASON_NCCL,
    DRY_MESSAGE_REASON_LIBRARY,
    DRY_MESSAGE_REASON_KILLED,
    DRY_MESSAGE_REASON_KILLED_IN_GROUP,
    DRY_MESSAGE_REASON_SLURM,
    DRY_MESSAGE_REASON_STATED,         /* the text states it: see the proof's `text` */
    DRY_MESSAGE_REASON_GRAPH_ESTIMATE, /* cache + graphs > 0, or graphs < 0 */
    DRY_MESSAGE_REASON_HOST_FULL,      /* the host's memory was nearly full before */
};
#define DRY_MESSAGE_REASON_COUNT 40
/* Return a key for programs, the same in all releases. */
DRY_API const char *dry_message_reason_name(enum dry_message_reason reason);
/* Return the text for a reason: one sentence, without a full stop. */
DRY_API const char *dry_message_reason_text(enum dry_message_reason reason);

struct dry_message_proof {
    enum dry_message_reason reason;
    enum dry_cause cause; /* the cause it supports; DRY_CAUSE_NONE: a remark */
    /* Empty for a remark without figures. */
    struct dry_message_term terms[DRY_MESSAGE_TERMS_MAX];
    size_t term_count;
    struct dry_message_sum sum;
    const char *text; /* one sentence, without a full stop */
};

enum dry_message_language {
    DRY_MESSAGE_PROSE, /* no code */
    DRY_MESSAGE_SHELL,
    DRY_MESSAGE_PYTHON,
};

/* A step to take next: the reason, and lines to paste. */
struct dry_message_step {
    enum dry_cause cause; /* the cause it applies to; NONE: any */
    const char *why;
    const char *code; /* lines separated by newlines; NULL: none; "{}" is `value` */
    enum dry_message_language language;
    char value[24]; /* a number of the text: "11216"; "": none */
};
/* Write the code of a step, with its value. Returns the length, like snprintf. */
DRY_API size_t dry_message_step_write(const struct dry_message_step *step, char *text,
                                      size_t capacity);

#define DRY_MESSAGE_CHECKS_MAX DRY_MESSAGE_EQUATION_COUNT
#define DRY_MESSAGE_PROOFS_MAX 12
#define DRY_MESSAGE_STEPS_MAX 12

struct dry_message_judgement {
    size_t struct_size; /* DRY_INIT sets it */
    /*
     * CAPACITY, FRAGMENTATION, STRANDED, LIMIT, OTHER_MEMORY, or UNKNOWN if the numbers
     * support none of them; NONE: an engine started, and nothing ran out. A text shows one
     * moment: it cannot show a leak, a spike, an imbalance, or bytes that wait for other
     * streams.
     */
    enum dry_cause cause;
    bool is_certain; /* its sums hold for all values in the intervals */
    /*
     * Bits 1 << dry_cause: further causes that the text cannot exclude. A certain cause
     * may also have some, since no text says in which pool the free bytes were, or when
     * they were freed.
     */
    uint32_t alternatives;

    /* Computed if the text has the operands; otherwise ABSENT. */
    struct dry_message_size reserved, unallocated, process, others, non_pytorch;
    /* Index in `others` of the process that must be this one, seen from outside a
       container; -1: none. */
    int32_t this_process;

    struct dry_message_check checks[DRY_MESSAGE_CHECKS_MAX];
    size_t check_count;
    /* The deciding proof comes first. */
    struct dry_message_proof proofs[DRY_MESSAGE_PROOFS_MAX];
    size_t proof_count;
    struct dry_message_step steps[DRY_MESSAGE_STEPS_MAX]; /* recommended order */
    size_t step_count;
};

/*
 * Check the numbers of `message` against each other, name the cause if they support one,
 * and list the next steps. The result is *judgement. Allocates no memory and cannot fail.
 *
 * The rules, in order:
 *
 *     a size that no device has
 *     a limit
 *     a request for which the device had enough free memory
 *     live plus requested bytes, against the bytes available to PyTorch
 * fragmentation
 *
 * The meaning of `private_pools` and the order of release before the text is made are
 * those of c10/cuda/CUDACachingAllocator.cpp.
 */
DRY_API enum dry_status dry_message_judge(const struct dry_message *message,
                                          struct dry_message_judgement *judgement);

#ifdef __cplusplus
}
#endif

#endif
