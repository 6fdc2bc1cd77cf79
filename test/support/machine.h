/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

/*
 * Machines of test/data/machines as folders. A machine is a text, written by
 * scripts/capture_machine.py, in which a line "== /proc/cmdline" stands in front of the
 * contents of that file. The machines one-node and two-nodes are captured from real ones,
 * the latter in QEMU. The others are made of these by hand.
 */

#include "support/tree.h"

extern const char *const machine_names[];
#define MACHINE_COUNT 8

/* Unpack the machine `name` into a tree of its files; tree_finish() is due. */
void machine_unpack(struct tree *tree, const char *name);

#endif
