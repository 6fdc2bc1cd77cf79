/* SPDX-License-Identifier: Apache-2.0 */

/* Regions of pages on this machine, whatever it has; what it lacks is skipped and said. */
#include "support/cmocka.h"

#include <drystone/pages.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "host/facts/facts.h"
#include "host/pages/pages_inside.h"
#include "os/thread.h"

#define BYTES (6 * DRYI_MIB + 1)

static struct dry_pages_options
options_of(enum dry_pages_kind kind, enum dry_pages_policy policy)
{
    struct dry_pages_options o;
    dry_pages_options_init(&o);
    o.bytes = BYTES;
    o.kind = kind;
    o.policy = policy;
    return o;
}

static struct dry_pages *
create(const struct dry_pages_options *o, struct dry_pages_info *info)
{
    struct dry_pages *pages = NULL;
    struct dry_error err;
    enum dry_status status = dry_pages_create(o, &pages, NULL, &err);
    if (status != DRY_OK)
        print_error("%s\n", err.text);
    assert_int_equal(status, DRY_OK);
    dry_pages_get_info(pages, info);
    return pages;
}

/* The kernel tells without a signal whether a byte can be read. */
static bool
is_readable(const void *address)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    bool readable = write(ends[1], address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return readable;
}

static void
base_pages_are_there_zeroed_and_fenced(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info);
    uint64_t base = (uint64_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(info.page_bytes, base);
    assert_int_equal(info.base_page_bytes, base);
    assert_int_equal(info.bytes, dryi_round_up(BYTES, base));
    unsigned char *bytes = info.address;
    for (uint64_t i = 0; i < info.bytes; i += 512)
        assert_int_equal(bytes[i], 0);
    memset(bytes, 0xa5, info.bytes);
    assert_false(is_readable(bytes - 1));
    assert_false(is_readable(bytes + info.bytes));
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(pages, &proof, NULL), DRY_OK);
    assert_true(!proof.knows_nodes || proof.populated_bytes == info.bytes);
    assert_true(!proof.knows_huge || proof.huge_bytes == 0);
    dry_pages_destroy(pages);
    assert_false(is_readable(bytes));
}

/* A byte of every page is written, by the kernel: sanitizers have faults of their own. */
static void
write_every_page(const struct dry_pages_info *info)
{
    struct iovec pieces[256];
    uint64_t count = info->bytes / info->page_bytes;
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_true(zero >= 0);
    for (uint64_t done = 0; done < count; done += 256) {
        int n = 0;
        for (; n < 256 && done + (uint64_t)n < count; n++)
            pieces[n] = (struct iovec){
                (char *)info->address + (done + (uint64_t)n) * info->page_bytes, 1};
        assert_int_equal(syscall(SYS_readv, zero, pieces, n), n);
    }
    close(zero);
}

/* Faults after create would be the ones that can fail. */
static void
no_fault_is_left_for_later(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct rusage before, after;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        o.thread_count = threads;
        o.bytes = 40 * DRYI_MIB;
        struct dry_pages *pages = create(&o, &info);
        assert_int_equal(info.thread_count, threads);
        getrusage(RUSAGE_THREAD, &before);
        write_every_page(&info);
        getrusage(RUSAGE_THREAD, &after);
        /* Of 10,240 pages of 4 KiB; some other fault may happen by chance. */
        assert_true(after.ru_minflt - before.ru_minflt < 64);
        dry_pages_destroy(pages);
    }
}

static void
transparent_pages_are_huge_or_it_is_said(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_TRANSPARENT, DRY_PAGES_PREFER);
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info);
    const struct dry_pages_attempt *last = &info.report.attempts[info.report.count - 1];
    assert_true(last->is_granted);
    assert_int_equal((uintptr_t)info.address % info.page_bytes, 0);
    assert_int_equal(info.bytes % info.page_bytes, 0);
    if (info.kind == DRY_PAGES_TRANSPARENT && last->reason == DRY_PAGES_REASON_NONE)
        assert_int_equal(info.huge_bytes, info.bytes);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(pages, &proof, NULL), DRY_OK);
    if (proof.knows_huge && info.huge_bytes == info.bytes)
        assert_int_equal(proof.huge_bytes, info.bytes);
    if (info.kind != DRY_PAGES_TRANSPARENT)
        print_message("SKIPPED in part: %s\n",
                      dry_pages_reason_text(info.report.attempts[0].reason));
    dry_pages_destroy(pages);
}

/* PAGEMAP_SCAN and smaps are two ways to the same number. */
static void
both_ways_to_count_huge_pages_agree(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_TRANSPARENT, DRY_PAGES_PREFER);
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages_info other_info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info), *other = create(&o, &other_info);
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = ""};
    uint64_t scanned, read;
    bool can_scan =
        kernel.count_huge(NULL, (uintptr_t)info.address, info.bytes, &scanned) == 0;
    bool can_read =
        dryi_facts_huge_bytes(&facts, (uintptr_t)info.address, info.bytes, &read);
    if (can_scan && can_read)
        assert_int_equal(scanned, read);
    else
        print_message("SKIPPED: this kernel counts huge pages in one way only\n");
    assert_true(can_scan || can_read);
    dry_pages_destroy(other);
    dry_pages_destroy(pages);
}

static int
forbidden_query(void *self, size_t count, const uint64_t *addresses, int *nodes)
{
    (void)self;
    (void)count;
    (void)addresses;
    (void)nodes;
    return -EPERM;
}

/* move_pages() and numa_maps are two ways to the same shares. */
static void
both_ways_to_find_nodes_agree(void **state)
{
    (void)state;
    struct dryi_kernel asking, reading;
    dryi_kernel_init(&asking);
    reading = asking;
    reading.query_nodes = forbidden_query;
    for (int kind = DRY_PAGES_BASE; kind <= DRY_PAGES_TRANSPARENT; kind++) {
        struct dry_pages_options o =
            options_of((enum dry_pages_kind)kind, DRY_PAGES_PREFER);
        struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
        struct dry_pages *pages = create(&o, &info);
        struct dryi_pages_places places = {.kernel = &asking,
                                           .address = (uintptr_t)info.address,
                                           .bytes = info.bytes,
                                           .step = info.base_page_bytes};
        struct dryi_pages_survey asked, read;
        bool can_ask = dryi_pages_survey_nodes(&places, NULL, &asked);
        places.kernel = &reading;
        bool can_read = dryi_pages_survey_nodes(&places, NULL, &read);
        if (can_ask && can_read) {
            assert_int_equal(asked.populated_bytes, info.bytes);
            assert_int_equal(read.populated_bytes, info.bytes);
            assert_int_equal(asked.share_count, read.share_count);
            assert_int_equal(asked.shares[0].bytes, read.shares[0].bytes);
        } else {
            print_message("SKIPPED: this kernel tells of nodes in one way at most\n");
        }
        dry_pages_destroy(pages);
    }
}

static void
pool_pages_are_proven_huge(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_POOL, DRY_PAGES_STRICT);
    struct dry_pages *pages = NULL;
    struct dry_pages_report report;
    o.bytes = 1;
    if (dry_pages_create(&o, &pages, &report, NULL) != DRY_OK) {
        /* The usual machine: the refusal must say so, not something else. */
        enum dry_pages_reason reason = report.attempts[0].reason;
        assert_true(reason == DRY_PAGES_NO_POOL || reason == DRY_PAGES_NO_SUCH_SIZE ||
                    reason == DRY_PAGES_CGROUP_LIMIT ||
                    reason == DRY_PAGES_CGROUP_RESERVATION);
        print_message("SKIPPED: %s\n", dry_pages_reason_text(reason));
        return;
    }
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    dry_pages_get_info(pages, &info);
    struct dry_pages_proof proof = DRY_INIT(struct dry_pages_proof);
    assert_int_equal(dry_pages_prove(pages, &proof, NULL), DRY_OK);
    assert_true(!proof.knows_huge || proof.huge_bytes == info.bytes);
    memset(info.address, 1, info.bytes);
    dry_pages_destroy(pages);
}

/* What a child sees in the first byte, where the parent wrote 7: itself, or 255: nothing. */
static int
child_sees(const struct dry_pages_info *info)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        volatile unsigned char *byte = info->address;
        if (!is_readable(info->address))
            _exit(255);
        int seen = *byte;
        *byte = 9;
        _exit(seen);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
fork_does_what_was_chosen(void **state)
{
    (void)state;
    static const struct {
        enum dry_pages_fork fork;
        int seen, after;
    } cases[] = {{DRY_PAGES_DONTFORK, 255, 7},
                 {DRY_PAGES_INHERIT, 7, 7},
                 {DRY_PAGES_WIPE, 0, 7},
                 {DRY_PAGES_SHARED, 7, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
        struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
        o.fork = cases[i].fork;
        struct dry_pages *pages = create(&o, &info);
        volatile unsigned char *byte = info.address;
        *byte = 7;
        assert_int_equal(child_sees(&info), cases[i].seen);
        assert_int_equal(*byte, cases[i].after);
        dry_pages_destroy(pages);
    }
}

/* After DONTFORK the child may have put something else there. */
static void
destroy_in_a_child_unmaps_nothing(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    o.fork = DRY_PAGES_INHERIT;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dry_pages_destroy(pages);
        _exit(is_readable(info.address) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(is_readable(info.address));
    dry_pages_destroy(pages);
}

/* With one node there is nothing to see; the kernel must know the word all the same. */
static void
weights_are_a_word_of_newer_kernels(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info);
    struct dryi_kernel k;
    dryi_kernel_init(&k);
    struct dryi_kernel_map range = {.address = (uintptr_t)info.address,
                                    .bytes = info.bytes};
    const struct dry_pages_nodes first = {{1}};
    int result = k.bind(k.self, &range, DRYI_BIND_WEIGHTED, first.words, 64);
    bool is_new = access("/sys/kernel/mm/mempolicy/weighted_interleave", F_OK) == 0;
    if (result == -EPERM || result == -ENOSYS)
        print_message("SKIPPED: mbind is not allowed here\n");
    else
        assert_int_equal(result, is_new ? 0 : -EINVAL);
    dry_pages_destroy(pages);
}

static void
node_of_each_page_is_one_that_exists(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    o.where = DRY_PAGES_INTERLEAVED;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    struct dry_pages *pages = create(&o, &info);
    static int32_t nodes[BYTES / 4096 + 1];
    size_t count = info.bytes / info.base_page_bytes;
    struct dry_error err;
    enum dry_status status = dry_pages_query_nodes(pages, 0, count, nodes, &err);
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    struct dryi_facts facts = {.kernel = &kernel, .root = ""};
    struct dry_pages_nodes existing = {{1}}, allowed;
    (void)dryi_facts_nodes(&facts, &existing, &allowed);
    if (status != DRY_OK)
        print_message("SKIPPED: %s\n", err.text);
    for (size_t i = 0; status == DRY_OK && i < count; i++)
        assert_true(dryi_nodes_have(&existing, nodes[i]));
    dry_pages_destroy(pages);
}

static void
more_than_the_machine_is_refused_without_harm(void **state)
{
    (void)state;
    struct dry_pages_options o = options_of(DRY_PAGES_TRANSPARENT, DRY_PAGES_ANY);
    struct dry_pages *pages = NULL;
    struct dry_pages_report report;
    o.bytes = UINT64_C(1) << 46;
    assert_int_not_equal(dry_pages_create(&o, &pages, &report, NULL), DRY_OK);
    assert_null(pages);
    assert_true(report.count >= 1);
}

static atomic_int signals_sent, signals_seen;

static void
count_signal(int number)
{
    (void)number;
    signals_seen++;
}

static bool
send_signal(void *self, uint64_t done_bytes, uint64_t bytes)
{
    (void)self;
    (void)done_bytes;
    (void)bytes;
    signals_sent++;
    kill(getpid(), SIGUSR1);
    return false;
}

/* Whoever fills takes no signals; the caller does, and goes on. */
static void
signals_while_filling_are_the_callers(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = count_signal}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    struct dry_pages_options o = options_of(DRY_PAGES_BASE, DRY_PAGES_STRICT);
    o.bytes = 64 * DRYI_MIB;
    o.progress = send_signal;
    for (o.thread_count = 1; o.thread_count <= 2; o.thread_count++) {
        signals_sent = signals_seen = 0;
        struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
        struct dry_pages *pages = create(&o, &info);
        usleep(1000); /* ThreadSanitizer keeps them until a call that may block */
        /* Two threads may be at the end before the caller has begun to watch. */
        assert_true(signals_sent > 0 || o.thread_count == 2);
        assert_true(signals_seen > 0 || signals_sent == 0);
        dry_pages_destroy(pages);
    }
    sigaction(SIGUSR1, &before, NULL);
}

static void *
read_mask(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
    return NULL;
}

/* A filter of system calls that traps, say, must find the program's handler. */
static void
threads_take_only_signals_they_raise(void **state)
{
    (void)state;
    struct dryi_thread thread;
    sigset_t before, of_thread, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_true(dryi_thread_start(&thread, read_mask, &of_thread));
    dryi_thread_join(&thread);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    static const int blocked[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE};
    static const int taken[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_int_equal(sigismember(&of_thread, blocked[i]), 1);
        assert_int_equal(sigismember(&after, blocked[i]),
                         sigismember(&before, blocked[i]));
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_int_equal(sigismember(&of_thread, taken[i]), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_pages_are_there_zeroed_and_fenced),
        cmocka_unit_test(no_fault_is_left_for_later),
        cmocka_unit_test(transparent_pages_are_huge_or_it_is_said),
        cmocka_unit_test(both_ways_to_count_huge_pages_agree),
        cmocka_unit_test(both_ways_to_find_nodes_agree),
        cmocka_unit_test(pool_pages_are_proven_huge),
        cmocka_unit_test(fork_does_what_was_chosen),
        cmocka_unit_test(destroy_in_a_child_unmaps_nothing),
        cmocka_unit_test(weights_are_a_word_of_newer_kernels),
        cmocka_unit_test(node_of_each_page_is_one_that_exists),
        cmocka_unit_test(more_than_the_machine_is_refused_without_harm),
        cmocka_unit_test(signals_while_filling_are_the_callers),
        cmocka_unit_test(threads_take_only_signals_they_raise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
