/* SPDX-License-Identifier: Apache-2.0 */

/* Keys for programs and sentences for people: one table per enum of a judgement, and the names of
   the causes, shared with the verdicts of traces. Cost: O(1) per name. */
#include "explain/message/message.h"

#include <drystone/cause.h>

struct name {
    const char *key, *text;
};

static const struct name quantities[DRY_MESSAGE_QUANTITY_COUNT] = {
    [DRY_MESSAGE_TRIED] = {"tried", "asked of the device"},
    [DRY_MESSAGE_TOTAL] = {"total", "the device's memory"},
    [DRY_MESSAGE_FREE] = {"free", "free on the device"},
    [DRY_MESSAGE_PROCESS] = {"process", "this process in all"},
    [DRY_MESSAGE_OTHERS] = {"others", "other processes"},
    [DRY_MESSAGE_ALLOWED] = {"allowed", "the limit"},
    [DRY_MESSAGE_ALLOCATED] = {"allocated", "allocated by PyTorch"},
    [DRY_MESSAGE_PRIVATE_POOLS] = {"private_pools", "free in private pools"},
    [DRY_MESSAGE_UNALLOCATED] = {"unallocated", "reserved, not allocated"},
    [DRY_MESSAGE_RESERVED] = {"reserved", "reserved by PyTorch"},
    [DRY_MESSAGE_NON_PYTORCH] = {"non_pytorch", "this process, not PyTorch"},
    [DRY_MESSAGE_CONTEXT] = {"context", "a context, taken for 1 GiB"},
    [DRY_MESSAGE_EXPANDABLE_RESERVE] = {"expandable_reserve", "addresses of one segment"},
    [DRY_MESSAGE_ACTIVE] = {"active", "active, in use by streams"},
    [DRY_MESSAGE_LARGEST_FREE] = {"largest_free", "the largest free piece"},
    [DRY_MESSAGE_ROUNDED] = {"rounded", "the request, rounded up"},
    [DRY_MESSAGE_POOL] = {"pool", "the pool with the request"},
    [DRY_MESSAGE_WEIGHTS] = {"weights", "the weights"},
    [DRY_MESSAGE_ACTIVATIONS] = {"activations", "activations at the peak"},
    [DRY_MESSAGE_NON_TORCH] = {"non_torch", "outside PyTorch"},
    [DRY_MESSAGE_GRAPHS] = {"graphs", "CUDA graphs, estimated"},
    [DRY_MESSAGE_CACHE] = {"cache", "left for the KV cache"},
    [DRY_MESSAGE_FREE_BEFORE] = {"free_before", "free before it"},
    [DRY_MESSAGE_FREE_AFTER] = {"free_after", "free after it"},
    [DRY_MESSAGE_ENGINE] = {"engine", "the engine"},
    [DRY_MESSAGE_EXECUTION] = {"execution", "the engine's context"},
    [DRY_MESSAGE_HELD] = {"held", "MA, allocated"},
    [DRY_MESSAGE_HELD_PEAK] = {"held_peak", "Max_MA, allocated at the peak"},
    [DRY_MESSAGE_CACHED] = {"cached", "CA, reserved"},
    [DRY_MESSAGE_CACHED_PEAK] = {"cached_peak", "Max_CA, reserved at the peak"},
    [DRY_MESSAGE_HOST_USED] = {"host_used", "in use of the host's memory"},
    [DRY_MESSAGE_HOST_SHARE] = {"host_share", "of it in use, percent"},
    [DRY_MESSAGE_TASK] = {"task", "the killed task"},
    [DRY_MESSAGE_VIRTUAL] = {"virtual", "addresses of the process"},
    [DRY_MESSAGE_FILE_PAGES] = {"file_pages", "pages of files"},
    [DRY_MESSAGE_GROUP_USED] = {"group_used", "the control group"},
    [DRY_MESSAGE_GROUP_LIMIT] = {"group_limit", "the control group's limit"},
    [DRY_MESSAGE_THRESHOLD] = {"threshold", "kept free by the node"},
    [DRY_MESSAGE_THRESHOLD_SHARE] = {"threshold_share", "the share that may be used"},
    [DRY_MESSAGE_POD_REQUEST] = {"pod_request", "the pod's request"},
    [DRY_MESSAGE_PARAMETERS] = {"parameters", "parameters of the program"},
    [DRY_MESSAGE_CONSTANTS] = {"constants", "constants of the program"},
    [DRY_MESSAGE_LIVE_OUT] = {"live_out", "results of the program"},
    [DRY_MESSAGE_TEMPORARIES] = {"temporaries", "temporaries of the program"},
    [DRY_MESSAGE_PROGRAM_TOTAL] = {"program_total", "the program in all"},
    [DRY_MESSAGE_PROGRAM_WASTE] = {"program_waste", "of it lost in pieces"},
    [DRY_MESSAGE_PROGRAM] = {"program", "the program"},
    [DRY_MESSAGE_ARGUMENTS] = {"arguments", "its arguments"},
    [DRY_MESSAGE_SHORTAGE] = {"shortage", "short by"},
    [DRY_MESSAGE_LENGTH_WANTED] = {"length_wanted", "the longest length, tokens"},
    [DRY_MESSAGE_LENGTH_POSSIBLE] = {"length_possible", "the length that fits, tokens"},
    [DRY_MESSAGE_FRACTION] = {"fraction", "the share that was given"},
    [DRY_MESSAGE_FRACTION_NEEDED] = {"fraction_needed", "the share that is needed"},
    [DRY_MESSAGE_FRACTION_LEAST] = {"fraction_least", "the least share"},
    [DRY_MESSAGE_EVENTS] = {"events", "how often, by the text"},
    [DRY_MESSAGE_DUMMIES] = {"dummies", "requests of the trial step"},
    [DRY_MESSAGE_CACHE_TOKENS] = {"cache_tokens", "tokens in the KV cache"},
    [DRY_MESSAGE_GRAPHS_CAPTURED] = {"graphs_captured", "CUDA graphs, captured"},
};

static const struct name equations[DRY_MESSAGE_EQUATION_COUNT] = {
    [DRY_MESSAGE_EQ_DEVICE] = {"device", "held by nobody the text names"},
    [DRY_MESSAGE_EQ_PROCESS] = {"process", "this process, not PyTorch"},
    [DRY_MESSAGE_EQ_PYTORCH] = {"pytorch", "in use, not PyTorch's"},
    [DRY_MESSAGE_EQ_POOLS] = {"pools", "allocated outside free private blocks"},
    [DRY_MESSAGE_EQ_FREE] = {"free", "in use on the device"},
    [DRY_MESSAGE_EQ_ALLOCATED] = {"allocated", "reserved, not allocated"},
};

static const struct name reasons[DRY_MESSAGE_REASON_COUNT] = {
    [DRY_MESSAGE_REASON_HUGE] = {"huge",
                                 "More than 2^60 bytes were asked for: the size was "
                                 "worked out wrongly"},
    [DRY_MESSAGE_REASON_REJECTED] = {"rejected",
                                     "PyTorch refused by itself, because the memory "
                                     "fraction would be exceeded"},
    [DRY_MESSAGE_REASON_REQUEST_EXCEEDS_DEVICE] = {"request_exceeds_device",
                                                   "The request alone is larger than the "
                                                   "device"},
    [DRY_MESSAGE_REASON_LIVE_EXCEEDS_DEVICE] =
        {"live_exceeds_device", "What is allocated and the request exceed "
                                "the device"},
    [DRY_MESSAGE_REASON_LIVE_EXCEEDS_REACH] =
        {"live_exceeds_reach", "Short by this much, however the blocks are "
                               "arranged"},
    [DRY_MESSAGE_REASON_LIMIT] = {"limit",
                                  "The limit of this process would be exceeded, so the "
                                  "device was not asked"},
    [DRY_MESSAGE_REASON_LIMIT_LIVE] = {"limit_live",
                                       "What is allocated and the request exceed the "
                                       "limit, without any cache"},
    [DRY_MESSAGE_REASON_LIMIT_PIECES] =
        {"limit_pieces", "It would fit under the limit if what is reserved "
                         "and not allocated were in one piece"},
    [DRY_MESSAGE_REASON_WATERMARK] = {"watermark",
                                      "What Metal holds and the request exceed MPS' high "
                                      "watermark"},
    [DRY_MESSAGE_REASON_EXPANDABLE_RESERVE] = {"expandable_reserve",
                                               "The request is larger than the addresses "
                                               "that one expandable segment reserves"},
    [DRY_MESSAGE_REASON_SHORT] = {"short",
                                  "The device had less free than was asked of it: short "
                                  "by this much"},
    [DRY_MESSAGE_REASON_PIECES] = {"pieces",
                                   "The bytes are there in pieces: with what is reserved "
                                   "and not allocated, this much would be left over"},
    [DRY_MESSAGE_REASON_WHICH_PIECES] = {"which_pieces",
                                         "The text does not say whether the free pieces "
                                         "are of this stream and pool, or still wait for "
                                         "another stream"},
    [DRY_MESSAGE_REASON_SMALL_POOL] = {"small_pool",
                                       "2 MiB is a segment for requests of up to 1 MiB: "
                                       "free bytes of large segments cannot serve those"},
    [DRY_MESSAGE_REASON_SECOND_REQUEST] =
        {"second_request", "A second request of this size would not fit "
                           "in any arrangement: the device is nearly full"},
    [DRY_MESSAGE_REASON_OTHER_PROCESSES] =
        {"other_processes", "Without the other processes the request "
                            "would have fitted, with this much left over"},
    [DRY_MESSAGE_REASON_NON_PYTORCH] = {"non_pytorch",
                                        "This process holds more outside PyTorch than a "
                                        "context needs, and more than is missing"},
    [DRY_MESSAGE_REASON_NOT_PYTORCH] = {"not_pytorch",
                                        "More than is missing is neither free nor "
                                        "PyTorch's; the text does not say whose it is"},
    [DRY_MESSAGE_REASON_PRIVATE_POOLS] = {"private_pools",
                                          "As much as is missing is free inside private "
                                          "pools; the text does not say whether CUDA "
                                          "graphs still need it"},
    [DRY_MESSAGE_REASON_REFUSED_THOUGH_FREE] =
        {"refused_though_free", "The device had as much free as was asked "
                                "of it, and more by this"},
    [DRY_MESSAGE_REASON_THIS_IS_PROCESS] =
        {"this_is_process", "A listed process must be this one, seen from "
                            "outside its container: the device has no "
                            "room for both"},
    [DRY_MESSAGE_REASON_ROUNDED] = {"rounded",
                                    "The printed digits alone decide this: the true "
                                    "numbers may lie on the other side"},
    [DRY_MESSAGE_REASON_CONTRADICTION] =
        {"contradiction", "The numbers contradict each other: they are not "
                          "of one moment, or one of them is wrong"},
    [DRY_MESSAGE_REASON_HOST_SPILL] =
        {"host_spill", "More is allocated than the device has: the driver "
                       "keeps the rest in the host's memory"},
    [DRY_MESSAGE_REASON_CACHE_UNKNOWN] =
        {"cache_unknown", "cudaMallocAsync does not say how much it has "
                          "cached, so pieces and other memory look alike"},
    [DRY_MESSAGE_REASON_CUT] = {"cut",
                                "The text does not have the numbers that would tell"},
    [DRY_MESSAGE_REASON_DRIVER] = {"driver",
                                   "The driver ran out of memory outside PyTorch's "
                                   "allocator: for a context, a library, a kernel"},
    [DRY_MESSAGE_REASON_HOST_REFUSED] =
        {"host_refused", "The host refused memory to PyTorch's allocator for the CPU: no "
                         "device is short"},
    [DRY_MESSAGE_REASON_XLA_REQUEST] =
        {"xla_request", "XLA's allocator could not serve the request; the text does not "
                        "say what it holds, or of how much"},
    [DRY_MESSAGE_REASON_XLA_PROGRAM] =
        {"xla_program", "The compiled program alone needs more than the device has, "
                        "before it runs"},
    [DRY_MESSAGE_REASON_KV_CACHE_SHORT] =
        {"kv_cache_short", "One request of the longest length needs more cache than is "
                           "left beside the model: short by this much"},
    [DRY_MESSAGE_REASON_KV_CACHE_NONE] =
        {"kv_cache_none", "Weights and the activations of one step take all of the share "
                          "that vLLM may use"},
    [DRY_MESSAGE_REASON_NCCL] = {"nccl",
                                 "NCCL takes its buffers from the driver, which had none "
                                 "left beside PyTorch's cache"},
    [DRY_MESSAGE_REASON_LIBRARY] = {"library",
                                    "A library of CUDA got no memory for its handle or "
                                    "its workspace"},
    [DRY_MESSAGE_REASON_KILLED] =
        {"killed", "The kernel killed the process because the machine had "
                   "no memory left"},
    [DRY_MESSAGE_REASON_KILLED_IN_GROUP] =
        {"killed_in_group", "The kernel killed the process because its control group (a "
                            "container, a job) was at its limit"},
    [DRY_MESSAGE_REASON_SLURM] = {"slurm",
                                  "The job held more memory of the host than Slurm had "
                                  "promised it"},
    [DRY_MESSAGE_REASON_STATED] = {"stated", "The text states it"},
    [DRY_MESSAGE_REASON_GRAPH_ESTIMATE] =
        {"graph_estimate", "vLLM's estimate for CUDA graphs is above the weights; "
                           "without it this much would be left for the KV cache"},
    [DRY_MESSAGE_REASON_HOST_FULL] = {"host_full",
                                      "The host's memory was nearly full shortly before"},
};

/* Return the name at an index, "unknown" for invalid values. */
static const struct name *
find_name(const struct name *names, size_t count, size_t index)
{
    static const struct name unknown = {"unknown", "unknown"};
    return index < count ? &names[index] : &unknown;
}

const char *
dry_message_quantity_name(enum dry_message_quantity quantity)
{
    return find_name(quantities, DRY_MESSAGE_QUANTITY_COUNT, (size_t)quantity)->key;
}

const char *
dry_message_quantity_text(enum dry_message_quantity quantity)
{
    return find_name(quantities, DRY_MESSAGE_QUANTITY_COUNT, (size_t)quantity)->text;
}

enum dry_message_unit
dry_message_quantity_unit(enum dry_message_quantity quantity)
{
    switch ((int)quantity) {
    case DRY_MESSAGE_LENGTH_WANTED:
    case DRY_MESSAGE_LENGTH_POSSIBLE:
    case DRY_MESSAGE_EVENTS:
    case DRY_MESSAGE_DUMMIES:
    case DRY_MESSAGE_CACHE_TOKENS:
        return DRY_MESSAGE_COUNT;
    case DRY_MESSAGE_HOST_SHARE:
    case DRY_MESSAGE_THRESHOLD_SHARE:
    case DRY_MESSAGE_FRACTION:
    case DRY_MESSAGE_FRACTION_NEEDED:
    case DRY_MESSAGE_FRACTION_LEAST:
        return DRY_MESSAGE_MILLIONTHS;
    default:
        return DRY_MESSAGE_BYTES;
    }
}

const char *
dry_message_equation_name(enum dry_message_equation equation)
{
    return find_name(equations, DRY_MESSAGE_EQUATION_COUNT, (size_t)equation)->key;
}

const char *
dry_message_equation_text(enum dry_message_equation equation)
{
    return find_name(equations, DRY_MESSAGE_EQUATION_COUNT, (size_t)equation)->text;
}

const char *
dry_message_reason_name(enum dry_message_reason reason)
{
    return find_name(reasons, DRY_MESSAGE_REASON_COUNT, (size_t)reason)->key;
}

const char *
dry_message_reason_text(enum dry_message_reason reason)
{
    return find_name(reasons, DRY_MESSAGE_REASON_COUNT, (size_t)reason)->text;
}

const char *
dry_cause_name(enum dry_cause cause)
{
    static const char *const names[DRY_CAUSE_COUNT] = {
        "none",     "capacity",     "fragmentation", "stranded", "pending",
        "limit",    "other-memory", "leak",          "spike",    "imbalance",
        "overflow", "unknown",      "near-limit",
    };
    size_t index = (size_t)cause;
    return index < DRY_CAUSE_COUNT ? names[index] : "unknown";
}
