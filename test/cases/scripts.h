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
void script_healthy(struct program *p);
void script_expandable_training(struct program *p);
void script_late_recording(struct program *p);
void script_small_card(struct program *p);
void script_shared_card(struct program *p);

/* scripts_pieces.c: free memory that cannot be used */
void script_varying_lengths(struct program *p);
void script_pinned(struct program *p);
void script_split(struct program *p);
void script_varying_leak(struct program *p);
void script_graph_pool(struct program *p);
void script_side_stream(struct program *p);
void script_recorded_streams(struct program *p);
void script_small_pool(struct program *p);
void script_open_scope(struct program *p);
void script_end_state(struct program *p);
void script_cache(struct program *p);

#endif
