/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded CONF CAPACITY_MIB FILE: the calls of a recorded program on PyTorch's own allocator, as
 * `drystone replay` makes them; its statistics as one object of JSON, with the keys of PyTorch's
 * memory_stats(). Ends at the first request that fails, as a replay does.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drystone/sim.h>
#include <drystone/stats.h>
#include <drystone/trace.h>

#include "base/map.h"
#include "base/memory.h"
#include "native.h"

#define MIB (UINT64_C(1) << 20)
#define STREAMS_MAX 64

struct run {
    const struct dry_trace_view *view;
    struct dry_sim *sim;
    struct dryi_map live; /* address in the record: event of its alloc */
    uint64_t *addresses;  /* by event */
    uint64_t streams[STREAMS_MAX];
    size_t stream_count;
};

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    (void)err;
    ssize_t count = read(*(int *)self, buffer, capacity);
    native_need(count >= 0, "the file cannot be read");
    *got = (size_t)count;
    return DRY_OK;
}

/* The record's streams have numbers that PyTorch takes for its own. */
static uint64_t
stream_of(struct run *r, size_t event)
{
    uint64_t stream = r->view->lanes[r->view->lane[event]].stream;
    size_t i = 0;
    while (i < r->stream_count && r->streams[i] != stream)
        i++;
    if (i == r->stream_count) {
        native_need(i < STREAMS_MAX, "there are too many streams");
        r->streams[r->stream_count++] = stream;
    }
    return stream ? (i + 1) * 4096 : 0;
}

static int
call_alloc(struct run *r, size_t event)
{
    if (native_alloc(r->view->size[event], stream_of(r, event), &r->addresses[event]) !=
        DRY_OK)
        return 0;
    native_need(dryi_map_put(&r->live, r->view->addr[event], (uint32_t)event),
                "no memory");
    return 1;
}

/* 0: the request failed. */
static int
call(struct run *r, size_t event)
{
    const uint32_t *alloc = dryi_map_find(&r->live, r->view->addr[event]);
    switch ((enum dry_action)r->view->action[event]) {
    case DRY_ACTION_ALLOC:
        return r->view->size[event] == 0 || call_alloc(r, event);
    case DRY_ACTION_FREE_REQUESTED:
        if (alloc) {
            native_free(r->addresses[*alloc]);
            dryi_map_take(&r->live, r->view->addr[event]);
        }
        return 1;
    case DRY_ACTION_RECORD_STREAM:
        if (alloc)
            native_record_stream(r->addresses[*alloc], stream_of(r, event));
        return 1;
    case DRY_ACTION_STREAM_END:
        dry_sim_complete_stream(r->sim, stream_of(r, event));
        return 1;
    case DRY_ACTION_EMPTY_CACHE:
        native_empty_cache();
        return 1;
    default:
        return 1; /* what followed from the calls */
    }
}

static void
print(void *self, const char *key, int64_t value)
{
    int *count = self;
    printf("%s\"%s\": %" PRId64, (*count)++ ? ",\n" : "{", key, value);
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: recorded CONF CAPACITY_MIB FILE\n", stderr);
        return 2;
    }
    int fd = open(argv[3], O_RDONLY | O_CLOEXEC), count = 0;
    native_need(fd >= 0, argv[3]);
    struct dry_source source = {read_file, &fd};
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK)
        native_need(0, err.text);
    struct run r = {.view = dry_trace_get_view(trace)};
    struct dry_memory memory = dryi_memory_or_default(NULL);
    dryi_map_init(&r.live, &memory);
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.capacity_bytes = strtoull(argv[2], NULL, 10) * MIB;
    native_need(dry_sim_create(&options, &r.sim, NULL) == DRY_OK, "no device");
    native_set_device(dry_sim_get_device(r.sim));
    native_need(native_start(argv[1]) == DRY_OK, native_last_text());
    r.addresses = calloc(r.view->event_count + 1, sizeof *r.addresses);
    native_need(r.addresses != NULL, "no memory");
    for (size_t i = 0; i < r.view->event_count && call(&r, i); i++)
        ;
    struct dry_stats stats;
    memset(&stats, 0, sizeof stats);
    native_get_stats(&stats);
    dry_stats_visit(&stats, print, &count);
    puts("}");
    return 0;
}
