/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compare with the same code on the program's other devices: the bytes held at this
 * device's largest lines, and the progress at the failed line. Their pace tells where this
 * device would have ended.
 */

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "explain/verdict/explanation_inside.h"

#define LINES_MAX 5 /* number of the subject's largest lines to compare */

/* Count the allocations made by the failed request's stack. */
static uint32_t
count_done(const struct dry_timeline_view *t, uint32_t stack, uint32_t until)
{
    uint32_t done = 0;
    uint32_t window = t->allocation_count - t->carried_over_count;
    if (stack == DRY_NONE)
        return 0;
    for (uint32_t i = 0; i < window && t->allocations[i].begin <= until; i++)
        done += t->allocations[i].stack == stack;
    return done;
}

static const struct dry_owner *
find_same(const struct dry_owner *wanted, const struct dry_owner *owners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (owners[i].name_length == wanted->name_length &&
            memcmp(owners[i].name, wanted->name, wanted->name_length) == 0)
            return &owners[i];
    }
    return NULL;
}

/* Sum up a device's bytes at the subject's lines, and compute the mean allocation at the first. */
static void
compare_lines(struct dry_sibling *s, const struct dry_owners *subject,
              const struct dry_owners *others)
{
    size_t count, other_count;
    const struct dry_owner *lines = dry_owners_get(subject, &count);
    const struct dry_owner *theirs = dry_owners_get(others, &other_count);
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        const struct dry_owner *same = find_same(&lines[i], theirs, other_count);
        if (!same)
            continue;
        s->held_bytes += same->bytes;
        if (s->typical_bytes == 0 && same->count > 0)
            s->typical_bytes = same->bytes / same->count;
    }
}

static enum dry_status
compare_device(struct dry_explanation *e, struct dry_sibling *s,
               const struct dry_explain_device *device, struct dry_error *err)
{
    const struct dry_timeline_view *t = dry_timeline_get_view(device->timeline);
    s->device = t->device;
    s->is_subject = device->timeline == e->subject.timeline;
    s->has_oom = t->oom_count > 0;
    s->peak_bytes = t->peaks[DRY_CURVE_ACTIVE].bytes;
    s->done = count_done(t, e->view.request_stack,
                         s->is_subject ? e->view.moment : t->dump_moment);
    struct dry_owners_options options;
    dry_owners_options_init(&options);
    options.memory = &e->memory;
    options.key = DRY_OWNER_LINE;
    options.moment = s->is_subject ? e->view.moment : t->peaks[DRY_CURVE_ACTIVE].moment;
    struct dry_owners *owners = NULL;
    enum dry_status status =
        dryi_owners_create(device->timeline, &options, &e->sites, &owners, err);
    if (status == DRY_OK)
        compare_lines(s, e->owners, owners);
    dry_owners_destroy(owners);
    return status;
}

/* Project the subject's end at the pace of the fullest device that finished. */
static void
project(struct dry_explanation *e)
{
    const struct dry_sibling *subject = NULL, *full = NULL;
    for (size_t i = 0; i < e->view.sibling_count; i++) {
        const struct dry_sibling *s = &e->siblings[i];
        if (s->is_subject)
            subject = s;
        else if (!s->has_oom && s->typical_bytes > 0 &&
                 (!full || s->peak_bytes > full->peak_bytes))
            full = s;
    }
    if (!subject || !full || subject->typical_bytes == 0 ||
        e->view.moment_kind != DRY_MOMENT_AT_OOM)
        return;
    double projected = (double)full->peak_bytes * (double)subject->typical_bytes /
                       (double)full->typical_bytes;
    if (projected > (double)e->view.state->active && projected < 0x1p62)
        e->view.projected_bytes = (uint64_t)projected;
}

enum dry_status
dryi_explain_siblings(struct dry_explanation *e, struct dry_error *err)
{
    size_t count = e->options.device_count;
    if (count < 2)
        return DRY_OK;
    e->siblings = dryi_memory_zalloc(&e->memory, count, sizeof *e->siblings);
    if (!e->siblings)
        return dryi_fail_memory(err, "the other devices");
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK; i++)
        status = compare_device(e, &e->siblings[i], &e->options.devices[i], err);
    e->view.siblings = e->siblings;
    e->view.sibling_count = count;
    project(e);
    return status;
}
