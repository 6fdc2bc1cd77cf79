/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ESTIMATE_H
#define DRY_ESTIMATE_H

/*
 * Estimate what a model needs of a device's memory, from its configuration alone.
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
 * A model is a list of units (embedding, layers, head). A unit is its weights and the
 * tensors it makes, some of which are saved for the backward. Rows are sums over these.
 *
 * The peak is not a sum of rows. Two steps of the training loop are run, request by
 * request, through PyTorch's allocator on a simulated device. The peak of a phase is the
 * most that was allocated and reserved during it.
 *
 * The sizes of saved tensors are those of Korthikanti et al. (arXiv:2205.05198, section
 * 4), and of what autograd saves for the modules of PyTorch. Parameters are counted tensor
 * by tensor. Some rows are assumed and not derived (the driver's context, buffers of
 * communication); each of them says so.
 *
 * Ownership  A model and a setup are plain data; the convolutions that a model points to
 *            must be there during the call alone. An estimate is created and destroyed.
 * Errors     ARGUMENT: a field that contradicts another, with its name. LIMIT: sums that
 *            leave 63 bits, or more layers than below. MEMORY.
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
/* The kind of a model. */
enum dry_model_kind {
    DRY_MODEL_DECODER,
    DRY_MODEL_ENCODER,
    DRY_MODEL_CONV, /* a list of layers over images */
};
#define DRY_MODEL_KIND_COUNT 3

/* Return the name of a kind: "decoder", "encoder", "conv". */
DRY_API const char *dry_model_kind_name(enum dry_model_kind kind);

/* The norm of a transformer's layers. */
enum dry_norm_kind {
    DRY_NORM_LAYER, /* weight and bias; mean and deviation are saved */
    DRY_NORM_RMS,   /* weight; the deviation is saved */
};

/*
 * The function between the MLP's two matrices, and how it is computed, which decides what
 * it saves.
 */
enum dry_activation {
    DRY_ACT_GELU, /* one kernel: saves its input */
    DRY_ACT_SILU, /* likewise */
    DRY_ACT_RELU, /* saves its output, which the next matrix saves as well */
    /* "gelu_new", of single operations: saves three tensors more. */
    DRY_ACT_GELU_COMPOSED,
    DRY_ACT_QUICK_GELU, /* x * sigmoid(1.702 x): saves one tensor more */
};
#define DRY_ACT_COUNT 5

/* The kind of a layer over images, each with what it saves for its backward. */
enum dry_conv_kind {
    DRY_CONV_CONV,        /* saves its input */
    DRY_CONV_NORM,        /* batch norm: its input, and mean and deviation a channel */
    DRY_CONV_RELU,        /* its output */
    DRY_CONV_SILU,        /* its input */
    DRY_CONV_MAX_POOL,    /* its input, and an int64 an output element */
    DRY_CONV_AVG_POOL,    /* its input */
    DRY_CONV_GLOBAL_POOL, /* pools to one pixel; nothing */
    DRY_CONV_ADD,         /* the sum of two; nothing */
    DRY_CONV_CONCAT,      /* along channels; nothing */
    DRY_CONV_FLATTEN,     /* a view */
    DRY_CONV_LINEAR,      /* its input */
    DRY_CONV_DROPOUT,     /* its mask */
};
#define DRY_CONV_KIND_COUNT 12

/*
 * Return the name of a kind: "conv", "norm", "relu", "silu", "maxpool", "avgpool",
 * "globalpool", "add", ...
 */
DRY_API const char *dry_conv_kind_name(enum dry_conv_kind kind);

/*
 * Values of `from` and `with`: the layer before, which for the first layer is the images;
 * and the images themselves.
 */
#define DRY_CONV_PREVIOUS INT64_MIN
#define DRY_CONV_IMAGES (-1)

/* A layer over images. */
struct dry_conv_layer {
    enum dry_conv_kind kind;
    int64_t from;      /* the layer whose output it reads, or a value above */
    int64_t with;      /* the second input of ADD and CONCAT */
    uint64_t channels; /* of the output; for CONV and LINEAR */
    uint64_t kernel,
        /* For CONV and pools. A stride of 0 is 1 for CONV, and the kernel for pools. */
        stride;
    uint64_t padding, groups; /* groups 0: 1 */
    uint64_t dilation;        /* 0: 1 */
    bool has_bias;
};

/* Ways to store the matrices of linear layers in fewer bits. */
enum dry_quantization {
    DRY_QUANTIZATION_NONE,
    DRY_QUANTIZATION_AWQ,        /* packed by columns; a zero point and a scale a group */
    DRY_QUANTIZATION_GPTQ,       /* packed by rows, likewise; an index of groups a row */
    DRY_QUANTIZATION_NF4,        /* 4 bits of bitsandbytes; a scale every 64 elements */
    DRY_QUANTIZATION_NF4_DOUBLE, /* the same with the scales in 8 bits */
    DRY_QUANTIZATION_INT8,       /* bitsandbytes; a scale in fp32 a row */
    DRY_QUANTIZATION_FP8_BLOCK,  /* a byte; a scale in fp32 a block (DeepSeek-V3) */
    DRY_QUANTIZATION_ROW,        /* a byte; a scale of 2 bytes a row */
    DRY_QUANTIZATION_TENSOR,     /* a byte; one scale of 2 bytes */
    DRY_QUANTIZATION_PACKED, /* packed by rows, a scale a group, the shape (compressed) */
    DRY_QUANTIZATION_MXFP4,  /* experts alone: 4 bits, a byte of scale every 32 */
};
#define DRY_QUANTIZATION_COUNT 11

/*
 * Return the name: "none", "awq", "gptq", "nf4", "nf4-double", "int8", "fp8-block", "row",
 * "tensor", "packed", "mxfp4".
 */
DRY_API const char *dry_quantization_name(enum dry_quantization quantization);

#define DRY_MODEL_LAYERS_MAX 10000u
#define DRY_CONV_LAYERS_MAX 100000u

/*
 * The configuration of a model. A field is zero if the model has no such thing; call
 * dry_model_init() first.
 */
struct dry_model {
    size_t struct_size; /* set by dry_model_init() */
    enum dry_model_kind kind;
    uint64_t layers, hidden, vocab;
    uint64_t heads;
    uint64_t kv_heads;    /* divides `heads`; 0: as many as heads */
    uint64_t head_dim;    /* 0: hidden / heads, which must have no remainder */
    uint64_t ffn;         /* width of the MLP; with experts, of the dense layers */
    uint64_t positions;   /* learned positions */
    uint64_t token_types; /* BERT's */
    uint64_t window; /* tokens that a layer looks back at most: bounds the KV cache */

    uint64_t experts, experts_per_token;
    uint64_t expert_ffn;   /* 0: ffn */
    uint64_t shared_ffn;   /* Width of the experts that see every token, all together. */
    uint64_t dense_layers; /* the first so many layers have no experts */

    /* Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); kv_rank 0: none. */
    uint64_t q_rank, kv_rank; /* q_rank 0: queries are not compressed */
    uint64_t rope_dim, nope_dim, value_dim;

    enum dry_norm_kind norm;
    enum dry_activation activation;
    bool is_gated;     /* gate * up: three matrices in the MLP */
    bool is_tied;      /* the head is the embedding */
    bool is_parallel;  /* attention and MLP side by side (GPT-NeoX) */
    bool is_post_norm; /* the norm comes after the sum (BERT) */
    bool has_qkv_bias, has_out_bias, has_mlp_bias, has_head_bias, has_router_bias;
    bool has_qk_norm;        /* each head norms queries and keys (Qwen3) */
    bool has_embedding_norm; /* BERT */
    bool has_no_head;  /* the last hidden state is the output, there are no logits */
    bool has_mlm_head; /* BERT's: a matrix and a norm before the logits */
    bool has_pooler;   /* BERT's: a matrix over the first token */
    bool has_dropout;

    /* For DRY_MODEL_CONV alone. */
    const struct dry_conv_layer *conv;
    size_t conv_count;
    uint64_t channels, height,
        width; /* of the images, for transformers with a patch, too */

    /* The side of a patch: tokens are squares of images, and one more (ViT). 0: text. */
    uint64_t patch;
    uint64_t
        global_layers; /* so many layers look back at all tokens, whatever `window` */
    /*
     * Layers of an encoder, which the decoder's layers attend to (T5, Whisper). 0: there is
     * no such encoder, the model is one stack.
     */
    uint64_t encoder_layers;
    uint64_t encoder_ffn;      /* 0: ffn */
    uint64_t source;           /* tokens the encoder reads; 0: as many as the decoder */
    uint64_t audio_channels;   /* two convolutions make its tokens of these (Whisper) */
    uint64_t position_buckets; /* T5: a bias for each bucket of distances and head */
    bool has_own_output_norms; /* attention and MLP are normed again (Gemma 2) */
    bool has_one_norm;         /* a parallel layer has one norm for both (Falcon) */
    bool has_no_norm_bias;     /* layer norms have a weight alone */
    bool has_no_key_bias;      /* though queries and values have one (Whisper) */
    bool has_sinks;            /* a number a head joins the softmax (gpt-oss) */
    bool has_shared_gate;      /* a gate weighs the shared experts (Qwen2-MoE) */
    bool is_router_bias_wide;  /* in fp32 whatever the precision (DeepSeek-V3) */
    bool has_capped_logits;    /* tanh bounds the logits (Gemma 2) */

    enum dry_quantization quantization;
    uint64_t quantization_bits;      /* of AWQ, GPTQ and PACKED: 2, 3, 4 or 8 */
    uint64_t quantization_group;     /* inputs that share a scale; 0: all of a row */
    uint64_t quantization_rows;      /* of a block, FP8_BLOCK; 0: 128 */
    uint64_t quantization_cols;      /* likewise */
    bool has_zero_points;            /* of PACKED: AWQ and GPTQ always have them */
    bool has_input_scales;           /* a scale of 2 bytes for what a matrix reads */
    bool is_head_quantized;          /* the head, too */
    bool are_experts_quantized_only; /* all other matrices are not */
};

/* Set every field to zero, and struct_size. */
DRY_API void dry_model_init_sized(struct dry_model *model, size_t struct_size);
#define dry_model_init(model) dry_model_init_sized(model, sizeof *(model))

/*
 * Look up a model that the library knows, "gpt2", "llama-2-7b", "mixtral-8x7b" ..., and
 * copy it to *model, which begins with its struct_size. ARGUMENT: no model has this name.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_model_find(const char *name,
                                                        struct dry_model *model);
/* Return the name of the model `index`, from 0; NULL beyond the last. */
DRY_API const char *dry_model_get_name(size_t index);

/* --- runs --------------------------------------------------------------------------------- */

/*
 * Precisions, each with the bytes of an element's weight + gradient + master copy + one
 * state of Adam.
 */
enum dry_precision {
    DRY_PRECISION_FP32,  /* 4 + 4 + 0 + 4 */
    DRY_PRECISION_TF32,  /* the same memory as FP32 */
    DRY_PRECISION_AMP,   /* autocast: 4 + 4 + 0 + 4, activations of 2, weights are cast */
    DRY_PRECISION_BF16,  /* everything in 2 bytes: 2 + 2 + 0 + 2 */
    DRY_PRECISION_MIXED, /* 2 + 2 + 4 + 4 (ZeRO, arXiv:1910.02054) */
    DRY_PRECISION_MASTER, /* 2 + 4 + 4 + 4: gradients are fp32 and stay (Megatron-LM) */
};
#define DRY_PRECISION_COUNT 6

/* Return the name of a precision: "fp32", "tf32", "amp", "bf16", "mixed", "megatron". */
DRY_API const char *dry_precision_name(enum dry_precision precision);

/* Optimizers. */
enum dry_optimizer {
    DRY_OPTIMIZER_ADAMW,
    DRY_OPTIMIZER_ADAM,
    DRY_OPTIMIZER_AMSGRAD,
    DRY_OPTIMIZER_SGD,
    DRY_OPTIMIZER_MOMENTUM,
    /* A byte a state, a scale in fp32 every 256; small tensors in fp32. */
    DRY_OPTIMIZER_ADAMW_8BIT,
    DRY_OPTIMIZER_ADAFACTOR, /* a row and a column for each matrix; no first moment */
    DRY_OPTIMIZER_ADAGRAD,
    DRY_OPTIMIZER_RMSPROP,
    DRY_OPTIMIZER_LION,
    DRY_OPTIMIZER_MUON, /* a momentum for the layers' matrices; all else as AdamW */
};
#define DRY_OPTIMIZER_COUNT 11

/*
 * Return the name of an optimizer: "adamw", "adam", "amsgrad", "sgd", "momentum",
 * "adamw-8bit", "adafactor", ...
 */
DRY_API const char *dry_optimizer_name(enum dry_optimizer optimizer);

/*
 * The way in which the optimizer's step walks the tensors, which decides its temporary
 * bytes.
 */
enum dry_step_kind {
    DRY_STEP_FOREACH, /* all tensors at once: PyTorch's default on a GPU */
    DRY_STEP_FUSED,   /* no temporary bytes */
    DRY_STEP_LOOP,    /* one tensor after another */
};
#define DRY_STEP_KIND_COUNT 3

/* Return the name of a kind of step: "foreach", "fused", "loop". */
DRY_API const char *dry_step_kind_name(enum dry_step_kind step);

/* Ways to compute the attention. */
enum dry_attention {
    DRY_ATTENTION_FLASH, /* keeps no scores: one number a row */
    DRY_ATTENTION_EAGER, /* softmax(q k) v by single operations */
    /* The same with the softmax in fp32 (Transformers' eager). */
    DRY_ATTENTION_EAGER_FP32,
};
#define DRY_ATTENTION_COUNT 3

/* Return the name of an attention: "flash", "eager", "eager-fp32". */
DRY_API const char *dry_attention_name(enum dry_attention attention);

/* Activations that are made again in the backward instead of being kept. */
enum dry_checkpointing {
    DRY_CHECKPOINTING_NONE,
    /* The scores and the tensors made of them are made again. */
    DRY_CHECKPOINTING_SELECTIVE,
    DRY_CHECKPOINTING_FULL, /* every layer keeps only its input */
    /* Every checkpoint_count-th layer keeps only its input; 0: every 2nd. */
    DRY_CHECKPOINTING_EVERY,
    /* checkpoint_count equal segments; 0: sqrt(layers), rounded up. */
    DRY_CHECKPOINTING_SQRT,
};
#define DRY_CHECKPOINTING_COUNT 5

/* Return the name of a checkpointing: "none", "selective", "full", "every", "sqrt". */
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

/*
 * The way in which a model is run. A degree is the number of devices that share one
 * dimension of the work.
 */
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
    /* Degrees, in devices; all default to 1. */
    uint64_t data, tensor, pipeline, context, expert;
    uint64_t interleave; /* model chunks a pipeline's device; default 1 */
    uint64_t stage; /* the pipeline's stage to estimate; DRY_STAGE_WORST: the fullest */
    bool has_sequence_parallel; /* in the tensor-parallel group (Korthikanti et al.) */
    bool has_no_dropout;        /* no dropout, whatever the model says */
    /* Norms consist of single operations (Transformers' RMSNorm). */
    bool has_composed_norm;
    bool has_repeated_kv; /* keys and values are copied to all heads */
    bool has_index_add;   /* index_add_ sums the experts, and saves them */
    bool has_bucket_view; /* DDP's buckets are the gradients themselves */
    /* No gradients; each request has a KV cache of `sequence` tokens. */
    bool is_inference;
    uint32_t mask_bytes; /* bytes of a dropout mask's element: 1, the default, on a GPU */
    uint64_t requests;   /* of inference; default 1 */
    uint64_t lora_rank;  /* 0: all weights are trained */
    uint32_t lora_targets; /* DRY_LORA_*; default Q and V */
    /* Bytes outside of PyTorch's allocator; both are assumed. */
    uint64_t context_bytes;       /* the driver's; default 512 MiB */
    uint64_t communication_bytes; /* for each degree beyond 1; default 256 MiB */
    uint64_t workspace_bytes;     /* of each of two cuBLAS workspaces; default 8519680 */
    uint64_t capacity_bytes;      /* of the device; 0, the default: no limit */
    const char *conf;             /* PYTORCH_CUDA_ALLOC_CONF; NULL: the defaults */
};

/* Set all fields to their defaults. */
DRY_API void dry_run_setup_init_sized(struct dry_run_setup *setup, size_t struct_size);
#define dry_run_setup_init(setup) dry_run_setup_init_sized(setup, sizeof *(setup))

/* --- the estimate --------------------------------------------------------------------------- */

/* Groups of rows. */
enum dry_estimate_group {
    DRY_GROUP_WEIGHTS,
    DRY_GROUP_GRADIENTS,
    DRY_GROUP_OPTIMIZER,
    DRY_GROUP_ACTIVATIONS, /* saved for the backward */
    DRY_GROUP_LOSS,        /* logits and the tensors made of them */
    DRY_GROUP_CACHE,       /* keys and values of inference */
    /* There for moments: gathered weights, gradients on their way. */
    DRY_GROUP_TEMPORARY,
    DRY_GROUP_OUTSIDE, /* bytes outside of the allocator */
    /* Results of formulas of the field, for comparison; they are in no sum. */
    DRY_GROUP_REFERENCE,
};
#define DRY_GROUP_COUNT 9

/*
 * Return the name of a group: "weights", "gradients", "optimizer", "activations", "loss",
 * "cache", ...
 */
DRY_API const char *dry_group_name(enum dry_estimate_group group);

#define DRY_FORMULA_BYTES 96

/* A row: bytes, and the formula they come from. */
struct dry_estimate_row {
    enum dry_estimate_group group;
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES]; /* "e*b*s*h = 2*8*2048*1024" */
    const char *source;              /* the source of the formula; "" if it is plain */
};

/* A tensor that a unit saves for its backward. */
struct dry_estimate_tensor {
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES];
};

/*
 * A unit of the model. Saved bytes include the unit's input and exclude its output, which
 * is the next unit's input.
 */
struct dry_estimate_unit {
    const char *name;         /* "embedding", "layer", "expert layer", "head" ... */
    uint64_t count;           /* on this device */
    uint64_t parameter_count; /* of one unit, on all devices */
    uint64_t saved_bytes;     /* of one unit, on this device, without checkpointing */
    uint64_t input_bytes;     /* bytes that a checkpoint keeps */
    bool saves_input;         /* is the input among the saved tensors? */
    /* Fields of one unit, on this device, for chains (<drystone/chain.h>). */
    uint64_t output_bytes;
    uint64_t grads_bytes; /* of its weights */
    /* While it runs, beyond its output and the tensors it saves. */
    uint64_t forward_tmp_bytes;
    /* In its backward, beyond the gradients of input and output. */
    uint64_t backward_tmp_bytes;
    uint64_t forward_flops; /* of matrix products; the backward has twice as many */
    const struct dry_estimate_tensor *tensors;
    size_t tensor_count;
};

/* Phases of the two steps that are run. */
enum dry_estimate_phase {
    DRY_ESTIMATE_LOAD, /* weights */
    DRY_ESTIMATE_FORWARD,
    DRY_ESTIMATE_LOSS, /* head and loss, with their backward */
    DRY_ESTIMATE_BACKWARD,
    DRY_ESTIMATE_STEP,
};
#define DRY_ESTIMATE_PHASE_COUNT 5

/* Return the name of a phase: "load", "forward", "loss", "backward", "step". */
DRY_API const char *dry_estimate_phase_name(enum dry_estimate_phase phase);

/* The peak of one phase. */
struct dry_estimate_peak {
    uint64_t requested_bytes;        /* at the moment when they are the most */
    uint64_t parts[DRY_GROUP_COUNT]; /* by group; the sum is requested_bytes */
    uint64_t allocated_bytes;        /* the most in blocks of PyTorch's allocator */
    uint64_t reserved_bytes;         /* the most that the allocator reserved */
};

/* The estimate's sums. */
struct dry_estimate_summary {
    uint64_t parameter_count;        /* of the model */
    uint64_t active_parameter_count; /* of the parameters that one token meets */
    /* Parameters that are trained; with LoRA, those of the adapters. */
    uint64_t trained_count;
    uint64_t device_parameter_count; /* on this device, before ZeRO */
    uint64_t stage;                  /* the pipeline's stage that this is about */
    uint64_t flight_count;           /* microbatches whose activations are held */
    uint64_t weight_bytes, gradient_bytes, optimizer_bytes;
    uint64_t activation_bytes; /* held bytes, and the segment that is being made again */
    uint64_t cache_bytes;
    uint64_t outside_bytes;
    struct dry_estimate_peak phases[DRY_ESTIMATE_PHASE_COUNT];
    enum dry_estimate_phase peak_phase;
    uint64_t allocated_bytes, reserved_bytes; /* the most over all phases */
    uint64_t device_bytes;                    /* reserved_bytes + outside_bytes */
    bool fits; /* setup.capacity_bytes suffice; true if they are 0 */
};

struct dry_estimate;

/*
 * Estimate `model` under `setup`; the result is *estimate. A `memory` of NULL is malloc.
 * A model that does not fit is no error: see `fits`. Cost: some requests for each layer,
 * forward and stage of a pipeline's device. Errors: ARGUMENT, LIMIT, MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_create(
    const struct dry_model *model, const struct dry_run_setup *setup,
    const struct dry_memory *memory, struct dry_estimate **estimate,
    struct dry_error *err);
/* End the estimate. NULL is fine. */
DRY_API void dry_estimate_destroy(struct dry_estimate *estimate);
/* Return the sums. */
DRY_API const struct dry_estimate_summary *dry_estimate_get_summary(
    const struct dry_estimate *estimate);
/* Return the rows. */
DRY_API const struct dry_estimate_row *dry_estimate_get_rows(
    const struct dry_estimate *estimate, size_t *count);
/* Return the units. */
DRY_API const struct dry_estimate_unit *dry_estimate_get_units(
    const struct dry_estimate *estimate, size_t *count);

/* A field of the setup whose largest value is wanted. */
enum dry_fit {
    DRY_FIT_BATCH,    /* the largest setup.batch */
    DRY_FIT_SEQUENCE, /* the largest setup.sequence */
    DRY_FIT_REQUESTS, /* the largest setup.requests, in inference */
};

/*
 * Find the largest value of the field `what` that fits setup.capacity_bytes while one
 * step more does not. Values are tried in multiples of `step` (0: 1), by halving between
 * one step and 2^40. A sequence is no longer than the model's learned positions, and its
 * step is at least the degree `context`. The result is *value; 0: not even one step fits.
 * Errors: ARGUMENT (no model, no capacity, an unknown `what`, too large a `step`), and
 * those of dry_estimate_create().
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_fit(
    const struct dry_model *model, const struct dry_run_setup *setup, enum dry_fit what,
    uint64_t step, uint64_t *value, struct dry_error *err);

/* --- closed forms ------------------------------------------------------------------------- */

/* Bytes of the training state on one device. */
struct dry_state_bytes {
    size_t struct_size;                     /* DRY_INIT sets it */
    uint64_t weights, gradients, optimizer; /* on each device */
};

/*
 * Compute the bytes of `parameter_count` parameters, all of them in matrices large enough
 * for every rule. Only precision, optimizer, zero and data of `setup` count: it is ZeRO's
 * table. ARGUMENT: Adafactor, whose bytes depend on shapes; `data` or `zero` out of
 * range. LIMIT: 2^62 bytes or more.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_setup_state_bytes(
    const struct dry_run_setup *setup, uint64_t parameter_count,
    struct dry_state_bytes *bytes, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
