/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of others than PyTorch's allocator of a device, as tables: one row for a kind of text,
 * one for each wording that marks it, one for each number in it. A new text is a row in each.
 * Blanks in the tables are for the reader; blanks of a text are dropped. Cost: O(rows) to find one.
 *
 * Wordings: c10/core/impl/alloc_cpu.cpp, torch/utils/data, torch/distributed/elastic, xla/tsl/framework,
 * vllm/v1, sglang/srt, TensorRT-LLM, ggml-cuda.cu, onnxruntime bfc_arena.cc, cupy/cuda/memory.pyx, rmm,
 * numba/cuda/cudadrv, nccl/src/include/alloc.h, the kernel's mm/oom_kill.c, the kubelet, Ray, Slurm.
 */
#include <string.h>

#include "base/bits.h"
#include "base/sized.h"
#include "explain/message/message.h"

#define OR(cause) (1u << DRY_CAUSE_##cause)
#define ADVICE(name) (UINT64_C(1) << DRYI_ADVICE_##name)
#define PARTS(...)                                                                       \
    {                                                                                    \
        __VA_ARGS__,                                                                     \
        {                                                                                \
            0, DRY_MESSAGE_TRIED                                                         \
        }                                                                                \
    }

enum {
    K_NONE,
    K_HOST,
    K_XLA,
    K_XLA_PROGRAM,
    K_KV_LENGTH,
    K_KV_NONE,
    K_NCCL,
    K_LIBRARY,
    K_KILLED,
    K_KILLED_IN_GROUP,
    K_SLURM,
    K_CUDNN_TF,
    K_ASYNC,
    K_COMFYUI,
    K_PIN,
    K_SYCL,
    K_BLOCK,
    K_MPS_BUFFER,
    K_CANN,
    K_NCCL_SHM,
    K_SIGKILL,
    K_WORKER_KILLED,
    K_SACCT,
    K_DOCKER,
    K_KUBERNETES,
    K_EVICTED,
    K_RAY,
    K_BUS,
    K_SHM,
    K_MMAP,
    K_NUMPY,
    K_BAD_ALLOC,
    K_OLLAMA,
    K_VLLM_FREE,
    K_VLLM_SAMPLER,
    K_VLLM_TOKENS,
    K_VLLM_PROFILE,
    K_SGLANG,
    K_TRTLLM,
    K_TRTLLM_KV,
    K_TRTLLM_CUDA,
    K_LLAMA,
    K_ORT,
    K_ORT_LIMIT,
    K_CUPY,
    K_RMM_POOL,
    K_RMM,
    K_NUMBA,
    K_BITSANDBYTES,
    K_BFC,
    K_TENSORFLOW,
    K_NOTE,
    K_COUNT,
};

/* --- what marks a text -------------------------------------------------------------------- */

/* A head that ends with another one comes before it. */
static const struct dryi_message_head heads[] = {
    {"DefaultCPUAllocator:", K_HOST, 0, 0},
    {"RESOURCE_EXHAUSTED:", K_XLA, 0, K_BFC},
    {"Ran out of memory in memory space", K_XLA_PROGRAM, 0, 0},
    {"No available memory for the cache blocks", K_KV_NONE, 0, 0},
    {"To serve at least one request", K_KV_LENGTH, 0, 0},
    {"NCCL WARN Cuda failure 'out of memory", K_NCCL, DRYI_HEAD_SURE, 0},
    {"NCCL WARN Cuda failure 2 'out of memory", K_NCCL, DRYI_HEAD_SURE, 0},
    {"Cuda failure 'out of memory", K_NCCL, 0, 0},
    {"Cuda failure 2 'out of memory", K_NCCL, 0, 0},
    {"NCCL WARN Failed to CUDA calloc", K_NCCL, DRYI_HEAD_SURE, K_NCCL},
    {"Failed to CUDA calloc", K_NCCL, 0, K_NCCL},
    {"Failed to CUDA host alloc", K_NCCL, 0, K_NCCL},
    {"Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED", K_CUDNN_TF,
     DRYI_HEAD_SURE, K_CUDNN_TF},
    {"CUBLAS_STATUS_ALLOC_FAILED", K_LIBRARY, 0, 0},
    {"CUDNN_STATUS_ALLOC_FAILED", K_LIBRARY, 0, 0},
    {"CUSOLVER_STATUS_ALLOC_FAILED", K_LIBRARY, 0, 0},
    {"CUSPARSE_STATUS_ALLOC_FAILED", K_LIBRARY, 0, 0},
    {"Memory cgroup out of memory: Kill", K_KILLED_IN_GROUP, 0, 0},
    {"Out of memory: Kill", K_KILLED, 0, 0},
    {"oom_kill event", K_SLURM, DRYI_HEAD_LINE, 0},
    {"oom-kill event", K_SLURM, DRYI_HEAD_LINE, 0},
    {"Exceeded job memory limit", K_SLURM, 0, 0},
    {"OutOfMemoryError: Allocation on device", K_ASYNC, DRYI_HEAD_CLOSED, 0},
    {"Exception Message:** Allocation on device", K_COMFYUI, DRYI_HEAD_CLOSED, 0},
    {"in pin memory thread for device", K_PIN, 0, 0},
    {"39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", K_SYCL, 0, K_SYCL},
    {"alloc_buffer: can't allocate", K_SYCL, 0, 0},
    {"memory block with size larger than", K_BLOCK, 0, 0},
    {"Invalid buffer size:", K_MPS_BUFFER, 0, 0},
    {"EL0004:", K_CANN, 0, 0},
    {"failed to extend /dev/shm/nccl-", K_NCCL_SHM, 0, 0},
    {"Error while creating shared memory segment /dev/shm/nccl-", K_NCCL_SHM, 0,
     K_NCCL_SHM},
    {"(exitcode: -9)", K_SIGKILL, 0, 0},
    {"exitcode: -9 (pid:", K_SIGKILL, 0, 0},
    {"exits with return code = -9", K_SIGKILL, 0, 0},
    {"exited with code 137", K_SIGKILL, 0, 0},
    {"Exited with exit code 137", K_SIGKILL, 0, 0},
    {"completed with exit code 137", K_SIGKILL, 0, 0},
    {"terminated with exit code 137", K_SIGKILL, 0, 0},
    {"instance of 'std::bad_alloc'", K_BAD_ALLOC, 0, 0},
    {"[Errno 12] Cannot allocate memory", K_BAD_ALLOC, 0, 0},
    {"model requires more system memory", K_OLLAMA, 0, 0},
    {"is killed by signal: Killed", K_WORKER_KILLED, 0, 0},
    {"ReqMem MaxRSS", K_SACCT, 0, 0},
    {"OUT_OF_MEMORY 0:125", K_SLURM, 0, K_SACCT},
    {"\"OOMKilled\": true", K_DOCKER, 0, 0},
    {"Reason: OOMKilled", K_KUBERNETES, 0, 0},
    {"0/1 OOMKilled", K_KUBERNETES, 0, 0},
    {"The node was low on resource: memory.", K_EVICTED, 0, 0},
    {"node running low on memory", K_RAY, 0, 0},
    {"Workers (tasks / actors) killed due to memory pressure", K_RAY,
     DRYI_HEAD_LINE | DRYI_HEAD_COUNTED, 0},
    {"Unexpected bus error encountered in worker", K_BUS, 0, 0},
    {"is killed by signal: Bus error", K_BUS, 0, K_BUS},
    {"unable to write to file </torch_", K_SHM, 0, 0},
    {"unable to mmap", K_MMAP, 0, 0},
    {"Unable to allocate", K_NUMPY, 0, 0},
    {"Free memory on device", K_VLLM_FREE, 0, 0},
    {"out of memory occurred when warming up sampler", K_VLLM_SAMPLER, DRYI_HEAD_SURE, 0},
    {"The model's max seq len", K_VLLM_TOKENS, 0, 0},
    {"Error in memory profiling.", K_VLLM_PROFILE, 0, 0},
    {"Not enough memory. Please try to increase", K_SGLANG, 0, 0},
    {"Loaded weights leave no GPU memory for the KV cache", K_SGLANG, 0, 0},
    {"component could not be created: KV cache", K_TRTLLM_KV, 0, 0},
    {"component could not be created:", K_TRTLLM, 0, 0},
    {"CUDA runtime error in", K_TRTLLM_CUDA, 0, 0},
    {"alloc_buffer: allocating", K_LLAMA, 0, 0},
    {"cudaMalloc failed: out of memory", K_LLAMA, 0, K_LLAMA},
    {"Failed to allocate memory for requested buffer of size", K_ORT, 0, K_ORT},
    {"Available memory of", K_ORT_LIMIT, 0, 0},
    {"OutOfMemoryError: Out of memory allocating", K_CUPY, 0, 0},
    {"OutOfMemoryError: out of memory to allocate", K_CUPY, 0, 0},
    {"aximum pool size exceeded", K_RMM_POOL, 0, K_RMM_POOL},
    {"cudaErrorMemoryAllocation out of memory", K_RMM, 0, 0},
    {"cudaErrorMemoryAllocation: out of memory", K_RMM, 0, 0},
    {"results in CUDA_ERROR_OUT_OF_MEMORY", K_NUMBA, 0, 0},
    {"Error out of memory at line", K_BITSANDBYTES, 0, 0},
    {") ran out of memory trying to allocate", K_BFC, 0, 0},
    {"OOM when allocating tensor", K_TENSORFLOW, 0, K_BFC},
    {"Model loading took", K_NOTE, 0, 0},
    {"Estimated CUDA graph memory:", K_NOTE, 0, 0},
    {"Available KV cache memory:", K_NOTE, 0, 0},
    {"model weights take", K_NOTE, 0, 0},
    {"Load weight begin.", K_NOTE, 0, 0},
    {"Load weight end.", K_NOTE, 0, 0},
    {"CPU Virtual Memory:", K_NOTE, 0, 0},
    {"GB Max_MA", K_NOTE, DRYI_HEAD_LINE, 0},
    {"memory: usage", K_NOTE, 0, 0},
    {"Loaded engine size:", K_NOTE, 0, 0},
    {"for execution context memory", K_NOTE, DRYI_HEAD_LINE, 0},
};

const struct dryi_message_head *
dryi_message_get_heads(size_t *count)
{
    *count = sizeof heads / sizeof *heads;
    return heads;
}

/* --- where its numbers stand -------------------------------------------------------------- */

/* Name up to four quantities after a pattern. */
#define TO(name) DRY_MESSAGE_##name

/* The phrases of a kind stand together. One that begins with another one comes before it. */
static const struct dryi_message_phrase phrases[] = {
    {"you tried to allocate %", K_HOST, {TO(TRIED)}},
    {"trying to allocate %", K_XLA, {TO(TRIED)}},
    {"memory allocating %", K_XLA, {TO(TRIED)}},
    {"allocate request for %", K_XLA, {TO(TRIED)}},
    {"parameter allocation: %", K_XLA, {TO(PARAMETERS)}},
    {"constant allocation: %", K_XLA, {TO(CONSTANTS)}},
    {"live_out allocation: %", K_XLA, {TO(LIVE_OUT)}},
    {"temp allocation: %", K_XLA, {TO(TEMPORARIES)}},
    {"total allocation: %", K_XLA, {TO(PROGRAM_TOTAL)}},
    {"total fragmentation: %", K_XLA, {TO(PROGRAM_WASTE)}},
    {"Used ~ of ~ hbm", K_XLA_PROGRAM, {TO(TRIED), TO(TOTAL)}},
    {"hbm capacity by ~", K_XLA_PROGRAM, {TO(SHORTAGE)}},
    {"hbm usage >= ~", K_XLA_PROGRAM, {TO(PROGRAM_TOTAL)}},
    {"reserved ~", K_XLA_PROGRAM, {TO(RESERVED)}},
    {"program ~", K_XLA_PROGRAM, {TO(PROGRAM)}},
    {"arguments ~", K_XLA_PROGRAM, {TO(ARGUMENTS)}},
    {"max seq len (#)", K_KV_LENGTH, {TO(LENGTH_WANTED)}},
    {"% KV cache is needed", K_KV_LENGTH, {TO(TRIED)}},
    {"available KV cache memory (%", K_KV_LENGTH, {TO(ALLOWED)}},
    {"maximum model length is #", K_KV_LENGTH, {TO(LENGTH_POSSIBLE)}},
    {"calloc async %", K_NCCL, {TO(TRIED)}},
    {"calloc %", K_NCCL, {TO(TRIED)}},
    {"host alloc %", K_NCCL, {TO(TRIED)}},
    {"total-vm: %", K_KILLED, {TO(VIRTUAL)}},
    {"anon-rss: %", K_KILLED, {TO(PROCESS)}},
    {"file-rss: %", K_KILLED, {TO(FILE_PAGES)}},
    {"Detected # oom", K_SLURM, {TO(EVENTS)}},
    {"Torch VRAM Total:** #", K_COMFYUI, {TO(RESERVED)}},
    {"Torch VRAM Free:** #", K_COMFYUI, {TO(UNALLOCATED)}},
    {"VRAM Total:** #", K_COMFYUI, {TO(TOTAL)}},
    {"VRAM Free:** #", K_COMFYUI, {TO(FREE)}},
    {"thread for device #", K_PIN, {DRYI_TO_DEVICE}},
    {"can't allocate %", K_SYCL, {TO(TRIED)}},
    {"size larger than %", K_BLOCK, {TO(ALLOWED)}},
    {"Tried to allocate %", K_BLOCK, {TO(TRIED)}},
    {"(GPU #;", K_BLOCK, {DRYI_TO_DEVICE}},
    {"% total capacity", K_BLOCK, {TO(TOTAL)}},
    {"% already allocated", K_BLOCK, {TO(ALLOCATED)}},
    {"% reserved in total", K_BLOCK, {TO(RESERVED)}},
    {"Invalid buffer size: %", K_MPS_BUFFER, {TO(TRIED)}},
    {"[size: #]", K_CANN, {TO(TRIED)}},
    {"to %", K_NCCL_SHM, {TO(TRIED)}},
    {"(size #)", K_NCCL_SHM, {TO(TRIED)}},
    {"OUT_OF_MEMORY 0:125 ~", K_SACCT, {TO(ALLOWED), TO(PROCESS)}},
    {"Limits: memory: ~", K_KUBERNETES, {TO(ALLOWED)}},
    {"Threshold quantity: ~", K_EVICTED, {TO(THRESHOLD)}},
    {"available: ~", K_EVICTED, {TO(FREE)}},
    {"was using ~", K_EVICTED, {TO(PROCESS)}},
    {"request is ~", K_EVICTED, {TO(POD_REQUEST)}},
    {"# Workers (", K_RAY, {TO(EVENTS)}},
    {"memory used= %", K_RAY, {TO(TASK)}},
    {"was % / % (", K_RAY, {TO(HOST_USED), TO(TOTAL)}},
    {"threshold of $", K_RAY, {TO(THRESHOLD_SHARE)}},
    {"unable to mmap %", K_MMAP, {TO(TRIED)}},
    {"Unable to allocate %", K_NUMPY, {TO(TRIED)}},
    {"system memory (%)", K_OLLAMA, {TO(TRIED)}},
    {"is available (%)", K_OLLAMA, {TO(FREE)}},
    {"(^ / % ) on startup", K_VLLM_FREE, {TO(FREE), TO(TOTAL)}},
    {"utilization ($, %", K_VLLM_FREE, {TO(FRACTION), TO(TRIED)}},
    {"sampler with # dummy", K_VLLM_SAMPLER, {TO(DUMMIES)}},
    {"max seq len (#)", K_VLLM_TOKENS, {TO(LENGTH_WANTED)}},
    {"KV cache (#)", K_VLLM_TOKENS, {TO(LENGTH_POSSIBLE)}},
    {"Initial free memory %", K_VLLM_PROFILE, {TO(FREE_BEFORE)}},
    {"current free memory %", K_VLLM_PROFILE, {TO(FREE_AFTER)}},
    {"mem_fraction_static= $", K_SGLANG, {TO(FRACTION)}},
    {"mem-fraction-static= $", K_SGLANG, {TO(FRACTION)}},
    {"mem-fraction-static above $", K_SGLANG, {TO(FRACTION_NEEDED)}},
    {"available/pre = $", K_SGLANG, {TO(FRACTION_LEAST)}},
    {"Total GPU memory (GiB): ^", K_TRTLLM, {TO(TOTAL)}},
    {"creation attempt (GiB): ^", K_TRTLLM, {TO(FREE)}},
    {"allocating % on device #", K_LLAMA, {TO(TRIED), DRYI_TO_DEVICE}},
    {"buffer of size #", K_LLAMA, {TO(TRIED)}},
    {"buffer of size #", K_ORT, {TO(TRIED)}},
    {"Available memory of #", K_ORT_LIMIT, {TO(FREE)}},
    {"requested bytes of #", K_ORT_LIMIT, {TO(TRIED)}},
    {"memory allocating %", K_CUPY, {TO(TRIED)}},
    {"memory to allocate %", K_CUPY, {TO(TRIED)}},
    {"(allocated so far: %", K_CUPY, {TO(ALLOCATED)}},
    {"limit set to: %", K_CUPY, {TO(ALLOWED)}},
    {"(total %", K_CUPY, {TO(POOL)}},
    {"try size = %, %, %", K_RMM_POOL, {TO(RESERVED), TO(ALLOWED), TO(TRIED)}},
    {"(rounded to #)", K_BFC, {TO(ROUNDED)}},
    {"bfc_allocator.cc:", K_BFC, {0}},
    {"prev: Size:", K_BFC, {0}},
    {"Free at & of size #", K_BFC, {DRYI_TO_CHUNK}},
    {"Limit: #", K_BFC, {TO(ALLOWED)}},
    {"InUse: #", K_BFC, {TO(ALLOCATED)}},
    {"Model loading took %", K_NOTE, {TO(WEIGHTS)}},
    {"CUDA graph memory: %", K_NOTE, {TO(GRAPHS)}},
    {"KV cache memory: %", K_NOTE, {TO(CACHE)}},
    {"model weights take %", K_NOTE, {TO(WEIGHTS)}},
    {"non_torch_memory takes %", K_NOTE, {TO(NON_TORCH)}},
    {"activation peak memory takes %", K_NOTE, {TO(ACTIVATIONS)}},
    {"reserved for KV Cache is %", K_NOTE, {TO(CACHE)}},
    {"begin. avail mem= %", K_NOTE, {TO(FREE_BEFORE)}},
    {"avail mem= %", K_NOTE, {TO(FREE_AFTER)}},
    {"mem usage= %", K_NOTE, {TO(WEIGHTS)}},
    {"used = %, percent = $", K_NOTE, {TO(HOST_USED), TO(HOST_SHARE)}},
    {"MA % Max_MA % CA % Max_CA %",
     K_NOTE,
     {TO(HELD), TO(HELD_PEAK), TO(CACHED), TO(CACHED_PEAK)}},
    {"usage %, limit %", K_NOTE, {TO(GROUP_USED), TO(GROUP_LIMIT)}},
    {"engine size: %", K_NOTE, {TO(ENGINE)}},
    {"Allocated % for execution", K_NOTE, {TO(EXECUTION)}},
};

struct dryi_message_phrases
dryi_message_get_phrases(size_t kind)
{
    const size_t all = sizeof phrases / sizeof *phrases;
    size_t first = 0, end;
    while (first < all && phrases[first].kind != kind)
        first++;
    for (end = first; end < all && phrases[end].kind == kind; end++)
        ;
    return (struct dryi_message_phrases){phrases + first, end - first};
}

/* --- what it means ------------------------------------------------------------------------ */

static const struct dryi_message_rule
    program_rules[] = {{DRY_MESSAGE_REASON_XLA_PROGRAM, NULL, DRY_CAUSE_CAPACITY, 0, 0,
                        PARTS(PLUS(TRIED), MINUS(TOTAL))}},
    length_rules[] = {{DRY_MESSAGE_REASON_KV_CACHE_SHORT, NULL, DRY_CAUSE_CAPACITY, 0, 0,
                       PARTS(PLUS(TRIED), MINUS(ALLOWED))}},
    free_rules[] =
        {{DRY_MESSAGE_REASON_STATED,
          "The device has less free than vLLM is to use: others hold the rest, "
          "or the share is too large by this much",
          DRY_CAUSE_OTHER_MEMORY, DRYI_GIB, 0, PARTS(PLUS(TRIED), MINUS(FREE))}},
    ollama_rules[] =
        {{DRY_MESSAGE_REASON_STATED,
          "The model needs more of the host's memory than is free: short by this "
          "much",
          DRY_CAUSE_CAPACITY, 0, 0, PARTS(PLUS(TRIED), MINUS(FREE))}},
    arena_rules[] =
        {{DRY_MESSAGE_REASON_STATED,
          "The arena's limit leaves less than the request: short by this much",
          DRY_CAUSE_LIMIT, 0, 0, PARTS(PLUS(TRIED), MINUS(FREE))}},
    cupy_rules[] = {{DRY_MESSAGE_REASON_STATED,
                     "What CuPy's pool holds and the request exceed the pool's limit",
                     DRY_CAUSE_LIMIT, 0, 0,
                     PARTS(PLUS(ALLOCATED), PLUS(TRIED), MINUS(ALLOWED))}},
    pool_rules[] = {{DRY_MESSAGE_REASON_STATED,
                     "What RMM's pool holds and the request exceed the pool's limit",
                     DRY_CAUSE_LIMIT, 0, 0,
                     PARTS(PLUS(RESERVED), PLUS(TRIED), MINUS(ALLOWED))}},
    bfc_rules[] = {
        {DRY_MESSAGE_REASON_STATED,
         "What is in use and the request exceed the allocator's share of the device",
         DRY_CAUSE_CAPACITY, 0, ADVICE(BFC) | ADVICE(XLA_POOL),
         PARTS(PLUS(ALLOCATED), PLUS(TRIED), MINUS(ALLOWED))},
        {DRY_MESSAGE_REASON_STATED,
         "The free pieces together are less than the request, and the device had no more "
         "for the allocator, though its share allows more",
         DRY_CAUSE_OTHER_MEMORY, INT64_MAX, ADVICE(OTHERS),
         PARTS(PLUS(TRIED), MINUS(FREE))},
        {DRY_MESSAGE_REASON_STATED,
         "The bytes are free, but in pieces: the request exceeds the largest by this "
         "much",
         DRY_CAUSE_FRAGMENTATION, 0, ADVICE(BFC_ASYNC) | ADVICE(BFC),
         PARTS(PLUS(TRIED), MINUS(LARGEST_FREE))}};

/* A row with what all kinds have: key, writer, backend, form, cause, reason and its sentence. */
#define KIND(key_, writer_, backend_, form_, cause_, reason_, text_)                     \
    .key = (key_), .writer = (writer_), .backend = DRY_MESSAGE_##backend_,               \
    .form = DRY_MESSAGE_##form_, .cause = DRY_CAUSE_##cause_,                            \
    .reason = DRY_MESSAGE_REASON_##reason_, .text = (text_)
#define RULES(name)                                                                      \
    .rules = name##_rules, .rule_count = sizeof name##_rules / sizeof *name##_rules

static const struct dryi_message_kind kinds[K_COUNT] = {
    [K_HOST] = {KIND("torch-host", "PyTorch's allocator of host memory", BACKEND_HOST,
                     HOST, CAPACITY, HOST_REFUSED, NULL),
                .flags = DRYI_KIND_SIZED, .alternatives = OR(LIMIT) | OR(OTHER_MEMORY),
                .advice = ADVICE(HOST) | ADVICE(LOAD)},
    [K_XLA] = {KIND("xla", "XLA, for JAX or TensorFlow", BACKEND_XLA, XLA, UNKNOWN,
                    XLA_REQUEST, NULL),
               .flags = DRYI_KIND_SIZED,
               .alternatives = OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY),
               .advice = ADVICE(XLA) | ADVICE(XLA_POOL) | ADVICE(OTHERS)},
    [K_XLA_PROGRAM] = {KIND("xla-program", "XLA's compiler", BACKEND_XLA, XLA_PROGRAM,
                            CAPACITY, XLA_PROGRAM, NULL),
                       RULES(program), .advice = ADVICE(XLA) | ADVICE(XLA_PROGRAM)},
    [K_KV_LENGTH] = {KIND("vllm-length",
                          "vLLM, when its KV cache is too short for one request", CUDA,
                          KV_CACHE, LIMIT, KV_CACHE_NONE, NULL),
                     .flags = DRYI_KIND_OWN,
                     .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY), RULES(length),
                     .advice = ADVICE(VLLM_LENGTH) | ADVICE(VLLM_SHARE) | ADVICE(OTHERS)},
    [K_KV_NONE] = {KIND("vllm-no-blocks", "vLLM, when nothing is left for its KV cache",
                        CUDA, KV_CACHE, LIMIT, KV_CACHE_NONE, NULL),
                   .flags = DRYI_KIND_OWN,
                   .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                   .advice = ADVICE(VLLM_SHARE) | ADVICE(VLLM_BATCH) | ADVICE(OTHERS)},
    [K_NCCL] = {KIND("nccl", "NCCL", CUDA, NCCL, UNKNOWN, NCCL, NULL),
                .flags = DRYI_KIND_OWN, .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                .advice = ADVICE(LEAVE) | ADVICE(NCCL) | ADVICE(OTHERS)},
    [K_LIBRARY] = {KIND("cuda-library", "cuBLAS, cuDNN, cuSOLVER or cuSPARSE", CUDA,
                        LIBRARY, UNKNOWN, LIBRARY, NULL),
                   .flags = DRYI_KIND_OWN,
                   .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                   .advice =
                       ADVICE(LEAVE) | ADVICE(HANDLE) | ADVICE(CUDNN) | ADVICE(OTHERS)},
    [K_CUDNN_TF] = {KIND("tensorflow-cudnn", "TensorFlow, when it starts cuDNN", CUDA,
                         LIBRARY, UNKNOWN, LIBRARY, NULL),
                    .flags = DRYI_KIND_OWN,
                    .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                    .advice = ADVICE(TF_GROWTH) | ADVICE(OTHERS)},
    [K_KILLED] = {KIND("kernel", "the Linux kernel, when it kills a process",
                       BACKEND_HOST, KILLED, CAPACITY, KILLED, NULL),
                  .alternatives = OR(OTHER_MEMORY),
                  .advice = ADVICE(HOST) | ADVICE(LOAD)},
    [K_KILLED_IN_GROUP] =
        {KIND("kernel-group", "the Linux kernel, when a control group is full",
              BACKEND_HOST, KILLED_IN_GROUP, LIMIT, KILLED_IN_GROUP, NULL),
         .also = K_KILLED, .advice = ADVICE(HOST) | ADVICE(GROUP) | ADVICE(LOAD)},
    [K_SLURM] = {KIND("slurm", "Slurm", BACKEND_HOST, SLURM, LIMIT, SLURM, NULL),
                 .advice = ADVICE(HOST) | ADVICE(SLURM) | ADVICE(LOAD)},
    [K_SACCT] = {KIND("sacct", "sacct, from Slurm's accounts", BACKEND_HOST, STATED,
                      LIMIT, SLURM, NULL),
                 .needs = "OUT_OF_MEMORY 0:125", .flags = DRYI_KIND_NEXT, .gap = 600,
                 .advice = ADVICE(HOST) | ADVICE(SLURM) | ADVICE(LOAD)},
    [K_ASYNC] =
        {KIND("torch-async-short", "PyTorch, when it allocates with cudaMallocAsync",
              CUDA, STATED, UNKNOWN, STATED,
              "cudaMallocAsync refused, and the short form of its text has no numbers"),
         .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
         .advice = ADVICE(NATIVE) | ADVICE(OTHERS)},
    [K_COMFYUI] = {KIND("comfyui", "ComfyUI", CUDA, STATED, UNKNOWN, STATED,
                        "cudaMallocAsync refused; the report's numbers are of a moment "
                        "after the failure"),
                   .gap = 8000,
                   .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
                   .advice = ADVICE(COMFYUI) | ADVICE(NATIVE)},
    [K_PIN] = {KIND("torch-pinned", "PyTorch's data loader, when it pins a batch",
                    BACKEND_HOST, STATED, UNKNOWN, STATED,
                    "The thread that pins batches got no pinned memory of the host, or "
                    "it reports an earlier error of the device"),
               .needs = "out of memory", .flags = DRYI_KIND_HOLDS, .gap = 2400,
               .advice = ADVICE(PIN)},
    [K_SYCL] = {KIND("level-zero", "Level Zero, the driver of Intel's GPUs", XPU, STATED,
                     UNKNOWN, STATED,
                     "Level Zero had no memory of the device left; the text does not say "
                     "who holds it"),
                .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY), .advice = ADVICE(SYCL)},
    [K_BLOCK] =
        {KIND("xpu-block", "PyTorch on Intel's GPUs, when a block is too large",
              XPU, STATED, LIMIT, STATED,
              "One block may not be as large as the request, however much is free"),
         .flags = DRYI_KIND_SIZED, .advice = ADVICE(BLOCK)},
    [K_MPS_BUFFER] = {KIND("mps-buffer",
                           "PyTorch on Apple's GPUs, when a buffer is too large",
                           BACKEND_MPS, STATED, LIMIT, STATED,
                           "The request exceeds the largest buffer that Metal makes; no "
                           "watermark helps"),
                      .flags = DRYI_KIND_SIZED, .advice = ADVICE(BUFFER)},
    [K_CANN] =
        {KIND("cann", "CANN, the runtime of Huawei's NPUs", NPU, STATED, UNKNOWN, STATED,
              "CANN got no memory of the device for an operator or for HCCL's buffer"),
         .needs = "Failed to allocate memory", .gap = 400,
         .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY), .advice = ADVICE(CANN)},
    [K_NCCL_SHM] =
        {KIND("nccl-shm", "NCCL, when it extends /dev/shm", BACKEND_HOST, STATED, LIMIT,
              STATED,
              "NCCL could not extend its segment in /dev/shm, which is full or small"),
         .alternatives = OR(OTHER_MEMORY), .advice = ADVICE(SHM)},
    [K_BUS] = {KIND("dataloader-shm", "PyTorch's data loader, after a bus error",
                    BACKEND_HOST, STATED, LIMIT, STATED,
                    "A worker of the data loader died of a bus error: most likely "
                    "/dev/shm was full"),
               .alternatives = OR(OTHER_MEMORY), .advice = ADVICE(SHM) | ADVICE(WORKERS)},
    [K_SHM] = {KIND("torch-shm", "PyTorch, when it shares tensors in /dev/shm",
                    BACKEND_HOST, STATED, LIMIT, STATED,
                    "/dev/shm is full: tensors that processes share lie there"),
               .needs = "No space left", .advice = ADVICE(SHM) | ADVICE(WORKERS)},
    [K_MMAP] = {KIND("torch-mmap", "PyTorch, when it maps shared memory", BACKEND_HOST,
                     STATED, UNKNOWN, STATED,
                     "The kernel refused a mapping of shared memory: a process may have "
                     "only so many, or the host is full"),
                .needs = "Cannot allocate memory",
                .alternatives = OR(LIMIT) | OR(CAPACITY), .advice = ADVICE(MAPS)},
    [K_NUMPY] = {KIND("numpy", "NumPy", BACKEND_HOST, STATED, CAPACITY, STATED,
                      "The host refused memory for one array"),
                 .needs = "for an array with shape", .flags = DRYI_KIND_SIZED,
                 .alternatives = OR(LIMIT) | OR(OTHER_MEMORY),
                 .advice = ADVICE(HOST) | ADVICE(NUMPY) | ADVICE(WORKERS)},
    [K_BAD_ALLOC] = {KIND("host-refused", "C++ or Python, when the host refuses memory",
                          BACKEND_HOST, STATED, CAPACITY, STATED,
                          "The host refused memory to the process"),
                     .alternatives = OR(LIMIT) | OR(OTHER_MEMORY),
                     .advice = ADVICE(HOST) | ADVICE(LOAD)},
    [K_OLLAMA] = {KIND("ollama", "Ollama", BACKEND_HOST, STATED, CAPACITY, STATED,
                       "The model needs more of the host's memory than is free"),
                  .flags = DRYI_KIND_SIZED, .alternatives = OR(OTHER_MEMORY),
                  RULES(ollama), .advice = ADVICE(HOST) | ADVICE(OLLAMA)},
    [K_SIGKILL] = {KIND("sigkill", "a launcher, when its process is killed", BACKEND_HOST,
                        STATED, UNKNOWN, STATED,
                        "SIGKILL ended the process. The kernel sends it when memory runs "
                        "out, but others send it, too"),
                   .alternatives = OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY),
                   .advice = ADVICE(KILLED) | ADVICE(GROUP) | ADVICE(OFFLOAD)},
    [K_WORKER_KILLED] = {KIND("dataloader-killed",
                              "PyTorch's data loader, when a worker is killed",
                              BACKEND_HOST, STATED, UNKNOWN, STATED,
                              "SIGKILL ended a worker of the data loader. The kernel "
                              "sends it when memory runs out, but others send it, too"),
                         .alternatives = OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY),
                         .advice = ADVICE(KILLED) | ADVICE(WORKERS)},
    [K_DOCKER] = {KIND("docker", "Docker", BACKEND_HOST, STATED, LIMIT, KILLED_IN_GROUP,
                       NULL),
                  .advice = ADVICE(HOST) | ADVICE(DOCKER) | ADVICE(LOAD)},
    [K_KUBERNETES] = {KIND("kubernetes", "Kubernetes, when a container is killed",
                           BACKEND_HOST, STATED, LIMIT, KILLED_IN_GROUP, NULL),
                      .gap = 400,
                      .advice = ADVICE(HOST) | ADVICE(KUBERNETES) | ADVICE(LOAD)},
    [K_EVICTED] = {KIND("kubernetes-evicted", "Kubernetes, when it evicts a pod",
                        BACKEND_HOST, STATED, CAPACITY, STATED,
                        "The node had less memory than the kubelet keeps free, and this "
                        "pod used more than it had asked for"),
                   .alternatives = OR(OTHER_MEMORY),
                   .advice = ADVICE(EVICTED) | ADVICE(LOAD)},
    [K_RAY] =
        {KIND("ray", "Ray", BACKEND_HOST, STATED, LIMIT, STATED,
              "Ray killed a worker because the node's memory was above Ray's threshold"),
         .gap = 400, .advice = ADVICE(RAY)},
    [K_VLLM_FREE] = {KIND("vllm-free",
                          "vLLM, when it starts on a device with too little free", CUDA,
                          STATED, OTHER_MEMORY, STATED,
                          "The device has less free than vLLM is to use"),
                     .needs = "is less than desired", .alternatives = OR(LIMIT),
                     RULES(free), .advice = ADVICE(VLLM_FREE) | ADVICE(OTHERS)},
    [K_VLLM_SAMPLER] =
        {KIND("vllm-sampler", "vLLM, when it warms up its sampler", CUDA, STATED,
              CAPACITY, STATED,
              "The KV cache left too little for a step with that many requests"),
         .advice = ADVICE(VLLM_SAMPLER)},
    [K_VLLM_TOKENS] = {KIND("vllm-tokens", "vLLM, when its KV cache has too few tokens",
                            CUDA, STATED, CAPACITY, STATED,
                            "One request of the longest length needs more tokens of "
                            "cache than there are"),
                       .needs = "tokens that can be",
                       .advice = ADVICE(VLLM_LENGTH) | ADVICE(VLLM_SHARE)},
    [K_VLLM_PROFILE] =
        {KIND("vllm-profile", "vLLM, when it measures its memory", CUDA,
              STATED, OTHER_MEMORY, STATED,
              "Nothing ran out: others gave memory back while vLLM measured"),
         .flags = DRYI_KIND_OWN, .advice = ADVICE(VLLM_PROFILE)},
    [K_SGLANG] =
        {KIND("sglang", "SGLang", CUDA, STATED, LIMIT, STATED,
              "The weights take all of the fraction that SGLang may use: it must rise"),
         .needs = "mem-fraction-static", .flags = DRYI_KIND_OWN,
         .advice = ADVICE(SGLANG)},
    [K_TRTLLM] =
        {KIND("tensorrt-llm", "TensorRT-LLM", CUDA, STATED, CAPACITY, STATED,
              "TensorRT-LLM could not create a part of its executor: the text names it"),
         .alternatives = OR(OTHER_MEMORY), .advice = ADVICE(TRTLLM)},
    [K_TRTLLM_KV] = {KIND("tensorrt-llm-kv-cache",
                          "TensorRT-LLM, when it creates its KV cache", CUDA, STATED,
                          CAPACITY, STATED,
                          "The KV cache was planned larger than what is free"),
                     .also = K_TRTLLM, .advice = ADVICE(TRTLLM_KV)},
    [K_TRTLLM_CUDA] =
        {KIND("tensorrt-llm-cuda",
              "TensorRT-LLM, when the CUDA driver refuses memory", CUDA, STATED, UNKNOWN,
              STATED,
              "The driver refused memory to TensorRT-LLM; the text has no numbers"),
         .needs = "): out of memory", .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
         .advice = ADVICE(TRTLLM) | ADVICE(OTHERS)},
    [K_LLAMA] = {KIND("llama.cpp", "llama.cpp, when it allocates a buffer", CUDA, STATED,
                      UNKNOWN, STATED,
                      "The device had no room for a buffer of llama.cpp; the text does "
                      "not say how much is free"),
                 .needs = "cudaMalloc failed: out of memory",
                 .excludes = "retrying without", .gap = 300,
                 .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                 .advice = ADVICE(LLAMA) | ADVICE(OLLAMA) | ADVICE(OTHERS)},
    [K_ORT] = {KIND("onnxruntime", "ONNX Runtime, when its arena grows", BACKEND_UNKNOWN,
                    STATED, UNKNOWN, STATED,
                    "ONNX Runtime's arena got no more memory; the text does not name the "
                    "device"),
               .flags = DRYI_KIND_SIZED,
               .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
               .advice = ADVICE(ORT)},
    [K_ORT_LIMIT] = {KIND("onnxruntime-limit",
                          "ONNX Runtime, when its arena reaches the limit",
                          BACKEND_UNKNOWN, STATED, LIMIT, STATED,
                          "The arena's limit leaves less than the request"),
                     .needs = "is smaller than", .flags = DRYI_KIND_SIZED, RULES(arena),
                     .advice = ADVICE(ORT_LIMIT)},
    [K_CUPY] = {KIND("cupy", "CuPy", CUDA, STATED, UNKNOWN, STATED,
                     "CuPy's pool got no more memory from the driver"),
                .flags = DRYI_KIND_SIZED,
                .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
                RULES(cupy), .advice = ADVICE(CUPY) | ADVICE(OTHERS)},
    [K_RMM_POOL] = {KIND("rmm-pool", "RMM, when its pool reaches the limit", CUDA, STATED,
                         LIMIT, STATED, "RMM's pool may not grow by the request"),
                    .flags = DRYI_KIND_SIZED, RULES(pool), .advice = ADVICE(RMM)},
    [K_RMM] = {KIND("rmm", "RMM, when the CUDA driver refuses memory", CUDA, STATED,
                    UNKNOWN, STATED, "The driver had no memory left, and said no more"),
               .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY), .advice = ADVICE(OTHERS)},
    [K_NUMBA] = {KIND("cuda-driver", "Numba, when the CUDA driver refuses memory", CUDA,
                      STATED, UNKNOWN, STATED,
                      "The driver had no memory left, and said no more"),
                 .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                 .advice = ADVICE(OTHERS)},
    [K_BITSANDBYTES] = {KIND(
                            "bitsandbytes", "bitsandbytes, for its paged optimizer", CUDA,
                            STATED, UNKNOWN, STATED,
                            "bitsandbytes got no managed memory for its paged optimizer"),
                        .flags = DRYI_KIND_OWN,
                        .alternatives = OR(CAPACITY) | OR(OTHER_MEMORY),
                        .advice = ADVICE(BITSANDBYTES)},
    [K_BFC] = {KIND("bfc", "the BFC allocator of TensorFlow and JAX", BACKEND_XLA, STATED,
                    UNKNOWN, XLA_REQUEST, NULL),
               .excludes = "this is not a failure", .flags = DRYI_KIND_SIZED,
               .also = K_XLA, .gap = 600,
               .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
               RULES(bfc), .advice = ADVICE(BFC_ASYNC) | ADVICE(BFC) | ADVICE(XLA_POOL)},
    [K_TENSORFLOW] = {KIND("tensorflow", "TensorFlow", BACKEND_XLA, STATED, UNKNOWN,
                           XLA_REQUEST, NULL),
                      .alternatives = OR(CAPACITY) | OR(FRAGMENTATION) | OR(OTHER_MEMORY),
                      .advice = ADVICE(BFC) | ADVICE(TF_GROWTH)},
    [K_NOTE] = {.form = DRY_MESSAGE_STATED},
};

const struct dryi_message_kind *
dryi_message_get_kind(size_t index)
{
    return kinds + index;
}

const struct dryi_message_kind *
dryi_message_find_kind(const struct dry_message *m)
{
    for (size_t i = K_NONE + 1; i < K_NOTE; i++) {
        if (m->kind ? strcmp(m->kind, kinds[i].key) == 0
                    : m->form != DRY_MESSAGE_STATED && m->form == kinds[i].form)
            return kinds + i;
    }
    return NULL;
}

const char *
dry_message_get_writer(const struct dry_message *message)
{
    struct dry_message m = {0};
    const struct dryi_message_kind *kind = NULL;
    if (dryi_sized_take(&m, sizeof m, message, NULL) == DRY_OK)
        kind = dryi_message_find_kind(&m);
    return kind ? kind->writer : NULL;
}

size_t
dryi_message_number_kind(const struct dryi_message_kind *kind)
{
    return (size_t)(kind - kinds);
}
