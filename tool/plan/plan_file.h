/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_FILE_H
#define TOOL_PLAN_FILE_H

/*
 * Read a plan from its file, "ckpt-plan/1"; see drystone-plan(1). Only the items are
 * used, after a check of their form; their cost is computed again. Other keys are ignored
 * if known and refused if not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#include "plan/chain_json.h"

/* Maximum nesting of ranges. Each takes two levels of JSON, and jansson stops at 2048. */
#define PLAN_DEPTH_MAX 1000

struct plan_file {
    struct dry_plan_item *items;
    size_t count, capacity;
    bool has_input_hash, has_plan_hash;
    uint64_t input_hash, plan_hash; /* values in the file */
};

/*
 * Read a plan for the chain `input`. Errors: FORMAT, with the key's JSON path: not a
 * plan; stages covered twice, not at all or out of order; an option that a stage does not
 * have, or that keeps other operations. After DRY_OK, call plan_file_finish().
 */
DRY_CHECK_RESULT enum dry_status plan_file_read(const char *text, size_t length,
                                                const struct chain_file *input,
                                                struct plan_file *file,
                                                struct dry_error *err);
void plan_file_finish(struct plan_file *file);

#endif
