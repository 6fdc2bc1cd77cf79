/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PLACE_DEVICE_H
#define TEST_PLACE_DEVICE_H

/*
 * A device before another one: it passes every call on, fails when told, and notes what
 * no place may do to a stream that is being captured. It can lie, so that tests can show
 * that lies are found.
 *
 *     struct place_device device;
 *     place_device_init(&device, dry_sim_get_device(sim));
 *     options.device = place_device_get(&device);
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/device.h>

#define PLACE_STREAMS 8
#define PLACE_EVENTS 4096 /* whose streams are known; later ones are not watched */

/* The streams of every program, by index. */
uint64_t place_stream_id(unsigned index);
/* PLACE_STREAMS: not one of ours. */
unsigned place_stream_index(uint64_t id);

/* Calls that can fail, as bits. */
enum place_call {
    PLACE_CALL_ALLOC = 1,
    PLACE_CALL_RESERVE = 2,
    PLACE_CALL_MAP = 4,
    PLACE_CALL_CREATE_PAGE = 8,
    PLACE_CALL_MAP_PAGES = 16,
    PLACE_CALL_UNMAP_PAGES = 32,
    PLACE_CALL_EVENT_RECORD = 64,
    PLACE_CALL_STREAM_FOLLOW = 128,
    PLACE_CALL_WAIT = 256, /* for an event, or a stream */
    PLACE_CALL_ANY = 511,
};

struct place_device {
    struct dry_device below;
    /* The fail_after-th call among fail_mask fails, and fail_count - 1 after it. */
    uint32_t fail_mask, fail_after, fail_count;
    enum dry_status fail_status; /* of calls that take memory; others say SYSTEM */
    uint64_t refused;            /* calls that failed because they were told to */
    uint64_t full;               /* of them, those that said NO_SPACE */
    uint64_t addresses_left;     /* bytes; UINT64_MAX: without end */
    uint64_t waits;              /* calls that may have moved a stream on */
    uint64_t given_back;         /* calls that gave memory to the device */
    uint32_t captured;           /* streams, as bits; UINT32_MAX: all there are */
    const char *broken;          /* what was done that must not be; NULL: nothing */
    uint8_t event_stream[PLACE_EVENTS];
    bool says_done;   /* a lie: every event has passed */
    bool never_waits; /* a lie: waiting returns at once */
};

void place_device_init(struct place_device *device, struct dry_device below);
struct dry_device place_device_get(struct place_device *device);

#endif
