/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of torch.cuda.memory_summary(), character for character.
 *
 * Like PyTorch's Python code, a metric's first row ("all") selects the unit for its rows of pools.
 * The unit grows while that row is at least 768 of the next smaller unit (750 for counts). The
 * selecting row is divided as floating point; printed values use integer division that rounds down.
 */
#include <drystone/stats.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <drystone/trace.h>

#include "base/assert.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))
/* Holds four numbers of 20 digits, their units, bars and a name. A typical
   line has 78 characters. */
#define LINE_BYTES 192

enum unit { UNIT_BYTES, UNIT_COUNT };

struct metric {
    const char *name;
    size_t offset;
    enum unit unit;
};

static const struct metric arrays[] = {
    {"Allocated memory", offsetof(struct dry_stats, allocated_bytes), UNIT_BYTES},
    {"Active memory", offsetof(struct dry_stats, active_bytes), UNIT_BYTES},
    {"Requested memory", offsetof(struct dry_stats, requested_bytes), UNIT_BYTES},
    {"GPU reserved memory", offsetof(struct dry_stats, reserved_bytes), UNIT_BYTES},
    {"Non-releasable memory", offsetof(struct dry_stats, inactive_split_bytes),
     UNIT_BYTES},
    {"Allocations", offsetof(struct dry_stats, allocation), UNIT_COUNT},
    {"Active allocs", offsetof(struct dry_stats, active), UNIT_COUNT},
    {"GPU reserved segments", offsetof(struct dry_stats, segment), UNIT_COUNT},
    {"Non-releasable allocs", offsetof(struct dry_stats, inactive_split), UNIT_COUNT},
};

static const struct metric oversize[] = {
    {"Oversize allocations", offsetof(struct dry_stats, oversize_allocations),
     UNIT_COUNT},
    {"Oversize GPU segments", offsetof(struct dry_stats, oversize_segments), UNIT_COUNT},
};

struct table {
    const struct dry_sink *sink;
    struct dry_error *err;
    enum dry_status status; /* the first failure; later lines are not sent */
};

static void
send(struct table *t, const char *text, int length)
{
    DRYI_ASSERT(length > 0 && length < LINE_BYTES);
    if (t->status == DRY_OK)
        t->status = t->sink->write(t->sink->self, text, (size_t)length, t->err);
}

static void
put_rule(struct table *t, char stroke)
{
    char line[79];
    memset(line, stroke, sizeof line);
    line[0] = line[76] = '|';
    line[77] = '\n';
    send(t, line, 78);
}

static int64_t
divide_down(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Print a blank and `value` in the unit that `first` selects, as " 1234 MiB" or "   1234 K ". */
static int
print_cell(char *cell, size_t capacity, enum unit unit, int64_t value, int64_t first)
{
    static const char *const names[][6] = {
        [UNIT_BYTES] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"},
        [UNIT_COUNT] = {" ", "K", "M"},
    };
    static const size_t counts[] = {[UNIT_BYTES] = 6, [UNIT_COUNT] = 3};
    int64_t step = unit == UNIT_BYTES ? 1024 : 1000;
    double unit_limit = unit == UNIT_BYTES ? 768 * 1024 : 750 * 1000;
    double decides = (double)first;
    size_t i = 0;
    while (i + 1 < counts[unit] && decides >= unit_limit) {
        value = divide_down(value, step);
        decides /= (double)step;
        i++;
    }
    if (unit == UNIT_BYTES)
        return snprintf(cell, capacity, " %6" PRId64 " %s ", value, names[unit][i]);
    return snprintf(cell, capacity, " %7" PRId64 " %s  ", value, names[unit][i]);
}

static void
put_row(struct table *t, const char *name, enum unit unit, const struct dry_stat *stat,
        const struct dry_stat *first)
{
    const int64_t values[] = {stat->current, stat->peak, stat->allocated, stat->freed};
    const int64_t firsts[] = {first->current, first->peak, first->allocated,
                              first->freed};
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "| %-21s ", name);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        line[length++] = '|';
        length += print_cell(line + length, sizeof line - (size_t)length, unit, values[i],
                             firsts[i]);
    }
    length += snprintf(line + length, sizeof line - (size_t)length, "|\n");
    send(t, line, length);
}

static void
put_head(struct table *t, const struct dry_stats *stats, int32_t device)
{
    char line[LINE_BYTES];
    put_rule(t, '=');
    send(t, line,
         snprintf(line, sizeof line,
                  "| %16s PyTorch CUDA memory summary, device ID %-17" PRId32 " |\n", "",
                  device));
    put_rule(t, '-');
    send(t, line,
         snprintf(line, sizeof line,
                  "|  %9s CUDA OOMs: %-12" PRId64 " | %6s cudaMalloc retries: %-8" PRId64
                  "  |\n",
                  "", stats->num_ooms, "", stats->num_alloc_retries));
    put_rule(t, '=');
    send(t, line,
         snprintf(line, sizeof line,
                  "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot "
                  "Freed  |\n"));
}

enum dry_status
dry_stats_write_summary(const struct dry_stats *stats, int32_t device, bool abbreviated,
                        const struct dry_sink *sink, struct dry_error *err)
{
    struct table t = {.sink = sink, .err = err};
    put_head(&t, stats, device);
    for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
        const struct dry_stat_array *a =
            (const void *)((const char *)stats + arrays[i].offset);
        put_rule(&t, '-');
        put_row(&t, arrays[i].name, arrays[i].unit, &a->all, &a->all);
        if (abbreviated)
            continue;
        put_row(&t, "      from large pool", arrays[i].unit, &a->large_pool, &a->all);
        put_row(&t, "      from small pool", arrays[i].unit, &a->small_pool, &a->all);
    }
    for (size_t i = 0; i < ARRAY_SIZE(oversize); i++) {
        const struct dry_stat *stat =
            (const void *)((const char *)stats + oversize[i].offset);
        put_rule(&t, '-');
        put_row(&t, oversize[i].name, oversize[i].unit, stat, stat);
    }
    put_rule(&t, '=');
    return t.status;
}
