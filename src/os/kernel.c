/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of kernel.h, filled with Linux's calls. They keep no state; each makes one or
 * a few system calls. Calls and structures that libc lacks are declared here as in
 * include/uapi.
 */
#include "os/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "masks are passed as words");

#define ZEROES_AT_ONCE 256 /* addresses per readv(); below IOV_MAX, 1024 */

static void *
at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static int
to_result(long result)
{
    return result < 0 ? -errno : (int)result;
}

static int
kernel_map(void *self, const struct dryi_kernel_map *what, uint64_t *address)
{
    (void)self;
    void *mapped =
        mmap(at(what->address), what->bytes, what->protection, what->flags, -1, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    *address = (uintptr_t)mapped;
    return 0;
}

static int
kernel_unmap(void *self, uint64_t address, uint64_t bytes)
{
    (void)self;
    return to_result(munmap(at(address), bytes));
}

static int
kernel_advise(void *self, uint64_t address, uint64_t bytes, int advice)
{
    (void)self;
    return to_result(madvise(at(address), bytes, advice));
}

#define MOVE_OR_FAIL 3u /* MPOL_MF_STRICT | MPOL_MF_MOVE */

/*
 * The kernel expects the number of bits plus one (mempolicy.c, get_nodes). Fresh mappings
 * have pages already if the program has called mlockall(MCL_FUTURE); MOVE_OR_FAIL moves
 * those.
 */
static int
kernel_bind(void *self, const struct dryi_kernel_map *range, int mode,
            const uint64_t *nodes, size_t node_max)
{
    (void)self;
    return to_result(syscall(SYS_mbind, at(range->address), range->bytes, mode, nodes,
                             (unsigned long)node_max + 1,
                             mode == DRYI_BIND_STRICTLY ? MOVE_OR_FAIL : 0u));
}

static int
kernel_query_nodes(void *self, size_t count, const uint64_t *addresses, int *nodes)
{
    (void)self;
    return to_result(syscall(SYS_move_pages, 0, count, addresses, NULL, nodes, 0));
}

static int
kernel_write_zeroes(void *self, uint64_t address, uint64_t step, size_t count)
{
    (void)self;
    struct iovec pieces[ZEROES_AT_ONCE];
    size_t n = count < ZEROES_AT_ONCE ? count : ZEROES_AT_ONCE;
    for (size_t i = 0; i < n; i++)
        pieces[i] = (struct iovec){.iov_base = at(address + i * step), .iov_len = 1};
    int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int result = to_result(readv(file, pieces, (int)n));
    close(file);
    return result;
}

/* PAGEMAP_SCAN is in linux/fs.h since Linux 6.7. The headers of the build may be older
   than the kernel, so it is declared again. */
struct page_region {
    __u64 start, end, categories;
};
struct scan_argument {
    __u64 size, flags, start, end, walk_end;
    __u64 regions, region_count, page_max;
    __u64 inverted, all_of, any_of, returned;
};
#define SCAN_PAGEMAP _IOWR('f', 16, struct scan_argument)
#define PAGE_IS_HUGE (UINT64_C(1) << 6)
#define REGIONS_AT_ONCE 64

static int
scan_pagemap(int file, uint64_t begin, uint64_t end, uint64_t *huge_bytes)
{
    uint64_t sum = 0;
    while (begin < end) {
        struct page_region regions[REGIONS_AT_ONCE];
        struct scan_argument argument = {
            .size = sizeof argument,
            .start = begin,
            .end = end,
            .regions = (uintptr_t)regions,
            .region_count = REGIONS_AT_ONCE,
            .all_of = PAGE_IS_HUGE,
            .returned = PAGE_IS_HUGE,
        };
        int count = ioctl(file, SCAN_PAGEMAP, &argument);
        if (count < 0)
            return -errno;
        for (int i = 0; i < count && i < REGIONS_AT_ONCE; i++)
            sum += regions[i].end - regions[i].start;
        if (argument.walk_end <= begin)
            return -EIO;
        begin = argument.walk_end;
    }
    *huge_bytes = sum;
    return 0;
}

static int
kernel_count_huge(void *self, uint64_t address, uint64_t bytes, uint64_t *huge_bytes)
{
    (void)self;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int result = scan_pagemap(file, address, address + bytes, huge_bytes);
    close(file);
    return result;
}

/* Use the raw system calls: glibc's cpu_set_t has room for 1,024 CPUs only. */
static int
kernel_get_cpus(void *self, struct dryi_cpus *cpus)
{
    (void)self;
    *cpus = (struct dryi_cpus){{0}};
    long result = syscall(SYS_sched_getaffinity, 0, sizeof cpus->words, cpus->words);
    return result < 0 ? -errno : 0;
}

static int
kernel_set_cpus(void *self, const struct dryi_cpus *cpus)
{
    (void)self;
    return to_result(syscall(SYS_sched_setaffinity, 0, sizeof cpus->words, cpus->words));
}

static int
kernel_lock(void *self, uint64_t address, uint64_t bytes)
{
    (void)self;
    return to_result(mlock(at(address), bytes));
}

static int
kernel_unlock(void *self, uint64_t address, uint64_t bytes)
{
    (void)self;
    return to_result(munlock(at(address), bytes));
}

static uint64_t
to_bytes(const struct rlimit *limit)
{
    return limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit->rlim_cur;
}

static int
kernel_get_address_limit(void *self, uint64_t *bytes)
{
    (void)self;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0)
        return -errno;
    *bytes = to_bytes(&limit);
    return 0;
}

static int
kernel_get_lock_limit(void *self, uint64_t *bytes)
{
    (void)self;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return -errno;
    *bytes = to_bytes(&limit);
    return 0;
}

/* PR_GET_THP_DISABLE returns 1 if huge pages are off altogether. Since Linux 6.18 it
   returns 3 if they are off except where advised; this library advises, so 3 counts as
   on. */
static int
kernel_is_thp_disabled(void *self)
{
    (void)self;
    return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
}

static int64_t
kernel_process_id(void *self)
{
    (void)self;
    return getpid();
}

static uint64_t
kernel_page_bytes(void *self)
{
    (void)self;
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t
kernel_time_ns(void *self)
{
    (void)self;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
kernel_sleep_ns(void *self, uint64_t ns)
{
    (void)self;
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
                         .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

static int
kernel_open(void *self, const char *path)
{
    (void)self;
    return to_result(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static ssize_t
kernel_read(void *self, int file, char *bytes, size_t capacity)
{
    (void)self;
    ssize_t got;
    do
        got = read(file, bytes, capacity);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static void
kernel_close(void *self, int file)
{
    (void)self;
    close(file);
}

static int
kernel_list(void *self, const char *path, int (*entry)(void *to, const char *name),
            void *to)
{
    (void)self;
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    int stop = 0;
    while (!stop) {
        /* Safe although readdir() need not be: no other thread reads this directory
           stream. */
        const struct dirent *e = readdir(folder); /* NOLINT(concurrency-mt-unsafe) */
        if (!e)
            break;
        stop = entry(to, e->d_name);
    }
    closedir(folder);
    return 0;
}

static int
kernel_thread_start(void *self, struct dryi_thread *thread, void *(*body)(void *),
                    void *argument)
{
    (void)self;
    return dryi_thread_start(thread, body, argument) ? 0 : -EAGAIN;
}

static void
kernel_thread_join(void *self, struct dryi_thread *thread)
{
    (void)self;
    dryi_thread_join(thread);
}

void
dryi_kernel_init(struct dryi_kernel *kernel)
{
    *kernel = (struct dryi_kernel){
        .map = kernel_map,
        .unmap = kernel_unmap,
        .advise = kernel_advise,
        .bind = kernel_bind,
        .query_nodes = kernel_query_nodes,
        .write_zeroes = kernel_write_zeroes,
        .count_huge = kernel_count_huge,
        .lock = kernel_lock,
        .unlock = kernel_unlock,
        .get_cpus = kernel_get_cpus,
        .set_cpus = kernel_set_cpus,
        .get_address_limit = kernel_get_address_limit,
        .get_lock_limit = kernel_get_lock_limit,
        .is_thp_disabled = kernel_is_thp_disabled,
        .process_id = kernel_process_id,
        .page_bytes = kernel_page_bytes,
        .time_ns = kernel_time_ns,
        .sleep_ns = kernel_sleep_ns,
        .open = kernel_open,
        .read = kernel_read,
        .close = kernel_close,
        .list = kernel_list,
        .thread_start = kernel_thread_start,
        .thread_join = kernel_thread_join,
    };
}
