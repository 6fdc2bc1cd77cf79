/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames of any bytes: files, functions and lines are classified, shown and compared; every
 * word stays within its bounds, and no owner is better than another frame of its stack.
 *
 * Input: frames "FILE;NAME;" with the name's first byte as the line, a line each; an empty
 * line begins a new stack.
 */
#include <stdlib.h>
#include <string.h>

#include "explain/site/site.h"
#include "explain/site/symbol.h"
#include "support/fuzz.h"

#define FRAMES_MAX 256

#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition))                                                                \
            abort();                                                                     \
    } while (0)

static void
check_label(const struct dryi_label *label)
{
    REQUIRE(label->length < DRYI_LABEL_BYTES);
    REQUIRE(label->bytes[label->length] == '\0');
}

static void
check_path(const struct dryi_path *path)
{
    REQUIRE(path->tail <= path->length);
    REQUIRE(path->part_count > 0);
    for (unsigned parts = 0; parts < 6; parts++) {
        struct dryi_label label;
        dryi_label_init(&label);
        dryi_path_write(path, parts, &label);
        dryi_path_write_key(path, parts, &label);
        check_label(&label);
    }
    size_t length;
    const char *stem = dryi_path_stem(path, &length);
    REQUIRE(stem >= path->bytes && stem + length <= path->bytes + path->length);
}

static void
check_sites(const struct dryi_sites *s)
{
    for (uint32_t i = 0; i < s->path_count; i++)
        check_path(&s->paths[i]);
    for (uint32_t i = 0; i < s->view->stack_count; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(s->trace, i, &count);
        struct dryi_label label;
        dryi_label_init(&label);
        dryi_sites_write_stack(s, i, &label);
        check_label(&label);
        REQUIRE((s->stacks[i].owner == DRY_NONE) == (count == 0));
        for (size_t k = 0; k < count; k++) {
            REQUIRE(s->frames[frames[k]].code <= s->frames[s->stacks[i].owner].code);
            dryi_label_init(&label);
            dryi_sites_write_line(s, frames[k], &label);
            dryi_sites_write_function(s, frames[k], &label);
            check_label(&label);
        }
    }
}

/* One line of the input as a frame. */
static uint32_t
add_frame(struct dry_trace_builder *builder, const char *bytes, size_t length)
{
    const char *semicolon = memchr(bytes, ';', length);
    size_t file_length = semicolon ? (size_t)(semicolon - bytes) : length;
    struct dry_frame frame = {.name = DRY_NONE, .extra = DRY_NONE};
    frame.file = dry_trace_add_string(builder, bytes, file_length);
    if (semicolon) {
        size_t name_length = length - file_length - 1;
        frame.name = dry_trace_add_string(builder, semicolon + 1, name_length);
        frame.line = name_length > 0 ? (unsigned char)semicolon[1] % 3 : 0;
    }
    return dry_trace_add_frame(builder, &frame);
}

static struct dry_trace *
build(const char *bytes, size_t size)
{
    struct dry_trace_builder *builder;
    struct dry_trace *trace;
    uint32_t frames[FRAMES_MAX];
    size_t count = 0;
    REQUIRE(dry_trace_builder_create(NULL, &builder, NULL) == DRY_OK);
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end ? (size_t)(end - bytes) : size;
        if (length == 0 || count == FRAMES_MAX) {
            dry_trace_add_stack(builder, frames, count);
            count = 0;
        } else {
            frames[count++] = add_frame(builder, bytes, length);
        }
        bytes += length + (end != NULL);
        size -= length + (end != NULL);
    }
    dry_trace_add_stack(builder, frames, count);
    REQUIRE(dry_trace_builder_finish(builder, &trace, NULL) == DRY_OK);
    return trace;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dry_trace *trace = build((const char *)data, size);
    struct dryi_sites sites;
    REQUIRE(dryi_sites_init(&sites, trace, NULL, NULL) == DRY_OK);
    check_sites(&sites);
    dryi_sites_finish(&sites);
    dry_trace_destroy(trace);
    return 0;
}
