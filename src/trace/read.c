/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading a trace: find out the format, call its reader, and release everything in one
 * function.
 *
 * A pickle of protocol 2 or later begins with the byte 0x80, which no text does. Other
 * known file types are named in the error, so that a user who passed a compressed file or
 * a picture sees the mistake. A UTF-8 byte order mark before any of them is skipped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "trace/model/trace.h"
#include "trace/text/kineto_read.h"
#include "trace/text/text_format.h"

#define STRING_BYTES_MAX (16u << 20)
#define DEPTH_MAX 64u
#define PICKLE_FIRST_BYTE 0x80u
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void
dry_trace_options_init_sized(struct dry_trace_options *options, size_t struct_size)
{
    const struct dry_trace_options defaults = {
        .memory_bytes_max = UINT64_MAX,
        .depth_max = DEPTH_MAX,
        .string_bytes_max = STRING_BYTES_MAX,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

struct magic {
    const char *bytes;
    size_t length;
    const char *name;
};

static const char *
name_magic(const struct dryi_input *in)
{
    static const struct magic magics[] = {
        {"\x1f\x8b", 2, "gzip"},
        {"\x28\xb5\x2f\xfd", 4, "zstd"},
        {"\xfd"
         "7zXZ",
         5, "xz"},
        {"BZh", 3, "bzip2"},
        {"PK\x03\x04", 4, "a ZIP file"},
        {"\x7f"
         "ELF",
         4, "an ELF program"},
        {"SQLite", 6, "SQLite"},
        {"{", 1, "JSON"},
        {"[", 1, "JSON"},
    };
    const unsigned char *first = in->window + in->at;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        if (dryi_input_unread(in) >= magics[i].length &&
            memcmp(first, magics[i].bytes, magics[i].length) == 0)
            return magics[i].name;
    }
    return NULL;
}

/*
 * Return true if the file begins like a dict or list in a pickle of protocol 0 ("(dp0")
 * or 1 ("}q"). Such files get a hint how to convert them.
 */
static bool
is_old_pickle(const struct dryi_input *in)
{
    static const char *const begins[] = {"(dp", "(lp", "}q", "]q"};
    const unsigned char *first = in->window + in->at;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t length = strlen(begins[i]);
        if (dryi_input_unread(in) >= length && memcmp(first, begins[i], length) == 0)
            return true;
    }
    return false;
}

static enum dry_status
refuse_magic(const char *name, struct dry_error *err)
{
    return dryi_fail_at(err, DRY_ERR_FORMAT, 0,
                        "this is %s, expected a pickle or a text trace%s", name,
                        strcmp(name, "JSON") == 0 ? "" : " (unpack it first)");
}

/* Fill the window with the file's first bytes. Skip the byte order mark that spreadsheets and
   shells put before them. */
static enum dry_status
read_begin(struct dryi_input *in, struct dry_error *err)
{
    enum dry_status status = dryi_input_fill(in, 8, err);
    size_t length = strlen(BYTE_ORDER_MARK);
    if (status != DRY_OK || dryi_input_unread(in) < length ||
        memcmp(in->window + in->at, BYTE_ORDER_MARK, length) != 0)
        return status;
    in->at += length;
    return dryi_input_fill(in, 8, err);
}

static enum dry_status
read_any(struct dryi_input *in, const struct dry_trace_options *options,
         struct dry_trace_builder *builder, struct dry_error *err)
{
    enum dry_status status = read_begin(in, err);
    if (status != DRY_OK)
        return status;
    if (dryi_input_unread(in) == 0)
        return dryi_fail_at(err, DRY_ERR_FORMAT, 0, "the file is empty");
    if (in->window[in->at] == PICKLE_FIRST_BYTE)
        return dryi_pickle_read(in, options, builder, err);
    if (is_old_pickle(in))
        return dryi_fail_at(err, DRY_ERR_FORMAT, 0,
                            "this is a pickle of protocol 0 or 1, expected 2 to 5: "
                            "write it again with pickle.dump(..., protocol=4)");
    bool is_profile;
    status = dryi_kineto_peek(in, &is_profile, err);
    if (status != DRY_OK)
        return status;
    if (is_profile)
        return dryi_kineto_read(in, builder, err);
    const char *name = name_magic(in);
    return name ? refuse_magic(name, err) : dryi_text_format_read(in, builder, err);
}

static enum dry_status
read_all(const struct dry_source *source, const struct dry_trace_options *options,
         struct dry_trace_builder *builder, struct dry_error *err)
{
    struct dryi_input in;
    enum dry_status status =
        dryi_input_init(&in, source, &builder->trace->memory, options, err);
    if (status != DRY_OK)
        return status;
    status = read_any(&in, options, builder, err);
    builder->trace->view.byte_count = dryi_input_offset(&in);
    dryi_input_finish(&in);
    return status;
}

enum dry_status
dry_trace_read(const struct dry_source *source, const struct dry_trace_options *given,
               struct dry_trace **trace, struct dry_error *err)
{
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    enum dry_status status = dryi_sized_take(&options, sizeof options, given, err);
    if (status != DRY_OK)
        return status;
    struct dry_trace_builder *builder;
    status = dryi_builder_create(options.memory, DRY_TRACE_SNAPSHOT,
                                 options.memory_bytes_max, &builder, err);
    if (status != DRY_OK)
        return status;
    status = read_all(source, &options, builder, err);
    if (status == DRY_OK)
        return dry_trace_builder_finish(builder, trace, err);
    if (status == DRY_ERR_MEMORY) /* the budget tells which limit was hit */
        status = dryi_budget_fail(&builder->trace->budget, "the trace", err);
    dry_trace_builder_destroy(builder);
    return status;
}
