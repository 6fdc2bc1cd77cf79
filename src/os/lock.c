/* SPDX-License-Identifier: Apache-2.0 */

/* The slow paths of lock.h: spinning, sleeping (futex(2)), the fence and contention. */
#include "os/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 400 /* about 10 us: most waits end sooner */
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

/* Mark the lock contended and run the fence. False: the kernel refuses the fence although
   it accepted the registration. */
static bool
make_contended(struct dryi_lock *lock)
{
    if (atomic_load_explicit(&lock->is_contended, memory_order_seq_cst))
        return true;
    atomic_store_explicit(&lock->is_contended, 1, memory_order_seq_cst);
    return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

/*
 * Sleep until this thread gets the lock. A giver that did not see the lock contended read
 * the flag before the fence. So its store is visible after the fence, and the exchange
 * finds the lock free. A giver that saw it contended wakes a sleeper. is_contended is
 * read again after the exchange: a giver that ended contention before the exchange may
 * have overwritten the 2.
 *
 * A thread that gets the lock here leaves 2 in it, for other threads may sleep. The lock
 * must then be given by an exchange. So this thread marks it contended again, in case a
 * giver has just ended contention. This store needs no fence, for the next reader is this
 * thread.
 *
 * Without the fence none of this holds, so sleeps are limited to UNFENCED_NS. While one
 * thread waits for its fence, another that saw the lock contended may sleep although the
 * lock is free. It wakes at the latest when the first thread gives the lock.
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
 * Give a contended lock. A call that ends contention wakes one sleeper even if the lock
 * is not 2. Another giver may have overwritten the 2 with its store; its second check
 * would then find the lock uncontended and wake no thread.
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
