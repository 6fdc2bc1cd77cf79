/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find the format of a text. The first line that is neither empty nor a comment decides:
 * an event of a plain trace, or the header of an RMM log or of lifetimes. The table has a
 * test of that line and a reader for each format. Any other text is a log, which is searched
 * for dumps of the BFC allocator. Cost: O(bytes of the line); O(bytes) for a log.
 */
#include "trace/text/text_format.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "trace/model/trace.h"
#include "trace/text/text_read.h"

/* Return true if the current line has such a cell. The cursor stays. */
static bool
has_cell(struct dryi_text *t, const char *name)
{
    struct dryi_word cell;
    size_t before = t->at;
    bool found = false;
    while (!found && dryi_text_next_cell(t, &cell))
        found = dryi_word_is(&cell, name);
    t->at = before;
    return found;
}

static bool
is_plain(struct dryi_text *t)
{
    struct dryi_word word;
    size_t before = t->at;
    bool found = dryi_text_next_word(t, &word) && word.length == 1 &&
                 strchr("iafrsepq", word.bytes[0]);
    t->at = before;
    return found;
}

static bool
is_rmm(struct dryi_text *t)
{
    return has_cell(t, "Action") && has_cell(t, "Pointer");
}

static bool
is_lifetimes(struct dryi_text *t)
{
    return has_cell(t, "lower") || has_cell(t, "upper");
}

/* Plain comes first: its label may look like a header; no header begins like an op. */
static const struct format {
    bool (*is_this)(struct dryi_text *t); /* tests the current line only */
    enum dry_status (*read)(struct dryi_text_read *r);
    enum dry_trace_kind kind;
} formats[] = {
    {is_plain, dryi_plain_read, DRY_TRACE_PLAIN},
    {is_rmm, dryi_rmm_read, DRY_TRACE_RMM},
    {is_lifetimes, dryi_lifetimes_read, DRY_TRACE_LIFETIMES},
};

/* Read a log. One without a dump is refused at its first line. */
static enum dry_status
read_log(struct dryi_text_read *r)
{
    uint64_t offset = r->text.offset, number = r->text.number;
    r->text.skips_long_lines = true;
    enum dry_status status = dryi_bfc_read(r);
    dryi_builder_set_kind(r->builder, DRY_TRACE_BFC);
    if (status != DRY_END)
        return status;
    r->text.offset = offset;
    r->text.number = number;
    return dryi_text_fail(
        &r->text, 0,
        "not a known trace or snapshot: expected a pickle, a line `op id size "
        "stream time_us` (op one of i a f r s e p q), RMM's header, "
        "the header id,lower,upper,size, or a log with a dump of the BFC allocator");
}

static enum dry_status
read_format(struct dryi_text_read *r)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!formats[i].is_this(&r->text))
            continue;
        dryi_builder_set_kind(r->builder, formats[i].kind);
        return formats[i].read(r);
    }
    return read_log(r);
}

/* Other files that users pass by mistake: how each begins, and what it is. */
#define FOREIGN(begin, what)                                                             \
    {                                                                                    \
        sizeof(begin) - 1, (begin), (what)                                               \
    }
static const struct {
    size_t length;
    const char *begin, *what;
} foreign[] = {
    FOREIGN("version https://git-lfs.github.com/",
            "a Git LFS pointer: `git lfs pull` brings the file"),
    FOREIGN("<!DOCTYPE html", "an HTML page"),
    FOREIGN("<!doctype html", "an HTML page"),
    FOREIGN("<html", "an HTML page"),
    FOREIGN("\0\0\0\0\0\0\0\0", "zeros: a copy or a download that was never filled"),
};
#define FOREIGN_LONGEST 35
#define FOREIGN_BLANKS 8u

/* Refuse a file that begins like one of these, after a few blanks, and tell what it is. */
static enum dry_status
refuse_foreign(struct dryi_input *in, struct dry_error *err)
{
    enum dry_status status = dryi_input_fill(in, FOREIGN_BLANKS + FOREIGN_LONGEST, err);
    const unsigned char *first = in->window + in->at;
    size_t unread = dryi_input_unread(in);
    while (unread > 0 && dryi_input_unread(in) - unread < FOREIGN_BLANKS &&
           (*first == ' ' || *first == '\n' || *first == '\r'))
        first++, unread--;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign && status == DRY_OK; i++) {
        DRYI_ASSERT(foreign[i].length <= FOREIGN_LONGEST);
        if (unread >= foreign[i].length &&
            memcmp(first, foreign[i].begin, foreign[i].length) == 0)
            status = dryi_fail_at(err, DRY_ERR_FORMAT, 0,
                                  "%s; expected a memory snapshot or a trace",
                                  foreign[i].what);
    }
    return status;
}

enum dry_status
dryi_text_format_read(struct dryi_input *in, struct dry_trace_builder *builder,
                      struct dry_error *err)
{
    struct dryi_text_read r = {
        .memory = builder->trace->memory, .builder = builder, .err = err};
    dryi_text_init(&r.text, in, err);
    enum dry_status status = refuse_foreign(in, err);
    if (status == DRY_OK && dry_trace_begin_device(builder, 0) != DRY_OK)
        status = dryi_builder_check(builder, err);
    if (status == DRY_OK)
        status = dryi_text_next_filled(&r.text, '#');
    if (status == DRY_OK)
        return read_format(&r);
    if (status != DRY_END)
        return status;
    /* A plain trace may have only comments, if its program allocated nothing. */
    dryi_builder_set_kind(builder, DRY_TRACE_PLAIN);
    return DRY_OK;
}
