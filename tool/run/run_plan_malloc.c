/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Choose the malloc, and set it up.
 *
 * Allocating, filling and freeing a 32 MiB tensor costs page faults, not malloc time. So
 * keeping pages and using huge pages help. Measured times relative to glibc's default:
 * glibc with raised thresholds 1/10; tcmalloc 1/11; jemalloc that never returns memory
 * 1/11; jemalloc with a decay of 30 s and thp:always 1/6. No gain: jemalloc with the
 * commonly used options, jemalloc with a decay of 30 s alone, and mimalloc 2.0.
 *
 * jemalloc 5.3.0 is not chosen automatically: PyTorch users reported a large slowdown
 * against 5.2.1 (jemalloc issue 2395), whose cause is unknown.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "run/run_plan.h"

struct malloc_plan {
    struct run_plan *plan;
    const struct run_options *options;
    const struct run_machine *machine;
    struct run_refusal *refusal;
};

static const char preload[] = "LD_PRELOAD", tunables[] = "GLIBC_TUNABLES",
                  malloc_conf[] = "MALLOC_CONF";

static const char *
profile_name(enum run_profile profile)
{
    static const char *const names[] = {[RUN_BALANCED] = "balanced",
                                        [RUN_THROUGHPUT] = "throughput",
                                        [RUN_MANY_WORKERS] = "many-workers"};
    return names[profile];
}

/* Add a variable of the profile; a value that is set already is kept. */
static void
add_variable(const struct malloc_plan *p, const char *name, const char *value)
{
    const char *is_set = run_variable(name);
    run_plan_add(p->plan, RUN_WHAT_VARIABLE, is_set ? RUN_KEPT : RUN_SET, name,
                 is_set ? is_set : value, is_set ? "set already" : "profile %s",
                 profile_name(p->options->profile));
}

/* --- glibc -------------------------------------------------------------------------------- */

struct text {
    char bytes[RUN_VALUE_MAX];
    size_t used;
    bool is_full;
};

__attribute__((format(printf, 2, 3))) static void
append(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t left = sizeof text->bytes - text->used;
    int n = vsnprintf(text->bytes + text->used, left, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= left) {
        text->bytes[text->used] = '\0';
        text->is_full = true;
        return;
    }
    text->used += (size_t)n;
}

/* Tell whether "name=..." occurs in a colon-separated list of tunables. */
static bool
has_tunable(const char *set, const char *name)
{
    size_t n = strlen(name);
    while (set && *set) {
        if (strncmp(set, name, n) == 0 && set[n] == '=')
            return true;
        set += strcspn(set, ":");
        set += *set == ':';
    }
    return false;
}

struct tunable {
    const char *name, *alias; /* older environment variable for the same setting */
    const char *value;
};

static void
append_tunable(struct text *to, const struct tunable *t, bool *adds)
{
    if (has_tunable(run_variable(tunables), t->name) ||
        (t->alias && run_variable(t->alias)))
        return;
    append(to, "%s%s=%s", to->used ? ":" : "", t->name, t->value);
    *adds = true;
}

/*
 * Plan glibc's thresholds. glibc maps and unmaps each block of at least mmap_threshold
 * bytes, and returns the heap's free end when that exceeds trim_threshold bytes. Raising
 * both keeps pages of smaller blocks.
 */
static void
plan_tunables(const struct malloc_plan *p)
{
    static const struct tunable of_profile[][2] = {
        [RUN_BALANCED] = {{"glibc.malloc.mmap_threshold", "MALLOC_MMAP_THRESHOLD_",
                           "268435456"},
                          {"glibc.malloc.trim_threshold", "MALLOC_TRIM_THRESHOLD_",
                           "268435456"}},
        [RUN_THROUGHPUT] = {{"glibc.malloc.mmap_threshold", "MALLOC_MMAP_THRESHOLD_",
                             "1073741824"},
                            {"glibc.malloc.trim_threshold", "MALLOC_TRIM_THRESHOLD_",
                             "1073741824"}},
        [RUN_MANY_WORKERS] = {{"glibc.malloc.arena_max", "MALLOC_ARENA_MAX", "4"}},
    };
    static const struct tunable huge = {"glibc.malloc.hugetlb", NULL, "1"};
    const char *is_set = run_variable(tunables);
    struct text text = {.used = 0};
    bool adds = false;
    if (is_set)
        append(&text, "%s", is_set);
    const struct tunable *t = of_profile[p->options->profile];
    for (size_t i = 0; i < 2 && t[i].name; i++)
        append_tunable(&text, &t[i], &adds);
    if (p->plan->thp == RUN_THP_ALWAYS && p->machine->glibc_minor >= 35)
        append_tunable(&text, &huge, &adds);
    if (text.is_full)
        run_plan_add(p->plan, RUN_WHAT_NOTE, RUN_LEFT, tunables, "",
                     "what is set already is too long");
    else if (!adds)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_KEPT, tunables, is_set ? is_set : "",
                     "all of it is set already");
    else
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, tunables, text.bytes,
                     "profile %s%s", profile_name(p->options->profile),
                     is_set ? "; what was set comes first" : "");
}

/* --- the others --------------------------------------------------------------------------- */

static void
plan_jemalloc(const struct malloc_plan *p)
{
    static const char *const of_profile[] = {
        [RUN_BALANCED] = "oversize_threshold:1,background_thread:true,metadata_thp:auto,"
                         "dirty_decay_ms:30000,muzzy_decay_ms:30000",
        [RUN_THROUGHPUT] = "oversize_threshold:1,background_thread:true,"
                           "metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1",
        [RUN_MANY_WORKERS] = "narenas:4,dirty_decay_ms:0",
    };
    char text[RUN_VALUE_MAX];
    snprintf(text, sizeof text, "%s%s", of_profile[p->options->profile],
             p->plan->thp == RUN_THP_ALWAYS  ? ",thp:always"
             : p->plan->thp == RUN_THP_NEVER ? ",thp:never"
                                             : "");
    add_variable(p, malloc_conf, text);
}

static void
plan_tcmalloc(const struct malloc_plan *p)
{
    if (p->options->profile == RUN_THROUGHPUT)
        add_variable(p, "TCMALLOC_RELEASE_RATE", "0");
    if (p->options->profile == RUN_MANY_WORKERS) {
        add_variable(p, "TCMALLOC_RELEASE_RATE", "10");
        add_variable(p, "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "16777216");
    }
    if (p->plan->thp == RUN_THP_ALWAYS && p->machine->thp_mode == RUN_THP_MODE_ADVISED)
        run_plan_add(p->plan, RUN_WHAT_NOTE, RUN_LEFT, "malloc's pages", "",
                     "tcmalloc asks for no huge ones, the machine gives none unasked");
}

static void
plan_mimalloc(const struct malloc_plan *p)
{
    if (p->options->profile == RUN_THROUGHPUT)
        add_variable(p, "MIMALLOC_PURGE_DELAY", "-1");
    else if (p->options->profile == RUN_BALANCED)
        add_variable(p, "MIMALLOC_PURGE_DELAY", "10000");
}

static void
set_up(const struct malloc_plan *p, enum run_malloc kind)
{
    p->plan->malloc = kind;
    if (kind == RUN_MALLOC_GLIBC)
        plan_tunables(p);
    else if (kind == RUN_MALLOC_JEMALLOC)
        plan_jemalloc(p);
    else if (kind == RUN_MALLOC_TCMALLOC)
        plan_tcmalloc(p);
    else if (kind == RUN_MALLOC_MIMALLOC)
        plan_mimalloc(p);
}

/* --- which -------------------------------------------------------------------------------- */

/* Find the first malloc in LD_PRELOAD, which blanks and colons separate. */
static enum run_malloc
find_preloaded(char path[RUN_PATH_MAX])
{
    const char *at = run_variable(preload);
    while (at && *at) {
        size_t length = strcspn(at, ": ");
        enum run_malloc kind = run_malloc_of_path(at, length);
        if (kind != RUN_MALLOC_NONE && length < RUN_PATH_MAX) {
            memcpy(path, at, length);
            path[length] = '\0';
            return kind;
        }
        at += length;
        at += *at != '\0';
    }
    return RUN_MALLOC_NONE;
}

static void
preload_library(const struct malloc_plan *p, enum run_malloc kind, const char *reason)
{
    const struct run_library *library = &p->machine->libraries[kind];
    const char *is_set = run_variable(preload);
    char text[RUN_VALUE_MAX];
    int n = snprintf(text, sizeof text, "%s%s%s", is_set ? is_set : "", is_set ? ":" : "",
                     library->path);
    if (n < 0 || (size_t)n >= sizeof text) {
        run_plan_add(p->plan, RUN_WHAT_NOTE, RUN_LEFT, preload, "",
                     "what is set already is too long");
        return;
    }
    run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, preload, text, "%s%s%s%s",
                 run_malloc_name(kind), library->version[0] ? " " : "", library->version,
                 reason);
    p->plan->is_malloc_preloaded = true;
    memcpy(p->plan->malloc_path, library->path, sizeof p->plan->malloc_path);
    set_up(p, kind);
}

static bool
is_there(const struct malloc_plan *p, enum run_malloc kind)
{
    return p->machine->libraries[kind].path[0] != '\0';
}

/* Tell whether a library is jemalloc 5.3.0, see above. */
static bool
is_doubtful(const struct malloc_plan *p, enum run_malloc kind)
{
    return kind == RUN_MALLOC_JEMALLOC &&
           strcmp(p->machine->libraries[kind].version, "5.3.0") == 0;
}

static void
choose(const struct malloc_plan *p)
{
    static const enum run_malloc order[][2] = {
        [RUN_BALANCED] = {RUN_MALLOC_JEMALLOC, RUN_MALLOC_TCMALLOC},
        [RUN_THROUGHPUT] = {RUN_MALLOC_JEMALLOC, RUN_MALLOC_TCMALLOC},
        [RUN_MANY_WORKERS] = {RUN_MALLOC_JEMALLOC, RUN_MALLOC_GLIBC},
    };
    const enum run_malloc *kinds = order[p->options->profile];
    bool is_skipped = is_doubtful(p, RUN_MALLOC_JEMALLOC);
    for (size_t i = 0; i < 2; i++) {
        if (!is_there(p, kinds[i]) || is_doubtful(p, kinds[i]))
            continue;
        preload_library(p, kinds[i],
                        is_skipped ? "; not jemalloc 5.3.0, which may be slow" : "");
        return;
    }
    if (p->machine->glibc_minor == 0) {
        run_plan_add(p->plan, RUN_WHAT_NOTE, RUN_LEFT, "malloc", "",
                     "no library was found, and the C library is not glibc");
        return;
    }
    run_plan_add(p->plan, RUN_WHAT_NOTE, RUN_LEFT, "malloc", "glibc", "%s",
                 is_skipped ? "not jemalloc 5.3.0, which may be slow with PyTorch"
                 : p->options->profile == RUN_MANY_WORKERS
                     ? "no jemalloc was found"
                     : "neither jemalloc nor tcmalloc was found");
    set_up(p, RUN_MALLOC_GLIBC);
}

static void
take_asked(const struct malloc_plan *p)
{
    enum run_malloc kind = p->options->malloc;
    if (kind == RUN_MALLOC_GLIBC && p->machine->glibc_minor == 0)
        run_refuse(p->refusal, EXIT_MACHINE, "--malloc glibc: the C library is another");
    else if (kind == RUN_MALLOC_GLIBC)
        set_up(p, kind);
    else if (is_there(p, kind))
        preload_library(p, kind, ", as asked");
    else
        run_refuse(p->refusal, EXIT_MACHINE,
                   "--malloc %s: no such library for this architecture was found",
                   run_malloc_name(kind));
}

void
run_plan_malloc(struct run_plan *plan, const struct run_options *options,
                const struct run_machine *machine, struct run_refusal *refusal)
{
    const struct malloc_plan p = {
        .plan = plan, .options = options, .machine = machine, .refusal = refusal};
    if (options->malloc_choice == RUN_CHOOSE_KEEP)
        return;
    enum run_malloc found = find_preloaded(plan->malloc_path);
    if (found != RUN_MALLOC_NONE) {
        plan->is_malloc_preloaded = true;
        run_plan_add(plan, RUN_WHAT_VARIABLE, RUN_KEPT, preload, run_variable(preload),
                     "has %s already", run_malloc_name(found));
        set_up(&p, found);
    } else if (options->malloc_choice == RUN_CHOOSE_ONE) {
        take_asked(&p);
    } else {
        choose(&p);
    }
}
