/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ANONYMIZE_RULES_H
#define DRYI_ANONYMIZE_RULES_H

/* The rules that anonymize.c, which replaces, and anonymize_verify.c must agree on. */

#include <drystone/anonymize.h>

#include "trace/anonymize/opcode_run.h"

enum dryi_text_role {
    DRYI_TEXT_ROLE_FUNCTION,
    DRYI_TEXT_ROLE_TORCH_FUNCTION, /* in a file of PyTorch */
    DRYI_TEXT_ROLE_FILE,
    DRYI_TEXT_ROLE_TEXT,
    DRYI_TEXT_ROLE_ANNOTATION,
    DRYI_TEXT_ROLE_SETTINGS,
};

/* Longer paths and settings become one alias: replaced by parts they could grow too long. */
#define DRYI_PIECEWISE_BYTES_MAX 4096u
/* The bytes that the reader takes under the unknown keys of one dict (pickle_extra.c). */
#define DRYI_EXTRA_BYTES_MAX 65536u

/* True if the whole string may stay; if not, parts of a file or of settings still may. */
bool dryi_text_is_public(const struct dry_anonymize_options *options,
                         enum dryi_text_role role, const char *text, size_t length);
/* 'f' for functions, 'd' for files, 's' for the rest. */
char dryi_text_letter(enum dryi_text_role role);

/* True if a piece of unknown keys may stay. */
bool dryi_opcode_piece_is_public(const struct dryi_opcode_piece *piece);

/*
 * Find where the public part of the frame's file begins; DRYI_NO_TAIL if there is none.
 */
#define DRYI_NO_TAIL SIZE_MAX
size_t dryi_frame_tail(const struct dry_trace *trace,
                       const struct dry_anonymize_options *options,
                       const struct dry_frame *frame);

/* The part that the function of such a frame plays. */
static inline enum dryi_text_role
dryi_function_role(size_t tail)
{
    return tail == DRYI_NO_TAIL ? DRYI_TEXT_ROLE_FUNCTION : DRYI_TEXT_ROLE_TORCH_FUNCTION;
}

/* Take the options and check them. */
enum dry_status dryi_anonymize_take_options(struct dry_anonymize_options *options,
                                            const struct dry_anonymize_options *given,
                                            struct dry_error *err);
/* The earliest time of a trace, that becomes 0; 0 if times are kept. */
int64_t dryi_anonymize_time_base(const struct dry_trace *trace,
                                 const struct dry_anonymize_options *options);

/* Hostile times may lie further apart than 63 bits: they wrap, as their difference does. */
static inline int64_t
dryi_shift_time(int64_t time, int64_t base)
{
    return (int64_t)((uint64_t)time - (uint64_t)base);
}

#endif
