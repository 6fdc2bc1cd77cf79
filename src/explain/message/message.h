/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MESSAGE_H
#define DRYI_MESSAGE_H

#include <drystone/message.h>

/*
 * A found message is stored without blanks:
 * "CUDAoutofmemory.Triedtoallocate1.95GiB.GPU0hasatotalcapacityof...". Phrases remain unambiguous,
 * and line breaks do not matter.
 */

/* The exception before the head, which tells releases apart. */
enum dryi_message_exception {
    MESSAGE_EXCEPTION_UNKNOWN,
    MESSAGE_EXCEPTION_RUNTIME,  /* RuntimeError: until 1.12 */
    MESSAGE_EXCEPTION_CUDA_OOM, /* torch.cuda.OutOfMemoryError: 1.13 to 2.4 */
    MESSAGE_EXCEPTION_OOM,      /* torch.OutOfMemoryError: from 2.5 on */
};

/* --- kinds of foreign texts ------------------------------------------------------------------ */

/*
 * A form is foreign if its text is not from PyTorch's allocator of a device: HOST and all later
 * forms. Each foreign text has a kind: a row of message_kinds.c.
 */
#define DRYI_MESSAGE_CASE_FOREIGN                                                        \
    case DRY_MESSAGE_HOST:                                                               \
    case DRY_MESSAGE_XLA:                                                                \
    case DRY_MESSAGE_XLA_PROGRAM:                                                        \
    case DRY_MESSAGE_KV_CACHE:                                                           \
    case DRY_MESSAGE_NCCL:                                                               \
    case DRY_MESSAGE_LIBRARY:                                                            \
    case DRY_MESSAGE_KILLED:                                                             \
    case DRY_MESSAGE_KILLED_IN_GROUP:                                                    \
    case DRY_MESSAGE_SLURM:                                                              \
    case DRY_MESSAGE_STATED

#define DRYI_HEAD_SURE 1u    /* needs neither the line's beginning nor a colon before */
#define DRYI_HEAD_CLOSED 2u  /* the line ends behind it */
#define DRYI_HEAD_LINE 4u    /* the line is read from its beginning */
#define DRYI_HEAD_COUNTED 8u /* not after the number 0 */

struct dryi_message_head {
    const char *words;
    uint8_t kind;
    uint8_t flags;
    /* A kind: while a text of that kind is open, the head is part of it. 0: none. */
    uint8_t joins;
};
const struct dryi_message_head *dryi_message_get_heads(size_t *count);

/* Targets of a phrase's number beside quantities. */
enum {
    DRYI_TO_DEVICE = DRY_MESSAGE_QUANTITY_COUNT,
    DRYI_TO_OTHERS, /* the process whose number stands before */
    DRYI_TO_CHUNK,  /* a free piece: added to the free ones, compared with the largest */
};

/*
 * In a pattern, '%' is a size with its unit, '~' one whose unit may be a letter, '^' and '!' one in
 * GiB or KiB without its unit, '#' a whole number, '$' a fraction, and '&' a hexadecimal number. Each
 * but the last has a target.
 */
#define DRYI_MESSAGE_MARKS "%~^!#$"
#define DRYI_MESSAGE_TARGETS_MAX 4
struct dryi_message_phrase {
    const char *pattern;
    uint8_t kind;
    uint8_t to[DRYI_MESSAGE_TARGETS_MAX];
};
/* Return the phrases of a kind. */
struct dryi_message_phrases {
    const struct dryi_message_phrase *rows;
    size_t count;
};
struct dryi_message_phrases dryi_message_get_phrases(size_t kind);

struct dryi_message_part {
    int sign; /* 0 ends a sum */
    enum dry_message_quantity quantity;
};
#define PLUS(name)                                                                       \
    {                                                                                    \
        1, DRY_MESSAGE_##name                                                            \
    }
#define MINUS(name)                                                                      \
    {                                                                                    \
        -1, DRY_MESSAGE_##name                                                           \
    }

/* A cause that holds if a sum is above 0; certain if the sum is above `margin` within rounding. */
struct dryi_message_rule {
    enum dry_message_reason reason;
    const char *text; /* NULL: the reason's */
    enum dry_cause cause;
    uint64_t margin;
    uint64_t advice; /* 0: the kind's */
    struct dryi_message_part parts[DRY_MESSAGE_TERMS_MAX + 1];
};

#define DRYI_KIND_SIZED 1u  /* no message without a requested size */
#define DRYI_KIND_OWN 2u    /* begins a line, follows a colon or has a requested size */
#define DRYI_KIND_HOLDS 4u  /* a driver's error within belongs to it */
#define DRYI_KIND_NEXT 8u   /* a number that is known already goes to the next target */
#define DRYI_KIND_RANKS 16u /* figures of all ranks before belong to it */

struct dryi_message_kind {
    const char *key;              /* NULL: a note for the message behind it */
    const char *writer;           /* the program that writes it and when, for people */
    const char *needs, *excludes; /* NULL: none */
    enum dry_message_form form;
    enum dry_message_backend backend;
    uint8_t flags;
    uint8_t also; /* a kind whose phrases count, too */
    uint16_t gap; /* 0: DRYI_MESSAGE_GAP */
    enum dry_message_reason reason;
    const char *text;      /* NULL: the reason's */
    enum dry_cause cause;  /* UNKNOWN if the text does not tell */
    uint32_t alternatives; /* bits 1 << dry_cause */
    const struct dryi_message_rule *rules;
    size_t rule_count;
    uint64_t advice;
};
/* Return the kind at an index that a head has. */
const struct dryi_message_kind *dryi_message_get_kind(size_t index);
/* Return the kind of a message; NULL: PyTorch's, or not known. */
const struct dryi_message_kind *dryi_message_find_kind(const struct dry_message *m);
/* Return the index of a kind. */
size_t dryi_message_number_kind(const struct dryi_message_kind *kind);

/* Bits of `advice`: rows of message_foreign.c. */
enum dryi_message_advice {
    DRYI_ADVICE_HOST,
    DRYI_ADVICE_GROUP,
    DRYI_ADVICE_SLURM,
    DRYI_ADVICE_LOAD,
    DRYI_ADVICE_XLA,
    DRYI_ADVICE_XLA_POOL,
    DRYI_ADVICE_XLA_PROGRAM,
    DRYI_ADVICE_VLLM_LENGTH,
    DRYI_ADVICE_VLLM_SHARE,
    DRYI_ADVICE_VLLM_BATCH,
    DRYI_ADVICE_VLLM_FREE,
    DRYI_ADVICE_VLLM_SAMPLER,
    DRYI_ADVICE_VLLM_PROFILE,
    DRYI_ADVICE_VLLM_SWAP,
    DRYI_ADVICE_LEAVE,
    DRYI_ADVICE_NCCL,
    DRYI_ADVICE_HANDLE,
    DRYI_ADVICE_CUDNN,
    DRYI_ADVICE_TF_GROWTH,
    DRYI_ADVICE_NATIVE,
    DRYI_ADVICE_COMFYUI,
    DRYI_ADVICE_PIN,
    DRYI_ADVICE_PIN_OFFLOAD,
    DRYI_ADVICE_SYCL,
    DRYI_ADVICE_BLOCK,
    DRYI_ADVICE_BUFFER,
    DRYI_ADVICE_CANN,
    DRYI_ADVICE_SHM,
    DRYI_ADVICE_WORKERS,
    DRYI_ADVICE_MAPS,
    DRYI_ADVICE_NUMPY,
    DRYI_ADVICE_KILLED,
    DRYI_ADVICE_OFFLOAD,
    DRYI_ADVICE_DOCKER,
    DRYI_ADVICE_KUBERNETES,
    DRYI_ADVICE_EVICTED,
    DRYI_ADVICE_RAY,
    DRYI_ADVICE_RAY_THRESHOLD,
    DRYI_ADVICE_BATCH,
    DRYI_ADVICE_SGLANG,
    DRYI_ADVICE_TENSORRT,
    DRYI_ADVICE_TGI,
    DRYI_ADVICE_PADDLE,
    DRYI_ADVICE_TRTLLM,
    DRYI_ADVICE_TRTLLM_KV,
    DRYI_ADVICE_LLAMA,
    DRYI_ADVICE_OLLAMA,
    DRYI_ADVICE_ORT,
    DRYI_ADVICE_ORT_LIMIT,
    DRYI_ADVICE_CUPY,
    DRYI_ADVICE_RMM,
    DRYI_ADVICE_BITSANDBYTES,
    DRYI_ADVICE_BFC,
    DRYI_ADVICE_BFC_ASYNC,
    DRYI_ADVICE_OTHERS,
    DRYI_ADVICE_GRAPHS, /* vLLM's estimate for CUDA graphs is absurd */
};

/* --- reading --------------------------------------------------------------------------------- */

/* A text that is being read, perhaps in portions. */
struct dryi_message_reading {
    const struct dryi_message_kind *kind; /* NULL: PyTorch's */
    struct dry_message message;
    size_t end; /* the last phrase's; 0: there was none */
    bool has_needed, is_excluded;
};

/*
 * Read the numbers of a text without blanks that begins with a head or, if `r->end` is 0, with the
 * line of one. Sets all of r->message except place, label, backend and releases, which need the
 * exception. Phrases that begin at `limit` or later are not read. Cost: O(length).
 */
void dryi_message_read(struct dryi_message_reading *r, const char *text, size_t length,
                       size_t limit);

/* A message ends after this many characters without a phrase. */
#define DRYI_MESSAGE_GAP 160
size_t dryi_message_gap(const struct dryi_message_kind *kind);

/* Return a number of a message, from its member or from `figures`; ABSENT: there is none. */
struct dry_message_figure dryi_message_get(const struct dry_message *m,
                                           enum dry_message_quantity quantity);

/* Record a number. The first one counts, unless the other lies within its rounding. */
void dryi_message_take(struct dry_message *m, const struct dry_message_figure *figure);

void dryi_message_name_releases(struct dry_message *m, const char *text, size_t length,
                                enum dryi_message_exception exception);

/* Add the rows of advice with these bits. */
void dryi_message_lay_out_advice(const struct dry_message *m, uint64_t advice,
                                 struct dry_message_judgement *j);

/* Add the advice for the findings. Requires that the rest of the judgement is complete. */
void dryi_message_lay_out_steps(const struct dry_message *m,
                                struct dry_message_judgement *j);

#endif
