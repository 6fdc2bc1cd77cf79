/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_SCRIPTS_H
#define TEST_CASES_SCRIPTS_H

/* The programs of the cases; what each is about stands in the table of cases.c. */

#include "cases/program.h"

/* scripts_training.c: loops over a model whose sizes do not change */
void script_training(struct program *p);
void script_huge_batch(struct program *p);
void script_batch_finder(struct program *p);
void script_leak(struct program *p);
void script_spike(struct program *p);
void script_imbalance(struct program *p);
void script_first_pass(struct program *p);
void script_rollouts(struct program *p);
void script_healthy(struct program *p);
void script_expandable_training(struct program *p);
void script_late_recording(struct program *p);
void script_small_card(struct program *p);
void script_shared_card(struct program *p);

/* scripts_pieces.c: free memory that cannot be used */
void script_varying_lengths(struct program *p);
void script_pinned(struct program *p);
void script_split(struct program *p);
void script_long_varying(struct program *p);
void script_long_serving(struct program *p);
void script_varying_leak(struct program *p);
void script_graph_pool(struct program *p);
void script_side_stream(struct program *p);
void script_recorded_streams(struct program *p);
void script_small_pool(struct program *p);
void script_open_scope(struct program *p);
void script_end_state(struct program *p);
void script_cache(struct program *p);

/* scripts_limits.c: programs that meet the end of the device, and go on */
void script_two_phases(struct program *p);
void script_full_house(struct program *p);
void script_phases_of_pages(struct program *p);
void script_cache_emptied(struct program *p);
void script_cache_emptied_for_more(struct program *p);
void script_leak_to_the_limit(struct program *p);

/* scripts_quiet.c: programs that no limit stops */
void script_longer_batch(struct program *p);
void script_many_streams(struct program *p);
void script_needless_rounding(struct program *p);
void script_inference(struct program *p);
void script_ragged_serving(struct program *p);
void script_pages_of_streams(struct program *p);

/* scripts_second.c: the second set */
void script_beams(struct program *p);
void script_pieces_between(struct program *p);
void script_pieces_with_room(struct program *p);
void script_two_graph_pools(struct program *p);
void script_kept_gradients(struct program *p);
void script_one_long_row(struct program *p);
void script_two_replicas(struct program *p);
void script_big_model(struct program *p);
void script_lagging_copies(struct program *p);
void script_even_and_odd(struct program *p);
void script_pages_by_turns(struct program *p);
void script_sampler(struct program *p);
void script_growing_lengths(struct program *p);
void script_last_frees(struct program *p);
void script_retry_smaller(struct program *p);

#endif
