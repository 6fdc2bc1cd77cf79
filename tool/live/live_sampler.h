/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_SAMPLER_H
#define TOOL_LIVE_SAMPLER_H

/* Periodic samples of the machine, shared by all forms of output. */

#include <stdbool.h>
#include <stdint.h>

#include "live/watch.h"

struct live_sampler {
    struct watch *watch;
    const char *wanted; /* a process ID or a part of a name; NULL: all */
    uint64_t every_ns;  /* interval between two samples */
    bool is_json;
};

/* Take a sample. Returns an exit code; if memory ran out, the reason is printed. */
int live_sampler_sample(struct live_sampler *sampler);
/* Tell whether at least one wanted process is still running. */
bool live_sampler_has_any(const struct live_sampler *sampler);
/* Sleep until `every_ns` after the last sample. */
void live_sampler_wait(const struct live_sampler *sampler);

#endif
