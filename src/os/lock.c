/* SPDX-License-Identifier: Apache-2.0 */
#include "os/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS 40  /* a microsecond or two: what a pool does is shorter */
#define CALM 4096 /* given so often without a sleeper: it is contended no more */
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
 * A giver that did not see the lock contended looked before the fence, so behind it its store
 * is seen, and the exchange finds the lock free. One that saw it wakes us. Contended is looked
 * at once more after the exchange: a giver that ended it before may have overwritten the 2.
 * Without the fence none of this holds, and the sleep is short.
 */
void
dryi_lock_sleep(struct dryi_lock *lock)
{
    if (spin(lock))
        return;
    bool is_fenced = true;
    for (;;) {
        is_fenced &= make_contended(lock);
        if (atomic_exchange_explicit(&lock->word, 2, memory_order_seq_cst) == 0)
            return;
        struct timespec moment = {.tv_nsec = UNFENCED_NS};
        if (atomic_load_explicit(&lock->is_contended, memory_order_seq_cst))
            syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2,
                    is_fenced ? NULL : &moment, NULL, 0);
    }
}

void
dryi_lock_give_contended(struct dryi_lock *lock)
{
    bool has_sleeper = atomic_load_explicit(&lock->word, memory_order_relaxed) == 2;
    lock->calm = has_sleeper ? 0 : lock->calm + 1;
    if (lock->calm > CALM && lock->has_barrier) {
        lock->calm = 0;
        atomic_store_explicit(&lock->is_contended, 0, memory_order_seq_cst);
    }
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_seq_cst) == 2)
        dryi_lock_wake(lock);
}

void
dryi_lock_wake(struct dryi_lock *lock)
{
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
