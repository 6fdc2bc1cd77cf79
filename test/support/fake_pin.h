/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FAKE_PIN_H
#define TEST_FAKE_PIN_H

/*
 * A pin without memory: ranges are addresses alone, at odd places, some next to each
 * other, some larger than asked for. Streams are counters: work is issued, and done when
 * the test says so. Every call can be refused at an index. It aborts on faults that a
 * real one would suffer from: a range given back twice, an event returned twice, anything
 * left at the end.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/pinned/pin.h"
#include "support/random.h"

#define FAKE_PIN_RANGES_MAX 4096
#define FAKE_PIN_STREAMS 8

struct fake_pin_event {
    uint64_t stream, position;
    bool is_live;
};

struct fake_pin {
    struct dryi_pin pin;
    pthread_mutex_t lock;
    struct random random;
    struct dryi_pin_range ranges[FAKE_PIN_RANGES_MAX];
    size_t range_count;
    uint64_t next_address;
    bool is_plain; /* no gaps, nothing more than was asked for */

    uint64_t left_bytes;             /* bytes that may still be taken */
    uint64_t takes, refuse_take;     /* the n-th call fails, and with it... */
    enum dry_status take_status;     /* ... this */
    uint64_t records, refuse_record; /* the n-th alone fails */
    uint64_t gives, returns, questions;
    uint64_t taken_bytes, taken_peak; /* now */

    uint64_t issued[FAKE_PIN_STREAMS], done[FAKE_PIN_STREAMS];
    bool is_broken[FAKE_PIN_STREAMS]; /* its events are lost */
    struct fake_pin_event *events;
    size_t event_count;

    /* Called before a range goes; NULL: nobody. */
    void (*on_give)(void *self, const struct dryi_pin_range *range);
    void *on_give_self;
    /* Called within a request for an event, as if another thread came by; NULL: nobody. */
    void (*on_record)(void *self);
    void *on_record_self;
    uint64_t take_us; /* how long a take lasts */
};

void fake_pin_init(struct fake_pin *fake, uint64_t seed);
/* End, and abort if a range or an event is left. */
void fake_pin_finish(struct fake_pin *fake);
/* Return whether one range holds all of [address, address + bytes). */
bool fake_pin_holds(struct fake_pin *fake, uint64_t address, uint64_t bytes);

#endif
