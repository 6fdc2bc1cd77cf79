/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts from other sources than PyTorch's allocator of a device: the host's allocator, XLA, vLLM,
 * NCCL, CUDA's libraries, the kernel, Slurm. The text itself states the cause, and its numbers
 * prove little. So one table has each form's verdict, and another its advice. Cost: O(1).
 */
#include "explain/message/message.h"

#define OR(cause) (1u << DRY_CAUSE_##cause)

#define IN(form) (1u << DRY_MESSAGE_##form)

/* Other services use XLA's status for other exhausted resources: HOST and XLA need a size. */
bool
dryi_message_is_foreign(const struct dry_message *m, bool is_own)
{
    uint32_t form = 1u << m->form;
    if (m->tried.known != DRY_MESSAGE_ABSENT)
        return true;
    if (form & (IN(HOST) | IN(XLA)))
        return false;
    return is_own || !(form & (IN(KV_CACHE) | IN(NCCL) | IN(LIBRARY)));
}

const struct dryi_message_verdict *
dryi_message_judge_foreign(const struct dry_message *m)
{
    static const struct dryi_message_verdict
        short_cache = {DRY_MESSAGE_REASON_KV_CACHE_SHORT, DRY_CAUSE_CAPACITY, 0},
        verdicts[DRY_MESSAGE_FORM_COUNT] = {
            [DRY_MESSAGE_HOST] = {DRY_MESSAGE_REASON_HOST_REFUSED, DRY_CAUSE_CAPACITY,
                                  OR(LIMIT) | OR(OTHER_MEMORY)},
            [DRY_MESSAGE_XLA] = {DRY_MESSAGE_REASON_XLA_REQUEST, DRY_CAUSE_UNKNOWN,
                                 OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY)},
            [DRY_MESSAGE_XLA_PROGRAM] = {DRY_MESSAGE_REASON_XLA_PROGRAM,
                                         DRY_CAUSE_CAPACITY, 0},
            [DRY_MESSAGE_KV_CACHE] = {DRY_MESSAGE_REASON_KV_CACHE_NONE, DRY_CAUSE_LIMIT,
                                      OR(CAPACITY) | OR(OTHER_MEMORY)},
            [DRY_MESSAGE_NCCL] = {DRY_MESSAGE_REASON_NCCL, DRY_CAUSE_UNKNOWN,
                                  OR(CAPACITY) | OR(OTHER_MEMORY)},
            [DRY_MESSAGE_LIBRARY] = {DRY_MESSAGE_REASON_LIBRARY, DRY_CAUSE_UNKNOWN,
                                     OR(CAPACITY) | OR(OTHER_MEMORY)},
            [DRY_MESSAGE_KILLED] = {DRY_MESSAGE_REASON_KILLED, DRY_CAUSE_CAPACITY,
                                    OR(OTHER_MEMORY)},
            [DRY_MESSAGE_KILLED_IN_GROUP] = {DRY_MESSAGE_REASON_KILLED_IN_GROUP,
                                             DRY_CAUSE_LIMIT, 0},
            [DRY_MESSAGE_SLURM] = {DRY_MESSAGE_REASON_SLURM, DRY_CAUSE_LIMIT, 0},
        };
    if (m->form < DRY_MESSAGE_HOST || m->form >= DRY_MESSAGE_FORM_COUNT)
        return NULL;
    bool has_sum = m->tried.known == DRY_MESSAGE_KNOWN &&
                   m->allowed.known == DRY_MESSAGE_KNOWN &&
                   m->tried.low > m->allowed.high;
    return m->form == DRY_MESSAGE_KV_CACHE && has_sum ? &short_cache : &verdicts[m->form];
}

/* --- advice ------------------------------------------------------------------------------- */

#define ON_HOST (IN(HOST) | IN(KILLED) | IN(KILLED_IN_GROUP) | IN(SLURM))

static const struct {
    uint32_t forms;
    const char *why, *code;
    enum dry_message_language language;
} rows[] = {
    {ON_HOST,
     "This is the host's memory, and no setting of PyTorch's allocator for a device "
     "helps. See what the machine, the container and the process may take.",
     "drystone pages", DRY_MESSAGE_SHELL},
    {IN(KILLED_IN_GROUP),
     "Compare the limit of the group with the most it has held; then raise the "
     "container's limit, or hold less.",
     "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak", DRY_MESSAGE_SHELL},
    {IN(SLURM), "See what was asked for and what was held, step by step.",
     "sacct -j \"$SLURM_JOB_ID\" --format=JobID,State,ReqMem,MaxRSS", DRY_MESSAGE_SHELL},
    {IN(SLURM),
     "Ask for more, if the node has it. The limit counts files in /dev/shm, pinned "
     "memory and all workers of data loaders.",
     "sbatch --mem=64G job.sh", DRY_MESSAGE_SHELL},
    {ON_HOST,
     "Load weights without a second copy of them in the host's memory, and give data "
     "loaders fewer workers: each holds what it has touched.",
     "state = torch.load(\"model.pt\", mmap=True, map_location=\"cpu\")",
     DRY_MESSAGE_PYTHON},
    {IN(XLA) | IN(XLA_PROGRAM),
     "Hold less: give a step's inputs away, so that its outputs can take their place, "
     "and make activations again with jax.checkpoint.",
     "step = jax.jit(step, donate_argnums=(0,))", DRY_MESSAGE_PYTHON},
    {IN(XLA),
     "JAX takes three quarters of a GPU at its start and serves from these alone. Let it "
     "have more, if no other program needs the rest.",
     "export XLA_PYTHON_CLIENT_MEM_FRACTION=.95", DRY_MESSAGE_SHELL},
    {IN(XLA), "See which arrays are alive, before the call that fails.",
     "jax.profiler.save_device_memory_profile(\"memory.prof\")", DRY_MESSAGE_PYTHON},
    {IN(XLA_PROGRAM), "Ask the compiler what the program needs, without running it.",
     "print(jax.jit(step).lower(*inputs).compile().memory_analysis())",
     DRY_MESSAGE_PYTHON},
    {IN(KV_CACHE),
     "Serve shorter requests, or let vLLM use more of the device. Both leave more for "
     "the cache beside the weights.",
     "vllm serve MODEL --max-model-len 8192 --gpu-memory-utilization 0.95",
     DRY_MESSAGE_SHELL},
    {IN(KV_CACHE),
     "Otherwise the model is too large for one device: split it, or take quantised "
     "weights and a cache of 8 bits.",
     "vllm serve MODEL --tensor-parallel-size 2 --kv-cache-dtype fp8", DRY_MESSAGE_SHELL},
    {IN(NCCL) | IN(LIBRARY),
     "Leave the driver some memory beside PyTorch's cache, at the program's start.",
     "torch.cuda.set_per_process_memory_fraction(0.95)", DRY_MESSAGE_PYTHON},
    {IN(NCCL), "Let each communicator take less: fewer channels, smaller buffers.",
     "export NCCL_MAX_NCHANNELS=8 NCCL_BUFFSIZE=1048576", DRY_MESSAGE_SHELL},
    {IN(LIBRARY),
     "Make the handle while there is memory: before the model is made. If the device had "
     "memory free, look for an earlier error of a kernel, which is reported late.",
     "torch.cuda.current_blas_handle()", DRY_MESSAGE_PYTHON},
    {IN(NCCL) | IN(LIBRARY) | IN(KV_CACHE) | IN(XLA),
     "See who else holds memory of the device, and whether an earlier run is still "
     "alive.",
     "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv",
     DRY_MESSAGE_SHELL},
};

bool
dryi_message_lay_out_foreign(const struct dry_message *m, struct dry_message_judgement *j)
{
    if (m->form < DRY_MESSAGE_HOST || m->form >= DRY_MESSAGE_FORM_COUNT)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if ((rows[i].forms >> m->form & 1) && j->step_count < DRY_MESSAGE_STEPS_MAX)
            j->steps[j->step_count++] = (struct dry_message_step){
                .cause = DRY_CAUSE_NONE,
                .why = rows[i].why,
                .code = rows[i].code,
                .language = rows[i].language,
            };
    }
    return true;
}
