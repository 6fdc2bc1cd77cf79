/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PUBLIC_TEXT_H
#define DRYI_PUBLIC_TEXT_H

/*
 * Which strings of a snapshot are public knowledge: everyone who has PyTorch has them.
 *
 * All rules are lists or grammars of what may stay. A string that no rule knows is
 * somebody's own. Cost: O(length) each.
 */

#include <stdbool.h>
#include <stddef.h>

/* Keys of snapshots, PyTorch's settings and fixed values. */
bool dryi_public_word(const char *text, size_t length);
/* All of the lists' words in turn, NULL at the end: for a search that must not find them. */
const char *dryi_public_word_at(size_t index);

/* "<module>", "<lambda>" and the like. */
bool dryi_public_python(const char *name, size_t length);
/* A C++ name all of whose parts are in public namespaces. */
bool dryi_public_cpp(const char *name, size_t length);
/* Names of record_function scopes that PyTorch itself opens: "ProfilerStep#3". */
bool dryi_public_annotation(const char *name, size_t length);
/* A word of the settings string: an option, a value that options take, a number. */
bool dryi_public_setting(const char *word, size_t length);
bool dryi_is_setting_separator(char c);

/* "??", "<string>": files that are none. */
bool dryi_public_file(const char *path, size_t length);
/* Find where the part of an installed PyTorch begins, "torch/..."; `length`: nowhere. */
size_t dryi_public_tail(const char *path, size_t length);

/* A part of a path between separators, which are '/' and '\'. */
struct dryi_path_part {
    size_t begin, length;
    size_t stem_length; /* without a common ending, ".py"; `length` if there is none */
    bool is_public;
};
/* The part that begins at or after *at, which is moved behind it; false at the end. */
bool dryi_path_next(const char *path, size_t length, size_t tail, size_t *at,
                    struct dryi_path_part *part);
bool dryi_is_path_separator(char c);

/* A letter, a digit, '_' or a part of a character that is not ASCII. */
bool dryi_is_word_char(char c);

#endif
