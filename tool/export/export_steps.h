/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORT_STEPS_H
#define TOOL_EXPORT_STEPS_H

/* The steps of a device, if the recording allows telling them apart. */

#include <stdint.h>

#include <drystone/steps.h>

#include "base/writer.h"

struct export_steps {
    struct dry_steps *steps;
    const struct dry_step *all;
    uint32_t count; /* 0 if steps cannot be told apart */
};

/* Find the steps. The writer keeps a failure. Call export_steps_finish() in any case. */
void export_steps_init(struct export_steps *steps, const struct dry_timeline *timeline,
                       struct writer *w);
void export_steps_finish(struct export_steps *steps);

#endif
