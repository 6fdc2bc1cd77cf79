/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_LOOK_H
#define TOOL_LIVE_LOOK_H

/* Looks at the machine, one after the other; all ways of showing share them. */

#include <stdbool.h>
#include <stdint.h>

#include "live/watch.h"

struct live_look {
    struct watch *watch;
    const char *wanted; /* a process's number or a part of its name; NULL: all */
    uint64_t every_ns;  /* between two looks */
    bool is_json;
};

/* Look again. An exit code; without memory, the reason is said. */
int live_look_again(struct live_look *look);
/* Tell whether one process that is wanted has not ended. */
bool live_look_has_any(const struct live_look *look);
/* Wait for the next look, which is due `every_ns` after the last one was. */
void live_look_wait(const struct live_look *look);

#endif
