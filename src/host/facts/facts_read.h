/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_FACTS_READ_H
#define DRYI_HOST_FACTS_READ_H

/* Bounded reading of files. Paths are formats, appended to the root. False: the file is
   unreadable. */

#include "host/facts/facts.h"

#define DRYI_FACTS_TEXT_MAX 8192

struct dryi_fact_file {
    char text[DRYI_FACTS_TEXT_MAX];
    size_t length;
};

/* Read a file; bytes beyond DRYI_FACTS_TEXT_MAX are ignored. */
__attribute__((format(printf, 3, 4))) bool dryi_facts_read(const struct dryi_facts *facts,
                                                           struct dryi_fact_file *file,
                                                           const char *path, ...);
__attribute__((format(printf, 3, 4))) bool dryi_facts_read_number(
    const struct dryi_facts *facts, uint64_t *number, const char *path, ...);
/* Read the lines of a long file that contain `word`, as many as fit. */
bool dryi_facts_read_lines(const struct dryi_facts *facts, struct dryi_fact_file *file,
                           const char *path, const char *word);
/* Read a long file from the first line that contains `word`, as much as fits. */
bool dryi_facts_read_from(const struct dryi_facts *facts, struct dryi_fact_file *file,
                          const char *path, const char *word);

#endif
