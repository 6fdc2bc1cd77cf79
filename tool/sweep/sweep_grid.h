/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_GRID_H
#define TOOL_SWEEP_GRID_H

/*
 * A grid of settings, the value of --grid, and its combinations:
 *
 *     max_split_size_mb=default,20:512:x2;expandable_segments=False,True
 *     roundup_power2_divisions=8,[256:1,512:2,>:4]
 *
 * `;` separates keys, `,` separates the values of a key. A value is a word, an allocator
 * list in brackets (whose `,` and `:` belong to the list), or a range. FROM:TO:STEP adds,
 * FROM:TO:xFACTOR multiplies. A range ends at TO or before, and values are rounded down
 * to the decimals of its numbers. The word `default` omits the key.
 *
 * A combination has one value of each key. Combinations are numbered from 0; the last key
 * varies fastest. The text is untrusted: only words and lists of word characters are
 * accepted, so no value can smuggle in another key.
 */

#include <stdbool.h>
#include <stddef.h>

#define SWEEP_GRID_BYTES_MAX 2000 /* bytes of the grid's text */
#define SWEEP_KEYS_MAX 16
#define SWEEP_VALUES_MAX 1000 /* per key */
#define SWEEP_COMBINATIONS_MAX 10000
#define SWEEP_GRID_WHY_BYTES 320

struct sweep_value {
    char *text; /* NULL: the key is omitted */
    size_t at;  /* position in the grid's text, from 1 */
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

/* Parse `text`. Returns false after writing to `why`: the character, what is wrong and
   what was expected, or that memory ran out. Call sweep_grid_finish() in any case. */
bool sweep_grid_parse(const char *text, struct sweep_grid *grid,
                      char why[SWEEP_GRID_WHY_BYTES]);
void sweep_grid_finish(struct sweep_grid *grid);

/* Return a combination's value of a key. */
const struct sweep_value *sweep_grid_value(const struct sweep_grid *grid,
                                           size_t combination, size_t key);
/* Return the combination in the syntax of PYTORCH_CUDA_ALLOC_CONF, "" if all keys are
   omitted. The caller frees the text. NULL: memory ran out. */
char *sweep_grid_write(const struct sweep_grid *grid, size_t combination);

#endif
