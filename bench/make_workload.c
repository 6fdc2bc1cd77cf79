/* SPDX-License-Identifier: Apache-2.0 */

/*
 * make_workload NAME OUT [STEPS]: write the requests of a program that trains or serves a
 * large language model, as a plain trace, and print the events at which its steps begin.
 * "make_workload list" prints the names.
 *
 * Shapes are those of real models. A layer is the list of tensors that PyTorch's autograd
 * makes of it, each with its width, its element size and its fate. Forward takes the
 * tensors in order and keeps those that backward needs. Backward walks the list from its
 * end, takes the gradients and gives back the tensors it has used. Programs differ in the
 * tokens of a step, the tensors kept, the place of the weights, and the streams beside
 * the computation:
 *
 *     fixed, variable    sequences of one length, or of lengths as they come, padded to the
 *                        longest of the batch
 *     recompute          only a layer's input is kept, its forward is run again
 *     lora               weights are frozen, adapters of rank 16 are trained
 *     eager              attention scores are kept, heads x length x length of them
 *     moe                a token goes to two of eight experts; how many meet at one varies
 *     zero3              weights lie in shards; a second stream gathers a layer ahead of its
 *                        use, and the gradients leave over a third
 *     pipeline           one stage of four, one forward and one backward by turns, eight
 *                        batches a step
 *     offload            what is kept goes to the host by a stream of its own, and back
 *     serving            requests arrive, each with a cache of keys and values
 *     rl                 sequences are generated, then trained on
 *     uniform            RMM's random benchmark: sizes uniform up to a limit, 16,000 MiB
 *
 * The same name gives the same trace everywhere: no floating point, a generator of its
 * own.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 1000
#define MIB (UINT64_C(1) << 20)
#define LAYERS_MAX 48u
#define FLIGHT_MAX 8u   /* batches whose forward is done and whose backward is not */
#define SAVED_MAX 128u  /* tensors a layer keeps */
#define WEIGHTS_MAX 48u /* of a layer */
#define EXPERT_COUNT 8u
#define RANK 16u          /* of an adapter */
#define SHARDS 8u         /* of weights (ZeRO-3), and of optimizer states always */
#define ACTIVE_MAX 4096u  /* blocks of the random benchmark */
#define REQUESTS_MAX 256u /* served at once */

enum stream { COMPUTE = 0, GATHER = 7, REDUCE = 11, COPY = 13 };

enum flag {
    VARIABLE = 1 << 0,
    RECOMPUTE = 1 << 1,
    LORA = 1 << 2,
    EAGER = 1 << 3,
    MOE = 1 << 4,
    ZERO3 = 1 << 5,
    OFFLOAD = 1 << 6,
};

struct maker;

struct recipe {
    const char *name;
    void (*run)(struct maker *m);
    unsigned steps, layers;
    unsigned hidden, keys, ffn, vocab, heads;
    unsigned batch, length; /* sequences a batch, tokens of the longest */
    unsigned flags;
};

/* Blocks, in the order they were taken. */
struct stack {
    uint64_t ids[SAVED_MAX], bytes[SAVED_MAX];
    unsigned count;
    bool is_away; /* on the host */
};

/* A batch between its forward and its backward. */
struct flight {
    uint64_t input, tokens, length; /* tokens in all, and of its longest sequence */
    uint64_t shares[LAYERS_MAX][EXPERT_COUNT]; /* of the tokens, by expert */
    struct stack layers[LAYERS_MAX];
    struct stack head;
};

struct maker {
    FILE *out;
    const struct recipe *recipe;
    uint64_t random; /* xorshift64* */
    uint64_t next_id, time_us, event_count;
    struct flight flights[FLIGHT_MAX];
    uint64_t gradients[LAYERS_MAX][WEIGHTS_MAX]; /* 0: not there */
    uint64_t gathered[LAYERS_MAX];               /* likewise */
    uint64_t active[ACTIVE_MAX], sizes[ACTIVE_MAX];
};

/* --- what a program asks for -------------------------------------------------------------- */

static uint64_t
draw(struct maker *m, uint64_t below)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (m->random * UINT64_C(2685821657736338717) >> 24) % below;
}

static uint64_t
take_on(struct maker *m, uint64_t bytes, enum stream stream)
{
    m->time_us += 5 + bytes / (16 * MIB);
    m->event_count++;
    fprintf(m->out, "a %" PRIu64 " %" PRIu64 " %u %" PRIu64 "\n", ++m->next_id, bytes,
            (unsigned)stream, m->time_us);
    return m->next_id;
}

static uint64_t
take(struct maker *m, uint64_t bytes)
{
    return take_on(m, bytes, COMPUTE);
}

/* Give a block back; an `id` of 0 is nothing. */
static void
give(struct maker *m, uint64_t id)
{
    if (id == 0)
        return;
    m->time_us += 2;
    m->event_count++;
    fprintf(m->out, "f %" PRIu64 "\n", id);
}

static void
record(struct maker *m, uint64_t id, enum stream other)
{
    m->event_count++;
    fprintf(m->out, "r %" PRIu64 " %u\n", id, (unsigned)other);
}

static void
give_used_by(struct maker *m, uint64_t id, enum stream other)
{
    record(m, id, other);
    give(m, id);
}

/* Write that everything recorded on this stream so far is done. */
static void
reach_end(struct maker *m, enum stream stream)
{
    m->event_count++;
    fprintf(m->out, "s %u\n", (unsigned)stream);
}

static void
empty_cache(struct maker *m)
{
    m->event_count++;
    fprintf(m->out, "e\n");
}

static void
begin_step(const struct maker *m)
{
    printf("%" PRIu64 "\n", m->event_count);
}

static void
keep(struct maker *m, struct stack *stack, uint64_t bytes)
{
    if (stack->count == SAVED_MAX)
        abort(); /* a recipe that keeps more needs a larger one */
    stack->bytes[stack->count] = bytes;
    stack->ids[stack->count++] = take(m, bytes);
}

static void
give_last(struct maker *m, struct stack *stack)
{
    if (stack->count == 0)
        abort();
    give(m, stack->ids[--stack->count]);
}

/* --- shapes ------------------------------------------------------------------------------- */

enum width { NONE, ONE, HIDDEN, KEYS, FFN, HEADS, SCORES, VOCAB };

enum fate {
    SAVED, /* until backward has used it */
    PASSED /* until the next tensor is there */
};

/* A tensor that a layer makes, by token; and the matrix that made it, if one did. */
struct tensor {
    enum width width;
    unsigned bytes;
    enum fate fate;
    enum width from, to;
};

static const struct tensor attention[] = {
    {HIDDEN, 4, PASSED, NONE, NONE},     /* norm, in 32 bits */
    {HIDDEN, 2, SAVED, ONE, HIDDEN},     /* norm */
    {ONE, 4, SAVED, NONE, NONE},         /* its scale */
    {HIDDEN, 2, PASSED, HIDDEN, HIDDEN}, /* queries */
    {HIDDEN, 2, SAVED, NONE, NONE},      /* turned by position */
    {KEYS, 2, PASSED, HIDDEN, KEYS},     /* keys */
    {KEYS, 2, SAVED, NONE, NONE},        /* turned */
    {KEYS, 2, SAVED, HIDDEN, KEYS},      /* values */
    {SCORES, 2, PASSED, NONE, NONE},     /* scores, where they exist */
    {SCORES, 2, SAVED, NONE, NONE},      /* softmax */
    {HIDDEN, 2, SAVED, NONE, NONE},      /* attention */
    {HEADS, 4, SAVED, NONE, NONE},       /* its logarithms of sums */
    {HIDDEN, 2, PASSED, HIDDEN, HIDDEN}, /* projection */
    {HIDDEN, 2, SAVED, NONE, NONE},      /* residual */
    {HIDDEN, 4, PASSED, NONE, NONE},     /* the second norm */
    {HIDDEN, 2, SAVED, ONE, HIDDEN},     {ONE, 4, SAVED, NONE, NONE},
};

static const struct tensor mlp[] = {
    {FFN, 2, SAVED, HIDDEN, FFN},     /* gate */
    {FFN, 2, SAVED, HIDDEN, FFN},     /* up */
    {FFN, 2, SAVED, NONE, NONE},      /* activation */
    {FFN, 2, SAVED, NONE, NONE},      /* product */
    {HIDDEN, 2, PASSED, FFN, HIDDEN}, /* down */
};

/*
 * The MLP of an expert, for rows that were picked out of the batch and go back into it.
 */
static const struct tensor expert_mlp[] = {
    {HIDDEN, 2, SAVED, NONE, NONE}, /* rows */
    {FFN, 2, SAVED, HIDDEN, FFN},    {FFN, 2, SAVED, HIDDEN, FFN},
    {FFN, 2, SAVED, NONE, NONE},     {FFN, 2, SAVED, NONE, NONE},
    {HIDDEN, 2, SAVED, FFN, HIDDEN},
};

#define ATTENTION_COUNT (sizeof attention / sizeof *attention)
#define MLP_COUNT (sizeof mlp / sizeof *mlp)
#define EXPERT_TENSORS (sizeof expert_mlp / sizeof *expert_mlp)
#define EXPERT_WEIGHTS 3u

static uint64_t
width_of(const struct maker *m, enum width width, uint64_t length)
{
    const struct recipe *r = m->recipe;
    switch (width) {
    case NONE:
        return 0;
    case ONE:
        return 1;
    case HIDDEN:
        return r->hidden;
    case KEYS:
        return r->keys;
    case FFN:
        return r->ffn;
    case HEADS:
        return r->heads;
    case SCORES:
        return r->flags & EAGER ? r->heads * length : 0;
    case VOCAB:
        return r->vocab;
    }
    return 0;
}

/* Return the bytes of the matrix behind a tensor, two an element; 0: there is none. */
static uint64_t
weight_of(const struct maker *m, const struct tensor *t)
{
    return 2 * width_of(m, t->from, 0) * width_of(m, t->to, 0);
}

/* --- forward and backward of a list of tensors -------------------------------------------- */

/* A walk through a list, in one direction or the other. */
struct pass {
    const struct tensor *list;
    size_t count;
    uint64_t tokens, length;
    struct stack *saved;
    unsigned layer;
    unsigned weight; /* number, in the layer, of the weight met next */
};

static bool
has_adapter(const struct maker *m, const struct tensor *t)
{
    return m->recipe->flags & LORA && t->from > ONE;
}

static void
run_forward(struct maker *m, const struct pass *p)
{
    uint64_t passed = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct tensor *t = &p->list[i];
        uint64_t bytes = p->tokens * t->bytes * width_of(m, t->width, p->length);
        if (bytes == 0)
            continue;
        if (has_adapter(m, t)) {
            keep(m, p->saved, p->tokens * 2 * RANK);
            give(m, take(m, bytes)); /* what the adapter adds */
        }
        uint64_t next = 0;
        if (t->fate == SAVED)
            keep(m, p->saved, bytes);
        else
            next = take(m, bytes);
        give(m, passed);
        passed = next;
    }
    give(m, passed);
}

/*
 * Take a gradient. It stays until the optimizer has seen it; further batches are added to
 * it.
 */
static void
take_gradient(struct maker *m, struct pass *p, uint64_t bytes)
{
    if (p->weight == WEIGHTS_MAX)
        abort();
    uint64_t *kept = &m->gradients[p->layer][p->weight++];
    if (m->recipe->flags & ZERO3) {
        uint64_t whole = take(m, bytes);
        uint64_t shard = take_on(m, bytes / SHARDS, REDUCE);
        reach_end(m, REDUCE); /* of the one before: this one is not done yet */
        give_used_by(m, whole, REDUCE);
        if (*kept)
            give(m, shard);
        else
            *kept = shard;
    } else if (*kept) {
        give(m, take(m, bytes));
    } else {
        *kept = take(m, bytes);
    }
}

static void
take_gradients_of(struct maker *m, struct pass *p, const struct tensor *t)
{
    if (t->from == NONE)
        return;
    if (!(m->recipe->flags & LORA)) {
        take_gradient(m, p, weight_of(m, t));
    } else if (has_adapter(m, t)) {
        take_gradient(m, p, 2 * RANK * width_of(m, t->to, 0));
        take_gradient(m, p, 2 * RANK * width_of(m, t->from, 0));
        give_last(m, p->saved);
    }
}

/*
 * Run backward, from the end of the list. A gradient comes in, and another one goes out.
 */
static uint64_t
run_backward(struct maker *m, struct pass *p, uint64_t gradient)
{
    for (size_t i = p->count; i-- > 0;) {
        const struct tensor *t = &p->list[i];
        uint64_t width = width_of(m, t->width, p->length);
        if (p->tokens * width == 0)
            continue;
        enum width onto = t->from > ONE ? t->from : t->width;
        uint64_t next = take(m, p->tokens * 2 * width_of(m, onto, p->length));
        give(m, gradient);
        gradient = next;
        if (t->fate == SAVED)
            give_last(m, p->saved);
        take_gradients_of(m, p, t);
    }
    return gradient;
}

/* --- layers ------------------------------------------------------------------------------- */

static struct pass
attention_of(struct flight *f, unsigned layer)
{
    return (struct pass){.list = attention,
                         .count = ATTENTION_COUNT,
                         .tokens = f->tokens,
                         .length = f->length,
                         .saved = &f->layers[layer],
                         .layer = layer};
}

static struct pass
mlp_of(struct flight *f, unsigned layer)
{
    struct pass p = attention_of(f, layer);
    p.list = mlp;
    p.count = MLP_COUNT;
    return p;
}

static struct pass
expert_of(struct flight *f, unsigned layer, unsigned expert)
{
    struct pass p = mlp_of(f, layer);
    p.list = expert_mlp;
    p.count = EXPERT_TENSORS;
    p.tokens = f->shares[layer][expert];
    return p;
}

/*
 * Share the tokens among the experts, two choices a token. Some experts are liked better,
 * and this changes.
 */
static void
share_tokens(struct maker *m, struct flight *f, unsigned layer)
{
    uint64_t weights[EXPERT_COUNT], sum = 0, left = 2 * f->tokens;
    for (unsigned e = 0; e < EXPERT_COUNT; e++)
        sum += weights[e] = 500 + draw(m, 1000);
    for (unsigned e = 0; e + 1 < EXPERT_COUNT; e++) {
        f->shares[layer][e] = 2 * f->tokens * weights[e] / sum;
        left -= f->shares[layer][e];
    }
    f->shares[layer][EXPERT_COUNT - 1] = left;
}

static void
run_experts_forward(struct maker *m, struct flight *f, unsigned layer)
{
    struct stack *saved = &f->layers[layer];
    keep(m, saved, f->tokens * EXPERT_COUNT * 4); /* the router's probabilities */
    keep(m, saved, 2 * f->tokens * 8);            /* who goes where */
    for (unsigned e = 0; e < EXPERT_COUNT; e++) {
        struct pass p = expert_of(f, layer, e);
        run_forward(m, &p);
    }
}

static uint64_t
run_experts_backward(struct maker *m, struct flight *f, unsigned layer, uint64_t gradient)
{
    uint64_t sum = take(m, f->tokens * 2 * m->recipe->hidden);
    unsigned weight = 0;
    for (unsigned e = EXPERT_COUNT; e-- > 0;) {
        struct pass p = expert_of(f, layer, e);
        p.weight = weight;
        uint64_t rows = take(m, p.tokens * 2 * m->recipe->hidden + 2);
        give(m, run_backward(m, &p, rows));
        weight = p.weight;
    }
    give(m, gradient);
    give_last(m, &f->layers[layer]);
    give_last(m, &f->layers[layer]);
    return sum;
}

/*
 * Run a layer's forward. The last thing it keeps is its output, the next layer's input.
 */
static void
run_layer_forward(struct maker *m, struct flight *f, unsigned layer)
{
    struct pass p = attention_of(f, layer);
    run_forward(m, &p);
    p = mlp_of(f, layer);
    if (m->recipe->flags & MOE)
        run_experts_forward(m, f, layer);
    else
        run_forward(m, &p);
}

static void
keep_output_alone(struct maker *m, struct flight *f, unsigned layer)
{
    struct stack *saved = &f->layers[layer];
    struct stack output = {.count = 1};
    output.bytes[0] = saved->bytes[--saved->count];
    output.ids[0] = saved->ids[saved->count];
    while (saved->count > 0)
        give_last(m, saved);
    *saved = output;
}

static uint64_t
run_layer_backward(struct maker *m, struct flight *f, unsigned layer, uint64_t gradient)
{
    give_last(m, &f->layers[layer]); /* its output */
    if (m->recipe->flags & RECOMPUTE)
        run_layer_forward(m, f, layer);
    struct pass p = mlp_of(f, layer);
    unsigned weight = EXPERT_COUNT * EXPERT_WEIGHTS;
    if (m->recipe->flags & MOE) {
        gradient = run_experts_backward(m, f, layer, gradient);
    } else {
        gradient = run_backward(m, &p, gradient);
        weight = p.weight;
    }
    p = attention_of(f, layer);
    p.weight = weight;
    return run_backward(m, &p, gradient);
}

/* --- weights that come, tensors that go --------------------------------------------------- */

/* List a layer's weights in the order in which backward meets them; returns how many. */
static unsigned
list_weights(const struct maker *m, uint64_t bytes[WEIGHTS_MAX])
{
    const struct recipe *r = m->recipe;
    unsigned count = 0, experts = r->flags & MOE ? EXPERT_COUNT : 1;
    for (unsigned e = 0; e < experts; e++) {
        for (size_t i = MLP_COUNT; i-- > 0;) {
            if (weight_of(m, &mlp[i]) > 0)
                bytes[count++] = weight_of(m, &mlp[i]);
        }
    }
    for (size_t i = ATTENTION_COUNT; i-- > 0;) {
        if (weight_of(m, &attention[i]) > 0)
            bytes[count++] = weight_of(m, &attention[i]);
    }
    return count;
}

/*
 * Gather a layer's weights (ZeRO-3): they are there from shortly before their use until
 * after it.
 */
static void
gather(struct maker *m, unsigned layer)
{
    if (!(m->recipe->flags & ZERO3) || m->gathered[layer])
        return;
    uint64_t bytes[WEIGHTS_MAX], sum = 0;
    for (unsigned i = list_weights(m, bytes); i-- > 0;)
        sum += bytes[i];
    reach_end(m, COMPUTE); /* FSDP waits for it, so that no third layer is there */
    m->gathered[layer] = take_on(m, sum, GATHER);
}

static void
scatter(struct maker *m, unsigned layer)
{
    if (!m->gathered[layer])
        return;
    give_used_by(m, m->gathered[layer], COMPUTE);
    m->gathered[layer] = 0;
}

static void
send_away(struct maker *m, struct stack *saved)
{
    reach_end(m, COPY); /* of the layer before */
    for (unsigned i = 0; i < saved->count; i++)
        give_used_by(m, saved->ids[i], COPY);
    saved->is_away = true;
}

static void
bring_back(struct maker *m, struct stack *saved)
{
    if (!saved->is_away)
        return;
    reach_end(m, COPY);
    reach_end(m, COMPUTE);
    for (unsigned i = 0; i < saved->count; i++) {
        saved->ids[i] = take_on(m, saved->bytes[i], COPY);
        record(m, saved->ids[i], COMPUTE);
    }
    saved->is_away = false;
}

/* --- a batch ------------------------------------------------------------------------------ */

/* Draw a batch's length. Most sequences are short; a batch is as long as its longest. */
static uint64_t
draw_length(struct maker *m, unsigned sequences)
{
    uint64_t most = m->recipe->length, longest = 0;
    if (!(m->recipe->flags & VARIABLE))
        return most;
    for (unsigned i = 0; i < sequences; i++) {
        uint64_t length = most / 8 + draw(m, most) * draw(m, most) / most * 7 / 8;
        if (length > longest)
            longest = length;
    }
    return longest;
}

static void
begin_batch(struct maker *m, struct flight *f)
{
    f->length = draw_length(m, m->recipe->batch);
    f->tokens = f->length * m->recipe->batch;
    f->input = take(m, f->tokens * 2 * m->recipe->hidden);
    for (unsigned l = 0; l < m->recipe->layers; l++) {
        f->layers[l].count = 0;
        if (m->recipe->flags & MOE)
            share_tokens(m, f, l);
    }
}

static void
run_batch_forward(struct maker *m, struct flight *f)
{
    const struct recipe *r = m->recipe;
    gather(m, 0);
    for (unsigned l = 0; l < r->layers; l++) {
        if (l + 1 < r->layers)
            gather(m, l + 1);
        run_layer_forward(m, f, l);
        keep(m, &f->layers[l], f->tokens * 2 * r->hidden);
        if (r->flags & RECOMPUTE)
            keep_output_alone(m, f, l);
        if (r->flags & OFFLOAD && l > 0 && l + 2 < r->layers)
            send_away(m, &f->layers[l]);
        if (l + 1 < r->layers) /* the last one is used again at once */
            scatter(m, l);
    }
}

static void
run_batch_backward(struct maker *m, struct flight *f, uint64_t gradient)
{
    for (unsigned l = m->recipe->layers; l-- > 0;) {
        if (l > 0) {
            gather(m, l - 1);
            bring_back(m, &f->layers[l - 1]);
        }
        gradient = run_layer_backward(m, f, l, gradient);
        scatter(m, l);
    }
    give(m, gradient);
    give(m, f->input);
}

/* Run norm, logits, the same in 32 bits, their logarithms and the loss; then backward. */
static uint64_t
run_head(struct maker *m, const struct flight *f)
{
    const struct recipe *r = m->recipe;
    if (r->flags & (OFFLOAD | ZERO3)) { /* nothing of the layers is under way by now */
        reach_end(m, COMPUTE);
        reach_end(m, COPY);
    }
    uint64_t hidden = f->tokens * 2 * r->hidden, logits = f->tokens * 2 * r->vocab;
    uint64_t norm = take(m, hidden), narrow = take(m, logits);
    uint64_t wide = take(m, 2 * logits);
    give(m, narrow);
    uint64_t logarithms = take(m, 2 * logits), loss = take(m, 4);
    give(m, wide);
    uint64_t d_logarithms = take(m, 2 * logits), d_wide = take(m, 2 * logits);
    give(m, d_logarithms);
    give(m, logarithms);
    uint64_t d_narrow = take(m, logits);
    give(m, d_wide);
    uint64_t d_norm = take(m, hidden);
    give(m, d_narrow);
    give(m, norm);
    give(m, loss);
    return d_norm;
}

/* --- programs ----------------------------------------------------------------------------- */

/* Take weights and the optimizer's states, which are sharded among eight. */
static void
load_model(struct maker *m)
{
    const struct recipe *r = m->recipe;
    uint64_t bytes[WEIGHTS_MAX], shards = r->flags & ZERO3 ? SHARDS : 1;
    take(m, 2 * (uint64_t)r->hidden * r->vocab / shards);
    for (unsigned l = 0; l < r->layers; l++) {
        unsigned count = list_weights(m, bytes);
        for (unsigned i = count; i-- > 0;)
            take(m, bytes[i] / shards);
        for (unsigned i = count; i-- > 0 && !(r->flags & LORA);) {
            take(m, 2 * bytes[i] / SHARDS);
            take(m, 2 * bytes[i] / SHARDS);
        }
    }
    take(m, 2 * (uint64_t)r->hidden * r->vocab / shards);
}

/*
 * Run the optimizer a layer at a time, with room for its square roots; then no gradient
 * is left.
 */
static void
run_optimizer(struct maker *m)
{
    uint64_t bytes[WEIGHTS_MAX], roots[WEIGHTS_MAX];
    unsigned count = list_weights(m, bytes);
    bool is_small = m->recipe->flags & LORA;
    if (m->recipe->flags & (OFFLOAD | ZERO3))
        reach_end(m, COMPUTE);
    for (unsigned l = 0; l < m->recipe->layers; l++) {
        for (unsigned i = 0; i < count; i++)
            roots[i] = take(m, is_small ? 4096 : 2 * bytes[i] / SHARDS);
        for (unsigned i = 0; i < count; i++)
            give(m, roots[i]);
    }
    for (unsigned l = 0; l < m->recipe->layers; l++) {
        for (unsigned i = 0; i < WEIGHTS_MAX; i++) {
            give(m, m->gradients[l][i]);
            m->gradients[l][i] = 0;
        }
    }
}

static void
run_training(struct maker *m)
{
    load_model(m);
    for (unsigned step = 0; step < m->recipe->steps; step++) {
        begin_step(m);
        struct flight *f = &m->flights[0];
        begin_batch(m, f);
        run_batch_forward(m, f);
        run_batch_backward(m, f, run_head(m, f));
        run_optimizer(m);
    }
}

/*
 * Run the second of four stages: two forwards ahead, then one backward after each
 * forward.
 */
static void
run_pipeline(struct maker *m)
{
    load_model(m);
    for (unsigned step = 0; step < m->recipe->steps; step++) {
        begin_step(m);
        for (unsigned i = 0; i < FLIGHT_MAX + 2; i++) {
            if (i < FLIGHT_MAX) {
                begin_batch(m, &m->flights[i]);
                run_batch_forward(m, &m->flights[i]);
            }
            if (i >= 2) {
                struct flight *f = &m->flights[i - 2];
                run_batch_backward(m, f, take(m, f->tokens * 2 * m->recipe->hidden));
            }
        }
        run_optimizer(m);
    }
}

/* A request: its cache lies in a tensor of keys and one of values a layer. */
struct request {
    uint64_t caches[2 * LAYERS_MAX];
    uint64_t tokens;
    unsigned left; /* rounds until its last token; 0: not there */
};

static void
admit(struct maker *m, struct request *request)
{
    const struct recipe *r = m->recipe;
    uint64_t prompt = 32 + draw(m, r->length) * draw(m, r->length) / r->length;
    unsigned output = 32 + (unsigned)draw(m, 600);
    request->tokens = prompt + output;
    request->left = 1 + output / 16;
    struct flight *f = &m->flights[0];
    f->tokens = f->length = prompt;
    for (unsigned l = 0; l < r->layers; l++) {
        for (unsigned i = 0; i < 2; i++)
            request->caches[2 * l + i] = take(m, request->tokens * 2 * r->keys);
        if (l % 8 == 0) { /* some layers' worth of temporaries tell as much as all */
            run_layer_forward(m, f, l);
            while (f->layers[l].count > 0)
                give_last(m, &f->layers[l]);
        }
    }
}

static void
run_round(struct maker *m, struct request *requests, uint64_t *tokens)
{
    uint64_t running = 0;
    for (unsigned i = 0; i < REQUESTS_MAX; i++)
        running += requests[i].left > 0;
    uint64_t logits = take(m, running * 4 * m->recipe->vocab + 4);
    uint64_t sorted = take(m, running * 4 * m->recipe->vocab + 4);
    give(m, logits);
    give(m, sorted);
    for (unsigned i = 0; i < REQUESTS_MAX; i++) {
        if (requests[i].left == 0 || --requests[i].left > 0)
            continue;
        *tokens -= requests[i].tokens;
        for (unsigned l = 0; l < 2 * m->recipe->layers; l++)
            give(m, requests[i].caches[l]);
    }
}

/*
 * Serve `steps` requests as they arrive; as many run at once as have room for their
 * caches.
 */
static void
run_serving(struct maker *m)
{
    struct request *requests = calloc(REQUESTS_MAX, sizeof *requests);
    if (!requests)
        abort();
    load_model(m);
    uint64_t tokens = 0, tokens_max = UINT64_C(48) * 1024;
    for (unsigned arrived = 0; arrived < m->recipe->steps || tokens > 0;) {
        for (unsigned i = 0; i < REQUESTS_MAX && arrived < m->recipe->steps; i++) {
            if (requests[i].left > 0)
                continue;
            if (tokens > tokens_max)
                break;
            admit(m, &requests[i]);
            tokens += requests[i].tokens;
            arrived++;
            if (draw(m, 3) == 0)
                break; /* the next arrives in a later round */
        }
        run_round(m, requests, &tokens);
    }
    free(requests);
}

/*
 * Generate with a cache of a fixed size, then train on the result. Between the two the
 * program gives its cached memory back, as such programs do.
 */
static void
run_rl(struct maker *m)
{
    const struct recipe *r = m->recipe;
    load_model(m);
    for (unsigned step = 0; step < r->steps; step++) {
        begin_step(m);
        struct stack caches = {.count = 0};
        for (unsigned l = 0; l < 2 * r->layers; l++)
            keep(m, &caches, 160 * MIB);
        for (unsigned i = 0; i < 40; i++)
            give(m, take(m, (1 + draw(m, 64)) * 4 * r->vocab));
        while (caches.count > 0)
            give_last(m, &caches);
        empty_cache(m);
        for (unsigned i = 0; i < 3; i++) {
            struct flight *f = &m->flights[0];
            begin_batch(m, f);
            run_batch_forward(m, f);
            run_batch_backward(m, f, run_head(m, f));
        }
        run_optimizer(m);
    }
}

/*
 * Run RMM's random_allocations: of a hundred operations, 73 allocate; at most 16,000 MiB.
 */
static void
run_uniform(struct maker *m)
{
    uint64_t used = 0, count = 0;
    for (unsigned i = 0; i < m->recipe->steps;) {
        uint64_t bytes = 1 + draw(m, m->recipe->length * MIB);
        bool takes =
            draw(m, 100) < 73 && used + bytes <= 16000 * MIB && count < ACTIVE_MAX;
        if (takes) {
            m->active[count] = take(m, bytes);
            m->sizes[count++] = bytes;
            used += bytes;
            i++;
        } else if (count > 0) {
            uint64_t which = draw(m, count--);
            give(m, m->active[which]);
            used -= m->sizes[which];
            m->active[which] = m->active[count];
            m->sizes[which] = m->sizes[count];
        }
    }
    while (count > 0)
        give(m, m->active[--count]);
}

/* steps, layers; hidden, keys, ffn, vocab, heads; batch, length */
static const struct recipe recipes[] = {
    {"train-fixed", run_training, 6, 22, 2048, 256, 5632, 32000, 32, 4, 2048, 0},
    {"train-variable", run_training, 8, 22, 2048, 256, 5632, 32000, 32, 4, 2048,
     VARIABLE},
    {"recompute-fixed", run_training, 6, 28, 1536, 256, 8960, 151936, 12, 4, 2048,
     RECOMPUTE},
    {"recompute-variable", run_training, 6, 28, 1536, 256, 8960, 151936, 12, 4, 2048,
     VARIABLE | RECOMPUTE},
    {"eager-variable", run_training, 8, 36, 1280, 1280, 5120, 50257, 20, 8, 1024,
     VARIABLE | EAGER},
    {"lora-variable", run_training, 6, 32, 4096, 4096, 11008, 32000, 32, 4, 1024,
     VARIABLE | LORA},
    {"moe", run_training, 5, 16, 2048, 512, 2816, 32000, 16, 4, 2048, MOE},
    {"moe-variable", run_training, 5, 16, 2048, 512, 2816, 32000, 16, 4, 2048,
     MOE | VARIABLE},
    {"zero3", run_training, 5, 32, 4096, 4096, 11008, 32000, 32, 2, 4096,
     ZERO3 | RECOMPUTE},
    {"zero3-fixed", run_training, 5, 32, 4096, 4096, 11008, 32000, 32, 2, 2048, ZERO3},
    {"zero3-variable", run_training, 6, 32, 4096, 4096, 11008, 32000, 32, 2, 2048,
     ZERO3 | VARIABLE},
    {"pipeline-fixed", run_pipeline, 4, 8, 5120, 5120, 13824, 32000, 40, 1, 2048, 0},
    {"pipeline-variable", run_pipeline, 4, 8, 5120, 5120, 13824, 32000, 40, 1, 4096,
     VARIABLE},
    {"offload-fixed", run_training, 5, 32, 4096, 4096, 11008, 32000, 32, 4, 2048,
     LORA | OFFLOAD},
    {"offload-variable", run_training, 5, 32, 4096, 4096, 11008, 32000, 32, 4, 2048,
     LORA | OFFLOAD | VARIABLE},
    {"serving", run_serving, 140, 32, 4096, 1024, 14336, 128256, 32, 1, 4096, 0},
    {"rl-variable", run_rl, 5, 16, 1536, 256, 8960, 151936, 12, 4, 2048,
     VARIABLE | RECOMPUTE},
    {"uniform-256", run_uniform, 5000, 0, 0, 0, 0, 0, 0, 0, 256, 0},
    {"uniform-1024", run_uniform, 5000, 0, 0, 0, 0, 0, 0, 0, 1024, 0},
};

static const struct recipe *
find_recipe(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        if (strcmp(recipes[i].name, name) == 0)
            return &recipes[i];
    }
    return NULL;
}

static void
list_recipes(void)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        printf("%s\n", recipes[i].name);
}

static int
make(const struct recipe *recipe, const char *path)
{
    struct maker *m = calloc(1, sizeof *m);
    FILE *out = fopen(path, "w");
    if (!m || !out) {
        perror("make_workload");
        free(m);
        return 1;
    }
    m->out = out;
    m->recipe = recipe;
    m->random = UINT64_C(0x9e3779b97f4a7c15);
    for (const char *c = recipe->name; *c; c++)
        m->random = (m->random ^ (unsigned char)*c) * UINT64_C(1099511628211);
    recipe->run(m);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        perror("make_workload");
        free(m);
        return 1;
    }
    free(m);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list_recipes();
        return 0;
    }
    const struct recipe *found = argc >= 3 ? find_recipe(argv[1]) : NULL;
    if (!found) {
        fprintf(stderr, "usage: make_workload NAME OUT [STEPS] | list\n");
        return 2;
    }
    struct recipe recipe = *found;
    if (argc > 3) {
        char *end;
        unsigned long steps = strtoul(argv[3], &end, 10);
        if (*end || end == argv[3] || steps < 1 || steps > STEPS_MAX) {
            fprintf(stderr, "make_workload: STEPS is a number from 1 to %d\n", STEPS_MAX);
            return 2;
        }
        recipe.steps = (unsigned)steps;
    }
    return make(&recipe, argv[2]);
}
