/* SPDX-License-Identifier: Apache-2.0 */

/* A new thread inherits the mask of its creator, so the mask is set around
   pthread_create(). */
#include "os/thread.h"

#include <signal.h>
#include <stddef.h>

static const int raised_by_itself[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

bool
dryi_thread_start(struct dryi_thread *thread, void *(*run)(void *self), void *self)
{
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof raised_by_itself / sizeof *raised_by_itself; i++)
        sigdelset(&all, raised_by_itself[i]);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool is_started = pthread_create(&thread->id, NULL, run, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* cannot fail: restores a valid mask */
    return is_started;
}

void
dryi_thread_join(struct dryi_thread *thread)
{
    pthread_join(thread->id, NULL);
}
