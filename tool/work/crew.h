/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CREW_H
#define TOOL_CREW_H

/*
 * A crew: threads that take tasks from a queue, first in, first out, and return results.
 *
 *     struct crew *crew = crew_begin(&work, threads);
 *     while (...) {
 *         while (there are tasks left && crew_wants(crew))
 *             crew_give(crew, task);
 *         if (crew_take(crew, &finished))
 *             keep(finished.task, finished.text);
 *     }
 *     crew_end(crew);
 *
 * Threads    One thread, the crew's owner, calls these functions.
 */

#include <stdbool.h>
#include <stddef.h>

#include "work/work.h"

struct crew_result {
    size_t task;
    char *text; /* the caller frees it; NULL if memory ran out */
};

/* Start the threads. Returns NULL if memory ran out or no thread could be started. */
struct crew *crew_begin(const struct work *work, unsigned threads);
/* Return true if fewer than two tasks a thread are given and not taken back. */
bool crew_wants(const struct crew *crew);
/* Give a task to the crew. Requires crew_wants(). */
void crew_give(struct crew *crew, size_t task);
/* Wait for a result. Returns false if all given tasks are taken back. */
bool crew_take(struct crew *crew, struct crew_result *result);
/* Take a result without waiting. Returns false if there is none. */
bool crew_poll(struct crew *crew, struct crew_result *result);
/* Return the number of tasks that are given and not taken back. */
size_t crew_busy(const struct crew *crew);
/* Wait for running tasks, then free the crew with all other tasks and results. */
void crew_end(struct crew *crew);

#endif
