/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_LOOK_H
#define TOOL_LIVE_LOOK_H

/* Periodic looks at the machine, shared by all forms of output. */

#include <stdbool.h>
#include <stdint.h>

#include "live/watch.h"

struct live_look {
    struct watch *watch;
    const char *wanted; /* a process ID or a part of a name; NULL: all */
    uint64_t every_ns;  /* interval between two looks */
    bool is_json;
};

/* Look again. Returns an exit code; if memory ran out, the reason is printed. */
int live_look_again(struct live_look *look);
/* Tell whether at least one wanted process is still running. */
bool live_look_has_any(const struct live_look *look);
/* Sleep until `every_ns` after the last look. */
void live_look_wait(const struct live_look *look);

#endif
