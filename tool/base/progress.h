/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

/*
 * One line on standard error for work that takes over a second, on a terminal only. An
 * interrupt wipes it out and ends the program.
 *
 *     struct progress p;
 *     progress_begin(&p, "reading run.pickle", file_bytes);
 *     options.progress = progress_update;
 *     options.progress_self = &p;
 *     ...
 *     progress_end(&p);
 */

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;
    uint64_t total; /* 0: not known */
    uint64_t begin_ns, next_ns;
    bool is_wanted, is_shown, is_caught;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total);
/* `self` is the struct progress; always false: go on. */
bool progress_update(void *self, uint64_t done);
/* The line disappears. */
void progress_end(struct progress *progress);

#endif
