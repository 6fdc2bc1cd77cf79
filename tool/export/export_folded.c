/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, for flamegraph.pl and its relatives: "outer;inner;innermost bytes", a line a
 * stack. Nothing can be escaped in that format, so a ';' within a name becomes ','. An array by
 * stack takes the sums, and is then sorted. Cost: the allocations alive, and the sorting of
 * the stacks.
 */
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

/* --- the bytes alive at the moment of a device, by stack ---------------------------------- */

enum root {
    ROOT_NONE,    /* the stack that asked for it */
    ROOT_OF_FREE, /* only the stack that gave it back is known */
    ROOT_CARRIED, /* no stack: older than the recording */
    ROOT_NO_STACK,
};

/* The names that stand in place of, or outside of, the stack; NULL for ROOT_NONE. */
static const char *const root_names[] = {
    [ROOT_OF_FREE] = "(freed by)",
    [ROOT_CARRIED] = "(earlier, no stack)",
    [ROOT_NO_STACK] = "(no stack)",
};

/* Blocks in use or pending, rounded. */
struct sum {
    uint32_t stack; /* DRY_NONE */
    enum root root;
    uint64_t bytes, count;
};

/*
 * Two sums a stack, of its allocs and of its frees, and two for allocations without a
 * stack.
 */
struct collector {
    const struct dry_timeline_view *view;
    struct sum *sums;
    size_t none;
    uint64_t total; /* sum of all sums, at most UINT64_MAX */
};

static enum dry_status
add_allocation(void *self, uint32_t number)
{
    struct collector *c = self;
    const struct dry_allocation *a = c->view->allocations + number;
    size_t frame_count;
    dry_trace_stack(c->view->trace, a->stack, &frame_count);
    bool is_of_free = a->flags & DRY_ALLOCATION_STACK_OF_FREE;
    bool is_carried = a->flags & DRY_ALLOCATION_CARRIED_OVER;
    struct sum *sum = c->sums + c->none + is_carried;
    if (frame_count > 0) {
        sum = c->sums + a->stack * (size_t)2 + is_of_free;
        sum->stack = a->stack;
        sum->root = is_of_free ? ROOT_OF_FREE : ROOT_NONE;
    } else {
        sum->stack = DRY_NONE;
        sum->root = is_carried ? ROOT_CARRIED : ROOT_NO_STACK;
    }
    uint64_t left = UINT64_MAX - c->total;
    uint64_t bytes = a->size < left ? a->size : left;
    sum->count++;
    sum->bytes += bytes;
    c->total += bytes;
    return DRY_OK;
}

static int
compare_sums(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (int)x->root - (int)y->root;
}

/* Return the sums, the largest first, for the caller to free. NULL: no memory. */
static struct sum *
collect_sums(const struct export_job *job, size_t device, size_t *count)
{
    struct collector c = {.view = export_view(job, device)};
    c.none = dry_trace_get_view(c.view->trace)->stack_count * (size_t)2;
    c.sums = calloc(c.none + 2, sizeof *c.sums);
    *count = 0;
    if (!c.sums)
        return NULL;
    dry_timeline_visit_alive(job->study->devices[device].timeline, job->moments[device],
                             add_allocation, &c);
    for (size_t i = 0; i < c.none + 2; i++) {
        if (c.sums[i].count > 0)
            c.sums[(*count)++] = c.sums[i];
    }
    qsort(c.sums, *count, sizeof *c.sums, compare_sums);
    return c.sums;
}

/* --- lines -------------------------------------------------------------------------------- */

static void
put_replaced(struct writer *w, const char *text, size_t length)
{
    length = export_cut(text, length);
    for (size_t begin = 0; begin <= length;) {
        const char *found = memchr(text + begin, ';', length - begin);
        size_t end = found ? (size_t)(found - text) : length;
        writer_text(w, text + begin, end - begin);
        if (found)
            writer_char(w, ',');
        begin = end + 1;
    }
}

static void
put_frame(const struct export_job *job, struct writer *w, uint32_t number)
{
    const struct dry_trace *trace = job->study->subject;
    const struct dry_frame *frame = dry_trace_get_view(trace)->frames + number;
    size_t length;
    const char *text = dry_trace_string(trace, frame->name, &length);
    if (text && length > 0)
        put_replaced(w, text, length);
    else
        writer_put(w, "(no name)");
    text = dry_trace_string(trace, frame->file, &length);
    if (!text || length == 0)
        return;
    text = export_base_name(text, &length);
    writer_put(w, " (");
    put_replaced(w, text, length);
    if (frame->line > 0)
        writer_format(w, ":%u", frame->line);
    writer_char(w, ')');
}

static void
write_sum(const struct export_job *job, struct writer *w, const struct sum *sum)
{
    const char *root = root_names[sum->root];
    size_t count;
    const uint32_t *frames = dry_trace_stack(job->study->subject, sum->stack, &count);
    const struct dry_frame *all = dry_trace_get_view(job->study->subject)->frames;
    if (!root && count && all[frames[count - 1]].flags & DRY_FRAME_FORWARD)
        root = "(backward of)";
    if (root)
        writer_put(w, root);
    for (size_t i = count; i-- > 0;) {
        if (root || i + 1 < count)
            writer_char(w, ';');
        put_frame(job, w, frames[i]);
    }
    writer_char(w, ' ');
    writer_unsigned(w, sum->bytes);
    writer_char(w, '\n');
}

static void
write_folded(const struct export_job *job, struct writer *w)
{
    for (size_t d = 0; d < job->study->device_count; d++) {
        if (job->moments[d] == DRY_NONE)
            continue;
        size_t count;
        struct sum *sums = collect_sums(job, d, &count);
        if (!sums)
            writer_fail(w, DRY_ERR_MEMORY, "no memory");
        for (size_t i = 0; i < count; i++) {
            if (job->study->device_count > 1)
                writer_format(w, "GPU %d;", (int)export_view(job, d)->device);
            write_sum(job, w, sums + i);
        }
        free(sums);
    }
}

const struct export_format export_folded = {
    .name = "folded",
    .endings = {".folded"},
    .is_text = true,
    .cuts_strings = true,
    .needs_moment = true,
    .write = write_folded,
};
