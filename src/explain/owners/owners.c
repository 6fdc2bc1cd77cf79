/* SPDX-License-Identifier: Apache-2.0 */

/* Sum up by a 64-bit key: a number of the sites, a size, a step or a category. Names are made once
   per owner, at the end. */
#include "explain/owners/owners.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/categories.h>
#include <drystone/steps.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"

struct dry_owners {
    struct dry_memory memory;
    struct dryi_sites own; /* used unless the caller passed sites */
    const struct dryi_sites *sites;
    struct dry_owner *rows;
    size_t count, capacity;
    char *names;
    size_t name_bytes, name_capacity;
    uint64_t total;
};

const char *
dry_owner_key_name(enum dry_owner_key key)
{
    static const char *const names[DRY_OWNER_KEY_COUNT] = {
        "line", "function", "module", "stack", "category", "size", "step",
    };
    size_t index = (size_t)key;
    return index < DRY_OWNER_KEY_COUNT ? names[index] : "unknown";
}

void
dry_owners_options_init_sized(struct dry_owners_options *options, size_t struct_size)
{
    const struct dry_owners_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- keys --------------------------------------------------------------------------------- */

/* Owners that are no source line: above all 32-bit numbers. */
#define KEY_OF_FREE (UINT64_C(1) << 32)
#define KEY_BACKWARD (UINT64_C(2) << 32) /* an owner that is a line of the forward pass */
#define KEY_BEFORE (UINT64_C(4) << 32)
#define KEY_NO_PYTHON (UINT64_C(5) << 32)
#define KEY_NO_STACK (UINT64_C(6) << 32)

struct sum {
    struct dry_owners *owners;
    const struct dry_timeline_view *view;
    const struct dry_owners_options *options;
    struct dryi_map rows; /* key -> index in the owners' rows */
};

static uint32_t
get_frame(const struct sum *s, uint32_t stack)
{
    const struct dryi_site *site = &s->owners->sites->stacks[stack];
    return s->options->is_inverted ? site->outermost : site->owner;
}

static uint64_t
key_of_place(const struct sum *s, const struct dry_allocation *a)
{
    const struct dryi_sites *sites = s->owners->sites;
    bool is_carried = a->flags & DRY_ALLOCATION_CARRIED_OVER;
    if (a->stack == DRY_NONE)
        return is_carried ? KEY_BEFORE : KEY_NO_STACK;
    uint32_t frame = get_frame(s, a->stack);
    if (frame == DRY_NONE && is_carried)
        return KEY_BEFORE;
    if (frame == DRY_NONE)
        return sites->view->frame_count > 0 ? KEY_NO_PYTHON : KEY_NO_STACK;
    uint64_t key = a->flags & DRY_ALLOCATION_STACK_OF_FREE ? KEY_OF_FREE : 0;
    key |= sites->view->frames[frame].flags & DRY_FRAME_FORWARD ? KEY_BACKWARD : 0;
    const struct dryi_frame_site *site = &sites->frames[frame];
    if (s->options->key == DRY_OWNER_FUNCTION)
        return key | site->function;
    if (s->options->key == DRY_OWNER_MODULE)
        return key | site->path;
    return key | (s->options->key == DRY_OWNER_STACK ? a->stack : site->place);
}

static uint64_t
get_key(const struct sum *s, uint32_t index)
{
    const struct dry_allocation *a = &s->view->allocations[index];
    const struct dry_owners_options *o = s->options;
    if (o->key == DRY_OWNER_CATEGORY)
        return dry_categories_get(o->categories)[index].category;
    if (o->key == DRY_OWNER_SIZE)
        return a->requested;
    if (o->key == DRY_OWNER_STEP)
        return a->begin == 0 ? KEY_BEFORE : dry_steps_find(o->steps, a->begin - 1);
    return key_of_place(s, a);
}

/* --- sums --------------------------------------------------------------------------------- */

static struct dry_owner *
add_row(struct sum *s, uint64_t key)
{
    struct dry_owners *o = s->owners;
    if (!dryi_memory_grow(&o->memory, &o->rows, &o->capacity, o->count + 1,
                          sizeof *o->rows) ||
        !dryi_map_put(&s->rows, key, (uint32_t)o->count))
        return NULL;
    struct dry_owner *row = &o->rows[o->count++];
    *row = (struct dry_owner){.frame = DRY_NONE, .stack = DRY_NONE};
    return row;
}

static enum dry_status
add_allocation(void *self, uint32_t index)
{
    struct sum *s = self;
    const struct dry_allocation *a = &s->view->allocations[index];
    if (a->begin < s->options->born_from)
        return DRY_OK;
    uint64_t key = get_key(s, index);
    const uint32_t *known = dryi_map_find(&s->rows, key);
    struct dry_owner *row = known ? &s->owners->rows[*known] : add_row(s, key);
    if (!row)
        return DRY_ERR_MEMORY;
    if (row->count == 0 || a->size > row->largest) {
        row->largest = a->size;
        row->largest_allocation = index;
    }
    row->count++;
    row->bytes = dryi_add_saturating(row->bytes, a->size);
    row->requested = dryi_add_saturating(row->requested, a->requested);
    s->owners->total = dryi_add_saturating(s->owners->total, a->size);
    return DRY_OK;
}

/* --- names -------------------------------------------------------------------------------- */

static bool
is_place(enum dry_owner_key key)
{
    return key == DRY_OWNER_LINE || key == DRY_OWNER_FUNCTION || key == DRY_OWNER_MODULE;
}

static bool
needs_stack(enum dry_owner_key key)
{
    return is_place(key) || key == DRY_OWNER_STACK;
}

static void
write_frame(const struct dryi_sites *sites, uint32_t frame, enum dry_owner_key key,
            struct dryi_label *label)
{
    if (key == DRY_OWNER_MODULE)
        dryi_sites_write_module(sites, frame, label);
    else if (key == DRY_OWNER_FUNCTION)
        dryi_sites_write_function(sites, frame, label);
    else
        dryi_sites_write_line(sites, frame, label);
}

static void
name_the_nameless(struct dryi_label *label)
{
    if (label->length == 0)
        dryi_label_format(label, "(no name)");
}

static void
write_place(const struct sum *s, const struct dry_owner *row, struct dryi_label *label)
{
    const struct dryi_sites *sites = s->owners->sites;
    if (s->options->key == DRY_OWNER_STACK)
        dryi_sites_write_stack(sites, row->stack, label);
    else
        write_frame(sites, row->frame, s->options->key, label);
    name_the_nameless(label);
    if (row->is_of_free) {
        static const char suffix[] = " (freed there)";
        if (label->length > DRYI_LABEL_BYTES - sizeof suffix)
            label->length = DRYI_LABEL_BYTES - sizeof suffix;
        dryi_label_format(label, "%s", suffix);
    }
}

/* Name an owner that is no place and no step; NULL if it is one. Older blocks whose free has a
   stack go by that place; by step all older blocks are KEY_BEFORE. */
static const char *
name_special(enum dry_owner_key by, uint64_t key)
{
    if (key == KEY_BEFORE)
        return by == DRY_OWNER_STEP ? "(before the recording)" : "(earlier, no stack)";
    if (key == KEY_NO_STACK)
        return "(no stack)";
    return key == KEY_NO_PYTHON ? "(no Python stack)" : NULL;
}

static void
write_name(const struct sum *s, uint64_t key, const struct dry_owner *row,
           struct dryi_label *label)
{
    enum dry_owner_key by = s->options->key;
    if (by == DRY_OWNER_CATEGORY)
        dryi_label_format(label, "%s", dry_category_name((enum dry_category)key));
    else if (by == DRY_OWNER_SIZE)
        dryi_label_format(label, "%" PRIu64 " B", key);
    else if (name_special(by, key))
        dryi_label_format(label, "%s", name_special(by, key));
    else if (by != DRY_OWNER_STEP)
        write_place(s, row, label);
    else if (key == DRY_NONE)
        dryi_label_format(label, "(in no step)");
    else
        dryi_label_format(label, "step %" PRIu64, key);
}

/* Set the owner's stack and frame from its largest allocation. */
static void
set_origin(const struct sum *s, uint64_t key, struct dry_owner *row)
{
    const struct dry_allocation *a = &s->view->allocations[row->largest_allocation];
    row->stack = a->stack;
    row->what = "";
    if (a->stack == DRY_NONE)
        return;
    bool is_of_free = a->flags & DRY_ALLOCATION_STACK_OF_FREE;
    row->is_of_free = is_of_free && needs_stack(s->options->key) && key < KEY_BEFORE;
    const struct dryi_site *site = &s->owners->sites->stacks[a->stack];
    if (is_place(s->options->key) && key < KEY_BEFORE)
        row->frame = get_frame(s, a->stack);
    if (!is_of_free)
        row->what = dryi_sites_what(s->owners->sites, site->what, &row->what_length);
}

/* Write an owner's name into `names`. The array may move, so names are stored as offsets
   until all are written. */
static bool
name_row(struct sum *s, uint64_t key, struct dry_owner *row, size_t *offset)
{
    struct dry_owners *o = s->owners;
    struct dryi_label label;
    dryi_label_init(&label);
    set_origin(s, key, row);
    write_name(s, key, row, &label);
    if (!dryi_memory_grow(&o->memory, &o->names, &o->name_capacity,
                          o->name_bytes + label.length + 1, 1))
        return false;
    memcpy(o->names + o->name_bytes, label.bytes, label.length + 1);
    *offset = o->name_bytes;
    row->name_length = label.length;
    o->name_bytes += label.length + 1;
    return true;
}

static bool
name_rows(struct sum *s)
{
    struct dry_owners *o = s->owners;
    if (o->count == 0)
        return true;
    size_t *offsets = dryi_memory_zalloc(&o->memory, o->count, sizeof *offsets);
    bool done = offsets != NULL;
    const struct dryi_map_slot *slot;
    for (size_t at = 0; done && (slot = dryi_map_next(&s->rows, &at));)
        done = name_row(s, slot->key, &o->rows[slot->value], &offsets[slot->value]);
    for (size_t i = 0; done && i < o->count; i++)
        o->rows[i].name = o->names + offsets[i];
    dryi_memory_free(&o->memory, offsets, o->count, sizeof *offsets);
    return done;
}

static int
compare_rows(const void *a, const void *b)
{
    const struct dry_owner *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    size_t length = x->name_length < y->name_length ? x->name_length : y->name_length;
    int order = memcmp(x->name, y->name, length);
    if (order != 0)
        return order;
    if (x->name_length != y->name_length)
        return x->name_length < y->name_length ? -1 : 1;
    return (x->largest_allocation > y->largest_allocation) -
           (x->largest_allocation < y->largest_allocation);
}

/* --- creation ----------------------------------------------------------------------------- */

static enum dry_status
check_options(const struct dry_timeline_view *view, const struct dry_owners_options *o,
              struct dry_error *err)
{
    if ((unsigned)o->key >= DRY_OWNER_KEY_COUNT)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "there is no owner key %u",
                         (unsigned)o->key);
    if (o->moment > view->dump_moment)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "moment %u is beyond the last one, %u",
                         (unsigned)o->moment, (unsigned)view->dump_moment);
    if (o->key == DRY_OWNER_STEP && !o->steps)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "owners by step need the steps");
    if (o->key == DRY_OWNER_CATEGORY && !o->categories)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "owners by category need the categories");
    return DRY_OK;
}

static enum dry_status
sum_up(struct sum *s, const struct dry_timeline *timeline, struct dry_error *err)
{
    struct dry_owners *o = s->owners;
    dryi_map_init(&s->rows, &o->memory);
    enum dry_status status =
        dry_timeline_visit_alive(timeline, s->options->moment, add_allocation, s);
    if (status == DRY_OK && !name_rows(s))
        status = DRY_ERR_MEMORY;
    dryi_map_finish(&s->rows);
    if (status != DRY_OK)
        return dryi_fail_memory(err, "the owners");
    if (o->count > 1)
        qsort(o->rows, o->count, sizeof *o->rows, compare_rows);
    return DRY_OK;
}

static enum dry_status
create(const struct dry_timeline *timeline, const struct dry_owners_options *options,
       const struct dryi_sites *sites, struct dry_owners **owners, struct dry_error *err)
{
    const struct dry_timeline_view *view = dry_timeline_get_view(timeline);
    enum dry_status status = check_options(view, options, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(options->memory);
    struct dry_owners *o = dryi_memory_zalloc(&memory, 1, sizeof *o);
    if (!o)
        return dryi_fail_memory(err, "the owners");
    o->memory = memory;
    o->sites = sites ? sites : &o->own;
    if (!sites)
        status = dryi_sites_init(&o->own, view->trace, &memory, err);
    struct sum s = {.owners = o, .view = view, .options = options};
    if (status == DRY_OK)
        status = sum_up(&s, timeline, err);
    if (status == DRY_OK)
        *owners = o;
    else
        dry_owners_destroy(o);
    return status;
}

enum dry_status
dryi_owners_create(const struct dry_timeline *timeline,
                   const struct dry_owners_options *options,
                   const struct dryi_sites *sites, struct dry_owners **owners,
                   struct dry_error *err)
{
    return create(timeline, options, sites, owners, err);
}

enum dry_status
dry_owners_create(const struct dry_timeline *timeline,
                  const struct dry_owners_options *options, struct dry_owners **owners,
                  struct dry_error *err)
{
    struct dry_owners_options o;
    dry_owners_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    return status == DRY_OK ? create(timeline, &o, NULL, owners, err) : status;
}

void
dry_owners_destroy(struct dry_owners *owners)
{
    if (!owners)
        return;
    struct dry_memory memory = owners->memory;
    dryi_memory_free(&memory, owners->rows, owners->capacity, sizeof *owners->rows);
    dryi_memory_free(&memory, owners->names, owners->name_capacity, 1);
    dryi_sites_finish(&owners->own);
    dryi_memory_free(&memory, owners, 1, sizeof *owners);
}

const struct dry_owner *
dry_owners_get(const struct dry_owners *owners, size_t *count)
{
    *count = owners->count;
    return owners->rows;
}

uint64_t
dry_owners_total(const struct dry_owners *owners)
{
    return owners->total;
}

uint32_t
dry_owners_find_frame(const struct dry_owners *owners, uint32_t stack)
{
    return stack == DRY_NONE ? DRY_NONE : owners->sites->stacks[stack].owner;
}

enum dry_frame_kind
dry_owners_frame_kind(const struct dry_owners *owners, uint32_t frame)
{
    switch ((enum dryi_code)owners->sites->frames[frame].code) {
    case DRYI_CODE_USER:
        return DRY_FRAME_USER;
    case DRYI_CODE_PACKAGE:
        return DRY_FRAME_PACKAGE;
    case DRYI_CODE_GENERATED:
        return DRY_FRAME_GENERATED;
    case DRYI_CODE_TORCH:
        return DRY_FRAME_TORCH;
    case DRYI_CODE_LIBRARY:
        return DRY_FRAME_LIBRARY;
    case DRYI_CODE_MACHINERY:
    case DRYI_CODE_OPERATION:
    case DRYI_CODE_NATIVE:
    case DRYI_CODE_AUTOGRAD:
        break;
    }
    return DRY_FRAME_NATIVE;
}

size_t
dry_owners_write_line(const struct dry_owners *owners, uint32_t stack, char *text,
                      size_t capacity)
{
    return dryi_sites_name_stack(owners->sites, stack, text, capacity);
}

size_t
dry_owners_write_frame(const struct dry_owners *owners, uint32_t frame,
                       enum dry_owner_key key, char *text, size_t capacity)
{
    struct dryi_label label;
    dryi_label_init(&label);
    write_frame(owners->sites, frame, key, &label);
    name_the_nameless(&label);
    size_t length = label.length < capacity ? label.length : capacity - 1;
    memcpy(text, label.bytes, length);
    text[length] = '\0';
    return length;
}
