/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program that shows a page and does as it is told, so that tests know what the page has:
 * show_page FOLDER NAME RANK WORLD LABELS, and then a command a line on standard input, each
 * answered by a line. A text has '_' for spaces and '\n' as `\x0a`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drystone/live.h>
#include <drystone/sim.h>

#define BLOCKS_MAX 4096u

struct program {
    struct dry_live *live;
    struct dry_sim *sims[DRY_LIVE_SOURCES_MAX];
    struct dry_pool *pools[DRY_LIVE_SOURCES_MAX];
    struct dry_live_detail details[DRY_LIVE_SOURCES_MAX];
};

__attribute__((noreturn)) static void
die(const char *what)
{
    fprintf(stderr, "show_page: %s\n", what);
    exit(1);
}

/* Undo what keeps a text in one word. */
static char *
unpack(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned byte;
        if (sscanf(from, "\\x%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = (char)(*from == '_' ? ' ' : *from);
        }
    }
    *to = '\0';
    return text;
}

static uint64_t
number(void)
{
    uint64_t value;
    if (scanf("%" SCNu64, &value) != 1)
        die("a number is expected");
    return value;
}

static char *
text(char buffer[256])
{
    if (scanf("%255s", buffer) != 1)
        die("a text is expected");
    return unpack(buffer);
}

/* source NAME DEVICE UUID */
static void
add_source(struct program *p)
{
    char name[256], uuid[256];
    uint32_t at;
    text(name);
    int device;
    if (scanf("%d", &device) != 1 ||
        dry_live_add_other(p->live, name, device, &at, NULL) != DRY_OK)
        die("no source");
    if (strcmp(text(uuid), "-") != 0)
        dry_live_set_uuid(p->live, at, uuid);
}

/* Take and give back by chance, and leave holes. */
static void
use_pool(struct dry_pool *pool, uint64_t seed, uint64_t steps)
{
    static uint64_t blocks[BLOCKS_MAX];
    for (uint64_t i = 0; i < steps; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t *block = &blocks[(seed >> 33) % 64];
        if (*block)
            (void)!dry_pool_free(pool, *block);
        *block = 0;
        (void)!dry_pool_alloc(pool, 1 + (seed >> 40) % (1u << 24), seed >> 62, block);
    }
}

/* pool NAME DEVICE CAPACITY SEED STEPS: answered by reserved and allocated bytes */
static void
add_pool(struct program *p)
{
    char name[256];
    uint32_t at;
    text(name);
    uint64_t device = number(), capacity = number(), seed = number(), steps = number();
    struct dry_sim_options of_sim;
    struct dry_pool_options options;
    struct dry_stats stats;
    struct dry_sim *sim;
    struct dry_pool *pool;
    dry_sim_options_init(&of_sim);
    of_sim.capacity_bytes = capacity;
    dry_pool_options_init(&options);
    options.placement = DRY_PLACEMENT_TORCH;
    if (dry_sim_create(&of_sim, &sim, NULL) != DRY_OK)
        die("no device");
    options.device = dry_sim_get_device(sim);
    if (dry_pool_create(&options, &pool, NULL) != DRY_OK ||
        dry_live_add_pool(p->live, name, (int32_t)device, pool, &at, NULL) != DRY_OK)
        die("no pool");
    p->sims[at] = sim;
    p->pools[at] = pool;
    use_pool(pool, seed, steps);
    dry_live_update(p->live);
    dry_pool_get_stats(pool, &stats);
    printf("%" PRId64 " %" PRId64 " ", stats.reserved_bytes.all.current,
           stats.allocated_bytes.all.current);
}

/* figures SOURCE RESERVED ALLOCATED LIMIT RETRIES OOMS */
static void
put_figures(struct program *p)
{
    uint32_t at = (uint32_t)number();
    struct dry_live_figures f = {.reserved = number()};
    f.allocated = f.active = f.requested = number();
    f.limit = number();
    f.retries = number();
    f.ooms = number();
    f.reserved_peak = f.reserved;
    f.allocated_peak = f.allocated;
    f.driver_calls = f.pages_moved = f.driver_time_ns = DRY_LIVE_UNKNOWN;
    if (dry_live_put(p->live, at, &f) != DRY_OK)
        die("no figures");
}

/* lane SOURCE STREAM POOL RESERVED ALLOCATED PENDING RELEASABLE STRANDED HOLE */
static void
put_lane(struct program *p)
{
    uint32_t at = (uint32_t)number();
    struct dry_live_detail *d = &p->details[at];
    struct dry_live_lane *lane = &d->lanes[d->lane_count++];
    lane->stream = number();
    lane->pool.a = number();
    lane->reserved = number();
    lane->allocated = number();
    lane->pending = number();
    lane->releasable = number();
    lane->stranded = number();
    lane->largest_hole = number();
    d->reserved += lane->reserved;
    d->pending += lane->pending;
    d->releasable += lane->releasable;
    d->stranded += lane->stranded;
    if (lane->largest_hole > d->largest_hole)
        d->largest_hole = lane->largest_hole;
    if (dry_live_put_detail(p->live, at, d) != DRY_OK)
        die("no detail");
}

/* line SOURCE BYTES COUNT TEXT */
static void
put_line(struct program *p)
{
    char buffer[256];
    uint32_t at = (uint32_t)number();
    struct dry_live_detail *d = &p->details[at];
    struct dry_live_line *line = &d->lines[d->line_count++];
    line->bytes = number();
    line->count = number();
    text(buffer);
    (void)snprintf(line->text, sizeof line->text, "%.*s", (int)sizeof line->text - 1,
                   buffer);
    if (dry_live_put_detail(p->live, at, d) != DRY_OK)
        die("no line");
}

/* serve RESULT TEXT: wait for a request, and answer; answered by its path */
static void
serve(struct program *p)
{
    char path[DRY_LIVE_PATH_BYTES], buffer[256];
    uint64_t request, result = number();
    text(buffer);
    for (int i = 0; i < 60000; i++, usleep(10000)) {
        if (!dry_live_get_request(p->live, &request, path, sizeof path))
            continue;
        FILE *file = result == 0 ? fopen(path, "w") : NULL;
        if (file)
            (void)fclose(file);
        dry_live_answer(p->live, request, (int64_t)result, buffer);
        printf("%s ", path);
        return;
    }
    printf("nobody ");
}

static void
do_as_told(struct program *p, const char *command)
{
    static const struct {
        const char *name;
        void (*run)(struct program *p);
    } commands[] = {{"source", add_source}, {"pool", add_pool}, {"figures", put_figures},
                    {"lane", put_lane},     {"line", put_line}, {"serve", serve}};
    if (strcmp(command, "crash") == 0)
        _exit(0);
    if (strcmp(command, "start") == 0) {
        if (dry_live_start(p->live, number(), NULL) != DRY_OK)
            die("no thread");
        return;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].name) == 0) {
            commands[i].run(p);
            return;
        }
    die(command);
}

int
main(int argc, char **argv)
{
    static struct program p;
    struct dry_live_options options;
    struct dry_error err;
    char command[32];
    if (argc != 6)
        die("usage: show_page FOLDER NAME RANK WORLD LABELS");
    dry_live_options_init(&options);
    options.folder = argv[1];
    options.name = unpack(argv[2]);
    options.rank = atoi(argv[3]);
    options.world = atoi(argv[4]);
    options.labels = unpack(argv[5]);
    if (dry_live_create(&options, &p.live, &err) != DRY_OK)
        die(err.text);
    printf("%s\n", dry_live_name(p.live));
    fflush(stdout);
    while (scanf("%31s", command) == 1) {
        do_as_told(&p, command);
        puts("done");
        fflush(stdout);
    }
    dry_live_destroy(p.live);
    for (size_t i = 0; i < DRY_LIVE_SOURCES_MAX; i++) {
        dry_pool_destroy(p.pools[i]);
        dry_sim_destroy(p.sims[i]);
    }
    return 0;
}
