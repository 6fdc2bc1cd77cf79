/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LOCK_H
#define DRYI_LOCK_H

/*
 * A lock: one thread at a time has it, and threads that wait for it sleep.
 *
 * A pool takes a lock or two in every call, so they are made to cost little. Taking a free
 * one is one atomic instruction, giving it back is a store, and neither is atomic while the
 * process has one thread. After its store the giver looks whether anybody has begun to sleep.
 * No fence of the giver's keeps these two in order: it would be as dear as the rest together.
 * Instead, the first to sleep has the kernel put a fence into every thread of the process,
 * before it looks at the lock for the last time (membarrier(2), Linux 4.14). These are
 * Dekker's two flags, with the fence on the side that has the time.
 *
 * After that fence the lock is contended: it is given by an exchange that tells whether
 * anybody sleeps (Drepper, "Futexes are tricky", 2011). It is contended no more when nobody
 * has slept for long, and longer each time, for the fence is dear. It can take as long as ten
 * thousand exchanges if other processors must first be given back to the machine that we run
 * on. If the kernel has no such fence, the lock is contended for ever.
 *
 * The giver looks at the lock when others may have it already: its memory is to outlive the
 * call of whoever gives it, not just the time it is held. Not for signal handlers, not
 * recursive, not fair. bench/bench_pool.c compares it with the C library's mutex;
 * test/prop/model_lock.c goes through all that can happen between three threads.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inline.h"

#ifdef __GLIBC_PREREQ
/* The oldest that the program will run on, not the newest known. */
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#define DRYI_LOCK_IS_ALONE() (__libc_single_threaded)
#endif
#endif
#ifndef DRYI_LOCK_IS_ALONE
#define DRYI_LOCK_IS_ALONE() 0
#endif

/*
 * After CALM gives without a sleeper the lock is contended no more; each time CALM_GROWS
 * times as many are wanted, up to CALM_MAX.
 */
#define DRYI_LOCK_CALM 4096u
#define DRYI_LOCK_CALM_GROWS 4u
#define DRYI_LOCK_CALM_MAX (DRYI_LOCK_CALM << 8)

struct dryi_lock {
    _Atomic uint32_t word; /* 0: free; 1: taken; 2: and somebody may sleep */
    _Atomic uint32_t is_contended;
    uint32_t calm;        /* contended, and given so often since anybody slept */
    uint32_t calm_wanted; /* and is no more, if it is more often */
    bool has_barrier;
};

/*
 * Make a free lock. This is a system call. The first of a process that has several threads by
 * then takes milliseconds: the kernel waits until all processors know that the process may
 * ask for fences. The child of a fork need not ask again.
 */
void dryi_lock_init(struct dryi_lock *lock);
/* The slow halves. */
DRYI_NOINLINE void dryi_lock_sleep(struct dryi_lock *lock);
DRYI_NOINLINE void dryi_lock_give_contended(struct dryi_lock *lock);
DRYI_NOINLINE void dryi_lock_wake(struct dryi_lock *lock);

/* Nothing to be given back. */
static inline void
dryi_lock_finish(struct dryi_lock *lock)
{
    (void)lock;
}

/* For assertions: does some thread hold the lock? */
static inline bool
dryi_lock_is_taken(const struct dryi_lock *lock)
{
    return atomic_load_explicit(&lock->word, memory_order_relaxed) != 0;
}

/* False: somebody has it, perhaps a thread that a fork left behind. */
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
    atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps the order, too */
    if (atomic_load_explicit(&lock->is_contended, memory_order_relaxed))
        dryi_lock_wake(lock);
}

/* A number that no other thread of the process has now. */
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
