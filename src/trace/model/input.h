/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_INPUT_H
#define DRYI_INPUT_H

/*
 * A window that moves over a dry_source.
 *
 * The unread bytes are window[at..end). A reader reads them in place, advances `at`, and
 * asks for more with dryi_input_fill(). The window is 256 KiB. It grows only for one long
 * item, as the bytes of the item arrive: a length that the file merely claims costs
 * nothing.
 *
 * Errors     A failed source, the caller's cancel and an item beyond item_bytes_max end
 * the reading with their status. The end of the file is no error: fewer bytes than asked
 * for are unread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/trace.h>

struct dryi_input {
    struct dry_source source;
    struct dry_memory memory;
    unsigned char *window;
    size_t capacity;
    size_t at, end;
    uint64_t window_offset; /* file offset of window[0], in bytes */
    size_t item_bytes_max;  /* options.string_bytes_max */
    bool is_at_end;         /* the source has ended: no bytes follow window[end - 1] */
    bool (*progress)(void *self, uint64_t byte_count);
    void *progress_self;
    uint64_t progress_next;
};

/* Allocate the window from `memory`. Requires `options` to be complete. */
enum dry_status dryi_input_init(struct dryi_input *in, const struct dry_source *source,
                                const struct dry_memory *memory,
                                const struct dry_trace_options *options,
                                struct dry_error *err);
void dryi_input_finish(struct dryi_input *in);

/*
 * Read until the window holds at least `count` unread bytes, or all that are left. A
 * `count` beyond both item_bytes_max and the window is refused with LIMIT. Pointers into
 * the window become invalid.
 */
enum dry_status dryi_input_fill(struct dryi_input *in, size_t count,
                                struct dry_error *err);

/* Return the file offset of the next unread byte. */
static inline uint64_t
dryi_input_offset(const struct dryi_input *in)
{
    return in->window_offset + in->at;
}

static inline size_t
dryi_input_unread(const struct dryi_input *in)
{
    return in->end - in->at;
}

#endif
