/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mark keeps a process's state between samples. Marks are found by the page's file name,
 * which identifies a run; process IDs are reused. Marks of pages that are gone are
 * dropped.
 */
#include "live/brink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "live/live_summary.h"

/* hysteresis: share of the threshold below which a rule may fire again */
#define FALL 0.9

struct mark {
    char file_name[sizeof((struct watch_process *)0)->file_name];
    uint64_t guest;
    bool is_over[BRINK_RULES], is_seen, waits;
    unsigned asked; /* snapshots asked for so far */
    uint64_t request;
    char *path; /* path of the last snapshot asked for */
};

struct brink {
    struct brink_options options;
    struct mark *marks;
    size_t count, capacity;
    uint64_t asked; /* snapshots asked for by rules */
};

struct brink *
brink_create(const struct brink_options *options)
{
    struct brink *brink = calloc(1, sizeof *brink);
    if (brink)
        brink->options = *options;
    return brink;
}

void
brink_destroy(struct brink *brink)
{
    if (!brink)
        return;
    for (size_t i = 0; i < brink->count; i++)
        free(brink->marks[i].path);
    free(brink->marks);
    free(brink);
}

/* --- marks -------------------------------------------------------------------------------- */

static struct mark *
find_mark(struct brink *b, const struct watch_process *p)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->marks[i].guest == p->guest &&
            strcmp(b->marks[i].file_name, p->file_name) == 0)
            return &b->marks[i];
    return NULL;
}

static struct mark *
get_mark(struct brink *b, const struct watch_process *p)
{
    struct mark *mark = find_mark(b, p);
    if (mark)
        return mark;
    struct mark *more = grow(b->marks, b->count, &b->capacity, sizeof *more);
    if (!more)
        return NULL;
    b->marks = more;
    mark = &b->marks[b->count++];
    *mark = (struct mark){.guest = p->guest};
    memcpy(mark->file_name, p->file_name, sizeof mark->file_name);
    return mark;
}

static void
drop_unseen(struct brink *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->marks[i].is_seen)
            b->marks[kept++] = b->marks[i];
        else
            free(b->marks[i].path);
    }
    b->count = kept;
}

/* --- snapshots ---------------------------------------------------------------------------- */

#define NAME_BYTES_MAX 64

static void
clean_name(const char *from, char to[NAME_BYTES_MAX + 1])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
    size_t used = 0;
    for (; *from && used < NAME_BYTES_MAX; from++)
        to[used++] = (char)(strchr(plain, *from) ? *from : '_');
    to[used] = '\0';
}

/* Choose a file name that does not exist. NULL: memory ran out. */
static char *
make_path(const char *folder, const struct watch_process *p, struct mark *mark)
{
    char name[NAME_BYTES_MAX + 1], rank[24] = "", *path;
    clean_name(p->name[0] ? p->name : "program", name);
    if (p->program.rank >= 0)
        (void)snprintf(rank, sizeof rank, "-rank%d", (int)p->program.rank);
    size_t capacity = strlen(folder) + sizeof name + sizeof rank + 64;
    path = malloc(capacity);
    while (path) {
        (void)snprintf(path, capacity, "%s/%s%s-%llu-%u.pickle", folder, name, rank,
                       (unsigned long long)live_process_number(p), ++mark->asked);
        if (access(path, F_OK) != 0)
            break;
    }
    return path;
}

/* Ask for a snapshot, and put its path or the reason for a refusal into `event`. False:
   memory ran out. */
static bool
ask(const char *folder, struct watch_process *p, struct mark *mark,
    struct brink_event *event, struct dry_error *err)
{
    char *path = make_path(folder, p, mark);
    if (!path)
        return false;
    free(mark->path);
    mark->path = path;
    if (watch_request(p, path, &mark->request, err) != DRY_OK) {
        event->why = err->text;
        return true;
    }
    mark->waits = true;
    event->path = path;
    return true;
}

static bool
ask_by_rule(struct brink *b, struct watch_process *p, struct mark *mark,
            struct brink_event *event, struct dry_error *err)
{
    if (!b->options.folder)
        return true;
    if (mark->waits) {
        event->why = "a snapshot was asked for already";
        return true;
    }
    if (b->asked >= b->options.at_most) {
        event->why = "as many snapshots as --at-most allows were asked for";
        return true;
    }
    bool is_fine = ask(b->options.folder, p, mark, event, err);
    b->asked += event->path != NULL;
    return is_fine;
}

bool
brink_ask(struct brink *brink, struct watch_process *process, brink_tell *tell,
          void *self)
{
    struct brink_event event = {.process = process, .rule = BRINK_HAND};
    struct dry_error err = {0};
    struct mark *mark = process->state == WATCH_LIVE ? get_mark(brink, process) : NULL;
    bool is_fine = true;
    if (process->state != WATCH_LIVE)
        event.why = "it has no page";
    else if (!mark)
        return false;
    else if (mark->waits)
        event.why = "a snapshot was asked for already";
    else
        is_fine = ask(brink->options.hand, process, mark, &event, &err);
    if (is_fine)
        tell(self, &event);
    return is_fine;
}

static void
hear(struct mark *mark, struct watch_process *p, brink_tell *tell, void *self)
{
    struct dry_live_answer answer = {.result = -1};
    struct brink_event event = {.process = p, .is_answer = true, .path = mark->path};
    bool is_heard = watch_answered(p, mark->request, &answer);
    if (!is_heard && p->state == WATCH_LIVE)
        return;
    mark->waits = false;
    event.result = is_heard ? answer.result : -1;
    event.text = is_heard ? answer.text : "it ended before it answered";
    tell(self, &event);
}

/* --- rules -------------------------------------------------------------------------------- */

static double
get_value(const struct watch_source *s, enum brink_rule rule)
{
    if (rule == BRINK_SHARE)
        return 100 * live_share(s);
    if (!s->rates.is_known)
        return 0;
    return rule == BRINK_RETRIES ? s->rates.retries_per_min
                                 : 60 * s->rates.reserved_per_s;
}

static double
largest_value(const struct watch_process *p, enum brink_rule rule)
{
    double most = 0;
    for (size_t i = 0; i < p->source_count; i++) {
        if (p->sources[i].published.kind == DRY_LIVE_PINNED)
            continue;
        double value = get_value(&p->sources[i], rule);
        most = value > most ? value : most;
    }
    return most;
}

static bool
judge(struct brink *b, struct watch_process *p, struct mark *mark, brink_tell *tell,
      void *self)
{
    bool is_fine = true;
    for (int rule = 0; rule < BRINK_RULES; rule++) {
        double at = b->options.at[rule];
        double value = at > 0 ? largest_value(p, (enum brink_rule)rule) : 0;
        if (value < FALL * at)
            mark->is_over[rule] = false;
        if (at <= 0 || value < at || mark->is_over[rule])
            continue;
        struct dry_error err = {0};
        struct brink_event event = {
            .process = p, .rule = (enum brink_rule)rule, .value = value, .at = at};
        mark->is_over[rule] = true;
        is_fine = ask_by_rule(b, p, mark, &event, &err) && is_fine;
        tell(self, &event);
    }
    return is_fine;
}

bool
brink_check(struct brink *brink, struct watch *watch, const char *wanted,
            brink_tell *tell, void *self)
{
    bool is_fine = true;
    for (size_t i = 0; i < brink->count; i++)
        brink->marks[i].is_seen = false;
    for (size_t i = 0; i < watch->process_count; i++) {
        struct watch_process *p = watch->processes[i];
        bool is_live = p->state == WATCH_LIVE && live_is_wanted(p, wanted);
        struct mark *mark = is_live ? get_mark(brink, p) : find_mark(brink, p);
        is_fine = (mark || !is_live) && is_fine;
        if (!mark)
            continue;
        mark->is_seen = is_live;
        if (mark->waits && p->reader)
            hear(mark, p, tell, self);
        if (is_live)
            is_fine = judge(brink, p, mark, tell, self) && is_fine;
    }
    drop_unseen(brink);
    return is_fine;
}
