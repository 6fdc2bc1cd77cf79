/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_FACT_TEXT_H
#define DRYI_HOST_FACT_TEXT_H

/*
 * Parsers for the text formats of files under /sys and /proc.
 *
 * Errors     false, and the output is unchanged: malformed text. The text is untrusted,
 *            because a container can mount any folder over /sys.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse "128\n"; "max\n" and numbers above 64 bits give UINT64_MAX. */
bool dryi_fact_number(const char *text, size_t length, uint64_t *number);

/* Parse "7f00": digits and lower-case letters only, at most 64 bits. */
bool dryi_fact_hexadecimal(const char *text, size_t length, uint64_t *number);

/* Parse "0-3,8\n", a list of CPUs or nodes, into bits. Numbers from `bit_max` (a multiple
   of 64) on are ignored. An empty line is the empty set. */
bool dryi_fact_list(const char *text, size_t length, uint64_t *words, size_t bit_max);

/* Parse "KEY:   123 kB" in a line of its own, as in /proc/meminfo. A node's file has
   "Node 0 " before the key. Returns bytes, or the number itself if "kB" is missing. */
bool dryi_fact_keyed(const char *text, size_t length, const char *key, uint64_t *number);

/* Parse "KEY 123", as in memory.stat. */
bool dryi_fact_field(const char *text, size_t length, const char *key, uint64_t *number);

/* Return whether `word` is the selected one in "always [madvise] never". */
bool dryi_fact_is_chosen(const char *text, size_t length, const char *word);

/* Parse "hugepages-2048kB" into the bytes of a page. */
bool dryi_fact_pool_name(const char *name, size_t length, uint64_t *page_bytes);

/* Get the next line from *at on, without its newline; *at moves past it. False: no more
   lines. */
bool dryi_fact_line(const char *text, size_t length, size_t *at, const char **line,
                    size_t *line_length);

#endif
