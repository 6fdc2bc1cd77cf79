/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_offline EFFORT FILE...: measure how near the offline packer comes to the floor.
 *
 * A file is any trace that the library reads. One line of JSON a file: lives, floor and
 * height in bytes, their ratio, the method and the seconds of the packing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <drystone/trace.h>

#include "base/map.h"
#include "place/offline/offline.h"
#include "support/find_clash.h"

struct lives {
    struct dryi_life *lives;
    size_t count;
};

static _Noreturn void
die(const char *path, const char *what)
{
    fprintf(stderr, "bench_offline: %s: %s\n", path, what);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static enum dry_status
read_bytes(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    (void)err;
    *got = fread(buffer, 1, capacity, self);
    return DRY_OK;
}

/* Count time in events, unless the file gives lifetimes. */
static struct lives
lives_of(const struct dry_trace_view *v, const char *path)
{
    struct lives l = {.lives = calloc(v->event_count + 1, sizeof *l.lives)};
    struct dryi_map map;
    dryi_map_init(&map, NULL);
    for (size_t i = 0; l.lives && i < v->event_count; i++) {
        bool is_timed = v->kind == DRY_TRACE_LIFETIMES;
        uint64_t time = is_timed ? (uint64_t)v->time_us[i] : i;
        uint32_t *life = dryi_map_find(&map, v->addr[i]);
        if ((v->action[i] == DRY_ACTION_ALLOC || v->action[i] == DRY_ACTION_LIVE) &&
            v->size[i] > 0) {
            l.lives[l.count] = (struct dryi_life){time, v->event_count, v->size[i]};
            if (!dryi_map_put(&map, v->addr[i], (uint32_t)l.count++))
                die(path, "no memory");
        } else if (life && (v->action[i] == DRY_ACTION_FREE_REQUESTED ||
                            v->action[i] == DRY_ACTION_FREE_COMPLETED)) {
            l.lives[*life].end = time;
            dryi_map_take(&map, v->addr[i]);
        }
    }
    dryi_map_finish(&map);
    if (!l.lives)
        die(path, "no memory");
    return l;
}

static struct lives
read_lives(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die(path, strerror(errno));
    struct dry_source source = {read_bytes, file};
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK)
        die(path, err.text);
    struct lives lives = lives_of(dry_trace_get_view(trace), path);
    dry_trace_destroy(trace);
    fclose(file);
    return lives;
}

static void
measure(const char *path, uint64_t effort)
{
    struct lives l = read_lives(path);
    uint64_t *offsets = calloc(l.count + 1, sizeof *offsets);
    struct dryi_packing_options options = {.effort = effort};
    struct dryi_packing packing;
    struct dry_error err;
    if (!offsets)
        die(path, "no memory");
    double begin = now();
    if (dryi_offline_pack(l.lives, l.count, &options, offsets, &packing, &err) != DRY_OK)
        die(path, err.text);
    double seconds = now() - begin;
    if (find_clash(l.lives, l.count, offsets).is_found)
        die(path, "the packing is not sound");
    const char *name = strrchr(path, '/');
    printf("{\"file\":\"%s\",\"lives\":%zu,\"floor\":%" PRIu64 ",\"height\":%" PRIu64
           ",\"ratio\":%.6f,\"optimal\":%s,\"method\":\"%s\",\"seconds\":%.3f}\n",
           name ? name + 1 : path, l.count, packing.floor, packing.height,
           packing.floor ? (double)packing.height / (double)packing.floor : 1.0,
           packing.is_optimal ? "true" : "false", packing.method, seconds);
    fflush(stdout);
    free(offsets);
    free(l.lives);
}

int
main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "bench_offline EFFORT FILE...\n");
        return 2;
    }
    uint64_t effort = strtoull(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++)
        measure(argv[i], effort);
    return 0;
}
