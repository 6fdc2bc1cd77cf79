/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_THREAD_H
#define DRYI_OS_THREAD_H

/*
 * A thread of the library. Signals are blocked in it, so the program's handlers run in
 * the program's own threads. Signals that a thread raises by its own fault stay open:
 * blocked, they would end the process even if the program has a handler. SIGSYS is one; a
 * seccomp filter may send it.
 */

#include <pthread.h>
#include <stdbool.h>

struct dryi_thread {
    pthread_t id;
};

/* Start a thread; false: the system refuses. Requires that `run` returns by itself. */
bool dryi_thread_start(struct dryi_thread *thread, void *(*run)(void *self), void *self);
/* Join a started thread, once. Not in the child of a fork, which has no such thread. */
void dryi_thread_join(struct dryi_thread *thread);

#endif
