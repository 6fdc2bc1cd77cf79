/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHAIN_JSON_H
#define TOOL_CHAIN_JSON_H

/* Read a chain of stages from its file, "ckpt-chain/1"; see drystone-chain(5). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/chain.h>

#include "base/json_in.h"

/* The bytes that a plan may use: the device's memory less the reserve. */
struct chain_budget {
    bool is_given;
    uint64_t bytes, device_bytes;
};

/* The calls that an option keeps, if the option was made from operations. */
struct chain_policy {
    uint64_t first, count; /* range of stages */
    size_t option;         /* counted from 1 */
    json_t *policy;        /* {operation: [indices of the kept calls], ...} */
};

struct chain_file {
    struct dry_chain *chain;
    struct chain_budget budget;
    /* Bytes held for the whole step under every plan; gradients that the backward
       allocates are excluded. */
    uint64_t params_bytes, grads_bytes, optimizer_bytes, buffers_bytes;
    struct chain_policy *policies; /* sorted by stage, then by option */
    size_t policy_count;
};

/* Read a chain. Errors: FORMAT, with the key's JSON path; LIMIT: sums beyond 63 bits or
   too many stages. memory NULL: malloc. After DRY_OK, call chain_file_finish(). */
DRY_CHECK_RESULT enum dry_status chain_json_read_tree(json_t *tree,
                                                      const struct dry_memory *memory,
                                                      struct chain_file *file,
                                                      struct dry_error *err);
DRY_CHECK_RESULT enum dry_status chain_json_read(const char *text, size_t length,
                                                 const struct dry_memory *memory,
                                                 struct chain_file *file,
                                                 struct dry_error *err);
/* Read "budget" of a root object; graph files have the same key. */
void chain_budget_read(struct json_in *in, const struct json_at *root,
                       struct chain_budget *budget);
void chain_file_finish(struct chain_file *file);
/* Return the policy of a stage's option, counted from 1; the file owns the policy. NULL:
   the option was not made from operations. */
json_t *chain_find_policy(const struct chain_file *file, size_t stage, size_t option);

/* Write a stage's name, made printable; "" if the stage has no name. */
#define CHAIN_NAME_BYTES 64
const char *chain_stage_name(const struct dry_chain *chain, size_t stage,
                             char name[CHAIN_NAME_BYTES]);

#endif
