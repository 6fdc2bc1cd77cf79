/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_THREAD_H
#define DRYI_OS_THREAD_H

/*
 * A thread of ours. No signal is delivered to it, for the program's handlers run in the
 * program's threads. Excepted are signals that it raises itself: blocked, they would end the
 * process where a handler of the program would not. SIGSYS is one: a filter of system calls
 * may send it.
 */

#include <pthread.h>
#include <stdbool.h>

struct dryi_thread {
    pthread_t id;
};

/* Start a thread; false: the system gives none. Requires that `run` returns by itself. */
bool dryi_thread_start(struct dryi_thread *thread, void *(*run)(void *self), void *self);
/* Once for every start, and not in the child of a fork: it has no such thread. */
void dryi_thread_join(struct dryi_thread *thread);

#endif
