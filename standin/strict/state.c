/* SPDX-License-Identifier: Apache-2.0 */
/* The lock, the checks at the start of every call, contexts, and the control functions. */
#include "strict/state.h"

#include <stdlib.h>
#include <unistd.h>

struct state stand_in_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread's stack of contexts, and its mode of capture: 0 global, 2 relaxed. */
static _Thread_local void *contexts[MAX_DEPTH];
static _Thread_local size_t depth;
static _Thread_local int capture_mode;

void *
stand_in_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes)
{
    if (needed <= *capacity)
        return array;
    *capacity = needed + needed / 2 + 16;
    array = realloc(array, *capacity * element_bytes);
    if (!array)
        abort();
    return array;
}

static uint64_t
read_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = text ? strtoull(text, NULL, 10) : 0;
    return value ? value : otherwise;
}

static void
set_up(const struct stand_in_setup *setup)
{
    struct state *s = &stand_in_state;
    stand_in_memory_forget();
    stand_in_streams_forget();
    *s = (struct state){.is_set_up = true, .owner = getpid()};
    if (setup)
        s->setup = *setup;
    if (s->setup.device_count == 0)
        s->setup.device_count = 1;
    if (s->setup.total_bytes == 0)
        s->setup.total_bytes = UINT64_C(1) << 30;
    if (s->setup.granularity == 0)
        s->setup.granularity = UINT64_C(1) << 21;
    if (s->setup.device_count > MAX_DEVICES)
        s->setup.device_count = MAX_DEVICES;
    s->fail_after = UINT64_MAX;
    s->misuse = "";
    s->next_address = UINT64_C(1) << 46;
    s->next_serial = 1;
    for (int i = 0; i < s->setup.device_count; i++) {
        s->pool_keeps[i] = s->setup.pool_keeps_bytes;
        s->graphs_keep[i] = s->setup.graphs_keep_bytes;
        s->used_bytes[i] = s->pool_keeps[i] + s->graphs_keep[i];
    }
    stand_in_streams_begin();
}

static void
set_up_once(void)
{
    if (stand_in_state.is_set_up)
        return;
    const struct stand_in_setup setup = {
        .device_count = (int)read_environment("STAND_IN_DEVICES", 1),
        .total_bytes = read_environment("STAND_IN_MEMORY_MIB", 1024) << 20,
    };
    set_up(&setup);
}

static bool
is_retained(const void *context)
{
    for (int i = 0; i < stand_in_state.setup.device_count; i++)
        if (context == &stand_in_state.retained[i])
            return stand_in_state.retained[i] > 0;
    return false;
}

int
stand_in_begin(enum need need)
{
    struct state *s = &stand_in_state;
    pthread_mutex_lock(&lock);
    set_up_once();
    if (getpid() != s->owner)
        return DRYI_CUDA_NOT_INITIALIZED;
    s->account.calls++;
    if (s->fail_after != UINT64_MAX && s->fail_after-- == 0) {
        s->fail_after = UINT64_MAX;
        return s->fail_result;
    }
    if (need == NEEDS_NOTHING)
        return DRYI_CUDA_SUCCESS;
    if (!s->is_initialized)
        return DRYI_CUDA_NOT_INITIALIZED;
    if (s->broken)
        return s->broken;
    if (need == NEEDS_CONTEXT && (depth == 0 || !is_retained(contexts[depth - 1])))
        return DRYI_CUDA_INVALID_CONTEXT;
    return DRYI_CUDA_SUCCESS;
}

int
stand_in_end(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

int
stand_in_misuse(const char *text)
{
    stand_in_state.account.misuses++;
    stand_in_state.misuse = text;
    return DRYI_CUDA_INVALID_VALUE;
}

int
stand_in_unsafe(void)
{
    if (!stand_in_state.is_capturing || capture_mode == DRYI_CUDA_CAPTURE_RELAXED)
        return DRYI_CUDA_SUCCESS;
    stand_in_misuse("a call that spoils a capture");
    return DRYI_CUDA_CAPTURE_UNSUPPORTED;
}

void
stand_in_exchange_mode(int *mode)
{
    int former = capture_mode;
    capture_mode = *mode;
    *mode = former;
}

int
stand_in_device(void)
{
    return (int)((const int *)contexts[depth - 1] - stand_in_state.retained);
}

int
stand_in_push(void *context)
{
    if (!is_retained(context))
        return DRYI_CUDA_INVALID_CONTEXT;
    if (depth == MAX_DEPTH)
        return stand_in_misuse("contexts are pushed and never popped");
    contexts[depth++] = context;
    return DRYI_CUDA_SUCCESS;
}

int
stand_in_pop(void **context)
{
    if (depth == 0)
        return DRYI_CUDA_INVALID_CONTEXT;
    *context = contexts[--depth];
    return DRYI_CUDA_SUCCESS;
}

/* --- control ---------------------------------------------------------------------------- */

static void
control_reset(const struct stand_in_setup *setup)
{
    pthread_mutex_lock(&lock);
    set_up(setup);
    depth = 0;
    capture_mode = 0;
    pthread_mutex_unlock(&lock);
}

static void
control_fail_at(uint64_t n, int result)
{
    pthread_mutex_lock(&lock);
    stand_in_state.fail_after = n;
    stand_in_state.fail_result = result;
    pthread_mutex_unlock(&lock);
}

static void
control_break_down(int result)
{
    pthread_mutex_lock(&lock);
    stand_in_state.broken = result;
    pthread_mutex_unlock(&lock);
}

static void
control_hold(void *stream)
{
    pthread_mutex_lock(&lock);
    stand_in_hold(stream);
    pthread_mutex_unlock(&lock);
}

static void
control_complete(void *stream)
{
    pthread_mutex_lock(&lock);
    stand_in_complete(stream);
    pthread_mutex_unlock(&lock);
}

static void
control_capture(bool on)
{
    pthread_mutex_lock(&lock);
    stand_in_state.is_capturing = on;
    pthread_mutex_unlock(&lock);
}

static void
control_get_account(struct stand_in_account *account)
{
    pthread_mutex_lock(&lock);
    set_up_once();
    const struct state *s = &stand_in_state;
    *account = s->account;
    account->ranges = s->ranges.count;
    account->reservations = s->reservations.count;
    account->mappings = s->mappings.count;
    account->registrations = s->registrations.count;
    account->opened = s->opened.count;
    for (size_t i = 0; i < s->registrations.count; i++)
        account->registered_bytes += s->registrations.items[i].size;
    account->copies = s->copy_count;
    for (size_t i = 0; i < s->handle_count; i++)
        account->handles += s->handles[i].is_live;
    for (size_t i = 0; i < s->event_count; i++)
        account->events += s->events[i].is_live;
    for (size_t i = 3; i < s->stream_count; i++) /* 0 to 2 are the default streams */
        account->streams += s->streams[i].is_live;
    for (int i = 0; i < s->setup.device_count; i++) {
        account->used_bytes += s->used_bytes[i];
        account->contexts += (uint64_t)s->retained[i];
    }
    account->depth = depth;
    pthread_mutex_unlock(&lock);
}

static const char *
control_last_misuse(void)
{
    return stand_in_state.misuse;
}

EXPORT const struct stand_in *
stand_in_control(void)
{
    static const struct stand_in control = {
        .reset = control_reset,
        .fail_at = control_fail_at,
        .break_down = control_break_down,
        .hold = control_hold,
        .complete = control_complete,
        .capture = control_capture,
        .get_account = control_get_account,
        .last_misuse = control_last_misuse,
    };
    return &control;
}
