/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan/estimate: parameters that are known to the last one, Korthikanti's formula and its
 * tables, ZeRO's, what phases and parts add up to, what is refused, every failed allocation.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/card.h>
#include <drystone/estimate.h>

#include "support/failing_memory.h"

#define GIB (UINT64_C(1) << 30)

static struct dry_model
find(const char *name)
{
    struct dry_model model = DRY_INIT(struct dry_model);
    assert_int_equal(dry_model_find(name, &model), DRY_OK);
    return model;
}

static struct dry_run_setup
init_setup(uint64_t batch, uint64_t sequence)
{
    struct dry_run_setup setup;
    dry_run_setup_init(&setup);
    setup.batch = batch;
    setup.sequence = sequence;
    return setup;
}

static struct dry_estimate *
make(const struct dry_model *model, const struct dry_run_setup *setup)
{
    struct dry_estimate *estimate = NULL;
    struct dry_error err = {.text = ""};
    if (dry_estimate_create(model, setup, NULL, &estimate, &err) != DRY_OK)
        fail_msg("%s", err.text);
    return estimate;
}

static const struct dry_estimate_unit *
find_unit(const struct dry_estimate *estimate, const char *name)
{
    size_t count;
    const struct dry_estimate_unit *units = dry_estimate_get_units(estimate, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    }
    fail_msg("no unit %s", name);
    abort(); /* not reached, which compilers do not know */
}

/* 0: there is no such row. */
static uint64_t
find_row(const struct dry_estimate *estimate, const char *name)
{
    size_t count;
    const struct dry_estimate_row *rows = dry_estimate_get_rows(estimate, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].bytes;
    }
    return 0;
}

/* Korthikanti et al. do without the means and deviations of norms. */
static uint64_t
without_statistics(const struct dry_estimate_unit *unit)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < unit->tensor_count; i++) {
        if (!strstr(unit->tensors[i].name, "statistics"))
            sum += unit->tensors[i].bytes;
    }
    return sum;
}

/* A layer of theirs: GELU of one kernel, dropout, h = 1024, a = 16. */
static struct dry_model
korthikanti(bool has_dropout)
{
    struct dry_model m;
    dry_model_init(&m);
    m.layers = 24;
    m.hidden = 1024;
    m.heads = 16;
    m.ffn = 4096;
    m.vocab = 50257;
    m.is_tied = m.has_qkv_bias = m.has_out_bias = m.has_mlp_bias = true;
    m.has_dropout = has_dropout;
    return m;
}

/* --- parameters --------------------------------------------------------------------------- */

static void
parameters_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t count;
    } known[] = {
        {"gpt2", 124439808},          {"gpt2-medium", 354823168},
        {"gpt2-xl", 1557611200},      {"llama-2-7b", 6738415616},
        {"llama-2-13b", 13015864320}, {"llama-2-70b", 68976648192},
        {"llama-3-8b", 8030261248},   {"mixtral-8x7b", 46702792704},
        {"mistral-7b", 7241732096},   {"qwen2-7b", 7615616512},
        {"pythia-160m", 162322944},   {"bert-base", 109482240},
    };
    struct dry_run_setup setup = init_setup(1, 128);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct dry_model model = find(known[i].name);
        struct dry_estimate *e = make(&model, &setup);
        uint64_t count = dry_estimate_get_summary(e)->parameter_count;
        if (count != known[i].count)
            fail_msg("%s: %llu", known[i].name, (unsigned long long)count);
        dry_estimate_destroy(e);
    }
}

static void
active_parameters_leave_experts_out(void **state)
{
    (void)state;
    struct dry_model model = find("mixtral-8x7b");
    struct dry_run_setup setup = init_setup(1, 128);
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    uint64_t six = UINT64_C(32) * 6 * 3 * 4096 * 14336;
    assert_true(s->active_parameter_count == s->parameter_count - six);
    dry_estimate_destroy(e);
    model = find("deepseek-v3");
    e = make(&model, &setup);
    s = dry_estimate_get_summary(e);
    assert_true(s->parameter_count / 1000000000 == 671);
    assert_true(s->active_parameter_count / 1000000000 == 37);
    dry_estimate_destroy(e);
}

/* Splitting by tensors divides matrices, not norms; by stages, layers. */
static void
devices_share_the_parameters(void **state)
{
    (void)state;
    struct dry_model model = find("llama-2-7b");
    struct dry_run_setup setup = init_setup(1, 128);
    setup.tensor = 8;
    struct dry_estimate *e = make(&model, &setup);
    uint64_t norms = 65 * 4096, all = 6738415616;
    assert_true(dry_estimate_get_summary(e)->device_parameter_count ==
                (all - norms) / 8 + norms);
    dry_estimate_destroy(e);
    setup.tensor = 1;
    setup.pipeline = 4;
    uint64_t sum = 0;
    for (setup.stage = 0; setup.stage < 4; setup.stage++) {
        e = make(&model, &setup);
        sum += dry_estimate_get_summary(e)->device_parameter_count;
        dry_estimate_destroy(e);
    }
    assert_true(sum == all);
}

/* --- activations -------------------------------------------------------------------------- */

static void
layers_are_korthikantis(void **state)
{
    (void)state;
    uint64_t s = 2048, b = 8, h = 1024, a = 16, sbh = s * b * h;
    struct dry_run_setup setup = init_setup(b, s);
    struct dry_model model = korthikanti(true);
    static const struct {
        enum dry_precision precision;
        enum dry_attention attention;
        uint64_t rows, scores; /* sbh * rows + a s b * scores */
        bool has_dropout;
    } cases[] = {
        {DRY_PRECISION_MIXED, DRY_ATTENTION_EAGER, 34, 5 * 2048, true},
        {DRY_PRECISION_MIXED, DRY_ATTENTION_FLASH, 34, 4, true},
        {DRY_PRECISION_MIXED, DRY_ATTENTION_FLASH, 32, 4, false},
        {DRY_PRECISION_MIXED, DRY_ATTENTION_EAGER, 32, 2 * 2048, false},
        {DRY_PRECISION_FP32, DRY_ATTENTION_FLASH, 64, 4, false},
        {DRY_PRECISION_FP32, DRY_ATTENTION_EAGER, 66, 9 * 2048, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup.precision = cases[i].precision;
        setup.attention = cases[i].attention;
        model.has_dropout = cases[i].has_dropout;
        struct dry_estimate *e = make(&model, &setup);
        const struct dry_estimate_unit *layer = find_unit(e, "layer");
        assert_true(without_statistics(layer) ==
                    sbh * cases[i].rows + a * s * b * cases[i].scores);
        assert_true(layer->saved_bytes == without_statistics(layer) + 16 * s * b);
        dry_estimate_destroy(e);
    }
}

static uint64_t
layer_bytes(const struct dry_model *model, const struct dry_run_setup *setup)
{
    struct dry_estimate *e = make(model, setup);
    uint64_t bytes = without_statistics(find_unit(e, "layer"));
    uint64_t paper = find_row(e, "Korthikanti et al., a layer");
    if (setup->checkpointing == DRY_CHECKPOINTING_NONE)
        assert_true(bytes == paper);
    else
        bytes = paper;
    dry_estimate_destroy(e);
    return bytes;
}

static void
parallel_layers_are_korthikantis(void **state)
{
    (void)state;
    uint64_t s = 2048, b = 8, h = 1024, a = 16, t = 8, sbh = s * b * h,
             q = 5 * a * s * s * b;
    struct dry_run_setup setup = init_setup(b, s);
    struct dry_model model = korthikanti(true);
    setup.precision = DRY_PRECISION_MIXED;
    setup.attention = DRY_ATTENTION_EAGER;
    setup.tensor = t;
    assert_true(layer_bytes(&model, &setup) == 10 * sbh + (24 * sbh + q) / t);
    setup.has_sequence_parallel = true;
    assert_true(layer_bytes(&model, &setup) == (34 * sbh + q) / t);
    setup.checkpointing = DRY_CHECKPOINTING_SELECTIVE;
    assert_true(layer_bytes(&model, &setup) == 34 * sbh / t);
    setup.has_sequence_parallel = false;
    assert_true(layer_bytes(&model, &setup) == 10 * sbh + 24 * sbh / t);
    setup.checkpointing = DRY_CHECKPOINTING_FULL;
    assert_true(layer_bytes(&model, &setup) == 2 * sbh);
}

static void
gated_layers_save_four_products(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 4096);
    struct dry_model model = find("llama-2-7b");
    setup.precision = DRY_PRECISION_MIXED;
    struct dry_estimate *e = make(&model, &setup);
    /* 2sb(6h + 2h + 4f) + 4asb + 8sb: 600.5 MiB. */
    assert_true(find_unit(e, "layer")->saved_bytes == 629702656);
    dry_estimate_destroy(e);
    model = find("llama-3-8b");
    setup.sequence = 8192;
    e = make(&model, &setup);
    uint64_t sb = 8192, h = 4096, f = 14336;
    assert_true(find_unit(e, "layer")->saved_bytes ==
                2 * sb * (6 * h + h / 2 + 4 * f) + 4 * 32 * sb + 8 * sb);
    dry_estimate_destroy(e);
}

/* The tables of L = 24, b = 8, s = 2048, h = 1024: (k - 1) a + g A. */
static void
checkpoints_hold_inputs_and_a_segment(void **state)
{
    (void)state;
    static const struct {
        enum dry_checkpointing kind;
        uint64_t count, kept, layers;
    } cases[] = {
        {DRY_CHECKPOINTING_NONE, 0, 0, 24},   {DRY_CHECKPOINTING_SQRT, 0, 4, 5},
        {DRY_CHECKPOINTING_SQRT, 12, 11, 2},  {DRY_CHECKPOINTING_FULL, 0, 23, 1},
        {DRY_CHECKPOINTING_EVERY, 2, 11, 13},
    };
    struct dry_run_setup setup = init_setup(8, 2048);
    struct dry_model model = korthikanti(true);
    setup.precision = DRY_PRECISION_MIXED;
    setup.attention = DRY_ATTENTION_EAGER;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup.checkpointing = cases[i].kind;
        setup.checkpoint_count = cases[i].count;
        struct dry_estimate *e = make(&model, &setup);
        const struct dry_estimate_unit *layer = find_unit(e, "layer");
        uint64_t layers = find_row(e, "layers, all saved") +
                          find_row(e, "inputs of segments kept") +
                          find_row(e, "the recomputed segment");
        assert_true(layers == cases[i].kept * layer->input_bytes +
                                  cases[i].layers * layer->saved_bytes);
        dry_estimate_destroy(e);
    }
}

static void
the_seed_formula_is_a_row(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(8, 2048);
    struct dry_model model = korthikanti(true);
    struct dry_estimate *e = make(&model, &setup);
    assert_true(find_row(e, "L*B*S*H*bytes") == 1610612736);
    assert_true(find_row(e, "sqrt(L)*B*S*H*bytes") == 328764948);
    dry_estimate_destroy(e);
    setup.precision = DRY_PRECISION_MIXED;
    setup.attention = DRY_ATTENTION_EAGER;
    e = make(&model, &setup);
    uint64_t bytes = dry_estimate_get_summary(e)->activation_bytes;
    assert_true(bytes > 72 * GIB && bytes < 74 * GIB);
    dry_estimate_destroy(e);
}

static void
first_stages_hold_more_microbatches(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 256);
    struct dry_model model = korthikanti(false);
    setup.pipeline = 4;
    setup.accumulation = 16;
    for (setup.stage = 0; setup.stage < 4; setup.stage++) {
        struct dry_estimate *e = make(&model, &setup);
        assert_true(dry_estimate_get_summary(e)->flight_count == 4 - setup.stage);
        assert_true(find_row(e, "layers, all saved") ==
                    (4 - setup.stage) * 6 * find_unit(e, "layer")->saved_bytes);
        dry_estimate_destroy(e);
    }
    setup.stage = 0;
    setup.interleave = 2; /* L (1 + (p - 1) / (p m)) layers */
    struct dry_estimate *e = make(&model, &setup);
    assert_true(find_row(e, "layers, all saved") ==
                (24 + 24 * 3 / 8) * find_unit(e, "layer")->saved_bytes);
    dry_estimate_destroy(e);
    setup.interleave = 1;
    setup.accumulation = 2;
    e = make(&model, &setup);
    assert_true(dry_estimate_get_summary(e)->flight_count == 2);
    dry_estimate_destroy(e);
}

/* Two a weight and token, four for scores; what a chain charges itself is left out. */
static void
units_are_stages_of_a_chain(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(8, 1024);
    struct dry_model model = korthikanti(false);
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_unit *layer = find_unit(e, "layer"),
                                   *head = find_unit(e, "head");
    uint64_t n = 8 * 1024, h = 1024, row = 4 * n * h, logits = 4 * n * 50257;
    assert_true(layer->forward_flops == 2 * n * 12 * h * h + 4 * n * 1024 * h);
    assert_true(head->forward_flops == 2 * n * h * 50257);
    assert_true(find_unit(e, "embedding")->forward_flops == 0);
    assert_true(layer->saves_input && layer->output_bytes == row);
    assert_true(layer->input_bytes == row);
    assert_true(layer->grads_bytes == 4 * layer->parameter_count);
    assert_true(layer->forward_tmp_bytes == row);
    /* Logits, logarithms, and a gradient of each. */
    assert_true(head->backward_tmp_bytes == 4 * logits);
    uint64_t flops = layer->forward_flops;
    dry_estimate_destroy(e);
    setup.tensor = 4;
    e = make(&model, &setup);
    assert_true(find_unit(e, "layer")->forward_flops == flops / 4);
    dry_estimate_destroy(e);
}

/* --- states ------------------------------------------------------------------------------- */

static void
zero_divides_as_its_table_says(void **state)
{
    (void)state;
    static const uint64_t sums[] = {120000000000, 31406250000, 16640625000, 1875000000};
    struct dry_run_setup setup = init_setup(1, 1);
    struct dry_state_bytes bytes = DRY_INIT(struct dry_state_bytes);
    setup.precision = DRY_PRECISION_MIXED;
    setup.data = 64;
    for (setup.zero = 0; setup.zero < 4; setup.zero++) {
        assert_int_equal(dry_setup_state_bytes(&setup, 7500000000, &bytes, NULL), DRY_OK);
        assert_true(bytes.weights + bytes.gradients + bytes.optimizer ==
                    sums[setup.zero]);
    }
}

static void
bytes_a_parameter(void **state)
{
    (void)state;
    static const struct {
        enum dry_precision precision;
        enum dry_optimizer optimizer;
        uint64_t bytes; /* of 1024 * 1024 parameters, divided by 4096 */
    } cases[] = {
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_SGD, 8 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_MOMENTUM, 12 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_ADAMW, 16 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_AMSGRAD, 20 * 256},
        {DRY_PRECISION_AMP, DRY_OPTIMIZER_ADAM, 16 * 256},
        {DRY_PRECISION_MIXED, DRY_OPTIMIZER_ADAM, 16 * 256},
        {DRY_PRECISION_MASTER, DRY_OPTIMIZER_ADAM, 18 * 256},
        {DRY_PRECISION_BF16, DRY_OPTIMIZER_ADAM, 8 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_ADAMW_8BIT, 10 * 256 + 8},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_LION, 12 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_RMSPROP, 12 * 256},
        {DRY_PRECISION_FP32, DRY_OPTIMIZER_MUON, 12 * 256},
    };
    struct dry_run_setup setup = init_setup(1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dry_state_bytes b = DRY_INIT(struct dry_state_bytes);
        setup.precision = cases[i].precision;
        setup.optimizer = cases[i].optimizer;
        assert_int_equal(dry_setup_state_bytes(&setup, 1 << 20, &b, NULL), DRY_OK);
        assert_true(b.weights + b.gradients + b.optimizer == cases[i].bytes * 4096);
    }
    setup.optimizer = DRY_OPTIMIZER_ADAFACTOR;
    struct dry_state_bytes b = DRY_INIT(struct dry_state_bytes);
    assert_int_equal(dry_setup_state_bytes(&setup, 1, &b, NULL), DRY_ERR_ARGUMENT);
}

/* One layer with fewer keys than queries, of which every matrix has two different sides. */
static struct dry_model
uneven_layer(void)
{
    struct dry_model m;
    dry_model_init(&m);
    m.layers = 1;
    m.hidden = 1024;
    m.heads = 8;
    m.kv_heads = 2;
    m.ffn = 3072;
    m.vocab = 5120;
    m.norm = DRY_NORM_RMS;
    m.is_gated = true;
    return m;
}

/*
 * 8 bits and a scale every 256 elements, but 4 bytes in tensors of less than 4096 elements;
 * of Adafactor a row and a column of every matrix, of what is none all of it.
 */
static void
states_go_by_the_shapes_of_tensors(void **state)
{
    (void)state;
    const struct dry_model model = uneven_layer();
    struct dry_run_setup setup = init_setup(1, 64);
    const uint64_t matrices[][2] = {{5120, 1024}, {1024, 1024}, {256, 1024},
                                    {256, 1024},  {1024, 1024}, {3072, 1024},
                                    {3072, 1024}, {1024, 3072}, {5120, 1024}};
    uint64_t large = 0, sides = 0, norms = 3 * 1024;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        large += matrices[i][0] * matrices[i][1];
        sides += matrices[i][0] + matrices[i][1];
    }
    setup.precision = DRY_PRECISION_FP32;
    setup.optimizer = DRY_OPTIMIZER_ADAMW_8BIT;
    struct dry_estimate *e = make(&model, &setup);
    assert_int_equal(dry_estimate_get_summary(e)->parameter_count, large + norms);
    assert_int_equal(dry_estimate_get_summary(e)->optimizer_bytes,
                     2 * (large + large / 256 * 4 + 4 * norms));
    dry_estimate_destroy(e);
    setup.optimizer = DRY_OPTIMIZER_ADAFACTOR;
    e = make(&model, &setup);
    assert_int_equal(dry_estimate_get_summary(e)->optimizer_bytes, 4 * (sides + norms));
    dry_estimate_destroy(e);
}

/* Of 8 data-parallel devices 4 share the experts: two have the same, and split those. */
static void
spread_experts_are_split_by_fewer(void **state)
{
    (void)state;
    const struct dry_model model = find("mixtral-8x7b");
    const uint64_t experts = UINT64_C(32) * 8 * 3 * 4096 * 14336;
    const uint64_t dense = UINT64_C(46702792704) - experts;
    struct dry_run_setup setup = init_setup(1, 64);
    setup.precision = DRY_PRECISION_BF16;
    setup.data = 8;
    setup.expert = 4;
    setup.zero = 3;
    struct dry_estimate *e = make(&model, &setup);
    assert_int_equal(dry_estimate_get_summary(e)->weight_bytes,
                     2 * (dense / 8 + experts / 4 / 2));
    dry_estimate_destroy(e);
}

/* Attention reads the copies, and so they are what it saves: four of each of two heads. */
static void
repeated_keys_are_saved_for_all_heads(void **state)
{
    (void)state;
    const struct dry_model model = uneven_layer();
    struct dry_run_setup setup = init_setup(2, 64);
    setup.precision = DRY_PRECISION_BF16;
    struct dry_estimate *e = make(&model, &setup);
    uint64_t shared = find_unit(e, "layer")->saved_bytes;
    dry_estimate_destroy(e);
    setup.has_repeated_kv = true;
    e = make(&model, &setup);
    assert_int_equal(find_unit(e, "layer")->saved_bytes,
                     shared + UINT64_C(2) * 2 * 64 * (8 - 2) * 128 * 2);
    dry_estimate_destroy(e);
}

static void
adapters_alone_are_trained(void **state)
{
    (void)state;
    struct dry_model model = find("llama-2-7b");
    struct dry_run_setup setup = init_setup(1, 512);
    setup.precision = DRY_PRECISION_MIXED;
    setup.lora_rank = 16;
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    uint64_t adapters = 32 * 2 * 16 * (4096 + 4096);
    assert_true(s->trained_count == adapters);
    assert_true(s->parameter_count == 6738415616 + adapters);
    assert_true(s->gradient_bytes == 2 * adapters && s->optimizer_bytes == 12 * adapters);
    uint64_t some = find_unit(e, "layer")->saved_bytes;
    dry_estimate_destroy(e);
    setup.lora_rank = 0;
    e = make(&model, &setup);
    assert_true(find_unit(e, "layer")->saved_bytes > some);
    dry_estimate_destroy(e);
}

/* --- phases ------------------------------------------------------------------------------- */

static void
check_peaks(const struct dry_estimate *e)
{
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    uint64_t most = 0;
    for (int i = 0; i < DRY_ESTIMATE_PHASE_COUNT; i++) {
        const struct dry_estimate_peak *p = &s->phases[i];
        uint64_t sum = 0;
        for (int g = 0; g < DRY_GROUP_COUNT; g++)
            sum += p->parts[g];
        assert_true(sum == p->requested_bytes);
        assert_true(p->requested_bytes <= p->allocated_bytes);
        assert_true(p->allocated_bytes <= p->reserved_bytes);
        most = p->allocated_bytes > most ? p->allocated_bytes : most;
    }
    assert_true(s->allocated_bytes == most);
    assert_true(s->phases[s->peak_phase].allocated_bytes == most);
    assert_true(s->device_bytes == s->reserved_bytes + s->outside_bytes);
}

/* Everything kept is there in every phase; the backward holds what was saved. */
static void
parts_are_what_rows_say(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(4, 512);
    struct dry_model model = korthikanti(true);
    for (int kind = 0; kind < DRY_CHECKPOINTING_COUNT; kind++) {
        setup.checkpointing = (enum dry_checkpointing)kind;
        struct dry_estimate *e = make(&model, &setup);
        const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
        check_peaks(e);
        const struct dry_estimate_peak *loss = &s->phases[DRY_ESTIMATE_LOSS];
        const struct dry_estimate_peak *step = &s->phases[DRY_ESTIMATE_STEP];
        assert_true(loss->parts[DRY_GROUP_WEIGHTS] == s->weight_bytes);
        assert_true(step->parts[DRY_GROUP_GRADIENTS] == s->gradient_bytes);
        assert_true(step->parts[DRY_GROUP_OPTIMIZER] == s->optimizer_bytes);
        assert_true(step->parts[DRY_GROUP_ACTIVATIONS] == 0);
        if (kind == DRY_CHECKPOINTING_NONE)
            assert_true(loss->parts[DRY_GROUP_ACTIVATIONS] == s->activation_bytes);
        dry_estimate_destroy(e);
    }
}

static uint64_t
peak_of(const struct dry_model *model, const struct dry_run_setup *setup)
{
    struct dry_estimate *e = make(model, setup);
    check_peaks(e);
    uint64_t peak = dry_estimate_get_summary(e)->allocated_bytes;
    dry_estimate_destroy(e);
    return peak;
}

/* Less memory for more work, and never the other way round. */
static void
means_against_memory_help(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(8, 1024), other = setup;
    struct dry_model model = korthikanti(true);
    setup.attention = other.attention = DRY_ATTENTION_EAGER;
    uint64_t all = peak_of(&model, &setup);
    other.checkpointing = DRY_CHECKPOINTING_SELECTIVE;
    uint64_t selective = peak_of(&model, &other);
    other.checkpointing = DRY_CHECKPOINTING_FULL;
    uint64_t full = peak_of(&model, &other);
    assert_true(full < selective && selective < all);
    other = setup;
    other.attention = DRY_ATTENTION_FLASH;
    assert_true(peak_of(&model, &other) < all);
    other = setup;
    other.tensor = 4;
    assert_true(peak_of(&model, &other) < all);
}

/* With few tokens, where the states are what counts. */
static void
every_stage_of_zero_helps(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 64);
    struct dry_model model = korthikanti(false);
    uint64_t before = UINT64_MAX;
    setup.data = 8;
    for (setup.zero = 0; setup.zero < 4; setup.zero++) {
        uint64_t peak = peak_of(&model, &setup);
        assert_true(peak < before);
        before = peak;
    }
}

/* The step of many tensors at once has its peak there when there are few tokens. */
static void
the_peak_may_be_the_step(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 16);
    struct dry_model model = korthikanti(false);
    struct dry_estimate *e = make(&model, &setup);
    assert_int_equal(dry_estimate_get_summary(e)->peak_phase, DRY_ESTIMATE_STEP);
    assert_true(find_row(e, "the optimizer's step") ==
                4 * dry_estimate_get_summary(e)->parameter_count);
    dry_estimate_destroy(e);
    setup.step = DRY_STEP_FUSED;
    e = make(&model, &setup);
    assert_true(find_row(e, "the optimizer's step") == 0);
    dry_estimate_destroy(e);
}

static void
accumulated_gradients_meet_activations(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(4, 512);
    struct dry_model model = korthikanti(true);
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    assert_true(s->phases[DRY_ESTIMATE_FORWARD].parts[DRY_GROUP_GRADIENTS] == 0);
    dry_estimate_destroy(e);
    setup.accumulation = 8;
    e = make(&model, &setup);
    s = dry_estimate_get_summary(e);
    assert_true(s->phases[DRY_ESTIMATE_FORWARD].parts[DRY_GROUP_GRADIENTS] ==
                s->gradient_bytes);
    dry_estimate_destroy(e);
}

static void
every_setup_is_consistent(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "mixtral-8x7b", "bert-base",
                                        "pythia-160m", "deepseek-v3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dry_model model = find(names[i]);
        if (model.layers > 12)
            model.layers = 6;
        for (unsigned bits = 0; bits < 64; bits++) {
            struct dry_run_setup setup = init_setup(1, 64);
            setup.precision = (enum dry_precision)(bits % DRY_PRECISION_COUNT);
            setup.optimizer = (enum dry_optimizer)(bits % DRY_OPTIMIZER_COUNT);
            setup.checkpointing =
                (enum dry_checkpointing)(bits % DRY_CHECKPOINTING_COUNT);
            setup.attention = (enum dry_attention)(bits % DRY_ATTENTION_COUNT);
            setup.step = (enum dry_step_kind)(bits % DRY_STEP_KIND_COUNT);
            setup.data = bits & 1 ? 4 : 1;
            setup.zero = bits >> 1 & 3;
            setup.pipeline = bits & 8 ? 3 : 1;
            setup.interleave = bits & 8 && bits & 16 ? 2 : 1;
            setup.accumulation = bits & 16 ? 4 : 1;
            setup.lora_rank = bits & 32 && bits & 4 ? 4 : 0;
            setup.has_composed_norm = setup.has_repeated_kv = bits & 4;
            setup.tensor = bits & 32 ? 2 : 1;
            setup.has_sequence_parallel = bits & 2;
            struct dry_estimate *e = make(&model, &setup);
            check_peaks(e);
            assert_true(dry_estimate_get_summary(e)->fits);
            dry_estimate_destroy(e);
        }
    }
}

/* --- inference, cards, what fits ---------------------------------------------------------- */

static void
caches_hold_keys_and_values(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 4096);
    struct dry_model model = find("llama-2-70b");
    setup.precision = DRY_PRECISION_BF16;
    setup.is_inference = true;
    setup.requests = 16;
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    assert_true(s->cache_bytes == UINT64_C(2) * 80 * 8 * 128 * 4096 * 2 * 16);
    assert_true(s->phases[DRY_ESTIMATE_FORWARD].parts[DRY_GROUP_CACHE] == s->cache_bytes);
    assert_true(s->gradient_bytes == 0 && s->optimizer_bytes == 0);
    assert_true(s->weight_bytes == 2 * s->parameter_count);
    check_peaks(e);
    dry_estimate_destroy(e);
    model = find("deepseek-v3"); /* one latent a token for all heads */
    e = make(&model, &setup);
    assert_true(dry_estimate_get_summary(e)->cache_bytes ==
                UINT64_C(61) * (512 + 64) * 4096 * 2 * 16);
    dry_estimate_destroy(e);
}

static bool
fits(const struct dry_model *model, const struct dry_run_setup *setup)
{
    struct dry_estimate *e = make(model, setup);
    bool fits = dry_estimate_get_summary(e)->fits;
    dry_estimate_destroy(e);
    return fits;
}

static void
the_largest_fits_and_one_more_does_not(void **state)
{
    (void)state;
    struct dry_run_setup setup = init_setup(1, 1024);
    struct dry_model model = find("gpt2-medium");
    uint64_t value = 0;
    setup.capacity_bytes = dry_card_find("v100-32")->usable_bytes;
    assert_int_equal(dry_estimate_fit(&model, &setup, DRY_FIT_BATCH, 0, &value, NULL),
                     DRY_OK);
    assert_true(value > 1);
    setup.batch = value;
    assert_true(fits(&model, &setup));
    setup.batch++;
    assert_false(fits(&model, &setup));
    setup.batch = 1;
    assert_int_equal(dry_estimate_fit(&model, &setup, DRY_FIT_SEQUENCE, 64, &value, NULL),
                     DRY_OK);
    assert_true(value == 1024); /* no positions beyond */
    setup.capacity_bytes = GIB;
    assert_int_equal(dry_estimate_fit(&model, &setup, DRY_FIT_BATCH, 0, &value, NULL),
                     DRY_OK);
    assert_true(value == 0);
    setup.capacity_bytes = 0;
    assert_int_equal(dry_estimate_fit(&model, &setup, DRY_FIT_BATCH, 0, &value, NULL),
                     DRY_ERR_ARGUMENT);
}

static void
names_lead_to_what_they_name(void **state)
{
    (void)state;
    struct dry_model model = DRY_INIT(struct dry_model);
    size_t count = 0;
    for (; dry_model_get_name(count); count++)
        assert_int_equal(dry_model_find(dry_model_get_name(count), &model), DRY_OK);
    assert_true(count >= 16);
    assert_int_equal(dry_model_find("no-such", &model), DRY_ERR_ARGUMENT);
}

/* --- convolutions ------------------------------------------------------------------------- */

/* conv, norm, relu, pool, a block with a sum, linear: by hand. */
static void
convolutions_save_inputs_once(void **state)
{
    (void)state;
    const struct dry_conv_layer layers[] = {
        {DRY_CONV_CONV, DRY_CONV_PREVIOUS, 0, 16, 3, 1, 1, 0, 0, false},
        {.kind = DRY_CONV_NORM, .from = DRY_CONV_PREVIOUS},
        {.kind = DRY_CONV_RELU, .from = DRY_CONV_PREVIOUS},
        {DRY_CONV_MAX_POOL, DRY_CONV_PREVIOUS, 0, 0, 2, 0, 0, 0, 0, false},
        {DRY_CONV_CONV, DRY_CONV_PREVIOUS, 0, 16, 3, 1, 1, 0, 0, true},
        {.kind = DRY_CONV_RELU, .from = DRY_CONV_PREVIOUS},
        {.kind = DRY_CONV_ADD, .from = DRY_CONV_PREVIOUS, .with = 3},
        {.kind = DRY_CONV_GLOBAL_POOL, .from = DRY_CONV_PREVIOUS},
        {.kind = DRY_CONV_FLATTEN, .from = DRY_CONV_PREVIOUS},
        {.kind = DRY_CONV_LINEAR,
         .from = DRY_CONV_PREVIOUS,
         .channels = 10,
         .has_bias = true},
    };
    struct dry_model model;
    dry_model_init(&model);
    model.kind = DRY_MODEL_CONV;
    model.conv = layers;
    model.conv_count = sizeof layers / sizeof *layers;
    model.channels = 3;
    model.height = model.width = 32;
    struct dry_run_setup setup = init_setup(4, 1);
    struct dry_estimate *e = make(&model, &setup);
    const struct dry_estimate_summary *s = dry_estimate_get_summary(e);
    assert_true(s->parameter_count ==
                3 * 16 * 9 + 2 * 16 + (16 * 16 * 9 + 16) + (16 * 10 + 10));
    uint64_t image = 4 * 4 * 3 * 32 * 32, wide = 4 * 4 * 16 * 32 * 32, half = wide / 4;
    /* images; conv's output for the norm; relu's; pooled, and where from; relu's; pooled. */
    assert_true(find_unit(e, "network")->saved_bytes ==
                image + wide + 8 * 16 + wide + half + 2 * half + half + 4 * 4 * 16);
    check_peaks(e);
    dry_estimate_destroy(e);
}

/* --- what is refused ---------------------------------------------------------------------- */

static void
contradictions_are_named(void **state)
{
    (void)state;
    struct dry_model good = find("gpt2"), model;
    struct dry_run_setup fine = init_setup(1, 128), setup;
    struct dry_estimate *e = NULL;
    struct dry_error err;
#define REFUSED(change, status, word)                                                    \
    do {                                                                                 \
        model = good;                                                                    \
        setup = fine;                                                                    \
        change;                                                                          \
        assert_int_equal(dry_estimate_create(&model, &setup, NULL, &e, &err), status);   \
        if (!strstr(err.text, word))                                                     \
            fail_msg("%s lacks %s", err.text, word);                                     \
        assert_null(e);                                                                  \
    } while (0)
    REFUSED(model.layers = 0, DRY_ERR_ARGUMENT, "layers");
    REFUSED(model.hidden = 0, DRY_ERR_ARGUMENT, "hidden");
    REFUSED(model.heads = 0, DRY_ERR_ARGUMENT, "heads");
    REFUSED(model.heads = 7, DRY_ERR_ARGUMENT, "hidden, ");
    REFUSED(model.kv_heads = 5, DRY_ERR_ARGUMENT, "kv_heads, 5");
    REFUSED(model.layers = 10001, DRY_ERR_LIMIT, "layers");
    REFUSED(model.vocab = UINT64_MAX, DRY_ERR_LIMIT, "vocab");
    REFUSED(model.hidden = UINT64_C(3) << 38, DRY_ERR_LIMIT, "2^");
    REFUSED(model.experts = 4, DRY_ERR_ARGUMENT, "experts_per_token");
    REFUSED(model.kv_rank = 4, DRY_ERR_ARGUMENT, "nope_dim");
    REFUSED(model.is_parallel = model.is_post_norm = true, DRY_ERR_ARGUMENT, "parallel");
    REFUSED(setup.batch = 0, DRY_ERR_ARGUMENT, "batch");
    REFUSED(setup.batch = UINT64_C(1) << 40, DRY_ERR_LIMIT, "2^62");
    REFUSED(setup.sequence = 2000, DRY_ERR_ARGUMENT, "positions");
    REFUSED(setup.zero = 4, DRY_ERR_LIMIT, "zero");
    REFUSED(setup.tensor = 13, DRY_ERR_ARGUMENT, "tensor");
    REFUSED(setup.pipeline = 13, DRY_ERR_ARGUMENT, "pipeline");
    REFUSED(setup.expert = 2, DRY_ERR_ARGUMENT, "expert");
    REFUSED(setup.stage = 1, DRY_ERR_ARGUMENT, "stage");
    REFUSED(setup.interleave = 2, DRY_ERR_ARGUMENT, "interleave");
    REFUSED(setup.conf = "no_such_option:1", DRY_ERR_ARGUMENT, "no_such_option");
#undef REFUSED
}

static void
what_does_not_fit_is_no_error(void **state)
{
    (void)state;
    struct dry_model model = find("llama-2-7b");
    struct dry_run_setup setup = init_setup(1, 128);
    setup.capacity_bytes = 16 * GIB;
    struct dry_estimate *e = make(&model, &setup);
    assert_false(dry_estimate_get_summary(e)->fits);
    dry_estimate_destroy(e);
}

static void
every_failed_allocation_comes_back(void **state)
{
    (void)state;
    struct dry_model model = find("gpt2");
    struct dry_run_setup setup = init_setup(1, 64);
    setup.checkpointing = DRY_CHECKPOINTING_SQRT;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_estimate *e = NULL;
        enum dry_status status = dry_estimate_create(&model, &setup, &memory, &e, NULL);
        dry_estimate_destroy(e);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_exact),
        cmocka_unit_test(active_parameters_leave_experts_out),
        cmocka_unit_test(devices_share_the_parameters),
        cmocka_unit_test(layers_are_korthikantis),
        cmocka_unit_test(parallel_layers_are_korthikantis),
        cmocka_unit_test(gated_layers_save_four_products),
        cmocka_unit_test(checkpoints_hold_inputs_and_a_segment),
        cmocka_unit_test(the_seed_formula_is_a_row),
        cmocka_unit_test(first_stages_hold_more_microbatches),
        cmocka_unit_test(units_are_stages_of_a_chain),
        cmocka_unit_test(zero_divides_as_its_table_says),
        cmocka_unit_test(bytes_a_parameter),
        cmocka_unit_test(states_go_by_the_shapes_of_tensors),
        cmocka_unit_test(spread_experts_are_split_by_fewer),
        cmocka_unit_test(repeated_keys_are_saved_for_all_heads),
        cmocka_unit_test(adapters_alone_are_trained),
        cmocka_unit_test(parts_are_what_rows_say),
        cmocka_unit_test(means_against_memory_help),
        cmocka_unit_test(every_stage_of_zero_helps),
        cmocka_unit_test(the_peak_may_be_the_step),
        cmocka_unit_test(accumulated_gradients_meet_activations),
        cmocka_unit_test(every_setup_is_consistent),
        cmocka_unit_test(caches_hold_keys_and_values),
        cmocka_unit_test(the_largest_fits_and_one_more_does_not),
        cmocka_unit_test(names_lead_to_what_they_name),
        cmocka_unit_test(convolutions_save_inputs_once),
        cmocka_unit_test(contradictions_are_named),
        cmocka_unit_test(what_does_not_fit_is_no_error),
        cmocka_unit_test(every_failed_allocation_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
