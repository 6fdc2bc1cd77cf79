/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An out-of-memory error as text. First comes PyTorch's message, because programs and users search
 * for its sentences. Facts that PyTorch omits follow, one per line.
 *
 * The first line copies the parts, units, double spaces and order of PyTorch's
 * DeviceCachingAllocator::malloc (main, 2.15.0a0).
 */
#include <drystone/pool.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/sized.h"

struct output {
    char *text;
    size_t capacity, length;
};

__attribute__((format(printf, 2, 3))) static void
print(struct output *out, const char *format, ...)
{
    bool has_room = out->length < out->capacity;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(has_room ? out->text + out->length : NULL,
                      has_room ? out->capacity - out->length : 0, format, args);
    va_end(args);
    out->length += n > 0 ? (size_t)n : 0;
}

/* Print a size as PyTorch's format_size does: an exact limit uses the smaller unit. */
static void
print_size(struct output *out, uint64_t bytes)
{
    if (bytes <= DRYI_KIB)
        print(out, "%" PRIu64 " bytes", bytes);
    else if (bytes <= DRYI_MIB)
        print(out, "%.2f KiB", (double)bytes / (double)DRYI_KIB);
    else if (bytes <= DRYI_GIB)
        print(out, "%.2f MiB", (double)bytes / (double)DRYI_MIB);
    else
        print(out, "%.2f GiB", (double)bytes / (double)DRYI_GIB);
}

static void
print_part(struct output *out, const char *before, uint64_t bytes, const char *after)
{
    print(out, "%s", before);
    print_size(out, bytes);
    print(out, "%s", after);
}

static void
print_device(struct output *out, const struct dry_pool_explanation *e,
             int32_t device_index, uint64_t process_bytes)
{
    print_part(out, "CUDA out of memory. Tried to allocate ", e->segment_size, ". ");
    print(out, "GPU %" PRId32, device_index);
    if (e->total_bytes == UINT64_MAX) { /* PyTorch has no such case */
        print(out, " has no known capacity. ");
    } else {
        print_part(out, " has a total capacity of ", e->total_bytes, " of which ");
        print_part(out, "", e->free_bytes, " is free. ");
    }
    if (process_bytes > 0)
        print_part(out, "Including non-PyTorch memory, this process has ", process_bytes,
                   " memory in use. ");
    if (e->limit_bytes != UINT64_MAX)
        print_part(out, "", e->limit_bytes, " allowed; ");
}

static void
print_rejected(struct output *out, const struct dry_pool_explanation *e)
{
    print_part(
        out,
        "CUDA out of memory. Allocation was preemptively rejected because it would "
        "exceed per_process_memory_fraction limit. Requested size: ",
        e->size, "");
}

/*
 * Print PyTorch's sentences. Free blocks of private pools count as allocated, because a CUDA graph
 * may still use them.
 */
static void
print_pytorch(struct output *out, const struct dry_pool_explanation *e)
{
    uint64_t allocated = dryi_add_saturating(e->allocated_bytes, e->private_free_bytes);
    uint64_t rest = e->reserved_bytes > allocated ? e->reserved_bytes - allocated : 0;
    print_part(out, "Of the allocated memory ", allocated, " is allocated by PyTorch, ");
    if (e->private_free_bytes > 0)
        print_part(out, "with ", e->private_free_bytes,
                   " allocated in private pools (e.g., CUDA Graphs), ");
    print_part(out, "and ", rest, " is reserved by PyTorch but unallocated.");
}

static void
print_hint(struct output *out, enum dry_oom_hint hint)
{
    if (hint == DRY_OOM_HINT_NONE)
        return;
    print(out, "%s",
          hint == DRY_OOM_HINT_RESERVE
              ? " expandable_segments is enabled. If instead the process is running out "
                "of virtual address space (VSZ), expandable segments may be "
                "over-reserving VA (each segment reserves ~9/8 of device memory, times "
                "the number of streams); reduce it via PYTORCH_CUDA_ALLOC_CONF "
                "expandable_segments_reserve / expandable_segments_reserve_by_class."
              : " If reserved but unallocated memory is large try setting "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
                "fragmentation.  See documentation for Memory Management  "
                "(https://docs.pytorch.org/docs/stable/notes/cuda.html"
                "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)");
}

static void
print_pinners(struct output *out, const struct dry_pool_explanation *e)
{
    if (e->pinned_bytes == 0)
        return;
    print_part(out, "\nPinned: ", e->pinned_bytes, " are free around ");
    bool is_one = e->pinner_count == 1;
    print(out, "%" PRIu64 " block%s in use", e->pinner_count, is_one ? "" : "s");
    print_part(out, " (", e->pinner_bytes,
               is_one ? ") and cannot go back before it does."
                      : ") and cannot go back before those do.");
    if (e->largest_pinner_hole > 0) {
        print(out, "\nThe worst of them, at 0x%" PRIx64, e->largest_pinner_address);
        print_part(out, ", stands in a hole of ", e->largest_pinner_hole, ".");
    }
}

/* Print the facts that PyTorch omits. */
static void
print_rest(struct output *out, const struct dry_pool_explanation *e)
{
    print_part(out, "\nRequest: ", e->size, ". The largest that would fit now: ");
    print_part(out, "", e->would_fit, ".");
    print_part(out, "\nLargest free block it could have had: ", e->largest_hole, "; ");
    print_part(out, "of any stream and pool: ", e->largest_hole_any, ".");
    print_part(out, "\nempty_cache() would give back ", e->releasable_bytes, "; ");
    print_part(out, "", e->pending_bytes, " are freed and wait for streams.");
    print_pinners(out, e);
}

size_t
dry_pool_format_oom(const struct dry_pool_explanation *explanation, int32_t device_index,
                    uint64_t process_bytes, enum dry_oom_hint hint, char *text,
                    size_t capacity)
{
    struct output out = {.text = text, .capacity = capacity};
    struct dry_pool_explanation e = DRY_INIT(struct dry_pool_explanation);
    if (capacity > 0)
        text[0] = '\0';
    if (dryi_sized_take(&e, sizeof e, explanation, NULL) != DRY_OK)
        return 0;
    if (e.is_rejected) {
        print_rejected(&out, &e);
    } else {
        print_device(&out, &e, device_index, process_bytes);
        print_pytorch(&out, &e);
        print_hint(&out, hint);
    }
    print_rest(&out, &e);
    return out.length;
}
