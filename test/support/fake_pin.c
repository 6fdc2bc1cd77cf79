/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_pin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE UINT64_C(4096)

static void
require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "fake_pin: %s\n", what);
    abort();
}

static void
wait_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000),
                         .tv_nsec = (long)(us % 1000000) * 1000};
    if (us)
        nanosleep(&t, NULL);
}

static enum dry_status
take(void *self, uint64_t bytes, int32_t node, struct dryi_pin_range *range,
     struct dry_error *err)
{
    struct fake_pin *f = self;
    (void)node;
    (void)err;
    wait_us(f->take_us);
    require(bytes > 0, "a range of nothing");
    pthread_mutex_lock(&f->lock);
    uint64_t more = f->is_plain || random_below(&f->random, 3) ? 0 : PAGE * 3;
    uint64_t rounded = (bytes + PAGE - 1) / PAGE * PAGE + more;
    enum dry_status status = DRY_OK;
    if (f->takes++ >= f->refuse_take)
        status = f->take_status;
    else if (rounded > f->left_bytes || f->range_count == FAKE_PIN_RANGES_MAX)
        status = DRY_ERR_NO_SPACE;
    if (status == DRY_OK) {
        uint64_t gap = f->is_plain ? 0 : random_below(&f->random, 3) * 77 * PAGE;
        *range = (struct dryi_pin_range){f->next_address + gap, rounded, f};
        f->next_address += gap + rounded;
        f->left_bytes -= rounded;
        f->taken_bytes += rounded;
        if (f->taken_bytes > f->taken_peak)
            f->taken_peak = f->taken_bytes;
        f->ranges[f->range_count++] = *range;
    }
    pthread_mutex_unlock(&f->lock);
    return status;
}

static void
give(void *self, const struct dryi_pin_range *range)
{
    struct fake_pin *f = self;
    if (f->on_give)
        f->on_give(f->on_give_self, range);
    pthread_mutex_lock(&f->lock);
    size_t i = 0;
    while (i < f->range_count &&
           (f->ranges[i].address != range->address || f->ranges[i].bytes != range->bytes))
        i++;
    require(i < f->range_count, "what is given back was not taken");
    require(range->handle == f, "its handle is another");
    f->ranges[i] = f->ranges[--f->range_count];
    if (range->address + range->bytes == f->next_address)
        f->next_address = range->address; /* addresses come again, as the kernel's do */
    f->left_bytes += range->bytes;
    f->taken_bytes -= range->bytes;
    f->gives++;
    pthread_mutex_unlock(&f->lock);
}

static enum dry_status
event_record(void *self, uint64_t stream, uint64_t *event, struct dry_error *err)
{
    struct fake_pin *f = self;
    (void)err;
    require(stream < FAKE_PIN_STREAMS, "no such stream");
    if (f->on_record)
        f->on_record(f->on_record_self);
    pthread_mutex_lock(&f->lock);
    if (f->records++ == f->refuse_record) {
        pthread_mutex_unlock(&f->lock);
        return DRY_ERR_SYSTEM;
    }
    size_t i = 0;
    while (i < f->event_count && f->events[i].is_live)
        i++;
    if (i == f->event_count) {
        struct fake_pin_event *more =
            realloc(f->events, (f->event_count + 1) * sizeof *more);
        require(more != NULL, "no memory");
        f->events = more;
        f->event_count++;
    }
    f->events[i] = (struct fake_pin_event){stream, f->issued[stream], true};
    *event = i;
    pthread_mutex_unlock(&f->lock);
    return DRY_OK;
}

static int
event_is_done(void *self, uint64_t event)
{
    struct fake_pin *f = self;
    pthread_mutex_lock(&f->lock);
    require(event < f->event_count && f->events[event].is_live, "no such event");
    const struct fake_pin_event *e = &f->events[event];
    f->questions++;
    int is_done = f->is_broken[e->stream] ? -1 : e->position <= f->done[e->stream];
    pthread_mutex_unlock(&f->lock);
    return is_done;
}

static void
event_return(void *self, uint64_t event)
{
    struct fake_pin *f = self;
    pthread_mutex_lock(&f->lock);
    require(event < f->event_count && f->events[event].is_live,
            "an event is returned twice");
    f->events[event].is_live = false;
    f->returns++;
    pthread_mutex_unlock(&f->lock);
}

static uint64_t
available_bytes(void *self, int32_t node)
{
    struct fake_pin *f = self;
    (void)node;
    pthread_mutex_lock(&f->lock);
    uint64_t bytes = f->left_bytes;
    pthread_mutex_unlock(&f->lock);
    return bytes;
}

void
fake_pin_init(struct fake_pin *fake, uint64_t seed)
{
    memset(fake, 0, sizeof *fake);
    fake->pin = (struct dryi_pin){
        .self = fake,
        .take = take,
        .give = give,
        .event_record = event_record,
        .event_is_done = event_is_done,
        .event_return = event_return,
        .available_bytes = available_bytes,
    };
    pthread_mutex_init(&fake->lock, NULL);
    random_init(&fake->random, seed);
    fake->next_address = (UINT64_C(0x7000) << 32) + 5 * PAGE;
    fake->left_bytes = UINT64_C(1) << 45;
    fake->refuse_take = fake->refuse_record = UINT64_MAX;
    fake->take_status = DRY_ERR_SYSTEM;
}

void
fake_pin_finish(struct fake_pin *fake)
{
    require(fake->range_count == 0, "a range was not given back");
    for (size_t i = 0; i < fake->event_count; i++)
        require(!fake->events[i].is_live, "an event was not returned");
    free(fake->events);
    pthread_mutex_destroy(&fake->lock);
}

bool
fake_pin_holds(struct fake_pin *fake, uint64_t address, uint64_t bytes)
{
    bool is_held = false;
    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->range_count && !is_held; i++) {
        const struct dryi_pin_range *r = &fake->ranges[i];
        is_held = address >= r->address && bytes <= r->bytes &&
                  address - r->address <= r->bytes - bytes;
    }
    pthread_mutex_unlock(&fake->lock);
    return is_held;
}
