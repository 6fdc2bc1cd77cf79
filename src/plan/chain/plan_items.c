/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists of items: how planners make them, and checks of lists from outside. A list is a tree in
 * preorder, a range before its inner items. So both only need to track the open ranges.
 */
#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/chain/plan_state.h"

/* --- making ------------------------------------------------------------------------------- */

static bool
push(struct dryi_planning *p, const struct dry_plan_item *item)
{
    struct dryi_plan_list *list = &p->list;
    if (!dryi_memory_grow(&p->memory, &list->items, &list->capacity, list->count + 1,
                          sizeof *list->items))
        return false;
    list->items[list->count++] = *item;
    return true;
}

bool
dryi_plan_push_save(struct dryi_planning *p, uint32_t first, uint32_t last,
                    uint32_t option)
{
    struct dryi_plan_list *list = &p->list;
    if (list->count > list->level) {
        struct dry_plan_item *before = &list->items[list->count - 1];
        if (before->kind == DRY_PLAN_SAVE && before->option == option) {
            DRYI_ASSERT(before->last + 1 == first);
            before->last = last;
            return true;
        }
    }
    struct dry_plan_item item = {DRY_PLAN_SAVE, first, last, option, 0};
    return push(p, &item);
}

bool
dryi_plan_push_range(struct dryi_planning *p, uint32_t first, uint32_t last)
{
    struct dry_plan_item item = {DRY_PLAN_CHECKPOINT, first, last, 0, 0};
    return push(p, &item);
}

bool
dryi_plan_push_cut(struct dryi_planning *p, uint32_t first, uint32_t last)
{
    uint32_t begin = first;
    for (uint32_t i = first; i <= last; i++) {
        if (!p->stages[i].is_fixed)
            continue;
        if ((i > begin && !dryi_plan_push_range(p, begin, i - 1)) ||
            !dryi_plan_push_save(p, i, i, 0))
            return false;
        begin = i + 1;
    }
    return begin > last || dryi_plan_push_range(p, begin, last);
}

bool
dryi_plan_open_range(struct dryi_planning *p, uint32_t first, uint32_t last,
                     uint32_t *item)
{
    if (!dryi_plan_push_range(p, first, last))
        return false;
    *item = (uint32_t)(p->list.count - 1);
    p->list.level = p->list.count;
    return true;
}

void
dryi_plan_close_range(struct dryi_planning *p, uint32_t item)
{
    struct dryi_plan_list *list = &p->list;
    struct dry_plan_item *range = &list->items[item];
    const struct dry_plan_item *inner = range + 1;
    if (list->count == item + 2u && inner->kind == DRY_PLAN_SAVE && inner->option == 0)
        list->count--;
    range->inner_count = (uint32_t)(list->count - item - 1);
    list->level = list->count;
}

void
dryi_plan_clear(struct dryi_planning *p)
{
    p->list.count = p->list.level = 0;
}

enum dry_status
dryi_plan_price(const struct dryi_planning *p, struct dry_plan_cost *cost)
{
    return dryi_plan_observe(p, NULL, cost);
}

/* --- checking ----------------------------------------------------------------------------- */

struct check {
    const struct dry_chain *chain;
    const struct dry_plan_item *items;
    uint32_t count;
    struct dryi_plan_link *links;
    struct dry_error *err;
    uint32_t open;     /* the innermost incomplete range */
    uint32_t before;   /* the previous item in it */
    uint32_t expected; /* first stage of the next item */
    uint64_t runs;
};

/* Return the index after the last item inside the open range. */
static uint32_t
end_of_open(const struct check *c)
{
    if (c->open == DRYI_NO_ITEM)
        return c->count;
    return c->open + 1 + c->items[c->open].inner_count;
}

static enum dry_status
close_ranges(struct check *c, uint32_t at)
{
    while (c->open != DRYI_NO_ITEM && at == end_of_open(c)) {
        const struct dry_plan_item *range = &c->items[c->open];
        if (c->expected != range->last + 1)
            return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                             "item %u: its inner items end before stage %u, it ends "
                             "with stage %u",
                             c->open, c->expected, range->last);
        c->links[c->open].last_inner = c->before;
        c->before = c->open;
        c->open = c->links[c->open].parent;
    }
    return DRY_OK;
}

static enum dry_status
check_extent(struct check *c, uint32_t at)
{
    const struct dry_plan_item *item = &c->items[at];
    if (item->kind > DRY_PLAN_CHECKPOINT)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT, "item %u: kind is %u", at, item->kind);
    if (item->first != c->expected)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u begins with stage %u; stage %u comes next", at,
                         item->first, c->expected);
    uint64_t end =
        c->open == DRYI_NO_ITEM ? c->chain->count : (uint64_t)c->items[c->open].last + 1;
    if (item->last < item->first || item->last >= end)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u: stages %u to %u; %llu is the first not to be in it",
                         at, item->first, item->last, (unsigned long long)end);
    return DRY_OK;
}

static enum dry_status
check_saved(struct check *c, uint32_t at)
{
    const struct dry_plan_item *item = &c->items[at];
    if (item->inner_count)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u saves, and has inner_count %u", at, item->inner_count);
    for (uint32_t i = item->first; item->option && i <= item->last; i++) {
        if (item->option > c->chain->stages[i].option_count)
            return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                             "item %u: option is %u, stage %u has %zu", at, item->option,
                             i, c->chain->stages[i].option_count);
    }
    return DRY_OK;
}

static enum dry_status
check_range(struct check *c, uint32_t at)
{
    const struct dry_plan_item *item = &c->items[at];
    if (item->option)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u: option is %u; ranges have none", at, item->option);
    if (item->inner_count > end_of_open(c) - at - 1)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u: inner_count is %u, %u items follow in its range", at,
                         item->inner_count, end_of_open(c) - at - 1);
    const struct dry_plan_item *outer =
        c->open == DRYI_NO_ITEM ? NULL : &c->items[c->open];
    if (outer && item->first == outer->first && item->last == outer->last)
        return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                         "item %u is the range that it is in over again", at);
    for (uint32_t i = item->first; !outer && i <= item->last; i++) {
        if (c->chain->stages[i].is_fixed)
            return dryi_fail(c->err, DRY_ERR_ARGUMENT,
                             "item %u: stage %u is in a range, and must not run twice",
                             at, i);
    }
    return DRY_OK;
}

/* Count the stages that run again; DRYI_PLAN_RUNS_MAX limits the evaluation's time. */
static enum dry_status
count_runs(struct check *c, uint32_t at)
{
    const struct dry_plan_item *item = &c->items[at];
    if (item->kind == DRY_PLAN_CHECKPOINT)
        c->runs += item->last - item->first + 1u;
    if (c->runs > DRYI_PLAN_RUNS_MAX)
        return dryi_fail(c->err, DRY_ERR_LIMIT,
                         "with item %u more than %llu stages recomputed", at,
                         (unsigned long long)DRYI_PLAN_RUNS_MAX);
    return DRY_OK;
}

static enum dry_status
check_item(struct check *c, uint32_t at)
{
    const struct dry_plan_item *item = &c->items[at];
    enum dry_status status = check_extent(c, at);
    if (status == DRY_OK)
        status = item->kind == DRY_PLAN_SAVE ? check_saved(c, at) : check_range(c, at);
    if (status == DRY_OK)
        status = count_runs(c, at);
    if (status != DRY_OK)
        return status;
    c->links[at] = (struct dryi_plan_link){c->open, c->before, DRYI_NO_ITEM};
    if (item->inner_count) {
        c->open = at;
        c->before = DRYI_NO_ITEM;
        c->expected = item->first;
    } else {
        c->before = at;
        c->expected = item->last + 1;
    }
    return DRY_OK;
}

enum dry_status
dryi_plan_check(const struct dry_chain *chain, const struct dry_plan_item *items,
                uint32_t count, struct dryi_plan_link *links, struct dry_error *err)
{
    struct check c = {.chain = chain,
                      .items = items,
                      .count = count,
                      .links = links,
                      .err = err,
                      .open = DRYI_NO_ITEM,
                      .before = DRYI_NO_ITEM};
    for (uint32_t at = 0; at <= count; at++) {
        enum dry_status status = close_ranges(&c, at);
        if (status == DRY_OK && at < count)
            status = check_item(&c, at);
        if (status != DRY_OK)
            return status;
    }
    if (c.expected != chain->count)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "the items end before stage %u; the chain has %zu stages",
                         c.expected, chain->count);
    return DRY_OK;
}
