/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_FILE_H
#define TOOL_PLAN_FILE_H

/*
 * A plan from its file, "ckpt-plan/1", see drystone-plan(1). Only the items are believed,
 * and only for their form: what they cost is judged anew. The rest of the file must have
 * keys that are known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/plan.h>

#include "plan/chain_json.h"

/*
 * Ranges in ranges at most. A tree of JSON has two levels for each, and what reads and
 * writes JSON stops at 2048.
 */
#define PLAN_DEPTH_MAX 1000

struct plan_file {
    struct dry_plan_item *items;
    size_t count, capacity;
    bool has_input_hash, has_plan_hash;
    uint64_t input_hash, plan_hash; /* as the file says */
};

/*
 * Read a plan of the chain `input`. FORMAT, with the key's way: no plan, or one that covers
 * the chain's stages twice, not at all or out of order. FORMAT, too: an option that a stage
 * has not, or one made of operations with others than it keeps. After DRY_OK,
 * plan_file_finish() is due.
 */
DRY_CHECK_RESULT enum dry_status plan_file_read(const char *text, size_t length,
                                                const struct chain_file *input,
                                                struct plan_file *file,
                                                struct dry_error *err);
void plan_file_finish(struct plan_file *file);

#endif
