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

/*
 * Read the numbers of a text without blanks that begins with a head. Sets all of *m except place,
 * label, backend and releases, which need the exception. Returns the end of the last phrase, 0 if
 * there is none. Cost: O(length).
 */
size_t dryi_message_read(const char *text, size_t length, struct dry_message *m);

void dryi_message_name_releases(struct dry_message *m, const char *text, size_t length,
                                enum dryi_message_exception exception);

/* A message ends after this many characters without a phrase. */
#define DRYI_MESSAGE_GAP 160

/*
 * A form is foreign if its text is not from PyTorch's allocator of a device: HOST and all later
 * forms. message_foreign.c has their meaning.
 *
 * Return whether a text with a foreign head is a message. `is_own`: the head begins a
 * line or follows a colon.
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

/* The verdict on a foreign form: the cause that its text states. */
struct dryi_message_verdict {
    enum dry_message_reason reason;
    enum dry_cause cause;  /* UNKNOWN if the text does not tell */
    uint32_t alternatives; /* bits 1 << dry_cause */
};

/* Return the verdict on a message, NULL if its form is not foreign. */
const struct dryi_message_verdict *dryi_message_judge_foreign(
    const struct dry_message *m);

/* Add the advice for a foreign form. Returns false if the form is not foreign. */
bool dryi_message_lay_out_foreign(const struct dry_message *m,
                                  struct dry_message_judgement *j);

/* Add the advice for the findings. Requires that the rest of the judgement is complete. */
void dryi_message_lay_out_steps(const struct dry_message *m,
                                struct dry_message_judgement *j);

#endif
