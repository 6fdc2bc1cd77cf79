/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_GRID_H
#define TOOL_SWEEP_GRID_H

/*
 * A grid of settings, as --grid writes it, and its combinations:
 *
 *     max_split_size_mb=default,20:512:x2;expandable_segments=False,True
 *     roundup_power2_divisions=8,[256:1,512:2,>:4]
 *
 * Keys stand apart by `;`, and the values of one by `,`. A value is a word, a list of the
 * allocator's in brackets, in which `,` and `:` are the list's own, or a range. FROM:TO:STEP
 * adds, FROM:TO:xFACTOR multiplies; a range goes to TO at most, and is rounded down to the
 * digits that its numbers are written with. The word `default` leaves the key away.
 *
 * A combination has one value of each key. Combinations are counted from 0; the last key
 * changes fastest. The text of a grid is hostile input: nothing but words and lists of
 * word characters get through, so no value can bring along another key.
 */

#include <stdbool.h>
#include <stddef.h>

#define SWEEP_GRID_BYTES_MAX 2000 /* of the text */
#define SWEEP_KEYS_MAX 16
#define SWEEP_VALUES_MAX 1000 /* of a key */
#define SWEEP_COMBINATIONS_MAX 10000
#define SWEEP_GRID_WHY_BYTES 320

struct sweep_value {
    char *text; /* NULL: the key is left away */
    size_t at;  /* its place in the grid's text, counted from 1 */
};

struct sweep_key {
    char *name;
    size_t at;
    struct sweep_value *values;
    size_t count;
};

struct sweep_grid {
    struct sweep_key keys[SWEEP_KEYS_MAX];
    size_t key_count;
    size_t combination_count;
};

/*
 * Read `text`. False: it is no grid, and `why` says at which character, what is wrong and
 * what was expected, or that there was no memory. sweep_grid_finish() is due in any case.
 */
bool sweep_grid_parse(const char *text, struct sweep_grid *grid,
                      char why[SWEEP_GRID_WHY_BYTES]);
void sweep_grid_finish(struct sweep_grid *grid);

/* Return the value that a combination has of a key. */
const struct sweep_value *sweep_grid_value(const struct sweep_grid *grid,
                                           size_t combination, size_t key);
/*
 * Return the combination as PYTORCH_CUDA_ALLOC_CONF has it, "" if it leaves all keys away.
 * The caller frees it; NULL: there was no memory.
 */
char *sweep_grid_write(const struct sweep_grid *grid, size_t combination);

#endif
