/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DRYSTONE_H
#define DRY_DRYSTONE_H

/* Include everything public, bottom up. Each header also stands alone. */

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

#endif
