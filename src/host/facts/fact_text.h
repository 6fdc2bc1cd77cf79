/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_FACT_TEXT_H
#define DRYI_HOST_FACT_TEXT_H

/*
 * The few forms in which Linux writes facts under /sys and /proc, read from bytes of a length.
 *
 * Errors     false, and the output as it was: the text is not of this form. Whoever mounts a
 *            folder over /sys can make it say anything.
 * Cost       Linear in the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "128\n"; "max\n" and what is beyond 64 bits are UINT64_MAX. */
bool dryi_fact_number(const char *text, size_t length, uint64_t *number);

/* "7f00": digits and small letters alone, at most 64 bits. */
bool dryi_fact_hexadecimal(const char *text, size_t length, uint64_t *number);

/*
 * "0-3,8\n", as of CPUs and nodes, into bits; numbers from `bit_max` (a multiple of 64) on are
 * left out. An empty line is the empty set.
 */
bool dryi_fact_list(const char *text, size_t length, uint64_t *words, size_t bit_max);

/*
 * "KEY:   123 kB" in a line of its own, as in /proc/meminfo; in that of a node "Node 0 " stands
 * in front. In bytes; without "kB" the number itself.
 */
bool dryi_fact_keyed(const char *text, size_t length, const char *key, uint64_t *number);

/* "KEY 123", as in memory.stat. */
bool dryi_fact_field(const char *text, size_t length, const char *key, uint64_t *number);

/* Is `word` the chosen one in "always [madvise] never"? */
bool dryi_fact_is_chosen(const char *text, size_t length, const char *word);

/* "hugepages-2048kB": the bytes of a page. */
bool dryi_fact_pool_name(const char *name, size_t length, uint64_t *page_bytes);

/* The bytes of a line from *at on, without its end; *at goes behind it. false: no more. */
bool dryi_fact_line(const char *text, size_t length, size_t *at, const char **line,
                    size_t *line_length);

#endif
