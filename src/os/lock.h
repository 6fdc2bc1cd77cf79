/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LOCK_H
#define DRYI_LOCK_H

/*
 * A lock: one thread at a time holds it, and waiting threads sleep.
 *
 * A pool takes a lock or two in every call, so taking and giving must be cheap. Taking a
 * free lock is one atomic instruction and giving it back is a store. Neither is atomic
 * while the process has one thread. After its store the giver checks whether another
 * thread has begun to sleep. A fence between this store and this load would cost as much
 * as the rest together. Instead, the first sleeper has the kernel run a fence in every
 * thread of the process (membarrier(2), Linux 4.14). Only then does the sleeper read the
 * lock for the last time. These are Dekker's two flags, with the fence on the side that
 * is slow anyway.
 *
 * After that fence the lock is contended: it is given by an exchange, which tells whether
 * a thread sleeps (Drepper, "Futexes are tricky", 2011). Contention ends after many gives
 * without a sleeper. The number grows each time, because the fence is expensive: on a
 * virtual machine with descheduled processors it can take as long as ten thousand
 * exchanges. On a kernel without membarrier the lock stays contended.
 *
 * The giver reads the lock after its store, when another thread may already hold the
 * lock. So the lock's memory must outlive every call that gives it. The lock is not
 * recursive, not fair, and not for signal handlers. bench/bench_pool.c compares it with
 * the C library's mutex; test/prop/model_lock.c checks all interleavings of three
 * threads.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inline.h"

#ifdef __GLIBC_PREREQ
/* The test is for the oldest glibc that the program runs on: glibc has
   __libc_single_threaded since 2.32. */
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define DRYI_LOCK_IS_ALONE() (__libc_single_threaded)
#endif
#endif
#ifndef DRYI_LOCK_IS_ALONE
#define DRYI_LOCK_IS_ALONE() 0
#endif

/* Contention ends after CALM gives without a sleeper. Each end multiplies the number for
   the next by CALM_GROWS, up to CALM_MAX. */
#define DRYI_LOCK_CALM 4096u
#define DRYI_LOCK_CALM_GROWS 4u
#define DRYI_LOCK_CALM_MAX (DRYI_LOCK_CALM << 8)

struct dryi_lock {
    _Atomic uint32_t word; /* 0: free; 1: held; 2: held, and a thread may sleep */
    _Atomic uint32_t is_contended;
    uint32_t calm;        /* while contended: gives since a thread last slept */
    uint32_t calm_wanted; /* contention ends when `calm` exceeds this */
    bool has_barrier;
};

/*
 * Make a free lock, by one system call. In a process that has several threads already,
 * the first such call takes milliseconds: the kernel waits until all processors know that
 * the process may ask for fences. The child of a fork inherits this registration.
 */
void dryi_lock_init(struct dryi_lock *lock);
/* The slow paths of taking and giving. */
DRYI_NOINLINE void dryi_lock_sleep(struct dryi_lock *lock);
DRYI_NOINLINE void dryi_lock_give_contended(struct dryi_lock *lock);
DRYI_NOINLINE void dryi_lock_wake(struct dryi_lock *lock);

/* End a lock. A lock owns no resources; this is the pair of init. */
static inline void
dryi_lock_finish(struct dryi_lock *lock)
{
    (void)lock;
}

/* Tell whether some thread holds the lock; for assertions. */
static inline bool
dryi_lock_is_taken(const struct dryi_lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) != 0;
}

/* Take the lock if it is free. False: it is held, perhaps by a thread that does not exist
   in this child of a fork. */
static inline bool
dryi_lock_try(struct dryi_lock *lock)
{
    if (DRYI_LOCK_IS_ALONE()) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed))
            return false;
        atomic_store_explicit(&lock->word, 1, memory_order_relaxed);
        return true;
    }
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(
        &lock->word, &free, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void
dryi_lock_take(struct dryi_lock *lock)
{
    if (!dryi_lock_try(lock))
        dryi_lock_sleep(lock);
}

static inline void
dryi_lock_give(struct dryi_lock *lock)
{
    if (DRYI_LOCK_IS_ALONE()) { /* nobody sleeps */
        atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
        return;
    }
    if (atomic_load_explicit(&lock->is_contended, memory_order_relaxed)) {
        dryi_lock_give_contended(lock);
        return;
    }
    atomic_store_explicit(&lock->word, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* keeps the compiler from moving the load
                                                  before the store */
    if (atomic_load_explicit(&lock->is_contended, memory_order_relaxed))
        dryi_lock_wake(lock);
}

/* Return a number that no other living thread of the process has. */
static inline uintptr_t
dryi_thread_self(void)
{
#if defined(__x86_64__) && defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
    return (uintptr_t)__builtin_thread_pointer();
#endif
#endif
    return (uintptr_t)pthread_self();
}

#endif
