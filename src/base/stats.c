/* SPDX-License-Identifier: Apache-2.0 */

/* Statistics as pairs of key and number, with the keys of torch.cuda.memory_stats(). Keys are
   combined from three tables of names: members, pools and fields. */

#include <drystone/stats.h>

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

/* How a member of struct dry_stats expands into keys. */
enum shape {
    SHAPE_NUMBER, /* NAME */
    SHAPE_STAT,   /* NAME.FIELD */
    SHAPE_ARRAY,  /* NAME.POOL.FIELD */
};

struct part {
    const char *name;
    size_t offset;
    enum shape shape;
};

/* All three tables are in alphabetical order, so that the keys come out sorted. */
static const struct part members[] = {
    {"active", offsetof(struct dry_stats, active), SHAPE_ARRAY},
    {"active_bytes", offsetof(struct dry_stats, active_bytes), SHAPE_ARRAY},
    {"allocated_bytes", offsetof(struct dry_stats, allocated_bytes), SHAPE_ARRAY},
    {"allocation", offsetof(struct dry_stats, allocation), SHAPE_ARRAY},
    {"inactive_split", offsetof(struct dry_stats, inactive_split), SHAPE_ARRAY},
    {"inactive_split_bytes", offsetof(struct dry_stats, inactive_split_bytes),
     SHAPE_ARRAY},
    {"max_split_size", offsetof(struct dry_stats, max_split_size), SHAPE_NUMBER},
    {"num_alloc_retries", offsetof(struct dry_stats, num_alloc_retries), SHAPE_NUMBER},
    {"num_device_alloc", offsetof(struct dry_stats, num_device_alloc), SHAPE_NUMBER},
    {"num_device_free", offsetof(struct dry_stats, num_device_free), SHAPE_NUMBER},
    {"num_oom_rejections", offsetof(struct dry_stats, num_oom_rejections), SHAPE_NUMBER},
    {"num_ooms", offsetof(struct dry_stats, num_ooms), SHAPE_NUMBER},
    {"num_sync_all_streams", offsetof(struct dry_stats, num_sync_all_streams),
     SHAPE_NUMBER},
    {"oversize_allocations", offsetof(struct dry_stats, oversize_allocations),
     SHAPE_STAT},
    {"oversize_segments", offsetof(struct dry_stats, oversize_segments), SHAPE_STAT},
    {"requested_bytes", offsetof(struct dry_stats, requested_bytes), SHAPE_ARRAY},
    {"reserved_bytes", offsetof(struct dry_stats, reserved_bytes), SHAPE_ARRAY},
    {"segment", offsetof(struct dry_stats, segment), SHAPE_ARRAY},
};

static const struct part pools[] = {
    {"all", offsetof(struct dry_stat_array, all), SHAPE_STAT},
    {"large_pool", offsetof(struct dry_stat_array, large_pool), SHAPE_STAT},
    {"small_pool", offsetof(struct dry_stat_array, small_pool), SHAPE_STAT},
};

static const struct part fields[] = {
    {"allocated", offsetof(struct dry_stat, allocated), SHAPE_NUMBER},
    {"current", offsetof(struct dry_stat, current), SHAPE_NUMBER},
    {"freed", offsetof(struct dry_stat, freed), SHAPE_NUMBER},
    {"peak", offsetof(struct dry_stat, peak), SHAPE_NUMBER},
};

static_assert(9 * ARRAY_SIZE(pools) * ARRAY_SIZE(fields) + 2 * ARRAY_SIZE(fields) + 7 ==
                  DRY_STATS_KEY_COUNT,
              "nine arrays, two stats, seven numbers");

/* Sizes for "inactive_split_bytes.small_pool", and for that prefix with ".allocated". */
#define PREFIX_BYTES 40
#define KEY_BYTES (PREFIX_BYTES + 16)

struct visitor {
    void (*visit)(void *self, const char *key, int64_t value);
    void *self;
};

static void
visit_number(const struct visitor *v, const char *key, const void *at)
{
    const int64_t *value = at;
    v->visit(v->self, key, *value);
}

static void
visit_stat(const struct visitor *v, const char *name, const void *at)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        char key[KEY_BYTES];
        snprintf(key, sizeof key, "%s.%s", name, fields[i].name);
        visit_number(v, key, (const char *)at + fields[i].offset);
    }
}

static void
visit_array(const struct visitor *v, const char *name, const void *at)
{
    for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
        char prefix[PREFIX_BYTES];
        snprintf(prefix, sizeof prefix, "%s.%s", name, pools[i].name);
        visit_stat(v, prefix, (const char *)at + pools[i].offset);
    }
}

void
dry_stats_visit(const struct dry_stats *stats,
                void (*visit)(void *self, const char *key, int64_t value), void *self)
{
    const struct visitor v = {.visit = visit, .self = self};
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const char *at = (const char *)stats + members[i].offset;
        if (members[i].shape == SHAPE_NUMBER)
            visit_number(&v, members[i].name, at);
        else if (members[i].shape == SHAPE_STAT)
            visit_stat(&v, members[i].name, at);
        else
            visit_array(&v, members[i].name, at);
    }
}
