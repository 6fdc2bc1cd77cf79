/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

/*
 * A progress line on standard error for work that takes over a second; terminals only.
 * SIGINT wipes out the line and ends the program.
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
    uint64_t total; /* counted like progress_update()'s `done`; 0: unknown, so the count
                       is shown */
    uint64_t begin_ns, next_ns;
    bool is_wanted, is_shown, is_caught;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total);
/* Update the line; `self` is the struct progress. Always returns false, which tells the
   library to continue. */
bool progress_update(void *self, uint64_t done);
/* Wipe out the line and restore SIGINT. */
void progress_end(struct progress *progress);

#endif
