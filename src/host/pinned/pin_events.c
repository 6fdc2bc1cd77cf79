/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array of slots, a free list per context, and a list of slots without an event; see
 * pin_events.h. Recording and returning take constant time, except for creating events in
 * batches and searching up to 64 contexts.
 */
#include "host/pinned/pin_events.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"

#define MADE_AT_ONCE 8

/* The record of event number i is slots[i - 1], so that 0 can end a list. */
struct dryi_pin_event {
    void *event; /* NULL: none */
    size_t next;
    size_t context; /* index of its context */
};

void
dryi_pin_events_init(struct dryi_pin_events *events, struct dryi_cuda_context *context,
                     const struct dry_memory *memory)
{
    *events = (struct dryi_pin_events){.context = context, .memory = *memory};
    dryi_lock_init(&events->lock);
    events->contexts[0].handle = context->handle;
    events->context_count = 1;
}

/* --- slots, with the lock --------------------------------------------------------------- */

static struct dryi_pin_event *
get_slot(const struct dryi_pin_events *events, uint64_t number)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&events->lock));
    DRYI_ASSERT(number >= 1 && number <= events->slot_count);
    return &events->slots[number - 1];
}

/* Return the number of a slot without an event; 0: no memory. */
static size_t
take_unused(struct dryi_pin_events *events)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&events->lock));
    size_t number = events->unused_slot;
    if (number) {
        events->unused_slot = get_slot(events, number)->next;
        return number;
    }
    if (!dryi_memory_grow(&events->memory, (void **)&events->slots,
                          &events->slot_capacity, events->slot_count + 1,
                          sizeof *events->slots))
        return 0;
    events->slots[events->slot_count] = (struct dryi_pin_event){0};
    return ++events->slot_count;
}

static size_t
take_free(struct dryi_pin_events *events, size_t context)
{
    DRYI_ASSERT_SLOW(context < events->context_count);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&events->lock));
    size_t number = events->contexts[context].free_slot;
    if (number)
        events->contexts[context].free_slot = get_slot(events, number)->next;
    return number;
}

static void
put_free(struct dryi_pin_events *events, size_t number)
{
    struct dryi_pin_event *slot = get_slot(events, number);
    DRYI_ASSERT_SLOW(slot->event && slot->context < events->context_count);
    slot->next = events->contexts[slot->context].free_slot;
    events->contexts[slot->context].free_slot = number;
}

/* Return the index of a context; DRYI_PIN_CONTEXTS_MAX: too many contexts. */
static size_t
find_context(struct dryi_pin_events *events, void *handle)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&events->lock));
    size_t i = 0;
    while (i < events->context_count && events->contexts[i].handle != handle)
        i++;
    if (i == events->context_count && i < DRYI_PIN_CONTEXTS_MAX) {
        events->contexts[i].handle = handle;
        events->contexts[i].free_slot = 0;
        events->context_count++;
    }
    return i;
}

/* --- a new event ------------------------------------------------------------------------ */

/* Store fresh events in slots: the first is taken, the others are free. *count becomes
   the number stored. Returns the first's number; 0: no memory. */
static size_t
keep_events(struct dryi_pin_events *events, size_t context, void **fresh, size_t *count)
{
    size_t first = 0, kept = 0;
    dryi_lock_take(&events->lock);
    for (; kept < *count; kept++) {
        size_t number = take_unused(events);
        if (!number)
            break;
        *get_slot(events, number) =
            (struct dryi_pin_event){.event = fresh[kept], .context = context};
        if (first)
            put_free(events, number);
        else
            first = number;
    }
    dryi_lock_give(&events->lock);
    *count = kept;
    return first;
}

/* Create events in the current context: one to use, the others for later. *number 0: no
   memory. */
static int
make_events(struct dryi_pin_events *events, size_t context, size_t *number, void **event)
{
    struct dryi_cuda_context *c = events->context;
    void *fresh[MADE_AT_ONCE];
    size_t count = 0, kept;
    int result = DRYI_CUDA_SUCCESS;
    while (count < MADE_AT_ONCE && result == DRYI_CUDA_SUCCESS) {
        result = dryi_cuda_note(
            c, c->driver.event_create(&fresh[count], DRYI_CUDA_EVENT_WITHOUT_TIME));
        count += result == DRYI_CUDA_SUCCESS;
    }
    if (count == 0)
        return result;
    kept = count;
    *event = fresh[0];
    *number = keep_events(events, context, fresh, &kept);
    while (kept < count)
        dryi_cuda_note_unheard(c, c->driver.event_destroy(fresh[kept++]));
    return DRYI_CUDA_SUCCESS;
}

/* Discard an event that failed to record: after a device reset its context no longer
   exists. */
static void
discard(struct dryi_pin_events *events, size_t number, void *event)
{
    struct dryi_cuda_context *c = events->context;
    dryi_lock_take(&events->lock);
    DRYI_ASSERT_SLOW(get_slot(events, number)->event == event);
    get_slot(events, number)->event = NULL;
    get_slot(events, number)->next = events->unused_slot;
    events->unused_slot = number;
    dryi_lock_give(&events->lock);
    dryi_cuda_note_unheard(c, dryi_cuda_of_handle(c->driver.event_destroy(event)));
}

/* Record a free or a new event on the stream, in the current context. *number 0: no
   memory. */
static int
record_in(struct dryi_pin_events *events, size_t context, void *stream, size_t *number)
{
    struct dryi_cuda_context *c = events->context;
    void *event = NULL;
    int result = DRYI_CUDA_SUCCESS;
    dryi_lock_take(&events->lock);
    *number = take_free(events, context);
    if (*number)
        event = get_slot(events, *number)->event;
    dryi_lock_give(&events->lock);
    if (*number == 0)
        result = make_events(events, context, number, &event);
    if (result != DRYI_CUDA_SUCCESS || *number == 0)
        return result;
    result =
        dryi_cuda_note(c, dryi_cuda_of_handle(c->driver.event_record(event, stream)));
    if (result != DRYI_CUDA_SUCCESS)
        discard(events, *number, event);
    return result;
}

/* --- streams ---------------------------------------------------------------------------- */

/* CUstream values 0 to 2 are default streams of the current context, here the cache's
   own. */
#define LAST_DEFAULT_STREAM UINT64_C(2)
/* The flag in DRY_PINNED_DEFAULT_STREAM(). */
#define DEFAULT_MARK (UINT64_C(1) << 63)

/* Find another GPU's context that was retained before; NULL: there is none. */
static void *
find_other(struct dryi_pin_events *events, int device)
{
    void *handle = NULL;
    dryi_lock_take(&events->lock);
    for (size_t i = 0; i < events->other_count && !handle; i++)
        if (events->others[i].device == device)
            handle = events->others[i].handle;
    dryi_lock_give(&events->lock);
    return handle;
}

/* Store a retained context; false: another thread stored one first, or there are too
   many. */
static bool
keep_other(struct dryi_pin_events *events, int device, void *handle)
{
    DRYI_ASSERT_SLOW(device != events->context->device);
    dryi_lock_take(&events->lock);
    size_t i = 0;
    while (i < events->other_count && events->others[i].device != device)
        i++;
    bool is_new = i == events->other_count && i < DRYI_PIN_CONTEXTS_MAX;
    if (is_new) {
        events->others[i].device = device;
        events->others[i].handle = handle;
        events->other_count++;
    }
    dryi_lock_give(&events->lock);
    return is_new;
}

/* Find the primary context of GPU number `ordinal`, and retain it once, so that it stays
   while its events are kept. The program uses that GPU, so the context exists already. */
static int
find_primary(struct dryi_pin_events *events, uint64_t ordinal, void **handle)
{
    struct dryi_cuda_context *c = events->context;
    const struct dryi_cuda_driver *d = &c->driver;
    int device, result = DRYI_CUDA_SUCCESS;
    if (ordinal >= DRYI_PIN_CONTEXTS_MAX)
        return DRYI_CUDA_NOT_SUPPORTED;
    result = dryi_cuda_note(c, d->device_get(&device, (int)ordinal));
    if (result != DRYI_CUDA_SUCCESS || device == c->device)
        return result;
    void *kept = find_other(events, device);
    if (kept) {
        *handle = kept;
        return result;
    }
    result = dryi_cuda_note(c, d->primary_context_retain(handle, device));
    if (result == DRYI_CUDA_SUCCESS && !keep_other(events, device, *handle) &&
        d->primary_context_release)
        dryi_cuda_note_unheard(c, d->primary_context_release(device));
    return result;
}

/* Find the context of a stream; *handle is initially the cache's own. */
static int
ask_for_context(struct dryi_pin_events *events, uint64_t stream, void **handle)
{
    struct dryi_cuda_context *c = events->context;
    if (stream & DEFAULT_MARK)
        return find_primary(events, stream & ~DEFAULT_MARK, handle);
    if (stream <= LAST_DEFAULT_STREAM || !c->driver.stream_get_context)
        return DRYI_CUDA_SUCCESS;
    return dryi_cuda_note(c, dryi_cuda_of_handle(c->driver.stream_get_context(
                                 (void *)(uintptr_t)stream, handle)));
}

static int
find_stream_context(struct dryi_pin_events *events, uint64_t stream, size_t *context)
{
    void *handle = events->context->handle;
    *context = 0;
    int result = ask_for_context(events, stream, &handle);
    if (result != DRYI_CUDA_SUCCESS || handle == events->context->handle)
        return result;
    dryi_lock_take(&events->lock);
    *context = find_context(events, handle);
    dryi_lock_give(&events->lock);
    return *context < DRYI_PIN_CONTEXTS_MAX ? DRYI_CUDA_SUCCESS : DRYI_CUDA_NOT_SUPPORTED;
}

static int
record(struct dryi_pin_events *events, uint64_t stream, size_t *number)
{
    struct dryi_cuda_context *c = events->context;
    struct dryi_cuda_stay stay = dryi_cuda_enter(c), other;
    size_t context;
    if (stay.result != DRYI_CUDA_SUCCESS)
        return stay.result;
    void *handle = stream & DEFAULT_MARK ? NULL : (void *)(uintptr_t)stream;
    int result = find_stream_context(events, stream, &context);
    if (result == DRYI_CUDA_SUCCESS && context == 0) {
        result = record_in(events, 0, handle, number);
    } else if (result == DRYI_CUDA_SUCCESS) {
        other = dryi_cuda_enter_other(c, events->contexts[context].handle);
        result = other.result;
        if (result == DRYI_CUDA_SUCCESS) {
            result = record_in(events, context, handle, number);
            dryi_cuda_leave(c, &other);
        }
    }
    dryi_cuda_leave(c, &stay);
    return result;
}

enum dry_status
dryi_pin_events_record(struct dryi_pin_events *events, uint64_t stream, uint64_t *event,
                       struct dry_error *err)
{
    size_t number = 0;
    int result = record(events, stream, &number);
    if (result != DRYI_CUDA_SUCCESS)
        return dryi_cuda_driver_fail(&events->context->driver, result,
                                     "an event of a stream", err);
    if (number == 0)
        return dryi_fail_memory(err, "an event");
    *event = number;
    return DRY_OK;
}

/* --- later ------------------------------------------------------------------------------ */

/* An event captured into a graph never passes. */
int
dryi_pin_events_is_done(struct dryi_pin_events *events, uint64_t event)
{
    struct dryi_cuda_context *c = events->context;
    if (dryi_cuda_context_is_gone(c))
        return -1;
    dryi_lock_take(&events->lock);
    const struct dryi_pin_event slot = *get_slot(events, event);
    DRYI_ASSERT_SLOW(slot.event);
    void *handle = events->contexts[slot.context].handle;
    dryi_lock_give(&events->lock);
    struct dryi_cuda_stay stay = dryi_cuda_enter_other(c, handle);
    int result = stay.result;
    if (result == DRYI_CUDA_SUCCESS) {
        result = dryi_cuda_of_handle(c->driver.event_query(slot.event));
        dryi_cuda_leave(c, &stay);
    }
    if (result == DRYI_CUDA_NOT_READY || result == DRYI_CUDA_CAPTURED_EVENT)
        return 0;
    dryi_cuda_note_unheard(c, result);
    return result == DRYI_CUDA_SUCCESS ? 1 : -1;
}

void
dryi_pin_events_return(struct dryi_pin_events *events, uint64_t event)
{
    if (dryi_cuda_context_is_gone(events->context))
        return; /* in a child the lock may stay held */
    dryi_lock_take(&events->lock);
    put_free(events, event);
    dryi_lock_give(&events->lock);
}

/* Destroy the events of one context, entering the context once. */
static void
destroy_events(struct dryi_pin_events *events, size_t context)
{
    struct dryi_cuda_context *c = events->context;
    struct dryi_cuda_stay stay =
        dryi_cuda_enter_other(c, events->contexts[context].handle);
    if (stay.result != DRYI_CUDA_SUCCESS)
        return;
    for (size_t i = 0; i < events->slot_count; i++)
        if (events->slots[i].event && events->slots[i].context == context)
            dryi_cuda_note_unheard(
                c, dryi_cuda_of_handle(c->driver.event_destroy(events->slots[i].event)));
    dryi_cuda_leave(c, &stay);
}

static void
release_others(struct dryi_pin_events *events)
{
    struct dryi_cuda_context *c = events->context;
    if (dryi_cuda_context_is_gone(c) || !c->driver.primary_context_release)
        return;
    for (size_t i = 0; i < events->other_count; i++)
        dryi_cuda_note_unheard(
            c, c->driver.primary_context_release(events->others[i].device));
}

void
dryi_pin_events_finish(struct dryi_pin_events *events)
{
    if (!events->context)
        return;
    for (size_t i = 0; i < events->context_count; i++)
        destroy_events(events, i);
    release_others(events);
    dryi_memory_free(&events->memory, events->slots, events->slot_capacity,
                     sizeof *events->slots);
    dryi_lock_finish(&events->lock);
    events->context = NULL;
}
