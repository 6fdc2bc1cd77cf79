/* SPDX-License-Identifier: Apache-2.0 */
/* See live_look.h. */
#include "live/live_look.h"

#include <time.h>

#include "base/command.h"
#include "base/report.h"
#include "live/live_words.h"

int
live_look_again(struct live_look *look)
{
    if (watch_look(look->watch))
        return EXIT_FINE;
    return report_memory("live", NULL);
}

bool
live_look_has_any(const struct live_look *look)
{
    for (size_t i = 0; i < look->watch->process_count; i++) {
        const struct watch_process *p = look->watch->processes[i];
        if (p->state != WATCH_ENDED && live_is_wanted(p, look->wanted))
            return true;
    }
    return false;
}

void
live_look_wait(const struct live_look *look)
{
    uint64_t next = look->watch->now_ns + look->every_ns;
    struct timespec until = {.tv_sec = (time_t)(next / 1000000000),
                             .tv_nsec = (long)(next % 1000000000)};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
}
