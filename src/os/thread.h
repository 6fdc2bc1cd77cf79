/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_THREAD_H
#define DRYI_OS_THREAD_H

/*
 * A thread of ours. No signal is delivered to it, for the program's handlers run in the
 * program's threads, but what it raises itself: blocked, that would end the process where a
 * handler of the program would not (SIGSYS is what a filter of system calls may send).
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
