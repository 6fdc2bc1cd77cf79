/* SPDX-License-Identifier: Apache-2.0 */

/* Validation of the pinned cache's options, and their text form. */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/option_text.h"
#include "base/sized.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_options.h"

#define THRESHOLD_MAX DRYI_GIB
#define BLOCK_MAX (8 * DRYI_GIB)
#define BLOCK_COUNT_MAX 4096
#define BATCH_MAX 4096
#define PAGE_MAX DRYI_GIB
#define BYTES_MAX (UINT64_C(1) << 46)
#define NODE_MAX 1023
#define DEVICE_MAX 1023

void
dry_pinned_options_init_sized(struct dry_pinned_options *options, size_t struct_size)
{
    const struct dry_pinned_options defaults = {
        .node = DRY_PINNED_ANY_NODE,
        .threshold_bytes = DRYI_MIB,
        .cached_max_bytes = UINT64_MAX,
        .keep_max_bytes = UINT64_MAX,
        .thread_caches = true,
        .event_batch = 1,
        .block_bytes = DRYI_GIB,
        .block_count = 8,
        .page_kind = DRY_PAGES_TRANSPARENT,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- validation ----------------------------------------------------------------------------- */

static const char *
find_wrong(const struct dry_pinned_options *o)
{
    if ((unsigned)o->mode > DRY_PINNED_BUDDY)
        return "mode: fit or buddy is expected";
    if ((unsigned)o->backend > DRY_PINNED_LOCK)
        return "backend: auto, cuda or lock is expected";
    if (o->node < DRY_PINNED_NO_NODE || o->node > NODE_MAX)
        return "node: -2 to 1023 are expected";
    if (o->device < 0 || o->device > DEVICE_MAX)
        return "device: 0 to 1023 are expected";
    if (o->arena_bytes && (o->arena_bytes < DRYI_PINNED_SQUARE ||
                           o->arena_bytes > DRYI_GIB || o->arena_bytes % 4096))
        return "arena_bytes: 0, or 2 MiB to 1 GiB in steps of 4 KiB are expected";
    if (o->threshold_bytes > THRESHOLD_MAX)
        return "threshold_bytes: at most 1 GiB is expected";
    if (o->warm_bytes > BYTES_MAX)
        return "warm_bytes: at most 64 TiB are expected";
    if (o->event_batch < 1 || o->event_batch > BATCH_MAX)
        return "event_batch: 1 to 4096 are expected";
    if (!dryi_is_power_of_two(o->block_bytes) || o->block_bytes < DRYI_PINNED_SQUARE ||
        o->block_bytes > BLOCK_MAX)
        return "block_bytes: a power of two of 2 MiB to 8 GiB is expected";
    if (o->block_count > BLOCK_COUNT_MAX)
        return "block_count: at most 4096 are expected";
    if ((unsigned)o->page_kind > DRY_PAGES_POOL)
        return "pages: base, transparent or pool is expected";
    if ((unsigned)o->page_policy > DRY_PAGES_ANY)
        return "page_policy: prefer, strict or any is expected";
    if (o->page_bytes > PAGE_MAX || (o->page_bytes & (o->page_bytes - 1)))
        return "page_bytes: 0, or a power of two up to 1 GiB is expected";
    return NULL;
}

enum dry_status
dryi_pinned_options_take(const struct dry_pinned_options *from,
                         struct dry_pinned_options *options, struct dry_error *err)
{
    dry_pinned_options_init(options);
    DRYI_ASSERT_SLOW(!find_wrong(options));
    enum dry_status status = dryi_sized_take(options, sizeof *options, from, err);
    if (status != DRY_OK)
        return status;
    const char *wrong = find_wrong(options);
    return wrong ? dryi_fail(err, DRY_ERR_ARGUMENT, "%s", wrong) : DRY_OK;
}

/* --- text ----------------------------------------------------------------------------------- */

/* Read a word as its index in a NULL-terminated list. */
static bool
read_choice(struct dryi_option_word word, const char *const *choices, uint32_t *value)
{
    for (uint32_t i = 0; choices[i]; i++) {
        if (dryi_option_is(word, choices[i])) {
            *value = i;
            return true;
        }
    }
    return false;
}

enum kind { KIND_BYTES, KIND_COUNT, KIND_INDEX, KIND_SWITCH, KIND_NOTHING };

#define FIELD(member) offsetof(struct dry_pinned_options, member)

static const struct name {
    const char *text;
    enum kind kind;
    bool is_buddy; /* the option implies mode:buddy */
    uint64_t unit, most;
    size_t offset;
} names[] = {
    {"BUDDY_BLOCK_COUNT", KIND_COUNT, true, 1, BLOCK_COUNT_MAX, FIELD(block_count)},
    {"BUDDY_BLOCK_SIZE_MB", KIND_BYTES, true, DRYI_MIB, BLOCK_MAX, FIELD(block_bytes)},
    {"BUDDY_THRESHOLD_MB", KIND_BYTES, true, DRYI_MIB, THRESHOLD_MAX,
     FIELD(threshold_bytes)},
    {"arena_mb", KIND_BYTES, false, DRYI_MIB, DRYI_GIB, FIELD(arena_bytes)},
    {"block_count", KIND_COUNT, false, 1, BLOCK_COUNT_MAX, FIELD(block_count)},
    {"block_mb", KIND_BYTES, false, DRYI_MIB, BLOCK_MAX, FIELD(block_bytes)},
    {"budget_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX, FIELD(budget_bytes)},
    {"cached_max_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX, FIELD(cached_max_bytes)},
    {"device", KIND_INDEX, false, 1, DEVICE_MAX, FIELD(device)},
    {"event_batch", KIND_COUNT, false, 1, BATCH_MAX, FIELD(event_batch)},
    {"in_background", KIND_SWITCH, false, 1, 1, FIELD(in_background)},
    {"keep_max_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX, FIELD(keep_max_bytes)},
    {"node", KIND_INDEX, false, 1, NODE_MAX, FIELD(node)},
    {"page_mb", KIND_BYTES, false, DRYI_MIB, PAGE_MAX, FIELD(page_bytes)},
    {"pinned_max_cached_size_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX,
     FIELD(keep_max_bytes)},
    {"pinned_max_register_threads", KIND_NOTHING, false, 1, UINT32_MAX, 0},
    {"pinned_max_round_threshold_mb", KIND_NOTHING, false, 1, UINT32_MAX, 0},
    {"pinned_num_register_threads", KIND_NOTHING, false, 1, UINT32_MAX, 0},
    {"pinned_reserve_segment_size_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX,
     FIELD(warm_bytes)},
    {"pinned_use_background_threads", KIND_SWITCH, false, 1, 1, FIELD(in_background)},
    {"thread_caches", KIND_SWITCH, false, 1, 1, FIELD(thread_caches)},
    {"threshold_kb", KIND_BYTES, false, DRYI_KIB, THRESHOLD_MAX, FIELD(threshold_bytes)},
    {"warm_mb", KIND_BYTES, false, DRYI_MIB, BYTES_MAX, FIELD(warm_bytes)},
};

static bool
set_field(struct dry_pinned_options *o, const struct name *n,
          struct dryi_option_word value)
{
    DRYI_ASSERT_SLOW(n->kind == KIND_BYTES || n->most <= UINT32_MAX);
    uint64_t number;
    bool on;
    char *at = (char *)o + n->offset;
    if (n->kind == KIND_SWITCH) {
        if (!dryi_option_read_switch(value, &on))
            return false;
        memcpy(at, &on, sizeof on);
        return true;
    }
    if (!dryi_option_read_number(value, n->unit, n->most, &number))
        return false;
    uint32_t count = (uint32_t)number;
    if (n->kind == KIND_BYTES)
        memcpy(at, &number, sizeof number);
    else if (n->kind == KIND_COUNT || n->kind == KIND_INDEX)
        memcpy(at, &count, sizeof count);
    if (n->is_buddy)
        o->mode = DRY_PINNED_BUDDY;
    return true;
}

/* Set an option whose value is a word. *known: the name is such an option. */
static bool
set_word(struct dry_pinned_options *o, struct dryi_option_word name,
         struct dryi_option_word value, bool *known)
{
    static const char *const modes[] = {"fit", "buddy", NULL};
    static const char *const backends[] = {"auto", "cuda", "lock", NULL};
    static const char *const pages[] = {"base", "transparent", "pool", NULL};
    static const char *const policies[] = {"prefer", "strict", "any", NULL};
    uint32_t choice;
    bool on;
    *known = true;
    if (dryi_option_is(name, "mode")) {
        if (!read_choice(value, modes, &choice))
            return false;
        o->mode = (enum dry_pinned_mode)choice;
        return true;
    }
    if (dryi_option_is(name, "backend")) {
        if (!read_choice(value, backends, &choice))
            return false;
        o->backend = (enum dry_pinned_backend)choice;
        return true;
    }
    if (dryi_option_is(name, "pages")) {
        if (!read_choice(value, pages, &choice))
            return false;
        o->page_kind = (enum dry_pages_kind)choice;
        return true;
    }
    if (dryi_option_is(name, "page_policy")) {
        if (!read_choice(value, policies, &choice))
            return false;
        o->page_policy = (enum dry_pages_policy)choice;
        return true;
    }
    if (dryi_option_is(name, "pinned_use_cuda_host_register"))
        return dryi_option_read_switch(value, &on);
    *known = false;
    return false;
}

static bool
set_option(struct dry_pinned_options *o, struct dryi_option_word name,
           struct dryi_option_word value, bool *known)
{
    bool is_set = set_word(o, name, value, known);
    if (*known)
        return is_set;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!dryi_option_is(name, names[i].text))
            continue;
        *known = true;
        return set_field(o, &names[i], value) && find_wrong(o) == NULL;
    }
    return false;
}

static enum dryi_option_answer
take_option(void *self, struct dryi_option_word name, struct dryi_option_word value)
{
    bool known = false;
    if (set_option(self, name, value, &known))
        return DRYI_OPTION_TAKEN;
    return known ? DRYI_OPTION_REFUSED : DRYI_OPTION_UNKNOWN;
}

enum dry_status
dry_pinned_options_parse(struct dry_pinned_options *options, const char *text,
                         struct dry_error *err)
{
    struct dry_pinned_options o;
    dry_pinned_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    const struct dryi_option_reader reader = {.take = take_option,
                                              .self = &o,
                                              .refused = "not a value it can have",
                                              .unknown = "not one of the pinned cache"};
    status = dryi_option_text_read(text, strlen(text), &reader, err);
    if (status != DRY_OK)
        return status;
    return dryi_sized_give(options, &o, sizeof o);
}
