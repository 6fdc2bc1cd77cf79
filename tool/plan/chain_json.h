/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CHAIN_JSON_H
#define TOOL_CHAIN_JSON_H

/* A chain from its file, "ckpt-chain/1", see drystone-chain(5). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/chain.h>

#include "base/json_in.h"

/* The bytes that a plan may use: the device less what is kept aside. */
struct chain_budget {
    bool is_given;
    uint64_t bytes, device_bytes;
};

/* The calls that an option keeps, if it was made of a stage's operations. */
struct chain_policy {
    uint64_t first, count; /* stages */
    size_t option;         /* from 1 */
    json_t *policy;        /* {name: [which of its calls], ...} */
};

struct chain_file {
    struct dry_chain *chain;
    struct chain_budget budget;
    /*
     * Bytes that are there whatever the plan; gradients that backward allocates are not.
     */
    uint64_t params_bytes, grads_bytes, optimizer_bytes, buffers_bytes;
    struct chain_policy *policies; /* by stages, then options */
    size_t policy_count;
};

/*
 * FORMAT, with the key's way; LIMIT: sums beyond 63 bits, too many stages. memory NULL:
 * malloc. chain_file_finish() is due after DRY_OK.
 */
DRY_CHECK_RESULT enum dry_status chain_json_read_tree(json_t *tree,
                                                      const struct dry_memory *memory,
                                                      struct chain_file *file,
                                                      struct dry_error *err);
DRY_CHECK_RESULT enum dry_status chain_json_read(const char *text, size_t length,
                                                 const struct dry_memory *memory,
                                                 struct chain_file *file,
                                                 struct dry_error *err);
/* "budget" of a root: graphs have it, too. */
void chain_budget_read(struct json_in *in, const struct json_at *root,
                       struct chain_budget *budget);
void chain_file_finish(struct chain_file *file);
/*
 * Return the policy of a stage's option, counted from 1; it is the file's. NULL: the option
 * was not made of operations.
 */
json_t *chain_find_policy(const struct chain_file *file, size_t stage, size_t option);

/* The name of a stage, made printable; "" where it has none. */
#define CHAIN_NAME_BYTES 64
const char *chain_stage_name(const struct dry_chain *chain, size_t stage,
                             char name[CHAIN_NAME_BYTES]);

#endif
