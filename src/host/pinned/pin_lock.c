/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory locked by mlock(), for machines without a driver that registers memory.
 *
 * It is never swapped, which programs without a GPU benefit from. A pool of huge pages
 * needs no lock. The memory is not pinned: the kernel may still move a page, so no device
 * may get its physical address.
 */
#include <errno.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pin_source.h"

struct pin_lock {
    struct dry_memory memory;
    struct dryi_pin_source source;
    struct dry_device device; /* ops NULL: no device */
    int64_t owner;            /* the process that locks: a child does not inherit locks */
};

static uint64_t
lock_limit(const struct pin_lock *p)
{
    const struct dryi_kernel *k = &p->source.kernel;
    uint64_t limit;
    return k->get_lock_limit(k->self, &limit) < 0 ? UINT64_MAX : limit;
}

static enum dry_status
fail_limit(const struct pin_lock *p, uint64_t bytes, struct dry_error *err)
{
    struct dryi_facts facts = dryi_pin_source_facts(&p->source);
    uint64_t limit = lock_limit(p), available_bytes = dryi_facts_lock_free_bytes(&facts);
    return dryi_fail(
        err, DRY_ERR_NO_SPACE,
        "%llu bytes are not to be locked: RLIMIT_MEMLOCK (ulimit -l) is "
        "%llu, %llu of it left",
        (unsigned long long)bytes, (unsigned long long)limit,
        (unsigned long long)(available_bytes < limit ? available_bytes : limit));
}

/* mlock() fails with ENOMEM, or EPERM if the limit is 0; both may have other causes. */
static enum dry_status
fail_lock(const struct pin_lock *p, uint64_t bytes, int os_errno, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(os_errno > 0);
    bool is_limit =
        (os_errno == ENOMEM || os_errno == EPERM) && lock_limit(p) != UINT64_MAX;
    enum dry_status status =
        is_limit ? fail_limit(p, bytes, err)
                 : dryi_fail(err, DRY_ERR_SYSTEM, "mlock of %llu bytes is refused",
                             (unsigned long long)bytes);
    if (err)
        err->os_errno = os_errno;
    return status;
}

/* Return whether mlock() would fail for this size, to avoid populating it in vain. Pages
   of a pool need no lock. */
static bool
is_beyond_limit(const struct pin_lock *p, uint64_t bytes)
{
    struct dryi_facts facts = dryi_pin_source_facts(&p->source);
    return p->source.pages.kind != DRY_PAGES_POOL &&
           dryi_facts_lock_free_bytes(&facts) < bytes;
}

static enum dry_status
lock_take(void *self, uint64_t bytes, int32_t node, struct dryi_pin_range *range,
          struct dry_error *err)
{
    struct pin_lock *p = self;
    const struct dryi_kernel *k = &p->source.kernel;
    struct dry_pages *pages;
    if (is_beyond_limit(p, bytes))
        return fail_limit(p, bytes, err);
    enum dry_status status = dryi_pin_source_take(&p->source, bytes, node, &pages, err);
    if (status != DRY_OK)
        return status;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    dry_pages_get_info(pages, &info);
    uint64_t address = (uintptr_t)info.address;
    int result = info.kind == DRY_PAGES_POOL ? 0 : k->lock(k->self, address, info.bytes);
    if (result < 0) {
        dry_pages_destroy(pages);
        return fail_lock(p, info.bytes, -result, err);
    }
    *range =
        (struct dryi_pin_range){.address = address, .bytes = info.bytes, .handle = pages};
    return DRY_OK;
}

/* Unmapping unlocks. Unlock first all the same: if unmapping fails, locked pages could
   not be freed either. */
static void
lock_give(void *self, const struct dryi_pin_range *range)
{
    DRYI_ASSERT_SLOW(range->bytes > 0 && range->handle);
    struct pin_lock *p = self;
    const struct dryi_kernel *k = &p->source.kernel;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    dry_pages_get_info(range->handle, &info);
    if (info.kind != DRY_PAGES_POOL && k->process_id(k->self) == p->owner)
        (void)k->unlock(k->self, range->address, range->bytes);
    dry_pages_destroy(range->handle);
}

static enum dry_status
lock_event_record(void *self, uint64_t stream, uint64_t *event, struct dry_error *err)
{
    const struct pin_lock *p = self;
    if (!p->device.ops) {
        *event = 0;
        return DRY_OK;
    }
    enum dry_status status = p->device.ops->event_record(p->device.self, stream, event);
    return status == DRY_OK ? DRY_OK
                            : dryi_fail(err, status, "the device records no event");
}

static int
lock_event_is_done(void *self, uint64_t event)
{
    const struct pin_lock *p = self;
    return !p->device.ops || p->device.ops->event_query(p->device.self, event) == 1;
}

static void
lock_event_return(void *self, uint64_t event)
{
    const struct pin_lock *p = self;
    if (p->device.ops)
        p->device.ops->event_destroy(p->device.self, event);
}

static uint64_t
lock_available_bytes(void *self, int32_t node)
{
    const struct pin_lock *p = self;
    struct dryi_facts facts = dryi_pin_source_facts(&p->source);
    uint64_t available_bytes = dryi_pin_source_available_bytes(&p->source, node);
    uint64_t of_limit = dryi_facts_lock_free_bytes(&facts);
    if (p->source.pages.kind == DRY_PAGES_POOL || available_bytes < of_limit)
        return available_bytes;
    return of_limit;
}

static void
lock_finish(void *self)
{
    struct pin_lock *p = self;
    struct dry_memory memory = p->memory;
    dryi_pin_source_finish(&p->source);
    dryi_memory_free(&memory, p, 1, sizeof *p);
}

enum dry_status
dryi_pin_make_lock(const struct dryi_pin_lock_options *options, struct dryi_pin *pin,
                   struct dry_error *err)
{
    struct dry_memory memory = dryi_memory_or_default(options->pages.memory);
    struct pin_lock *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "locked memory");
    p->memory = memory;
    p->device = options->device;
    enum dry_status status = dryi_pin_source_init(&p->source, &options->pages, err);
    if (status != DRY_OK) {
        lock_finish(p);
        return status;
    }
    p->owner = p->source.kernel.process_id(p->source.kernel.self);
    *pin = (struct dryi_pin){
        .self = p,
        .take = lock_take,
        .give = lock_give,
        .event_record = lock_event_record,
        .event_is_done = lock_event_is_done,
        .event_return = lock_event_return,
        .available_bytes = lock_available_bytes,
        .finish = lock_finish,
    };
    return DRY_OK;
}
