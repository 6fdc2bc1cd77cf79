/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_THREAD_H
#define DRYI_OS_THREAD_H

/*
 * A thread of ours, for work that nobody should wait for. No signal is delivered to it: the
 * program's handlers run in the program's threads.
 */

#include <pthread.h>
#include <stdbool.h>

struct dryi_thread {
    pthread_t id;
};

/* False: the system gives none. What it runs returns by itself. */
bool dryi_thread_start(struct dryi_thread *thread, void *(*run)(void *self), void *self);
/* Once for every start, and not in the child of a fork: it has no such thread. */
void dryi_thread_join(struct dryi_thread *thread);

#endif
