/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

/*
 * Machines of test/data/machines as folders: a text a machine, in which "== /proc/cmdline"
 * stands in front of what that file holds. one-node and two-nodes are captured from real ones
 * (the latter in QEMU); the others are made of these by hand. scripts/capture_machine.py
 * writes such a text.
 */

#include "support/tree.h"

extern const char *const machine_names[];
#define MACHINE_COUNT 8

/* A tree of its files; tree_finish() is due. */
void machine_unpack(struct tree *tree, const char *name);

#endif
