/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory registered with NVIDIA's driver: the library's own pages, then
 * cuMemHostRegister.
 *
 * cuMemHostAlloc faults pages in by one thread, under the driver's lock: 0.5 to 1 second
 * per GiB. With pages populated before, by all threads of their node, the driver only
 * pins them: a tenth of that time, and less with huge pages.
 *
 * Registered memory must be unregistered before it is unmapped: the driver would mistake
 * the next mapping at the address for the old memory. So if unregistering fails, the
 * pages stay mapped and are counted. If the driver or the context is destroyed, so is the
 * registration.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/facts/facts_read.h"
#include "host/pages/pages_inside.h"
#include "host/pinned/pin_events.h"
#include "host/pinned/pin_source.h"

struct pin_cuda {
    struct dry_memory memory;
    struct dryi_cuda_context context;
    struct dryi_pin_source source;
    struct dryi_pin_events events;
    atomic_uint_least64_t kept_bytes;
};

/* --- limits of a call ------------------------------------------------------------------- */

#define CALL_LIMIT (512 * DRYI_GIB)
#define OLD_KERNEL_LIMIT (2 * DRYI_GIB)

/* Return whether the kernel limits a pin to 2 GiB: Linux 6.11 to 6.13 keep a pin's pages
   in one array, which gets too large. True also if the version is unknown. */
static bool
kernel_pins_little(const struct dryi_facts *facts)
{
    struct dryi_fact_file file;
    if (!dryi_facts_read(facts, &file, "/proc/sys/kernel/osrelease") ||
        file.length >= sizeof file.text)
        return true;
    file.text[file.length] = '\0';
    char *end;
    unsigned long major = strtoul(file.text, &end, 10);
    if (end == file.text || *end != '.')
        return true;
    unsigned long minor = strtoul(end + 1, NULL, 10);
    return major == 6 && minor >= 11 && minor <= 13;
}

/* Return the size limit that a call may have exceeded; "": none is known. */
static const char *
limit_text(const struct pin_cuda *p, uint64_t bytes)
{
    struct dryi_facts facts = dryi_pin_source_facts(&p->source);
    if (bytes >= CALL_LIMIT)
        return ", drivers since r580 take less than 512 GiB a call";
    if (bytes > OLD_KERNEL_LIMIT && kernel_pins_little(&facts))
        return ", Linux 6.11 to 6.13 pins at most 2 GiB a call";
    return "";
}

static enum dry_status
fail_register(const struct pin_cuda *p, uint64_t bytes, int result, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(result != DRYI_CUDA_SUCCESS);
    char what[112];
    const char *limit = result == DRYI_CUDA_HOST_ALREADY_REGISTERED
                            ? ", somebody unmapped registered memory"
                            : limit_text(p, bytes);
    (void)snprintf(what, sizeof what, "cuMemHostRegister of %llu bytes%s",
                   (unsigned long long)bytes, limit);
    enum dry_status status = dryi_cuda_driver_fail(&p->context.driver, result, what, err);
    if (!limit[0] || status != DRY_ERR_NO_SPACE)
        return status;
    /* Not NO_SPACE: unpinning other memory would not help. */
    if (err)
        err->status = DRY_ERR_SYSTEM;
    return DRY_ERR_SYSTEM;
}

/* --- take and give ---------------------------------------------------------------------- */

static int
register_range(struct pin_cuda *p, void *address, uint64_t bytes)
{
    const struct dryi_cuda_driver *d = &p->context.driver;
    struct dryi_cuda_stay stay = dryi_cuda_enter(&p->context);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return stay.result;
    int result =
        dryi_cuda_note(&p->context, d->mem_host_register(address, bytes,
                                                         DRYI_CUDA_HOST_PORTABLE |
                                                             DRYI_CUDA_HOST_MAPPED));
    dryi_cuda_leave(&p->context, &stay);
    return result;
}

/* *result gets the driver's CUresult, if that caused SYSTEM or NO_SPACE. */
static enum dry_status
take_once(struct pin_cuda *p, uint64_t bytes, int32_t node, struct dryi_pin_range *range,
          int *result, struct dry_error *err)
{
    struct dry_pages *pages;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    *result = DRYI_CUDA_SUCCESS;
    enum dry_status status = dryi_pin_source_take(&p->source, bytes, node, &pages, err);
    if (status != DRY_OK)
        return status;
    dry_pages_get_info(pages, &info);
    *range = (struct dryi_pin_range){
        .address = (uintptr_t)info.address, .bytes = info.bytes, .handle = pages};
    *result = register_range(p, info.address, info.bytes);
    return *result == DRYI_CUDA_SUCCESS ? DRY_OK
                                        : fail_register(p, info.bytes, *result, err);
}

/*
 * Pin a range. If its address is still registered because a program unmapped registered
 * memory, try again at another address, while the first region still occupies this one.
 */
static enum dry_status
cuda_take(void *self, uint64_t bytes, int32_t node, struct dryi_pin_range *range,
          struct dry_error *err)
{
    struct pin_cuda *p = self;
    struct dryi_pin_range taken = {.handle = NULL}, stale = {.handle = NULL};
    int result;
    if (dryi_cuda_context_is_gone(&p->context)) /* check before a second is spent on
                                                   populating */
        return dryi_cuda_driver_fail(&p->context.driver, DRYI_CUDA_DEINITIALIZED,
                                     "the driver is gone", err);
    enum dry_status status = take_once(p, bytes, node, &taken, &result, err);
    if (result == DRYI_CUDA_HOST_ALREADY_REGISTERED) {
        stale = taken;
        taken.handle = NULL;
        status = take_once(p, bytes, node, &taken, &result, err);
    }
    dry_pages_destroy(stale.handle);
    if (status == DRY_OK)
        *range = taken;
    else
        dry_pages_destroy(taken.handle);
    return status;
}

/* Unregister a range. True: the driver no longer has it registered. */
static bool
unregister_range(struct pin_cuda *p, uint64_t address)
{
    const struct dryi_cuda_driver *d = &p->context.driver;
    struct dryi_cuda_stay stay = dryi_cuda_enter(&p->context);
    int result = stay.result;
    if (result == DRYI_CUDA_SUCCESS) {
        result = d->mem_host_unregister((void *)(uintptr_t)address);
        dryi_cuda_leave(&p->context, &stay);
    }
    dryi_cuda_note_unheard(&p->context, result);
    return result == DRYI_CUDA_SUCCESS || result == DRYI_CUDA_HOST_NOT_REGISTERED ||
           dryi_cuda_context_is_gone(&p->context);
}

static void
cuda_give(void *self, const struct dryi_pin_range *range)
{
    DRYI_ASSERT_SLOW(range->bytes > 0 && range->handle);
    struct pin_cuda *p = self;
    if (unregister_range(p, range->address)) {
        dry_pages_destroy(range->handle);
        return;
    }
    dryi_pages_abandon(range->handle);
    atomic_fetch_add_explicit(&p->kept_bytes, range->bytes, memory_order_relaxed);
}

static uint64_t
cuda_available_bytes(void *self, int32_t node)
{
    const struct pin_cuda *p = self;
    return dryi_pin_source_available_bytes(&p->source, node);
}

/* --- events ----------------------------------------------------------------------------- */

static enum dry_status
cuda_event_record(void *self, uint64_t stream, uint64_t *event, struct dry_error *err)
{
    struct pin_cuda *p = self;
    return dryi_pin_events_record(&p->events, stream, event, err);
}

static int
cuda_event_is_done(void *self, uint64_t event)
{
    struct pin_cuda *p = self;
    return dryi_pin_events_is_done(&p->events, event);
}

static void
cuda_event_return(void *self, uint64_t event)
{
    struct pin_cuda *p = self;
    dryi_pin_events_return(&p->events, event);
}

/* --- make and finish -------------------------------------------------------------------- */

static void
cuda_finish(void *self)
{
    struct pin_cuda *p = self;
    struct dry_memory memory = p->memory;
    dryi_pin_events_finish(&p->events);
    dryi_cuda_context_close(&p->context);
    dryi_pin_source_finish(&p->source);
    dryi_memory_free(&memory, p, 1, sizeof *p);
}

/* Set the source's node to the GPU's. If the node is unknown, only speed is lost. */
static void
settle_at_device(struct pin_cuda *p)
{
    const struct dryi_cuda_driver *d = &p->context.driver;
    struct dryi_facts facts = dryi_pin_source_facts(&p->source);
    char id[32] = "";
    if (!d->device_get_pci_bus_id ||
        d->device_get_pci_bus_id(id, (int)sizeof id, p->context.device) !=
            DRYI_CUDA_SUCCESS)
        return;
    id[sizeof id - 1] = '\0';
    dryi_pin_source_settle(&p->source, dryi_facts_pci_node(&facts, id));
}

static enum dry_status
open_pin(struct pin_cuda *p, const struct dryi_pin_cuda_options *o, struct dry_error *err)
{
    const struct dryi_cuda_driver *d = &p->context.driver;
    enum dry_status status = dryi_pin_source_init(&p->source, &o->pages, err);
    if (status == DRY_OK)
        status = dryi_cuda_context_find(&p->context, o->library, o->device, err);
    if (status != DRY_OK)
        return status;
    if (!d->mem_host_register || !d->mem_host_unregister)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "%s has no cuMemHostRegister",
                         o->library);
    settle_at_device(p);
    status = dryi_cuda_context_retain(&p->context, err);
    if (status == DRY_OK)
        dryi_pin_events_init(&p->events, &p->context, &p->memory);
    return status;
}

enum dry_status
dryi_pin_make_cuda(const struct dryi_pin_cuda_options *options, struct dryi_pin *pin,
                   struct dry_error *err)
{
    struct dry_memory memory = dryi_memory_or_default(options->pages.memory);
    struct pin_cuda *p = dryi_memory_zalloc(&memory, 1, sizeof *p);
    if (!p)
        return dryi_fail_memory(err, "pinned memory");
    p->memory = memory;
    enum dry_status status = open_pin(p, options, err);
    if (status != DRY_OK) {
        cuda_finish(p);
        return status;
    }
    *pin = (struct dryi_pin){
        .self = p,
        .take = cuda_take,
        .give = cuda_give,
        .event_record = cuda_event_record,
        .event_is_done = cuda_event_is_done,
        .event_return = cuda_event_return,
        .available_bytes = cuda_available_bytes,
        .finish = cuda_finish,
    };
    return DRY_OK;
}

void
dryi_pin_cuda_get_account(const struct dryi_pin *pin,
                          struct dryi_pin_cuda_account *account)
{
    const struct pin_cuda *p = pin->self;
    *account = (struct dryi_pin_cuda_account){
        .gpu_node = p->source.gpu_node,
        .refusals = atomic_load_explicit(&p->context.refusals, memory_order_relaxed),
        .kept_bytes = atomic_load_explicit(&p->kept_bytes, memory_order_relaxed),
        .last_error = atomic_load_explicit(&p->context.last_error, memory_order_relaxed),
        .is_gone = dryi_cuda_context_is_gone(&p->context),
    };
}
