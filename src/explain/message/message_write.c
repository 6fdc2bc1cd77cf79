/* SPDX-License-Identifier: Apache-2.0 */

/* Write a message in the form of the newest PyTorch. Sizes have two decimals and, like PyTorch's,
   the next unit from above 1024 on. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"
#include "explain/message/message.h"

struct output {
    char *text;
    size_t capacity, length;
};

__attribute__((format(printf, 2, 3))) static void
print(struct output *out, const char *format, ...)
{
    size_t left = out->length < out->capacity ? out->capacity - out->length : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(left ? out->text + out->length : NULL, left, format, args);
    va_end(args);
    out->length += n > 0 ? (size_t)n : 0;
}

/* Return whether a size is printed in a unit below `unit`. PyTorch prints 1024 bytes as bytes and
   1025 as "1.00 KiB", which is read as 1024. The width of the interval tells them apart. */
static bool
is_below_unit(const struct dry_message_size *size, uint64_t unit)
{
    return size->bytes < unit ||
           (size->bytes == unit && size->high - size->low <= unit / DRYI_KIB / 50);
}

static void
print_size(struct output *out, const struct dry_message_size *size)
{
    double bytes = (double)size->bytes;
    if (size->known == DRY_MESSAGE_BEYOND)
        print(out, "17179869184.00 GiB"); /* PyTorch's 2^64 for what NVML cannot tell */
    else if (is_below_unit(size, DRYI_KIB))
        print(out, "%" PRIu64 " bytes", size->bytes);
    else if (is_below_unit(size, DRYI_MIB))
        print(out, "%.2f KiB", bytes / (double)DRYI_KIB);
    else if (is_below_unit(size, DRYI_GIB))
        print(out, "%.2f MiB", bytes / (double)DRYI_MIB);
    else
        print(out, "%.2f GiB", bytes / (double)DRYI_GIB);
}

/* Print a size with its text; nothing if the size is absent. */
static void
print_part(struct output *out, const char *before, const struct dry_message_size *size,
           const char *after)
{
    if (size->known == DRY_MESSAGE_ABSENT)
        return;
    print(out, "%s", before);
    print_size(out, size);
    print(out, "%s", after);
}

static void
print_device(struct output *out, const struct dry_message *m)
{
    if (m->total.known != DRY_MESSAGE_ABSENT) {
        print(out, ". GPU %" PRIu32 " has a total capacity of ", m->device);
        print_size(out, &m->total);
    }
    print_part(out, " of which ", &m->free, " is free");
    print(out, ". ");
    for (size_t i = 0; i < m->other_count; i++) {
        print(out, "Process %" PRIu64 " has ", m->others[i].pid);
        print_size(out, &m->others[i].bytes);
        print(out, " memory in use. ");
    }
    print_part(out, "Including non-PyTorch memory, this process has ", &m->process,
               " memory in use. ");
    print_part(out, "", &m->allowed, " allowed; ");
}

static void
print_pytorch(struct output *out, const struct dry_message *m)
{
    struct dry_message_size rest = m->unallocated;
    bool has_parts =
        m->reserved.known == DRY_MESSAGE_KNOWN && m->allocated.known == DRY_MESSAGE_KNOWN;
    if (rest.known == DRY_MESSAGE_ABSENT && has_parts &&
        m->reserved.bytes >= m->allocated.bytes) {
        rest.known = DRY_MESSAGE_KNOWN;
        rest.bytes = m->reserved.bytes - m->allocated.bytes;
    }
    print_part(out, "Of the allocated memory ", &m->allocated,
               " is allocated by PyTorch, ");
    print_part(out, "with ", &m->private_pools,
               " allocated in private pools (e.g., CUDA Graphs), ");
    print_part(out, "and ", &rest, " is reserved by PyTorch but unallocated.");
}

static const char *
name_variable(const struct dry_message *m)
{
    switch (m->variable) {
    case DRY_MESSAGE_VARIABLE_GENERIC:
        return "PYTORCH_ALLOC_CONF";
    case DRY_MESSAGE_VARIABLE_HIP:
        return "PYTORCH_HIP_ALLOC_CONF";
    case DRY_MESSAGE_VARIABLE_NONE:
    case DRY_MESSAGE_VARIABLE_CUDA:
        break;
    }
    return "PYTORCH_CUDA_ALLOC_CONF";
}

static void
print_hints(struct output *out, const struct dry_message *m)
{
    if (m->expandable_reserve.known != DRY_MESSAGE_ABSENT)
        print_part(out, " This allocation exceeds the expandable-segment reserve of ",
                   &m->expandable_reserve, ".");
    else if (m->hints & DRY_MESSAGE_HINT_RESERVE)
        print(out, " See expandable_segments_reserve.");
    if (m->hints & DRY_MESSAGE_HINT_EXPANDABLE)
        print(out, " To avoid fragmentation try %s=expandable_segments:True.",
              name_variable(m));
    else if (m->variable != DRY_MESSAGE_VARIABLE_NONE)
        print(out, " See %s.", name_variable(m));
    if (m->hints & DRY_MESSAGE_HINT_MAX_SPLIT)
        print(out, " See max_split_size_mb.");
    if (m->hints & DRY_MESSAGE_HINT_EMPTY_CACHE)
        print(out, " See `empty_cache`.");
    if (m->hints & DRY_MESSAGE_HINT_WATERMARK)
        print(out, " See PYTORCH_MPS_HIGH_WATERMARK_RATIO.");
}

/* Print the shortest text that parses back to this message. */
static void
print_foreign(struct output *out, const struct dry_message *m)
{
    static const char *const texts[DRY_MESSAGE_FORM_COUNT] = {
        [DRY_MESSAGE_HOST] = "DefaultCPUAllocator: can't allocate memory:",
        [DRY_MESSAGE_XLA] = "RESOURCE_EXHAUSTED: Out of memory while",
        [DRY_MESSAGE_XLA_PROGRAM] = "Ran out of memory in memory space hbm.",
        [DRY_MESSAGE_KV_CACHE] = "No available memory for the cache blocks.",
        [DRY_MESSAGE_NCCL] = "Cuda failure 'out of memory'",
        [DRY_MESSAGE_LIBRARY] = "CUBLAS_STATUS_ALLOC_FAILED",
        [DRY_MESSAGE_KILLED] = "Out of memory: Killed process",
        [DRY_MESSAGE_KILLED_IN_GROUP] = "Memory cgroup out of memory: Killed process",
        [DRY_MESSAGE_SLURM] = "Detected 1 oom_kill event",
    };
    print(out, "%s", texts[m->form]);
    print_part(out,
               m->form == DRY_MESSAGE_HOST  ? " you tried to allocate "
               : m->form == DRY_MESSAGE_XLA ? " trying to allocate "
                                            : " ",
               &m->tried, m->form == DRY_MESSAGE_KV_CACHE ? " KV cache is needed" : "");
    print_part(out, ", available KV cache memory (", &m->allowed, ")");
    print_part(out, " anon-rss:", &m->process, "");
}

size_t
dry_message_write(const struct dry_message *m, char *text, size_t capacity)
{
    static const char *const backends[DRY_MESSAGE_BACKEND_COUNT] = {
        "Out",     "CUDA out", "HIP out", "XPU out", "MPS backend out",
        "NPU out", "Out",      "Out",
    };
    struct output out = {.text = text, .capacity = capacity};
    if (capacity)
        text[0] = '\0';
    size_t index = (size_t)m->backend;
    if (m->form >= DRY_MESSAGE_HOST && m->form < DRY_MESSAGE_FORM_COUNT) {
        print_foreign(&out, m);
        return out.length;
    }
    if (m->form == DRY_MESSAGE_DRIVER) {
        print(&out, "%s error: out of memory",
              m->backend == DRY_MESSAGE_HIP ? "HIP" : "CUDA");
        return out.length;
    }
    print(&out, "%s of memory.", backends[index < DRY_MESSAGE_BACKEND_COUNT ? index : 0]);
    if (m->form == DRY_MESSAGE_HUGE) {
        print(&out, " Tried to allocate more than 1EB memory.");
    } else if (m->form == DRY_MESSAGE_REJECTED) {
        print(&out, " Allocation was preemptively rejected because it would exceed "
                    "per_process_memory_fraction limit.");
        print_part(&out, " Requested size: ", &m->tried, "");
    } else {
        print_part(&out, " Tried to allocate ", &m->tried, "");
        print_device(&out, m);
        print_pytorch(&out, m);
        print_hints(&out, m);
    }
    return out.length;
}
