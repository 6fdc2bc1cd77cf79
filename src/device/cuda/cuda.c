/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVIDIA GPU as a device.
 *
 * Every call is made between enter() and leave(), see cuda_context.h.
 *
 * alloc is cuMemAlloc. map is cuMemCreate + cuMemMap + cuMemRelease per page and one
 * cuMemSetAccess. A handle released while it is mapped keeps its memory until it is
 * unmapped, so handles need not be stored. unmap is one cuMemUnmap over whole mappings,
 * as in NVIDIA's sample memMapIPCDrv. The reference is ambiguous here: if a driver
 * refuses several mappings at once, they are unmapped one by one from then on.
 *
 * When memory runs out, the driver itself may cache memory of cudaMallocAsync and of
 * graphs. If it releases any, the call is repeated once.
 *
 * After open only counters and peers change, which are atomic, so any thread may call.
 */
#include "device/cuda/cuda_state.h"

#include "base/bits.h"
#include "base/device_page.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "device/cuda/cuda_peer.h"
#include "device/cuda/cuda_share.h"
#include "os/lock.h"

#define LEAST_PAGE (2 * DRYI_MIB)

/* --- out of memory ---------------------------------------------------------------------- */

static uint64_t
driver_keeps(const struct dry_cuda *cuda, void *pool)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    uint64_t in_pool = 0, in_graphs = 0;
    if (pool && d->pool_get_attribute &&
        d->pool_get_attribute(pool, DRYI_CUDA_POOL_RESERVED, &in_pool) !=
            DRYI_CUDA_SUCCESS)
        in_pool = 0;
    if (d->graph_get_attribute &&
        d->graph_get_attribute(cuda->context.device, DRYI_CUDA_GRAPH_RESERVED,
                               &in_graphs) != DRYI_CUDA_SUCCESS)
        in_graphs = 0;
    return dryi_add_saturating(in_pool, in_graphs);
}

/* Make the driver release cached memory. True: it released some, so a call that ran out
   of memory may be repeated. */
static bool
driver_gives_back(struct dry_cuda *cuda, int result)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    if (result != DRYI_CUDA_OUT_OF_MEMORY)
        return false;
    void *pool = NULL;
    if (d->device_get_pool &&
        d->device_get_pool(&pool, cuda->context.device) != DRYI_CUDA_SUCCESS)
        pool = NULL;
    uint64_t before = driver_keeps(cuda, pool);
    if (before == 0)
        return false;
    if (pool && d->pool_trim)
        note_unheard(cuda, d->pool_trim(pool, 0));
    if (d->graph_trim)
        note_unheard(cuda, d->graph_trim(cuda->context.device));
    if (driver_keeps(cuda, pool) >= before)
        return false;
    atomic_fetch_add_explicit(&cuda->retries, 1, memory_order_relaxed);
    return true;
}

static int
create(struct dry_cuda *cuda, uint64_t bytes, dryi_cuda_handle *handle)
{
    int result = cuda->context.driver.mem_create(handle, bytes, &cuda->page, 0);
    if (driver_gives_back(cuda, result))
        result = cuda->context.driver.mem_create(handle, bytes, &cuda->page, 0);
    return note(cuda, result);
}

/* --- ranges ----------------------------------------------------------------------------- */

static void
cuda_get_traits(void *self, struct dry_device_traits *traits)
{
    const struct dry_cuda *cuda = self;
    *traits = cuda->traits;
}

static enum dry_status
cuda_alloc(void *self, uint64_t size, uint64_t *address)
{
    struct dry_cuda *cuda = self;
    if (size == 0)
        return DRY_ERR_ARGUMENT;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    dryi_cuda_address taken = 0;
    int result = cuda->context.driver.mem_alloc(&taken, size);
    if (driver_gives_back(cuda, result))
        result = cuda->context.driver.mem_alloc(&taken, size);
    note(cuda, result);
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *address = taken;
    return dryi_cuda_status(result);
}

static void
cuda_free(void *self, uint64_t address, uint64_t size)
{
    (void)size;
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS) {
        note_unheard(cuda, stay.result);
        return;
    }
    note_unheard(cuda, cuda->context.driver.mem_free(address));
    leave(cuda, &stay);
}

/* Round up to whole grains; 0: above 64 bits. */
static uint64_t
in_grains(const struct dry_cuda *cuda, uint64_t bytes)
{
    uint64_t grain = cuda->grain_bytes;
    return bytes > UINT64_MAX - (grain - 1) ? 0 : dryi_round_up(bytes, grain);
}

static enum dry_status
cuda_reserve(void *self, uint64_t size, uint64_t *address)
{
    struct dry_cuda *cuda = self;
    if (cuda->traits.page_bytes == 0)
        return DRY_ERR_UNSUPPORTED;
    if (size == 0)
        return DRY_ERR_ARGUMENT;
    uint64_t bytes = in_grains(cuda, size);
    if (bytes == 0)
        return DRY_ERR_NO_SPACE;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    dryi_cuda_address taken = 0;
    uint64_t page = cuda->traits.page_bytes;
    uint64_t alignment = bytes % page == 0 ? page : cuda->grain_bytes;
    int result = note(
        cuda, cuda->context.driver.mem_address_reserve(&taken, bytes, alignment, 0, 0));
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *address = taken;
    return dryi_cuda_status(result);
}

static void
cuda_unreserve(void *self, uint64_t address, uint64_t size)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS) {
        note_unheard(cuda, stay.result);
        return;
    }
    note_unheard(cuda,
                 cuda->context.driver.mem_address_free(address, in_grains(cuda, size)));
    leave(cuda, &stay);
}

/* --- pages ------------------------------------------------------------------------------ */

static int
unmap_each(struct dry_cuda *cuda, uint64_t address, uint64_t bytes, uint64_t page)
{
    for (uint64_t done = 0; done < bytes; done += page) {
        int result = cuda->context.driver.mem_unmap(address + done, page);
        if (result != DRYI_CUDA_SUCCESS)
            return result;
        atomic_store_explicit(&cuda->unmaps_singly, 1, memory_order_relaxed);
    }
    return DRYI_CUDA_SUCCESS;
}

/* Unmap `bytes` in mappings of `page` bytes. Requires a stay (cuda_context.h). */
static int
unmap_range(struct dry_cuda *cuda, uint64_t address, uint64_t bytes, uint64_t page)
{
    if (bytes == 0)
        return DRYI_CUDA_SUCCESS;
    bool singly = atomic_load_explicit(&cuda->unmaps_singly, memory_order_relaxed);
    int result = DRYI_CUDA_INVALID_VALUE;
    if (bytes == page || !singly)
        result = cuda->context.driver.mem_unmap(address, bytes);
    if (bytes == page || result != DRYI_CUDA_INVALID_VALUE)
        return result;
    return unmap_each(cuda, address, bytes, page);
}

static bool
is_whole(const struct dry_cuda *cuda, uint64_t address, uint64_t size, uint64_t page)
{
    uint64_t grain = cuda->grain_bytes;
    return size && page && size % page == 0 && page % grain == 0 && address % grain == 0;
}

/* Map a new page at an address; only the mapping keeps the page. */
static int
map_new(struct dry_cuda *cuda, uint64_t address, uint64_t page)
{
    dryi_cuda_handle handle = 0;
    int result = create(cuda, page, &handle);
    if (result != DRYI_CUDA_SUCCESS)
        return result;
    result = note(cuda, cuda->context.driver.mem_map(address, page, 0, handle, 0));
    note_unheard(cuda, cuda->context.driver.mem_release(handle));
    return result;
}

static enum dry_status
cuda_map(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_cuda *cuda = self;
    if (cuda->traits.page_bytes == 0)
        return DRY_ERR_UNSUPPORTED;
    if (!is_whole(cuda, address, size, page))
        return DRY_ERR_ARGUMENT;
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(result);
    uint64_t done = 0;
    while (done < size && result == DRYI_CUDA_SUCCESS) {
        result = map_new(cuda, address + done, page);
        done += result == DRYI_CUDA_SUCCESS ? page : 0;
    }
    if (result == DRYI_CUDA_SUCCESS)
        result = dryi_cuda_set_access(cuda, address, size);
    if (result != DRYI_CUDA_SUCCESS)
        note_unheard(cuda, unmap_range(cuda, address, done, page));
    leave(cuda, &stay);
    return dryi_cuda_status(result);
}

static void
cuda_unmap(void *self, uint64_t address, uint64_t size, uint64_t page)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS) {
        note_unheard(cuda, stay.result);
        return;
    }
    note_unheard(cuda, unmap_range(cuda, address, size, page));
    leave(cuda, &stay);
}

static enum dry_status
cuda_create_page(void *self, uint64_t *page)
{
    struct dry_cuda *cuda = self;
    if (cuda->traits.page_bytes == 0)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    dryi_cuda_handle handle = 0;
    int result = create(cuda, cuda->traits.page_bytes, &handle);
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *page = handle;
    return dryi_cuda_status(result);
}

static void
cuda_release_page(void *self, uint64_t page)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS) {
        note_unheard(cuda, stay.result);
        return;
    }
    note_unheard(cuda, cuda->context.driver.mem_release(page));
    leave(cuda, &stay);
}

static enum dry_status
cuda_map_pages(void *self, uint64_t address, const uint64_t *pages, size_t count)
{
    struct dry_cuda *cuda = self;
    uint64_t bytes = cuda->traits.page_bytes;
    if (bytes == 0)
        return DRY_ERR_UNSUPPORTED;
    if (address % bytes)
        return DRY_ERR_ARGUMENT;
    if (count == 0)
        return DRY_OK;
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(result);
    size_t done = 0;
    while (done < count && result == DRYI_CUDA_SUCCESS) {
        result = note(cuda, cuda->context.driver.mem_map(address + done * bytes, bytes, 0,
                                                         pages[done], 0));
        done += result == DRYI_CUDA_SUCCESS;
    }
    if (result == DRYI_CUDA_SUCCESS)
        result = dryi_cuda_set_access(cuda, address, count * bytes);
    if (result != DRYI_CUDA_SUCCESS)
        note_unheard(cuda, unmap_range(cuda, address, done * bytes, bytes));
    leave(cuda, &stay);
    return dryi_cuda_status(result);
}

static enum dry_status
cuda_unmap_pages(void *self, uint64_t address, size_t count)
{
    struct dry_cuda *cuda = self;
    uint64_t bytes = cuda->traits.page_bytes;
    if (bytes == 0)
        return DRY_ERR_UNSUPPORTED;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return is_gone(cuda) ? DRY_OK : dryi_cuda_status(stay.result);
    int result = note(cuda, unmap_range(cuda, address, count * bytes, bytes));
    leave(cuda, &stay);
    return is_gone(cuda) ? DRY_OK : dryi_cuda_status(result);
}

static void
cuda_get_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    struct dry_cuda *cuda = self;
    size_t is_free = 0, in_all = 0;
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result == DRYI_CUDA_SUCCESS) {
        result = cuda->context.driver.mem_get_info(&is_free, &in_all);
        leave(cuda, &stay);
    }
    note_unheard(cuda, result);
    *free_bytes = result == DRYI_CUDA_SUCCESS ? is_free : 0;
    *total_bytes = result == DRYI_CUDA_SUCCESS ? in_all : cuda->traits.total_bytes;
}

/* --- events and streams ----------------------------------------------------------------- */

static void *
get_handle(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static enum dry_status
cuda_event_record(void *self, uint64_t stream, uint64_t *event)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    void *made = NULL;
    int result = note(
        cuda, cuda->context.driver.event_create(&made, DRYI_CUDA_EVENT_WITHOUT_TIME));
    if (result == DRYI_CUDA_SUCCESS) {
        result = note(cuda, dryi_cuda_of_handle(cuda->context.driver.event_record(
                                made, get_handle(stream))));
        if (result != DRYI_CUDA_SUCCESS)
            note_unheard(cuda, cuda->context.driver.event_destroy(made));
    }
    leave(cuda, &stay);
    if (result == DRYI_CUDA_SUCCESS)
        *event = (uintptr_t)made;
    return dryi_cuda_status(result);
}

/* Return whether the event has passed. A failed query counts as not passed. If the
   context is destroyed no work runs, so it counts as passed. */
static bool
cuda_event_query(void *self, uint64_t event)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result == DRYI_CUDA_SUCCESS) {
        result = cuda->context.driver.event_query(get_handle(event));
        leave(cuda, &stay);
    }
    if (result != DRYI_CUDA_NOT_READY)
        note_unheard(cuda, result);
    return result == DRYI_CUDA_SUCCESS || is_gone(cuda);
}

/* Wait by one of the driver's calls. If the context is destroyed no work runs, so the
   result is OK. */
static enum dry_status
wait_with(struct dry_cuda *cuda, int (*function)(void *), uint64_t handle)
{
    struct dryi_cuda_stay stay = enter(cuda);
    int result = stay.result;
    if (result == DRYI_CUDA_SUCCESS) {
        result = note(cuda, dryi_cuda_of_handle(function(get_handle(handle))));
        leave(cuda, &stay);
    }
    return is_gone(cuda) ? DRY_OK : dryi_cuda_status(result);
}

static enum dry_status
cuda_event_wait(void *self, uint64_t event)
{
    struct dry_cuda *cuda = self;
    return wait_with(cuda, cuda->context.driver.event_synchronize, event);
}

static void
cuda_event_destroy(void *self, uint64_t event)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS) {
        note_unheard(cuda, stay.result);
        return;
    }
    note_unheard(
        cuda, dryi_cuda_of_handle(cuda->context.driver.event_destroy(get_handle(event))));
    leave(cuda, &stay);
}

static enum dry_status
cuda_stream_wait(void *self, uint64_t stream)
{
    struct dry_cuda *cuda = self;
    return wait_with(cuda, cuda->context.driver.stream_synchronize, stream);
}

static enum dry_status
cuda_stream_follow(void *self, uint64_t stream, uint64_t event)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_status(stay.result);
    int result = note(cuda, dryi_cuda_of_handle(cuda->context.driver.stream_wait_event(
                                get_handle(stream), get_handle(event), 0)));
    leave(cuda, &stay);
    return dryi_cuda_status(result);
}

static enum dry_status
cuda_wait_all(void *self)
{
    struct dry_cuda *cuda = self;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return is_gone(cuda) ? DRY_OK : dryi_cuda_status(stay.result);
    int result = note(cuda, cuda->context.driver.context_synchronize());
    leave(cuda, &stay);
    return is_gone(cuda) ? DRY_OK : dryi_cuda_status(result);
}

/* Special CUstream values: the legacy default stream, also 0, and the calling thread's
   default stream. */
#define LEGACY_STREAM UINT64_C(1)
#define THREAD_STREAM UINT64_C(2)

static struct dryi_cuda_stream *
kept_stream(struct dry_cuda *cuda, uint64_t stream)
{
    uint64_t mixed = stream * UINT64_C(0x9e3779b97f4a7c15);
    return &cuda->streams[(mixed >> 32) & (DRYI_CUDA_STREAMS_KEPT - 1)];
}

static void
keep_stream_id(struct dry_cuda *cuda, uint64_t stream, uint64_t id)
{
    struct dryi_cuda_stream *kept = kept_stream(cuda, stream);
    if (atomic_load_explicit(&kept->handle, memory_order_relaxed) == stream &&
        atomic_load_explicit(&kept->id, memory_order_relaxed) == id)
        return;
    dryi_lock_take(&cuda->streams_lock);
    atomic_store_explicit(&kept->handle, stream, memory_order_relaxed);
    atomic_store_explicit(&kept->id, id, memory_order_relaxed);
    dryi_lock_give(&cuda->streams_lock);
}

/* Return the stored id of a handle, or else the handle. */
static uint64_t
recall_stream_id(struct dry_cuda *cuda, uint64_t stream)
{
    struct dryi_cuda_stream *kept = kept_stream(cuda, stream);
    dryi_lock_take(&cuda->streams_lock);
    bool is_kept = atomic_load_explicit(&kept->handle, memory_order_relaxed) == stream;
    uint64_t id = atomic_load_explicit(&kept->id, memory_order_relaxed);
    dryi_lock_give(&cuda->streams_lock);
    return is_kept ? id : stream;
}

/*
 * Query the driver. cuStreamGetId of a stream under capture ends the capture in any
 * capture mode (seen with driver 580), so such a stream keeps the id it had before. A
 * handle without a stored id then counts as its own id.
 */
static int
ask_driver(struct dry_cuda *cuda, uint64_t stream, unsigned long long *id)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    int is_capturing = 0;
    int result = d->stream_is_capturing
                     ? d->stream_is_capturing(get_handle(stream), &is_capturing)
                     : DRYI_CUDA_SUCCESS;
    if (result == DRYI_CUDA_SUCCESS && is_capturing) {
        *id = recall_stream_id(cuda, stream);
        return result;
    }
    if (result != DRYI_CUDA_SUCCESS)
        return result;
    result = d->stream_get_id(get_handle(stream), id);
    if (result == DRYI_CUDA_SUCCESS && stream != THREAD_STREAM)
        keep_stream_id(cuda, stream, *id);
    return result;
}

/* A default stream belongs to the current context, so the device's context must be
   current. */
static int
ask_stream_id(struct dry_cuda *cuda, uint64_t stream, unsigned long long *id)
{
    int result = DRYI_CUDA_INVALID_CONTEXT;
    if (stream > THREAD_STREAM)
        result = ask_driver(cuda, stream, id);
    if (result != DRYI_CUDA_INVALID_CONTEXT)
        return result;
    struct dryi_cuda_stay stay = enter(cuda);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return stay.result;
    result = ask_driver(cuda, stream, id);
    leave(cuda, &stay);
    return result;
}

/*
 * A pool calls this for every request. The legacy default stream is unique and needs no
 * driver call; others need one. Ids are small numbers and handles are addresses, so
 * neither equals the default stream's number here, nor a handle used as an id. The
 * per-thread default stream is a different stream in each thread: an address that belongs
 * to the thread identifies it.
 */
static uint64_t
cuda_stream_id(void *self, uint64_t stream)
{
    struct dry_cuda *cuda = self;
    unsigned long long id = stream;
    if (stream <= LEGACY_STREAM)
        return UINT64_MAX;
    int result =
        is_gone(cuda) ? DRYI_CUDA_DEINITIALIZED : ask_stream_id(cuda, stream, &id);
    note_unheard(cuda, dryi_cuda_of_handle(result));
    if (result == DRYI_CUDA_SUCCESS)
        return id;
    return stream == THREAD_STREAM ? dryi_thread_self() : stream;
}

static const struct dry_device_ops cuda_ops = {
    .struct_size = sizeof(struct dry_device_ops),
    .get_traits = cuda_get_traits,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .reserve = cuda_reserve,
    .unreserve = cuda_unreserve,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .create_page = cuda_create_page,
    .release_page = cuda_release_page,
    .map_pages = cuda_map_pages,
    .unmap_pages = cuda_unmap_pages,
    .get_info = cuda_get_info,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .event_destroy = cuda_event_destroy,
    .stream_wait = cuda_stream_wait,
    .stream_follow = cuda_stream_follow,
    .stream_id = cuda_stream_id,
    .wait_all = cuda_wait_all,
    .add_peer = dryi_cuda_add_peer,
    .let_peer = dryi_cuda_let_peer,
    .name_range = dryi_cuda_name_range,
    .open_range = dryi_cuda_open_range,
    .close_range = dryi_cuda_close_range,
    .export_pages = dryi_cuda_export_pages,
    .import_pages = dryi_cuda_import_pages,
};

/* --- open and close --------------------------------------------------------------------- */

static enum dry_status
describe_device(struct dry_cuda *cuda, struct dry_error *err)
{
    const struct dryi_cuda_driver *d = &cuda->context.driver;
    const char *what = "cuDriverGetVersion";
    int result = d->driver_get_version(&cuda->driver_version);
    if (result == DRYI_CUDA_SUCCESS) {
        what = "cuDeviceGetName";
        result =
            d->device_get_name(cuda->name, (int)sizeof cuda->name, cuda->context.device);
        cuda->name[sizeof cuda->name - 1] = '\0';
    }
    size_t bytes = 0;
    if (result == DRYI_CUDA_SUCCESS) {
        what = "cuDeviceTotalMem";
        result = d->device_total_mem(&bytes, cuda->context.device);
    }
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(d, result, what, err);
    cuda->traits.total_bytes = bytes;
    return DRY_OK;
}

/* Query an attribute; an old driver that does not know the attribute lacks the
   feature. */
static enum dry_status
ask(const struct dry_cuda *cuda, int attribute, bool *has, struct dry_error *err)
{
    int value = 0;
    int result = cuda->context.driver.device_get_attribute(&value, attribute,
                                                           cuda->context.device);
    *has = result == DRYI_CUDA_SUCCESS && value != 0;
    if (result == DRYI_CUDA_SUCCESS || result == DRYI_CUDA_INVALID_VALUE)
        return DRY_OK;
    return dryi_cuda_driver_fail(&cuda->context.driver, result, "cuDeviceGetAttribute",
                                 err);
}

struct abilities {
    bool pages, posix_handles, gpu_direct;
};

static enum dry_status
ask_abilities(const struct dry_cuda *cuda, struct abilities *can, struct dry_error *err)
{
    enum dry_status status = ask(cuda, DRYI_CUDA_HAS_VIRTUAL_MEMORY, &can->pages, err);
    if (status == DRY_OK)
        status = ask(cuda, DRYI_CUDA_HAS_POSIX_HANDLES, &can->posix_handles, err);
    if (status == DRY_OK)
        status = ask(cuda, DRYI_CUDA_HAS_GPU_DIRECT_PAGES, &can->gpu_direct, err);
    can->pages = can->pages && dryi_cuda_driver_has_pages(&cuda->context.driver);
    return status;
}

static enum dry_status
choose_pages(struct dry_cuda *cuda, const struct dry_cuda_options *o,
             struct dry_error *err)
{
    struct abilities can = {0};
    enum dry_status status = ask_abilities(cuda, &can, err);
    if (status != DRY_OK)
        return status;
    bool has_pages = can.pages && !o->no_pages;
    if (o->shareable && !(has_pages && can.posix_handles))
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "shareable: %s",
                         has_pages ? "the device has no POSIX descriptors of its memory"
                                   : "without pages there are none to share");
    if (!has_pages)
        return DRY_OK;
    cuda->page = (struct dryi_cuda_memory){
        .type = DRYI_CUDA_MEM_PINNED,
        .handle_types = o->shareable ? DRYI_CUDA_MEM_POSIX_HANDLE : 0,
        .location = {.type = DRYI_CUDA_MEM_ON_DEVICE, .id = cuda->context.device},
        .gpu_direct_capable = o->gpu_direct && can.gpu_direct,
    };
    size_t bytes = 0;
    int result = cuda->context.driver.mem_get_granularity(&bytes, &cuda->page,
                                                          DRYI_CUDA_GRANULARITY_LEAST);
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(&cuda->context.driver, result,
                                     "cuMemGetAllocationGranularity", err);
    if (!dryi_is_power_of_two(bytes))
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "pages of %zu bytes", bytes);
    cuda->grain_bytes = bytes > LEAST_PAGE ? bytes : LEAST_PAGE;
    cuda->traits.page_bytes =
        dryi_device_page_bytes(cuda->grain_bytes, cuda->traits.total_bytes);
    return DRY_OK;
}

static enum dry_status
open_device(struct dry_cuda *cuda, const struct dry_cuda_options *o,
            struct dry_error *err)
{
    enum dry_status status =
        dryi_cuda_context_find(&cuda->context, o->library, o->device, err);
    if (status == DRY_OK)
        status = describe_device(cuda, err);
    if (status == DRY_OK)
        status = choose_pages(cuda, o, err);
    if (status == DRY_OK)
        status = dryi_cuda_context_retain(&cuda->context, err);
    if (status != DRY_OK)
        return status;
    cuda->ops = cuda_ops;
    if (!cuda->context.driver.stream_get_id)
        cuda->ops.stream_id = NULL;
    return DRY_OK;
}

void
dry_cuda_options_init_sized(struct dry_cuda_options *options, size_t struct_size)
{
    const struct dry_cuda_options defaults = {.library = "libcuda.so.1"};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

enum dry_status
dry_cuda_open(const struct dry_cuda_options *options, struct dry_cuda **cuda,
              struct dry_error *err)
{
    struct dry_cuda_options o;
    dry_cuda_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!o.library)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "library is NULL");
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_cuda *c = dryi_memory_zalloc(&memory, 1, sizeof *c);
    if (!c)
        return dryi_fail_memory(err, "a CUDA device");
    c->memory = memory;
    dryi_lock_init(&c->streams_lock);
    status = open_device(c, &o, err);
    if (status != DRY_OK) {
        dry_cuda_close(c);
        return status;
    }
    *cuda = c;
    return DRY_OK;
}

void
dry_cuda_close(struct dry_cuda *cuda)
{
    if (!cuda)
        return;
    struct dry_memory memory = cuda->memory;
    dryi_cuda_context_close(&cuda->context);
    dryi_lock_finish(&cuda->streams_lock);
    dryi_memory_free(&memory, cuda, 1, sizeof *cuda);
}

struct dry_device
dry_cuda_get_device(struct dry_cuda *cuda)
{
    return (struct dry_device){.ops = &cuda->ops, .self = cuda};
}

enum dry_status
dry_cuda_get_account(const struct dry_cuda *cuda, struct dry_cuda_account *account)
{
    struct dry_cuda_account a = {
        .driver_version = cuda->driver_version,
        .refusals = atomic_load_explicit(&cuda->context.refusals, memory_order_relaxed),
        .last_error =
            atomic_load_explicit(&cuda->context.last_error, memory_order_relaxed),
        .retries = atomic_load_explicit(&cuda->retries, memory_order_relaxed),
        .has_pages = cuda->traits.page_bytes != 0,
        .is_gone = is_gone(cuda),
    };
    for (size_t i = 0; i < sizeof a.name; i++)
        a.name[i] = cuda->name[i];
    return dryi_sized_give(account, &a, sizeof a);
}
