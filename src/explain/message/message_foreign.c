/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Advice after a text of others than PyTorch's allocator of a device: one row for a bit of
 * `advice`, in the order in which it is given, in the words of the program that wrote the text.
 * Cost: O(rows).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "explain/message/message.h"

/* This text stands in the place of "{}"; without it the row is left out. */
enum value {
    NO_VALUE,
    LENGTH_POSSIBLE,
    FREE_SHARE,      /* free of total, rounded down to hundredths */
    FRACTION_NEEDED, /* the text's, or weights of free memory before, rounded up */
};

static const struct row {
    enum dryi_message_advice advice;
    const char *why, *code;
    enum dry_message_language language;
    enum value value;
} rows[] = {
    {DRYI_ADVICE_GRAPHS,
     "vLLM took its estimate for CUDA graphs off the KV cache. Let it leave the estimate "
     "out; then lower --gpu-memory-utilization a little, for the graphs themselves.",
     "export VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_HOST,
     "This is the host's memory, and no setting of PyTorch's allocator for a device "
     "helps. See what the machine, the container and the process may take.",
     "drystone pages", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_KILLED,
     "The kernel's log says whether it was out of memory: look for \"Killed process\".",
     "journalctl -k | grep -i 'killed process'", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_GROUP,
     "Compare the limit of the group with the most it has held; then raise the "
     "container's limit (docker run --memory, sbatch --mem), or hold less.",
     "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_DOCKER,
     "Let the container have more, or hold less. If only the memory is given, docker "
     "takes twice of it for --memory-swap.",
     "docker run --memory 64g --memory-swap 64g IMAGE", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_KUBERNETES,
     "Raise resources.limits.memory of the container, or hold less. Files in /dev/shm "
     "and pinned memory count.",
     "kubectl set resources deployment NAME --limits=memory=128Gi", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_EVICTED,
     "The node chose a pod that used more than its request. Raise "
     "resources.requests.memory to what the pod uses, so that it is placed where there "
     "is room.",
     "kubectl top pod --containers", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_RAY,
     "Let fewer tasks run beside each other: ask for more CPUs for each.",
     "task = task.options(num_cpus=2)", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_RAY_THRESHOLD,
     "The threshold is a variable of Ray's, and "
     "RAY_memory_monitor_refresh_ms=0 ends the killing: then the kernel kills.",
     "export RAY_memory_usage_threshold=0.98", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_SLURM, "See what was asked for and what was held, step by step.",
     "sacct -j \"$SLURM_JOB_ID\" --format=JobID,State,ReqMem,MaxRSS", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_SLURM,
     "Ask for more, if the node has it. The limit counts files in /dev/shm, pinned "
     "memory and all workers of data loaders.",
     "sbatch --mem=64G job.sh", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_BATCH,
     "Ask for more, if the node has it. Under LSF the request is rusage[mem=128GB].",
     "qsub -l select=1:ncpus=8:mem=128gb job.sh", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_SHM,
     "Give the container a larger /dev/shm, or the host's (docker run --ipc=host): the "
     "default "
     "is 64 MiB.",
     "docker run --shm-size=16g IMAGE", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_WORKERS,
     "Give data loaders fewer workers, and let each prepare less ahead.",
     "loader = DataLoader(data, num_workers=2, prefetch_factor=2)", DRY_MESSAGE_PYTHON,
     NO_VALUE},
    {DRYI_ADVICE_PIN,
     "Do without pinned memory, or pin less: fewer workers, a smaller prefetch_factor. "
     "If it fails all the same, an earlier kernel did.",
     "loader = DataLoader(data, pin_memory=False)", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_PIN_OFFLOAD,
     "Pin less of the host's memory; DeepSpeed's offload then has "
     "\"pin_memory\": false. The container and ulimit -l bound what can be pinned.",
     "ulimit -l", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_MAPS,
     "Each shared tensor is a mapping. See how many a process may have; share one large "
     "tensor and not many small ones.",
     "sysctl vm.max_map_count", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_NUMPY, "Make the array in parts, of a smaller type, or in a file.",
     "import numpy as np\n"
     "x = np.memmap(\"x.bin\", dtype=np.float16, mode=\"w+\", shape=(1024, 1024))",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_OFFLOAD,
     "Parameters and optimizer states that DeepSpeed offloads to the CPU lie in the "
     "host's memory: offload to NVMe, or do without offload_optimizer and "
     "offload_param.",
     NULL, DRY_MESSAGE_PROSE, NO_VALUE},
    {DRYI_ADVICE_LOAD,
     "Load weights without a second copy of them in the host's memory, and give data "
     "loaders fewer workers: each holds what it has touched.",
     "state = torch.load(\"model.pt\", mmap=True, map_location=\"cpu\")",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_BFC_ASYNC, "Let the driver's allocator put the pieces together.",
     "export TF_GPU_ALLOCATOR=cuda_malloc_async", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_BFC,
     "Hold less at a time: a smaller batch. The dump names what is in use.", NULL,
     DRY_MESSAGE_PROSE, NO_VALUE},
    {DRYI_ADVICE_TF_GROWTH,
     "TensorFlow takes nearly all of the device at its start and leaves its libraries "
     "little. Let its pool grow as it is used.",
     "export TF_FORCE_GPU_ALLOW_GROWTH=true", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_XLA,
     "Hold less: give a step's inputs away, so that its outputs can take their place, "
     "and make activations again with jax.checkpoint.",
     "step = jax.jit(step, donate_argnums=(0,))", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_XLA_POOL,
     "JAX takes three quarters of a GPU at its start and serves from these alone. Let it "
     "have more, if no other program needs the rest.",
     "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_XLA_POOL, "See which arrays are alive, before the call that fails.",
     "jax.profiler.save_device_memory_profile(\"memory.prof\")", DRY_MESSAGE_PYTHON,
     NO_VALUE},
    {DRYI_ADVICE_XLA_PROGRAM,
     "Ask the compiler what the program needs, without running it.",
     "print(jax.jit(step).lower(*inputs).compile().memory_analysis())",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_VLLM_FREE, "Let vLLM use no more than what is free now.",
     "vllm serve MODEL --gpu-memory-utilization {}", DRY_MESSAGE_SHELL, FREE_SHARE},
    {DRYI_ADVICE_VLLM_LENGTH, "Serve no longer requests than fit.",
     "vllm serve MODEL --max-model-len {}", DRY_MESSAGE_SHELL, LENGTH_POSSIBLE},
    {DRYI_ADVICE_VLLM_SHARE,
     "Serve shorter requests, or let vLLM use more of the device. Both leave more for "
     "the cache beside the weights.",
     "vllm serve MODEL --max-model-len 8192 --gpu-memory-utilization 0.95",
     DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_VLLM_BATCH, "Let one step compute less: activations fall with it.",
     "vllm serve MODEL --max-num-batched-tokens 2048", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_VLLM_SHARE,
     "Otherwise the model is too large for one device: split it, or take quantised "
     "weights and a cache of 8 bits.",
     "vllm serve MODEL --tensor-parallel-size 2 --kv-cache-dtype fp8", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_VLLM_SAMPLER,
     "Take fewer requests at a time (max_num_seqs), or leave more of the device free.",
     "vllm serve MODEL --max-num-seqs 256 --gpu-memory-utilization 0.85",
     DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_VLLM_PROFILE,
     "Start one server after another, or give the KV cache's size: then nothing is "
     "measured.",
     "vllm serve MODEL --kv-cache-memory-bytes 8G", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_VLLM_SWAP, "Give the swap space less, or the container more memory.",
     "vllm serve MODEL --swap-space 1", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_SGLANG,
     "Let SGLang have a larger fraction. The weights alone take this much:",
     "python -m sglang.launch_server --model MODEL --mem-fraction-static {}",
     DRY_MESSAGE_SHELL, FRACTION_NEEDED},
    {DRYI_ADVICE_SGLANG,
     "If no fraction is enough, split the model, or take quantised weights.",
     "python -m sglang.launch_server --model MODEL --tp 2", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_TENSORRT,
     "Give the builder a smaller workspace (IBuilderConfig::setMemoryPoolLimit), or a "
     "smaller largest shape.",
     "trtexec --onnx=model.onnx --memPoolSize=workspace:2048", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_TGI, "Let one step prefill fewer tokens, or shard the model.",
     "text-generation-launcher --model-id MODEL --max-batch-prefill-tokens 2048",
     DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_TRTLLM_KV, "Reduce the KV cache's share of what is free.",
     "from tensorrt_llm.llmapi import KvCacheConfig\n"
     "kv_cache_config = KvCacheConfig(free_gpu_memory_fraction=0.7)",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_TRTLLM,
     "Lower max_num_tokens and max_batch_size: the engine's context follows from them. "
     "Or lower free_gpu_memory_fraction, or shard the model.",
     "trtllm-build --max_num_tokens 2048 --max_batch_size 8", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_LLAMA,
     "Put fewer layers on the device, or make the buffers smaller: a shorter context, a "
     "smaller micro-batch. With several devices, llama.cpp shares by --tensor-split.",
     "llama-server -m MODEL --n-gpu-layers 20 --ctx-size 8192 --ubatch-size 256",
     DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_OLLAMA,
     "Under Ollama these are num_gpu, num_ctx and OLLAMA_NUM_PARALLEL.", NULL,
     DRY_MESSAGE_PROSE, NO_VALUE},
    {DRYI_ADVICE_SYCL,
     "Hold less on the device: a smaller batch; under llama.cpp fewer layers "
     "(--n-gpu-layers) or a shorter context.",
     "llama-server -m MODEL --n-gpu-layers 20 --ctx-size 8192", DRY_MESSAGE_SHELL,
     NO_VALUE},
    {DRYI_ADVICE_BLOCK,
     "Split the tensor into blocks below the limit, or lift the limit where the device "
     "can do more.",
     "export UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_BUFFER,
     "Make the tensor smaller: a shorter sequence, tiles of an image, a slice of the "
     "batch at a time.",
     NULL, DRY_MESSAGE_PROSE, NO_VALUE},
    {DRYI_ADVICE_CANN,
     "Close applications that are not in use. For HCCL's buffer, make the buffer "
     "smaller.",
     "export HCCL_BUFFSIZE=120", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_ORT, "Let the arena grow by what is asked for, and not by doubling.",
     "options = {\"arena_extend_strategy\": \"kSameAsRequested\"}\n"
     "providers = [(\"CUDAExecutionProvider\", options)]",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_ORT_LIMIT, "Raise the arena's limit, if the device has more.",
     "options = {\"gpu_mem_limit\": 8 << 30}\n"
     "providers = [(\"CUDAExecutionProvider\", options)]",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_CUPY,
     "Give back what the pool keeps unused, before the call that fails.",
     "cupy.get_default_memory_pool().free_all_blocks()", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_CUPY,
     "If the pool has a limit (CUPY_GPU_MEMORY_LIMIT), raise or lift it.",
     "cupy.get_default_memory_pool().set_limit(fraction=0.95)", DRY_MESSAGE_PYTHON,
     NO_VALUE},
    {DRYI_ADVICE_RMM,
     "Raise the pool's limit, if the device has more; under Dask the flag is "
     "--rmm-maximum-pool-size.",
     "pool = rmm.mr.PoolMemoryResource(up, maximum_pool_size=70 << 30)",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_BITSANDBYTES,
     "Take an optimizer that is not paged (optim other than paged_adamw_*), or give the "
     "machine more: on WSL, memory= in .wslconfig.",
     "args = TrainingArguments(output_dir=\"out\", optim=\"adamw_bnb_8bit\")",
     DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_PADDLE,
     "Decrease the batch size, or let the pool grow as it is used and give memory back.",
     "export FLAGS_allocator_strategy=auto_growth", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_COMFYUI, "Lower batch_size, or the size of the picture or video.", NULL,
     DRY_MESSAGE_PROSE, NO_VALUE},
    {DRYI_ADVICE_NATIVE,
     "Run once with the native allocator, whose text has the numbers. Under ComfyUI the "
     "flag is --disable-cuda-malloc.",
     "export PYTORCH_CUDA_ALLOC_CONF=backend:native", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_LEAVE,
     "Leave the driver some memory beside PyTorch's cache, at the program's start.",
     "torch.cuda.set_per_process_memory_fraction(0.95)", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_NCCL,
     "Let each communicator take less: fewer channels, smaller buffers.",
     "export NCCL_MAX_NCHANNELS=8 NCCL_BUFFSIZE=1048576", DRY_MESSAGE_SHELL, NO_VALUE},
    {DRYI_ADVICE_HANDLE,
     "Make the handle while there is memory: before the model is made. If the device had "
     "memory free, look for an earlier error of a kernel, which is reported late.",
     "torch.cuda.current_blas_handle()", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_CUDNN,
     "If it was cuDNN: let it try no algorithms with large workspaces.",
     "torch.backends.cudnn.benchmark = False", DRY_MESSAGE_PYTHON, NO_VALUE},
    {DRYI_ADVICE_OTHERS,
     "See who else holds memory of the device, and whether an earlier run is still "
     "alive.",
     "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv",
     DRY_MESSAGE_SHELL, NO_VALUE},
};

/* Write thousandths, at most 1000, without zeros at the end: 0.782, 0.66. */
static bool
write_fraction(char *text, size_t capacity, uint64_t thousandths)
{
    if (thousandths > 1000)
        return false;
    snprintf(text, capacity, "%g", (double)thousandths / 1000);
    return true;
}

/* Return the share of memory that SGLang needs, in thousandths, above 1000 if it is not known. */
static uint64_t
find_fraction(const struct dry_message *m)
{
    struct dry_message_size needed =
        dryi_message_get(m, DRY_MESSAGE_FRACTION_NEEDED).size;
    uint64_t weights = dryi_message_get(m, DRY_MESSAGE_WEIGHTS).size.bytes / DRYI_KIB;
    uint64_t left = dryi_message_get(m, DRY_MESSAGE_FREE_AFTER).size.bytes / DRYI_KIB;
    if (needed.known == DRY_MESSAGE_KNOWN)
        return needed.bytes / 1000 + (needed.bytes % 1000 > 0);
    if (weights == 0 || left == 0)
        return UINT64_MAX;
    return (weights * 1000 + weights + left - 1) / (weights + left);
}

/* Write what stands in the place of "{}". Returns false if the message does not tell. */
static bool
write_value(const struct dry_message *m, enum value value, char *text, size_t capacity)
{
    struct dry_message_size length =
        dryi_message_get(m, DRY_MESSAGE_LENGTH_POSSIBLE).size;
    uint64_t free = m->free.bytes / DRYI_KIB, total = m->total.bytes / DRYI_KIB;
    switch (value) {
    case NO_VALUE:
        return true;
    case LENGTH_POSSIBLE:
        snprintf(text, capacity, "%" PRIu64, length.bytes);
        return length.known == DRY_MESSAGE_KNOWN;
    case FREE_SHARE:
        return total > 0 && free <= total &&
               write_fraction(text, capacity, free * 100 / total * 10);
    case FRACTION_NEEDED:
        return write_fraction(text, capacity, find_fraction(m));
    }
    return false;
}

void
dryi_message_lay_out_advice(const struct dry_message *m, uint64_t advice,
                            struct dry_message_judgement *j)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dry_message_step step = {
            .cause = DRY_CAUSE_NONE,
            .why = rows[i].why,
            .code = rows[i].code,
            .language = rows[i].language,
        };
        if ((advice >> rows[i].advice & 1) && j->step_count < DRY_MESSAGE_STEPS_MAX &&
            write_value(m, rows[i].value, step.value, sizeof step.value))
            j->steps[j->step_count++] = step;
    }
}

size_t
dry_message_step_write(const struct dry_message_step *step, char *text, size_t capacity)
{
    const char *code = step->code ? step->code : "";
    const char *place = strstr(code, "{}");
    int n = place ? snprintf(text, capacity, "%.*s%s%s", (int)(place - code), code,
                             step->value, place + 2)
                  : snprintf(text, capacity, "%s", code);
    return n > 0 ? (size_t)n : 0;
}
