/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SVG_OWNERS_H
#define TOOL_SVG_OWNERS_H

/* The colours of a picture of memory: each of the lines that hold most has its own. */

#include <stddef.h>
#include <stdint.h>

#include "export/export.h"

#define SVG_COLORS 9
enum svg_slot {
    SVG_SLOT_OTHER = SVG_COLORS, /* all lines without a colour of their own */
    SVG_SLOT_CARRIED,            /* from before the recording, without a stack */
    SVG_SLOT_COUNT,
};

struct svg_owners {
    const struct export_job *job;
    const struct dry_trace *trace;
    uint32_t frame_count;
    double *weights;             /* by frame; then carried-over, then without a stack */
    uint8_t *slots;              /* in the same order; set by svg_owners_rank() */
    uint32_t owners[SVG_COLORS]; /* frame of each colour, or DRY_NONE */
    size_t other_count;          /* owners in SVG_SLOT_OTHER */
};

/* Returns false if memory ran out. Call svg_owners_finish() in any case. */
bool svg_owners_init(struct svg_owners *owners, const struct export_job *job);
void svg_owners_finish(struct svg_owners *owners);
void svg_owners_add(struct svg_owners *owners, const struct dry_allocation *allocation,
                    double weight);
/* Give the colours to the heaviest owners. */
void svg_owners_rank(struct svg_owners *owners);
unsigned svg_owners_slot(const struct svg_owners *owners,
                         const struct dry_allocation *allocation);
/* Return the "fill" attribute of a slot: a colour or a pattern. */
const char *svg_slot_fill(unsigned slot);
const char *svg_slot_name(const struct svg_owners *owners, unsigned slot,
                          char name[EXPORT_NAME_BYTES]);

#endif
