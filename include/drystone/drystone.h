/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DRYSTONE_H
#define DRY_DRYSTONE_H

/*
 * All public headers, lowest layer first; each can also be included alone. Also the
 * version of these headers, and of the library that the program runs with.
 *
 *     #if DRY_VERSION_NUMBER < 2000
 *     #error "Drystone 0.2 or later is needed"
 *     #endif
 *     printf("built with %s, runs with %s\n", DRY_VERSION, dry_version());
 */

#include <drystone/live.h>
#include <drystone/memory.h>
#include <drystone/status.h>

#include <drystone/cuda.h>
#include <drystone/device.h>
#include <drystone/doctor.h>
#include <drystone/dtype.h>
#include <drystone/host_device.h>
#include <drystone/pages.h>
#include <drystone/pinned.h>
#include <drystone/sim.h>
#include <drystone/tensor.h>
#include <drystone/topology.h>

#include <drystone/pool.h>

#include <drystone/anonymize.h>
#include <drystone/arrow.h>
#include <drystone/pool_trace.h>
#include <drystone/stats.h>
#include <drystone/trace.h>

#include <drystone/replay.h>

#include <drystone/card.h>
#include <drystone/categories.h>
#include <drystone/cause.h>
#include <drystone/chain.h>
#include <drystone/diff.h>
#include <drystone/estimate.h>
#include <drystone/explanation.h>
#include <drystone/field.h>
#include <drystone/graph.h>
#include <drystone/knapsack.h>
#include <drystone/message.h>
#include <drystone/owners.h>
#include <drystone/plan.h>
#include <drystone/recommend.h>
#include <drystone/state.h>
#include <drystone/steps.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* meson.build has the same numbers; a build in which they differ does not start. */
#define DRY_VERSION_MAJOR 0
#define DRY_VERSION_MINOR 1
#define DRY_VERSION_PATCH 0

/* The version as one number, 1002003 for 1.2.3; later versions have larger numbers. */
#define DRY_VERSION_NUMBER                                                               \
    (DRY_VERSION_MAJOR * 1000000 + DRY_VERSION_MINOR * 1000 + DRY_VERSION_PATCH)

/* The version as text, "1.2.3". */
#define DRY_VERSION                                                                      \
    DRY_VERSION_JOIN(DRY_VERSION_MAJOR, DRY_VERSION_MINOR, DRY_VERSION_PATCH)
/* NOLINTNEXTLINE(bugprone-macro-parentheses): they would be in the text */
#define DRY_VERSION_JOIN(major, minor, patch) DRY_VERSION_QUOTE(major.minor.patch)
#define DRY_VERSION_QUOTE(numbers) #numbers

/* Return the version of the loaded library, "1.2.3". */
DRY_API const char *dry_version(void);

#ifdef __cplusplus
}
#endif

#endif
