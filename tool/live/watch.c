/* SPDX-License-Identifier: Apache-2.0 */

/* Processes with a page are kept between samples, because their readers and trends have
   state. All others are listed again each time. */
#include "live/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/now.h"

#define GUEST_FOLDER "/proc/%llu/root/dev/shm"
#define GUEST_PATH_BYTES 64

/* clang-format off */
#define KNOWN(known, type, member) DRY_KNOWN_##known, offsetof(type, member), false
#define DEVICE(key, kind, unit, member, meaning)                                         \
    DRY_FIELD_OF(struct watch_device, key, kind, unit, member,                           \
                 KNOWN(UNLESS_MAX, struct watch_device, member), meaning)
#define SOURCE(key, kind, unit, member, known, deciding, meaning)                        \
    DRY_FIELD_OF(struct watch_source, key, kind, unit, member,                           \
                 KNOWN(known, struct watch_source, deciding), meaning)

static const struct dry_field devices[] = {
    DEVICE("memory_used_bytes", U64, BYTES, used, "bytes in use on the device, by the driver"),
    DEVICE("memory_size_bytes", U64, BYTES, total, "bytes of the device, by the driver"),
    DEVICE("processes", SIZE, COUNT, process_count, "processes that the driver lists"),
};
const struct dry_fields watch_device_fields = {devices, sizeof devices / sizeof *devices};

static const struct dry_field sources[] = {
    SOURCE("update_age_seconds", REAL, SECONDS, age_s, IF_ABOVE_0, published.updates,
           "time since the program wrote its figures"),
    SOURCE("limit_bytes", U64, BYTES, limit, UNLESS_MAX, limit,
           "bytes that may be reserved at most: the allocator's limit, else the device's memory"),
    SOURCE("room_bytes", U64, BYTES, left_bytes, UNLESS_MAX, left_bytes,
           "bytes that may still be reserved, by the limit and by what is free on the device"),
    SOURCE("growth_per_s", REAL, NONE, rates.reserved_per_s, IF, rates.is_known, "growth in a second"),
    SOURCE("retries_per_min", REAL, NONE, rates.retries_per_min, IF, rates.is_known, "retries in a minute"),
    SOURCE("ooms_per_min", REAL, NONE, rates.ooms_per_min, IF, rates.is_known, "refusals in a minute"),
    SOURCE("time_to_limit_seconds", REAL, SECONDS, seconds_left, ALWAYS, seconds_left,
           "time until the limit is reached at the last minute's rate; absent if it is not in sight"),
};
const struct dry_fields watch_source_fields = {sources, sizeof sources / sizeof *sources};
/* clang-format on */

/* --- processes ---------------------------------------------------------------------------- */

static void
drop(struct watch_process *p)
{
    if (!p)
        return;
    dry_live_close(p->reader);
    free(p->sources);
    free(p->uses);
    free(p);
}

static struct watch_process *
add(struct watch *w, enum watch_state state)
{
    if (w->process_count == WATCH_PROCESSES_MAX) {
        w->left_out++;
        return NULL;
    }
    struct watch_process **more =
        grow(w->processes, w->process_count, &w->process_capacity, sizeof *more);
    if (!more)
        return NULL;
    w->processes = more;
    struct watch_process *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->state = state;
    w->processes[w->process_count++] = p;
    return p;
}

static void
drop_if(struct watch *w, bool (*is_over)(const struct watch_process *p))
{
    size_t kept = 0;
    for (size_t i = 0; i < w->process_count; i++)
        if (is_over(w->processes[i]))
            drop(w->processes[i]);
        else
            w->processes[kept++] = w->processes[i];
    w->process_count = kept;
}

static bool
is_not_kept(const struct watch_process *p)
{
    return p->state != WATCH_LIVE;
}

static struct watch_process *
find_process(const struct watch *w, uint64_t process)
{
    for (size_t i = 0; process && i < w->process_count; i++)
        if (w->processes[i]->process == process)
            return w->processes[i];
    return NULL;
}

/* Read a process's name from /proc/PID/comm; "" if the process is gone. */
static void
name_process(uint64_t process, char *text, size_t left_bytes)
{
    char path[64];
    text[0] = '\0';
    (void)snprintf(path, sizeof path, "/proc/%llu/comm", (unsigned long long)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(text, (int)left_bytes, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)fclose(file);
}

static bool
add_use(struct watch_process *p, size_t device, uint64_t bytes)
{
    struct watch_use *more = grow(p->uses, p->use_count, &p->use_capacity, sizeof *more);
    if (!more)
        return false;
    p->uses = more;
    p->uses[p->use_count++] = (struct watch_use){device, bytes};
    return true;
}

/* --- pages -------------------------------------------------------------------------------- */

static void
take_error(struct watch_process *p, const struct dry_error *err)
{
    p->state = WATCH_WRONG;
    (void)snprintf(p->why, sizeof p->why, "%s", err->text);
}

struct listing {
    struct watch *watch;
    const char *folder; /* owned by the watch, or by the process that gets a page in it */
    uint64_t guest;     /* process through which this /dev/shm is seen; 0: our own */
    bool is_short;      /* memory ran out */
};

static struct watch_process *
find_page(const struct watch *w, const char *name, uint64_t guest)
{
    for (size_t i = 0; i < w->process_count; i++) {
        struct watch_process *p = w->processes[i];
        if (p->guest == guest && strcmp(p->file_name, name) == 0)
            return p;
    }
    return NULL;
}

/* Tell whether a file is known through another process of the same container. */
static bool
is_known_file(const struct watch *w, uint64_t disk, uint64_t inode)
{
    for (size_t i = 0; inode && i < w->process_count; i++) {
        const struct watch_process *p = w->processes[i];
        if (p->file_name[0] && p->file_disk == disk && p->file_inode == inode)
            return true;
    }
    return false;
}

/* Stat a page file. All zeros if the file is gone. */
static struct stat
ask_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat facts;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path || lstat(path, &facts) != 0)
        return (struct stat){0};
    return facts;
}

static enum dry_status
see_page(void *self, const char *name)
{
    struct listing *l = self;
    struct dry_error err = {0};
    if (find_page(l->watch, name, l->guest))
        return DRY_OK;
    struct stat facts = ask_file(l->folder, name);
    if (is_known_file(l->watch, facts.st_dev, facts.st_ino))
        return DRY_OK;
    struct watch_process *p = add(l->watch, WATCH_LIVE);
    if (!p) {
        l->is_short = true;
        return DRY_OK;
    }
    p->guest = l->guest;
    p->file_disk = facts.st_dev;
    p->file_inode = facts.st_ino;
    (void)snprintf(p->file_name, sizeof p->file_name, "%s", name);
    if (dry_live_open(l->folder, name, NULL, &p->reader, &err) != DRY_OK) {
        take_error(p, &err);
        return DRY_OK;
    }
    p->program = *dry_live_get_program(p->reader);
    (void)snprintf(p->name, sizeof p->name, "%s", p->program.name);
    return DRY_OK;
}

static bool
has_room(struct watch_process *p, size_t count)
{
    if (count <= p->source_capacity)
        return true;
    struct watch_source *more = realloc(p->sources, count * sizeof *more);
    if (!more)
        return false;
    memset(more + p->source_capacity, 0, (count - p->source_capacity) * sizeof *more);
    p->sources = more;
    p->source_capacity = count;
    return true;
}

/* Match a page's device by UUID, because programs may renumber devices
   (CUDA_VISIBLE_DEVICES). Without a UUID, use the number. */
static size_t
find_device(const struct watch *w, const struct dry_live_source *page)
{
    for (size_t i = 0; page->uuid[0] && i < w->device_count; i++)
        if (strcmp(w->devices[i].uuid, page->uuid) == 0)
            return i;
    bool is_counted =
        !page->uuid[0] && page->device >= 0 && (size_t)page->device < w->device_count;
    return is_counted ? (size_t)page->device : WATCH_NO_DEVICE;
}

static uint64_t
subtract(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Compute a source's limit and the bytes left. Either, if unknown, is WATCH_UNKNOWN, the
   largest number. */
static void
judge(const struct watch *w, struct watch_source *s)
{
    const struct dry_live_figures *f = &s->published.figures;
    uint64_t total = WATCH_UNKNOWN, left = WATCH_UNKNOWN;
    s->device = find_device(w, &s->published);
    if (s->device != WATCH_NO_DEVICE) {
        const struct watch_device *device = &w->devices[s->device];
        total = device->total;
        if (total != WATCH_UNKNOWN && device->used != WATCH_UNKNOWN)
            left = subtract(total, device->used);
    }
    s->limit = least(f->limit, total);
    s->left_bytes =
        s->limit == WATCH_UNKNOWN ? left : least(subtract(s->limit, f->reserved), left);
    s->age_s = (double)subtract(w->now_ns, s->published.updated_ns) / 1e9;
    struct trend_sample sample = {w->now_ns, f->reserved, f->retries, f->ooms};
    trend_add(&s->trend, &sample);
    trend_rates(&s->trend, &s->rates);
    s->seconds_left = s->left_bytes == WATCH_UNKNOWN
                          ? -1
                          : trend_seconds_left(&s->rates, s->left_bytes);
}

/* Read all sources of a page. A source that is being written on every try keeps its
   previous values. */
static bool
read_sources(struct watch *w, struct watch_process *p)
{
    struct dry_error err = {0};
    uint32_t count = dry_live_count(p->reader);
    if (!has_room(p, count))
        return false;
    p->source_count = count;
    for (uint32_t i = 0; i < count; i++) {
        enum dry_status status =
            dry_live_read(p->reader, i, &p->sources[i].published, &err);
        if (status != DRY_OK && status != DRY_ERR_CANCELLED) {
            take_error(p, &err);
            p->source_count = i; /* the remaining sources were not judged */
            return true;
        }
        judge(w, &p->sources[i]);
    }
    return true;
}

static bool
read_page(struct watch *w, struct watch_process *p)
{
    uint64_t process = 0;
    bool is_alive = dry_live_is_alive(p->reader, &process);
    if (is_alive)
        p->process = process;
    bool is_done = read_sources(w, p);
    if (!is_alive && p->state == WATCH_LIVE)
        p->state = WATCH_ENDED;
    if (!is_alive)
        /* fails if another watch removed the file first */
        (void)!dry_live_remove(p->reader, NULL);
    return is_done;
}

static bool
read_pages(struct watch *w)
{
    bool is_done = true;
    for (size_t i = 0; i < w->process_count; i++)
        if (w->processes[i]->reader)
            is_done = read_page(w, w->processes[i]) && is_done;
    return is_done;
}

static bool
list_pages(struct watch *w, const char *folder, uint64_t guest)
{
    struct listing l = {.watch = w, .folder = folder, .guest = guest};
    /* fails if the folder is missing: there are no pages then */
    (void)!dry_live_list(folder, see_page, &l, NULL);
    return !l.is_short;
}

/* --- the driver --------------------------------------------------------------------------- */

static void
copy_devices(struct watch *w)
{
    for (size_t i = 0; i < w->device_count; i++) {
        const struct nvml_device *from = nvml_device(w->nvml, i);
        struct watch_device *to = &w->devices[i];
        memcpy(to->name, from->name, sizeof to->name);
        memcpy(to->uuid, from->uuid, sizeof to->uuid);
        to->total = from->total;
        to->used = from->used;
        to->process_count = from->process_count;
    }
}

static bool
is_same_folder(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* List the pages of a process in a container through /proc/PID/root; needs root. */
static bool
list_guest_pages(struct watch *w, uint64_t process)
{
    char folder[GUEST_PATH_BYTES];
    (void)snprintf(folder, sizeof folder, GUEST_FOLDER, (unsigned long long)process);
    if (is_same_folder(folder, w->options.folder))
        return true;
    return list_pages(w, folder, process);
}

static bool
see_use(struct watch *w, size_t device, const struct nvml_process *use)
{
    struct watch_process *p = find_process(w, use->process);
    if (!p) {
        p = add(w, WATCH_SEEN);
        if (!p)
            return false;
        p->process = use->process;
        name_process(use->process, p->name, sizeof p->name);
    }
    return add_use(p, device, use->bytes);
}

/* Find pages in containers before the driver's uses are assigned to processes: a page
   found here belongs to one of the driver's processes. */
static bool
find_guests(struct watch *w)
{
    bool is_done = true;
    for (size_t i = 0; i < w->device_count; i++) {
        const struct nvml_device *device = nvml_device(w->nvml, i);
        for (size_t n = 0; n < device->process_count; n++)
            if (!find_process(w, device->processes[n].process))
                is_done = list_guest_pages(w, device->processes[n].process) && is_done;
    }
    return is_done;
}

static bool
see_uses(struct watch *w)
{
    bool is_done = true;
    for (size_t i = 0; i < w->process_count; i++)
        w->processes[i]->use_count = 0;
    for (size_t i = 0; i < w->device_count; i++) {
        const struct nvml_device *device = nvml_device(w->nvml, i);
        for (size_t n = 0; n < device->process_count; n++)
            is_done = see_use(w, i, &device->processes[n]) && is_done;
    }
    return is_done;
}

/* --- the watch ---------------------------------------------------------------------------- */

struct watch *
watch_create(const struct watch_options *options)
{
    struct watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->options = *options;
    w->no_driver = "the driver is not asked";
    if (options->has_driver)
        w->nvml = nvml_open(&w->no_driver);
    if (!w->nvml)
        return w;
    w->no_driver = NULL;
    w->device_count = nvml_count(w->nvml);
    w->devices = calloc(w->device_count + 1, sizeof *w->devices);
    if (!w->devices) {
        watch_destroy(w);
        return NULL;
    }
    return w;
}

void
watch_destroy(struct watch *watch)
{
    if (!watch)
        return;
    for (size_t i = 0; i < watch->process_count; i++)
        drop(watch->processes[i]);
    free(watch->processes);
    free(watch->devices);
    nvml_close(watch->nvml);
    free(watch);
}

uint64_t
watch_reserved(const struct watch_process *process)
{
    uint64_t by_source = 0, by_driver = 0;
    for (size_t i = 0; i < process->source_count; i++)
        if (process->sources[i].published.kind != DRY_LIVE_PINNED)
            by_source += process->sources[i].published.figures.reserved;
    for (size_t i = 0; i < process->use_count; i++)
        if (process->uses[i].bytes != WATCH_UNKNOWN)
            by_driver += process->uses[i].bytes;
    return process->source_count ? by_source : by_driver;
}

static int
compare(const void *a, const void *b)
{
    const struct watch_process *x = *(struct watch_process *const *)a;
    const struct watch_process *y = *(struct watch_process *const *)b;
    uint64_t of_x = watch_reserved(x), of_y = watch_reserved(y);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return strcmp(x->file_name, y->file_name);
}

bool
watch_sample(struct watch *watch)
{
    watch->now_ns = (uint64_t)now_ns(CLOCK_BOOTTIME);
    watch->left_out = 0;
    drop_if(watch, is_not_kept);
    if (watch->nvml) {
        nvml_sample(watch->nvml);
        copy_devices(watch);
    }
    bool is_done = list_pages(watch, watch->options.folder, 0);
    is_done = read_pages(watch) && is_done;
    size_t known = watch->process_count;
    is_done = find_guests(watch) && is_done;
    for (size_t i = known; i < watch->process_count; i++)
        if (watch->processes[i]->reader)
            is_done = read_page(watch, watch->processes[i]) && is_done;
    is_done = see_uses(watch) && is_done;
    if (watch->process_count)
        qsort(watch->processes, watch->process_count, sizeof *watch->processes, compare);
    return is_done;
}

/* --- requests ----------------------------------------------------------------------------- */

enum dry_status
watch_request(struct watch_process *process, const char *path, uint64_t *number,
              struct dry_error *err)
{
    return dry_live_request(process->reader, path, number, err);
}

bool
watch_answered(struct watch_process *process, uint64_t number,
               struct dry_live_answer *answer)
{
    return dry_live_get_answer(process->reader, answer, NULL) == DRY_OK &&
           answer->number >= number;
}
