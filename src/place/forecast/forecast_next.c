/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The next owner of each range in a packing; time is a circle.
 *
 * If the next owner is another stream, the range is handed over, and that stream must wait. If one
 * life of the same stream gets the whole range, it is a successor: its block is neither merged nor
 * cut again. The packing minimizes only height, and many lives could as well use the range of
 * another life of equal size and stream. Such a life is moved there to become a successor. The
 * height stays the same, because the range exists already.
 *
 * Cost: O(lives * overlapping lives) for each of the two, plus a sort. After VISITS_MAX visits to
 * lives and ranges no further life is moved.
 */
#include "place/forecast/forecast_inside.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"

/* --- ranges -------------------------------------------------------------------------------- */

#define NOBODY UINT32_MAX

/*
 * All lives placed at one exact range. Moving a life re-assigns it to another existing range; no
 * range is created by a move.
 */
struct placed_range {
    uint64_t lo, hi;
    uint64_t top;   /* highest end of this range and all before it */
    uint32_t first; /* first of a linked list of its lives; NOBODY: none */
    size_t of_size; /* index in `items` of the first range of equal size */
};

struct placed_ranges {
    struct dryi_packing_job *job;
    struct placed_range *ranges; /* sorted by lo */
    size_t count;
    uint32_t *range_of, *next; /* per life, its range and the next life of the range */
    /* Lives by lo, then ranges by size; twice the capacity for sorting. */
    struct dryi_sort_item *items;
    uint64_t visits;
};

static uint64_t
end_offset(const struct dryi_packing_job *job, uint32_t k)
{
    return job->offsets[k] + job->lives[k].size;
}

/* Return the requests from the end of `other` to the next begin of `life`, on the circle. */
static uint32_t
get_age(const struct dryi_packing_job *job, uint32_t life, uint32_t other)
{
    DRYI_ASSERT_SLOW(job->lives[other].end <= 2 * job->period);
    uint32_t now = job->lives[life].begin + 2 * job->period;
    return (now - job->lives[other].end) % job->period;
}

static bool
take_memory(struct placed_ranges *s, const struct dry_memory *memory)
{
    size_t capacity = s->job->capacity;
    s->ranges = dryi_memory_zalloc(memory, capacity, sizeof *s->ranges);
    s->range_of = dryi_memory_zalloc(memory, capacity, sizeof *s->range_of);
    s->next = dryi_memory_zalloc(memory, capacity, sizeof *s->next);
    s->items = dryi_memory_zalloc(memory, capacity, 2 * sizeof *s->items);
    return s->ranges && s->range_of && s->next && s->items;
}

static void
give_memory(const struct placed_ranges *s, const struct dry_memory *memory)
{
    size_t capacity = s->job->capacity;
    dryi_memory_free(memory, s->ranges, capacity, sizeof *s->ranges);
    dryi_memory_free(memory, s->range_of, capacity, sizeof *s->range_of);
    dryi_memory_free(memory, s->next, capacity, sizeof *s->next);
    dryi_memory_free(memory, s->items, capacity, 2 * sizeof *s->items);
}

static void
enter_range(struct placed_ranges *s, uint32_t life, uint32_t at)
{
    DRYI_ASSERT_SLOW(at < s->count);
    s->range_of[life] = at;
    s->next[life] = s->ranges[at].first;
    s->ranges[at].first = life;
}

static void
leave_range(struct placed_ranges *s, uint32_t life)
{
    uint32_t *link = &s->ranges[s->range_of[life]].first;
    while (*link != life)
        link = &s->next[*link];
    *link = s->next[life];
}

/* Find or add the range [lo, hi). Requires calls in order of lo. */
static uint32_t
range_for(struct placed_ranges *s, uint64_t lo, uint64_t hi)
{
    DRYI_ASSERT_SLOW(lo < hi && (s->count == 0 || s->ranges[s->count - 1].lo <= lo));
    size_t at = s->count;
    while (at > 0 && s->ranges[at - 1].lo == lo && s->ranges[at - 1].hi != hi)
        at--;
    if (at > 0 && s->ranges[at - 1].lo == lo)
        return (uint32_t)(at - 1);
    uint64_t top = s->count > 0 ? s->ranges[s->count - 1].top : 0;
    s->ranges[s->count] = (struct placed_range){lo, hi, hi > top ? hi : top, NOBODY, 0};
    return (uint32_t)s->count++;
}

static void
list_ranges(struct placed_ranges *s)
{
    const struct dryi_packing_job *job = s->job;
    for (uint32_t k = 0; k < job->count; k++)
        s->items[k] = (struct dryi_sort_item){job->offsets[k], k};
    dryi_sort_items(s->items, s->items + job->capacity, job->count);
    for (size_t i = 0; i < job->count; i++) {
        uint32_t life = s->items[i].value;
        enter_range(s, life, range_for(s, job->offsets[life], end_offset(job, life)));
    }
    for (uint32_t k = 0; k < s->count; k++)
        s->items[k] = (struct dryi_sort_item){s->ranges[k].hi - s->ranges[k].lo, k};
    dryi_sort_items(s->items, s->items + job->capacity, s->count);
    for (size_t i = 0, first = 0; i < s->count; i++) {
        first = s->items[i].key == s->items[first].key ? first : i;
        s->ranges[s->items[i].value].of_size = first;
    }
}

/* Return the number of ranges that begin below `hi`. */
static size_t
ranges_below(const struct placed_ranges *s, uint64_t hi)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranges[middle].lo < hi)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- handed over -------------------------------------------------------------------------- */

/* Overlapping lives considered for one life; further ones are ignored. */
#define NEIGHBOURS_MAX 128

struct overlaps {
    const struct dryi_packing_job *job;
    uint32_t life;
    uint32_t others[NEIGHBOURS_MAX];
    uint32_t count;
};

/* Did a third life occupy all shared bytes between the two? Then that life is the next owner. */
static bool
is_covered(const struct overlaps *o, uint32_t other)
{
    const struct dryi_packing_job *job = o->job;
    uint64_t lo = job->offsets[other], hi = end_offset(job, other);
    lo = lo > job->offsets[o->life] ? lo : job->offsets[o->life];
    hi = hi < end_offset(job, o->life) ? hi : end_offset(job, o->life);
    DRYI_ASSERT_SLOW(other != o->life && lo < hi);
    uint32_t age = get_age(job, o->life, other);
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t k = o->others[i];
        if (k != other && job->offsets[k] <= lo && end_offset(job, k) >= hi &&
            get_age(job, o->life, k) < age)
            return true;
    }
    return false;
}

static void
note_handed(const struct overlaps *o, struct dryi_packing_job *job)
{
    for (uint32_t i = 0; i < o->count; i++) {
        struct dryi_packing_life *other = &job->lives[o->others[i]];
        if (other->is_handed || other->stream == job->lives[o->life].stream ||
            is_covered(o, o->others[i]))
            continue;
        other->is_handed = true;
        job->handed++;
    }
}

/* Find the lives that share bytes with this one, at most NEIGHBOURS_MAX. */
static void
find_overlaps(const struct placed_ranges *s, struct overlaps *o)
{
    const struct placed_range *range = &s->ranges[s->range_of[o->life]];
    for (size_t k = ranges_below(s, range->hi);
         k-- > 0 && s->ranges[k].top > range->lo;) {
        uint32_t other = s->ranges[k].hi > range->lo ? s->ranges[k].first : NOBODY;
        for (; other != NOBODY && o->count < NEIGHBOURS_MAX; other = s->next[other]) {
            if (other != o->life)
                o->others[o->count++] = other;
        }
    }
}

static void
find_handed(struct placed_ranges *s)
{
    struct dryi_packing_job *job = s->job;
    for (uint32_t k = 0; k < job->count && !dryi_packing_job_is_cancelled(job); k++) {
        struct overlaps o = {.job = job, .life = k};
        find_overlaps(s, &o);
        note_handed(&o, job);
    }
}

/* --- successors --------------------------------------------------------------------------- */

/* The state of a range when a life begins. */
struct last_use {
    /* The life that last used any of it; the life itself: no other since. */
    uint32_t last;
    bool is_free; /* free during the whole life */
};

static void
note_lives(struct placed_ranges *s, uint32_t life, const struct placed_range *range,
           uint32_t *least, struct last_use *last_use)
{
    for (uint32_t k = range->first; k != NOBODY; k = s->next[k]) {
        s->visits++;
        if (k == life)
            continue;
        uint32_t age = get_age(s->job, life, k);
        last_use->is_free =
            last_use->is_free && !dryi_packing_is_conflict(s->job, life, k);
        last_use->last = age < *least ? k : last_use->last;
        *least = age < *least ? age : *least;
    }
}

static struct last_use
find_last_use(struct placed_ranges *s, uint32_t life, uint32_t at)
{
    const struct placed_range *range = &s->ranges[at];
    uint32_t least = get_age(s->job, life, life);
    struct last_use last_use = {.last = life, .is_free = true};
    for (size_t k = ranges_below(s, range->hi);
         k-- > 0 && s->ranges[k].top > range->lo;) {
        s->visits++;
        if (s->ranges[k].hi > range->lo)
            note_lives(s, life, &s->ranges[k], &least, &last_use);
    }
    return last_use;
}

/* Would the life, in this range, be the successor of `last`, its last user? */
static bool
inherits(const struct placed_ranges *s, uint32_t life, uint32_t at, uint32_t last)
{
    const struct dryi_packing_life *lives = s->job->lives;
    return last == life ||
           (s->range_of[last] == at && lives[last].stream == lives[life].stream);
}

/* --- moved to inherit --------------------------------------------------------------------- */

#define TRIES_MAX 16u                  /* ranges tried for one life */
#define VISITS_MAX (UINT64_C(1) << 26) /* visits; at 5 ns each, 1/3 s */

/* Ranges of a life's size, most recently used first. */
struct choice {
    uint32_t ranges[TRIES_MAX], ages[TRIES_MAX];
    unsigned count;
};

static void
choose(struct choice *c, uint32_t range, uint32_t age)
{
    DRYI_ASSERT_SLOW(c->count <= TRIES_MAX);
    unsigned at = c->count;
    if (at == TRIES_MAX && c->ages[at - 1] <= age)
        return;
    c->count += at < TRIES_MAX;
    at -= at == TRIES_MAX;
    for (; at > 0 && c->ages[at - 1] > age; at--) {
        c->ranges[at] = c->ranges[at - 1];
        c->ages[at] = c->ages[at - 1];
    }
    c->ranges[at] = range;
    c->ages[at] = age;
}

static void
list_choices(struct placed_ranges *s, uint32_t life, struct choice *choice)
{
    uint64_t size = s->job->lives[life].size;
    size_t i = s->ranges[s->range_of[life]].of_size;
    DRYI_ASSERT_SLOW(s->items[i].key == size && (i == 0 || s->items[i - 1].key < size));
    for (; i < s->count && s->items[i].key == size; i++) {
        uint32_t at = s->items[i].value, least = UINT32_MAX;
        for (uint32_t k = s->ranges[at].first; k != NOBODY; k = s->next[k]) {
            uint32_t age = get_age(s->job, life, k);
            least = age < least ? age : least;
            s->visits++;
        }
        if (at != s->range_of[life] && least != UINT32_MAX)
            choose(choice, at, least);
    }
}

/* Move a life to a range where it becomes a successor, if there is one. */
static void
move_life(struct placed_ranges *s, uint32_t life)
{
    struct choice choice = {.count = 0};
    uint32_t at = s->range_of[life];
    if (inherits(s, life, at, find_last_use(s, life, at).last))
        return;
    list_choices(s, life, &choice);
    for (unsigned i = 0; i < choice.count; i++) {
        at = choice.ranges[i];
        struct last_use last_use = find_last_use(s, life, at);
        if (!last_use.is_free || !inherits(s, life, at, last_use.last))
            continue;
        DRYI_ASSERT_SLOW(s->ranges[at].hi - s->ranges[at].lo == s->job->lives[life].size);
        leave_range(s, life);
        enter_range(s, life, at);
        s->job->offsets[life] = s->ranges[at].lo;
        return;
    }
}

/* Move the lives that end in their own period. They are numbered in order of begin. */
static void
move_to_inherit(struct placed_ranges *s)
{
    const struct dryi_packing_job *job = s->job;
    for (uint32_t k = 0; k < job->count && s->visits < VISITS_MAX; k++) {
        if (job->lives[k].end <= job->period && !dryi_packing_job_is_cancelled(job))
            move_life(s, k);
    }
}

static void
find_successors(struct placed_ranges *s)
{
    struct dryi_packing_job *job = s->job;
    for (uint32_t k = 0; k < job->count && !dryi_packing_job_is_cancelled(job); k++) {
        uint32_t last = find_last_use(s, k, s->range_of[k]).last;
        if (inherits(s, k, s->range_of[k], last))
            job->lives[last].successor = job->lives[k].step;
    }
}

enum dry_status
dryi_packing_find_next(struct dryi_packing_job *job, const struct dry_memory *memory)
{
    DRYI_ASSERT_SLOW(job->offsets && job->handed == 0);
    struct placed_ranges ranges = {.job = job};
    bool has_memory = take_memory(&ranges, memory);
    if (has_memory) {
        list_ranges(&ranges);
        move_to_inherit(&ranges);
        if (job->stream_count > 1)
            find_handed(&ranges);
        find_successors(&ranges);
    }
    give_memory(&ranges, memory);
    return has_memory ? DRY_OK : DRY_ERR_MEMORY;
}
