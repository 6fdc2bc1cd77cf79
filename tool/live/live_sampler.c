/* SPDX-License-Identifier: Apache-2.0 */
/* See live_sampler.h. */
#include "live/live_sampler.h"

#include <time.h>

#include "base/command.h"
#include "base/report.h"
#include "live/live_summary.h"

int
live_sampler_sample(struct live_sampler *sampler)
{
    if (watch_sample(sampler->watch))
        return EXIT_FINE;
    return report_memory("live", NULL);
}

bool
live_sampler_has_any(const struct live_sampler *sampler)
{
    for (size_t i = 0; i < sampler->watch->process_count; i++) {
        const struct watch_process *p = sampler->watch->processes[i];
        if (p->state != WATCH_ENDED && live_is_wanted(p, sampler->wanted))
            return true;
    }
    return false;
}

void
live_sampler_wait(const struct live_sampler *sampler)
{
    uint64_t next = sampler->watch->now_ns + sampler->every_ns;
    struct timespec until = {.tv_sec = (time_t)(next / 1000000000),
                             .tv_nsec = (long)(next % 1000000000)};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
}
