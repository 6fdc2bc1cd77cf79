/* SPDX-License-Identifier: Apache-2.0 */
/* A signal handler takes no argument of ours, so the flag has to be static. */
#include "base/ending.h"

#include <signal.h>
#include <stddef.h>

static volatile int is_over;

static void
end(int number)
{
    (void)number;
    is_over = 1;
}

const volatile int *
ending_on_signals(void)
{
    const struct sigaction action = {.sa_handler = end};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &is_over;
}
