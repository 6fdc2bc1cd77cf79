/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea stands in lock.h; this file has the slow halves: spinning, sleeping (futex(2)), the
 * fence and contention. test/prop/model_lock.c is its proof by cases.
 */
#include "os/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 400 /* about ten microseconds: what stops all threads is mostly shorter */
#define UNFENCED_NS 1000000

static long
membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void
dryi_lock_init(struct dryi_lock *lock)
{
    atomic_init(&lock->word, 0);
    lock->calm = 0;
    lock->calm_wanted = DRYI_LOCK_CALM;
    lock->has_barrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    atomic_init(&lock->is_contended, !lock->has_barrier);
}

static void
pause_a_moment(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool
spin(struct dryi_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        pause_a_moment();
        if (!atomic_load_explicit(&lock->word, memory_order_relaxed) &&
            dryi_lock_try(lock))
            return true;
    }
    return false;
}

/* False: the fence that was promised is refused after all. */
static bool
make_contended(struct dryi_lock *lock)
{
    if (atomic_load_explicit(&lock->is_contended, memory_order_seq_cst))
        return true;
    atomic_store_explicit(&lock->is_contended, 1, memory_order_seq_cst);
    return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

/*
 * Sleep until the lock is ours. A giver that did not see the lock contended looked before the
 * fence, so behind the fence its store is seen, and the exchange finds the lock free. A giver
 * that saw it contended wakes us. is_contended is read once more after the exchange: a giver
 * that ended contention before the exchange may have overwritten the 2.
 *
 * A thread that gets the lock here leaves 2 in it for others that may sleep. The lock must
 * then be given by an exchange, so it is marked contended again: a giver may have ended that
 * in between. No fence is needed for this mark, for the next to look at it is the thread
 * itself.
 *
 * Without the fence none of this holds, and the sleep is short. A thread that found the lock
 * contended before the fence was made may sleep beside a free lock until the thread that
 * makes the fence has got it.
 */
void
dryi_lock_sleep(struct dryi_lock *lock)
{
    if (spin(lock))
        return;
    bool is_fenced = true;
    for (;;) {
        is_fenced &= make_contended(lock);
        if (atomic_exchange_explicit(&lock->word, 2, memory_order_seq_cst) == 0) {
            atomic_store_explicit(&lock->is_contended, 1, memory_order_relaxed);
            return;
        }
        struct timespec moment = {.tv_nsec = UNFENCED_NS};
        if (atomic_load_explicit(&lock->is_contended, memory_order_seq_cst))
            syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2,
                    is_fenced ? NULL : &moment, NULL, 0);
    }
}

/*
 * Give a contended lock. A call that ends contention wakes one sleeper even if the word is
 * not 2, for another giver may already have overwritten the 2 with its store. The second look of
 * that giver would now find the lock uncontended and wake nobody.
 */
void
dryi_lock_give_contended(struct dryi_lock *lock)
{
    bool has_sleeper = atomic_load_explicit(&lock->word, memory_order_relaxed) == 2;
    lock->calm = has_sleeper ? 0 : lock->calm + 1;
    bool is_over = lock->calm > lock->calm_wanted && lock->has_barrier;
    if (is_over) {
        lock->calm = 0;
        if (lock->calm_wanted < DRYI_LOCK_CALM_MAX)
            lock->calm_wanted *= DRYI_LOCK_CALM_GROWS;
        atomic_store_explicit(&lock->is_contended, 0, memory_order_seq_cst);
    }
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_seq_cst) == 2 || is_over)
        dryi_lock_wake(lock);
}

void
dryi_lock_wake(struct dryi_lock *lock)
{
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
