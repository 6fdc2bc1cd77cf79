/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of PyTorch's allocator: each reads as zeros when it is handed out, and keeps a label.
 *
 * No kernel overwrites what a freed block held. So its bytes would reappear in the next block, and
 * become sizes where a program reads a count from the device. PyTorch's allocator reports every
 * block it hands out to a tracker (attachAllocatorTraceTracker), through a C++ virtual function.
 * The pluggable allocator, which implements the same interface, exports its function by name: its
 * slot in that class's table is the slot in every class's table.
 *
 * The parameter is a std::function in libstdc++'s layout: two pointers of storage, the manager,
 * and the function to call. This one stores nothing, so its manager does nothing.
 *
 * Source: the Itanium C++ ABI (tables of virtual functions; non-trivial parameters are passed by
 * address); libstdc++'s ABI, the same since GCC 4; the members of TraceEntry, 2.0 to 2.15.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define SLOTS_MAX 128

/* The first members of c10's TraceEntry. */
struct trace_entry {
    int action;
    int8_t device;
    uint64_t address;
    void *context[2];
    void *stream;
    uint64_t size;
};
enum { ACTION_ALLOC = 0 };

struct function_object {
    void *storage[2];
    int (*manage)(void *to, const void *from, int what);
    void (*invoke)(const void *storage, const struct trace_entry *entry);
};

/* A label that the hook gives to each block of a device, in the order of requests. */
static struct births {
    uint32_t *labels;
    size_t count, capacity;
} births[STANDIN_DEVICES_MAX];
static _Thread_local uint32_t label; /* this thread's next blocks get it */

/* Keep the label of a new block. Those that memory is lacking for have none. */
static void
note_birth(struct births *b)
{
    if (b->count == b->capacity) {
        size_t more = b->capacity ? 2 * b->capacity : 4096;
        uint32_t *labels = realloc(b->labels, more * sizeof *labels);
        if (!labels)
            return;
        b->labels = labels;
        b->capacity = more;
    }
    b->labels[b->count++] = label;
}

static void
on_entry(const void *storage, const struct trace_entry *entry)
{
    (void)storage;
    if (entry->action != ACTION_ALLOC)
        return;
    standin_lock();
    standin_wipe(entry->address, entry->size);
    if (entry->device >= 0 && entry->device < STANDIN_DEVICES_MAX)
        note_birth(&births[entry->device]);
    standin_unlock();
}

/* Called by the hook: this thread's blocks have the label from now on. */
EXPORT void
drystone_standin_label(uint32_t of_next)
{
    label = of_next;
}

/* Return how many blocks a device has handed out. */
EXPORT uint64_t
drystone_standin_births(int device)
{
    standin_lock();
    uint64_t count = births[device].count;
    standin_unlock();
    return count;
}

/* Return the labels of a device's blocks; valid while it hands out no more. */
EXPORT const uint32_t *
drystone_standin_labels(int device)
{
    return births[device].labels;
}

static int
manage(void *to, const void *from, int what)
{
    (void)to, (void)from, (void)what;
    return 0;
}

/* Called by the hook in the program when it, or a kernel, has written device memory. */
EXPORT void
drystone_standin_wrote(uint64_t address, uint64_t bytes, int is_known)
{
    standin_lock();
    standin_touch(address, bytes, is_known != 0);
    standin_unlock();
}

/* Called by the hook when a kernel would have written device memory, and nobody has. */
EXPORT void
drystone_standin_forget(uint64_t address, uint64_t bytes)
{
    standin_lock();
    standin_forget(address, bytes);
    standin_unlock();
}

EXPORT int
drystone_standin_knows(uint64_t address, uint64_t bytes)
{
    standin_lock();
    bool is_known = standin_knows(address, bytes);
    standin_unlock();
    return is_known;
}

EXPORT uint64_t
drystone_standin_dirty_bytes(void)
{
    standin_lock();
    uint64_t bytes = standin_dirty_bytes();
    standin_unlock();
    return bytes;
}

EXPORT void
drystone_standin_host(struct host_account *account)
{
    standin_lock();
    standin_account(account);
    standin_unlock();
}

#define PLUGGABLE "22CUDAPluggableAllocator22CUDAPluggableAllocator"

/* Return the slot of attachAllocatorTraceTracker in the virtual table; -1: not found. */
static int
find_slot(void *library)
{
    /* its parameter's class moved in 2.11 */
    static const char *const names[] = {
        "_ZN5torch4cuda" PLUGGABLE "27attachAllocatorTraceTrackerESt8functionI"
        "FvRKN3c1022CachingDeviceAllocator10TraceEntryEEE",
        "_ZN5torch4cuda" PLUGGABLE "27attachAllocatorTraceTrackerESt8functionI"
        "FvRKN3c104cuda20CUDACachingAllocator10TraceEntryEEE",
    };
    void *function = NULL;
    for (size_t i = 0; !function && i < sizeof names / sizeof *names; i++)
        function = dlsym(library, names[i]);
    void *const *table = dlsym(library, "_ZTVN5torch4cuda" PLUGGABLE "E");
    if (!function || !table)
        return -1;
    for (int i = 0; i < SLOTS_MAX; i++) {
        if (table[2 + i] == function) /* after the offset to the top and the type */
            return i;
    }
    return -1;
}

/*
 * Called once by the hook when CUDA is initialized. Returns NULL, or why blocks keep
 * their old bytes.
 */
EXPORT const char *
drystone_standin_watch_blocks(void)
{
    static struct function_object tracker = {.manage = manage, .invoke = on_entry};
    void *library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return "libtorch_cuda.so is not loaded";
    int slot = find_slot(library);
    void **const *current =
        dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    if (slot < 0 || !current || !*current)
        return "this release's allocator is not known";
    void **object = *(void ***)(uintptr_t)current, **table = *(void ***)(uintptr_t)object;
    void (*attach)(void *object, struct function_object *tracker);
    memcpy(&attach, &table[slot], sizeof attach);
    attach(object, &tracker);
    return NULL;
}
