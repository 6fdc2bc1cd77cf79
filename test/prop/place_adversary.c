/* SPDX-License-Identifier: Apache-2.0 */
#include "prop/place_adversary.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/bits.h"
#include "support/random.h"

#define GRAIN 512u
#define PAGE (2 * DRYI_MIB)
#define STREAMS 16

/* An adversary under way: its live blocks by id, and a stack of free ids. */
struct owned {
    uint64_t addr, size; /* size 0: not there */
};

struct run {
    const struct adversary_target *target;
    struct owned *owned;
    uint32_t *free_ids;
    uint32_t id_count, free_count, requests, left;
    uint64_t live_bytes, live_max;
};

#define NO_ID UINT32_MAX

/* NO_ID: there was no room, or the adversary has made all its requests. */
static uint32_t
take(struct run *run, uint64_t size, uint64_t stream)
{
    if (run->left == 0 || run->live_bytes + size > run->live_max)
        return NO_ID;
    run->left--;
    bool is_new = run->free_count == 0;
    uint32_t id = is_new ? run->id_count : run->free_ids[run->free_count - 1];
    uint64_t addr = run->target->alloc(run->target->self, id, size, stream);
    if (addr == 0)
        return NO_ID;
    if (is_new)
        run->id_count++;
    else
        run->free_count--;
    run->owned[id] = (struct owned){addr, size};
    run->live_bytes += size;
    return id;
}

static void
drop(struct run *run, uint32_t id)
{
    if (id == NO_ID || run->owned[id].size == 0)
        return;
    run->target->free(run->target->self, id);
    run->live_bytes -= run->owned[id].size;
    run->owned[id].size = 0;
    run->free_ids[run->free_count++] = id;
}

static void
drop_all(struct run *run)
{
    for (uint32_t id = 0; id < run->id_count; id++)
        drop(run, id);
}

/* ---- the adversaries ---- */

/* Does [addr, addr + size) hold a unit whose number is `residue` modulo `step`? */
static bool
holds(const struct owned *o, uint64_t unit, uint64_t step, uint64_t residue)
{
    uint64_t first = o->addr / unit, last = (o->addr + o->size - 1) / unit;
    uint64_t at = first + (residue + step - first % step) % step;
    return at <= last;
}

static uint32_t
count_holding(const struct run *run, uint64_t unit, uint64_t step, uint64_t residue)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < run->id_count; id++)
        count += run->owned[id].size > 0 && holds(&run->owned[id], unit, step, residue);
    return count;
}

/* Robson, JACM 1971: in round i only what holds a unit of one residue modulo 2^i stays. */
static void
adversary_robson(struct run *run)
{
    uint64_t unit = run->live_max / (run->requests / 2 + 1);
    unit = unit < GRAIN ? GRAIN : dryi_round_up(unit, GRAIN);
    while (take(run, unit, 0) != NO_ID && run->left > run->requests / 2)
        ;
    uint64_t residue = 0;
    for (uint64_t step = 2; step * unit <= run->live_max / 4; step *= 2) {
        uint64_t other = residue + step / 2;
        if (count_holding(run, unit, step, other) >
            count_holding(run, unit, step, residue))
            residue = other; /* where more stays, more of the next size is kept out */
        for (uint32_t id = 0; id < run->id_count; id++) {
            if (run->owned[id].size > 0 && !holds(&run->owned[id], unit, step, residue))
                drop(run, id);
        }
        while (take(run, step * unit, 0) != NO_ID)
            ;
    }
}

/* A hole of s is made, and refilled with a grain less: the grain stays, and s grows. */
static void
adversary_best_fit(struct run *run)
{
    uint64_t size = 300 * DRYI_KIB;
    while (run->left > 2) {
        uint32_t hole = take(run, size, 0), wall = take(run, GRAIN + 256 * DRYI_KIB, 0);
        drop(run, hole);
        uint32_t less = take(run, size - GRAIN, 0);
        if (wall == NO_ID || less == NO_ID) {
            drop_all(run);
            size = 300 * DRYI_KIB;
        }
        size += 2 * GRAIN;
    }
}

static void
adversary_first_fit(struct run *run)
{
    uint64_t size = 260 * DRYI_KIB;
    while (run->left > 1) {
        uint32_t hole = take(run, size, 0), wall = take(run, 257 * DRYI_KIB, 0);
        drop(run, hole);
        size += GRAIN; /* the hole before is too small by a grain */
        if (wall == NO_ID || size > run->live_max / 64) {
            drop_all(run);
            size = 260 * DRYI_KIB;
        }
    }
}

/* A buffer that is copied to a larger one at each step, beside small ones that stay. */
static void
adversary_size_plus_one(struct run *run)
{
    uint64_t size = PAGE;
    uint32_t last = NO_ID;
    while (run->left > 1) {
        uint32_t next = take(run, size, 0);
        drop(run, last);
        last = next;
        if (run->left % 8 == 0)
            take(run, 10 * DRYI_KIB, 0);
        size += size / 64 < GRAIN ? GRAIN : dryi_round_up(size / 64, GRAIN);
        if (next == NO_ID || size > run->live_max / 3) {
            drop_all(run);
            size = PAGE;
            last = NO_ID;
        }
    }
}

static void
adversary_survivors(struct run *run)
{
    static const uint64_t sizes[] = {16 * DRYI_KIB, 300 * DRYI_KIB};
    for (uint32_t round = 0; run->left > 0; round++) {
        uint64_t size = sizes[round % 2], per_page = PAGE / size;
        uint32_t first = NO_ID, id;
        for (uint64_t i = 0; i < run->live_max / size / 2 && i < run->requests / 5; i++) {
            if ((id = take(run, size, 0)) == NO_ID)
                break;
            if (first == NO_ID)
                first = id;
        }
        for (uint32_t i = 0; i < run->id_count; i++) {
            if (i % per_page != 0)
                drop(run, i);
        }
        while (take(run, 5 * PAGE + GRAIN, 0) != NO_ID)
            ;
        if (round % 4 == 3)
            drop_all(run);
        if (first == NO_ID)
            drop_all(run);
    }
}

/* Free blocks of (1024 + 0 .. 30) grains lie between walls; asked for are 31 more. */
static void
adversary_no_fit(struct run *run)
{
    uint32_t holes = run->requests / 4;
    for (uint32_t i = 0; i < holes; i++) {
        take(run, (1024 + i % 31) * GRAIN, 0);
        if (take(run, 513 * GRAIN, 0) == NO_ID)
            break;
    }
    for (uint32_t id = 0; id < run->id_count; id += 2)
        drop(run, id);
    while (run->left > 0) {
        uint32_t id = take(run, 1055 * GRAIN, 0);
        if (id == NO_ID)
            break;
        drop(run, id);
    }
}

static void
adversary_sawtooth(struct run *run)
{
    struct random random;
    random_init(&random, run->live_max);
    for (uint32_t tooth = 0; run->left > 0; tooth++) {
        uint64_t size = (GRAIN << tooth % 14) + GRAIN * random_below(&random, 64);
        if (run->live_max / size > 4096)
            size = run->live_max / 4096;
        while (take(run, size, 0) != NO_ID)
            ;
        for (uint32_t i = 0; i < run->id_count; i++) /* every other first */
            drop(run, (i * 2) % run->id_count);
        drop_all(run);
    }
}

static void
adversary_record_storm(struct run *run)
{
    const struct adversary_target *t = run->target;
    struct random random;
    random_init(&random, run->live_max);
    while (run->left > 0) {
        uint64_t size = GRAIN + GRAIN * random_below(&random, run->live_max / GRAIN / 64);
        uint32_t id = take(run, size, random_below(&random, STREAMS));
        for (uint64_t s = 0; id != NO_ID && s < STREAMS; s++)
            t->record_stream(t->self, id, s);
        if (id == NO_ID || random_below(&random, 3) == 0)
            drop(run, (uint32_t)random_below(&random, run->id_count + 1u) %
                          (run->id_count ? run->id_count : 1));
        if (random_below(&random, 64) == 0)
            t->complete_stream(t->self, random_below(&random, STREAMS));
        if (id == NO_ID)
            drop_all(run);
    }
}

static void
adversary_streams(struct run *run)
{
    struct random random;
    random_init(&random, run->live_max);
    uint64_t stream = 1;
    while (run->left > 0) {
        uint64_t size = GRAIN + GRAIN * random_below(&random, run->live_max / GRAIN / 32);
        uint32_t id = take(run, size, stream);
        stream += random_below(&random, 3) == 0;
        if (id != NO_ID && random_below(&random, 4) == 0)
            run->target->record_stream(run->target->self, id, stream + 1);
        if (id == NO_ID || random_below(&random, 2) == 0)
            drop(run, (uint32_t)random_below(&random, run->id_count + 1u) %
                          (run->id_count ? run->id_count : 1));
        if (id == NO_ID)
            drop_all(run);
    }
}

static void (*const adversaries[ADVERSARY_COUNT])(struct run *run) = {
    [ADVERSARY_ROBSON] = adversary_robson,
    [ADVERSARY_BEST_FIT] = adversary_best_fit,
    [ADVERSARY_FIRST_FIT] = adversary_first_fit,
    [ADVERSARY_SIZE_PLUS_ONE] = adversary_size_plus_one,
    [ADVERSARY_SURVIVORS] = adversary_survivors,
    [ADVERSARY_NO_FIT] = adversary_no_fit,
    [ADVERSARY_SAWTOOTH] = adversary_sawtooth,
    [ADVERSARY_RECORD_STORM] = adversary_record_storm,
    [ADVERSARY_STREAMS] = adversary_streams,
};

const char *
adversary_name(enum adversary adversary)
{
    static const char *const names[ADVERSARY_COUNT] = {
        [ADVERSARY_ROBSON] = "robson",       [ADVERSARY_BEST_FIT] = "best fit",
        [ADVERSARY_FIRST_FIT] = "first fit", [ADVERSARY_SIZE_PLUS_ONE] = "size plus one",
        [ADVERSARY_SURVIVORS] = "survivors", [ADVERSARY_NO_FIT] = "no fit",
        [ADVERSARY_SAWTOOTH] = "sawtooth",   [ADVERSARY_RECORD_STORM] = "record storm",
        [ADVERSARY_STREAMS] = "streams",
    };
    return names[adversary];
}

void
adversary_run(enum adversary adversary, uint64_t live_bytes, uint32_t requests,
              const struct adversary_target *target)
{
    struct run run = {.target = target,
                      .owned = calloc(requests, sizeof *run.owned),
                      .free_ids = calloc(requests, sizeof *run.free_ids),
                      .requests = requests,
                      .left = requests,
                      .live_max = live_bytes};
    if (!run.owned || !run.free_ids)
        abort();
    adversaries[adversary](&run);
    drop_all(&run);
    free(run.owned);
    free(run.free_ids);
}
