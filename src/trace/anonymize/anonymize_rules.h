/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ANONYMIZE_RULES_H
#define DRYI_ANONYMIZE_RULES_H

/* Rules shared by anonymize.c, which replaces, and anonymize_verify.c, which checks. */

#include <drystone/anonymize.h>

#include "trace/anonymize/opcode_run.h"

enum dryi_text_role {
    DRYI_TEXT_ROLE_FUNCTION,
    DRYI_TEXT_ROLE_TORCH_FUNCTION, /* a function in a file of PyTorch */
    DRYI_TEXT_ROLE_FILE,
    DRYI_TEXT_ROLE_TEXT,
    DRYI_TEXT_ROLE_ANNOTATION,
    DRYI_TEXT_ROLE_SETTINGS,
};

/*
 * Longer paths and settings become a single alias. Replaced component by component, they
 * could exceed the reader's string limit.
 */
#define DRYI_PIECEWISE_BYTES_MAX 4096u
/* Bytes that the reader accepts under the unknown keys of one dict (pickle_extra.c). */
#define DRYI_EXTRA_BYTES_MAX 65536u

/* Return true if the whole string may stay. If not, components of it still may. */
bool dryi_text_is_public(const struct dry_anonymize_options *options,
                         enum dryi_text_role role, const char *text, size_t length);
/* Return an alias's first letter: 'f' for functions, 'd' for files, 's' for all else. */
char dryi_text_letter(enum dryi_text_role role);

/* Return true if a piece of unknown keys may stay. */
bool dryi_opcode_piece_is_public(const struct dryi_opcode_piece *piece);

/* Return the offset of "torch/..." in the frame's file, or DRYI_NO_TAIL. */
#define DRYI_NO_TAIL SIZE_MAX
size_t dryi_frame_tail(const struct dry_trace *trace,
                       const struct dry_anonymize_options *options,
                       const struct dry_frame *frame);

/* Return the role of the function of a frame whose file has this tail. */
static inline enum dryi_text_role
dryi_function_role(size_t tail)
{
    return tail == DRYI_NO_TAIL ? DRYI_TEXT_ROLE_FUNCTION : DRYI_TEXT_ROLE_TORCH_FUNCTION;
}

/*
 * The text of a frame with DRY_FRAME_TEXT, in pieces: `  File "FILE", line LINE, in NAME`, or the
 * name alone if there is no file. Pieces refer to the trace's strings until one is added.
 */
#define DRYI_FRAME_PIECES 6
struct dryi_frame_text {
    const char *pieces[DRYI_FRAME_PIECES];
    size_t lengths[DRYI_FRAME_PIECES];
    char line[32];
};
void dryi_frame_text_init(struct dryi_frame_text *text, const struct dry_trace *trace,
                          const struct dry_frame *frame);

/* Complete the options with defaults. Returns ARGUMENT if they are invalid. */
enum dry_status dryi_anonymize_take_options(struct dry_anonymize_options *options,
                                            const struct dry_anonymize_options *given,
                                            struct dry_error *err);
/* Return the earliest time of the trace (microseconds), or 0 if times are kept. */
int64_t dryi_anonymize_time_base(const struct dry_trace *trace,
                                 const struct dry_anonymize_options *options);

/* Subtract `base`. Hostile times may be over 63 bits apart, so unsigned numbers wrap. */
static inline int64_t
dryi_shift_time(int64_t time, int64_t base)
{
    return (int64_t)((uint64_t)time - (uint64_t)base);
}

#endif
