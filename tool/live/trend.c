/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The window is split into halves by time, and growth is divided by the time between the
 * last samples of the halves. Steady growth thus gets its exact rate even from few
 * samples. A counter that decreased was reset, so it counts from 0.
 */
#include "live/trend.h"

#include <stddef.h>

static struct trend_sample *
at(struct trend *t, uint32_t i)
{
    return &t->samples[(t->first + i) % TREND_SAMPLES];
}

static const struct trend_sample *
sample_at(const struct trend *t, uint32_t i)
{
    return &t->samples[(t->first + i) % TREND_SAMPLES];
}

static void
drop_first(struct trend *t)
{
    t->first = (t->first + 1) % TREND_SAMPLES;
    t->count--;
}

/* Merge a sample that follows too closely into the last one, keeping the maximum of the
   reserved bytes. */
static bool
merge(struct trend *t, const struct trend_sample *sample)
{
    if (t->count < 2)
        return false;
    struct trend_sample *last = at(t, t->count - 1);
    if (sample->at_ns - sample_at(t, t->count - 2)->at_ns >=
        TREND_WINDOW_NS / TREND_SAMPLES)
        return false;
    uint64_t most = last->reserved > sample->reserved ? last->reserved : sample->reserved;
    *last = *sample;
    last->reserved = most;
    return true;
}

void
trend_add(struct trend *trend, const struct trend_sample *sample)
{
    if (merge(trend, sample))
        return;
    while (trend->count > 0 &&
           (trend->count == TREND_SAMPLES ||
            sample->at_ns - sample_at(trend, 0)->at_ns > TREND_WINDOW_NS))
        drop_first(trend);
    *at(trend, trend->count++) = *sample;
}

static double
per_minute(uint64_t before, uint64_t now, double seconds)
{
    uint64_t more = now >= before ? now - before : now;
    return (double)more * 60 / seconds;
}

void
trend_rates(const struct trend *trend, struct trend_rates *rates)
{
    *rates = (struct trend_rates){0};
    if (trend->count < 4)
        return;
    const struct trend_sample *first = sample_at(trend, 0);
    const struct trend_sample *last = sample_at(trend, trend->count - 1);
    uint64_t window = last->at_ns - first->at_ns;
    if (window < TREND_LEAST_NS)
        return;
    uint64_t most[2] = {0, 0}, end_ns[2] = {0, 0};
    for (uint32_t i = 0; i < trend->count; i++) {
        const struct trend_sample *s = sample_at(trend, i);
        size_t half = s->at_ns - first->at_ns > window / 2;
        most[half] = s->reserved > most[half] ? s->reserved : most[half];
        end_ns[half] = s->at_ns;
    }
    double seconds = (double)window / 1e9;
    rates->is_known = true;
    rates->reserved_per_s =
        ((double)most[1] - (double)most[0]) / ((double)(end_ns[1] - end_ns[0]) / 1e9);
    rates->retries_per_min = per_minute(first->retries, last->retries, seconds);
    rates->ooms_per_min = per_minute(first->ooms, last->ooms, seconds);
}

double
trend_seconds_left(const struct trend_rates *rates, uint64_t left_bytes)
{
    if (!rates->is_known || rates->reserved_per_s <= 0)
        return -1;
    return (double)left_bytes / rates->reserved_per_s;
}
