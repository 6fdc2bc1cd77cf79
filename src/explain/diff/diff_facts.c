/* SPDX-License-Identifier: Apache-2.0 */

/* Facts in addition to the owners: settings and counts of each subject as
   text, compared as text. */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "explain/diff/diff_inside.h"

static const char *const fact_names[DRYI_DIFF_FACTS] = {
    "PYTORCH_CUDA_ALLOC_CONF",
    "expandable_segments",
    "max_split_size",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "streams",
    "private pools",
};

static const char unknown_text[] = "unknown";

/* --- settings ----------------------------------------------------------------------------- */

static void
write_roundup(const struct dry_trace_settings *s, struct dryi_label *label)
{
    if (!s->roundup_known) {
        dryi_label_format(label, "%s", unknown_text);
        return;
    }
    for (size_t i = 0; i < 16; i++)
        dryi_label_format(label, "%s%" PRIu64, i ? "," : "",
                          s->roundup_power2_divisions[i]);
}

static void
write_setting(const struct dry_trace *trace, size_t fact, struct dryi_label *label)
{
    const struct dry_trace_settings *s = &dry_trace_get_view(trace)->settings;
    size_t length = 0;
    const char *conf = dry_trace_string(trace, s->conf, &length);
    if (!s->known || (fact == 0 && !conf))
        dryi_label_format(label, "%s", unknown_text);
    else if (fact == 0)
        dryi_label_add(label, conf, length, DRYI_LABEL_BYTES);
    else if (fact == 1)
        dryi_label_format(label, "%s", s->expandable_segments ? "True" : "False");
    else if (fact == 2)
        dryi_label_format(label, "%" PRId64, s->max_split_size);
    else if (fact == 3)
        dryi_label_format(label, "%g", s->garbage_collection_threshold);
    else
        write_roundup(s, label);
}

/* --- lanes -------------------------------------------------------------------------------- */

/* The different streams and private pools of a device's allocations and segments. */
struct lanes {
    const struct dry_trace_view *trace;
    struct dryi_map known; /* indices of lanes that were added */
    struct dryi_intern streams, pools;
};

static bool
add_lane(struct lanes *l, uint32_t index)
{
    if (index >= l->trace->lane_count || dryi_map_find(&l->known, index))
        return true;
    const struct dry_lane *lane = &l->trace->lanes[index];
    uint64_t pool[2] = {lane->pool_a, lane->pool_b};
    bool is_private = lane->pool_known && (pool[0] || pool[1]);
    return dryi_map_put(&l->known, index, 1) &&
           dryi_intern_put(&l->streams, &lane->stream, sizeof lane->stream) !=
               DRYI_INTERN_NONE &&
           (!is_private ||
            dryi_intern_put(&l->pools, pool, sizeof pool) != DRYI_INTERN_NONE);
}

static bool
count_lanes(const struct dry_diff *diff, size_t subject, uint32_t counts[2])
{
    const struct dry_timeline_view *v =
        dry_timeline_get_view(diff->subjects[subject].timeline);
    struct lanes l = {.trace = dry_trace_get_view(v->trace)};
    dryi_map_init(&l.known, &diff->memory);
    dryi_intern_init(&l.streams, &diff->memory);
    dryi_intern_init(&l.pools, &diff->memory);
    bool done = true;
    for (uint32_t i = 0; done && i < v->allocation_count; i++)
        done = add_lane(&l, v->allocations[i].lane);
    for (uint32_t i = 0; done && i < v->segment_count; i++)
        done = add_lane(&l, v->segments[i].lane);
    counts[0] = l.streams.count;
    counts[1] = l.pools.count;
    dryi_map_finish(&l.known);
    dryi_intern_finish(&l.streams);
    dryi_intern_finish(&l.pools);
    return done;
}

/* --- facts -------------------------------------------------------------------------------- */

#define SETTING_COUNT 5u

/* Add the facts of one subject, and store their ids: texts may move until the last one is added. */
static bool
put_facts(struct dry_diff *diff, size_t subject, uint32_t *ids)
{
    const struct dry_trace *trace =
        dry_timeline_get_view(diff->subjects[subject].timeline)->trace;
    uint32_t counts[2];
    if (!count_lanes(diff, subject, counts))
        return false;
    for (size_t fact = 0; fact < DRYI_DIFF_FACTS; fact++) {
        struct dryi_label label;
        dryi_label_init(&label);
        if (fact < SETTING_COUNT)
            write_setting(trace, fact, &label);
        else
            dryi_label_format(&label, "%u", (unsigned)counts[fact - SETTING_COUNT]);
        ids[fact] = dryi_intern_put(&diff->texts, label.bytes, label.length);
        if (ids[fact] == DRYI_INTERN_NONE)
            return false;
    }
    return true;
}

static void
set_facts(struct dry_diff *diff, const uint32_t *ids)
{
    uint32_t unknown = dryi_intern_find(&diff->texts, unknown_text, strlen(unknown_text));
    for (size_t fact = 0; fact < DRYI_DIFF_FACTS; fact++) {
        const char **values = diff->values + fact * diff->subject_count;
        struct dry_diff_fact *f = &diff->facts[fact];
        *f = (struct dry_diff_fact){.name = fact_names[fact],
                                    .values = values,
                                    .is_equal = true,
                                    .is_known = true};
        uint32_t first = unknown; /* first known value */
        for (size_t i = 0; i < diff->subject_count; i++) {
            uint32_t id = ids[i * DRYI_DIFF_FACTS + fact];
            values[i] = dryi_intern_get(&diff->texts, id, NULL);
            f->is_known = f->is_known && id != unknown;
            f->is_equal =
                f->is_equal && (first == unknown || id == unknown || id == first);
            first = first == unknown ? id : first;
        }
    }
}

bool
dryi_diff_find_facts(struct dry_diff *diff)
{
    size_t count = DRYI_DIFF_FACTS * diff->subject_count;
    uint32_t *ids = dryi_memory_zalloc(&diff->memory, count, sizeof *ids);
    diff->values = dryi_memory_zalloc(&diff->memory, count, sizeof *diff->values);
    bool done = ids && diff->values;
    for (size_t i = 0; done && i < diff->subject_count; i++)
        done = put_facts(diff, i, ids + i * DRYI_DIFF_FACTS);
    if (done)
        set_facts(diff, ids);
    dryi_memory_free(&diff->memory, ids, count, sizeof *ids);
    return done;
}
