/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_TOP_H
#define DRYI_PICKLE_TOP_H

#include "trace/pickle/pickle_walk.h"

/* Take the value that the pickle ends with as the whole trace. */
enum dry_status dryi_top_take(struct dryi_walk *w, uint64_t value);

#endif
