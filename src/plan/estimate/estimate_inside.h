/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ESTIMATE_INSIDE_H
#define DRYI_PLAN_ESTIMATE_INSIDE_H

/*
 * The internals of an estimate: units, made of operations and parameters.
 *
 * An operation makes one tensor. The forward allocates it and frees it after its last
 * use, unless the backward of some operation, its saver, needs it. The backward goes
 * through the operations from the last to the first. Each operation's backward makes the
 * gradients of the tensors whose last use it was, and those of its weights. Then it frees
 * the gradient of its own output and the tensors it was the saver of. Operation 0 is the
 * unit's input, made by the unit before; the last is its output.
 *
 * The step (estimate_step.c, estimate_training.c) and the rows use only these operations,
 * so they cannot disagree.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/estimate.h>

#define DRYI_NO_OP UINT32_MAX
/* Limits of a configuration's numbers, and of their products. */
#define DRYI_NUMBER_MAX (UINT64_C(1) << 40)
#define DRYI_SUM_MAX (UINT64_C(1) << 62)

/* --- formulas ----------------------------------------------------------------------------- */

/* The values of the letters in formulas; letters without a meaning are 1. */
struct dryi_symbols {
    uint64_t values[128];
};

/*
 * Evaluate a formula like "e b s h / c r": letters and numbers, multiplied; those after
 * the slash divide. The result is rounded up. `text` gets "e*b*s*h/c = 2*8*2048*1024/2",
 * without divisors that are 1. Returns false if a product reaches DRYI_SUM_MAX.
 */
bool dryi_formula_eval(const struct dryi_symbols *symbols, const char *expression,
                       uint64_t *value, char text[DRY_FORMULA_BYTES]);

/* --- units -------------------------------------------------------------------------------- */

struct dryi_op {
    const char *name;
    char formula[DRY_FORMULA_BYTES];
    uint64_t bytes;      /* bytes of its tensor */
    uint64_t grad_bytes; /* bytes of the tensor's gradient; 0: it has none */
    uint32_t last_use;   /* operation; DRYI_NO_OP: it stays until the unit's backward */
    uint32_t saver;      /* operation whose backward frees it; DRYI_NO_OP: not saved */
    uint32_t param_first, param_count; /* range of the unit's parameters that it uses */
    enum dry_estimate_group group;     /* group that it counts for while it is saved */
    bool is_aux;                       /* made only for the backward */
    bool is_made_again; /* selective checkpointing recomputes it for its saver */
    bool is_tied;       /* its matrix is the first unit's */
    uint32_t first_dead, next_dead;   /* list by last use, filled by dryi_unit_end() */
    uint32_t first_saved, next_saved; /* list by saver, filled by dryi_unit_end() */
};

struct dryi_param {
    const char *name;
    uint64_t rows, cols; /* cols 0: a vector */
    uint64_t count;      /* number of such matrices, one for each expert */
    uint64_t split;      /* devices that share it by tensor or expert parallelism */
    uint64_t elements;   /* number of elements on this device */
    bool is_expert, is_frozen;
    bool is_hidden;   /* a matrix inside a layer; Muon keeps one state for it */
    bool is_split_in; /* split by columns, so that every device has the whole output */
    bool is_copy;     /* copy of a parameter on another device, not counted again */
    bool is_wide;     /* 4 bytes an element at any precision */
    bool is_linear;   /* stored in fewer bits by quantization */
};

struct dryi_unit {
    const char *name;
    size_t op_first, op_count;
    size_t param_first, param_count;
    uint64_t count;         /* instances on this device */
    uint64_t model_count;   /* instances in the model */
    bool is_layer;          /* can be checkpointed */
    bool has_cache;         /* inference keeps keys and values of earlier tokens */
    uint64_t active_count;  /* parameters of one unit that one token uses */
    uint64_t params, local; /* parameters of one unit in the model, on this device */
};

#define DRYI_UNITS_MAX 6

struct dry_estimate {
    struct dry_memory memory;
    struct dry_model model;
    struct dry_run_setup setup;
    struct dryi_symbols symbols;
    struct dry_error *err; /* error of the current call */
    enum dry_status status;

    struct dryi_op *ops;
    size_t op_count, op_capacity;
    struct dryi_param *params;
    size_t param_count, param_capacity;
    struct dryi_unit units[DRYI_UNITS_MAX]; /* in the order of the forward */
    size_t unit_count;

    struct dry_estimate_unit shown_units[DRYI_UNITS_MAX];
    struct dry_estimate_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    struct dry_estimate_row *rows;
    size_t row_count, row_capacity;
    struct dry_estimate_summary summary;
};

/* --- estimate_units.c: functions for all builders of units --------------------------------- */

/* Begin the next unit. If memory runs out, e->status says so. */
struct dryi_unit *dryi_unit_begin(struct dry_estimate *e, const char *name);
/*
 * Add an operation to the last unit. Returns its index there. Does nothing once e->status
 * is an error.
 */
uint32_t dryi_op_add(struct dry_estimate *e, const char *name, const char *expression);
/* Return an operation of the last unit; valid until the next add. */
struct dryi_op *dryi_op_at(struct dry_estimate *e, uint32_t index);
/* Keep the tensor until the backward of operation `saver`. */
void dryi_op_save(struct dry_estimate *e, uint32_t index, uint32_t saver);
/* Add a tensor that only the backward needs, like a mask or statistics. */
uint32_t dryi_op_aux(struct dry_estimate *e, const char *name, const char *expression);
/* Add a parameter to the operation added last. */
void dryi_param_add(struct dry_estimate *e, const struct dryi_param *param);
void dryi_unit_end(struct dry_estimate *e);

/* --- builders ------------------------------------------------------------------------------ */

void dryi_build_transformer(struct dry_estimate *e);
/* Build the first unit: tokens, patches or sound (estimate_embed.c). */
void dryi_build_embedding(struct dry_estimate *e);
/* Build the unit between an encoder and its decoder (estimate_embed.c). */
void dryi_build_bridge(struct dry_estimate *e);
/* Build a layer in the last unit (estimate_layer.c). */
enum dryi_layer { DRYI_LAYER_PLAIN, DRYI_LAYER_EXPERTS, DRYI_LAYER_CROSS };
void dryi_build_layer(struct dry_estimate *e, enum dryi_layer kind);
/*
 * Build attention, from the normed input to the output projection (estimate_attention.c).
 * Returns the projection.
 */
uint32_t dryi_build_attention(struct dry_estimate *e, uint32_t input);
/* Build the attention to the encoder's states (estimate_cross.c). Returns the projection. */
uint32_t dryi_build_cross(struct dry_estimate *e, uint32_t input);
/* Build the product of queries, keys and values, and the projection, which is returned. */
struct dryi_heads {
    uint32_t queries, keys, values;
};
uint32_t dryi_build_product(struct dry_estimate *e, const struct dryi_heads *heads,
                            bool is_cross);
void dryi_build_conv(struct dry_estimate *e);

struct dryi_norm_names {
    const char *statistics, *wide, *normalized, *output;
};
/* Build a norm of operation `input`: statistics, output, weights. Returns the output. */
uint32_t dryi_build_norm(struct dry_estimate *e, uint32_t input,
                         const struct dryi_norm_names *names);
/* Return `index` in the width of matrices: itself, or under autocast a narrower copy. */
uint32_t dryi_build_cast(struct dry_estimate *e, uint32_t index, const char *name);
/* Record that operation `by` needs the tensor of `index`. */
void dryi_op_use(struct dry_estimate *e, uint32_t index, uint32_t by);
/* Add the outputs of LoRA's A for these targets, which are saved for B. */
void dryi_build_adapters(struct dry_estimate *e, uint32_t targets);

/* A linear layer: its matrix, bias and adapter. */
struct dryi_linear {
    const char *name;
    uint64_t in, out;
    bool is_split_out; /* tensor parallelism splits its outputs, else its inputs */
    bool has_bias;
    uint32_t target; /* DRY_LORA_*; 0: no adapters */
    uint64_t count;  /* experts; 0: a single layer */
};
void dryi_linear_add(struct dry_estimate *e, const struct dryi_linear *linear);
/* Return whether linear layers of these targets keep their input for the backward. */
bool dryi_keeps_input(const struct dry_estimate *e, uint32_t targets);
bool dryi_has_dropout(const struct dry_estimate *e);

/* --- bytes of weights, gradients, states ---------------------------------------------------- */

struct dryi_widths {
    uint64_t weight, grad, master, state, activation, residual;
};
struct dryi_widths dryi_widths_get(enum dry_precision precision);

#define DRYI_STATES_MAX 6
/* Compute the bytes of each tensor of a parameter's optimizer state. Returns their number. */
size_t dryi_state_sizes(const struct dry_run_setup *setup, const struct dryi_param *param,
                        uint64_t sizes[DRYI_STATES_MAX]);

enum dryi_kept { DRYI_KEPT_WEIGHTS, DRYI_KEPT_GRADS, DRYI_KEPT_STATES };
/* Return whether ZeRO shards these bytes over the data-parallel group. */
bool dryi_is_sharded(const struct dry_run_setup *setup, enum dryi_kept kept);
/* Return the bytes of one such unit on this device, after sharding. */
uint64_t dryi_unit_bytes(const struct dry_estimate *e, const struct dryi_unit *unit,
                         enum dryi_kept kept);
/* Return the bytes of one parameter, before sharding. */
uint64_t dryi_param_bytes(const struct dry_estimate *e, const struct dryi_param *param,
                          enum dryi_kept kept);
/* Return the bytes of autocast's narrower copies of a unit's matrices. Tables are not cast. */
uint64_t dryi_cast_bytes(const struct dry_estimate *e, const struct dryi_unit *unit);
bool dryi_has_static_grads(const struct dry_run_setup *setup);

/* Return the bytes of a quantized matrix (estimate_quantize.c), before it is split over devices. */
uint64_t dryi_quantized_bytes(const struct dry_model *model,
                              const struct dryi_param *param);
/* Return whether the matrix is stored in fewer bits. */
bool dryi_is_quantized(const struct dry_model *model, const struct dryi_param *param);
/* Return the bytes of the largest matrix that is widened before its product. */
uint64_t dryi_widened_bytes(const struct dry_estimate *e);
enum dry_status dryi_quantization_check(const struct dry_model *model,
                                        struct dry_error *err);

/* --- checks, sums, steps, rows -------------------------------------------------------------- */

/* Check fields against one another, and fill in derived values and defaults. */
enum dry_status dryi_model_check(struct dry_model *model, struct dry_error *err);
enum dry_status dryi_setup_take(struct dry_run_setup *to,
                                const struct dry_run_setup *from, struct dry_error *err);
enum dry_status dryi_setup_check(struct dry_run_setup *setup,
                                 const struct dry_model *model, struct dry_error *err);

/* Return the number of chunk forwards whose activations exist at once; 1 without a pipeline. */
uint64_t dryi_flights(const struct dry_estimate *e);
/*
 * For inference: dryi_cache_bytes() is one layer's keys and values, dryi_token_logits()
 * one token's logits, both for all requests.
 */
uint64_t dryi_cache_bytes(const struct dry_estimate *e, bool is_global);
uint64_t dryi_cross_cache_bytes(const struct dry_estimate *e);
/* Return the number of the encoder's tokens. */
uint64_t dryi_source_tokens(const struct dry_estimate *e);
uint64_t dryi_token_logits(const struct dry_estimate *e);
/* Return the length in layers of segments that are recomputed, for a chunk of `layers`; 0: none. */
uint64_t dryi_segment_layers(const struct dry_estimate *e, uint64_t layers);
uint64_t dryi_isqrt_up(uint64_t x);

void dryi_estimate_rows(struct dry_estimate *e);
/* Run two steps on a simulated device. Fills the summary's phases. */
void dryi_estimate_step(struct dry_estimate *e);
/* Return the bytes that a unit saves for its backward; is_selective: less what is recomputed. */
uint64_t dryi_unit_saved(const struct dry_estimate *e, const struct dryi_unit *unit,
                         bool is_selective);

/* Fill the fields of a unit that a chain needs (estimate_chain.c). */
void dryi_unit_chain(const struct dry_estimate *e, const struct dryi_unit *unit,
                     struct dry_estimate_unit *shown);

/* a + b and a * b, at most DRYI_SUM_MAX. */
uint64_t dryi_sum(uint64_t a, uint64_t b);
uint64_t dryi_product(uint64_t a, uint64_t b);
uint64_t dryi_ceil_div(uint64_t a, uint64_t b);

#endif
