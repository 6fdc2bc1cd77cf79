/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/cmocka.h"

#define NODE_DIR "/sys/devices/system/node"
#define POOL_DIR "/sys/kernel/mm/hugepages/hugepages-2048kB"

/* Threads call too, and may not assert. */
static void
require(bool condition)
{
    if (!condition)
        abort();
}

/* With the lock. */
static bool
is_refused(struct fake_kernel *f)
{
    f->calls++;
    if (f->left > 0) {
        f->left--;
        return false;
    }
    if (f->has_refused)
        return false;
    f->has_refused = true;
    return true;
}

static bool
begin(struct fake_kernel *f)
{
    pthread_mutex_lock(&f->lock);
    return !is_refused(f);
}

static int
end(struct fake_kernel *f, int result)
{
    pthread_mutex_unlock(&f->lock);
    return result;
}

static struct fake_map *
map_of(struct fake_kernel *f, uint64_t address)
{
    for (size_t i = f->map_count; i-- > 0;)
        if (address >= f->maps[i].address &&
            address < f->maps[i].address + f->maps[i].bytes)
            return &f->maps[i];
    return NULL;
}

static void *
at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* Pages that mappings have been promised. */
static uint64_t
promised(const struct fake_kernel *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->map_count; i++)
        sum += f->maps[i].promised;
    return sum;
}

static uint64_t
reserved(const struct fake_kernel *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; f->pool_page_bytes && i < f->map_count; i++)
        if (f->maps[i].is_pool && !f->maps[i].is_unreserved)
            sum += f->maps[i].bytes / f->pool_page_bytes;
    return sum;
}

/* An aligned range of base pages under the name of a pool's. */
static int
map_pool(struct fake_kernel *f, const struct dryi_kernel_map *what, uint64_t *address)
{
    uint64_t page = f->pool_page_bytes, pages = (what->bytes + page - 1) / page;
    unsigned shift = (unsigned)what->flags >> 26 & 63;
    if (page == 0 || UINT64_C(1) << shift != page)
        return -EINVAL;
    if (!(what->flags & MAP_NORESERVE) &&
        (pages + promised(f) > f->node_free[0] + f->node_free[1] ||
         pages + reserved(f) > f->cgroup_reservations))
        return -ENOMEM;
    char *begin_at = mmap(NULL, what->bytes + page, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(begin_at != MAP_FAILED);
    uint64_t aligned = ((uintptr_t)begin_at + page - 1) / page * page;
    munmap(begin_at, aligned - (uintptr_t)begin_at);
    munmap(at(aligned + what->bytes), (uintptr_t)begin_at + page - aligned);
    require(mprotect(at(aligned), what->bytes, what->protection) == 0);
    *address = aligned;
    return 0;
}

static int
fake_map(void *self, const struct dryi_kernel_map *what, uint64_t *address)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    bool is_pool = what->flags & MAP_HUGETLB;
    bool is_promised = is_pool && !(what->flags & MAP_NORESERVE);
    int result =
        is_pool ? map_pool(f, what, address) : f->real.map(f->real.self, what, address);
    if (result == 0) {
        require(f->map_count < FAKE_MAPS_MAX);
        f->maps[f->map_count++] = (struct fake_map){
            .address = *address,
            .bytes = what->bytes,
            .is_pool = is_pool,
            .is_shared = what->flags & MAP_SHARED,
            .is_unreserved = is_pool && !is_promised,
            .promised = is_promised ? what->bytes / f->pool_page_bytes : 0,
        };
        f->maps_made++;
        if (f->map_count > f->map_peak)
            f->map_peak = f->map_count;
    }
    return end(f, result);
}

static void
forget_pages(struct fake_kernel *f, const struct fake_map *m)
{
    for (size_t i = 0; i < f->page_count;) {
        if (f->pages[i].address < m->address ||
            f->pages[i].address >= m->address + m->bytes) {
            i++;
            continue;
        }
        f->node_free[f->pages[i].node]++;
        f->cgroup_pages++;
        f->pages[i] = f->pages[--f->page_count];
    }
}

/* Whole mappings alone: what a pool maps must go back as it came. */
static int
fake_unmap(void *self, uint64_t address, uint64_t bytes)
{
    struct fake_kernel *f = self;
    bool goes = begin(f);
    size_t found = 0;
    for (size_t i = 0; i < f->map_count;) {
        struct fake_map m = f->maps[i];
        if (m.address >= address && m.address + m.bytes <= address + bytes) {
            found += m.address == address && m.bytes == bytes;
            forget_pages(f, &m);
            f->unmaps_of_locked += m.is_locked;
            f->maps[i] = f->maps[--f->map_count];
        } else {
            i++;
        }
    }
    require(found == 1 && munmap(at(address), bytes) == 0);
    f->unmap_failures += !goes;
    return end(f, goes ? 0 : -f->refusal);
}

static int
choose_node(const struct fake_kernel *f, const struct fake_map *m, uint64_t index)
{
    int first = m->mode == DRYI_BIND_DEFAULT ? f->home_node : m->nodes & 1 ? 0 : 1;
    if (m->mode == DRYI_BIND_INTERLEAVE && m->nodes == 3)
        first = (int)(index % 2);
    if (m->mode == DRYI_BIND_WEIGHTED && m->nodes == 3)
        first = index % (f->weights[0] + f->weights[1]) < f->weights[0] ? 0 : 1;
    if (f->node_free[first] > 0)
        return first;
    if (m->mode == DRYI_BIND_STRICTLY && m->nodes != 3)
        return -1;
    return f->node_free[1 - first] > 0 ? 1 - first : -1;
}

/* Pages of the pool under a range; others have no account. */
static int
take_pages(struct fake_kernel *f, uint64_t address, uint64_t bytes)
{
    struct fake_map *m = map_of(f, address);
    require(m != NULL);
    if (!m->is_pool)
        return 0;
    for (uint64_t p = address; p < address + bytes; p += f->pool_page_bytes) {
        int node = choose_node(f, m, (p - m->address) / f->pool_page_bytes);
        if (node < 0 || f->cgroup_pages == 0)
            return -EFAULT;
        require(f->page_count < FAKE_PAGES_MAX);
        f->node_free[node]--;
        f->cgroup_pages--;
        m->promised -= m->promised > 0;
        f->pages[f->page_count].address = p;
        f->pages[f->page_count++].node = node;
    }
    return 0;
}

static uint64_t
locked(const struct fake_kernel *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->map_count; i++)
        sum += f->maps[i].is_locked ? f->maps[i].bytes : 0;
    return sum;
}

/* Whole mappings alone; a pool's pages are never locked, the kernel would only count them. */
static int
fake_lock(void *self, uint64_t address, uint64_t bytes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    struct fake_map *m = map_of(f, address);
    require(m && m->address == address && m->bytes == bytes && !m->is_pool);
    if (f->lock_limit == 0)
        return end(f, -EPERM);
    if (locked(f) + bytes > f->lock_limit)
        return end(f, -ENOMEM);
    m->is_locked = true;
    f->locks++;
    return end(f, 0);
}

static int
fake_unlock(void *self, uint64_t address, uint64_t bytes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    struct fake_map *m = map_of(f, address);
    require(m && m->address == address && m->bytes == bytes && m->is_locked);
    m->is_locked = false;
    return end(f, 0);
}

static int
advise(struct fake_kernel *f, uint64_t address, uint64_t bytes, int advice)
{
    struct fake_map *m = map_of(f, address);
    f->advices |= 1u << advice;
    switch (advice) {
    case DRYI_ADVISE_POPULATE_WRITE:
        if (f->populate_errno)
            return -f->populate_errno;
        m->populated += bytes;
        return take_pages(f, address, bytes);
    case DRYI_ADVISE_COLLAPSE:
        f->collapses++;
        return -f->collapse_errno;
    case DRYI_ADVISE_DONTNEED:
        return m && m->is_locked ? -EINVAL : 0;
    case DRYI_ADVISE_WIPEONFORK:
        return m && (m->is_pool || m->is_shared) ? -EINVAL : 0;
    default:
        return 0;
    }
}

static int
fake_advise(void *self, uint64_t address, uint64_t bytes, int advice)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    return end(f, advise(f, address, bytes, advice));
}

static int
fake_bind(void *self, const struct dryi_kernel_map *range, int mode,
          const uint64_t *nodes, size_t node_max)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    struct fake_map *m = map_of(f, range->address);
    require(m && m->address == range->address && m->bytes == range->bytes);
    require(node_max % 64 == 0 && node_max >= 64);
    f->binds++;
    if (f->bind_errno)
        return end(f, -f->bind_errno);
    if ((nodes[0] & 3) == 0 || (mode == DRYI_BIND_WEIGHTED && !f->weights[0]))
        return end(f, -EINVAL); /* as nodes that do not exist */
    m->mode = mode;
    m->nodes = nodes[0] & 3;
    return end(f, 0);
}

/* Of memory without an account: the bound node, or home. */
static int
node_at(struct fake_kernel *f, uint64_t address)
{
    for (size_t i = 0; i < f->page_count; i++)
        if (f->pages[i].address == address)
            return f->pages[i].node;
    struct fake_map *m = map_of(f, address);
    if (!m || m->is_pool)
        return -ENOENT;
    return m->mode == DRYI_BIND_DEFAULT ? f->home_node : m->nodes & 1 ? 0 : 1;
}

static int
fake_query_nodes(void *self, size_t count, const uint64_t *addresses, int *nodes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    if (f->query_errno)
        return end(f, -f->query_errno);
    for (size_t i = 0; i < count; i++)
        nodes[i] = node_at(f, addresses[i]);
    return end(f, 0);
}

static int
fake_write_zeroes(void *self, uint64_t address, uint64_t step, size_t count)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    f->zero_writes++;
    struct fake_map *m = map_of(f, address);
    require(m != NULL);
    for (size_t i = 0; m->is_pool && i < count; i++)
        if (take_pages(f, address + i * step, step) < 0)
            return end(f, i ? (int)i : -EFAULT);
    return end(f, (int)count);
}

static int
fake_count_huge(void *self, uint64_t address, uint64_t bytes, uint64_t *huge_bytes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    if (f->huge_errno)
        return end(f, -f->huge_errno);
    const struct fake_map *m = map_of(f, address);
    uint64_t part = m && m->is_pool ? 100 : f->huge_part;
    *huge_bytes = bytes / 100 * part;
    if (part == 100)
        *huge_bytes = bytes;
    if (f->marks_huge && m && m->populated == m->bytes)
        *huge_bytes /= 2;
    return end(f, 0);
}

static int
fake_get_cpus(void *self, struct dryi_cpus *cpus)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    *cpus = (struct dryi_cpus){{3}};
    return end(f, 0);
}

/* CPU n is on node n. */
static int
fake_set_cpus(void *self, const struct dryi_cpus *cpus)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    f->last_cpus = *cpus;
    if (cpus->words[0] == 1 || cpus->words[0] == 2)
        f->home_node = cpus->words[0] == 1 ? 0 : 1;
    return end(f, 0);
}

static int
fake_get_address_limit(void *self, uint64_t *bytes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    *bytes = f->address_limit;
    return end(f, 0);
}

static int
fake_get_lock_limit(void *self, uint64_t *bytes)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    *bytes = f->lock_limit;
    return end(f, 0);
}

static int
fake_is_thp_disabled(void *self)
{
    const struct fake_kernel *f = self;
    return f->thp_disabled;
}

static int64_t
fake_process_id(void *self)
{
    const struct fake_kernel *f = self;
    return f->process;
}

static uint64_t
fake_page_bytes(void *self)
{
    const struct fake_kernel *f = self;
    return f->base_bytes;
}

static uint64_t
fake_time_ns(void *self)
{
    struct fake_kernel *f = self;
    pthread_mutex_lock(&f->lock);
    uint64_t now = f->now_ns;
    f->now_ns += f->time_step_ns;
    pthread_mutex_unlock(&f->lock);
    return now;
}

static void
fake_sleep_ns(void *self, uint64_t ns)
{
    (void)self;
    (void)ns;
    usleep(1);
}

/* Files that change with the pool. */
static bool
live_text(const struct fake_kernel *f, const char *path, char text[256])
{
    static const struct {
        const char *path;
        int what;
    } live[] = {{POOL_DIR "/free_hugepages", 2},
                {POOL_DIR "/resv_hugepages", 3},
                {NODE_DIR "/node0/hugepages/hugepages-2048kB/free_hugepages", 0},
                {NODE_DIR "/node1/hugepages/hugepages-2048kB/free_hugepages", 1},
                {"/cg/hugetlb.2MB.max", 4},
                {"/cg/hugetlb.2MB.rsvd.max", 5}};
    for (size_t i = 0; i < sizeof live / sizeof *live; i++) {
        if (strcmp(path, live[i].path) != 0)
            continue;
        const uint64_t numbers[] = {f->node_free[0],
                                    f->node_free[1],
                                    f->node_free[0] + f->node_free[1],
                                    promised(f),
                                    f->cgroup_pages * f->pool_page_bytes,
                                    (f->cgroup_reservations - reserved(f)) *
                                        f->pool_page_bytes};
        snprintf(text, 256, "%llu\n", (unsigned long long)numbers[live[i].what]);
        return true;
    }
    return false;
}

static bool
text_of(const struct fake_kernel *f, const char *path, char text[256])
{
    for (size_t i = 0; i < f->file_count; i++) {
        if (strcmp(f->files[i].path, path) != 0)
            continue;
        if (live_text(f, path, text))
            return true;
        memcpy(text, f->files[i].text, 256);
        return true;
    }
    return false;
}

static int
fake_open(void *self, const char *path)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    char text[256];
    if (!text_of(f, path, text))
        return end(f, -ENOENT);
    for (int i = 0; i < FAKE_OPENS_MAX; i++) {
        if (f->opens[i].is_used)
            continue;
        f->opens[i].is_used = true;
        f->opens[i].at = 0;
        f->opens[i].length = strlen(text);
        memcpy(f->opens[i].text, text, sizeof text);
        return end(f, i);
    }
    return end(f, -EMFILE);
}

/* In pieces of at most 7 bytes, so that nobody counts on getting all at once. */
static ssize_t
fake_read(void *self, int file, char *bytes, size_t capacity)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    require(f->opens[file].is_used);
    size_t left = f->opens[file].length - f->opens[file].at;
    size_t n = left < 7 ? left : 7;
    n = n < capacity ? n : capacity;
    memcpy(bytes, f->opens[file].text + f->opens[file].at, n);
    f->opens[file].at += n;
    return end(f, (int)n);
}

static void
fake_close(void *self, int file)
{
    struct fake_kernel *f = self;
    pthread_mutex_lock(&f->lock);
    require(f->opens[file].is_used);
    f->opens[file].is_used = false;
    pthread_mutex_unlock(&f->lock);
}

/* Each file's folder below the path, once for every file in it. */
static int
fake_list(void *self, const char *path, int (*entry)(void *to, const char *name),
          void *to)
{
    struct fake_kernel *f = self;
    if (!begin(f))
        return end(f, -f->refusal);
    size_t n = strlen(path);
    char last[64] = "";
    for (size_t i = 0; i < f->file_count; i++) {
        char name[64];
        const char *rest = f->files[i].path + n;
        if (strncmp(f->files[i].path, path, n) != 0 || *rest != '/')
            continue;
        size_t length = strcspn(rest + 1, "/");
        require(length < sizeof name);
        memcpy(name, rest + 1, length);
        name[length] = '\0';
        if (strcmp(name, last) != 0 && entry(to, name) != 0)
            break;
        memcpy(last, name, sizeof last);
    }
    return end(f, 0);
}

static int
fake_thread_start(void *self, struct dryi_thread *thread, void *(*body)(void *),
                  void *argument)
{
    struct fake_kernel *f = self;
    bool goes = begin(f);
    end(f, 0);
    return goes ? f->real.thread_start(f->real.self, thread, body, argument)
                : -f->refusal;
}

static void
fake_thread_join(void *self, struct dryi_thread *thread)
{
    struct fake_kernel *f = self;
    f->real.thread_join(f->real.self, thread);
}

void
fake_kernel_file(struct fake_kernel *fake, const char *path, const char *text)
{
    size_t i = 0;
    while (i < fake->file_count && strcmp(fake->files[i].path, path) != 0)
        i++;
    require(i < FAKE_FILES_MAX && (!text || strlen(text) < sizeof fake->files[i].text));
    if (!text) {
        if (i < fake->file_count)
            fake->files[i] = fake->files[--fake->file_count];
        return;
    }
    fake->file_count += i == fake->file_count;
    fake->files[i].path = path;
    memcpy(fake->files[i].text, text, strlen(text) + 1);
}

static void
add_files(struct fake_kernel *fake)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        {"/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"
                          "Hugepagesize: 2048 kB\n"},
        {"/proc/self/status", "Name:\tx\nMems_allowed:\t3\nMems_allowed_list:\t0-1\n"},
        {"/proc/self/cgroup", "0::/\n"},
        {"/proc/self/mountinfo", "31 23 0:28 / /cg rw,relatime - cgroup2 cgroup2 rw\n"},
        {"/cg/hugetlb.2MB.max", ""},
        {"/cg/hugetlb.2MB.current", "0\n"},
        {"/cg/hugetlb.2MB.rsvd.max", ""},
        {"/cg/hugetlb.2MB.rsvd.current", "0\n"},
        {NODE_DIR "/has_memory", "0-1\n"},
        {NODE_DIR "/node0/cpulist", "0\n"},
        {NODE_DIR "/node1/cpulist", "1\n"},
        {NODE_DIR "/node0/meminfo", "Node 0 MemFree: 2097152 kB\n"},
        {NODE_DIR "/node1/meminfo", "Node 1 MemFree: 2097152 kB\n"},
        {NODE_DIR "/node0/hugepages/hugepages-2048kB/nr_hugepages", "8\n"},
        {NODE_DIR "/node1/hugepages/hugepages-2048kB/nr_hugepages", "8\n"},
        {NODE_DIR "/node0/hugepages/hugepages-2048kB/free_hugepages", ""},
        {NODE_DIR "/node1/hugepages/hugepages-2048kB/free_hugepages", ""},
        {POOL_DIR "/nr_hugepages", "16\n"},
        {POOL_DIR "/free_hugepages", ""},
        {POOL_DIR "/resv_hugepages", ""},
        {POOL_DIR "/surplus_hugepages", "0\n"},
        {POOL_DIR "/nr_overcommit_hugepages", "0\n"},
        {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
        {"/sys/kernel/mm/transparent_hugepage/shmem_enabled", "advise [never]\n"},
        {"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fake_kernel_file(fake, files[i].path, files[i].text);
}

static void
add_calls(struct fake_kernel *fake)
{
    fake->kernel = (struct dryi_kernel){
        .map = fake_map,
        .unmap = fake_unmap,
        .advise = fake_advise,
        .bind = fake_bind,
        .query_nodes = fake_query_nodes,
        .write_zeroes = fake_write_zeroes,
        .count_huge = fake_count_huge,
        .lock = fake_lock,
        .unlock = fake_unlock,
        .get_cpus = fake_get_cpus,
        .set_cpus = fake_set_cpus,
        .get_address_limit = fake_get_address_limit,
        .get_lock_limit = fake_get_lock_limit,
        .is_thp_disabled = fake_is_thp_disabled,
        .process_id = fake_process_id,
        .page_bytes = fake_page_bytes,
        .time_ns = fake_time_ns,
        .sleep_ns = fake_sleep_ns,
        .open = fake_open,
        .read = fake_read,
        .close = fake_close,
        .list = fake_list,
        .thread_start = fake_thread_start,
        .thread_join = fake_thread_join,
        .self = fake,
    };
}

void
fake_kernel_init(struct fake_kernel *fake)
{
    *fake = (struct fake_kernel){
        .left = SIZE_MAX,
        .pool_page_bytes = UINT64_C(2) << 20,
        .node_free = {8, 8},
        .cgroup_pages = 1000,
        .cgroup_reservations = 1000,
        .huge_part = 100,
        .base_bytes = 4096,
        .address_limit = UINT64_MAX,
        .lock_limit = UINT64_MAX,
        .process = 1,
    };
    pthread_mutex_init(&fake->lock, NULL);
    dryi_kernel_init(&fake->real);
    add_files(fake);
    add_calls(fake);
}

void
fake_kernel_finish(struct fake_kernel *fake)
{
    assert_int_equal(fake->map_count, 0);
    assert_int_equal(fake->page_count, 0);
    for (size_t i = 0; i < FAKE_OPENS_MAX; i++)
        assert_false(fake->opens[i].is_used);
    pthread_mutex_destroy(&fake->lock);
}

void
fake_kernel_refuse(struct fake_kernel *fake, size_t n, int errno_value)
{
    fake->left = n;
    fake->refusal = errno_value;
}
