/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in export_stacks.h. Sums are added in an array by stack, which is then
 * sorted. Cost: O(live allocations + stacks log stacks).
 */
#include "export/export_stacks.h"

#include <stdlib.h>

#include "export/export.h"

/* Two sums per stack, for allocations and frees, and two without a stack. */
struct collector {
    const struct dry_timeline_view *view;
    const struct dry_trace *trace;
    struct export_sum *sums;
    size_t none;
    uint64_t total;
};

static enum dry_status
add_allocation(void *self, uint32_t number)
{
    struct collector *c = self;
    const struct dry_allocation *a = c->view->allocations + number;
    size_t frame_count;
    dry_trace_stack(c->trace, a->stack, &frame_count);
    bool is_of_free = a->flags & DRY_ALLOCATION_STACK_OF_FREE;
    bool is_carried = a->flags & DRY_ALLOCATION_CARRIED_OVER;
    struct export_sum *sum = c->sums + c->none + is_carried;
    if (frame_count > 0)
        sum = c->sums + a->stack * (size_t)2 + is_of_free;
    if (sum->count == 0 && frame_count > 0) {
        sum->stack = a->stack;
        sum->root = is_of_free ? EXPORT_ROOT_OF_FREE : EXPORT_ROOT_NONE;
    } else if (sum->count == 0) {
        sum->stack = DRY_NONE;
        sum->root = is_carried ? EXPORT_ROOT_CARRIED : EXPORT_ROOT_NO_STACK;
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
    const struct export_sum *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (int)x->root - (int)y->root;
}

bool
export_sums_collect(struct export_sums *sums, const struct export_job *job, size_t device)
{
    *sums = (struct export_sums){0};
    struct collector c = {.view = export_view(job, device)};
    c.trace = c.view->trace;
    c.none = dry_trace_get_view(c.trace)->stack_count * (size_t)2;
    c.sums = calloc(c.none + 2, sizeof *c.sums);
    if (!c.sums)
        return false;
    dry_timeline_visit_alive(job->study->devices[device].timeline, job->moments[device],
                             add_allocation, &c);
    for (size_t i = 0; i < c.none + 2; i++) {
        if (c.sums[i].count > 0)
            c.sums[sums->count++] = c.sums[i];
    }
    qsort(c.sums, sums->count, sizeof *c.sums, compare_sums);
    sums->sums = c.sums;
    sums->total = c.total;
    return true;
}

void
export_sums_finish(struct export_sums *sums)
{
    free(sums->sums);
    *sums = (struct export_sums){0};
}

const char *
export_sum_root(const struct export_sum *sum)
{
    static const char *const roots[] = {
        [EXPORT_ROOT_NONE] = NULL,
        [EXPORT_ROOT_OF_FREE] = "(freed by)",
        [EXPORT_ROOT_CARRIED] = "(before the recording)",
        [EXPORT_ROOT_NO_STACK] = "(no stack)",
    };
    return roots[sum->root];
}
