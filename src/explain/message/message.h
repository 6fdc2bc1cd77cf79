/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_MESSAGE_H
#define DRYI_MESSAGE_H

#include <drystone/message.h>

/*
 * Between finding and reading, a message is text without blanks: "CUDAoutofmemory.Triedto
 * allocate1.95GiB.GPU0hasatotalcapacityof...". Its phrases stay unambiguous, and it does not
 * matter where lines were broken.
 */

/* The exception that stood before the head, which tells releases apart. */
enum dryi_message_exception {
    MESSAGE_EXCEPTION_UNKNOWN,
    MESSAGE_EXCEPTION_RUNTIME,  /* RuntimeError: until 1.12 */
    MESSAGE_EXCEPTION_CUDA_OOM, /* torch.cuda.OutOfMemoryError: 1.13 to 2.4 */
    MESSAGE_EXCEPTION_OOM,      /* torch.OutOfMemoryError: from 2.5 on */
};

/*
 * Read the numbers of squeezed text that begins with a head. Sets all of *m but the place,
 * the label, the backend and the exception's share of the releases. Returns where the last
 * phrase ends; 0: there is none. O(length).
 */
size_t dryi_message_read(const char *text, size_t length, struct dry_message *m);

void dryi_message_name_releases(struct dry_message *m, const char *text, size_t length,
                                enum dryi_message_exception exception);

/* A phrase is over when this many characters without one have followed. */
#define DRYI_MESSAGE_GAP 160

/*
 * A form is foreign if its text is not of PyTorch's allocator of a device: HOST and all
 * behind it. message_foreign.c has what they mean.
 *
 * Tell whether a text with a foreign head is a message. `is_own`: the head begins a line
 * or follows a colon.
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
    case DRY_MESSAGE_SLURM
bool dryi_message_is_foreign(const struct dry_message *m, bool is_own);

/* The verdict on a foreign form. */
struct dryi_message_verdict {
    enum dry_message_reason reason;
    enum dry_cause cause;  /* UNKNOWN: the text does not tell */
    uint32_t alternatives; /* bits 1 << dry_cause */
};

/* Find the verdict on a message. Returns NULL if its form is not foreign. */
const struct dryi_message_verdict *dryi_message_judge_foreign(
    const struct dry_message *m);

/* Add what to do after a foreign form. Returns false if the form is not foreign. */
bool dryi_message_lay_out_foreign(const struct dry_message *m,
                                  struct dry_message_judgement *j);

/* Add what to do, by what was found. Requires all else of the judgement. */
void dryi_message_lay_out_steps(const struct dry_message *m,
                                struct dry_message_judgement *j);

#endif
