/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree of items becomes a flat list in the same order, walked with an explicit stack.
 * Every item must begin where the previous one ended, within its range. So a file cannot
 * produce more items than it contains stages, ranges and option runs, and each range
 * costs one visit per stage in it.
 */
#include "plan/plan_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/json_in.h"
#include "plan/chain_keep.h"

static const char *const file_keys[] = {
    "schema",         "file",      "format",
    "feasible",       "algorithm", "class",
    "budget_bytes",   "items",     "predicted",
    "lower_bound_ns", "gap",       "min_feasible_budget",
    "slots",          "window",    "table_bytes",
    "rounding",       "timeline",  "compare",
    "curve",          "judged",    "input_hash",
    "plan_hash",      NULL};
static const char *const item_keys[] = {"save", "ckpt",   "inner", "opt",
                                        "id",   "policy", NULL};

/* A list of items being walked. */
struct level {
    struct json_at list;
    struct json_at holder; /* the item that contains the list as "inner" */
    size_t index;          /* index of the next item */
    size_t parent;         /* index of the containing range; SIZE_MAX: the whole chain */
    uint32_t next, last;   /* stages: the next one to cover, and the last of the range */
};

struct reader {
    struct json_in in;
    const struct chain_file *input;
    struct plan_file *file;
    struct level *levels;
    size_t depth;
};

/* --- items -------------------------------------------------------------------------------- */

static struct dry_plan_item *
append(struct reader *r, uint32_t kind, uint32_t first, uint32_t last)
{
    struct plan_file *f = r->file;
    struct dry_plan_item *grown =
        grow(f->items, f->count, &f->capacity, sizeof *f->items);
    if (!grown) {
        r->in.status = fail_memory(r->in.err, "no memory for a plan");
        return NULL;
    }
    f->items = grown;
    struct dry_plan_item *item = &f->items[f->count++];
    *item = (struct dry_plan_item){.kind = kind, .first = first, .last = last};
    return item;
}

/* Read [first, last] and check that the range continues the previous item and stays in
   its parent. */
static bool
read_range(struct reader *r, const struct json_at *at, struct level *level,
           uint32_t range[2])
{
    struct json_at first = json_in_element(at, 0), last = json_in_element(at, 1);
    if (json_in_list(&r->in, at) != 2) {
        json_in_fail(&r->in, at, "a pair [first stage, last stage] is expected");
        return false;
    }
    uint64_t from = json_in_unsigned(&r->in, first);
    uint64_t to = json_in_unsigned(&r->in, last);
    if (level->next > level->last)
        json_in_fail(&r->in, at, "stage %u was the last, no more can be covered",
                     level->last);
    else if (from != level->next)
        json_in_fail(&r->in, &first, "stage %u is the next, not %llu", level->next,
                     (unsigned long long)from);
    else if (to < from || to > level->last)
        json_in_fail(&r->in, &last, "expected a stage from %u to %u", level->next,
                     level->last);
    if (r->in.status != DRY_OK)
        return false;
    range[0] = (uint32_t)from;
    range[1] = (uint32_t)to;
    level->next = range[1] + 1;
    return true;
}

/* Return the option's number, counted from 1; 0: the stage has no such option. */
static uint32_t
find_option(const struct dry_stage *stage, const char *id)
{
    for (size_t i = 0; i < stage->option_count; i++) {
        if (stage->options[i].name && strcmp(stage->options[i].name, id) == 0)
            return (uint32_t)i + 1;
    }
    return 0;
}

/* Refuse a plan whose option keeps other operations than the chain's: its cost would be
   computed for a different plan. */
static void
check_policy(struct reader *r, const struct json_at *policy, const json_t *kept)
{
    if (policy->value && kept && !json_equal(policy->value, kept))
        json_in_fail(&r->in, policy, "not the operations that this option keeps");
}

/* Read an option. Neighbouring stages whose option has this name at the same index become
   one item. */
static void
read_option(struct reader *r, const struct json_at *item, const uint32_t range[2])
{
    struct json_at id = json_in_key(item, "id"), policy = json_in_key(item, "policy");
    struct dry_plan_item *made = NULL;
    const json_t *kept = NULL, *before;
    const char *name = json_in_text(&r->in, id, NULL);
    if (!name) {
        json_in_fail(&r->in, &id, "the option's name is missing");
        return;
    }
    chain_policy_check(&r->in, &policy);
    for (uint32_t i = range[0]; i <= range[1] && r->in.status == DRY_OK; i++) {
        uint32_t option = find_option(dry_chain_get_stage(r->input->chain, i), name);
        if (!option) {
            json_in_fail(&r->in, &id, "stage %u has no option of this name", i);
            return;
        }
        before = kept;
        kept = chain_find_policy(r->input, i, option);
        if (kept != before)
            check_policy(r, &policy, kept);
        if (made && made->option == option) {
            made->last = i;
        } else {
            made = append(r, DRY_PLAN_SAVE, i, i);
            if (made)
                made->option = option;
        }
    }
}

/* --- the walk ----------------------------------------------------------------------------- */

static void
open_range(struct reader *r, const struct json_at *item, const uint32_t range[2])
{
    struct json_at inner = json_in_key(item, "inner");
    size_t parent = r->file->count;
    if (!append(r, DRY_PLAN_CHECKPOINT, range[0], range[1]) || !inner.value)
        return;
    if (json_in_list(&r->in, &inner) == 0 && r->in.status == DRY_OK)
        json_in_fail(&r->in, &inner, "nothing is in it; without it, all is kept");
    if (r->depth == PLAN_DEPTH_MAX)
        json_in_fail(&r->in, &inner, "ranges in ranges deeper than %d", PLAN_DEPTH_MAX);
    if (r->in.status != DRY_OK)
        return;
    struct level *level = &r->levels[r->depth++];
    *level = (struct level){
        .holder = *item, .parent = parent, .next = range[0], .last = range[1]};
    level->list = json_in_key(&level->holder, "inner");
}

static void
close_range(struct reader *r)
{
    const struct level *level = &r->levels[--r->depth];
    struct plan_file *f = r->file;
    if (level->next <= level->last)
        json_in_fail(&r->in, &level->list, "stage %u is not covered", level->next);
    else if (level->parent != SIZE_MAX)
        f->items[level->parent].inner_count = (uint32_t)(f->count - level->parent - 1);
}

static void
read_item(struct reader *r, struct level *level)
{
    struct json_at item = json_in_element(&level->list, level->index++);
    struct json_at save = json_in_key(&item, "save"), option = json_in_key(&item, "opt");
    struct json_at range = json_in_key(&item, "ckpt");
    uint32_t stages[2];
    if (!json_in_object(&r->in, &item, item_keys))
        return;
    if (!!save.value + !!option.value + !!range.value != 1) {
        json_in_fail(&r->in, &item, "one of save, ckpt and opt is expected");
        return;
    }
    if (!range.value && json_object_get(item.value, "inner"))
        json_in_fail(&r->in, &item, "only a ckpt has an inner");
    if (!option.value && json_object_get(item.value, "id"))
        json_in_fail(&r->in, &item, "only an opt has an id");
    if (!option.value && json_object_get(item.value, "policy"))
        json_in_fail(&r->in, &item, "only an opt has a policy");
    const struct json_at *which = save.value ? &save : option.value ? &option : &range;
    if (r->in.status != DRY_OK || !read_range(r, which, level, stages))
        return;
    if (save.value)
        append(r, DRY_PLAN_SAVE, stages[0], stages[1]);
    else if (option.value)
        read_option(r, &item, stages);
    else
        open_range(r, &item, stages);
}

static void
walk_items(struct reader *r)
{
    while (r->depth > 0 && r->in.status == DRY_OK) {
        struct level *level = &r->levels[r->depth - 1];
        if (level->index < json_in_list(&r->in, &level->list))
            read_item(r, level);
        else
            close_range(r);
    }
}

static void
read_items(struct reader *r, const struct json_at *root)
{
    size_t count = dry_chain_get_count(r->input->chain);
    struct level *levels = calloc(PLAN_DEPTH_MAX, sizeof *levels);
    if (!levels) {
        r->in.status = fail_memory(r->in.err, "no memory for a plan");
        return;
    }
    levels[0] = (struct level){.list = json_in_key(root, "items"),
                               .parent = SIZE_MAX,
                               .last = (uint32_t)count - 1};
    r->levels = levels;
    r->depth = 1;
    walk_items(r);
    free(levels);
}

/* --- the file ----------------------------------------------------------------------------- */

/* Read a hash of 16 hex digits. */
static bool
read_hash(struct reader *r, const struct json_at *root, const char *key, uint64_t *hash)
{
    struct json_at at = json_in_key(root, key);
    const char *text = json_in_text(&r->in, at, NULL);
    if (!text)
        return false;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        json_in_fail(&r->in, &at, "16 hex digits are expected");
    *hash = strtoull(text, NULL, 16);
    return r->in.status == DRY_OK;
}

static void
read_plan(struct reader *r, const struct json_at *root)
{
    struct json_at format = json_in_key(root, "format");
    struct json_at items = json_in_key(root, "items");
    if (!json_is_object(root->value))
        json_in_fail(&r->in, root, "an object is expected");
    const char *found = json_in_text(&r->in, format, NULL);
    if (!found || strcmp(found, "ckpt-plan/1") != 0)
        json_in_fail(&r->in, &format, "expected \"ckpt-plan/1\", found %s%.40s%s",
                     found ? "\"" : "", found ? found : "nothing", found ? "\"" : "");
    if (!json_in_object(&r->in, root, file_keys))
        return;
    if (!json_is_array(items.value))
        json_in_fail(&r->in, &items, "a list of items is expected");
    struct plan_file *f = r->file;
    f->has_input_hash = read_hash(r, root, "input_hash", &f->input_hash);
    f->has_plan_hash = read_hash(r, root, "plan_hash", &f->plan_hash);
    if (r->in.status == DRY_OK)
        read_items(r, root);
}

enum dry_status
plan_file_read(const char *text, size_t length, const struct chain_file *input,
               struct plan_file *file, struct dry_error *err)
{
    struct plan_file made = {0};
    struct reader r = {.in = {.err = err}, .input = input, .file = &made};
    json_t *tree;
    enum dry_status status = json_in_parse(text, length, &tree, err);
    if (status != DRY_OK)
        return status;
    const struct json_at root = {.value = tree};
    read_plan(&r, &root);
    json_decref(tree);
    if (r.in.status == DRY_OK)
        *file = made;
    else
        plan_file_finish(&made);
    return r.in.status;
}

void
plan_file_finish(struct plan_file *file)
{
    free(file->items);
    *file = (struct plan_file){0};
}
