/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RANK_NAME_H
#define TOOL_RANK_NAME_H

/*
 * Find the rank in a file's name. These names are written by trainers:
 *
 *     iteration_10/rank3_memory_snapshot.pickle     TorchTitan, verl, slime    3
 *     oom_rank-3_snapshot.pickle                    Megatron-LM                3
 *     rank3.ba10.memory_snapshot.pickle             Composer                   3
 *     memory_snapshot_rank_3.pt                     Lightning, NeMo-RL         3
 *     rank_3/snapshot.pickle                        a folder a rank            3
 *     snapshot_3.pickle, gpu3.pickle                Megatron-Bridge, vLLM      3
 *     oom-3.pickle, oom-3-2.pickle                  drystone.torch.record()    3
 *
 * The word "rank" is searched first in the file's name, then in the folders, innermost
 * first. A rank within a host ("local_rank3") is ignored. Without the word, the last
 * number of the file's name counts, if it is alone or follows "gpu".
 */

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#define RANK_UNKNOWN UINT32_MAX
#define RANK_MAX 9999999u        /* after the word "rank" */
#define RANK_OF_NUMBER_MAX 99999 /* a lone number; a time of day is larger */

/* Return the rank in `path`, or RANK_UNKNOWN. `path` may hold any bytes. */
uint32_t rank_name_find(const char *path);

/*
 * Return the rank in the first group of `pattern` (POSIX extended). RANK_UNKNOWN if the
 * pattern does not match, or its group is not a rank.
 */
uint32_t rank_name_match(const regex_t *pattern, const char *path);

/*
 * Compare paths with digits as numbers, so that iteration_9 comes before iteration_10.
 * Returns less than, equal to or more than 0.
 */
int rank_name_compare(const char *a, const char *b);

#endif
