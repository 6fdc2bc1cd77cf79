/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ESTIMATE_H
#define DRY_ESTIMATE_H

/*
 * Estimate the device memory that a model needs, from its configuration alone.
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
 * A model is a list of units (embedding, layers, head). A unit has weights and produces
 * tensors, some of which are saved for the backward. Rows are sums over units.
 *
 * The peak is not a sum of rows. All requests of two training steps are replayed through
 * PyTorch's allocator on a simulated device. The peak of a phase is the maximum of
 * allocated and of reserved bytes during it.
 *
 * The sizes of saved tensors are those of Korthikanti et al. (arXiv:2205.05198, section
 * 4), and of what autograd saves for the modules of PyTorch. Parameters are counted
 * tensor by tensor. Some rows are assumptions (the driver's context, communication
 * buffers) and are marked so.
 *
 * Ownership  A model and a setup are plain data; the convolutions that a model points to
 *            must be valid during the call only. The caller destroys an estimate.
 * Errors     ARGUMENT: a field that contradicts another; err names it. LIMIT: sums above
 *            63 bits, or more layers than the limits below. MEMORY.
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

/* The numbers of all enums here never change; new ones are appended. */
enum dry_model_kind {
    DRY_MODEL_DECODER,
    DRY_MODEL_ENCODER,
    DRY_MODEL_CONV, /* a list of layers over images */
};
#define DRY_MODEL_KIND_COUNT 3

/* Return the name of a kind: "decoder", "encoder", "conv". */
DRY_API const char *dry_model_kind_name(enum dry_model_kind kind);

/* The normalization of a transformer's layers. */
enum dry_norm_kind {
    DRY_NORM_LAYER, /* has weight and bias; saves mean and deviation */
    DRY_NORM_RMS,   /* has a weight; saves the deviation */
};

/*
 * The activation function of the MLP, and how it is computed, which decides what it
 * saves.
 */
enum dry_activation {
    DRY_ACT_GELU, /* one kernel: saves its input */
    DRY_ACT_SILU, /* one kernel: saves its input */
    DRY_ACT_RELU, /* saves its output, which the next matrix saves anyway */
    /* "gelu_new", built from single operations: saves three more tensors. */
    DRY_ACT_GELU_COMPOSED,
    DRY_ACT_QUICK_GELU, /* x * sigmoid(1.702 x): saves one more tensor */
};
#define DRY_ACT_COUNT 5

/* The kind of a layer over images, and what each saves for its backward. */
enum dry_conv_kind {
    DRY_CONV_CONV, /* saves its input */
    DRY_CONV_NORM, /* batch norm; saves its input, and mean and deviation per channel */
    DRY_CONV_RELU, /* saves its output */
    DRY_CONV_SILU, /* saves its input */
    DRY_CONV_MAX_POOL,    /* saves its input, and an int64 per output element */
    DRY_CONV_AVG_POOL,    /* saves its input */
    DRY_CONV_GLOBAL_POOL, /* pools to one pixel; saves nothing */
    DRY_CONV_ADD,         /* adds two inputs; saves nothing */
    DRY_CONV_CONCAT,      /* concatenates channels; saves nothing */
    DRY_CONV_FLATTEN,     /* a view; saves nothing */
    DRY_CONV_LINEAR,      /* saves its input */
    DRY_CONV_DROPOUT,     /* saves its mask */
};
#define DRY_CONV_KIND_COUNT 12

/* Return the name of a kind: "conv", "norm", "relu", "silu", "maxpool", "avgpool",
   "globalpool", "add", ... */
DRY_API const char *dry_conv_kind_name(enum dry_conv_kind kind);

/* Special values of `from` and `with`: the previous layer (for the first layer, the
   images), and the images. */
#define DRY_CONV_PREVIOUS INT64_MIN
#define DRY_CONV_IMAGES (-1)

struct dry_conv_layer {
    enum dry_conv_kind kind;
    int64_t from;      /* index of the layer whose output it reads, or a value above */
    int64_t with;      /* the second input of ADD and CONCAT */
    uint64_t channels; /* output channels, for CONV and LINEAR */
    uint64_t kernel,
        /* For CONV and pools. Stride 0 means 1 for CONV, and the kernel size for
           pools. */
        stride;
    uint64_t padding, groups; /* groups 0 means 1 */
    uint64_t dilation;        /* 0 means 1 */
    bool has_bias;
};

/* Ways to quantize the matrices of linear layers. */
enum dry_quantization {
    DRY_QUANTIZATION_NONE,
    DRY_QUANTIZATION_AWQ,  /* packed by columns; a zero point and a scale per group */
    DRY_QUANTIZATION_GPTQ, /* packed by rows; a zero point and a scale per group; a
                                    group index per row */
    DRY_QUANTIZATION_NF4,  /* bitsandbytes, 4 bits; a scale per 64 elements */
    DRY_QUANTIZATION_NF4_DOUBLE, /* NF4 with the scales in 8 bits */
    DRY_QUANTIZATION_INT8,       /* bitsandbytes; an fp32 scale per row */
    DRY_QUANTIZATION_FP8_BLOCK,  /* 1 byte; an fp32 scale per block (DeepSeek-V3) */
    DRY_QUANTIZATION_ROW,        /* 1 byte; a scale of 2 bytes per row */
    DRY_QUANTIZATION_TENSOR,     /* 1 byte; one scale of 2 bytes */
    DRY_QUANTIZATION_PACKED,     /* packed by rows, a scale per group, and the shape
                                (compressed-tensors) */
    DRY_QUANTIZATION_MXFP4, /* experts only: 4 bits, 1 byte of scale per 32 elements */
};
#define DRY_QUANTIZATION_COUNT 11

/* Return the name: "none", "awq", "gptq", "nf4", "nf4-double", "int8", "fp8-block",
   "row", "tensor", "packed", "mxfp4". */
DRY_API const char *dry_quantization_name(enum dry_quantization quantization);

#define DRY_MODEL_LAYERS_MAX 10000u
#define DRY_CONV_LAYERS_MAX 100000u

/* The configuration of a model. A field is zero if the model does not have the feature.
   Call dry_model_init() first. */
struct dry_model {
    size_t struct_size; /* set by dry_model_init() */
    enum dry_model_kind kind;
    uint64_t layers, hidden, vocab;
    uint64_t heads;
    uint64_t kv_heads; /* divides `heads`; 0: same as heads */
    uint64_t head_dim; /* 0: hidden / heads, which must divide evenly */
    uint64_t ffn; /* width of the MLP; in a model with experts, of the dense layers */
    uint64_t positions;   /* number of learned positions; 0: none */
    uint64_t token_types; /* BERT's token types */
    uint64_t window;      /* the attention window in tokens, which bounds the KV cache */

    uint64_t experts, experts_per_token;
    uint64_t expert_ffn;   /* 0: ffn */
    uint64_t shared_ffn;   /* total width of the experts that every token passes */
    uint64_t dense_layers; /* the first dense_layers layers have no experts */

    /* Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); kv_rank 0: none. */
    uint64_t q_rank, kv_rank; /* q_rank 0: queries are not compressed */
    uint64_t rope_dim, nope_dim, value_dim;

    enum dry_norm_kind norm;
    enum dry_activation activation;
    bool is_gated;     /* gate * up: three matrices in the MLP */
    bool is_tied;      /* the head shares the embedding's weights */
    bool is_parallel;  /* attention and MLP read the same input (GPT-NeoX) */
    bool is_post_norm; /* the norm follows the residual sum (BERT) */
    bool has_qkv_bias, has_out_bias, has_mlp_bias, has_head_bias, has_router_bias;
    bool has_qk_norm;        /* queries and keys are normed per head (Qwen3) */
    bool has_embedding_norm; /* a norm after the embedding (BERT) */
    bool has_no_head;        /* no logits: the output is the last hidden state */
    bool has_mlm_head;       /* BERT's head: a matrix and a norm before the logits */
    bool has_pooler;         /* BERT's pooler: a matrix over the first token */
    bool has_dropout;

    /* For DRY_MODEL_CONV only. */
    const struct dry_conv_layer *conv;
    size_t conv_count;
    uint64_t channels, height, width; /* image size; also for transformers with `patch` */

    /* The side of a patch in pixels: tokens are patches plus one (ViT). 0: tokens are
       text. */
    uint64_t patch;
    uint64_t global_layers; /* number of layers that attend to all tokens despite
                               `window` */
    /* Number of encoder layers, which the decoder attends to (T5, Whisper). 0: the model
       is a single stack. */
    uint64_t encoder_layers;
    uint64_t encoder_ffn; /* width of the encoder's MLP; 0: ffn */
    uint64_t source;      /* tokens that the encoder reads; 0: as many as the decoder */
    uint64_t audio_channels;   /* two convolutions turn these channels into tokens
                                  (Whisper) */
    uint64_t position_buckets; /* T5: a bias per head and bucket of distances */
    bool has_own_output_norms; /* the outputs of attention and MLP are normed, too (Gemma
                                  2) */
    bool has_one_norm;     /* a parallel layer uses one norm for both branches (Falcon) */
    bool has_no_norm_bias; /* layer norms have no bias */
    bool has_no_key_bias; /* keys have no bias although queries and values do (Whisper) */
    bool has_sinks;       /* a learned number per head joins the softmax (gpt-oss) */
    bool has_shared_gate; /* a gate weights the shared experts (Qwen2-MoE) */
    bool is_router_bias_wide; /* the router's bias is fp32 in every precision
                                  (DeepSeek-V3) */
    bool has_capped_logits;   /* a tanh caps the logits (Gemma 2) */

    enum dry_quantization quantization;
    uint64_t quantization_bits;      /* for AWQ, GPTQ and PACKED: 2, 3, 4 or 8 */
    uint64_t quantization_group;     /* inputs that share a scale; 0: the whole row */
    uint64_t quantization_rows;      /* rows of a block, FP8_BLOCK; 0: 128 */
    uint64_t quantization_cols;      /* columns of a block, FP8_BLOCK; 0: 128 */
    bool has_zero_points;            /* PACKED has zero points; AWQ and GPTQ always do */
    bool has_input_scales;           /* a scale of 2 bytes for each matrix's input */
    bool is_head_quantized;          /* the head is quantized, too */
    bool are_experts_quantized_only; /* only the experts are quantized */
};

/* Set every field to zero, and struct_size. */
DRY_API void dry_model_init_sized(struct dry_model *model, size_t struct_size);
#define dry_model_init(model) dry_model_init_sized(model, sizeof *(model))

/*
 * Look up a model that the library knows, "gpt2", "llama-2-7b", "mixtral-8x7b" ..., and
 * copy it to *model, whose struct_size the caller has set. ARGUMENT: no model has this
 * name.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_model_find(const char *name,
                                                        struct dry_model *model);
/* Return the name of the model `index`, from 0; NULL beyond the last. */
DRY_API const char *dry_model_get_name(size_t index);

/* --- runs --------------------------------------------------------------------------------- */

/* Precisions. The sum is the bytes per element of weight + gradient + master copy + one
   Adam state. */
enum dry_precision {
    DRY_PRECISION_FP32,   /* 4 + 4 + 0 + 4 bytes */
    DRY_PRECISION_TF32,   /* the same memory as FP32 */
    DRY_PRECISION_AMP,    /* autocast: 4 + 4 + 0 + 4, activations of 2 bytes, cast copies
                            of weights */
    DRY_PRECISION_BF16,   /* 2 + 2 + 0 + 2: all in 2 bytes */
    DRY_PRECISION_MIXED,  /* 2 + 2 + 4 + 4 bytes (ZeRO, arXiv:1910.02054) */
    DRY_PRECISION_MASTER, /* 2 + 4 + 4 + 4: gradients are fp32 and persist
                             (Megatron-LM) */
};
#define DRY_PRECISION_COUNT 6

/* Return the name of a precision: "fp32", "tf32", "amp", "bf16", "mixed", "megatron". */
DRY_API const char *dry_precision_name(enum dry_precision precision);

/* The optimizer, which decides the bytes of its states. */
enum dry_optimizer {
    DRY_OPTIMIZER_ADAMW,
    DRY_OPTIMIZER_ADAM,
    DRY_OPTIMIZER_AMSGRAD,
    DRY_OPTIMIZER_SGD,
    DRY_OPTIMIZER_MOMENTUM,
    /* A byte per state, an fp32 scale per 256 elements; small tensors in fp32. */
    DRY_OPTIMIZER_ADAMW_8BIT,
    DRY_OPTIMIZER_ADAFACTOR, /* a row and a column per matrix; no first moment */
    DRY_OPTIMIZER_ADAGRAD,
    DRY_OPTIMIZER_RMSPROP,
    DRY_OPTIMIZER_LION,
    DRY_OPTIMIZER_MUON, /* one momentum for the layers' matrices; AdamW for all other
                           tensors */
};
#define DRY_OPTIMIZER_COUNT 11

/* Return the name of an optimizer: "adamw", "adam", "amsgrad", "sgd", "momentum",
   "adamw-8bit", "adafactor", ... */
DRY_API const char *dry_optimizer_name(enum dry_optimizer optimizer);

/* How the optimizer's step iterates over tensors, which decides its temporary bytes. */
enum dry_step_kind {
    DRY_STEP_FOREACH, /* all tensors at once: PyTorch's default on a GPU */
    DRY_STEP_FUSED,   /* no temporary bytes */
    DRY_STEP_LOOP,    /* one tensor after another */
};
#define DRY_STEP_KIND_COUNT 3

/* Return the name of a kind of step: "foreach", "fused", "loop". */
DRY_API const char *dry_step_kind_name(enum dry_step_kind step);

/* How attention is computed, which decides what it saves. */
enum dry_attention {
    DRY_ATTENTION_FLASH, /* saves one number per row, no scores */
    DRY_ATTENTION_EAGER, /* softmax(q k) v by single operations: saves the scores */
    /* EAGER with the softmax in fp32 (Transformers' eager). */
    DRY_ATTENTION_EAGER_FP32,
};
#define DRY_ATTENTION_COUNT 3

/* Return the name of an attention: "flash", "eager", "eager-fp32". */
DRY_API const char *dry_attention_name(enum dry_attention attention);

/* Activations that are recomputed in the backward instead of being kept. */
enum dry_checkpointing {
    DRY_CHECKPOINTING_NONE,
    /* The scores and the tensors computed from them are recomputed. */
    DRY_CHECKPOINTING_SELECTIVE,
    DRY_CHECKPOINTING_FULL, /* every layer keeps only its input */
    /* Every checkpoint_count-th layer keeps only its input; 0: every 2nd. */
    DRY_CHECKPOINTING_EVERY,
    /* The layers form checkpoint_count equal segments; 0: sqrt(layers), rounded up. */
    DRY_CHECKPOINTING_SQRT,
};
#define DRY_CHECKPOINTING_COUNT 5

/* Return the name of a checkpointing: "none", "selective", "full", "every", "sqrt". */
DRY_API const char *dry_checkpointing_name(enum dry_checkpointing checkpointing);

/* Bits: matrices that have an adapter (LoRA, arXiv:2106.09685). */
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
 * How a model is run. A degree is the number of devices that share one dimension of the
 * work.
 */
struct dry_run_setup {
    size_t struct_size; /* set by dry_run_setup_init() */
    enum dry_precision precision;
    enum dry_optimizer optimizer;
    enum dry_step_kind step;
    enum dry_attention attention;
    enum dry_checkpointing checkpointing;
    uint64_t checkpoint_count;
    uint64_t batch;        /* samples per forward on one device; default 1 */
    uint64_t sequence;     /* tokens per sample; default 2048 */
    uint64_t accumulation; /* forwards per step (microbatches); default 1 */
    uint32_t zero;         /* ZeRO stage, 0 to 3; FSDP is 3 */
    /* Degrees, in devices; all default to 1. */
    uint64_t data, tensor, pipeline, context, expert;
    uint64_t interleave; /* model chunks per pipeline device; default 1 */
    uint64_t stage; /* the pipeline stage to estimate; DRY_STAGE_WORST: the fullest */
    bool has_sequence_parallel; /* sequence parallelism in the tensor-parallel group
                                   (Korthikanti et al.) */
    bool has_no_dropout;        /* overrides model.has_dropout */
    /* Norms are built from single operations (Transformers' RMSNorm). */
    bool has_composed_norm;
    bool has_repeated_kv; /* keys and values are expanded to all heads */
    bool has_index_add;   /* experts are summed by index_add_, which saves them */
    bool has_bucket_view; /* DDP's buckets hold the gradients themselves */
    /* Inference: no gradients; each request has a KV cache of `sequence` tokens. */
    bool is_inference;
    uint32_t mask_bytes; /* bytes per element of a dropout mask; default 1, as on a GPU */
    uint64_t requests;   /* concurrent requests in inference; default 1 */
    uint64_t lora_rank;  /* 0: all weights are trained */
    uint32_t lora_targets; /* DRY_LORA_*; default Q and V */
    /* Bytes outside PyTorch's allocator; both defaults are assumptions. */
    uint64_t context_bytes;       /* the driver's context; default 512 MiB */
    uint64_t communication_bytes; /* communication buffers for each degree above 1;
                                     default 256 MiB */
    uint64_t workspace_bytes; /* size of each of two cuBLAS workspaces; default 8519680 */
    uint64_t capacity_bytes;  /* the device's memory; 0, the default: no limit */
    const char *conf;         /* value of PYTORCH_CUDA_ALLOC_CONF; NULL: the defaults */
};

/* Set all fields to their defaults. */
DRY_API void dry_run_setup_init_sized(struct dry_run_setup *setup, size_t struct_size);
#define dry_run_setup_init(setup) dry_run_setup_init_sized(setup, sizeof *(setup))

/* --- the estimate --------------------------------------------------------------------------- */

/* Groups of rows, by the purpose of the memory. */
enum dry_estimate_group {
    DRY_GROUP_WEIGHTS,
    DRY_GROUP_GRADIENTS,
    DRY_GROUP_OPTIMIZER,
    DRY_GROUP_ACTIVATIONS, /* saved for the backward */
    DRY_GROUP_LOSS,        /* logits and tensors computed from them */
    DRY_GROUP_CACHE,       /* keys and values, in inference */
    /* Short-lived: gathered weights, gradients being reduced. */
    DRY_GROUP_TEMPORARY,
    DRY_GROUP_OUTSIDE, /* bytes outside the allocator */
    /* Published formulas, for comparison; they are in no sum. */
    DRY_GROUP_REFERENCE,
};
#define DRY_GROUP_COUNT 9

/* Return the name of a group: "weights", "gradients", "optimizer", "activations", "loss",
   "cache", ... */
DRY_API const char *dry_group_name(enum dry_estimate_group group);

#define DRY_FORMULA_BYTES 96

/* A row of the estimate: bytes, and the formula that gives them. */
struct dry_estimate_row {
    enum dry_estimate_group group;
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES]; /* "e*b*s*h = 2*8*2048*1024" */
    const char *source;              /* publication of the formula; "": evident */
};

/* A tensor that a unit saves for its backward. */
struct dry_estimate_tensor {
    const char *name;
    uint64_t bytes;
    char formula[DRY_FORMULA_BYTES];
};

/* A unit of the model. Saved bytes include the unit's input and exclude its output, which
   the next unit counts. */
struct dry_estimate_unit {
    const char *name;         /* "embedding", "layer", "expert layer", "head" ... */
    uint64_t count;           /* number of such units on this device */
    uint64_t parameter_count; /* parameters of one unit, over all devices */
    uint64_t saved_bytes; /* saved by one unit on this device, without checkpointing */
    uint64_t input_bytes; /* kept if the unit is checkpointed */
    bool saves_input;     /* saved_bytes include the input */
    /* Fields for chains (<drystone/chain.h>), for one unit on this device. */
    uint64_t output_bytes;
    uint64_t grads_bytes; /* gradients of its weights */
    /* Temporary bytes of its forward, beyond its output and saved tensors. */
    uint64_t forward_tmp_bytes;
    /* Temporary bytes of its backward, beyond the gradients of input and output. */
    uint64_t backward_tmp_bytes;
    uint64_t forward_flops; /* operations in matrix products; the backward takes twice as
                               many */
    const struct dry_estimate_tensor *tensors;
    size_t tensor_count;
};

/* Phases of the two simulated steps. */
enum dry_estimate_phase {
    DRY_ESTIMATE_LOAD, /* weights are loaded */
    DRY_ESTIMATE_FORWARD,
    DRY_ESTIMATE_LOSS, /* head and loss, forward and backward */
    DRY_ESTIMATE_BACKWARD,
    DRY_ESTIMATE_STEP,
};
#define DRY_ESTIMATE_PHASE_COUNT 5

/* Return the name of a phase: "load", "forward", "loss", "backward", "step". */
DRY_API const char *dry_estimate_phase_name(enum dry_estimate_phase phase);

struct dry_estimate_peak {
    uint64_t requested_bytes;        /* peak of the requested bytes in the phase */
    uint64_t parts[DRY_GROUP_COUNT]; /* requested bytes by group at that maximum; they sum
                                        to requested_bytes */
    uint64_t allocated_bytes;        /* the maximum allocated in the allocator's blocks */
    uint64_t reserved_bytes;         /* the maximum reserved by the allocator */
};

struct dry_estimate_summary {
    uint64_t parameter_count;        /* parameters of the model */
    uint64_t active_parameter_count; /* parameters used for one token */
    /* Parameters that are trained: with LoRA, the adapters'. */
    uint64_t trained_count;
    uint64_t device_parameter_count; /* parameters on this device, before ZeRO */
    uint64_t stage;                  /* the pipeline stage of this estimate */
    uint64_t flight_count;           /* microbatches whose activations are held at once */
    uint64_t weight_bytes, gradient_bytes, optimizer_bytes;
    uint64_t activation_bytes; /* held activations, plus the segment being recomputed */
    uint64_t cache_bytes;
    uint64_t outside_bytes;
    struct dry_estimate_peak phases[DRY_ESTIMATE_PHASE_COUNT];
    enum dry_estimate_phase peak_phase;
    uint64_t allocated_bytes, reserved_bytes; /* maxima over all phases */
    uint64_t device_bytes;                    /* reserved_bytes + outside_bytes */
    bool fits; /* device_bytes fit setup.capacity_bytes; true if that is 0 */
};

struct dry_estimate;

/*
 * Estimate `model` under `setup`; the result is *estimate. A `memory` of NULL is malloc.
 * A model that does not fit is no error: see `fits`. Cost: proportional to layers x
 * microbatches x pipeline stages that are estimated. Errors: ARGUMENT, LIMIT, MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_create(
    const struct dry_model *model, const struct dry_run_setup *setup,
    const struct dry_memory *memory, struct dry_estimate **estimate,
    struct dry_error *err);
/* End the estimate. NULL is fine. */
DRY_API void dry_estimate_destroy(struct dry_estimate *estimate);
/* Return the totals, which live as long as the estimate. */
DRY_API const struct dry_estimate_summary *dry_estimate_get_summary(
    const struct dry_estimate *estimate);
/* Return the rows and their *count; they live as long as the estimate. */
DRY_API const struct dry_estimate_row *dry_estimate_get_rows(
    const struct dry_estimate *estimate, size_t *count);
/* Return the units and their *count; they live as long as the estimate. */
DRY_API const struct dry_estimate_unit *dry_estimate_get_units(
    const struct dry_estimate *estimate, size_t *count);

/* The field of the setup to maximize. */
enum dry_fit {
    DRY_FIT_BATCH,    /* setup.batch */
    DRY_FIT_SEQUENCE, /* setup.sequence */
    DRY_FIT_REQUESTS, /* setup.requests, in inference */
};

/*
 * Find the largest value of the field `what` that fits setup.capacity_bytes. Values are
 * multiples of `step` (0: 1), found by bisection between `step` and 2^40. A sequence is
 * limited to the model's learned positions, and its step is at least the degree
 * `context`. *value gets the result; 0: not even one step fits. Errors: ARGUMENT (no
 * model, no capacity, an unknown `what`, too large a `step`), and those of
 * dry_estimate_create().
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_estimate_fit(
    const struct dry_model *model, const struct dry_run_setup *setup, enum dry_fit what,
    uint64_t step, uint64_t *value, struct dry_error *err);

/* --- closed forms ------------------------------------------------------------------------- */

/* Bytes of the training state on each device. */
struct dry_state_bytes {
    size_t struct_size; /* DRY_INIT sets it */
    uint64_t weights, gradients, optimizer;
};

/*
 * Compute the bytes of `parameter_count` parameters, all in matrices large enough that no
 * special case of an optimizer applies. Only precision, optimizer, zero and data of
 * `setup` are used, as in ZeRO's table. ARGUMENT: Adafactor, whose bytes depend on
 * shapes; `data` or `zero` out of range. LIMIT: 2^62 bytes or more.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_setup_state_bytes(
    const struct dry_run_setup *setup, uint64_t parameter_count,
    struct dry_state_bytes *bytes, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
