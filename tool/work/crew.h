/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CREW_H
#define TOOL_CREW_H

/*
 * A crew: threads that take tasks from a queue, first in, first out, and hand results back.
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
    char *text; /* the caller's to free; NULL: there was no memory */
};

/* Begin; NULL: no memory, or not one thread could be started. */
struct crew *crew_begin(const struct work *work, unsigned threads);
/* True if less than two tasks a thread are given and not taken back. */
bool crew_wants(const struct crew *crew);
/* Requires crew_wants(). */
void crew_give(struct crew *crew, size_t task);
/* Wait for a result. False: every task that was given is taken back. */
bool crew_take(struct crew *crew, struct crew_result *result);
/* The same without waiting; false as well if no result is there yet. */
bool crew_poll(struct crew *crew, struct crew_result *result);
/* How many tasks are given and not taken back. */
size_t crew_busy(const struct crew *crew);
/* Wait for the tasks that are being done; drop the others and what nobody took. */
void crew_end(struct crew *crew);

#endif
