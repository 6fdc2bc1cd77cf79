/* SPDX-License-Identifier: Apache-2.0 */

/* Advice after a message, as a table: each row has its condition, reason and code. Rows are in the
   order of the advice: first for the cause, then what to record, then how to use the record. */
#include "explain/message/message.h"

/* Conditions on the message; a row needs all of its bits. */
#define IS_TORCH_GPU 1u /* CUDA, HIP or unnamed: has a recorder and allocator options */
#define IS_HIP 2u
#define IS_NOT_HIP 4u
#define IS_MPS 8u
#define IS_XPU 16u
#define HAS_EXPANDABLE 32u /* the release has expandable segments, and they are off */
#define EXPANDABLE_IS_ON 64u
#define IS_OLD 128u    /* up to 2.0: no expandable segments */
#define NAME_CUDA 256u /* the option variable's name in this release */
#define NAME_GENERIC 512u
#define NAME_HIP 1024u
#define REFUSED 2048u /* although enough bytes were free */
#define IS_ASYNC 4096u
#define IS_HUGE 8192u
#define IS_NOT_HUGE 16384u
#define HAS_RESERVE 32768u /* the reserve of an expandable segment was exceeded */
#define HAS_NO_RESERVE 65536u
#define HAS_POOLS 131072u /* private pools hold free bytes */
#define IS_NPU 262144u
#define IS_SGLANG 524288u /* lines before the message are SGLang's */

#define BIT(cause) (1u << DRY_CAUSE_##cause)
#define ANY 0u

struct row {
    uint32_t causes; /* BIT of the cause or of an alternative; ANY: all causes */
    uint32_t conditions;
    const char *why, *code;
    enum dry_message_language language;
};

#define WHY_EXPANDABLE                                                                   \
    "The free bytes lie in pieces. Expandable segments let them grow together: try "     \
    "this "                                                                              \
    "first. max_split_size_mb is older and weaker, and never set both: together they "   \
    "let "                                                                               \
    "reserved memory grow without bound."

static const struct row rows[] = {
    {ANY, IS_HUGE,
     "No device holds this. Look at how the size was worked out: an index, a length read "
     "from a file, a negative number taken as unsigned.",
     NULL, DRY_MESSAGE_PROSE},
    {BIT(CAPACITY), IS_NOT_HUGE,
     "What is alive and the request do not fit, however they are arranged: no setting of "
     "the allocator helps. Hold less at a time: a smaller batch, activations recomputed, "
     "the optimizer's state sharded or offloaded.",
     NULL, DRY_MESSAGE_PROSE},
    {BIT(FRAGMENTATION), HAS_EXPANDABLE | NAME_CUDA, WHY_EXPANDABLE,
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", DRY_MESSAGE_SHELL},
    {BIT(FRAGMENTATION), HAS_EXPANDABLE | NAME_GENERIC, WHY_EXPANDABLE,
     "export PYTORCH_ALLOC_CONF=expandable_segments:True", DRY_MESSAGE_SHELL},
    {BIT(FRAGMENTATION), HAS_EXPANDABLE | NAME_HIP, WHY_EXPANDABLE,
     "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True", DRY_MESSAGE_SHELL},
    {BIT(FRAGMENTATION), IS_NPU, WHY_EXPANDABLE,
     "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", DRY_MESSAGE_SHELL},
    {BIT(FRAGMENTATION), EXPANDABLE_IS_ON,
     "Expandable segments are on already: free bytes of one stream cannot serve another. "
     "Do not add max_split_size_mb. Record what pins the pieces.",
     NULL, DRY_MESSAGE_PROSE},
    {BIT(FRAGMENTATION), IS_OLD,
     "This release has no expandable segments, the cure for pieces: update PyTorch. "
     "Until "
     "then, forbid that large blocks are split.",
     "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512", DRY_MESSAGE_SHELL},
    {BIT(STRANDED), IS_TORCH_GPU | HAS_POOLS,
     "Bytes that are free in a private pool (CUDA graphs, torch.cuda.MemPool) serve no "
     "request elsewhere. Let graphs share one pool, and drop those that are not replayed "
     "any more.",
     "pool = torch.cuda.graph_pool_handle()  # one for all captures\n"
     "with torch.cuda.graph(graph, pool=pool):\n"
     "    ...",
     DRY_MESSAGE_PYTHON},
    {BIT(LIMIT), HAS_RESERVE | NAME_CUDA,
     "One expandable segment reserves fewer addresses than were asked for. Raise the "
     "reserve above the size.",
     "CONF=expandable_segments:True,expandable_segments_reserve:1.0\n"
     "export PYTORCH_CUDA_ALLOC_CONF=$CONF",
     DRY_MESSAGE_SHELL},
    {BIT(LIMIT), HAS_RESERVE | NAME_GENERIC,
     "One expandable segment reserves fewer addresses than were asked for. Raise the "
     "reserve above the size.",
     "CONF=expandable_segments:True,expandable_segments_reserve:1.0\n"
     "export PYTORCH_ALLOC_CONF=$CONF",
     DRY_MESSAGE_SHELL},
    {BIT(LIMIT), IS_TORCH_GPU | HAS_NO_RESERVE,
     "The program, or per_process_memory_fraction in its settings, forbids itself more. "
     "Raise the fraction if the rest of the device is not promised to others.",
     "torch.cuda.set_per_process_memory_fraction(1.0)", DRY_MESSAGE_PYTHON},
    {BIT(LIMIT), IS_XPU,
     "The program forbids itself more. Raise the fraction if the rest of the device is "
     "not promised to others.",
     "torch.xpu.set_per_process_memory_fraction(1.0)", DRY_MESSAGE_PYTHON},
    {BIT(LIMIT), IS_MPS,
     "The limit is a share of what Metal recommends. It can be lifted, but the machine "
     "then swaps, or fails as a whole: first try to hold less.",
     "export PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0", DRY_MESSAGE_SHELL},
    {BIT(OTHER_MEMORY), IS_TORCH_GPU | IS_NOT_HIP,
     "Others hold what is missing. See who, and whether an earlier run of this program "
     "is still alive.",
     "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv",
     DRY_MESSAGE_SHELL},
    {BIT(OTHER_MEMORY), IS_HIP,
     "Others hold what is missing. See who, and whether an earlier run of this program "
     "is still alive.",
     "rocm-smi --showpids", DRY_MESSAGE_SHELL},
    {ANY, REFUSED | HAS_NO_RESERVE,
     "The device refused although it said that there was room. Another process may have "
     "taken and given back the bytes in between, a pool may have an allocator of its "
     "own, "
     "or the driver keeps some back. Watch the device while the program runs.",
     "nvidia-smi --query-gpu=memory.used,memory.free --format=csv -lms 200",
     DRY_MESSAGE_SHELL},
    {BIT(UNKNOWN), IS_ASYNC,
     "cudaMallocAsync keeps no history and does not say what it has cached. Run once "
     "with "
     "the native allocator, whose text and history tell more.",
     "export PYTORCH_CUDA_ALLOC_CONF=backend:native", DRY_MESSAGE_SHELL},
    {ANY, IS_TORCH_GPU | IS_SGLANG,
     "SGLang's pool leaves too little beside it. Lower its fraction, or capture CUDA "
     "graphs for fewer requests.",
     "python -m sglang.launch_server --model MODEL \\\n"
     "    --mem-fraction-static 0.8 --cuda-graph-max-bs 16",
     DRY_MESSAGE_SHELL},
    {ANY, IS_TORCH_GPU | IS_NOT_HUGE,
     "A text tells how much, not who. Record it: at the program's start, before the "
     "model "
     "is made.",
     "torch.cuda.memory._record_memory_history(max_entries=1_000_000)",
     DRY_MESSAGE_PYTHON},
    {ANY, IS_TORCH_GPU | IS_NOT_HUGE,
     "Dump before the exception unwinds: unwinding frees the tensors that were in the "
     "way. An observer is called at the moment itself.",
     "def dump_oom(device, size, device_total, device_free):\n"
     "    torch.cuda.memory._dump_snapshot(f\"oom-{device}.pickle\")\n"
     "torch._C._cuda_attach_out_of_memory_observer(dump_oom)",
     DRY_MESSAGE_PYTHON},
    {ANY, IS_TORCH_GPU | IS_NOT_HUGE,
     "Where the observer cannot be used, dump in the handler nearest to the failure; "
     "what "
     "the frames in between held is then free already.",
     "try:\n"
     "    step()\n"
     "except torch.OutOfMemoryError:  # torch.cuda.OutOfMemoryError before 2.5\n"
     "    torch.cuda.memory._dump_snapshot(\"oom.pickle\")\n"
     "    raise",
     DRY_MESSAGE_PYTHON},
    {ANY, IS_TORCH_GPU | IS_NOT_HUGE,
     "Then see what other settings would have done with the same requests.",
     "drystone sweep oom-0.pickle", DRY_MESSAGE_SHELL},
    {BIT(OTHER_MEMORY), IS_NPU, "Others hold what is missing. See who.", "npu-smi info",
     DRY_MESSAGE_SHELL},
    {BIT(LIMIT), IS_NPU,
     "The program forbids itself more. Raise the fraction if the rest of the device is "
     "not promised to others.",
     "torch.npu.set_per_process_memory_fraction(1.0)", DRY_MESSAGE_PYTHON},
    {ANY, IS_NPU | IS_NOT_HUGE,
     "See what is alive before the request that fails. SGLang has "
     "--mem-fraction-static and --chunked-prefill-size: lower them.",
     "print(torch.npu.memory_summary())", DRY_MESSAGE_PYTHON},
    {ANY, IS_XPU | IS_NOT_HUGE, "See what is alive before the request that fails.",
     "print(torch.xpu.memory_summary())", DRY_MESSAGE_PYTHON},
    {ANY, IS_MPS | IS_NOT_HUGE, "See what the tensors hold, and what Metal holds in all.",
     "print(torch.mps.current_allocated_memory())\n"
     "print(torch.mps.driver_allocated_memory())",
     DRY_MESSAGE_PYTHON},
};

static uint32_t
find_backend(const struct dry_message *m)
{
    switch (m->backend) {
    case DRY_MESSAGE_BACKEND_MPS:
        return IS_MPS | IS_NOT_HIP;
    case DRY_MESSAGE_XPU:
        return IS_XPU | IS_NOT_HIP;
    case DRY_MESSAGE_NPU:
        return IS_NPU | IS_NOT_HIP;
    case DRY_MESSAGE_HIP:
        return IS_TORCH_GPU | IS_HIP;
    case DRY_MESSAGE_CUDA:
    case DRY_MESSAGE_BACKEND_UNKNOWN:
    case DRY_MESSAGE_BACKEND_HOST:
    case DRY_MESSAGE_BACKEND_XLA:
        break;
    }
    return IS_TORCH_GPU | IS_NOT_HIP;
}

/* Return the name of the option variable. The text's own choice has precedence. CUDA's name works
   in all releases; on ROCm, texts name HIP's until 2.8. */
static uint32_t
find_variable(const struct dry_message *m)
{
    switch (m->variable) {
    case DRY_MESSAGE_VARIABLE_GENERIC:
        return NAME_GENERIC;
    case DRY_MESSAGE_VARIABLE_HIP:
        return NAME_HIP;
    case DRY_MESSAGE_VARIABLE_CUDA:
        return NAME_CUDA;
    case DRY_MESSAGE_VARIABLE_NONE:
        break;
    }
    return m->backend == DRY_MESSAGE_HIP ? NAME_HIP : NAME_CUDA;
}

static bool
has_reason(const struct dry_message_judgement *j, enum dry_message_reason reason)
{
    for (size_t i = 0; i < j->proof_count; i++) {
        if (j->proofs[i].reason == reason)
            return true;
    }
    return false;
}

static uint32_t
find_conditions(const struct dry_message *m, const struct dry_message_judgement *j)
{
    uint32_t found = find_backend(m) | find_variable(m);
    if (found & IS_TORCH_GPU) {
        if (m->hints & DRY_MESSAGE_HINT_RESERVE)
            found |= EXPANDABLE_IS_ON;
        else if (m->form == DRY_MESSAGE_CLASSIC)
            found |= IS_OLD;
        else if (m->form != DRY_MESSAGE_ASYNC)
            found |= HAS_EXPANDABLE;
    }
    if (has_reason(j, DRY_MESSAGE_REASON_REFUSED_THOUGH_FREE) &&
        j->cause == DRY_CAUSE_UNKNOWN && (found & IS_TORCH_GPU) && !(found & IS_HIP))
        found |= REFUSED;
    if (m->form == DRY_MESSAGE_ASYNC)
        found |= IS_ASYNC;
    if (m->private_pools.known == DRY_MESSAGE_KNOWN)
        found |= HAS_POOLS;
    if (dryi_message_get(m, DRY_MESSAGE_FREE_AFTER).size.known == DRY_MESSAGE_KNOWN)
        found |= IS_SGLANG;
    found |= m->form == DRY_MESSAGE_HUGE ? IS_HUGE : IS_NOT_HUGE;
    found |= has_reason(j, DRY_MESSAGE_REASON_EXPANDABLE_RESERVE) ? HAS_RESERVE
                                                                  : HAS_NO_RESERVE;
    return found;
}

/* Add the rows for `cause`; NONE: the rows for all causes. */
static void
add_rows(struct dry_message_judgement *j, uint32_t conditions, enum dry_cause cause)
{
    uint32_t wanted = cause == DRY_CAUSE_NONE ? ANY : 1u << cause;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = rows + i;
        bool applies =
            row->causes == wanted && (row->conditions & conditions) == row->conditions;
        if (applies && j->step_count < DRY_MESSAGE_STEPS_MAX)
            j->steps[j->step_count++] = (struct dry_message_step){
                .cause = cause,
                .why = row->why,
                .code = row->code,
                .language = row->language,
            };
    }
}

/* Add the advice of a kind, and of the rule that decided. Advice on offloading needs a sign that
   DeepSpeed runs. */
static void
lay_out_foreign(const struct dry_message *m, struct dry_message_judgement *j)
{
    const struct dryi_message_kind *k = dryi_message_find_kind(m);
    uint64_t advice = k ? k->advice : 0;
    for (size_t i = 0; k && i < k->rule_count; i++) {
        if (j->proofs[0].text == k->rules[i].text && k->rules[i].advice)
            advice = k->rules[i].advice;
    }
    if (has_reason(j, DRY_MESSAGE_REASON_GRAPH_ESTIMATE))
        advice &= ~(UINT64_C(1) << DRYI_ADVICE_VLLM_SHARE);
    if (dryi_message_get(m, DRY_MESSAGE_HOST_USED).size.known == DRY_MESSAGE_ABSENT)
        advice &= ~(UINT64_C(1) << DRYI_ADVICE_OFFLOAD);
    dryi_message_lay_out_advice(m, advice, j);
}

void
dryi_message_lay_out_steps(const struct dry_message *m, struct dry_message_judgement *j)
{
    j->step_count = 0;
    if (has_reason(j, DRY_MESSAGE_REASON_GRAPH_ESTIMATE))
        dryi_message_lay_out_advice(m, UINT64_C(1) << DRYI_ADVICE_GRAPHS, j);
    if (m->form >= DRY_MESSAGE_HOST) {
        lay_out_foreign(m, j);
        return;
    }
    uint32_t conditions = find_conditions(m, j);
    add_rows(j, conditions, j->cause);
    for (int cause = DRY_CAUSE_NONE + 1; cause < DRY_CAUSE_COUNT; cause++) {
        if (j->alternatives >> cause & 1)
            add_rows(j, conditions, (enum dry_cause)cause);
    }
    add_rows(j, conditions, DRY_CAUSE_NONE);
}
