/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Out-of-memory messages: what each release printed, read number by number; found in logs
 * of all kinds; cut, doubled and hostile; judged. The texts are what programs print, with
 * numbers like theirs.
 */
#include "support/cmocka.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/message.h>

#include "support/failing_memory.h"
#include "support/random.h"

#define KIB 1024.0
#define MIB (1024.0 * KIB)
#define GIB (1024.0 * MIB)

#define HINT_SPLIT                                                                       \
    " If reserved but unallocated memory is large try setting max_split_size_mb to "     \
    "avoid fragmentation.  See documentation for Memory Management and "                 \
    "PYTORCH_CUDA_ALLOC_CONF"
#define HINT_OLD                                                                         \
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid " \
    "fragmentation.  See documentation for Memory Management and "                       \
    "PYTORCH_CUDA_ALLOC_CONF"
#define HINT_OF(variable, url)                                                           \
    " If reserved but unallocated memory is large try setting " variable                 \
    "=expandable_segments:True to avoid fragmentation.  See documentation for Memory "   \
    "Management  (https://" url ")"
#define URL_OLD "pytorch.org/docs/stable/notes/cuda.html#environment-variables"
#define URL_NEW                                                                          \
    "docs.pytorch.org/docs/stable/notes/cuda.html"                                       \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
#define HINT HINT_OF("PYTORCH_CUDA_ALLOC_CONF", URL_OLD)

/* A number as it is printed: 1.95 * GIB; left out where it is not in the text. */
#define NONE 0.0
#define ZERO (-1.0)
#define BEYOND (-2.0)

struct example {
    const char *name, *text;
    enum dry_message_form form;
    enum dry_message_backend backend;
    const char *releases;
    double tried, total, free, process, allowed, allocated, private_pools, unallocated,
        reserved, non_pytorch;
    size_t other_count;
    double other; /* the first */
    enum dry_cause cause;
    bool is_certain;
    uint32_t alternatives;
};

#define OR(cause) (1u << DRY_CAUSE_##cause)
#define IN_PIECES (OR(STRANDED) | OR(PENDING))

static const struct example examples[] = {
    {
        .name = "1.3: cached",
        .text = "RuntimeError: CUDA out of memory. Tried to allocate 11.50 MiB (GPU 0; "
                "5.93 GiB total capacity; 0 bytes already allocated; 5.36 GiB free; 0 "
                "bytes cached)",
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.0 to 1.4",
        .tried = 11.5 * MIB,
        .total = 5.93 * GIB,
        .free = 5.36 * GIB,
        .allocated = ZERO,
        .unallocated = ZERO,
        .cause = DRY_CAUSE_UNKNOWN,
    },
    {
        .name = "1.7: no hint",
        .text = "RuntimeError: CUDA out of memory. Tried to allocate 376.00 MiB (GPU "
                "0; 3.95 GiB total capacity; 1.72 GiB already allocated; 354.88 MiB "
                "free; 2.46 GiB reserved in total by PyTorch)",
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.3 to 1.10",
        .tried = 376 * MIB,
        .total = 3.95 * GIB,
        .free = 354.88 * MIB,
        .allocated = 1.72 * GIB,
        .reserved = 2.46 * GIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
    {
        .name = "1.8: a limit",
        .text = "RuntimeError: CUDA out of memory. Tried to allocate 37.25 GiB (GPU 0; "
                "23.68 GiB total capacity; 192.29 MiB already allocated; 15.79 GiB "
                "free; 2.37 GiB allowed; 5.05 GiB reserved in total by PyTorch)",
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.3 to 1.10",
        .tried = 37.25 * GIB,
        .total = 23.68 * GIB,
        .free = 15.79 * GIB,
        .allowed = 2.37 * GIB,
        .allocated = 192.29 * MIB,
        .reserved = 5.05 * GIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "1.8: exactly the limit",
        .text = "RuntimeError: CUDA out of memory. Tried to allocate 5.59 GiB (GPU 0; "
                "11.17 GiB total capacity; 0 bytes already allocated; 10.91 GiB free; "
                "5.59 GiB allowed; 0 bytes reserved in total by PyTorch)",
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.3 to 1.10",
        .tried = 5.59 * GIB,
        .total = 11.17 * GIB,
        .free = 10.91 * GIB,
        .allowed = 5.59 * GIB,
        .allocated = ZERO,
        .reserved = ZERO,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "1.12",
        .text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; "
                "8.00 GiB total capacity; 203.44 MiB already allocated; 0 bytes free; "
                "6.44 GiB reserved in total by "
                "PyTorch)" HINT_OLD,
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.9 to 1.12",
        .tried = 2 * MIB,
        .total = 8 * GIB,
        .free = ZERO,
        .allocated = 203.44 * MIB,
        .reserved = 6.44 * GIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
    {
        .name = "1.13",
        .text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                "984.00 MiB (GPU 0; 47.50 GiB total capacity; 22.15 GiB already "
                "allocated; 68.88 MiB free; 22.16 GiB "
                "reserved in total by PyTorch)" HINT_OLD,
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.13 to 2.0",
        .tried = 984 * MIB,
        .total = 47.5 * GIB,
        .free = 68.88 * MIB,
        .allocated = 22.15 * GIB,
        .reserved = 22.16 * GIB,
        .cause = DRY_CAUSE_OTHER_MEMORY,
        .is_certain = true,
        .alternatives = OR(CAPACITY),
    },
    {
        .name = "2.0, full",
        .text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                "200.00 MiB (GPU 0; 14.61 GiB total capacity; 13.76 GiB already "
                "allocated; 37.12 MiB free; 13.77 GiB "
                "reserved in total by PyTorch)" HINT_OLD,
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.13 to 2.0",
        .tried = 200 * MIB,
        .total = 14.61 * GIB,
        .free = 37.12 * MIB,
        .allocated = 13.76 * GIB,
        .reserved = 13.77 * GIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "2.1: capacty, seen from a container",
        .text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                "224.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which 11.06 MiB "
                "is free. Process 3258 has 14.73 GiB memory in use. Of the allocated "
                "memory 14.04 GiB is allocated by PyTorch, and "
                "509.85 MiB is reserved by PyTorch but unallocated." HINT_SPLIT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.1",
        .tried = 224 * MIB,
        .total = 14.75 * GIB,
        .free = 11.06 * MIB,
        .allocated = 14.04 * GIB,
        .unallocated = 509.85 * MIB,
        .other_count = 1,
        .other = 14.73 * GIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
    {
        .name = "2.1: larger than the device",
        .text = "CUDA out of memory. Tried to allocate 6080.27 GiB. GPU 0 has a total "
                "capacty of 23.69 GiB of which 20.71 GiB is free. Process 2006998 has "
                "256.00 MiB memory in use. Including non-PyTorch memory, this process "
                "has 2.71 GiB memory in use. Of the allocated memory 2.39 GiB is "
                "allocated by PyTorch, and 20.80 MiB is reserved by "
                "PyTorch but unallocated." HINT_SPLIT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.1",
        .tried = 6080.27 * GIB,
        .total = 23.69 * GIB,
        .free = 20.71 * GIB,
        .process = 2.71 * GIB,
        .allocated = 2.39 * GIB,
        .unallocated = 20.8 * MIB,
        .other_count = 1,
        .other = 256 * MIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "2.3",
        .text =
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.22 "
            "GiB. GPU 0 has a total capacity of 15.77 GiB of which 959.44 MiB is free. "
            "Including non-PyTorch memory, this process has 14.83 GiB memory in use. "
            "Of the allocated memory 14.01 GiB is allocated by PyTorch, and 72.05 MiB "
            "is reserved by PyTorch but "
            "unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.2 to 2.4",
        .tried = 1.22 * GIB,
        .total = 15.77 * GIB,
        .free = 959.44 * MIB,
        .process = 14.83 * GIB,
        .allocated = 14.01 * GIB,
        .unallocated = 72.05 * MIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "2.6: pieces by one MiB",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 58.00 "
                "MiB. GPU 0 has a total capacity of 23.56 GiB of which 57.00 MiB is "
                "free. Including non-PyTorch memory, this process has 23.50 GiB memory "
                "in use. Of the allocated memory 23.10 GiB is allocated by PyTorch, "
                "and 74.06 MiB is reserved by PyTorch but "
                "unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 58 * MIB,
        .total = 23.56 * GIB,
        .free = 57 * MIB,
        .process = 23.5 * GIB,
        .allocated = 23.1 * GIB,
        .unallocated = 74.06 * MIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
    {
        .name = "2.6: nearly full",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 "
                "MiB. GPU 0 has a total capacity of 23.56 GiB of which 2.81 MiB is "
                "free. Including non-PyTorch memory, this process has 23.55 GiB memory "
                "in use. Of the allocated memory 23.20 GiB is allocated by PyTorch, "
                "and 25.17 MiB is reserved by PyTorch but "
                "unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 20 * MIB,
        .total = 23.56 * GIB,
        .free = 2.81 * MIB,
        .process = 23.55 * GIB,
        .allocated = 23.2 * GIB,
        .unallocated = 25.17 * MIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES | OR(CAPACITY),
    },
    {
        .name = "2.6: a limit, room on the device, others",
        .text = "OutOfMemoryError: CUDA out of memory. Tried to allocate 996.00 MiB. "
                "GPU 0 has a total capacity of 44.43 GiB of which 9.06 GiB is free. "
                "Process 2102129 has 17.54 GiB memory in use. Including non-PyTorch "
                "memory, this process has 17.81 GiB memory in use. 17.69 GiB allowed; "
                "Of the allocated memory 17.44 GiB is allocated by PyTorch, "
                "and 59.88 MiB is reserved by PyTorch but unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.2 or later",
        .tried = 996 * MIB,
        .total = 44.43 * GIB,
        .free = 9.06 * GIB,
        .process = 17.81 * GIB,
        .allowed = 17.69 * GIB,
        .allocated = 17.44 * GIB,
        .unallocated = 59.88 * MIB,
        .other_count = 1,
        .other = 17.54 * GIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "2.6: under the limit in pieces",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.98 "
                "GiB. GPU 0 has a total capacity of 31.84 GiB of which 16.30 GiB is "
                "free. Including non-PyTorch memory, this process has 17179869184.00 "
                "GiB memory in use. 17.51 GiB allowed; Of the allocated memory 6.74 "
                "GiB is allocated by PyTorch, and 7.02 GiB is reserved by "
                "PyTorch but unallocated." HINT_OF("PYTORCH_CUDA_ALLOC_CONF", URL_NEW),
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.8 or later",
        .tried = 3.98 * GIB,
        .total = 31.84 * GIB,
        .free = 16.3 * GIB,
        .process = BEYOND,
        .allowed = 17.51 * GIB,
        .allocated = 6.74 * GIB,
        .unallocated = 7.02 * GIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
        .alternatives = OR(FRAGMENTATION),
    },
    {
        .name = "2.6: refused though free",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 "
                "MiB.\nGPU 0 has a total capacity of 31.40 GiB of which 371.12 MiB is "
                "free.\nIncluding non-PyTorch memory, this process has 29.79 GiB "
                "memory in use.\nOf the allocated memory 28.95 GiB is allocated by "
                "PyTorch, with 22.00 MiB\nallocated in private pools (e.g., CUDA "
                "Graphs), and 138.45 MiB is reserved\nby PyTorch but unallocated.",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 336 * MIB,
        .total = 31.4 * GIB,
        .free = 371.12 * MIB,
        .process = 29.79 * GIB,
        .allocated = 28.95 * GIB,
        .private_pools = 22 * MIB,
        .unallocated = 138.45 * MIB,
        .cause = DRY_CAUSE_UNKNOWN,
    },
    {
        .name = "2.6: private pools hold what is missing",
        .text =
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. "
            "GPU 0 has a total capacity of 21.67 GiB of which 55.75 MiB is free. "
            "Process 2109 has 344.00 MiB memory in use. Process 1448259 has 21.07 GiB "
            "memory in use. Of the allocated memory 20.78 GiB is allocated by PyTorch, "
            "with 328.00 MiB allocated in private pools (e.g., "
            "CUDA Graphs), and 56.49 MiB is reserved by PyTorch but unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 270 * MIB,
        .total = 21.67 * GIB,
        .free = 55.75 * MIB,
        .allocated = 20.78 * GIB,
        .private_pools = 328 * MIB,
        .unallocated = 56.49 * MIB,
        .other_count = 2,
        .other = 344 * MIB,
        .cause = DRY_CAUSE_OTHER_MEMORY,
        .is_certain = true,
        .alternatives = OR(STRANDED),
    },
    {
        .name = "2.9: the other process",
        .text =
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. "
            "GPU 0 has a total capacity of 14.57 GiB of which 1.58 GiB is free. "
            "Process 2493055 has 12.02 GiB memory in use. Including non-PyTorch "
            "memory, this process has 966.00 MiB memory in use. Of the allocated "
            "memory 734.07 MiB is allocated by PyTorch, and 33.93 MiB is "
            "reserved by PyTorch but unallocated." HINT_OF("PYTORCH_ALLOC_CONF", URL_OLD),
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.9 or later",
        .tried = 1.95 * GIB,
        .total = 14.57 * GIB,
        .free = 1.58 * GIB,
        .process = 966 * MIB,
        .allocated = 734.07 * MIB,
        .unallocated = 33.93 * MIB,
        .other_count = 1,
        .other = 12.02 * GIB,
        .cause = DRY_CAUSE_OTHER_MEMORY,
        .is_certain = true,
    },
    {
        .name = "main: expandable segments are on",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 "
                "GiB. GPU 0 has a total capacity of 79.15 GiB of which 40.10 GiB is "
                "free. Including non-PyTorch memory, this process has 39.00 GiB memory "
                "in use. Of the allocated memory 38.00 GiB is allocated by PyTorch, "
                "and 20.00 MiB is reserved by PyTorch but unallocated. This allocation "
                "exceeds the expandable-segment reserve of 8.00 GiB for this stream, "
                "and a single allocation cannot span expandable segments. Raise "
                "PYTORCH_CUDA_ALLOC_CONF",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.13 or later",
        .tried = 12 * GIB,
        .total = 79.15 * GIB,
        .free = 40.1 * GIB,
        .process = 39 * GIB,
        .allocated = 38 * GIB,
        .unallocated = 20 * MIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "no backend named",
        .text = "torch.OutOfMemoryError: Out of memory. Tried to allocate 6.00 GiB. "
                "GPU 3 has a total capacity of 31.89 GiB of which 1.25 GiB is free. Of "
                "the allocated memory 29.00 GiB is allocated by PyTorch, and 512.00 "
                "MiB is reserved by PyTorch but unallocated.",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_BACKEND_UNKNOWN,
        .releases = "2.5 or later",
        .tried = 6 * GIB,
        .total = 31.89 * GIB,
        .free = 1.25 * GIB,
        .allocated = 29 * GIB,
        .unallocated = 512 * MIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "HIP",
        .text = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 978.00 "
                "MiB. GPU 0 has a total capacity of 15.98 GiB of which 630.00 MiB is "
                "free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 "
                "bytes is reserved by PyTorch but "
                "unallocated." HINT_OF("PYTORCH_HIP_ALLOC_CONF", URL_OLD),
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_HIP,
        .releases = "2.5 or later",
        .tried = 978 * MIB,
        .total = 15.98 * GIB,
        .free = 630 * MIB,
        .allocated = ZERO,
        .unallocated = ZERO,
        .cause = DRY_CAUSE_OTHER_MEMORY,
        .is_certain = true,
        .alternatives = OR(CAPACITY),
    },
    {
        .name = "HIP: a limit, graphs",
        .text = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 76.00 MiB. "
                "GPU 0 has a total capacity of 255.69 GiB of which 252.82 GiB is free. "
                "1.20 GiB allowed; Of the allocated memory 1.14 GiB is allocated by "
                "PyTorch, with 17.00 MiB allocated in private pools (e.g., HIP Graphs), "
                "and 18.63 MiB is reserved by PyTorch but "
                "unallocated." HINT,
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_HIP,
        .releases = "2.5 or later",
        .tried = 76 * MIB,
        .total = 255.69 * GIB,
        .free = 252.82 * GIB,
        .allowed = 1.2 * GIB,
        .allocated = 1.14 * GIB,
        .private_pools = 17 * MIB,
        .unallocated = 18.63 * MIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "XPU",
        .text = "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 20.00 "
                "MiB. GPU 0 has a total capacity of 11.93 GiB of which 5.62 MiB is "
                "free. Of the allocated memory 10.43 GiB is allocated by PyTorch, and "
                "94.57 MiB is reserved by PyTorch but unallocated. Please use "
                "`empty_cache` to release all unoccupied cached memory.",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_XPU,
        .releases = "2.5 or later",
        .tried = 20 * MIB,
        .total = 11.93 * GIB,
        .free = 5.62 * MIB,
        .allocated = 10.43 * GIB,
        .unallocated = 94.57 * MIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
    {
        .name = "NPU",
        .text = "RuntimeError: NPU out of memory. Tried to allocate 31.67 GiB (NPU 0; "
                "32.00 GiB total capacity; 6.30 GiB already allocated; 6.30 GiB "
                "current active; 24.39 GiB free; 6.55 GiB reserved in total by "
                "PyTorch)",
        .form = DRY_MESSAGE_CLASSIC,
        .backend = DRY_MESSAGE_NPU,
        .tried = 31.67 * GIB,
        .total = 32 * GIB,
        .free = 24.39 * GIB,
        .allocated = 6.3 * GIB,
        .reserved = 6.55 * GIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "MPS, old units",
        .text = "RuntimeError: MPS backend out of memory (MPS allocated: 9.01 GB, "
                "other allocations: 384.00 KB, max allowed: 9.07 GB). Tried to "
                "allocate 64.00 MB on private pool. Use "
                "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for "
                "memory allocations (may cause system failure).",
        .form = DRY_MESSAGE_MPS,
        .backend = DRY_MESSAGE_BACKEND_MPS,
        .releases = "1.12 or later",
        .tried = 64 * MIB,
        .allowed = 9.07 * GIB,
        .reserved = 9.01 * GIB,
        .non_pytorch = 384 * KIB,
        .cause = DRY_CAUSE_LIMIT,
    },
    {
        .name = "MPS",
        .text = "RuntimeError: MPS backend out of memory (MPS allocated: 7.12 GiB, "
                "other allocations: 10.47 GiB, max allowed: 17.76 GiB). Tried to "
                "allocate 512.00 MiB on shared pool.",
        .form = DRY_MESSAGE_MPS,
        .backend = DRY_MESSAGE_BACKEND_MPS,
        .releases = "1.12 or later",
        .tried = 512 * MIB,
        .allowed = 17.76 * GIB,
        .reserved = 7.12 * GIB,
        .non_pytorch = 10.47 * GIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "cudaMallocAsync, more than the device",
        .text = "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed "
                "memory. (out of memory)\nCurrently allocated     : 20.99 "
                "GiB\nRequested               : 1.19 GiB\nDevice limit            : "
                "22.06 GiB\nFree (according to CUDA): 8.12 MiB\nPyTorch limit (set by "
                "user-supplied memory fraction)\n                        : "
                "17179869184.00 GiB",
        .form = DRY_MESSAGE_ASYNC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.0 or later",
        .tried = 1.19 * GIB,
        .total = 22.06 * GIB,
        .free = 8.12 * MIB,
        .allowed = BEYOND,
        .allocated = 20.99 * GIB,
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "cudaMallocAsync, whose is it?",
        .text = "Allocation on device 1 would exceed allowed memory. (out of "
                "memory)\nCurrently allocated     : 9.43 GiB\nRequested               : "
                "640.00 MiB\nDevice limit            : 11.59 GiB\nFree (according to "
                "CUDA): 7.12 MiB\nPyTorch limit (set by user-supplied memory fraction)\n "
                "                       "
                ": 11.59 GiB",
        .form = DRY_MESSAGE_ASYNC,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.0 or later",
        .tried = 640 * MIB,
        .total = 11.59 * GIB,
        .free = 7.12 * MIB,
        .allowed = 11.59 * GIB,
        .allocated = 9.43 * GIB,
        .cause = DRY_CAUSE_UNKNOWN,
        .alternatives = OR(FRAGMENTATION) | OR(OTHER_MEMORY),
    },
    {
        .name = "rejected",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Allocation was "
                "preemptively rejected because it would exceed "
                "per_process_memory_fraction limit. Requested size: 2.00 GiB",
        .form = DRY_MESSAGE_REJECTED,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.12 or later",
        .tried = 2 * GIB,
        .cause = DRY_CAUSE_LIMIT,
        .is_certain = true,
    },
    {
        .name = "more than 1 EB",
        .text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                "more than 1EB memory.",
        .form = DRY_MESSAGE_HUGE,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.13 to 2.4",
        .cause = DRY_CAUSE_CAPACITY,
        .is_certain = true,
    },
    {
        .name = "the driver's own",
        .text = "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be "
                "asynchronously reported at some other API call",
        .form = DRY_MESSAGE_DRIVER,
        .backend = DRY_MESSAGE_CUDA,
        .cause = DRY_CAUSE_UNKNOWN,
    },
    {
        .name = "no numbers at all",
        .text = "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        .form = DRY_MESSAGE_SHORT,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "1.13 to 2.4",
        .cause = DRY_CAUSE_UNKNOWN,
    },
    {
        .name = "cut behind the device",
        .text = "[rank4]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                "8.00 GiB. GPU 4 has a total capacity of 178.36 GiB of which 7.20 GiB is "
                "free. Including non-PyTorch memory, this process has 171.",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 8 * GIB,
        .total = 178.36 * GIB,
        .free = 7.2 * GIB,
        .cause = DRY_CAUSE_UNKNOWN,
    },
    {
        .name = "shortened by a person",
        .text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 "
                "MiB.\nGPU 0 has a total capacity of 79.25 GiB of which 8.94 MiB is "
                "free.\n... 77.59 GiB is allocated by PyTorch, and 17.18 MiB is "
                "reserved by PyTorch but unallocated.",
        .form = DRY_MESSAGE_MODERN,
        .backend = DRY_MESSAGE_CUDA,
        .releases = "2.5 or later",
        .tried = 12 * MIB,
        .total = 79.25 * GIB,
        .free = 8.94 * MIB,
        .allocated = 77.59 * GIB,
        .unallocated = 17.18 * MIB,
        .cause = DRY_CAUSE_FRAGMENTATION,
        .is_certain = true,
        .alternatives = IN_PIECES,
    },
};
#define EXAMPLE_COUNT (sizeof examples / sizeof *examples)

/* --- help --------------------------------------------------------------------------------- */

static enum dry_status
parse(const char *text, size_t length, struct dry_message *m)
{
    memset(m, 0xa5, sizeof *m);
    *m = DRY_INIT(struct dry_message);
    return dry_message_parse(text, length, NULL, m, NULL);
}

static void
check_size(const struct dry_message_size *size, double wanted)
{
    if (wanted == NONE) {
        assert_int_equal(size->known, DRY_MESSAGE_ABSENT);
        return;
    }
    assert_int_equal(size->known,
                     wanted == BEYOND ? DRY_MESSAGE_BEYOND : DRY_MESSAGE_KNOWN);
    if (wanted == BEYOND)
        return;
    assert_int_equal(size->bytes, wanted == ZERO ? 0 : (uint64_t)(wanted + 0.5));
    assert_true(size->low <= size->bytes && size->bytes <= size->high);
}

static void
check_example(const struct example *x, const struct dry_message *m)
{
    assert_int_equal(m->form, x->form);
    assert_int_equal(m->backend, x->backend);
    check_size(&m->tried, x->tried);
    check_size(&m->total, x->total);
    check_size(&m->free, x->free);
    check_size(&m->process, x->process);
    check_size(&m->allowed, x->allowed);
    check_size(&m->allocated, x->allocated);
    check_size(&m->private_pools, x->private_pools);
    check_size(&m->unallocated, x->unallocated);
    check_size(&m->reserved, x->reserved);
    check_size(&m->non_pytorch, x->non_pytorch);
    assert_int_equal(m->other_count, x->other_count);
    if (x->other_count)
        check_size(&m->others[0].bytes, x->other);
    if (x->releases)
        assert_string_equal(m->releases, x->releases);
    else
        assert_null(m->releases);
}

struct found {
    struct dry_message messages[64];
    size_t count, stop_after;
};

static bool
keep(void *self, const struct dry_message *message)
{
    struct found *f = self;
    if (f->count < 64)
        f->messages[f->count] = *message;
    f->count++;
    return f->stop_after && f->count >= f->stop_after;
}

static enum dry_status
find_in(const char *text, size_t length, size_t step, const struct dry_memory *memory,
        struct found *found)
{
    struct dry_message_options options;
    dry_message_options_init(&options);
    options.memory = memory;
    options.found = keep;
    options.found_self = found;
    struct dry_message_finder *finder;
    enum dry_status status = dry_message_finder_create(&options, &finder, NULL);
    if (status != DRY_OK)
        return status;
    for (size_t at = 0; at < length && status == DRY_OK; at += step)
        status = dry_message_finder_feed(finder, text + at,
                                         length - at < step ? length - at : step);
    if (status == DRY_OK)
        status = dry_message_finder_end(finder);
    dry_message_finder_destroy(finder);
    return status;
}

static void
find_all(const char *text, struct found *found)
{
    *found = (struct found){0};
    assert_int_equal(find_in(text, strlen(text), 7, NULL, found), DRY_OK);
}

/* --- numbers ------------------------------------------------------------------------------ */

static void
numbers_stand_for_intervals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes, low, high;
    } cases[] = {
        {"0 bytes", 0, 0, 0},
        {"512 bytes", 512, 512, 512},
        {"1024 bytes", 1024, 1024, 1024},
        {"1.50 KiB", 1536, 1531, 1541},
        {"2.00 MiB", 2097152, 2091910, 2102394},
        {"1024.00 MiB", 1073741824, 1073736582, 1073747066},
        {"1.95 GiB", 2093796557, 2088427848, 2099165265},
        {"2 GiB", 2147483648, 1610612736, 2684354560},
        {"0.00 KiB", 0, 0, 5},
        {"1.9500000000 GiB", 2093796557, 2093796020, 2093797093},
        {"3.00 TiB", 3298534883328, 3293037325190, 3304032441466},
        {"2.00 GB", 2147483648, 1995000000, 2152852357},
        {"64.00 MB", 67108864, 63995000, 67114106},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        struct dry_message m;
        int n = snprintf(text, sizeof text, "CUDA out of memory. Tried to allocate %s.",
                         cases[i].text);
        assert_int_equal(parse(text, (size_t)n, &m), DRY_OK);
        assert_int_equal(m.tried.known, DRY_MESSAGE_KNOWN);
        assert_int_equal(m.tried.bytes, cases[i].bytes);
        assert_int_equal(m.tried.low, cases[i].low);
        assert_int_equal(m.tried.high, cases[i].high);
    }
}

/* What printf rounds lies within the interval, for every number of bytes. */
static void
every_number_lies_in_its_interval(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = random_next(&r) >> (7 + random_below(&r, 57));
        struct dry_message m = {.struct_size = sizeof m,
                                .form = DRY_MESSAGE_MODERN,
                                .backend = DRY_MESSAGE_CUDA};
        m.tried = (struct dry_message_size){DRY_MESSAGE_KNOWN, bytes, bytes, bytes};
        char text[256];
        size_t length = dry_message_write(&m, text, sizeof text);
        struct dry_message back;
        assert_int_equal(parse(text, length, &back), DRY_OK);
        assert_int_equal(back.tried.known, DRY_MESSAGE_KNOWN);
        assert_true(back.tried.low <= bytes && bytes <= back.tried.high);
    }
}

static void
what_is_no_amount_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum dry_message_known known;
    } cases[] = {
        {"17179869184.00 GiB", DRY_MESSAGE_BEYOND},
        {"1000000000000000000000000000000 GiB", DRY_MESSAGE_BEYOND},
        {"268435456.00 GiB", DRY_MESSAGE_BEYOND}, /* 256 PiB */
        {"268435455.99 GiB", DRY_MESSAGE_KNOWN},
        {"18446744073709551616 bytes", DRY_MESSAGE_BEYOND},
        {"-1.00 GiB", DRY_MESSAGE_ABSENT},
        {"1.00", DRY_MESSAGE_ABSENT},
        {"1.00 Gib", DRY_MESSAGE_ABSENT},
        {".50 GiB", DRY_MESSAGE_ABSENT},
        {"1..50 GiB", DRY_MESSAGE_ABSENT},
        {"1.50.50 GiB", DRY_MESSAGE_ABSENT},
        {"31.40 bytes", DRY_MESSAGE_ABSENT},
        {"1.000001 KiB", DRY_MESSAGE_KNOWN},
        {"nan GiB", DRY_MESSAGE_ABSENT},
        {"GiB", DRY_MESSAGE_ABSENT},
        {"", DRY_MESSAGE_ABSENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        struct dry_message m;
        int n = snprintf(text, sizeof text,
                         "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a "
                         "total capacity of %s of which 1.00 GiB is free.",
                         cases[i].text);
        assert_int_equal(parse(text, (size_t)n, &m), DRY_OK);
        assert_int_equal(m.total.known, cases[i].known);
        check_size(&m.tried, 4 * GIB);
        check_size(&m.free, 1 * GIB);
    }
}

static void
a_megabyte_of_digits_ends(void **state)
{
    (void)state;
    static const char head[] = "CUDA out of memory. Tried to allocate ";
    size_t length = sizeof head - 1 + (1 << 20);
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, '9', length);
    memcpy(text, head, sizeof head - 1);
    struct dry_message m;
    assert_int_equal(parse(text, length, &m), DRY_OK); /* a head and no number */
    assert_int_equal(m.tried.known, DRY_MESSAGE_ABSENT);
    memcpy(text + length - 5, "9 GiB", 5);
    assert_int_equal(parse(text, length, &m), DRY_OK);
    assert_int_equal(m.tried.known, DRY_MESSAGE_ABSENT);
    free(text);
}

/* --- texts -------------------------------------------------------------------------------- */

static void
each_release_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message m;
        print_message("%s\n", x->name);
        assert_int_equal(parse(x->text, strlen(x->text), &m), DRY_OK);
        check_example(x, &m);
    }
}

static void
hints_devices_and_places_are_read(void **state)
{
    (void)state;
    struct dry_message m;
    const char *text =
        "first line\n[default3]: ERROR: torch.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 1.00 GiB. GPU 7 has a total capacity of "
        "2.00 GiB" HINT;
    assert_int_equal(parse(text, strlen(text), &m), DRY_OK);
    assert_true(m.has_device);
    assert_int_equal(m.device, 7);
    assert_int_equal(m.offset, strstr(text, "CUDA out") - text);
    assert_int_equal(m.line, 2);
    assert_string_equal(m.label, "default3");
    assert_int_equal(m.hints, DRY_MESSAGE_HINT_EXPANDABLE);
    assert_int_equal(m.variable, DRY_MESSAGE_VARIABLE_CUDA);
    assert_true(m.is_cut);
}

/* No form ends a sentence twice, whatever is known of its numbers. */
static void
a_written_sentence_ends_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        struct dry_message m;
        char text[4096];
        assert_int_equal(parse(examples[i].text, strlen(examples[i].text), &m), DRY_OK);
        (void)dry_message_write(&m, text, sizeof text);
        assert_null(strstr(text, ".."));
    }
    struct dry_message m = {
        .struct_size = sizeof m, .form = DRY_MESSAGE_SHORT, .backend = DRY_MESSAGE_CUDA};
    char text[64];
    (void)dry_message_write(&m, text, sizeof text);
    assert_string_equal(text, "CUDA out of memory.");
    m.tried =
        (struct dry_message_size){.known = DRY_MESSAGE_KNOWN, .bytes = UINT64_C(2) << 30};
    (void)dry_message_write(&m, text, sizeof text);
    assert_string_equal(text, "CUDA out of memory. Tried to allocate 2.00 GiB.");
}

/* The same text with a line's end behind every `width` characters, words torn or not. */
static void
wrapped_lines_are_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        if (x->form == DRY_MESSAGE_SHORT || x->form == DRY_MESSAGE_DRIVER)
            continue;
        for (size_t width = 3; width < 100; width += 7) {
            char text[4096];
            size_t used = 0;
            for (size_t k = 0; x->text[k]; k++) {
                text[used++] = x->text[k];
                if (k % width == width - 1) {
                    text[used++] = '\r';
                    text[used++] = '\n';
                }
            }
            struct dry_message m;
            assert_int_equal(parse(text, used, &m), DRY_OK);
            check_example(x, &m);
        }
    }
}

/* "# " before every line, time stamps, colours in words, NUL as in UTF-16, "\n" spelled. */
static void
what_logs_add_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "# torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 250.00 MiB. "
        "GPU 0 has a total capacity of 79.19 GiB of which 2.07 GiB is free. Including "
        "\n# non-PyTorch memory, this process has 77.11 GiB memory in use. 75.23 GiB "
        "allowed; Of the allocated memory 74.23 GiB is allocated by PyTorch, and "
        "943.54 MiB is\n# reserved by PyTorch but unallocated.",
        "2025-01-31 12:00:00,123 ERROR: CUDA out of memory. Tried to allocate 250.00 "
        "MiB.\n2025-01-31 12:00:00,124 GPU 0 has a total capacity of 79.19 GiB of "
        "which 2.07 GiB\n[2025-01-31 12:00:00,124] is free. Including non-PyTorch "
        "memory, this process has 77.11\n[INFO] GiB memory in use. 75.23 GiB allowed; "
        "Of the allocated memory 74.23 GiB is allocated\n12:00:01.250 by PyTorch, and "
        "943.54 MiB is reserved by PyTorch but unallocated.",
        "\x1b[31mRuntimeError: CUDA out of mem\x1b[0mory. Tried to allocate "
        "\x1b[1m250.00 "
        "MiB\x1b[0m. GPU 0 has a total capacity of 79.19 GiB of which 2.07 GiB is free. "
        "Including non-PyTorch memory, this process has 77.11 GiB memory in use. 75.23 "
        "GiB "
        "allowed; Of the allocated memory 74.23 GiB is allocated by PyTorch, and "
        "943.54\x1b]0;title\a MiB is reserved by PyTorch but unallocated.",
        "{\"log\": \"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        "250.00 MiB.\\nGPU 0 has a total capacity of 79.19 GiB of which 2.07 GiB is "
        "free.\\nIncluding non-PyTorch memory, this process has 77.11 GiB memory in "
        "use. 75.23 GiB allowed; Of the allocated memory 74.23 GiB is allocated "
        "by\\r\\n PyTorch, and 943.54 MiB is reserved by PyTorch but unallocated.\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dry_message m;
        assert_int_equal(parse(texts[i], strlen(texts[i]), &m), DRY_OK);
        check_size(&m.tried, 250 * MIB);
        check_size(&m.total, 79.19 * GIB);
        check_size(&m.free, 2.07 * GIB);
        check_size(&m.process, 77.11 * GIB);
        check_size(&m.allowed, 75.23 * GIB);
        check_size(&m.allocated, 74.23 * GIB);
        check_size(&m.unallocated, 943.54 * MIB);
        char wide[4096];
        size_t length = strlen(texts[i]);
        for (size_t k = 0; k < length; k++) {
            wide[2 * k] = texts[i][k];
            wide[2 * k + 1] = '\0';
        }
        struct dry_message again;
        if (strchr(texts[i], '[') || texts[i][0] == '2' || texts[i][0] == '#')
            continue; /* marks are not looked for in UTF-16 */
        assert_int_equal(parse(wide, 2 * length, &again), DRY_OK);
        assert_true(dry_message_is_same(&m, &again));
    }
}

static void
ranks_may_alternate(void **state)
{
    (void)state;
    struct found f;
    find_all(
        "[rank0]: Traceback (most recent call last):\n[rank1]: torch.OutOfMemoryError: "
        "CUDA out of memory. Tried to\n[rank0]: torch.OutOfMemoryError: CUDA out of "
        "memory. Tried to allocate 16.00 MiB.\n[rank1]: allocate 58.00 MiB. GPU 1 has "
        "a total capacity of 79.15 GiB of wh\n[rank0]: GPU 0 has a total capacity of "
        "23.56 GiB of which 34.81 MiB is free.\n[rank1]: ich 57.00 MiB is free. "
        "Including non-PyTorch memory, this process\nhas 79.09 GiB memory in use. Of "
        "the allocated memory 78.40 GiB is allocated\n[rank0]: Process 26463 has 23.07 "
        "GiB memory in use.\n[rank0]: Of the allocated memory 22.70 GiB is allocated "
        "by PyTorch,\n[rank1]: by PyTorch, and 74.06 MiB is reserved by PyTorch but "
        "unallocated.\n[rank0]: and 58.17 MiB is reserved by PyTorch but "
        "unallocated.\n",
        &f);
    assert_int_equal(f.count, 2);
    size_t first = strcmp(f.messages[0].label, "rank1") == 0 ? 0 : 1;
    const struct dry_message *one = f.messages + first, *zero = f.messages + (1 - first);
    assert_string_equal(one->label, "rank1");
    assert_int_equal(one->line, 2);
    check_size(&one->tried, 58 * MIB);
    check_size(&one->free, 57 * MIB);
    check_size(&one->process, 79.09 * GIB);
    check_size(&one->allocated, 78.4 * GIB);
    check_size(&one->unallocated, 74.06 * MIB);
    assert_string_equal(zero->label, "rank0");
    check_size(&zero->tried, 16 * MIB);
    check_size(&zero->free, 34.81 * MIB);
    check_size(&zero->others[0].bytes, 23.07 * GIB);
    check_size(&zero->unallocated, 58.17 * MIB);
}

static void
marks_of_many_kinds_tell_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *mark, *label;
    } cases[] = {
        {"[rank3]: ", "rank3"},
        {"[default7]:[rank7]: ", "rank7"},
        {"17:[default0]:[rank12]: ", "rank12"},
        {"3: ", "3"},
        {"[1,0]<stderr>:", "1,0"},
        {"(worker pid=1756, ip=10.0.0.1) ", "pid=1756"},
        {"rank5: ", "rank5"},
        {"\x1b[36m(Worker pid=17)\x1b[0m ", "pid=17"},
        {"[2025-01-31 12:00:00,5] [INFO] ", ""},
        {"18:", ""},
        {"> ", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        int n = snprintf(text, sizeof text,
                         "%sCUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; "
                         "4.00 GiB\n%stotal capacity; 3.00 GiB already allocated)",
                         cases[i].mark, cases[i].mark);
        struct dry_message m;
        assert_int_equal(parse(text, (size_t)n, &m), DRY_OK);
        assert_string_equal(m.label, cases[i].label);
        assert_int_equal(m.offset, strlen(cases[i].mark));
        check_size(&m.total, 4 * GIB);
        check_size(&m.allocated, 3 * GIB);
    }
}

/* More ranks at once than there is room for: what was read so far is handed out. */
static void
forty_ranks_are_all_found(void **state)
{
    (void)state;
    char *text = malloc(1 << 16);
    assert_non_null(text);
    size_t used = 0;
    for (int part = 0; part < 2; part++) {
        for (int rank = 0; rank < 40; rank++)
            used += (size_t)snprintf(
                text + used, (1 << 16) - used, "[rank%d]: %s\n", rank,
                part ? "GPU 0 has a total capacity of 2.00 GiB of which 1.00 MiB is free."
                     : "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                       "1.00 GiB.");
    }
    struct found f = {0};
    assert_int_equal(find_in(text, used, used, NULL, &f), DRY_OK);
    assert_int_equal(f.count, 40);
    size_t whole = 0;
    for (size_t i = 0; i < f.count; i++) {
        check_size(&f.messages[i].tried, 1 * GIB);
        whole += f.messages[i].total.known == DRY_MESSAGE_KNOWN;
    }
    assert_int_equal(whole, 16);
    free(text);
}

static void
sentences_are_no_messages(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "hello",
        "out of memory",
        "handles CUDA out of memory errors by halving the batch",
        "if 'CUDA out of memory' in str(e):",
        "avoids CUDA out of memory.",
        "RuntimeError: CUDA out of memory handler failed",
        "cuda out of memory",
        "CUDA out of memorx. Tried to allocate 1.00 GiB",
        "Allocation on device would exceed allowed memory.",
        "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 4.00 GiB",
        "the driver said CUDA error: out of memory, whatever",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dry_message m;
        assert_int_equal(parse(texts[i], strlen(texts[i]), &m), DRY_END);
    }
}

static void
bare_exceptions_are_messages(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "CUDA out of memory.",
        "CUDA out of memory",
        "RuntimeError: CUDA out of memory\n",
        "x\n[rank1]: RuntimeError: HIP out of memory.\nmore\n",
        "torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaError",
        "OutOfMemoryError: Tried to allocate 552.00 MiB.",
        "FOO out of memory. Tried to allocate 1.00 GiB",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dry_message m;
        assert_int_equal(parse(texts[i], strlen(texts[i]), &m), DRY_OK);
    }
}

/* --- finding ------------------------------------------------------------------------------ */

static int
compare_places(const void *a, const void *b)
{
    uint64_t x = ((const struct dry_message *)a)->offset;
    uint64_t y = ((const struct dry_message *)b)->offset;
    return (x > y) - (x < y);
}

/* All examples in one log, between other lines; pieces of any size give the same. */
static void
pieces_of_any_size_give_the_same(void **state)
{
    (void)state;
    size_t capacity = 1 << 17, used = 0;
    char *text = malloc(capacity);
    assert_non_null(text);
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s\n", examples[i].text);
        for (int k = 0; k < 12; k++)
            used +=
                (size_t)snprintf(text + used, capacity - used,
                                 "  File \"train.py\", line %d, in step of memory\n", k);
    }
    struct found whole = {0};
    assert_int_equal(find_in(text, used, used, NULL, &whole), DRY_OK);
    assert_int_equal(whole.count, EXAMPLE_COUNT);
    qsort(whole.messages, whole.count, sizeof *whole.messages, compare_places);
    for (size_t i = 0; i < EXAMPLE_COUNT; i++)
        check_example(examples + i, whole.messages + i);
    for (size_t step = 1; step < 2000; step = step * 2 + 1) {
        struct found f = {0};
        assert_int_equal(find_in(text, used, step, NULL, &f), DRY_OK);
        assert_int_equal(f.count, whole.count);
        qsort(f.messages, f.count, sizeof *f.messages, compare_places);
        for (size_t i = 0; i < f.count; i++) {
            assert_true(dry_message_is_same(f.messages + i, whole.messages + i));
            assert_int_equal(f.messages[i].offset, whole.messages[i].offset);
            assert_int_equal(f.messages[i].line, whole.messages[i].line);
        }
    }
    free(text);
}

/* One line of megabytes without an end, and messages in it. */
static void
endless_lines_are_searched(void **state)
{
    (void)state;
    size_t length = 3 << 20;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, 'x', length);
    static const char message[] =
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 1 has a total capacity of "
        "4.00 GiB";
    static const size_t places[] = {1000, 1020, 4095, 1 << 20, (3 << 20) - 200};
    for (size_t i = 2; i < sizeof places / sizeof *places; i++)
        memcpy(text + places[i], message, sizeof message - 1);
    struct found f = {0};
    assert_int_equal(find_in(text, length, 65536, NULL, &f), DRY_OK);
    assert_int_equal(f.count, 3);
    for (size_t i = 0; i < f.count; i++) {
        assert_int_equal(f.messages[i].offset, places[i + 2]);
        assert_int_equal(f.messages[i].line, 1);
        check_size(&f.messages[i].total, 4 * GIB);
    }
    free(text);
}

static void
doubled_messages_are_two(void **state)
{
    (void)state;
    const char *one = examples[EXAMPLE_COUNT - 1].text;
    char text[2048];
    snprintf(text, sizeof text, "%s\n%s", one, one);
    struct found f;
    find_all(text, &f);
    assert_int_equal(f.count, 2);
    assert_true(dry_message_is_same(f.messages, f.messages + 1));
    assert_true(f.messages[1].offset > strlen(one));
    snprintf(text, sizeof text, "%s%s", one, one);
    find_all(text, &f);
    assert_int_equal(f.count, 2);
    find_all("CUDA out of memory. Tried to allocate 1.00 GiB. RuntimeError: CUDA "
             "error: out of memory\nRuntimeError: Out of memory. Allocation was "
             "preemptively rejected",
             &f);
    assert_int_equal(f.count, 3);
    assert_int_equal(f.messages[0].form, DRY_MESSAGE_SHORT);
    assert_int_equal(f.messages[1].form, DRY_MESSAGE_DRIVER);
    assert_int_equal(f.messages[2].form, DRY_MESSAGE_REJECTED);
    f.messages[1] = f.messages[0];
    f.messages[1].free.high++;
    assert_false(dry_message_is_same(f.messages, f.messages + 1));
}

/* What is known of a beginning is what is known of the whole. */
static void
cut_texts_give_what_they_have(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        offsetof(struct dry_message, tried),
        offsetof(struct dry_message, total),
        offsetof(struct dry_message, free),
        offsetof(struct dry_message, process),
        offsetof(struct dry_message, allowed),
        offsetof(struct dry_message, allocated),
        offsetof(struct dry_message, unallocated),
        offsetof(struct dry_message, reserved),
    };
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const char *text = examples[i].text;
        struct dry_message whole, m;
        assert_int_equal(parse(text, strlen(text), &whole), DRY_OK);
        for (size_t length = 0; length < strlen(text); length++) {
            if (parse(text, length, &m) != DRY_OK)
                continue;
            struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
            dry_message_judge(&m, &j);
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                const struct dry_message_size *a = (const void *)((char *)&m + sizes[k]);
                const struct dry_message_size *b =
                    (const void *)((char *)&whole + sizes[k]);
                if (a->known != DRY_MESSAGE_ABSENT)
                    assert_memory_equal(a, b, sizeof *a);
            }
        }
    }
}

/* Any byte changed, put in or taken out; nothing is asserted but that it ends well. */
static void
spoilt_texts_are_survived(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 7);
    for (int i = 0; i < 4000; i++) {
        char text[2048];
        const char *from = examples[random_below(&r, EXAMPLE_COUNT)].text;
        size_t length = strlen(from);
        memcpy(text, from, length);
        for (uint64_t k = random_below(&r, 6); k > 0; k--)
            text[random_below(&r, length)] = (char)random_next(&r);
        struct found f = {0};
        assert_int_equal(find_in(text, length, 1 + random_below(&r, 300), NULL, &f),
                         DRY_OK);
        assert_true(f.count <= 2);
        for (size_t k = 0; k < f.count; k++) {
            struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
            dry_message_judge(f.messages + k, &j);
            assert_true(f.messages[k].offset < length);
            assert_true(j.proof_count <= DRY_MESSAGE_PROOFS_MAX);
        }
    }
}

static void
bytes_that_are_no_text_are_survived(void **state)
{
    (void)state;
    char text[600];
    memset(text, 0, sizeof text);
    static const char a[] = "CUDA out of\0 memory. Tried to\xff\xfe allocate 1.00 GiB.";
    memcpy(text, a, sizeof a);
    struct found f = {0};
    assert_int_equal(find_in(text, sizeof text, 64, NULL, &f), DRY_OK);
    assert_int_equal(f.count, 1); /* bare: the number is not behind the right words */
    static const char b[] = "\x80\xc3\x28"
                            "CUDA\0out of memory. \0Tried to allocate 1.00\0 "
                            "GiB.\xff GPU 0 has a total capacity of 2.00 GiB";
    memcpy(text, b, sizeof b - 1);
    f = (struct found){0};
    assert_int_equal(find_in(text, sizeof text, 64, NULL, &f), DRY_OK);
    assert_int_equal(f.count, 1);
    check_size(&f.messages[0].tried, 1 * GIB);
    check_size(&f.messages[0].total, 2 * GIB);
    assert_int_equal(f.messages[0].offset, 3);
}

static void
many_processes_are_counted(void **state)
{
    (void)state;
    char text[4096];
    size_t used =
        (size_t)snprintf(text, sizeof text,
                         "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a "
                         "total capacity of 80.00 GiB of which 0 bytes is free. ");
    for (int i = 0; i < 20; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "Process %d has %d.00 GiB memory in use. ", 100 + i, i);
    struct dry_message m;
    assert_int_equal(parse(text, used, &m), DRY_OK);
    assert_int_equal(m.other_count, DRY_MESSAGE_PROCESSES_MAX);
    assert_int_equal(m.other_dropped, 4);
    assert_int_equal(m.others[15].pid, 115);
    check_size(&m.others[15].bytes, 15 * GIB);
}

static void
a_search_can_be_ended(void **state)
{
    (void)state;
    char text[1024];
    snprintf(text, sizeof text, "%s\n%s\n", "CUDA out of memory.", "HIP out of memory.");
    struct found f = {.stop_after = 1};
    assert_int_equal(find_in(text, strlen(text), 5, NULL, &f), DRY_ERR_CANCELLED);
    assert_int_equal(f.count, 1);
    struct dry_error err = {0};
    struct dry_message_options options;
    dry_message_options_init(&options);
    assert_int_equal(dry_message_find(text, strlen(text), &options, &err),
                     DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "function"));
    options.found = keep;
    options.found_self = &f;
    f = (struct found){.stop_after = 1};
    assert_int_equal(dry_message_find(text, strlen(text), &options, &err),
                     DRY_ERR_CANCELLED);
    assert_int_equal(err.status, DRY_ERR_CANCELLED);
}

static void
a_finder_begins_anew(void **state)
{
    (void)state;
    struct found f = {0};
    struct dry_message_options options;
    dry_message_options_init(&options);
    options.found = keep;
    options.found_self = &f;
    struct dry_message_finder *finder;
    assert_int_equal(dry_message_finder_create(&options, &finder, NULL), DRY_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            dry_message_finder_feed(finder, "\nCUDA out of memory. Tried", 26), DRY_OK);
        assert_int_equal(f.count, i);
        assert_int_equal(dry_message_finder_end(finder), DRY_OK);
        assert_int_equal(f.count, i + 1);
        assert_int_equal(f.messages[i].offset, 1);
        assert_int_equal(f.messages[i].line, 2);
    }
    dry_message_finder_destroy(finder);
    dry_message_finder_destroy(NULL);
}

static void
memory_is_bounded_and_may_fail(void **state)
{
    (void)state;
    size_t length = 4 << 20;
    char *text = malloc(length);
    assert_non_null(text);
    static const char line[] =
        "[rank0]: CUDA out of memory. Tried to allocate 1.00 GiB. x\n";
    for (size_t i = 0; i < length; i++)
        text[i] = line[i % (sizeof line - 1)];
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct found f = {0};
    assert_int_equal(find_in(text, length, 65536, &memory, &f), DRY_OK);
    assert_int_equal(f.count,
                     length / (sizeof line - 1) + (length % (sizeof line - 1) > 47));
    assert_true(fm.peak_bytes < 200 << 10);
    assert_int_equal(fm.requests, 1);
    failing_memory_finish(&fm);
    memory = failing_memory_init(&fm, 0);
    assert_int_equal(find_in(text, length, 65536, &memory, &f), DRY_ERR_MEMORY);
    struct dry_message m;
    struct dry_error err = {0};
    assert_int_equal(dry_message_parse(text, 100, &memory, &m, &err), DRY_ERR_MEMORY);
    assert_int_equal(err.status, DRY_ERR_MEMORY);
    failing_memory_finish(&fm);
    free(text);
}

/* --- writing ------------------------------------------------------------------------------ */

static void
written_messages_read_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message m, back;
        char text[4096], again[4096];
        assert_int_equal(parse(x->text, strlen(x->text), &m), DRY_OK);
        size_t length = dry_message_write(&m, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(dry_message_write(&m, NULL, 0), length);
        assert_int_equal(parse(text, length, &back), DRY_OK);
        dry_message_write(&back, again, sizeof again);
        assert_string_equal(text, again);
        bool keeps_form = x->form != DRY_MESSAGE_CLASSIC &&
                          x->form != DRY_MESSAGE_ASYNC && x->form != DRY_MESSAGE_MPS;
        if (keeps_form)
            assert_true(dry_message_is_same(&m, &back));
        check_size(&back.tried, x->tried);
        check_size(&back.allocated, x->allocated);
        check_size(&back.total, x->total);
    }
}

static struct dry_message_size
random_size(struct random *r)
{
    uint64_t bytes = random_next(r) >> (20 + random_below(r, 44));
    return random_below(r, 4)
               ? (struct dry_message_size){DRY_MESSAGE_KNOWN, bytes, bytes, bytes}
               : (struct dry_message_size){0};
}

static void
random_messages_read_the_same(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 3);
    for (int i = 0; i < 3000; i++) {
        struct dry_message m = {
            .struct_size = sizeof m,
            .form = DRY_MESSAGE_MODERN,
            .backend = (enum dry_message_backend)random_below(&r, 6),
            .has_device = true,
            .device = (uint32_t)random_below(&r, 9),
            .tried = {DRY_MESSAGE_KNOWN, 1 + random_below(&r, 1 << 20), 0, 0},
            .total = {DRY_MESSAGE_KNOWN, random_next(&r) >> 22, 0, 0},
            .free = random_size(&r),
            .process = random_size(&r),
            .allowed = random_size(&r),
            .allocated = random_size(&r),
            .private_pools = random_size(&r),
            .unallocated = random_size(&r),
            .other_count = random_below(&r, DRY_MESSAGE_PROCESSES_MAX + 1),
            .hints = random_below(&r, 2) ? DRY_MESSAGE_HINT_EXPANDABLE : 0,
            .variable = DRY_MESSAGE_VARIABLE_GENERIC,
        };
        for (size_t k = 0; k < m.other_count; k++) {
            m.others[k].pid = random_next(&r) >> 32;
            m.others[k].bytes = m.tried;
        }
        char text[4096], again[4096];
        struct dry_message one, two;
        size_t length = dry_message_write(&m, text, sizeof text);
        assert_true(length < sizeof text);
        assert_int_equal(parse(text, length, &one), DRY_OK);
        assert_int_equal(dry_message_write(&one, again, sizeof again), length);
        assert_string_equal(text, again);
        assert_int_equal(parse(again, length, &two), DRY_OK);
        assert_true(dry_message_is_same(&one, &two));
        assert_int_equal(one.backend, m.backend);
        assert_int_equal(one.other_count, m.other_count);
        assert_int_equal(one.hints, m.hints);
        assert_int_equal(one.unallocated.known, m.unallocated.known);
    }
}

static void
writing_stops_at_the_capacity(void **state)
{
    (void)state;
    struct dry_message m;
    assert_int_equal(parse(examples[8].text, strlen(examples[8].text), &m), DRY_OK);
    char whole[2048];
    size_t length = dry_message_write(&m, whole, sizeof whole);
    for (size_t capacity = 1; capacity <= length + 1; capacity++) {
        char *text = malloc(capacity);
        assert_non_null(text);
        assert_int_equal(dry_message_write(&m, text, capacity), length);
        assert_int_equal(strlen(text), capacity - 1);
        assert_memory_equal(text, whole, capacity - 1);
        free(text);
    }
}

/* --- judging ------------------------------------------------------------------------------ */

static const struct dry_message_proof *
find_proof(const struct dry_message_judgement *j, enum dry_message_reason reason)
{
    for (size_t i = 0; i < j->proof_count; i++) {
        if (j->proofs[i].reason == reason)
            return j->proofs + i;
    }
    return NULL;
}

/* By value, with no terms and a result that fails where there is none. */
static struct dry_message_proof
get_proof(const struct dry_message_judgement *j, enum dry_message_reason reason)
{
    const struct dry_message_proof *p = find_proof(j, reason);
    assert_non_null(p);
    return p ? *p : (struct dry_message_proof){0};
}

static struct dry_message_check
get_check(const struct dry_message_judgement *j, enum dry_message_equation equation)
{
    for (size_t i = 0; i < j->check_count; i++) {
        if (j->checks[i].equation == equation)
            return j->checks[i];
    }
    fail_msg("no check %s", dry_message_equation_name(equation));
    return (struct dry_message_check){0};
}

static void
judge(const char *text, struct dry_message_judgement *j)
{
    struct dry_message m;
    assert_int_equal(parse(text, strlen(text), &m), DRY_OK);
    memset(j, 0xa5, sizeof *j);
    dry_message_judge(&m, j);
}

/* Sums are the sums of their terms, and names are there for all of them. */
static void
check_sums(const struct dry_message_term *terms, size_t count,
           const struct dry_message_sum *sum)
{
    int64_t bytes = 0, low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(terms[i].sign == 1 || terms[i].sign == -1);
        assert_string_not_equal(dry_message_quantity_name(terms[i].quantity), "unknown");
        assert_true(strlen(dry_message_quantity_text(terms[i].quantity)) <= 32);
        bytes += terms[i].sign * terms[i].value.bytes;
        low += terms[i].sign > 0 ? terms[i].value.low : -terms[i].value.high;
        high += terms[i].sign > 0 ? terms[i].value.high : -terms[i].value.low;
    }
    assert_true(sum->bytes == bytes && sum->low == low && sum->high == high);
}

static void
each_example_is_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
        print_message("%s\n", x->name);
        judge(x->text, &j);
        assert_string_equal(dry_cause_name(j.cause), dry_cause_name(x->cause));
        assert_int_equal(j.is_certain, x->is_certain);
        assert_int_equal(j.alternatives, x->alternatives);
        for (size_t k = 0; k < j.proof_count; k++)
            check_sums(j.proofs[k].terms, j.proofs[k].term_count, &j.proofs[k].sum);
        for (size_t k = 0; k < j.check_count; k++) {
            check_sums(j.checks[k].terms, j.checks[k].term_count, &j.checks[k].remainder);
            assert_int_not_equal(j.checks[k].result, DRY_MESSAGE_FAILS);
        }
        if (j.cause != DRY_CAUSE_UNKNOWN)
            assert_int_equal(j.proofs[0].cause, j.cause);
        assert_true(j.step_count > 0);
    }
}

static void
fragmentation_shows_its_arithmetic(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge("CUDA out of memory. Tried to allocate 58.00 MiB. GPU 0 has a total capacity "
          "of 23.56 GiB of which 57.00 MiB is free. Of the allocated memory 23.10 GiB is "
          "allocated by PyTorch, and 74.06 MiB is reserved by PyTorch but unallocated.",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
    struct dry_message_proof p = get_proof(&j, DRY_MESSAGE_REASON_SHORT);
    assert_int_equal(p.term_count, 2);
    assert_true(p.sum.bytes == 1 << 20);
    assert_true(p.sum.low > 0 && p.sum.low < 1 << 20);
    p = get_proof(&j, DRY_MESSAGE_REASON_PIECES);
    assert_true(p.sum.bytes == (int64_t)(73.06 * MIB + 0.5));
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_WHICH_PIECES));
    assert_null(find_proof(&j, DRY_MESSAGE_REASON_SECOND_REQUEST));
}

/* The digits say 20.00 MiB free: they cannot say on which side of the request that is. */
static void
rounding_makes_verdicts_uncertain(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity "
          "of 23.56 GiB of which 20.00 MiB is free. Of the allocated memory 23.10 GiB is "
          "allocated by PyTorch, and 74.06 MiB is reserved by PyTorch but unallocated.",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
    assert_false(j.is_certain);
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_ROUNDED));
    judge("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
          "of 23.56 GiB of which 1.50 GiB is free. Of the allocated memory 21.50 GiB "
          "is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but "
          "unallocated.",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
    assert_false(j.is_certain);
    assert_true(j.alternatives & OR(CAPACITY));
    judge("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
          "of 23.56 GiB of which 1.50 GiB is free. Of the allocated memory 21.50 GiB "
          "is allocated by PyTorch, and 511.99 MiB is reserved by PyTorch but "
          "unallocated.",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_CAPACITY);
    assert_false(j.is_certain);
    assert_true(j.alternatives & OR(FRAGMENTATION));
}

static void
numbers_that_disagree_are_shown(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge("CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of "
          "23.56 GiB of which 1.00 GiB is free. Process 7 has 10.00 GiB memory in use. "
          "Including non-PyTorch memory, this process has 15.00 GiB memory in use. Of "
          "the allocated memory 14.90 GiB is allocated by PyTorch, and 1.00 GiB is "
          "reserved by PyTorch but unallocated.",
          &j);
    struct dry_message_check c = get_check(&j, DRY_MESSAGE_EQ_DEVICE);
    assert_int_equal(c.result, DRY_MESSAGE_FAILS);
    assert_int_equal(c.term_count, 4);
    assert_true(c.remainder.bytes < (int64_t)(-2.4 * GIB));
    c = get_check(&j, DRY_MESSAGE_EQ_PROCESS);
    assert_int_equal(c.result, DRY_MESSAGE_FAILS);
    assert_false(j.is_certain);
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_CONTRADICTION));
}

static void
remainders_are_worked_out(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge(examples[16].text, &j); /* the other process */
    check_size(&j.others, 12.02 * GIB);
    check_size(&j.reserved, (734.07 + 33.93) * MIB);
    assert_int_equal(j.non_pytorch.bytes / (1 << 20), 198);
    struct dry_message_check c = get_check(&j, DRY_MESSAGE_EQ_DEVICE);
    assert_int_equal(c.result, DRY_MESSAGE_HOLDS);
    assert_int_equal(c.remainder.bytes / (1 << 20), 27);
    assert_int_equal(j.this_process, -1);
    judge(examples[7].text, &j); /* seen from a container */
    assert_int_equal(j.this_process, 0);
    check_size(&j.process, 14.73 * GIB);
    assert_int_equal(j.others.known, DRY_MESSAGE_ABSENT);
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_THIS_IS_PROCESS));
}

/* Two listed processes that could be this one: neither is named. */
static void
this_process_is_not_guessed(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
          "of 20.00 GiB of which 1.00 GiB is free. Process 1 has 9.00 GiB memory in "
          "use. Process 2 has 9.50 GiB memory in use. Of the allocated memory 8.00 GiB "
          "is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but "
          "unallocated.",
          &j);
    assert_int_equal(j.this_process, -1);
    judge("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
          "of 20.00 GiB of which 1.00 GiB is free. Process 1 has 9.00 GiB memory in "
          "use. Of the allocated memory 8.00 GiB is allocated by PyTorch, and 10.00 "
          "MiB is reserved by PyTorch but unallocated.",
          &j);
    assert_int_equal(j.this_process, -1); /* there is room for both */
}

static void
small_segments_and_spills_are_remarked(void **state)
{
    (void)state;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    judge("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity "
          "of 47.53 GiB of which 896.00 KiB is free. Process 9 has 47.51 GiB memory in "
          "use. Of the allocated memory 47.00 GiB is allocated by PyTorch, with 46.22 "
          "GiB allocated in private pools (e.g., CUDA Graphs), and 149.10 MiB is "
          "reserved by PyTorch but unallocated.",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
    assert_true(j.alternatives & OR(STRANDED));
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_SMALL_POOL));
    judge("Allocation on device 0 would exceed allowed memory. (out of "
          "memory)\nCurrently allocated : 29.97 GiB\nRequested : 7.17 GiB\nDevice limit "
          ": 15.92 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by "
          "user-supplied memory fraction)\n : 17179869184.00 GiB",
          &j);
    assert_int_equal(j.cause, DRY_CAUSE_CAPACITY);
    assert_non_null(find_proof(&j, DRY_MESSAGE_REASON_HOST_SPILL));
}

/* --- steps -------------------------------------------------------------------------------- */

static bool
has_code(const struct dry_message_judgement *j, const char *words)
{
    for (size_t i = 0; i < j->step_count; i++) {
        if (j->steps[i].code && strstr(j->steps[i].code, words))
            return true;
    }
    return false;
}

#define PIECES                                                                           \
    " out of memory. Tried to allocate 58.00 MiB. GPU 0 has a total capacity of 23.56 "  \
    "GiB of which 57.00 MiB is free. Of the allocated memory 23.10 GiB is allocated by " \
    "PyTorch, and 74.06 MiB is reserved by PyTorch but unallocated."

static void
the_first_step_fits_the_release(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code;
    } cases[] = {
        {"CUDA" PIECES HINT, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
        {"CUDA" PIECES, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
        {"CUDA" PIECES HINT_OF("PYTORCH_ALLOC_CONF", URL_OLD),
         "export PYTORCH_ALLOC_CONF=expandable_segments:True"},
        {"HIP" PIECES HINT_OF("PYTORCH_HIP_ALLOC_CONF", URL_OLD),
         "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"},
        {"HIP" PIECES, "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"},
        {"CUDA" PIECES " See expandable_segments_reserve.", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
        judge(cases[i].text, &j);
        assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
        if (cases[i].code) {
            assert_string_equal(j.steps[0].code, cases[i].code);
            assert_int_equal(j.steps[0].language, DRY_MESSAGE_SHELL);
        } else {
            assert_false(has_code(&j, "export"));
        }
        assert_false(has_code(&j, "max_split_size_mb"));
        assert_true(has_code(&j, "_record_memory_history(max_entries=1_000_000)"));
        assert_true(has_code(&j, "_cuda_attach_out_of_memory_observer"));
        assert_true(has_code(&j, "except torch.OutOfMemoryError"));
    }
}

static void
steps_follow_the_cause(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
        judge(x->text, &j);
        bool is_gpu = x->backend <= DRY_MESSAGE_HIP && x->form != DRY_MESSAGE_HUGE;
        assert_int_equal(has_code(&j, "_record_memory_history"), is_gpu);
        if (x->cause == DRY_CAUSE_CAPACITY && x->alternatives == 0)
            assert_false(has_code(&j, "export"));
        if (x->cause == DRY_CAUSE_OTHER_MEMORY)
            assert_true(
                has_code(&j, x->backend == DRY_MESSAGE_HIP ? "rocm-smi" : "nvidia-smi"));
        if (x->form == DRY_MESSAGE_MPS)
            assert_true(has_code(&j, "WATERMARK"));
        bool both = has_code(&j, "max_split_size_mb") && has_code(&j, "export") &&
                    has_code(&j, "expandable_segments:True\n");
        assert_false(both);
        for (size_t k = 0; k < j.step_count; k++) {
            enum dry_cause cause = j.steps[k].cause;
            assert_true(cause == DRY_CAUSE_NONE || cause == j.cause ||
                        (j.alternatives >> cause & 1));
            assert_true(strlen(j.steps[k].why) > 20 && strlen(j.steps[k].why) < 400);
            assert_int_equal(j.steps[k].code == NULL,
                             j.steps[k].language == DRY_MESSAGE_PROSE);
            for (const char *c = j.steps[k].code; c && *c; c += strcspn(c, "\n")) {
                c += *c == '\n';
                assert_true(strcspn(c, "\n") <= 80);
            }
        }
    }
}

static void
every_name_is_its_own(void **state)
{
    (void)state;
    for (int i = 0; i <= DRY_MESSAGE_REASON_COUNT; i++) {
        const char *name = dry_message_reason_name((enum dry_message_reason)i);
        assert_int_equal(strcmp(name, "unknown") == 0, i == DRY_MESSAGE_REASON_COUNT);
        assert_true(strlen(dry_message_reason_text((enum dry_message_reason)i)) < 200);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name,
                                    dry_message_reason_name((enum dry_message_reason)k));
    }
    assert_string_equal(dry_message_quantity_name(DRY_MESSAGE_CONTEXT), "context");
    assert_string_equal(dry_message_equation_name(DRY_MESSAGE_EQ_POOLS), "pools");
    assert_string_equal(dry_message_equation_name((enum dry_message_equation)99),
                        "unknown");
    assert_string_equal(dry_message_equation_text((enum dry_message_equation)99),
                        "unknown");
    assert_string_equal(dry_message_quantity_name((enum dry_message_quantity)99),
                        "unknown");
    assert_string_equal(dry_message_quantity_text((enum dry_message_quantity)99),
                        "unknown");
    assert_string_equal(dry_message_form_name(DRY_MESSAGE_DRIVER), "driver");
    assert_string_equal(dry_message_form_name((enum dry_message_form)99), "unknown");
    assert_string_equal(dry_message_backend_name(DRY_MESSAGE_NPU), "npu");
    assert_string_equal(dry_message_backend_name((enum dry_message_backend)99),
                        "unknown");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stand_for_intervals),
        cmocka_unit_test(every_number_lies_in_its_interval),
        cmocka_unit_test(what_is_no_amount_is_none),
        cmocka_unit_test(a_megabyte_of_digits_ends),
        cmocka_unit_test(each_release_is_read),
        cmocka_unit_test(hints_devices_and_places_are_read),
        cmocka_unit_test(a_written_sentence_ends_once),
        cmocka_unit_test(wrapped_lines_are_joined),
        cmocka_unit_test(what_logs_add_is_passed_over),
        cmocka_unit_test(ranks_may_alternate),
        cmocka_unit_test(marks_of_many_kinds_tell_ranks),
        cmocka_unit_test(forty_ranks_are_all_found),
        cmocka_unit_test(sentences_are_no_messages),
        cmocka_unit_test(bare_exceptions_are_messages),
        cmocka_unit_test(pieces_of_any_size_give_the_same),
        cmocka_unit_test(endless_lines_are_searched),
        cmocka_unit_test(doubled_messages_are_two),
        cmocka_unit_test(cut_texts_give_what_they_have),
        cmocka_unit_test(spoilt_texts_are_survived),
        cmocka_unit_test(bytes_that_are_no_text_are_survived),
        cmocka_unit_test(many_processes_are_counted),
        cmocka_unit_test(a_search_can_be_ended),
        cmocka_unit_test(a_finder_begins_anew),
        cmocka_unit_test(memory_is_bounded_and_may_fail),
        cmocka_unit_test(written_messages_read_the_same),
        cmocka_unit_test(random_messages_read_the_same),
        cmocka_unit_test(writing_stops_at_the_capacity),
        cmocka_unit_test(each_example_is_judged),
        cmocka_unit_test(fragmentation_shows_its_arithmetic),
        cmocka_unit_test(rounding_makes_verdicts_uncertain),
        cmocka_unit_test(numbers_that_disagree_are_shown),
        cmocka_unit_test(remainders_are_worked_out),
        cmocka_unit_test(this_process_is_not_guessed),
        cmocka_unit_test(small_segments_and_spills_are_remarked),
        cmocka_unit_test(the_first_step_fits_the_release),
        cmocka_unit_test(steps_follow_the_cause),
        cmocka_unit_test(every_name_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
