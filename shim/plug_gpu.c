/* SPDX-License-Identifier: Apache-2.0 */
/* plug_gpu.h explains the design. A GPU is opened under the lock, and read without it. */
#include "plug_gpu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plug.h"
#include "plug_throw.h"
#include "try_options.h"

#define GPUS_MAX 128 /* PyTorch counts GPUs in a signed byte */

static struct {
    pthread_mutex_t lock; /* guards the members that are not atomic */
    bool is_configured;
    enum dry_placement placement;
    char *conf, *compat; /* NULL: the defaults */
    char refusal[320];
    size_t history_entries; /* 0: no history */
    void (*_Atomic on_oom)(int device);
    struct plug_gpu *_Atomic gpus[GPUS_MAX];
} plug = {.lock = PTHREAD_MUTEX_INITIALIZER, .placement = DRY_PLACEMENT_PAGED};

_Noreturn void
plug_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    plug_throw(text);
}

/* --- settings of the pools ----------------------------------------------------------------- */

static bool
is_same(const char *text, const char *other)
{
    return strcmp(text ? text : "", other) == 0;
}

static void
forget_choice(void)
{
    free(plug.conf);
    free(plug.compat);
    plug.conf = plug.compat = NULL;
    plug.placement = DRY_PLACEMENT_PAGED;
}

/* Set the pools' settings. Returns NULL or the reason for a refusal. Requires plug.lock. */
static const char *
choose(enum dry_placement placement, const char *conf, const char *compat)
{
    struct dry_error error = {.status = DRY_ERR_MEMORY, .text = "no memory"};
    if (plug.is_configured) {
        bool is_so = plug.placement == placement && is_same(plug.conf, conf) &&
                     is_same(plug.compat, compat);
        return is_so
                   ? NULL
                   : "drystone's pools are in use with another placement or conf, and a "
                     "process has one of each";
    }
    plug.placement = placement;
    plug.conf = strdup(conf);
    plug.compat = *compat ? strdup(compat) : NULL;
    bool has_texts = plug.conf && (plug.compat || !*compat);
    if (has_texts && shim_try_options(shim_options(placement, plug.conf, plug.compat),
                                      &error) == DRY_OK) {
        plug.is_configured = true;
        return NULL;
    }
    forget_choice();
    snprintf(plug.refusal, sizeof plug.refusal, "conf: %s", error.text);
    return plug.refusal;
}

const char *
drystone_plug_configure(const char *placement, const char *conf, const char *compat)
{
    bool is_torch = strcmp(placement, "torch") == 0;
    const char *refusal = "placement is \"paged\" or \"torch\"";
    pthread_mutex_lock(&plug.lock);
    if (is_torch || strcmp(placement, "paged") == 0)
        refusal =
            choose(is_torch ? DRY_PLACEMENT_TORCH : DRY_PLACEMENT_PAGED, conf, compat);
    pthread_mutex_unlock(&plug.lock);
    return refusal;
}

/* --- GPUs ---------------------------------------------------------------------------------- */

static enum dry_status
open_parts(struct plug_gpu *gpu, int index, struct dry_error *error)
{
    struct dry_cuda_options options;
    dry_cuda_options_init(&options);
    options.device = index;
    enum dry_status status = dry_cuda_open(&options, &gpu->cuda, error);
    if (status != DRY_OK)
        return status;
    struct dry_pool_options chosen = shim_options(plug.placement, plug.conf, plug.compat);
    chosen.device = dry_cuda_get_device(gpu->cuda);
    chosen.device_index = index;
    status = dry_pool_create(&chosen, &gpu->pool, error);
    if (status != DRY_OK || plug.history_entries == 0)
        return status;
    struct dry_pool_history_options history;
    dry_pool_history_options_init(&history);
    history.entries = plug.history_entries;
    return dry_pool_record_history(gpu->pool, &history);
}

/* Open a GPU. Returns NULL and fills *error on failure. Requires plug.lock. */
static struct plug_gpu *
open_gpu(int index, struct dry_error *error)
{
    struct plug_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu || open_parts(gpu, index, error) == DRY_OK)
        return gpu;
    dry_pool_destroy(gpu->pool);
    dry_cuda_close(gpu->cuda);
    free(gpu);
    return NULL;
}

struct plug_gpu *
plug_gpu_at(int index)
{
    struct dry_error error = {.text = "no memory"};
    if (index < 0 || index >= GPUS_MAX)
        plug_fail("drystone: there is no cuda:%d", index);
    struct plug_gpu *gpu = atomic_load_explicit(&plug.gpus[index], memory_order_acquire);
    if (gpu)
        return gpu;
    pthread_mutex_lock(&plug.lock);
    gpu = atomic_load_explicit(&plug.gpus[index], memory_order_relaxed);
    if (!gpu) {
        gpu = open_gpu(index, &error);
        plug.is_configured |= gpu != NULL;
        atomic_store_explicit(&plug.gpus[index], gpu, memory_order_release);
    }
    pthread_mutex_unlock(&plug.lock);
    if (!gpu)
        plug_fail("drystone: cannot open cuda:%d: %s", index, error.text);
    return gpu;
}

struct plug_gpu *
plug_gpu_next(int *index)
{
    while (*index < GPUS_MAX) {
        struct plug_gpu *gpu =
            atomic_load_explicit(&plug.gpus[(*index)++], memory_order_acquire);
        if (gpu)
            return gpu;
    }
    return NULL;
}

/* --- when memory runs out -------------------------------------------------------------------- */

void
drystone_plug_watch(size_t entries, void (*on_oom)(int device))
{
    pthread_mutex_lock(&plug.lock);
    plug.history_entries = entries;
    atomic_store_explicit(&plug.on_oom, on_oom, memory_order_release);
    pthread_mutex_unlock(&plug.lock);
}

void
plug_gpu_tell_oom(int index)
{
    void (*on_oom)(int) = atomic_load_explicit(&plug.on_oom, memory_order_acquire);
    if (on_oom)
        on_oom(index);
}
