/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ESTIMATE_H
#define DRY_ESTIMATE_H

/*
 * What a model needs of a device's memory, from its configuration alone.
 *
 *     struct dry_model model;
 *     struct dry_run_setup setup;
 *     dry_run_setup_init(&setup);
 *     setup.batch = 8;
 *     setup.sequence = 2048;
 *     struct dry_estimate *estimate;
 *     if (dry_model_find("llama-2-7b", &model) == DRY_OK &&
 *         dry_estimate_create(&model, &setup, NULL, &estimate, &err) == DRY_OK) {
 *         const struct dry_estimate_summary *s = dry_estimate_get_summary(estimate);
 *         printf("%llu bytes\n", (unsigned long long)s->device_bytes);
 *         dry_estimate_destroy(estimate);
 *     }
 *
 * A model is a list of units (embedding, layers, head); a unit is the tensors it makes, of
 * which some are saved for the backward, and its weights. Rows are sums over these. The peak
 * is not a sum of rows: two steps of the training loop are run, request by request, through
 * PyTorch's allocator on a simulated device, and the peak of every phase is what was
 * allocated and what was reserved then.
 *
 * The sizes of saved tensors are those of Korthikanti et al. (arXiv:2205.05198, section 4)
 * and of what autograd saves for the modules of PyTorch; parameters are counted tensor by
 * tensor. What is assumed and not derived (the driver's context, buffers of communication)
 * has a row that says so.
 *
 * Ownership  A model and a setup are plain data; the convolutions that a model points to must
 *            be there during the call alone. An estimate is created and destroyed.
 * Errors     ARGUMENT: a field that contradicts another, with its name. LIMIT: sums that leave
 *            63 bits, or more layers than below.
 * Threads    Any number at a time; nothing is shared.
 * Units      Bytes; counts of elements where the name says count.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- models ------------------------------------------------------------------------------- */

/* The numbers of all enums here are fixed for ever; new ones are only appended. */
enum dry_model_kind {
    DRY_MODEL_DECODER,
    DRY_MODEL_ENCODER,
    DRY_MODEL_CONV, /* a list of layers over images */
};
#define DRY_MODEL_KIND_COUNT 3

/* "decoder", "encoder", "conv". */
DRY_API const char *dry_model_kind_name(enum dry_model_kind kind);

enum dry_norm_kind {
    DRY_NORM_LAYER, /* weight and bias; mean and deviation are saved */
    DRY_NORM_RMS,   /* weight; the deviation is saved */
};

/* How the function between the two matrices is computed, which decides what it saves. */
enum dry_activation {
    DRY_ACT_GELU,          /* one kernel: saves its input */
    DRY_ACT_SILU,          /* likewise */
    DRY_ACT_RELU,          /* saves its output, which the next matrix saves as well */
    DRY_ACT_GELU_COMPOSED, /* "gelu_new", of single operations: three tensors more */
    DRY_ACT_QUICK_GELU,    /* x * sigmoid(1.702 x): one more */
};
#define DRY_ACT_COUNT 5

enum dry_conv_kind {
    DRY_CONV_CONV,        /* saves its input */
    DRY_CONV_NORM,        /* batch norm: its input, and mean and deviation a channel */
    DRY_CONV_RELU,        /* its output */
    DRY_CONV_SILU,        /* its input */
    DRY_CONV_MAX_POOL,    /* its input, and an int64 an output element */
    DRY_CONV_AVG_POOL,    /* its input */
    DRY_CONV_GLOBAL_POOL, /* to one pixel; nothing */
    DRY_CONV_ADD,         /* of two; nothing */
    DRY_CONV_CONCAT,      /* along channels; nothing */
    DRY_CONV_FLATTEN,     /* a view */
    DRY_CONV_LINEAR,      /* its input */
    DRY_CONV_DROPOUT,     /* its mask */
};
#define DRY_CONV_KIND_COUNT 12

/* "conv", "norm", "relu", "silu", "maxpool", "avgpool", "globalpool", "add", ... */
DRY_API const char *dry_conv_kind_name(enum dry_conv_kind kind);

#define DRY_CONV_PREVIOUS INT64_MIN /* the layer before; of the first: the images */
#define DRY_CONV_IMAGES (-1)

struct dry_conv_layer {
    enum dry_conv_kind kind;
    int64_t from;             /* layer whose output it reads; DRY_CONV_PREVIOUS */
    int64_t with;             /* the second of ADD and CONCAT */
    uint64_t channels;        /* of the output: CONV, LINEAR */
    uint64_t kernel, stride;  /* CONV and pools; stride 0: 1, of pools the kernel */
    uint64_t padding, groups; /* groups 0: 1 */
    uint64_t dilation;        /* 0: 1 */
    bool has_bias;
};

#define DRY_MODEL_LAYERS_MAX 10000u
#define DRY_CONV_LAYERS_MAX 100000u

/* Zero wherever a model has no such thing; dry_model_init() first. */
struct dry_model {
    size_t struct_size; /* set by dry_model_init() */
    enum dry_model_kind kind;
    uint64_t layers, hidden, vocab;
    uint64_t heads;
    uint64_t kv_heads;    /* of which heads are a multiple; 0: as many as heads */
    uint64_t head_dim;    /* 0: hidden / heads, without a rest */
    uint64_t ffn;         /* width of the MLP; of dense layers where there are experts */
    uint64_t positions;   /* learned ones */
    uint64_t token_types; /* BERT's */
    uint64_t window;      /* tokens a layer looks back at most: bounds the KV cache */

    uint64_t experts, experts_per_token;
    uint64_t expert_ffn;   /* 0: ffn */
    uint64_t shared_ffn;   /* width of the experts that see every token, together */
    uint64_t dense_layers; /* so many first layers have no experts */

    /* Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); kv_rank 0: none. */
    uint64_t q_rank, kv_rank; /* q_rank 0: queries are not compressed */
    uint64_t rope_dim, nope_dim, value_dim;

    enum dry_norm_kind norm;
    enum dry_activation activation;
    bool is_gated;     /* gate * up: three matrices in the MLP */
    bool is_tied;      /* the head is the embedding */
    bool is_parallel;  /* attention and MLP side by side (GPT-NeoX) */
    bool is_post_norm; /* the norm comes behind the sum (BERT) */
    bool has_qkv_bias, has_out_bias, has_mlp_bias, has_head_bias, has_router_bias;
    bool has_qk_norm;        /* queries and keys are normed a head (Qwen3) */
    bool has_embedding_norm; /* BERT */
    bool has_no_head;  /* the last hidden state is the output, there are no logits */
    bool has_mlm_head; /* BERT's: a matrix and a norm before the logits */
    bool has_pooler;   /* BERT's: a matrix over the first token */
    bool has_dropout;

    /* DRY_MODEL_CONV. */
    const struct dry_conv_layer *conv;
    size_t conv_count;
    uint64_t channels, height, width; /* of the images */
};

DRY_API void dry_model_init(struct dry_model *model);

/*
 * A model that we know: "gpt2", "llama-2-7b", "mixtral-8x7b" ...; ARGUMENT: no such name.
 * dry_model_get_name() lists them from 0; NULL beyond the last.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_model_find(const char *name,
                                                        struct dry_model *model);
DRY_API const char *dry_model_get_name(size_t index);

/* --- runs --------------------------------------------------------------------------------- */

enum dry_precision { /* bytes of weights + gradients + master copy + a state of Adam */
                     DRY_PRECISION_FP32, /* 4 + 4 + 0 + 4 */
                     DRY_PRECISION_TF32, /* memory as FP32 */
                     DRY_PRECISION_AMP, /* autocast: 4 + 4 + 0 + 4, activations of 2, weights cast */
                     DRY_PRECISION_BF16,  /* all of it in 2: 2 + 2 + 0 + 2 */
                     DRY_PRECISION_MIXED, /* 2 + 2 + 4 + 4 (ZeRO, arXiv:1910.02054) */
                     DRY_PRECISION_MASTER, /* 2 + 4 + 4 + 4: gradients in fp32 that stay (Megatron-LM) */
};
#define DRY_PRECISION_COUNT 6

/* "fp32", "tf32", "amp", "bf16", "mixed", "megatron". */
DRY_API const char *dry_precision_name(enum dry_precision precision);

enum dry_optimizer {
    DRY_OPTIMIZER_ADAMW,
    DRY_OPTIMIZER_ADAM,
    DRY_OPTIMIZER_AMSGRAD,
    DRY_OPTIMIZER_SGD,
    DRY_OPTIMIZER_MOMENTUM,
    DRY_OPTIMIZER_ADAMW_8BIT, /* a byte, a scale in fp32 every 256; small tensors fp32 */
    DRY_OPTIMIZER_ADAFACTOR,  /* of a matrix a row and a column; no first moment */
    DRY_OPTIMIZER_ADAGRAD,
    DRY_OPTIMIZER_RMSPROP,
    DRY_OPTIMIZER_LION,
    DRY_OPTIMIZER_MUON, /* layers' matrices a momentum; all else as AdamW */
};
#define DRY_OPTIMIZER_COUNT 11

/* "adamw", "adam", "amsgrad", "sgd", "momentum", "adamw-8bit", "adafactor", ... */
DRY_API const char *dry_optimizer_name(enum dry_optimizer optimizer);

enum dry_step_kind {
    DRY_STEP_FOREACH, /* all tensors at once: PyTorch's default on a GPU */
    DRY_STEP_FUSED,   /* nothing beside */
    DRY_STEP_LOOP,    /* one tensor after the other */
};
#define DRY_STEP_KIND_COUNT 3

/* "foreach", "fused", "loop". */
DRY_API const char *dry_step_kind_name(enum dry_step_kind step);

enum dry_attention {
    DRY_ATTENTION_FLASH,      /* no scores are kept: one number a row */
    DRY_ATTENTION_EAGER,      /* softmax(q k) v by single operations */
    DRY_ATTENTION_EAGER_FP32, /* the same, the softmax in fp32 (Transformers' eager) */
};
#define DRY_ATTENTION_COUNT 3

/* "flash", "eager", "eager-fp32". */
DRY_API const char *dry_attention_name(enum dry_attention attention);

enum dry_checkpointing {
    DRY_CHECKPOINTING_NONE,
    DRY_CHECKPOINTING_SELECTIVE, /* scores and what is made of them are made again */
    DRY_CHECKPOINTING_FULL,      /* every layer keeps its input alone */
    DRY_CHECKPOINTING_EVERY,     /* every checkpoint_count-th layer does; 0: every 2nd */
    DRY_CHECKPOINTING_SQRT, /* checkpoint_count equal segments; 0: sqrt(layers), up */
};
#define DRY_CHECKPOINTING_COUNT 5

/* "none", "selective", "full", "every", "sqrt". */
DRY_API const char *dry_checkpointing_name(enum dry_checkpointing checkpointing);

/* Matrices that have an adapter (LoRA, arXiv:2106.09685). */
#define DRY_LORA_Q 1u
#define DRY_LORA_K 2u
#define DRY_LORA_V 4u
#define DRY_LORA_O 8u
#define DRY_LORA_GATE 16u
#define DRY_LORA_UP 32u
#define DRY_LORA_DOWN 64u
#define DRY_LORA_ALL 127u

#define DRY_STAGE_WORST UINT64_MAX

struct dry_run_setup {
    size_t struct_size; /* set by dry_run_setup_init() */
    enum dry_precision precision;
    enum dry_optimizer optimizer;
    enum dry_step_kind step;
    enum dry_attention attention;
    enum dry_checkpointing checkpointing;
    uint64_t checkpoint_count;
    uint64_t batch;        /* of one forward on one device; default 1 */
    uint64_t sequence;     /* default 2048 */
    uint64_t accumulation; /* forwards a step: microbatches; default 1 */
    uint32_t zero;         /* 0 to 3; FSDP is 3 */
    /* Devices a degree; all default to 1. */
    uint64_t data, tensor, pipeline, context, expert;
    uint64_t interleave;        /* model chunks a pipeline's device; default 1 */
    uint64_t stage;             /* of the pipeline; DRY_STAGE_WORST: the fullest */
    bool has_sequence_parallel; /* of the tensor-parallel group (Korthikanti et al.) */
    bool has_no_dropout;        /* whatever the model says */
    bool has_composed_norm;     /* norms of single operations (Transformers' RMSNorm) */
    bool has_repeated_kv;       /* keys and values are copied to all heads */
    bool has_index_add;         /* experts are summed by index_add_, which saves them */
    bool has_bucket_view;       /* DDP's buckets are the gradients themselves */
    bool is_inference;          /* no gradients; a KV cache of `sequence` tokens each */
    uint32_t mask_bytes;   /* an element of a dropout mask: 1, the default, on a GPU */
    uint64_t requests;     /* of inference; default 1 */
    uint64_t lora_rank;    /* 0: all weights are trained */
    uint32_t lora_targets; /* DRY_LORA_*; default Q and V */
    /* Outside of PyTorch's allocator; both assumed. */
    uint64_t context_bytes;       /* the driver's; default 512 MiB */
    uint64_t communication_bytes; /* a degree beyond 1; default 256 MiB */
    uint64_t workspace_bytes;     /* cuBLAS, one of two; default 8519680 */
    uint64_t capacity_bytes;      /* of the device; 0, the default: no limit */
    const char *conf;             /* PYTORCH_CUDA_ALLOC_CONF; NULL: the defaults */
};

DRY_API void dry_run_setup_init(struct dry_run_setup *setup);

/* --- the estimate --------------------------------------------------------------------------- */

enum dry_estimate_group {
    DRY_GROUP_WEIGHTS,
    DRY_GROUP_GRADIENTS,
    DRY_GROUP_OPTIMIZER,
    DRY_GROUP_ACTIVATIONS, /* saved for the backward */
    DRY_GROUP_LOSS,        /* logits and what is made of them */
    DRY_GROUP_CACHE,       /* keys and values of inference */
    DRY_GROUP_TEMPORARY, /* there for moments: gathered weights, gradients on their way */
    DRY_GROUP_OUTSIDE,   /* of the allocator */
    DRY_GROUP_REFERENCE, /* what formulas of the field say, to compare; in no sum */
};
#define DRY_GROUP_COUNT 9

/* "weights", "gradients", "optimizer", "activations", "loss", "cache", ... */
DRY_API const char *dry_group_name(enum dry_estimate_group group);

#define DRY_FORMULA_BYTES 96

struct dry_estimate_row {
    enum dry_estimate_group group;
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES]; /* "e*b*s*h = 2*8*2048*1024" */
    const char *source;              /* where the formula is from; "" where it is plain */
};

/* A tensor that a unit saves for its backward. */
struct dry_estimate_tensor {
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES];
};

/* Saved: with the unit's input, without its output, which the next unit's input is. */
struct dry_estimate_unit {
    const char *name;         /* "embedding", "layer", "expert layer", "head" ... */
    uint64_t count;           /* on this device */
    uint64_t parameter_count; /* of one, on all devices */
    uint64_t saved_bytes;     /* of one, on this device, without checkpointing */
    uint64_t input_bytes;     /* what a checkpoint keeps */
    bool saves_input;         /* is the input among what is saved? */
    /* Of one, on this device, for chains (<drystone/chain.h>). */
    uint64_t output_bytes;
    uint64_t grads_bytes;        /* of its weights */
    uint64_t forward_tmp_bytes;  /* while it runs, beyond what it saves and its output */
    uint64_t backward_tmp_bytes; /* likewise, beyond the gradients of input and output */
    uint64_t forward_flops;      /* of matrix products; the backward has twice as many */
    const struct dry_estimate_tensor *tensors;
    size_t tensor_count;
};

enum dry_estimate_phase {
    DRY_ESTIMATE_LOAD, /* weights */
    DRY_ESTIMATE_FORWARD,
    DRY_ESTIMATE_LOSS, /* head and loss, and their backward */
    DRY_ESTIMATE_BACKWARD,
    DRY_ESTIMATE_STEP,
};
#define DRY_ESTIMATE_PHASE_COUNT 5

/* "load", "forward", "loss", "backward", "step". */
DRY_API const char *dry_estimate_phase_name(enum dry_estimate_phase phase);

struct dry_estimate_peak {
    uint64_t requested_bytes;        /* at the moment when that is most */
    uint64_t parts[DRY_GROUP_COUNT]; /* of them; the sum is requested_bytes */
    uint64_t allocated_bytes;        /* in blocks of PyTorch's allocator; the most */
    uint64_t reserved_bytes;         /* by it; the most */
};

struct dry_estimate_summary {
    uint64_t parameter_count;        /* of the model */
    uint64_t active_parameter_count; /* that one token meets */
    uint64_t trained_count;          /* with LoRA: of the adapters */
    uint64_t device_parameter_count; /* on this device, before ZeRO */
    uint64_t stage;                  /* of the pipeline, that this is about */
    uint64_t flight_count;           /* microbatches whose activations are held */
    uint64_t weight_bytes, gradient_bytes, optimizer_bytes;
    uint64_t activation_bytes; /* held, and the segment that is made again */
    uint64_t cache_bytes;
    uint64_t outside_bytes;
    struct dry_estimate_peak phases[DRY_ESTIMATE_PHASE_COUNT];
    enum dry_estimate_phase peak_phase;
    uint64_t allocated_bytes, reserved_bytes; /* the most of all phases */
    uint64_t device_bytes;                    /* reserved and outside */
    bool fits; /* setup.capacity_bytes; with true where that is 0 */
};

struct dry_estimate;

/*
 * memory NULL: malloc. What does not fit is no error. Time: some requests a layer, its
 * forwards and the stages of a pipeline's device.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_create(
    const struct dry_model *model, const struct dry_run_setup *setup,
    const struct dry_memory *memory, struct dry_estimate **estimate,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_estimate_destroy(struct dry_estimate *estimate);
DRY_API const struct dry_estimate_summary *dry_estimate_get_summary(
    const struct dry_estimate *estimate);
DRY_API const struct dry_estimate_row *dry_estimate_get_rows(
    const struct dry_estimate *estimate, size_t *count);
DRY_API const struct dry_estimate_unit *dry_estimate_get_units(
    const struct dry_estimate *estimate, size_t *count);

enum dry_fit {
    DRY_FIT_BATCH,    /* the largest setup.batch */
    DRY_FIT_SEQUENCE, /* the largest setup.sequence */
    DRY_FIT_REQUESTS, /* the largest setup.requests, of inference */
};

/*
 * The largest value that fits setup.capacity_bytes while one more does not, looked for by
 * halving between 1 and 2^40; 0: not even 1 does. The sequence in steps of `step` (0: 1),
 * whose multiples alone are tried, and no longer than learned positions.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_fit(
    const struct dry_model *model, const struct dry_run_setup *setup, enum dry_fit what,
    uint64_t step, uint64_t *value, struct dry_error *err);

/* --- closed forms ------------------------------------------------------------------------- */

struct dry_state_bytes {
    uint64_t weights, gradients, optimizer; /* a device */
};

/*
 * Of so many parameters, all of them in matrices large enough for every rule, by precision,
 * optimizer, zero and data of the setup alone: ZeRO's table. Adafactor is ARGUMENT: it goes
 * by shapes. LIMIT: more than 63 bits.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_setup_state_bytes(
    const struct dry_run_setup *setup, uint64_t parameter_count,
    struct dry_state_bytes *bytes, struct dry_error *err);

/* --- cards -------------------------------------------------------------------------------- */

struct dry_card {
    const char *name;      /* "h100-80" */
    uint64_t nominal_gb;   /* as it is sold */
    uint64_t usable_bytes; /* what its driver reports as the total, about */
};

/* By name; NULL: none such. dry_card_get() lists them from 0; NULL beyond the last. */
DRY_API const struct dry_card *dry_card_find(const char *name);
DRY_API const struct dry_card *dry_card_get(size_t index);

#ifdef __cplusplus
}
#endif

#endif
