/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lock under real threads: what is counted under it is counted, who sleeps is woken. What
 * can happen between two instructions is for prop/model_lock.c. A test that waits in vain
 * leaves its threads where they are, and what they use.
 *
 * DRY_TEST_ONLY=NAME runs one test.
 */
#include "support/cmocka.h"
#include "support/random.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/lock.h"

#define THREADS_MAX 8
#define WAITS 20000 /* of a quarter of a millisecond: in vain */

struct stage {
    struct dryi_lock lock;
    uint64_t count; /* under the lock */
    unsigned rounds, nap_every;
    atomic_int last_id; /* of the thread that started last */
    atomic_uint finished;
    bool tried; /* what try said */
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
};

static void
nap(long ns)
{
    struct timespec moment = {.tv_nsec = ns};
    nanosleep(&moment, NULL);
}

static struct stage *
make_stage(void)
{
    /* A thread that is not woken is a failure, not a wait; each test has its own minute, of
       which it needs a fraction of a second. */
    alarm(60);
    struct stage *s = calloc(1, sizeof *s);
    assert_non_null(s);
    dryi_lock_init(&s->lock);
    return s;
}

/* All threads, which were seen to come to their end. */
static void
free_stage(struct stage *s)
{
    for (unsigned i = 0; i < s->thread_count; i++)
        assert_int_equal(pthread_join(s->threads[i], NULL), 0);
    assert_int_equal(atomic_load(&s->lock.word), 0);
    dryi_lock_finish(&s->lock);
    free(s);
}

static void
start(struct stage *s, void *(*run)(void *stage))
{
    assert_true(s->thread_count < THREADS_MAX);
    assert_int_equal(pthread_create(&s->threads[s->thread_count++], NULL, run, s), 0);
}

static void
await_finished(struct stage *s, unsigned count)
{
    for (int i = 0; i < WAITS && atomic_load(&s->finished) < count; i++)
        nap(250000);
    assert_int_equal(atomic_load(&s->finished), count);
}

static bool
is_asleep(int id)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *after_name = strrchr(text, ')');
    return after_name && after_name[1] == ' ' && after_name[2] == 'S';
}

/* Starts one that takes the lock, which we have; it sleeps in the kernel for it. */
static void
start_sleeper(struct stage *s, void *(*run)(void *stage))
{
    atomic_store(&s->last_id, 0);
    start(s, run);
    for (int i = 0; i < WAITS; i++) {
        int id = atomic_load(&s->last_id);
        if (id != 0 && atomic_load(&s->lock.word) == 2 && is_asleep(id))
            return;
        nap(250000);
    }
    fail_msg("no thread sleeps for the lock");
}

static void *
take_once(void *stage)
{
    struct stage *s = stage;
    atomic_store(&s->last_id, (int)syscall(SYS_gettid));
    dryi_lock_take(&s->lock);
    s->count++;
    dryi_lock_give(&s->lock);
    atomic_fetch_add(&s->finished, 1);
    return NULL;
}

static void *
try_once(void *stage)
{
    struct stage *s = stage;
    s->tried = dryi_lock_try(&s->lock);
    if (s->tried)
        dryi_lock_give(&s->lock);
    atomic_fetch_add(&s->finished, 1);
    return NULL;
}

static void *
count_up(void *stage)
{
    struct stage *s = stage;
    for (unsigned i = 1; i <= s->rounds; i++) {
        dryi_lock_take(&s->lock);
        uint64_t seen = s->count;
        if (s->nap_every && i % s->nap_every == 0)
            nap(20000);
        s->count = seen + 1;
        dryi_lock_give(&s->lock);
    }
    atomic_fetch_add(&s->finished, 1);
    return NULL;
}

static void
count_together(struct stage *s, unsigned threads, unsigned rounds, unsigned nap_every)
{
    s->rounds = rounds;
    s->nap_every = nap_every;
    for (unsigned i = 0; i < threads; i++)
        start(s, count_up);
    await_finished(s, threads);
    assert_int_equal(s->count, (uint64_t)threads * rounds);
}

static void
take_and_give(struct stage *s, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        dryi_lock_take(&s->lock);
        dryi_lock_give(&s->lock);
    }
}

/* --- one thread ---------------------------------------------------------------------------- */

/* The first test: the process has one thread yet, where nothing of the kind is a sanitizer's. */
static void
one_thread_takes_and_gives(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    for (int i = 0; i < 3; i++) {
        assert_true(dryi_lock_try(&s->lock));
        assert_false(dryi_lock_try(&s->lock));
        dryi_lock_give(&s->lock);
        assert_true(dryi_lock_try(&s->lock));
        dryi_lock_give(&s->lock);
        dryi_lock_take(&s->lock);
        assert_false(dryi_lock_try(&s->lock));
        dryi_lock_give(&s->lock);
    }
    free_stage(s);
}

/* The second: taken while alone, given when there are two. */
static void
lock_held_alone_holds_against_the_next_thread(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    dryi_lock_take(&s->lock);
    start_sleeper(s, take_once);
    assert_int_equal(s->count, 0);
    dryi_lock_give(&s->lock);
    await_finished(s, 1);
    assert_int_equal(s->count, 1);
    free_stage(s);
}

/* --- several ------------------------------------------------------------------------------- */

static void
try_tells_whether_another_has_it(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    dryi_lock_take(&s->lock);
    start(s, try_once);
    await_finished(s, 1);
    assert_false(s->tried);
    dryi_lock_give(&s->lock);
    start(s, try_once);
    await_finished(s, 2);
    assert_true(s->tried);
    free_stage(s);
}

static void
counts_are_not_lost(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    count_together(s, 4, 100000, 0);
    free_stage(s);
}

static void
counts_are_not_lost_over_sleep(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    count_together(s, 6, 600, 16);
    free_stage(s);
}

static void
all_sleepers_are_woken_by_one_gift(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    dryi_lock_take(&s->lock);
    for (int i = 0; i < THREADS_MAX; i++)
        start_sleeper(s, take_once);
    dryi_lock_give(&s->lock);
    await_finished(s, THREADS_MAX);
    assert_int_equal(s->count, THREADS_MAX);
    free_stage(s);
}

static void
contention_begins_with_a_sleeper_and_ends_in_calm(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    bool has_barrier = s->lock.has_barrier;
    assert_int_equal(atomic_load(&s->lock.is_contended), !has_barrier);
    unsigned calm = DRYI_LOCK_CALM;
    for (unsigned i = 1; i <= 6; i++) {
        dryi_lock_take(&s->lock);
        start_sleeper(s, take_once);
        assert_int_equal(atomic_load(&s->lock.is_contended), 1);
        dryi_lock_give(&s->lock);
        await_finished(s, i);
        assert_int_equal(atomic_load(&s->lock.is_contended), 1);
        take_and_give(s, calm - 10);
        assert_int_equal(atomic_load(&s->lock.is_contended), 1);
        take_and_give(s, 20);
        assert_int_equal(atomic_load(&s->lock.is_contended), !has_barrier);
        if (calm < DRYI_LOCK_CALM_MAX)
            calm *= DRYI_LOCK_CALM_GROWS;
    }
    free_stage(s);
}

static void
a_sleeper_puts_calm_off(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    for (unsigned i = 1; i <= 2; i++) {
        dryi_lock_take(&s->lock);
        start_sleeper(s, take_once);
        dryi_lock_give(&s->lock);
        await_finished(s, i);
        take_and_give(s, DRYI_LOCK_CALM - 10);
    }
    assert_int_equal(atomic_load(&s->lock.is_contended), 1);
    free_stage(s);
}

/*
 * A giver is interrupted between its store and its second look: the sleeper hears nothing from
 * it, and nothing from the word, which the store has overwritten. So who ends contention wakes.
 */
static void
end_of_contention_leaves_nobody_asleep(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    if (!s->lock.has_barrier) {
        free_stage(s);
        skip_because("the kernel has no fence, and contention no end");
    }
    dryi_lock_take(&s->lock);
    start_sleeper(s, take_once);
    atomic_store(&s->lock.word, 0);
    take_and_give(s, DRYI_LOCK_CALM + 1);
    await_finished(s, 1);
    free_stage(s);
}

static void
without_a_fence_contention_has_no_end(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    s->lock.has_barrier = false;
    atomic_store(&s->lock.is_contended, 1);
    count_together(s, 4, 600, 32);
    take_and_give(s, 2 * DRYI_LOCK_CALM);
    assert_int_equal(atomic_load(&s->lock.is_contended), 1);
    free_stage(s);
}

/* --- many locks ---------------------------------------------------------------------------- */

#define LOCKS 16

struct bank {
    struct {
        struct dryi_lock lock;
        int64_t coins;
    } accounts[LOCKS];
    atomic_uint seed;
};

static void *
move_coins(void *self)
{
    struct bank *bank = self;
    struct random random;
    random_init(&random, atomic_fetch_add(&bank->seed, 1));
    for (int i = 0; i < 5000; i++) {
        size_t a = (size_t)random_below(&random, LOCKS - 1);
        size_t b = a + 1 + (size_t)random_below(&random, LOCKS - 1 - a);
        dryi_lock_take(&bank->accounts[a].lock);
        dryi_lock_take(&bank->accounts[b].lock); /* the lower one first, always */
        int64_t coins = random_below(&random, 2) ? 1 : -1;
        bank->accounts[a].coins += coins;
        bank->accounts[b].coins -= coins;
        if (i % 500 == 0)
            nap(20000);
        dryi_lock_give(&bank->accounts[i % 2 ? a : b].lock); /* in any order */
        dryi_lock_give(&bank->accounts[i % 2 ? b : a].lock);
    }
    return NULL;
}

static void
locks_in_an_order_are_held_together(void **state)
{
    (void)state;
    struct bank *bank = calloc(1, sizeof *bank);
    assert_non_null(bank);
    for (int i = 0; i < LOCKS; i++)
        dryi_lock_init(&bank->accounts[i].lock);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, move_coins, bank), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    int64_t sum = 0;
    for (int i = 0; i < LOCKS; i++) {
        assert_true(dryi_lock_try(&bank->accounts[i].lock));
        dryi_lock_give(&bank->accounts[i].lock);
        sum += bank->accounts[i].coins;
    }
    assert_int_equal(sum, 0);
    free(bank);
}

/* --- the child of a fork ------------------------------------------------------------------- */

static int
status_of(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* It was contended before the fork, and is by the parent's threads. */
static void
child_of_a_fork_has_a_lock_of_its_own(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    count_together(s, 4, 300, 16);
    dryi_lock_take(&s->lock);
    start_sleeper(s, take_once);
    pid_t child = fork();
    if (child == 0) {
        bool was_held = !dryi_lock_try(&s->lock); /* by us, before the fork */
        dryi_lock_give(&s->lock);
        take_and_give(s, 2 * DRYI_LOCK_CALM);
        bool is_free = dryi_lock_try(&s->lock);
        _exit(was_held && is_free ? 17 : 18);
    }
    assert_int_equal(status_of(child), 17);
    assert_int_equal(atomic_load(&s->lock.word), 2); /* here all is as it was */
    dryi_lock_give(&s->lock);
    await_finished(s, 5);
    free_stage(s);
}

static void *
hold_a_while(void *stage)
{
    struct stage *s = stage;
    dryi_lock_take(&s->lock);
    atomic_store(&s->last_id, 1);
    for (int i = 0; i < WAITS && atomic_load(&s->last_id) == 1; i++)
        nap(250000);
    dryi_lock_give(&s->lock);
    atomic_fetch_add(&s->finished, 1);
    return NULL;
}

static void
child_of_a_fork_sees_what_a_thread_left_locked(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    start(s, hold_a_while);
    for (int i = 0; i < WAITS && atomic_load(&s->last_id) != 1; i++)
        nap(250000);
    pid_t child = fork();
    if (child == 0)
        _exit(dryi_lock_try(&s->lock) ? 18 : 17);
    assert_int_equal(status_of(child), 17);
    atomic_store(&s->last_id, 2);
    await_finished(s, 1);
    free_stage(s);
}

/* --- a kernel that refuses the fence; from here on to the end of the process ---------------- */

/* 0, or why it is not to be had. */
static int
refuse_fences(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        return errno;
    return syscall(SYS_membarrier, 0, 0, 0) == -1 && errno == EPERM ? 0 : ENOSYS;
}

static void
fence_refused_after_it_was_promised(void **state)
{
    (void)state;
    struct stage *s = make_stage();
    int why = refuse_fences();
    if (why != 0) {
        free_stage(s);
        skip_because("no filter of system calls (error %d)", why);
    }
    dryi_lock_take(&s->lock);
    start_sleeper(s, take_once);
    atomic_store(&s->lock.word, 0); /* by a giver that sees nobody: none has to wake us */
    await_finished(s, 1);
    s->count = 0;
    atomic_store(&s->finished, 0);
    count_together(s, 4, 300, 32);
    free_stage(s);
}

static void
fence_refused_from_the_beginning(void **state)
{
    (void)state;
    if (refuse_fences() != 0)
        skip_because("no filter of system calls");
    struct stage *s = make_stage();
    assert_false(s->lock.has_barrier);
    assert_int_equal(atomic_load(&s->lock.is_contended), 1);
    count_together(s, 4, 300, 16);
    take_and_give(s, 2 * DRYI_LOCK_CALM);
    assert_int_equal(atomic_load(&s->lock.is_contended), 1);
    free_stage(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_takes_and_gives),
        cmocka_unit_test(lock_held_alone_holds_against_the_next_thread),
        cmocka_unit_test(try_tells_whether_another_has_it),
        cmocka_unit_test(all_sleepers_are_woken_by_one_gift),
        cmocka_unit_test(counts_are_not_lost),
        cmocka_unit_test(counts_are_not_lost_over_sleep),
        cmocka_unit_test(contention_begins_with_a_sleeper_and_ends_in_calm),
        cmocka_unit_test(a_sleeper_puts_calm_off),
        cmocka_unit_test(end_of_contention_leaves_nobody_asleep),
        cmocka_unit_test(without_a_fence_contention_has_no_end),
        cmocka_unit_test(locks_in_an_order_are_held_together),
        cmocka_unit_test(child_of_a_fork_has_a_lock_of_its_own),
        cmocka_unit_test(child_of_a_fork_sees_what_a_thread_left_locked),
        cmocka_unit_test(fence_refused_after_it_was_promised),
        cmocka_unit_test(fence_refused_from_the_beginning),
    };
    const char *only = getenv("DRY_TEST_ONLY");
    if (only && *only)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
