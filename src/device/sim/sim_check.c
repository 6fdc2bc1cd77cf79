/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker: the last owner of each byte, and whether its work is done.
 *
 * Every allocation is a life. Its range stays in `owned` until other lives take over the
 * bytes. A new life records as `formers` the previous lives of its bytes, unless their
 * uses are known to be done. The first use on each stream is checked against the formers.
 *
 * When a used life is disowned its formers are dropped: the next life must come after its
 * uses, which came after the formers' uses (or were findings). An unused life passes its
 * formers on, byte for byte. So a former is always a used, disowned life without formers
 * of its own, and dropping a former needs no recursion.
 */
#include "device/sim/sim_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"

static const char *const fault_names[DRY_SIM_FAULT_COUNT] = {
    [DRY_SIM_EARLY_REUSE] = "early reuse",
    [DRY_SIM_USE_UNMAPPED] = "use of unmapped memory",
    [DRY_SIM_USE_AFTER_FREE] = "use after free",
    [DRY_SIM_USE_BEYOND] = "use beyond what is owned",
    [DRY_SIM_OVERLAP] = "handed out while another owns it",
    [DRY_SIM_EARLY_UNMAP] = "early unmap",
    [DRY_SIM_EARLY_FREE] = "early free to the device",
    [DRY_SIM_PAGE_MAPPED_TWICE] = "page mapped twice",
    [DRY_SIM_PAGE_MAPPED_AT_END] = "page released while mapped",
    [DRY_SIM_PAGE_UNKNOWN] = "page that is not there",
    [DRY_SIM_MAP_OVER_MAPPED] = "map over mapped",
    [DRY_SIM_MAP_UNRESERVED] = "map outside a reservation",
    [DRY_SIM_UNMAP_UNMAPPED] = "unmap of unmapped",
    [DRY_SIM_FREE_UNKNOWN] = "free of what is not a range",
    [DRY_SIM_UNRESERVE_MAPPED] = "unreserve of mapped addresses",
};

const char *
dry_sim_fault_name(enum dry_sim_fault fault)
{
    return (unsigned)fault < DRY_SIM_FAULT_COUNT ? fault_names[fault] : "unknown fault";
}

enum dry_status
dryi_sim_check_create(struct dry_sim *sim, struct dry_error *err)
{
    struct dryi_sim_check *check = dryi_memory_zalloc(&sim->memory, 1, sizeof *check);
    if (!check)
        return dryi_fail_memory(err, "a checker of a simulated device");
    dryi_sim_ranges_init(&check->owned, &sim->memory);
    dryi_sim_ranges_init(&check->reserved, &sim->memory);
    dryi_sim_ranges_init(&check->mapped, &sim->memory);
    dryi_map_init(&check->owners, &sim->memory);
    dryi_map_init(&check->page_slots, &sim->memory);
    dryi_map_init(&check->page_places, &sim->memory);
    check->free_life = DRYI_SIM_NO_LIFE;
    check->free_page = DRYI_SIM_NO_PAGE;
    sim->check = check;
    return DRY_OK;
}

static void
finish_life(const struct dry_memory *memory, struct dryi_sim_life *life)
{
    dryi_memory_free(memory, life->uses, life->use_capacity, sizeof *life->uses);
    dryi_memory_free(memory, life->formers, life->former_capacity, sizeof *life->formers);
}

void
dryi_sim_check_destroy(struct dry_sim *sim)
{
    struct dryi_sim_check *check = sim->check;
    if (!check)
        return;
    for (size_t i = 0; i < check->life_count; i++)
        finish_life(&sim->memory, &check->lives[i]);
    dryi_memory_free(&sim->memory, check->lives, check->life_capacity,
                     sizeof *check->lives);
    dryi_map_finish(&check->owners);
    dryi_sim_ranges_finish(&check->owned);
    dryi_sim_memory_finish(check);
    dryi_memory_free(&sim->memory, check, 1, sizeof *check);
    sim->check = NULL;
}

/* Write one line: the fault, the range, the owner, and the earlier owner. */
static void
write_text(struct dry_sim_finding *f)
{
    const char *name = dry_sim_fault_name(f->fault);
    if (f->owner == 0)
        snprintf(f->text, sizeof f->text, "%s: 0x%" PRIx64 ", %" PRIu64 " bytes", name,
                 f->address, f->size);
    else if (f->other_owner == 0)
        snprintf(f->text, sizeof f->text,
                 "%s: 0x%" PRIx64 ", %" PRIu64 " bytes, owner %" PRIu64
                 ", stream %" PRIu64,
                 name, f->address, f->size, f->owner, f->stream);
    else
        snprintf(f->text, sizeof f->text,
                 "%s: 0x%" PRIx64 ", %" PRIu64 " bytes, owner %" PRIu64
                 ", stream %" PRIu64 "; before: owner %" PRIu64 ", stream %" PRIu64,
                 name, f->address, f->size, f->owner, f->stream, f->other_owner,
                 f->other_stream);
}

void
dryi_sim_find(struct dry_sim *sim, struct dry_sim_finding finding)
{
    struct dryi_sim_check *check = sim->check;
    finding.call = check->calls;
    write_text(&finding);
    if (check->finding_count < DRY_SIM_FINDINGS_KEPT)
        check->findings[check->finding_count] = finding;
    check->finding_count++;
}

uint64_t
dry_sim_get_finding_count(const struct dry_sim *sim)
{
    return sim->check ? sim->check->finding_count : 0;
}

enum dry_status
dry_sim_get_finding(const struct dry_sim *sim, uint64_t index,
                    struct dry_sim_finding *finding)
{
    if (index >= DRY_SIM_FINDINGS_KEPT || index >= dry_sim_get_finding_count(sim))
        return DRY_END;
    return dryi_sized_give(finding, &sim->check->findings[index], sizeof *finding);
}

/* Return a use that the program does not know to be done; NULL: there is none. */
static const struct dryi_sim_life_use *
find_open_use(const struct dry_sim *sim, const struct dryi_sim_life *life)
{
    for (size_t i = 0; i < life->use_count; i++) {
        const struct dryi_sim_life_use *use = &life->uses[i];
        if (use->tick > sim->streams[use->stream].known)
            return use;
    }
    return NULL;
}

static void
recycle(struct dryi_sim_check *check, uint32_t index)
{
    struct dryi_sim_life *life = &check->lives[index];
    life->owner = 0;
    life->use_count = 0;
    life->next_free = check->free_life;
    check->free_life = index;
}

/* Drop a reference to a former, which has no formers itself. */
static void
drop_former(struct dryi_sim_check *check, uint32_t index)
{
    struct dryi_sim_life *life = &check->lives[index];
    DRYI_ASSERT(life->references > 0);
    if (--life->references == 0) {
        DRYI_ASSERT(life->former_count == 0);
        recycle(check, index);
    }
}

static void
drop_formers(struct dryi_sim_check *check, struct dryi_sim_life *life)
{
    for (size_t i = 0; i < life->former_count; i++)
        drop_former(check, life->formers[i].life);
    life->former_count = 0;
}

static void
add_references(struct dryi_sim_check *check, uint32_t index, int change)
{
    struct dryi_sim_life *life = &check->lives[index];
    life->references = (uint32_t)((int64_t)life->references + change);
    if (life->references == 0) {
        drop_formers(check, life);
        recycle(check, index);
    }
}

static bool
take_life(struct dry_sim *sim, uint32_t *index)
{
    struct dryi_sim_check *check = sim->check;
    if (check->free_life != DRYI_SIM_NO_LIFE) {
        *index = check->free_life;
        return true;
    }
    if (check->life_count == DRYI_SIM_NO_LIFE ||
        !dryi_memory_grow(&sim->memory, &check->lives, &check->life_capacity,
                          check->life_count + 1, sizeof *check->lives))
        return false;
    *index = (uint32_t)check->life_count++;
    check->lives[*index] = (struct dryi_sim_life){.next_free = DRYI_SIM_NO_LIFE};
    check->free_life = *index;
    return true;
}

/* Return an upper bound on the formers of a life of [begin, end). */
static size_t
count_formers(const struct dryi_sim_check *check, uint64_t begin, uint64_t end)
{
    const struct dryi_sim_ranges *owned = &check->owned;
    size_t count = 0;
    uint32_t node = dryi_sim_ranges_find(owned, begin);
    for (; node && owned->nodes[node].begin < end;
         node = dryi_sim_ranges_next(owned, node)) {
        const struct dryi_sim_life *life = &check->lives[owned->nodes[node].value];
        count += life->is_used ? 1 : life->former_count;
    }
    return count;
}

static bool
reserve_life(struct dry_sim *sim, uint64_t begin, uint64_t end, uint32_t *index)
{
    struct dryi_sim_check *check = sim->check;
    if (!take_life(sim, index) || !dryi_sim_ranges_reserve(&check->owned, 3))
        return false;
    struct dryi_sim_life *life = &check->lives[*index];
    return dryi_memory_grow(&sim->memory, &life->formers, &life->former_capacity,
                            count_formers(check, begin, end), sizeof *life->formers);
}

static void
add_former(struct dry_sim *sim, struct dryi_sim_life *life, uint32_t former,
           uint64_t begin, uint64_t end)
{
    struct dryi_sim_life *f = &sim->check->lives[former];
    if (begin >= end || !find_open_use(sim, f))
        return;
    f->references++;
    life->formers[life->former_count++] =
        (struct dryi_sim_former){.begin = begin, .end = end, .life = former};
}

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Record that the new life takes [begin, end) over from life `from`. */
static void
inherit(struct dry_sim *sim, struct dryi_sim_life *life, uint32_t from, uint64_t begin,
        uint64_t end)
{
    const struct dryi_sim_life *f = &sim->check->lives[from];
    if (f->is_owned) {
        dryi_sim_find(sim, (struct dry_sim_finding){.fault = DRY_SIM_OVERLAP,
                                                    .address = life->begin,
                                                    .size = life->end - life->begin,
                                                    .stream = life->stream,
                                                    .other_stream = f->stream,
                                                    .owner = life->owner,
                                                    .other_owner = f->owner});
        return;
    }
    if (f->is_used) {
        add_former(sim, life, from, begin, end);
        return;
    }
    for (size_t i = 0; i < f->former_count; i++) {
        const struct dryi_sim_former *g = &f->formers[i];
        add_former(sim, life, g->life, later(begin, g->begin), earlier(end, g->end));
    }
}

/* Start a life. Requires that all memory is reserved. */
static void
begin_life(struct dry_sim *sim, uint32_t index)
{
    struct dryi_sim_check *check = sim->check;
    struct dryi_sim_ranges *owned = &check->owned;
    struct dryi_sim_life *life = &check->lives[index];
    uint32_t node;
    while ((node = dryi_sim_ranges_find(owned, life->begin)) != 0 &&
           owned->nodes[node].begin < life->end) {
        const struct dryi_sim_range *range = &owned->nodes[node];
        uint32_t from = range->value;
        inherit(sim, life, from, later(range->begin, life->begin),
                earlier(range->end, life->end));
        add_references(check, from,
                       dryi_sim_ranges_cut(owned, node, life->begin, life->end));
    }
    dryi_sim_ranges_insert(owned, life->begin, life->end, index);
    life->references = 2;
}

enum dry_status
dry_sim_own(struct dry_sim *sim, uint64_t address, uint64_t size, uint64_t stream,
            uint64_t owner)
{
    struct dryi_sim_check *check = sim->check;
    if (!check)
        return DRY_OK;
    check->calls++;
    uint64_t end;
    if (owner == 0 || size == 0 || __builtin_add_overflow(address, size, &end) ||
        dryi_map_find(&check->owners, owner))
        return DRY_ERR_ARGUMENT;
    uint32_t index;
    if (!reserve_life(sim, address, end, &index) ||
        !dryi_map_put(&check->owners, owner, index))
        return DRY_ERR_MEMORY;
    struct dryi_sim_life *life = &check->lives[index];
    check->free_life = life->next_free;
    life->owner = owner;
    life->begin = address;
    life->end = end;
    life->stream = stream;
    life->is_owned = true;
    life->is_used = false;
    life->has_holes = !dryi_sim_ranges_cover(&check->mapped, address, end);
    begin_life(sim, index);
    return DRY_OK;
}

void
dry_sim_disown(struct dry_sim *sim, uint64_t owner)
{
    struct dryi_sim_check *check = sim->check;
    if (!check)
        return;
    check->calls++;
    const uint32_t *found = dryi_map_find(&check->owners, owner);
    if (!found)
        return;
    uint32_t index = *found;
    struct dryi_sim_life *life = &check->lives[index];
    dryi_map_take(&check->owners, owner);
    life->is_owned = false;
    if (life->is_used)
        drop_formers(check, life);
    add_references(check, index, -1);
}

/* Return a use that is not ordered before work submitted to this stream now; NULL: all
   are. */
static const struct dryi_sim_life_use *
find_unordered_use(const struct dry_sim *sim, const struct dryi_sim_life *life,
                   uint32_t stream)
{
    for (size_t i = 0; i < life->use_count; i++) {
        const struct dryi_sim_life_use *use = &life->uses[i];
        if (!dryi_sim_is_before(sim, use->stream, use->tick, stream))
            return use;
    }
    return NULL;
}

/* Drop all ranges taken over from this former life. */
static void
drop_pieces(struct dryi_sim_check *check, struct dryi_sim_life *life, uint32_t former)
{
    size_t count = 0, dropped;
    for (size_t i = 0; i < life->former_count; i++) {
        if (life->formers[i].life != former)
            life->formers[count++] = life->formers[i];
    }
    dropped = life->former_count - count;
    life->former_count = count;
    for (; dropped > 0; dropped--)
        drop_former(check, former);
}

/* Check the first use of `life` on a stream: all uses of its formers must be ordered
   before it. Each fault is reported once. */
static void
check_formers(struct dry_sim *sim, struct dryi_sim_life *life, uint32_t stream,
              struct dry_sim_finding finding)
{
    struct dryi_sim_check *check = sim->check;
    for (size_t i = life->former_count; i > 0; i--) {
        if (i > life->former_count)
            continue; /* another former's removal also removed entries after this one */
        uint32_t former = life->formers[i - 1].life;
        const struct dryi_sim_life *f = &check->lives[former];
        const struct dryi_sim_life_use *open = find_unordered_use(sim, f, stream);
        if (open) {
            finding.other_owner = f->owner;
            finding.other_stream = sim->streams[open->stream].id;
            dryi_sim_find(sim, finding);
            drop_pieces(check, life, former);
        } else if (!find_open_use(sim, f)) {
            life->formers[i - 1] = life->formers[--life->former_count];
            drop_former(check, former);
        }
    }
}

/* Make space for one more use, if possible by replacing uses known to be done. */
static bool
reserve_use(struct dry_sim *sim, struct dryi_sim_life *life)
{
    if (life->use_count < life->use_capacity)
        return true;
    size_t count = 0;
    for (size_t i = 0; i < life->use_count; i++) {
        struct dryi_sim_life_use use = life->uses[i];
        if (use.tick > sim->streams[use.stream].known)
            life->uses[count++] = use;
    }
    life->use_count = count;
    return dryi_memory_grow(&sim->memory, &life->uses, &life->use_capacity, 2 * count + 1,
                            sizeof *life->uses);
}

static enum dry_status
use_life(struct dry_sim *sim, struct dryi_sim_life *life, uint32_t stream,
         struct dry_sim_finding finding)
{
    uint64_t tick = sim->streams[stream].tick + 1;
    for (size_t i = 0; i < life->use_count; i++) {
        if (life->uses[i].stream == stream) {
            life->uses[i].tick = tick;
            return DRY_OK;
        }
    }
    if (!reserve_use(sim, life))
        return DRY_ERR_MEMORY;
    finding.fault = DRY_SIM_EARLY_REUSE;
    check_formers(sim, life, stream, finding);
    life->uses[life->use_count++] =
        (struct dryi_sim_life_use){.tick = tick, .stream = stream};
    life->is_used = true;
    return DRY_OK;
}

enum dry_status
dry_sim_use(struct dry_sim *sim, uint64_t stream, uint64_t address, uint64_t size,
            uint64_t owner)
{
    struct dryi_sim_check *check = sim->check;
    uint32_t index;
    if (!check)
        return DRY_OK;
    check->calls++;
    if (!dryi_sim_put_stream(sim, stream, &index))
        return DRY_ERR_MEMORY;
    struct dry_sim_finding finding = {
        .address = address, .size = size, .stream = stream, .owner = owner};
    const uint32_t *found = dryi_map_find(&check->owners, owner);
    if (!found) {
        finding.fault = DRY_SIM_USE_AFTER_FREE;
        dryi_sim_find(sim, finding);
        return DRY_OK;
    }
    struct dryi_sim_life *life = &check->lives[*found];
    if (address < life->begin || address > life->end || size > life->end - address) {
        finding.fault = DRY_SIM_USE_BEYOND;
        dryi_sim_find(sim, finding);
        return DRY_OK;
    }
    enum dry_status status = use_life(sim, life, index, finding);
    if (status == DRY_OK && life->has_holes &&
        !dryi_sim_ranges_cover(&check->mapped, address, address + size)) {
        finding.fault = DRY_SIM_USE_UNMAPPED;
        dryi_sim_find(sim, finding);
    }
    return status;
}

/* Return a life whose work may still run in [begin, end), or NULL. */
static const struct dryi_sim_life *
find_open_life(const struct dry_sim *sim, const struct dryi_sim_life *life,
               uint64_t begin, uint64_t end)
{
    if (life->is_owned || find_open_use(sim, life))
        return life;
    if (life->is_used)
        return NULL;
    for (size_t i = 0; i < life->former_count; i++) {
        const struct dryi_sim_former *f = &life->formers[i];
        const struct dryi_sim_life *former = &sim->check->lives[f->life];
        if (f->begin < end && begin < f->end && find_open_use(sim, former))
            return former;
    }
    return NULL;
}

static void
find_too_early(struct dry_sim *sim, const struct dryi_sim_life *life, uint64_t begin,
               uint64_t end, enum dry_sim_fault fault)
{
    const struct dryi_sim_life_use *use = find_open_use(sim, life);
    uint64_t stream = use ? sim->streams[use->stream].id : life->stream;
    dryi_sim_find(sim, (struct dry_sim_finding){.fault = fault,
                                                .address = begin,
                                                .size = end - begin,
                                                .stream = stream,
                                                .other_stream = stream,
                                                .owner = life->owner});
}

void
dryi_sim_forget(struct dry_sim *sim, uint64_t begin, uint64_t end,
                enum dry_sim_fault fault)
{
    struct dryi_sim_check *check = sim->check;
    struct dryi_sim_ranges *owned = &check->owned;
    uint64_t at = begin;
    uint32_t node;
    while ((node = dryi_sim_ranges_find(owned, at)) != 0 &&
           owned->nodes[node].begin < end) {
        uint64_t from = later(begin, owned->nodes[node].begin);
        uint64_t up_to = earlier(end, owned->nodes[node].end);
        uint32_t index = owned->nodes[node].value;
        struct dryi_sim_life *life = &check->lives[index];
        const struct dryi_sim_life *open = find_open_life(sim, life, from, up_to);
        at = owned->nodes[node].end;
        if (open)
            find_too_early(sim, open, begin, end, fault);
        life->has_holes = true;
        if (life->is_owned)
            continue;
        /* Without memory to split the range in two, also drop the later part. */
        bool fits = dryi_sim_ranges_reserve(owned, 1);
        add_references(check, index,
                       dryi_sim_ranges_cut(owned, node, from, fits ? up_to : UINT64_MAX));
    }
}
