/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks, limits, the private pools of graphs, and snapshots. plug.h explains the design. */
#include "plug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <drystone/pool_trace.h>

#include "plug_gpu.h"
#include "plug_process.h"
#include "plug_throw.h"

#define TEXT_MAX 8192

static uint64_t
get_number(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

static void
check(enum dry_status status, int index, const char *call)
{
    if (status != DRY_OK)
        plug_fail("drystone: %s on cuda:%d: %s", call, index, dry_status_text(status));
}

/* --- blocks -------------------------------------------------------------------------------- */

static _Noreturn void
fail_out_of_memory(struct plug_gpu *gpu, size_t size, int device, const void *stream)
{
    struct dry_pool_explanation why = DRY_INIT(struct dry_pool_explanation);
    char text[TEXT_MAX];
    if (dry_pool_explain(gpu->pool, size, get_number(stream), &why) == DRY_OK)
        dry_pool_format_oom(&why, device, plug_process_bytes(device), DRY_OOM_HINT_NONE,
                            text, sizeof text);
    else
        snprintf(text, sizeof text, "CUDA out of memory. Tried to allocate %zu bytes.",
                 size);
    plug_gpu_tell_oom(device);
    plug_throw_oom(text);
}

static _Noreturn void
fail_alloc(struct plug_gpu *gpu, enum dry_status status, size_t size, int device)
{
    struct dry_cuda_account account = DRY_INIT(struct dry_cuda_account);
    if (status == DRY_ERR_ARGUMENT)
        plug_throw_oom("CUDA out of memory. Tried to allocate more than 1EB memory.");
    dry_cuda_get_account(gpu->cuda, &account);
    plug_fail(
        "drystone: cuda:%d: %s while allocating %zu bytes (the driver's last error: %d)",
        device, dry_status_text(status), size, account.last_error);
}

void *
drystone_plug_alloc(size_t size, int device, void *stream)
{
    uint64_t address = 0;
    struct plug_gpu *gpu = plug_gpu_at(device);
    enum dry_status status =
        dry_pool_alloc(gpu->pool, size, get_number(stream), &address);
    if (status == DRY_ERR_NO_SPACE)
        fail_out_of_memory(gpu, size, device, stream);
    if (status != DRY_OK)
        fail_alloc(gpu, status, size, device);
    return (void *)(uintptr_t)address;
}

/*
 * PyTorch frees in destructors, through which nothing may be thrown. It only frees blocks
 * from here. So an error is the driver's, which PyTorch sees in its next call. Or this is
 * a forked child, which has nothing to free.
 */
void
drystone_plug_free(void *address, size_t size, int device, void *stream)
{
    (void)size, (void)stream;
    (void)dry_pool_free(plug_gpu_at(device)->pool, get_number(address));
}

void *
drystone_plug_alloc_segment(size_t size, int device, void *stream)
{
    uint64_t address = 0;
    struct plug_gpu *gpu = plug_gpu_at(device);
    enum dry_status status =
        dry_pool_alloc(gpu->pool, size, get_number(stream), &address);
    if (status != DRY_OK && status != DRY_ERR_NO_SPACE)
        fail_alloc(gpu, status, size, device);
    return (void *)(uintptr_t)address;
}

void
drystone_plug_free_segment(void *address, size_t size, int device, void *stream)
{
    drystone_plug_free(address, size, device, stream);
    (void)!dry_pool_empty_cache(plug_gpu_at(device)->pool);
}

/* Return the index of the GPU with a block in use at `address`, and the block; -1: none has. */
static int
find_block(const void *address, struct dry_pool_block *block)
{
    int index = 0;
    struct plug_gpu *gpu;
    while ((gpu = plug_gpu_next(&index))) {
        if (dry_pool_get_block(gpu->pool, get_number(address), block) == DRY_OK)
            return index - 1;
    }
    return -1;
}

void *
drystone_plug_get_base(void *address, size_t *size)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    if (find_block(address, &block) < 0)
        plug_fail("invalid device pointer: %p", address);
    if (size)
        *size = block.segment_size;
    return (void *)(uintptr_t)block.segment_address;
}

void
drystone_plug_record_stream(void *address, void *stream)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    int index = find_block(address, &block);
    if (index >= 0)
        check(dry_pool_record_stream(plug_gpu_at(index)->pool, get_number(address),
                                     get_number(stream)),
              index, "record_stream");
}

/* --- limits and pools ---------------------------------------------------------------------- */

void
drystone_plug_reset(void)
{
    int index = 0;
    struct plug_gpu *gpu;
    while ((gpu = plug_gpu_next(&index)))
        check(dry_pool_empty_cache(gpu->pool), index - 1, "empty_cache");
}

void
drystone_plug_set_fraction(double fraction, int device)
{
    check(dry_pool_set_fraction(plug_gpu_at(device)->pool, fraction), device,
          "memory fraction");
}

void
drystone_plug_begin_pool(int device, struct dry_pool_id id, void *filter)
{
    struct dry_pool *pool = plug_gpu_at(device)->pool;
    (void)filter;
    check(dry_pool_open_private(pool, id, 0), device, "a private pool");
    enum dry_status status = dry_pool_begin_private(pool, id, NULL);
    if (status == DRY_OK) {
        status = dry_pool_begin_capture(pool, NULL);
        if (status != DRY_OK)
            (void)!dry_pool_end_private(pool, id);
    }
    if (status != DRY_OK)
        (void)!dry_pool_release_private(pool, id);
    check(status, device, "begin of a private pool");
}

void
drystone_plug_end_pool(int device, struct dry_pool_id id)
{
    struct dry_pool *pool = plug_gpu_at(device)->pool;
    check(dry_pool_end_private(pool, id), device, "end of a private pool");
    check(dry_pool_end_capture(pool), device, "end of a capture");
}

void
drystone_plug_release_pool(int device, struct dry_pool_id id)
{
    check(dry_pool_release_private(plug_gpu_at(device)->pool, id), device,
          "release of a private pool");
}

/* --- snapshots ------------------------------------------------------------------------------- */

static enum dry_status
write_bytes(void *self, const void *bytes, size_t count, struct dry_error *error)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    error->status = DRY_ERR_SYSTEM;
    snprintf(error->text, sizeof error->text, "%s", strerror(errno));
    return DRY_ERR_SYSTEM;
}

static enum dry_status
write_trace(struct dry_pool *pool, FILE *file, struct dry_error *error)
{
    struct dry_trace *trace;
    struct dry_sink sink = {write_bytes, file};
    enum dry_status status = dry_trace_from_pool(pool, NULL, &trace, error);
    if (status != DRY_OK)
        return status;
    status = dry_trace_write(trace, &sink, error);
    dry_trace_destroy(trace);
    return status;
}

bool
drystone_plug_write(int device, const char *path, char *why, size_t capacity)
{
    struct dry_error error = {.text = ""};
    FILE *file = fopen(path, "wbe");
    enum dry_status status = DRY_ERR_SYSTEM;
    if (file) {
        status = write_trace(plug_gpu_at(device)->pool, file, &error);
        if (fclose(file) != 0 && status == DRY_OK)
            status = DRY_ERR_SYSTEM;
    }
    if (status != DRY_OK)
        snprintf(why, capacity, "%s", error.text[0] ? error.text : strerror(errno));
    return status == DRY_OK;
}
