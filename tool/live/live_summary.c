/* SPDX-License-Identifier: Apache-2.0 */
/* See live_summary.h. */
#include "live/live_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
live_state_name(enum watch_state state)
{
    static const char *const names[] = {"seen", "live", "bad", "ended"};
    return names[state];
}

const char *
live_kind_name(uint32_t kind)
{
    return kind == DRY_LIVE_POOL ? "pool" : kind == DRY_LIVE_PINNED ? "pinned" : "other";
}

/* --- processes ---------------------------------------------------------------------------- */

uint64_t
live_process_number(const struct watch_process *process)
{
    return process->process ? process->process : process->program.process;
}

bool
live_is_wanted(const struct watch_process *process, const char *wanted)
{
    if (!wanted)
        return true;
    char *end;
    unsigned long long number = strtoull(wanted, &end, 10);
    if (*wanted >= '0' && *wanted <= '9' && *end == '\0')
        return number != 0 && live_process_number(process) == number;
    return *wanted && strstr(process->name, wanted);
}

struct watch_process *
live_find_only(const struct watch *watch, const char *wanted)
{
    struct watch_process *only = NULL;
    for (size_t i = 0; i < watch->process_count; i++) {
        struct watch_process *p = watch->processes[i];
        if (!live_is_wanted(p, wanted) || (!wanted && p->source_count == 0))
            continue;
        if (only)
            return NULL;
        only = p;
    }
    return only;
}

/* --- sums --------------------------------------------------------------------------------- */

/* Add, saturating below WATCH_UNKNOWN. An unknown addend counts as 0. */
static uint64_t
add(uint64_t sum, uint64_t more)
{
    if (sum == WATCH_UNKNOWN || more == WATCH_UNKNOWN)
        return sum == WATCH_UNKNOWN ? more : sum;
    return more < WATCH_UNKNOWN - 1 - sum ? sum + more : WATCH_UNKNOWN - 1;
}

uint64_t
live_allocated(const struct watch_process *process)
{
    uint64_t sum = WATCH_UNKNOWN;
    for (size_t i = 0; i < process->source_count; i++)
        if (process->sources[i].published.kind != DRY_LIVE_PINNED)
            sum = add(sum, process->sources[i].published.figures.allocated);
    return sum;
}

uint64_t
live_stranded(const struct watch_process *process)
{
    uint64_t sum = WATCH_UNKNOWN;
    for (size_t i = 0; i < process->source_count; i++) {
        const struct dry_live_source *s = &process->sources[i].published;
        if (s->kind != DRY_LIVE_PINNED && s->detail.at_ns)
            sum = add(sum, s->detail.stranded);
    }
    return sum;
}

uint64_t
live_headroom(const struct watch_process *process)
{
    uint64_t left_bytes = WATCH_UNKNOWN;
    for (size_t i = 0; i < process->source_count; i++)
        if (process->sources[i].left_bytes < left_bytes)
            left_bytes = process->sources[i].left_bytes;
    return left_bytes;
}

double
live_share(const struct watch_source *source)
{
    if (source->limit == WATCH_UNKNOWN || source->limit == 0 ||
        source->left_bytes == WATCH_UNKNOWN)
        return -1;
    return 1 - (double)source->left_bytes / (double)source->limit;
}

/* --- devices ------------------------------------------------------------------------------ */

/* Tell whether a process uses a device. A source that matches none of the watch's devices
   counts by the program's own device number. */
static bool
has_device(const struct watch_process *p, size_t device)
{
    for (size_t i = 0; i < p->use_count; i++)
        if (p->uses[i].device == device)
            return true;
    for (size_t i = 0; i < p->source_count; i++) {
        const struct watch_source *s = &p->sources[i];
        int64_t its =
            s->device != WATCH_NO_DEVICE ? (int64_t)s->device : s->published.device;
        if (its >= 0 && (uint64_t)its == device)
            return true;
    }
    return false;
}

#define DEVICES_SHOWN 64u

void
live_name_devices(const struct watch_process *process, char text[LIVE_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < DEVICES_SHOWN && used + 12 < LIVE_TEXT_BYTES; i++) {
        size_t first = i;
        if (!has_device(process, i))
            continue;
        while (i + 1 < DEVICES_SHOWN && has_device(process, i + 1))
            i++;
        used += (size_t)snprintf(text + used, LIVE_TEXT_BYTES - used, "%s%zu",
                                 used ? "," : "", first);
        if (i > first)
            used += (size_t)snprintf(text + used, LIVE_TEXT_BYTES - used, "%s%zu",
                                     i > first + 1 ? "-" : ",", i);
    }
    if (used == 0 && process->source_count)
        (void)snprintf(text, LIVE_TEXT_BYTES, "host");
}

/* --- numbers ------------------------------------------------------------------------------ */

const char *
live_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    if (bytes == WATCH_UNKNOWN) {
        (void)snprintf(text, TERM_NUMBER_BYTES, "-");
        return text;
    }
    /* three digits would show 999.5 as 1000 */
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    (void)snprintf(text, TERM_NUMBER_BYTES, "%.*f %s", digits, value, units[unit]);
    return text;
}

const char *
live_format_seconds(double seconds, char text[TERM_NUMBER_BYTES])
{
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    while (i < 3 && seconds < 2 * units[i].seconds)
        i++;
    if (seconds >= 1000 * units[0].seconds)
        (void)snprintf(text, TERM_NUMBER_BYTES, "years");
    else
        (void)snprintf(text, TERM_NUMBER_BYTES, "%.0f %s", seconds / units[i].seconds,
                       units[i].unit);
    return text;
}

double
live_detail_age(const struct dry_live_detail *detail, uint64_t now_ns)
{
    return now_ns > detail->at_ns ? (double)(now_ns - detail->at_ns) / 1e9 : 0;
}

/* Convert a rate to an integer; rates beyond 9e18 bytes are clamped. */
static uint64_t
whole(double value)
{
    return value < 9e18 ? (uint64_t)value : UINT64_C(9000000000000000000);
}

void
live_format_trend(const struct watch_source *source, char text[LIVE_TEXT_BYTES])
{
    char rate[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES];
    double growth = source->rates.reserved_per_s;
    double size = growth < 0 ? -growth : growth;
    if (!source->rates.is_known)
        (void)snprintf(text, LIVE_TEXT_BYTES, "not known yet");
    else if (size < 1)
        (void)snprintf(text, LIVE_TEXT_BYTES, "steady");
    else if (growth > 0 && source->seconds_left >= 0)
        (void)snprintf(text, LIVE_TEXT_BYTES, "+%s/s: full in %s at this rate",
                       term_format_bytes(whole(size), rate),
                       live_format_seconds(source->seconds_left, time));
    else
        (void)snprintf(text, LIVE_TEXT_BYTES, "%c%s/s", growth > 0 ? '+' : '-',
                       term_format_bytes(whole(size), rate));
}

void
live_cut(char text[LIVE_TEXT_BYTES], const char *from, size_t columns)
{
    char all[2 * LIVE_TEXT_BYTES];
    size_t used = term_make_printable(all, sizeof all, from, strlen(from));
    size_t count = term_columns(all), front = (columns - 1) / 3;
    if (count <= columns && used < LIVE_TEXT_BYTES) {
        memcpy(text, all, used + 1);
        return;
    }
    const char *middle = term_skip_columns(all, front);
    const char *end = term_skip_columns(all, count - (columns - 1 - front));
    (void)snprintf(text, LIVE_TEXT_BYTES, "%.*s…%.*s", (int)(middle - all), all,
                   LIVE_TEXT_BYTES / 2, end);
}
