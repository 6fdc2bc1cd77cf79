/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PUBLIC_TEXT_H
#define DRYI_PUBLIC_TEXT_H

/*
 * Decide which strings of a snapshot are public: every user of PyTorch has them.
 *
 * All rules are lists or grammars of strings that may stay. A string that matches no rule
 * is treated as private. Cost of each: O(length).
 */

#include <stdbool.h>
#include <stddef.h>

/* Return true for keys of snapshots, PyTorch's settings and fixed values. */
bool dryi_public_word(const char *text, size_t length);
/* Return word `index` of all lists; NULL after the last. A leak search excuses them. */
const char *dryi_public_word_at(size_t index);

/* Return true for names that Python itself makes, such as "<module>" and "<lambda>". */
bool dryi_public_python(const char *name, size_t length);
/* Return true for a C++ name whose components are all in public namespaces. */
bool dryi_public_cpp(const char *name, size_t length);
/* Return true for record_function scopes that PyTorch opens, such as "ProfilerStep#3". */
bool dryi_public_annotation(const char *name, size_t length);
/* Return true for words of the settings string: options, values of options, numbers. */
bool dryi_public_setting(const char *word, size_t length);
bool dryi_is_setting_separator(char c);

/* Return true for placeholders that are not files, such as "??" and "<string>". */
bool dryi_public_file(const char *path, size_t length);
/* Return the offset of "torch/..." in the path of an installed PyTorch, or `length`. */
size_t dryi_public_tail(const char *path, size_t length);

/* A component of a path. Separators are '/' and '\'. */
struct dryi_path_part {
    size_t begin, length;
    size_t stem_length; /* length less an ending such as ".py" */
    bool is_public;
};
/* Find the component at or after *at; *at moves past it. Returns false at the end. */
bool dryi_path_next(const char *path, size_t length, size_t tail, size_t *at,
                    struct dryi_path_part *part);
bool dryi_is_path_separator(char c);

/* Return true for a letter, a digit, '_' or any byte of a non-ASCII character. */
bool dryi_is_word_char(char c);

#endif
