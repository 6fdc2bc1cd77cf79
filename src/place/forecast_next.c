/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose place goes to whom: by the packing, time being a circle.
 *
 * A place that goes to another stream next is handed over: an event behind the free lets that
 * one have it without a wait. One that goes whole to one life of the same stream has an heir:
 * what lay there need not be merged with anything, to be cut out again. A packing cares for
 * height alone, and many a life of one stream can have the place of an equal one just as well:
 * it is moved there, which takes no more memory, for something lies there anyway.
 *
 * Cost: O(lives x those that lie beside each other) for what is handed over, O(lives^2) for
 * heirs, and LOOKS_MAX looks at a life at most for what is moved.
 */
#include "place/forecast_inside.h"

#include "base/memory.h"
#include "base/sort.h"

/* --- handed over -------------------------------------------------------------------------- */

#define NEIGHBOURS_MAX 128 /* lives that share bytes with one */

struct overlaps {
    const struct dryi_plan_job *job;
    uint32_t life;
    uint32_t others[NEIGHBOURS_MAX];
    uint32_t count;
    bool is_many;
};

static uint64_t
end_offset(const struct dryi_plan_job *job, uint32_t k)
{
    return job->offsets[k] + job->lives[k].size;
}

/* How long before the life begins the other one ended, around the circle. */
static uint32_t
age_of(const struct dryi_plan_job *job, uint32_t life, uint32_t other)
{
    uint32_t now = job->lives[life].begin + 2 * job->period;
    return (now - job->lives[other].end) % job->period;
}

/* Has another one lain since over all that both share? */
static bool
is_covered(const struct overlaps *o, uint32_t other)
{
    const struct dryi_plan_job *job = o->job;
    uint64_t lo = job->offsets[other], hi = end_offset(job, other);
    lo = lo > job->offsets[o->life] ? lo : job->offsets[o->life];
    hi = hi < end_offset(job, o->life) ? hi : end_offset(job, o->life);
    uint32_t age = age_of(job, o->life, other);
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t k = o->others[i];
        if (k != other && job->offsets[k] <= lo && end_offset(job, k) >= hi &&
            age_of(job, o->life, k) < age)
            return true;
    }
    return false;
}

static void
note_handed(const struct overlaps *o, struct dryi_plan_job *job)
{
    for (uint32_t i = 0; i < o->count; i++) {
        struct dryi_plan_life *other = &job->lives[o->others[i]];
        if (other->is_handed || other->stream == job->lives[o->life].stream ||
            is_covered(o, o->others[i]))
            continue;
        other->is_handed = true;
        job->handed++;
    }
}

/* Of lives by offset: those that lie under the n-th, and the n-th under them. */
static void
find_overlaps(const struct dryi_sort_item *items, size_t n, uint64_t widest,
              struct overlaps *o)
{
    const struct dryi_plan_job *job = o->job;
    uint64_t lo = job->offsets[o->life], hi = end_offset(job, o->life);
    for (size_t k = n; k-- > 0 && items[k].key + widest > lo && !o->is_many;) {
        o->is_many = o->count == NEIGHBOURS_MAX;
        if (!o->is_many && end_offset(job, items[k].value) > lo)
            o->others[o->count++] = items[k].value;
    }
    for (size_t k = n + 1; k < job->count && items[k].key < hi && !o->is_many; k++) {
        o->is_many = o->count == NEIGHBOURS_MAX;
        if (!o->is_many)
            o->others[o->count++] = items[k].value;
    }
}

enum dry_status
dryi_plan_find_handed(struct dryi_plan_job *job, const struct dry_memory *memory)
{
    struct dryi_sort_item *items =
        dryi_memory_zalloc(memory, job->capacity, 2 * sizeof *items);
    uint64_t widest = 0;
    if (!items)
        return DRY_ERR_MEMORY;
    for (uint32_t k = 0; k < job->count; k++) {
        items[k] = (struct dryi_sort_item){job->offsets[k], k};
        widest = job->lives[k].size > widest ? job->lives[k].size : widest;
    }
    dryi_sort_items(items, items + job->capacity, job->count);
    for (size_t n = 0; n < job->count && !dryi_plan_job_is_cancelled(job); n++) {
        struct overlaps o = {.job = job, .life = items[n].value};
        find_overlaps(items, n, widest, &o);
        note_handed(&o, job);
    }
    dryi_memory_free(memory, items, job->capacity, 2 * sizeof *items);
    return DRY_OK;
}

/* --- heirs -------------------------------------------------------------------------------- */

#define TRIES_MAX 16u                 /* places that a life is held against */
#define LOOKS_MAX (UINT64_C(1) << 26) /* a tenth of a second */

/* Of a place that a life could have. */
struct look {
    uint32_t last; /* who lay there before, at least a part; itself, a period ago */
    bool is_free;  /* as long as it lives */
};

/* A life that ends in the next period keeps its place all the time. */
static bool
meet(const struct dryi_plan_job *job, const struct dryi_plan_life *a,
     const struct dryi_plan_life *b)
{
    return (a->begin < b->end && b->begin < a->end) || a->end > job->period ||
           b->end > job->period;
}

static struct look
look_at(const struct dryi_plan_job *job, uint32_t life, uint64_t lo)
{
    const struct dryi_plan_life *lives = job->lives;
    uint64_t hi = lo + lives[life].size;
    uint32_t least = age_of(job, life, life);
    struct look look = {.last = life, .is_free = true};
    for (uint32_t k = 0; k < job->count; k++) {
        if (job->offsets[k] >= hi || end_offset(job, k) <= lo || k == life)
            continue;
        uint32_t age = age_of(job, life, k);
        look.is_free = look.is_free && !meet(job, &lives[life], &lives[k]);
        look.last = age < least ? k : look.last;
        least = age < least ? age : least;
    }
    return look;
}

/* Is `life`, there, the heir of who lay there last? */
static bool
inherits(const struct dryi_plan_job *job, uint32_t life, uint64_t lo, uint32_t last)
{
    const struct dryi_plan_life *a = &job->lives[last], *b = &job->lives[life];
    uint64_t its = last == life ? lo : job->offsets[last];
    return its == lo && a->size == b->size && a->stream == b->stream;
}

/* Places of its size, those that were left last first. */
struct places {
    const struct dryi_sort_item *of_size; /* lives */
    size_t count;
    uint64_t tried[TRIES_MAX];
    unsigned tried_count;
};

static bool
was_tried(const struct places *places, uint64_t lo)
{
    for (unsigned i = 0; i < places->tried_count; i++) {
        if (places->tried[i] == lo)
            return true;
    }
    return false;
}

static bool
next_place(const struct dryi_plan_job *job, uint32_t life, struct places *places,
           uint64_t *lo)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < places->count; i++) {
        uint32_t k = places->of_size[i].value;
        uint32_t age = age_of(job, life, k);
        if (age < least && !was_tried(places, job->offsets[k])) {
            least = age;
            *lo = job->offsets[k];
        }
    }
    if (least == UINT32_MAX || places->tried_count == TRIES_MAX)
        return false;
    places->tried[places->tried_count++] = *lo;
    return true;
}

/* To where it inherits, if it can; how many lives were looked at. */
static uint64_t
move_life(const struct dryi_plan_job *job, uint64_t *offsets, uint32_t life,
          struct places *places)
{
    uint64_t lo, looks = job->count;
    struct look look = look_at(job, life, offsets[life]);
    places->tried[0] = offsets[life];
    places->tried_count = 1;
    if (inherits(job, life, offsets[life], look.last))
        return looks;
    while (next_place(job, life, places, &lo)) {
        looks += job->count + places->count;
        look = look_at(job, life, lo);
        if (look.is_free && inherits(job, life, lo, look.last)) {
            offsets[life] = lo;
            break;
        }
    }
    return looks;
}

/* All that end in their period, in order of their begin: lives are listed so. */
static void
move_to_inherit(struct dryi_plan_job *job, uint64_t *offsets,
                const struct dryi_sort_item *by_size)
{
    uint64_t looks = 0;
    for (uint32_t life = 0; life < job->count && looks < LOOKS_MAX; life++) {
        uint64_t size = job->lives[life].size;
        struct places places = {.of_size = by_size};
        if (job->lives[life].end > job->period || dryi_plan_job_is_cancelled(job))
            continue;
        while (places.of_size->key != size)
            places.of_size++;
        size_t most = (size_t)(by_size + job->count - places.of_size);
        while (places.count < most && places.of_size[places.count].key == size)
            places.count++;
        looks += move_life(job, offsets, life, &places);
    }
}

enum dry_status
dryi_plan_find_heirs(struct dryi_plan_job *job, uint64_t *offsets,
                     const struct dry_memory *memory)
{
    struct dryi_sort_item *items =
        dryi_memory_zalloc(memory, job->capacity, 2 * sizeof *items);
    if (!items)
        return DRY_ERR_MEMORY;
    for (uint32_t k = 0; k < job->count; k++)
        items[k] = (struct dryi_sort_item){job->lives[k].size, k};
    dryi_sort_items(items, items + job->capacity, job->count);
    /* Of several streams it is not time alone that keeps lives apart. */
    if (job->stream_count == 1)
        move_to_inherit(job, offsets, items);
    dryi_memory_free(memory, items, job->capacity, 2 * sizeof *items);
    for (uint32_t life = 0; life < job->count; life++) {
        uint32_t last = look_at(job, life, offsets[life]).last;
        if (inherits(job, life, offsets[life], last))
            job->lives[last].heir = job->lives[life].step;
    }
    return DRY_OK;
}
