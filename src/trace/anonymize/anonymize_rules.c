/* SPDX-License-Identifier: Apache-2.0 */

/* The idea is in anonymize_rules.h. The lists of public strings are in public_text.h. */
#include "trace/anonymize/anonymize_rules.h"

#include <stdio.h>
#include <string.h>

#include "trace/anonymize/alias.h"
#include "trace/anonymize/public_text.h"

/*
 * Functions in PyTorch's own files are public. They have Python identifiers as names;
 * anything else in such a frame is suspicious and gets an alias.
 */
static bool
is_identifier(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!dryi_is_word_char(name[i]) || (unsigned char)name[i] >= 0x80)
            return false;
    }
    return length > 0;
}

bool
dryi_text_is_public(const struct dry_anonymize_options *options, enum dryi_text_role role,
                    const char *text, size_t length)
{
    bool keeps_code = !options->hash_all;
    switch (role) {
    case DRYI_TEXT_ROLE_TORCH_FUNCTION:
    case DRYI_TEXT_ROLE_FUNCTION:
        return dryi_public_python(text, length) ||
               (keeps_code && dryi_public_cpp(text, length)) ||
               (keeps_code && role == DRYI_TEXT_ROLE_TORCH_FUNCTION &&
                is_identifier(text, length));
    case DRYI_TEXT_ROLE_FILE:
        return dryi_public_file(text, length);
    case DRYI_TEXT_ROLE_TEXT:
        return length == 0 || dryi_public_word(text, length);
    case DRYI_TEXT_ROLE_ANNOTATION:
        return length == 0 || (keeps_code && dryi_public_annotation(text, length));
    case DRYI_TEXT_ROLE_SETTINGS:
        return length == 0;
    }
    return false;
}

char
dryi_text_letter(enum dryi_text_role role)
{
    if (role == DRYI_TEXT_ROLE_FUNCTION || role == DRYI_TEXT_ROLE_TORCH_FUNCTION)
        return 'f';
    return role == DRYI_TEXT_ROLE_FILE ? 'd' : 's';
}

bool
dryi_opcode_piece_is_public(const struct dryi_opcode_piece *piece)
{
    switch (piece->kind) {
    case DRYI_PIECE_MARK_UP:
        return true;
    case DRYI_PIECE_STRING:
        return piece->text_length == 0 ||
               dryi_public_word(piece->text, piece->text_length);
    case DRYI_PIECE_BYTES:
        return piece->text_length == 0;
    case DRYI_PIECE_INT:
        return piece->has_known_key || piece->bits <= DRYI_ALIAS_SMALL_MAX;
    case DRYI_PIECE_FLOAT:
        return piece->has_known_key;
    }
    return false;
}

size_t
dryi_frame_tail(const struct dry_trace *trace,
                const struct dry_anonymize_options *options,
                const struct dry_frame *frame)
{
    size_t length;
    const char *path = dry_trace_string(trace, frame->file, &length);
    if (!path || options->hash_all || length > DRYI_PIECEWISE_BYTES_MAX)
        return DRYI_NO_TAIL;
    size_t tail = dryi_public_tail(path, length);
    return tail < length ? tail : DRYI_NO_TAIL;
}

void
dryi_frame_text_init(struct dryi_frame_text *text, const struct dry_trace *trace,
                     const struct dry_frame *frame)
{
    *text = (struct dryi_frame_text){
        .pieces = {"  File \"", "", "\", line ", text->line, ", in ", ""}};
    snprintf(text->line, sizeof text->line, "%u", (unsigned)frame->line);
    for (size_t i = 0; i < DRYI_FRAME_PIECES && frame->file != DRY_NONE; i++)
        text->lengths[i] = strlen(text->pieces[i]);
    if (frame->file != DRY_NONE)
        text->pieces[1] = dry_trace_string(trace, frame->file, &text->lengths[1]);
    text->pieces[5] = dry_trace_string(trace, frame->name, &text->lengths[5]);
}
