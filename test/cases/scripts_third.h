/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CASES_SCRIPTS_THIRD_H
#define TEST_CASES_SCRIPTS_THIRD_H

/* The programs of the third set. Each serves the five cases of its class, by `variant`. */

#include "cases/program.h"

#define SIDE_STREAM UINT64_C(0x5601c0aa80)

/* scripts_third.c: loops, by tables */
void script_third_small_leak(struct program *p);
void script_third_large_leak(struct program *p);
void script_third_ragged_leak(struct program *p);
void script_third_steady(struct program *p);
void script_third_limit(struct program *p);
void script_third_mixed(struct program *p);

/* scripts_third_pieces.c: what lies in pieces, in pools, or comes back */
void script_third_pieces(struct program *p);
void script_third_neighbour(struct program *p);
void script_third_pools(struct program *p);
void script_third_sleep(struct program *p);
void script_third_phases(struct program *p);
void script_third_ladder(struct program *p);

/* Take `count` tensors of `mib` and keep them. */
void third_load(struct program *p, unsigned count, unsigned mib);
/* Take `count` tensors of `mib` and give them back. */
void third_pass(struct program *p, const char *frames, unsigned count, unsigned mib);

#endif
