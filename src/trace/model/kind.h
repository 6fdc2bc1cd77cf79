/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_KIND_H
#define DRYI_KIND_H

/* The properties of a kind of trace that other modules ask for. */

#include <stdbool.h>

#include <drystone/trace.h>

struct dryi_kind {
    const char *name, *text; /* dry_trace_kind_name(), dry_trace_kind_text() */
    bool has_addresses;      /* becomes the view's has_addresses */
    bool is_of_driver;       /* becomes the view's is_of_driver */
    bool is_foreign;         /* another allocator than PyTorch's placed the blocks */
};

/* Return the properties of a kind. A value that is no kind has those of BUILT. */
const struct dryi_kind *dryi_kind_get(enum dry_trace_kind kind);

#endif
