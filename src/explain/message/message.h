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

/* Add what to do, by what was found. Requires all else of the judgement. */
void dryi_message_lay_out_steps(const struct dry_message *m,
                                struct dry_message_judgement *j);

#endif
