/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in export_names.h. A table holds the site of each stack, computed once. */
#include "export/export_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/owners.h>

#include "base/fail.h"
#include "base/term.h"

/* --- sites -------------------------------------------------------------------------------- */

enum dry_status
export_names_init(struct export_names *names, const struct dry_timeline *timeline,
                  struct dry_error *err)
{
    *names = (struct export_names){.trace = dry_timeline_get_view(timeline)->trace};
    const struct dry_trace_view *v = dry_trace_get_view(names->trace);
    struct dry_owners_options options;
    struct dry_owners *owners = NULL;
    dry_owners_options_init(&options);
    enum dry_status status = dry_owners_create(timeline, &options, &owners, err);
    if (status != DRY_OK)
        return status;
    names->sites = malloc((v->stack_count + (size_t)1) * sizeof *names->sites);
    if (!names->sites)
        status = fail_memory(err, "no memory for names");
    for (uint32_t i = 0; i < v->stack_count && names->sites; i++)
        names->sites[i] = dry_owners_find_frame(owners, i);
    dry_owners_destroy(owners);
    return status;
}

void
export_names_finish(struct export_names *names)
{
    free(names->sites);
    names->sites = NULL;
}

uint32_t
export_names_site(const struct export_names *names, uint32_t stack)
{
    return stack == DRY_NONE ? DRY_NONE : names->sites[stack];
}

/* --- names -------------------------------------------------------------------------------- */

const char *
export_base_name(const char *path, size_t *length)
{
    size_t begin = 0;
    for (size_t i = 0; i + 1 < *length; i++) {
        if (path[i] == '/' || path[i] == '\\')
            begin = i + 1;
    }
    *length -= begin;
    return path + begin;
}

struct text {
    char *bytes;
    size_t used, capacity; /* with the terminating zero */
    bool is_cut;
};

static void
text_add(struct text *t, const char *bytes, size_t length)
{
    size_t left = t->capacity - t->used;
    char *at = t->bytes + t->used;
    t->used += term_make_printable(at, left, bytes, length < left ? length : left);
    t->is_cut = t->is_cut || length >= left;
}

static const char *
find(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word));
}

/*
 * Shorten the name of an operator to the word before "::apply(" or "::call(", and return
 * its prefix. torch::autograd::generated::NegBackward0::apply(...) gives "NegBackward0"
 * and "autograd ". Returns "" for other names, which stay unchanged.
 */
static const char *
shorten_name(const char **name, size_t *length)
{
    bool is_backward =
        find(*name, *length, "torch::autograd::") && !find(*name, *length, "Node::");
    bool is_operation = find(*name, *length, "at::_ops::") != NULL;
    const char *end = is_backward ? find(*name, *length, "::apply(") : NULL;
    is_backward = end != NULL;
    if (!end && is_operation)
        end = find(*name, *length, "::call(");
    if (!end)
        return "";
    const char *begin = end;
    while (begin > *name && begin[-1] != ':')
        begin--;
    *name = begin;
    *length = (size_t)(end - begin);
    return is_backward ? "autograd " : "aten::";
}

static void
text_add_frame(struct text *t, const struct dry_trace *trace, uint32_t frame)
{
    const struct dry_frame *f = dry_trace_get_view(trace)->frames + frame;
    size_t path_length = 0, name_length = 0;
    const char *path = dry_trace_string(trace, f->file, &path_length);
    const char *name = dry_trace_string(trace, f->name, &name_length);
    if (f->flags & DRY_FRAME_FORWARD)
        text_add(t, "backward of ", 12);
    if (path && path_length > 0 && memcmp(path, "??", path_length < 2 ? 1 : 2) != 0) {
        path = export_base_name(path, &path_length);
        text_add(t, path, path_length);
        char line[16];
        int n = snprintf(line, sizeof line, ":%u ", f->line);
        if (f->line > 0)
            text_add(t, line, (size_t)n);
        else
            text_add(t, " ", 1);
    }
    if (name && name_length > 0) {
        const char *prefix = shorten_name(&name, &name_length);
        text_add(t, prefix, strlen(prefix));
        text_add(t, name, name_length);
    } else {
        text_add(t, "(no name)", 9);
    }
}

/* End a name that was cut in "...", without splitting a character. */
static const char *
text_end(struct text *t)
{
    if (t->is_cut && t->used >= 3) {
        size_t at = t->used - 3;
        while (at > 0 && ((unsigned char)t->bytes[at] & 0xc0) == 0x80)
            at--;
        memcpy(t->bytes + at, "...", 4);
    }
    return t->bytes;
}

size_t
export_cut(const char *bytes, size_t length)
{
    if (length <= EXPORT_STRING_BYTES)
        return length;
    size_t end = EXPORT_STRING_BYTES;
    while (end > EXPORT_STRING_BYTES - 4 && ((unsigned char)bytes[end] & 0xc0) == 0x80)
        end--;
    return end;
}

const char *
export_short_text(const char *bytes, size_t length, char name[EXPORT_NAME_BYTES])
{
    name[0] = '\0';
    struct text t = {.bytes = name, .capacity = EXPORT_NAME_BYTES};
    text_add(&t, bytes ? bytes : "", bytes ? length : 0);
    return text_end(&t);
}

const char *
export_frame_name(const struct export_names *names, uint32_t frame,
                  char name[EXPORT_NAME_BYTES])
{
    name[0] = '\0';
    struct text t = {.bytes = name, .capacity = EXPORT_NAME_BYTES};
    text_add_frame(&t, names->trace, frame);
    return text_end(&t);
}

const char *
export_allocation_name(const struct export_names *names,
                       const struct dry_allocation *allocation,
                       char name[EXPORT_NAME_BYTES])
{
    bool is_of_free = allocation->flags & DRY_ALLOCATION_STACK_OF_FREE;
    uint32_t site = export_names_site(names, allocation->stack);
    if (site != DRY_NONE && !is_of_free)
        return export_frame_name(names, site, name);
    if (allocation->flags & DRY_ALLOCATION_CARRIED_OVER)
        return "(before the recording)";
    return "(no stack)";
}

const char *
export_pool_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES])
{
    if (!lane->pool_known)
        return "";
    if (lane->pool_a == 0 && lane->pool_b == 0)
        return "default";
    snprintf(name, EXPORT_NAME_BYTES, "(%llu, %llu)", (unsigned long long)lane->pool_a,
             (unsigned long long)lane->pool_b);
    return name;
}

const char *
export_stream_name(const struct dry_lane *lane, char name[EXPORT_NAME_BYTES])
{
    if (lane->stream == 0)
        return "0";
    snprintf(name, EXPORT_NAME_BYTES, "0x%llx", (unsigned long long)lane->stream);
    return name;
}

const char *
export_lane_class_name(const struct dry_lane *lane, bool is_large,
                       char name[EXPORT_NAME_BYTES])
{
    char stream[EXPORT_NAME_BYTES], pool[EXPORT_NAME_BYTES];
    const char *pool_name = export_pool_name(lane, pool);
    bool is_private = strcmp(pool_name, "") != 0 && strcmp(pool_name, "default") != 0;
    snprintf(name, EXPORT_NAME_BYTES, "%s, stream %.40s%s%.60s",
             is_large ? "large" : "small", export_stream_name(lane, stream),
             is_private ? ", pool " : "", is_private ? pool_name : "");
    return name;
}

bool
export_stack_text(const struct export_names *names, uint32_t stack, char *to,
                  size_t capacity)
{
    struct text t = {.bytes = to, .capacity = capacity};
    size_t count;
    const uint32_t *frames = dry_trace_stack(names->trace, stack, &count);
    to[0] = '\0';
    for (size_t i = 0; i < count && !t.is_cut; i++) {
        if (i > 0 && t.capacity - t.used > 1)
            to[t.used++] = '\n';
        text_add_frame(&t, names->trace, frames[i]);
    }
    text_end(&t);
    return t.is_cut;
}
