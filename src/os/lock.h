/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LOCK_H
#define DRYI_LOCK_H

/* One thread at a time: the C library's mutex (see bench/bench_pool.c for what it costs). */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct dryi_lock {
    pthread_mutex_t mutex;
};

static inline void
dryi_lock_init(struct dryi_lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL); /* cannot fail without attributes */
}

static inline void
dryi_lock_finish(struct dryi_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static inline void
dryi_lock_take(struct dryi_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

/* False: somebody has it, perhaps a thread that a fork left behind. */
static inline bool
dryi_lock_try(struct dryi_lock *lock)
{
    return pthread_mutex_trylock(&lock->mutex) == 0;
}

static inline void
dryi_lock_give(struct dryi_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

/* A number that no other thread of the process has now. */
static inline uintptr_t
dryi_thread_self(void)
{
    return (uintptr_t)pthread_self();
}

#endif
