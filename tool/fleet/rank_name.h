/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_RANK_NAME_H
#define TOOL_RANK_NAME_H

/*
 * The rank that a file's name tells. Names are those that trainers write:
 *
 *     iteration_10/rank3_memory_snapshot.pickle     TorchTitan, verl, slime    3
 *     oom_rank-3_snapshot.pickle                    Megatron-LM                3
 *     rank3.ba10.memory_snapshot.pickle             Composer                   3
 *     memory_snapshot_rank_3.pt                     Lightning, NeMo-RL         3
 *     rank_3/snapshot.pickle                        a folder a rank            3
 *     snapshot_3.pickle, gpu3.pickle                Megatron-Bridge, vLLM      3
 *     oom-3.pickle, oom-3-2.pickle                  drystone.torch.record()    3
 *
 * The word "rank" counts most, in the file's name and then in the folders, the innermost
 * first. A rank within a host ("local_rank3") is none of the job. Without the word, the
 * last number of the file's name counts, if it stands alone or behind "gpu".
 */

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#define RANK_UNKNOWN UINT32_MAX
#define RANK_MAX 9999999u        /* behind the word "rank" */
#define RANK_OF_NUMBER_MAX 99999 /* of a number alone: a time of day is no rank */

/* Return the rank that `path` tells, or RANK_UNKNOWN. Any bytes may be in it. */
uint32_t rank_name_find(const char *path);

/*
 * Return the rank in the first group of `pattern` (POSIX extended) in `path`; RANK_UNKNOWN:
 * there is no match, or what it holds is no rank.
 */
uint32_t rank_name_match(const regex_t *pattern, const char *path);

/*
 * Order two paths as people do: runs of digits by their number, so that iteration_9 comes
 * before iteration_10. Returns less than, equal to or more than 0.
 */
int rank_name_compare(const char *a, const char *b);

#endif
