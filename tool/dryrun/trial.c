/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */
#include "dryrun/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"

#define PHYSICAL_MAX 64 /* devices of a machine */
#define SHARE_MAX                                                                        \
    ((json_int_t)UINT64_C(1) << 50) /* bytes; the sum of all cannot overflow */

/* Replay the snapshots of the other ranks, to check that they are exact. The verdict uses
   the main one alone. */
static int
check_others(struct trial *t)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < t->facts.process_count && code == EXIT_FINE; i++) {
        struct facts_process *p = &t->facts.processes[i];
        struct trial_check check;
        if (i == t->facts.main || !p->snapshot)
            continue;
        code = trial_verdict_check(t->launch.request.command, p->snapshot, 0, &check);
        p->is_exact = check.is_exact;
    }
    return code;
}

/* Report a program that left no facts. Returns EXIT_INPUT. */
static int
report_nothing(const struct trial *t)
{
    char end[80], orphans[100] = "";
    const struct launch *l = &t->launch;
    const struct facts_lost *lost = &t->facts.lost;
    if (l->signal)
        snprintf(end, sizeof end, "signal %d (%s) ended the program", l->signal,
                 strsignal(l->signal));
    else
        snprintf(end, sizeof end, "the program ended with status %d", t->status);
    if (l->orphan_count > 0)
        snprintf(orphans, sizeof orphans,
                 "; it left %zu process%s running, ended with it", l->orphan_count,
                 l->orphan_count == 1 ? "" : "es");
    return report_failure(l->request.command, l->request.arguments->values[0], EXIT_INPUT,
                          "%s %s a GPU%s%s%s", end,
                          lost->begun ? "after a process used" : "before it used",
                          lost->place[0] ? ", at " : "", lost->place, orphans);
}

static int
read_results(struct trial *t)
{
    int code = facts_read(&t->facts, t->launch.request.command, t->launch.out);
    if (code != EXIT_FINE)
        return code;
    if (t->facts.process_count == 0)
        return report_nothing(t);
    if (t->launch.request.is_brief)
        return EXIT_FINE;
    const char *snapshot = trial_main(t)->snapshot;
    const struct trial_verdict_inputs request = {
        .command = t->launch.request.command,
        .path = snapshot,
        .nccl_bytes = trial_main(t)->nccl_bytes,
        .event_max = t->launch.request.event_max,
    };
    if (snapshot)
        code = trial_verdict_make(&t->verdict, &request);
    t->facts.processes[t->facts.main].is_exact = t->verdict.check.exact;
    return code == EXIT_FINE ? check_others(t) : code;
}

int
trial_run(struct trial *t)
{
    int code = launch_begin(&t->launch);
    if (code == EXIT_FINE)
        code = launch_run(&t->launch, &t->status);
    return code == EXIT_FINE ? read_results(t) : code;
}

void
trial_finish(struct trial *t)
{
    trial_verdict_finish(&t->verdict);
    facts_finish(&t->facts);
    launch_finish(&t->launch);
}

const struct facts_process *
trial_main(const struct trial *t)
{
    return &t->facts.processes[t->facts.main];
}

bool
trial_has_oom(const struct trial *t)
{
    bool has_oom = t->verdict.has_oom;
    for (size_t i = 0; i < t->facts.process_count; i++)
        has_oom |= t->facts.processes[i].has_oom;
    return has_oom;
}

const char *
trial_find_unseen(const struct trial *t)
{
    const char *unseen = trial_main(t)->unseen;
    for (size_t i = 0; i < t->facts.process_count && !unseen; i++)
        unseen = t->facts.processes[i].unseen;
    return unseen;
}

static uint64_t
get_number(const json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));
    return number <= 0 ? 0 : (uint64_t)(number < SHARE_MAX ? number : SHARE_MAX);
}

uint64_t
trial_together_bytes(const struct trial *t)
{
    uint64_t bytes[PHYSICAL_MAX] = {0}, most = 0;
    size_t users[PHYSICAL_MAX] = {0};
    for (size_t i = 0; i < t->facts.process_count; i++) {
        const json_t *devices = json_object_get(t->facts.processes[i].json, "devices");
        for (size_t d = 0; d < json_array_size(devices); d++) {
            const json_t *device = json_array_get(devices, d);
            uint64_t number = get_number(device, "physical"),
                     reserved = get_number(device, "reserved");
            if (number >= PHYSICAL_MAX || reserved == 0)
                continue;
            users[number]++;
            bytes[number] += reserved + get_number(device, "nccl") +
                             t->launch.request.card->context_bytes;
            if (users[number] > 1 && bytes[number] > most)
                most = bytes[number];
        }
    }
    return most;
}

struct trial_convolutions
trial_find_convolutions(const struct trial *t)
{
    static const struct {
        int capability; /* major, the least */
        bool is_half;
        unsigned permille;
        const char *source;
    } found[] = {
        {9, true, 1, "ResNet-50 in bf16 on an H100 was within 0.1 %"},
        {0, false, 90,
         "published peaks of ResNet-50 in fp32 on a T4 are 1 to 9 % above dry runs"},
    };
    const struct facts_process *p = trial_main(t);
    if (!p->convolutions || trial_find_engine(t)) /* an engine fills any card */
        return (struct trial_convolutions){0};
    bool is_half = strcmp(p->convolutions, "half") == 0;
    size_t i = 0;
    while (found[i].capability > t->launch.request.card->capability_major ||
           (found[i].is_half && !is_half))
        i++;
    return (struct trial_convolutions){p->reserved_peak / 1000 * found[i].permille,
                                       found[i].source};
}

bool
trial_is_card_close(const struct trial *t)
{
    const struct facts_process *p = trial_main(t);
    uint64_t rest = trial_spare_bytes(
        trial_torch_bytes(t->launch.request.card, p->nccl_bytes), p->reserved_peak);
    return trial_find_convolutions(t).more_bytes > rest;
}

struct trial_host
trial_find_host(const struct trial *t)
{
    struct trial_host host = {0};
    uint64_t device_bytes = 0, untouched = 0;
    for (size_t i = 0; i < t->facts.process_count; i++) {
        const json_t *one = json_object_get(t->facts.processes[i].json, "host");
        host.pinned_bytes += get_number(one, "pinned_peak_bytes");
        untouched += get_number(one, "untouched_bytes");
        device_bytes += get_number(one, "device_bytes");
    }
    host.peak_bytes =
        trial_spare_bytes(t->launch.host.peak_bytes, device_bytes) + untouched;
    host.most_bytes = t->launch.host.peak_bytes + untouched;
    return host;
}

bool
trial_is_host_close(const struct trial *t)
{
    struct trial_host host = trial_find_host(t);
    uint64_t limit = t->launch.request.host_bytes;
    uint64_t most = host.most_bytes + host.most_bytes / HOST_GROWN_SHARE;
    return limit > 0 && (host.peak_bytes == 0 || most > limit);
}

/* Tell whether a process ended without facts whose memory may have mattered. */
static bool
has_lost(const struct trial *t)
{
    const struct facts_lost *lost = &t->facts.lost;
    bool has_figure = trial_main(t)->reserved_peak > 0 || !trial_main(t)->is_counted;
    return lost->count > 0 || (lost->begun > 0 && !has_figure);
}

void
trial_tell_end(const struct trial *t, char text[TRIAL_END_BYTES])
{
    const struct facts_process *p = trial_main(t);
    const struct facts_lost *lost = &t->facts.lost;
    if (has_lost(t))
        snprintf(text, TRIAL_END_BYTES, "a process that used a GPU was killed%s%s",
                 lost->place[0] ? " at " : "", lost->place);
    else if (p->error)
        snprintf(text, TRIAL_END_BYTES, "an exception ended it");
    else if (p->is_stuck)
        snprintf(text, TRIAL_END_BYTES, "it waited too long");
    else if (t->launch.signal)
        snprintf(text, TRIAL_END_BYTES, "signal %d (%s) ended it", t->launch.signal,
                 strsignal(t->launch.signal));
    else if (t->status)
        snprintf(text, TRIAL_END_BYTES, "it ended with status %d", t->status);
    else
        snprintf(text, TRIAL_END_BYTES, "another of its processes failed");
}

const json_t *
trial_guesses(const struct trial *t)
{
    for (size_t i = 0; i < t->facts.process_count; i++) {
        size_t k = (t->facts.main + i) % t->facts.process_count;
        const json_t *guesses = json_object_get(t->facts.processes[k].json, "guesses");
        if (json_array_size(guesses) > 0)
            return guesses;
    }
    return NULL;
}

const struct facts_process *
trial_find_engine(const struct trial *t)
{
    const struct facts_process *found = NULL;
    for (size_t i = 0; i < t->facts.process_count; i++) {
        size_t k = (t->facts.main + i) % t->facts.process_count;
        const struct facts_process *p = &t->facts.processes[k];
        if (p->engine.name && (!found || (!found->engine.kv_bytes && p->engine.kv_bytes)))
            found = p;
    }
    return found;
}

const struct facts_process *
trial_find_refusal(const struct trial *t)
{
    for (size_t i = 0; i < t->facts.process_count; i++) {
        if (t->facts.processes[i].refusal)
            return &t->facts.processes[i];
    }
    return NULL;
}

enum trial_outcome
trial_outcome(const struct trial *t)
{
    bool is_beyond = false, has_error = has_lost(t);
    uint64_t limit = t->launch.request.host_bytes;
    for (size_t i = 0; i < t->facts.process_count; i++) {
        const struct facts_process *p = &t->facts.processes[i];
        is_beyond |=
            p->reserved_peak > trial_torch_bytes(t->launch.request.card, p->nccl_bytes);
        has_error |= p->error || p->is_stuck;
    }
    if (trial_has_oom(t) || is_beyond || trial_find_refusal(t))
        return TRIAL_FITS_NOT;
    if (limit > 0 && trial_find_host(t).peak_bytes > limit)
        return TRIAL_FITS_NOT_HOST;
    bool has_stopped = trial_main(t)->stopped != NULL;
    return has_error || (t->status != 0 && !has_stopped) ? TRIAL_NOT_KNOWN : TRIAL_FITS;
}

/* --- the snapshot ------------------------------------------------------------------------- */

static enum dry_status
copy_all(FILE *from, const struct dry_sink *sink, struct dry_error *err)
{
    char bytes[1 << 16];
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, from)) > 0) {
        if (sink->write(sink->self, bytes, count, err) != DRY_OK)
            return DRY_ERR_SYSTEM;
    }
    return DRY_OK;
}

char *
trial_name_snapshot(const char *output, const char *label)
{
    const char *end = strrchr(output, '.');
    size_t stem = end && !strchr(end, '/') ? (size_t)(end - output) : strlen(output);
    size_t size = strlen(output) + strlen(label) + 2;
    char *name = malloc(size);
    if (!name)
        return NULL;
    snprintf(name, size, "%.*s-%s%s", (int)stem, output, label, output + stem);
    for (char *c = name + stem + 1; c < name + stem + 1 + strlen(label); c++) {
        bool is_plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= 'a' && *c <= 'z') || *c == '.' || *c == '-';
        if (!is_plain)
            *c = '_';
    }
    return name;
}

int
trial_keep_snapshot(const char *command, const struct facts_process *p, const char *to)
{
    const char *from = p->snapshot;
    struct output out;
    struct dry_error err;
    FILE *in = fopen(from, "rb");
    if (!in)
        return report_failure(command, from, EXIT_MACHINE, "%s", strerror(errno));
    int code = output_open(&out, command, to);
    if (code == EXIT_FINE) {
        struct dry_sink sink = output_sink(&out);
        code = output_close(&out, copy_all(in, &sink, &err), &err);
    }
    fclose(in);
    return code;
}
