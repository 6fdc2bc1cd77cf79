/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of the offline packer. Lives are converted to sections and units; independent sets of
 * lives become separate problems. The highest of their packings is the height.
 *
 * A life alive throughout a problem can be placed below all others without loss. So it is placed
 * first, and the rest may split further.
 */
#include "place/offline/offline.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "place/offline/offline_inside.h"

#define BYTES_MAX (UINT64_C(1) << 62)
#define LEVELS_MAX 64u /* Depth of this recursion; bounds the work */

/* Lives packed together: members[first .. first + count), on top of `base`. */
struct part {
    size_t first, count;
    uint64_t base;
    uint32_t level;
    uint64_t height; /* units, without `base` */
};

struct packer {
    struct dry_memory memory;
    const struct dryi_life *lives;
    const struct dryi_packing_options *options;
    size_t count;
    uint64_t unit;
    uint64_t floor;  /* units */
    uint64_t wanted; /* units */
    uint64_t effort;
    bool is_ended;
    struct dryi_sort_item *begins, *ends, *scratch;
    uint32_t *lo, *hi;                 /* one per life; both 0 if never alive */
    uint64_t *sizes, *offsets, *fixed; /* one per life, in units; `fixed` NULL: none */
    uint32_t section_count;
    uint32_t *members, *spare; /* lives in order of begin, without those never alive */
    size_t member_count;
    struct part *parts; /* final parts, to be packed */
    size_t part_count, part_capacity;
    struct part *open; /* parts that may split further */
    size_t open_count, open_capacity;
    /* The problem of one part, as contiguous arrays. */
    uint32_t *part_lo, *part_hi;
    uint64_t *part_sizes, *part_durations, *part_fixed, *part_offsets, *loads;
    const char *method;
    bool is_proved; /* the packing of the highest part is proved optimal */
};

/* --- lives in sections ------------------------------------------------------------------ */

static enum dry_status
check_lives(const struct dryi_life *lives, size_t count, uint64_t unit,
            struct dry_error *err)
{
    uint64_t sum = 0;
    if (!dryi_is_power_of_two(unit) || unit > BYTES_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the alignment is no power of two");
    if (count > UINT32_MAX - 2)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "too many lives");
    for (size_t i = 0; i < count; i++) {
        if (lives[i].end < lives[i].begin)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "life %zu ends before it begins", i);
        if (lives[i].size == 0)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "life %zu has no size", i);
        if (lives[i].size > BYTES_MAX ||
            dryi_round_up(lives[i].size, unit) > BYTES_MAX - sum)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "the sizes are more than 2^62 bytes");
        sum += dryi_round_up(lives[i].size, unit);
    }
    return DRY_OK;
}

/* Sort the begins and ends of the lives that are alive at all. Returns their number. */
static size_t
sort_times(const struct dryi_life *lives, size_t count, struct dryi_sort_item *begins,
           struct dryi_sort_item *ends, struct dryi_sort_item *scratch)
{
    size_t alive = 0;
    for (size_t i = 0; i < count; i++) {
        if (lives[i].begin == lives[i].end)
            continue;
        begins[alive] = (struct dryi_sort_item){lives[i].begin, (uint32_t)i};
        ends[alive++] = (struct dryi_sort_item){lives[i].end, (uint32_t)i};
    }
    dryi_sort_items(begins, scratch, alive);
    dryi_sort_items(ends, scratch, alive);
    return alive;
}

/*
 * Walk all begins and ends in order of time, ends first on ties. A new section starts at a begin
 * that follows an end.
 */
static void
find_sections(struct packer *p)
{
    size_t ended = 0;
    uint64_t live = 0;
    bool has_ended = false;
    uint32_t section = 0;
    for (size_t begun = 0; begun < p->member_count; begun++) {
        const struct dryi_sort_item *begin = &p->begins[begun];
        for (; p->ends[ended].key <= begin->key; ended++, has_ended = true) {
            p->hi[p->ends[ended].value] = section + 1;
            live -= p->sizes[p->ends[ended].value];
        }
        section += has_ended;
        has_ended = false;
        p->lo[begin->value] = section;
        p->members[begun] = begin->value;
        live += p->sizes[begin->value];
        p->floor = live > p->floor ? live : p->floor;
    }
    DRYI_ASSERT_SLOW(section < p->count);
    for (; ended < p->member_count; ended++)
        p->hi[p->ends[ended].value] = section + 1;
    p->section_count = p->member_count ? section + 1 : 0;
}

/* --- parts ------------------------------------------------------------------------------ */

static bool
add_part(struct packer *p, bool is_open, const struct part *part)
{
    DRYI_ASSERT_SLOW(part->level < LEVELS_MAX || !is_open);
    DRYI_ASSERT_SLOW(part->first + part->count <= p->member_count);
    if (is_open) {
        if (!dryi_memory_grow(&p->memory, &p->open, &p->open_capacity, p->open_count + 1,
                              sizeof *p->open))
            return false;
        p->open[p->open_count++] = *part;
        return true;
    }
    if (!dryi_memory_grow(&p->memory, &p->parts, &p->part_capacity, p->part_count + 1,
                          sizeof *p->parts))
        return false;
    p->parts[p->part_count++] = *part;
    return true;
}

/*
 * Close a connected set of lives, alive in sections [lo, hi). The lives alive in all these sections
 * are placed first, at the bottom; the rest become a part.
 */
static bool
settle(struct packer *p, const struct part *set, uint32_t lo, uint32_t hi)
{
    uint32_t *members = p->members + set->first;
    size_t full = 0, rest = 0;
    uint64_t base = set->base;
    for (size_t k = 0; k < set->count; k++) {
        uint32_t i = members[k];
        DRYI_ASSERT_SLOW(lo <= p->lo[i] && p->lo[i] < p->hi[i] && p->hi[i] <= hi);
        if (p->lo[i] != lo || p->hi[i] != hi) {
            p->spare[rest++] = i;
            continue;
        }
        p->offsets[i] = base;
        base += p->sizes[i];
        members[full++] = i;
    }
    memcpy(members + full, p->spare, rest * sizeof *members);
    struct part part = {set->first + full, rest, base, set->level + 1, 0};
    return add_part(p, full > 0 && rest > 0 && part.level < LEVELS_MAX, &part);
}

/* Split a part at each section boundary that no life crosses. False: out of memory. */
static bool
fall_apart(struct packer *p, const struct part *part)
{
    size_t begin = 0;
    uint32_t hi = 0;
    for (size_t k = 0; k <= part->count; k++) {
        uint32_t i = k < part->count ? p->members[part->first + k] : 0;
        DRYI_ASSERT_SLOW(k == 0 || k == part->count ||
                         p->lo[p->members[part->first + k - 1]] <= p->lo[i]);
        if (k > begin && (k == part->count || p->lo[i] >= hi)) {
            struct part set = {part->first + begin, k - begin, part->base, part->level,
                               0};
            if (!settle(p, &set, p->lo[p->members[set.first]], hi))
                return false;
            begin = k;
        }
        if (k < part->count && p->hi[i] > hi)
            hi = p->hi[i];
    }
    return true;
}

static bool
find_parts(struct packer *p)
{
    struct part all = {.count = p->member_count};
    if (p->fixed)
        return add_part(p, false, &all);
    if (!add_part(p, true, &all))
        return false;
    while (p->open_count) {
        struct part part = p->open[--p->open_count];
        if (!fall_apart(p, &part))
            return false;
    }
    return true;
}

/* --- packing ---------------------------------------------------------------------------- */

/* Return the peak of the problem's live units, at least the highest end of a fixed life. */
static uint64_t
find_bound(const struct packer *p, const struct dryi_problem *problem)
{
    uint64_t peak = 0, live = 0;
    memset(p->loads, 0, (problem->section_count + 1) * sizeof *p->loads);
    for (uint32_t k = 0; k < problem->count; k++) {
        p->loads[problem->lo[k]] += problem->sizes[k];
        /* Intermediate sums may wrap around. */
        p->loads[problem->hi[k]] -= problem->sizes[k];
        if (problem->fixed && problem->fixed[k] != DRYI_OFFLINE_ANYWHERE &&
            problem->fixed[k] + problem->sizes[k] > peak)
            peak = problem->fixed[k] + problem->sizes[k];
    }
    for (uint32_t s = 0; s < problem->section_count; s++) {
        live += p->loads[s];
        peak = live > peak ? live : peak;
    }
    return peak;
}

static struct dryi_problem
describe_problem(struct packer *p, const struct part *part)
{
    struct dryi_problem problem = {
        .memory = p->memory,
        .count = (uint32_t)part->count,
        .lo = p->part_lo,
        .hi = p->part_hi,
        .sizes = p->part_sizes,
        .durations = p->part_durations,
        .fixed = p->fixed ? p->part_fixed : NULL,
        .effort = p->effort,
        .progress = p->options->progress,
        .progress_self = p->options->progress_self,
        .offsets = p->part_offsets,
    };
    uint32_t first = part->count ? p->lo[p->members[part->first]] : 0;
    for (size_t k = 0; k < part->count; k++) {
        uint32_t i = p->members[part->first + k];
        p->part_lo[k] = p->lo[i] - first;
        p->part_hi[k] = p->hi[i] - first;
        DRYI_ASSERT_SLOW(first <= p->lo[i] && p->lo[i] < p->hi[i]);
        p->part_sizes[k] = p->sizes[i];
        p->part_durations[k] = p->lives[i].end - p->lives[i].begin;
        p->part_offsets[k] = 0;
        if (p->fixed)
            p->part_fixed[k] = p->fixed[i];
        if (p->part_hi[k] > problem.section_count)
            problem.section_count = p->part_hi[k];
    }
    problem.bound = find_bound(p, &problem);
    problem.wanted =
        p->wanted > part->base + problem.bound ? p->wanted - part->base : problem.bound;
    return problem;
}

static enum dry_status
pack_part(struct packer *p, struct part *part)
{
    struct dryi_problem problem = describe_problem(p, part);
    if (problem.count == 0)
        return DRY_OK;
    enum dry_status status = dryi_offline_greedy(&problem);
    if (status == DRY_OK && !p->is_ended)
        status = dryi_offline_exact(&problem);
    if (status != DRY_OK)
        return status;
    DRYI_ASSERT_SLOW(problem.fixed || problem.height >= problem.bound);
    DRYI_ASSERT_SLOW(problem.effort <= p->effort);
    p->effort = problem.effort;
    p->is_ended = p->is_ended || problem.is_ended;
    for (size_t k = 0; k < part->count; k++)
        p->offsets[p->members[part->first + k]] = part->base + p->part_offsets[k];
    part->height = problem.height;
    if (part->base + problem.height >= p->wanted) {
        p->wanted = part->base + problem.height;
        p->method = problem.method;
        p->is_proved = problem.is_proved || problem.height == problem.bound;
    }
    return DRY_OK;
}

static enum dry_status
pack_parts(struct packer *p)
{
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < p->part_count && status == DRY_OK; i++)
        status = pack_part(p, &p->parts[i]);
    return status;
}

static bool
take_memory(struct packer *p)
{
    const struct dry_memory *m = &p->memory;
    size_t n = p->count;
    p->begins = dryi_memory_zalloc(m, n, sizeof *p->begins);
    p->ends = dryi_memory_zalloc(m, n, sizeof *p->ends);
    p->scratch = dryi_memory_zalloc(m, n, sizeof *p->scratch);
    p->lo = dryi_memory_zalloc(m, n, sizeof *p->lo);
    p->hi = dryi_memory_zalloc(m, n, sizeof *p->hi);
    p->sizes = dryi_memory_zalloc(m, n, sizeof *p->sizes);
    p->offsets = dryi_memory_zalloc(m, n, sizeof *p->offsets);
    p->members = dryi_memory_zalloc(m, n, sizeof *p->members);
    p->spare = dryi_memory_zalloc(m, n, sizeof *p->spare);
    p->part_lo = dryi_memory_zalloc(m, n, sizeof *p->part_lo);
    p->part_hi = dryi_memory_zalloc(m, n, sizeof *p->part_hi);
    p->part_sizes = dryi_memory_zalloc(m, n, sizeof *p->part_sizes);
    p->part_durations = dryi_memory_zalloc(m, n, sizeof *p->part_durations);
    p->part_offsets = dryi_memory_zalloc(m, n, sizeof *p->part_offsets);
    p->loads = dryi_memory_zalloc(m, n + 1, sizeof *p->loads);
    if (p->options->fixed) {
        p->fixed = dryi_memory_zalloc(m, n, sizeof *p->fixed);
        p->part_fixed = dryi_memory_zalloc(m, n, sizeof *p->part_fixed);
    }
    bool has_fixed = !p->options->fixed || (p->fixed && p->part_fixed);
    return p->begins && p->ends && p->scratch && p->lo && p->hi && p->sizes &&
           p->offsets && p->members && p->spare && p->part_lo && p->part_hi &&
           p->part_sizes && p->part_durations && p->part_offsets && p->loads && has_fixed;
}

static void
give_memory_back(struct packer *p)
{
    const struct dry_memory *m = &p->memory;
    size_t n = p->count;
    dryi_memory_free(m, p->begins, n, sizeof *p->begins);
    dryi_memory_free(m, p->ends, n, sizeof *p->ends);
    dryi_memory_free(m, p->scratch, n, sizeof *p->scratch);
    dryi_memory_free(m, p->lo, n, sizeof *p->lo);
    dryi_memory_free(m, p->hi, n, sizeof *p->hi);
    dryi_memory_free(m, p->sizes, n, sizeof *p->sizes);
    dryi_memory_free(m, p->offsets, n, sizeof *p->offsets);
    dryi_memory_free(m, p->members, n, sizeof *p->members);
    dryi_memory_free(m, p->spare, n, sizeof *p->spare);
    dryi_memory_free(m, p->part_lo, n, sizeof *p->part_lo);
    dryi_memory_free(m, p->part_hi, n, sizeof *p->part_hi);
    dryi_memory_free(m, p->part_sizes, n, sizeof *p->part_sizes);
    dryi_memory_free(m, p->part_durations, n, sizeof *p->part_durations);
    dryi_memory_free(m, p->part_offsets, n, sizeof *p->part_offsets);
    dryi_memory_free(m, p->loads, n + 1, sizeof *p->loads);
    dryi_memory_free(m, p->fixed, n, sizeof *p->fixed);
    dryi_memory_free(m, p->part_fixed, n, sizeof *p->part_fixed);
    dryi_memory_free(m, p->parts, p->part_capacity, sizeof *p->parts);
    dryi_memory_free(m, p->open, p->open_capacity, sizeof *p->open);
}

/* Convert sizes and fixed offsets to units. ARGUMENT: a fixed offset is misaligned or too large. */
static enum dry_status
take_sizes(struct packer *p, struct dry_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        p->sizes[i] = dryi_round_up(p->lives[i].size, p->unit) / p->unit;
        if (!p->fixed)
            continue;
        uint64_t offset = p->options->fixed[i];
        p->fixed[i] = offset;
        if (offset == DRYI_OFFLINE_ANYWHERE)
            continue;
        if (offset > BYTES_MAX || offset % p->unit != 0)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "life %zu has a bad fixed offset", i);
        p->fixed[i] = offset / p->unit;
        p->offsets[i] = p->fixed[i];
    }
    return DRY_OK;
}

static void
write_result(const struct packer *p, uint64_t *offsets, struct dryi_packing *packing)
{
    for (size_t i = 0; i < p->count; i++)
        offsets[i] = p->offsets[i] * p->unit;
    uint64_t height = 0;
    for (size_t k = 0; k < p->member_count; k++) {
        uint32_t i = p->members[k];
        uint64_t end = p->offsets[i] + p->sizes[i];
        height = end > height ? end : height;
    }
    DRYI_ASSERT_SLOW(p->fixed || height >= p->floor);
    *packing = (struct dryi_packing){
        .height = height * p->unit,
        .floor = p->floor * p->unit,
        .is_optimal = height == p->floor || p->is_proved,
        .method = p->method,
    };
}

enum dry_status
dryi_offline_pack(const struct dryi_life *lives, size_t count,
                  const struct dryi_packing_options *options, uint64_t *offsets,
                  struct dryi_packing *packing, struct dry_error *err)
{
    struct packer p = {.memory = dryi_memory_or_default(options->memory),
                       .lives = lives,
                       .options = options,
                       .count = count,
                       .unit = options->alignment ? options->alignment : 512,
                       .effort = options->effort,
                       .method = "greedy by size"};
    enum dry_status status = check_lives(lives, count, p.unit, err);
    if (status != DRY_OK)
        return status;
    if (count == 0) {
        write_result(&p, offsets, packing);
        return DRY_OK;
    }
    status = take_memory(&p) ? take_sizes(&p, err) : DRY_ERR_MEMORY;
    if (status == DRY_OK) {
        p.member_count = sort_times(lives, count, p.begins, p.ends, p.scratch);
        find_sections(&p);
        p.wanted = p.floor;
        if (options->target / p.unit > p.wanted)
            p.wanted = options->target / p.unit;
        status = find_parts(&p) ? pack_parts(&p) : DRY_ERR_MEMORY;
    }
    if (status == DRY_OK)
        write_result(&p, offsets, packing);
    give_memory_back(&p);
    return status == DRY_ERR_MEMORY ? dryi_fail_memory(err, "packing") : status;
}

/* --- the floor -------------------------------------------------------------------------- */

struct peak {
    uint64_t bytes, moment;
};

static struct peak
find_peak(const struct dryi_life *lives, uint64_t unit,
          const struct dryi_sort_item *begins, const struct dryi_sort_item *ends,
          size_t count)
{
    uint64_t live = 0;
    size_t ended = 0;
    struct peak peak = {0, 0};
    for (size_t begun = 0; begun < count; begun++) {
        for (; ends[ended].key <= begins[begun].key; ended++)
            live -= dryi_round_up(lives[ends[ended].value].size, unit);
        DRYI_ASSERT_SLOW(ended <= begun);
        live += dryi_round_up(lives[begins[begun].value].size, unit);
        if (live > peak.bytes)
            peak = (struct peak){live, begins[begun].key};
    }
    return peak;
}

enum dry_status
dryi_offline_floor(const struct dryi_life *lives, size_t count, uint64_t alignment,
                   const struct dry_memory *memory, uint64_t *floor, uint64_t *moment)
{
    struct dry_memory m = dryi_memory_or_default(memory);
    uint64_t unit = alignment ? alignment : 512;
    enum dry_status status = check_lives(lives, count, unit, NULL);
    if (status != DRY_OK)
        return status;
    if (count == 0) {
        *floor = *moment = 0;
        return DRY_OK;
    }
    struct dryi_sort_item *items = dryi_memory_zalloc(&m, count, 3 * sizeof *items);
    if (!items)
        return DRY_ERR_MEMORY;
    size_t alive = sort_times(lives, count, items, items + count, items + 2 * count);
    struct peak peak = find_peak(lives, unit, items, items + count, alive);
    *floor = peak.bytes;
    *moment = peak.moment;
    dryi_memory_free(&m, items, count, 3 * sizeof *items);
    return DRY_OK;
}
