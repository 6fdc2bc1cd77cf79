/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLAN_ESTIMATE_INSIDE_H
#define DRYI_PLAN_ESTIMATE_INSIDE_H

/*
 * An estimate from the inside: units, made of operations and parameters.
 *
 * An operation makes one tensor. The forward allocates it and drops it after its last use,
 * unless the backward of some operation, its saver, needs it. The backward goes through the
 * operations from the last to the first. At each it makes the gradients of the tensors whose
 * last use it was, and those of its weights. Then it drops the gradient of its own output and
 * what it was the saver of. Operation 0 is the unit's input, which the unit before has made;
 * the last is its output.
 *
 * The step (estimate_step.c, estimate_training.c) knows no more than this, and the rows are
 * sums over the same operations. So both cannot disagree.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/estimate.h>

#define DRYI_NO_OP UINT32_MAX
/* Numbers of a configuration and products of them. */
#define DRYI_NUMBER_MAX (UINT64_C(1) << 40)
#define DRYI_SUM_MAX (UINT64_C(1) << 62)

/* --- formulas ----------------------------------------------------------------------------- */

/* The values that the letters of formulas stand for; a letter without a number is 1. */
struct dryi_symbols {
    uint64_t values[128];
};

/*
 * Evaluate "e b s h / c r": letters and numbers, multiplied; behind the bar, divided by; up
 * to a whole number. `text` gets "e*b*s*h/c = 2*8*2048*1024/2", without divisors that are 1.
 * False: more than DRYI_SUM_MAX.
 */
bool dryi_formula_eval(const struct dryi_symbols *symbols, const char *expression,
                       uint64_t *value, char text[DRY_FORMULA_BYTES]);

/* --- units -------------------------------------------------------------------------------- */

struct dryi_op {
    const char *name;
    char formula[DRY_FORMULA_BYTES];
    uint64_t bytes;      /* of what it makes */
    uint64_t grad_bytes; /* of the gradient of that; 0: it has none */
    uint32_t last_use;   /* operation; DRYI_NO_OP: it stays until the unit's backward */
    uint32_t saver;      /* operation whose backward lets it go; DRYI_NO_OP: not saved */
    uint32_t param_first,
        param_count;               /* of the unit's, that its backward has gradients of */
    enum dry_estimate_group group; /* that it counts for while it is saved */
    bool is_aux;                   /* made for the backward alone */
    bool is_made_again;            /* by selective checkpointing, for its saver */
    bool is_tied;                  /* its matrix is the first unit's */
    uint32_t first_dead, next_dead;   /* lists by last use ... */
    uint32_t first_saved, next_saved; /* ... and by saver, made by dryi_unit_end() */
};

struct dryi_param {
    const char *name;
    uint64_t rows, cols; /* cols 0: a vector */
    uint64_t count;      /* of such matrices: experts */
    uint64_t split;      /* devices that share it by tensor or expert parallelism */
    uint64_t elements;   /* on this device */
    bool is_expert, is_frozen;
    bool is_hidden;   /* a matrix inside of a layer, which Muon steps */
    bool is_split_in; /* by its columns, so that its output is whole */
    bool is_copy;     /* of one on another device: no parameter more */
    bool is_wide;     /* of 4 bytes an element, whatever the precision */
    bool is_linear;   /* a matrix that quantization stores in fewer bits */
};

struct dryi_unit {
    const char *name;
    size_t op_first, op_count;
    size_t param_first, param_count;
    uint64_t count;         /* on this device */
    uint64_t model_count;   /* in the model */
    bool is_layer;          /* may be checkpointed */
    bool has_cache;         /* keys and values of earlier tokens are kept in inference */
    uint64_t active_count;  /* parameters that one token meets, of one */
    uint64_t params, local; /* of one: in the model, on this device */
};

#define DRYI_UNITS_MAX 6

struct dry_estimate {
    struct dry_memory memory;
    struct dry_model model;
    struct dry_run_setup setup;
    struct dryi_symbols symbols;
    struct dry_error *err; /* of the call under way */
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

/* --- estimate_units.c: what all builders of units use -------------------------------------- */

/* Begin the next unit; DRY_ERR_* in e->status from then on if there is no memory. */
struct dryi_unit *dryi_unit_begin(struct dry_estimate *e, const char *name);
/*
 * Add an operation to the last unit; returns its index there. Nothing is done after a
 * failure.
 */
uint32_t dryi_op_add(struct dry_estimate *e, const char *name, const char *expression);
/* The operation of that index; valid until the next add. */
struct dryi_op *dryi_op_at(struct dry_estimate *e, uint32_t index);
/* Keep the tensor until the backward of operation `saver`. */
void dryi_op_save(struct dry_estimate *e, uint32_t index, uint32_t saver);
/* Add a tensor made for the backward of the operation before it alone: masks, statistics. */
uint32_t dryi_op_aux(struct dry_estimate *e, const char *name, const char *expression);
/* Add a parameter of the operation that was added last. */
void dryi_param_add(struct dry_estimate *e, const struct dryi_param *param);
void dryi_unit_end(struct dry_estimate *e);

/* --- builders ------------------------------------------------------------------------------ */

void dryi_build_transformer(struct dry_estimate *e);
/* Build the first unit: tokens, patches or sound (estimate_embed.c). */
void dryi_build_embedding(struct dry_estimate *e);
/* Build what lies between an encoder and its decoder (estimate_embed.c). */
void dryi_build_bridge(struct dry_estimate *e);
/* Build a layer, as the last unit (estimate_layer.c). */
enum dryi_layer { DRYI_LAYER_PLAIN, DRYI_LAYER_EXPERTS, DRYI_LAYER_CROSS };
void dryi_build_layer(struct dry_estimate *e, enum dryi_layer kind);
/*
 * Build attention, from the normed input to the context's projection (estimate_attention.c);
 * returns the projection.
 */
uint32_t dryi_build_attention(struct dry_estimate *e, uint32_t input);
/* Build the attention to what the encoder made (estimate_cross.c), likewise. */
uint32_t dryi_build_cross(struct dry_estimate *e, uint32_t input);
/* Build the product of queries, keys and values; then the projection, which it returns. */
struct dryi_heads {
    uint32_t queries, keys, values;
};
uint32_t dryi_build_product(struct dry_estimate *e, const struct dryi_heads *heads,
                            bool is_cross);
void dryi_build_conv(struct dry_estimate *e);

/* The names of a norm's operations. */
struct dryi_norm_names {
    const char *statistics, *wide, *normalized, *output;
};
/*
 * Build a norm of operation `input`: statistics, output, weights; returns the output's index.
 */
uint32_t dryi_build_norm(struct dry_estimate *e, uint32_t input,
                         const struct dryi_norm_names *names);
/* `index` as matrices want it: itself, or under autocast a copy that is narrower. */
uint32_t dryi_build_cast(struct dry_estimate *e, uint32_t index, const char *name);
/* Note that `by` needs operation `index`, too. */
void dryi_op_use(struct dry_estimate *e, uint32_t index, uint32_t by);
/* Build the adapters of so many linear layers: what A makes is saved for B. */
void dryi_build_adapters(struct dry_estimate *e, uint32_t targets);

/* A matrix of a linear layer, its bias and its adapter. */
struct dryi_linear {
    const char *name;
    uint64_t in, out;
    bool is_split_out; /* over the tensor-parallel group by outputs, else by inputs */
    bool has_bias;
    uint32_t target; /* DRY_LORA_*; 0: none can have an adapter */
    uint64_t count;  /* experts; 0: one, of the layer */
};
void dryi_linear_add(struct dry_estimate *e, const struct dryi_linear *linear);
/* Does a linear layer of these targets keep its input? */
bool dryi_keeps_input(const struct dry_estimate *e, uint32_t targets);
bool dryi_has_dropout(const struct dry_estimate *e);

/* --- bytes of weights, gradients, states ---------------------------------------------------- */

struct dryi_widths {
    uint64_t weight, grad, master, state, activation, residual;
};
struct dryi_widths dryi_widths_of(enum dry_precision precision);

#define DRYI_STATES_MAX 6
/* The tensors of an optimizer's state for a parameter, in bytes; returns how many. */
size_t dryi_state_sizes(const struct dry_run_setup *setup, const struct dryi_param *param,
                        uint64_t sizes[DRYI_STATES_MAX]);

enum dryi_kept { DRYI_KEPT_WEIGHTS, DRYI_KEPT_GRADS, DRYI_KEPT_STATES };
/* Is this shared among the data-parallel group? */
bool dryi_is_sharded(const struct dry_run_setup *setup, enum dryi_kept kept);
/* The bytes of one such unit on this device, sharded if it is. */
uint64_t dryi_unit_bytes(const struct dry_estimate *e, const struct dryi_unit *unit,
                         enum dryi_kept kept);
/* The bytes of one parameter, whole. */
uint64_t dryi_param_bytes(const struct dry_estimate *e, const struct dryi_param *param,
                          enum dryi_kept kept);
/*
 * The bytes of autocast's narrower copies of a unit's matrices; tables are looked up as they
 * are.
 */
uint64_t dryi_cast_bytes(const struct dry_estimate *e, const struct dryi_unit *unit);
bool dryi_has_static_grads(const struct dry_run_setup *setup);

/* The bytes of a quantized matrix (estimate_quantize.c), not divided among devices. */
uint64_t dryi_quantized_bytes(const struct dry_model *model,
                              const struct dryi_param *param);
/* Is this matrix stored in fewer bits? */
bool dryi_is_quantized(const struct dry_model *model, const struct dryi_param *param);
/* The bytes of the largest matrix that is widened before it is multiplied with. */
uint64_t dryi_widened_bytes(const struct dry_estimate *e);
enum dry_status dryi_quantization_check(const struct dry_model *model,
                                        struct dry_error *err);

/* --- the rest ------------------------------------------------------------------------------- */

/* Check fields against one another; fill in presets and defaults. */
enum dry_status dryi_model_check(struct dry_model *model, struct dry_error *err);
enum dry_status dryi_setup_take(struct dry_run_setup *to,
                                const struct dry_run_setup *from, struct dry_error *err);
enum dry_status dryi_setup_check(struct dry_run_setup *setup,
                                 const struct dry_model *model, struct dry_error *err);

/* The forwards of model chunks whose activations are there at once; 1 without a pipeline. */
uint64_t dryi_flights(const struct dry_estimate *e);
/*
 * For inference: the bytes of one layer's keys and values; of the logits of one token of all
 * requests.
 */
uint64_t dryi_cache_bytes(const struct dry_estimate *e, bool is_global);
uint64_t dryi_cross_cache_bytes(const struct dry_estimate *e);
/* The tokens of an encoder. */
uint64_t dryi_source_tokens(const struct dry_estimate *e);
uint64_t dryi_token_logits(const struct dry_estimate *e);
/* The length of segments that are run again: so many of a chunk's layers; 0: none. */
uint64_t dryi_segment_layers(const struct dry_estimate *e, uint64_t layers);
uint64_t dryi_isqrt_up(uint64_t x);

void dryi_estimate_rows(struct dry_estimate *e);
/* Run two steps on a simulated device; fills the phases. */
void dryi_estimate_step(struct dry_estimate *e);
/* The bytes that a unit saves for its backward; is_selective: without what is made again. */
uint64_t dryi_unit_saved(const struct dry_estimate *e, const struct dryi_unit *unit,
                         bool is_selective);

/* Fill what a chain needs to know of a unit (estimate_chain.c). */
void dryi_unit_chain(const struct dry_estimate *e, const struct dryi_unit *unit,
                     struct dry_estimate_unit *shown);

/* a + b, a * b; DRYI_SUM_MAX: that or more. */
uint64_t dryi_sum(uint64_t a, uint64_t b);
uint64_t dryi_product(uint64_t a, uint64_t b);
uint64_t dryi_ceil_div(uint64_t a, uint64_t b);

#endif
