/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chains.h"

#include <stdlib.h>
#include <string.h>

static void
require(bool condition)
{
    if (!condition)
        abort();
}

/* --- random chains ------------------------------------------------------------------------ */

static uint64_t
pick(struct random *r, uint32_t limit)
{
    return random_below(r, limit + UINT64_C(1));
}

static struct dry_chain_frame
random_frame(struct random *r, const struct chains_form *form, uint32_t bytes)
{
    struct dry_chain_frame frame = {0};
    frame.input_gradient_bytes = pick(r, bytes);
    if (!form->has_frame)
        return frame;
    frame.persistent_bytes = pick(r, 4 * bytes);
    frame.input_bytes = pick(r, bytes);
    frame.step_bytes = random_below(r, 4) ? 0 : pick(r, 16 * bytes);
    return frame;
}

static struct dry_stage_option
random_option(struct random *r, const struct chains_form *form,
              const struct dry_stage *stage)
{
    struct dry_stage_option option = {.name = "option"};
    option.saved_bytes = stage->output_bytes +
                         pick(r, (uint32_t)(stage->saved_bytes - stage->output_bytes));
    option.recompute_ns = pick(r, (uint32_t)stage->forward_ns);
    option.backward_tmp_bytes =
        form->has_tmp ? stage->backward_tmp_bytes + pick(r, 2) : pick(r, 2);
    if (form->has_own_tmp && random_below(r, 2)) {
        option.has_forward_tmp = true;
        option.forward_tmp_bytes = pick(r, 12);
    }
    if (form->has_offload && random_below(r, 2))
        option.offload_bytes =
            pick(r, (uint32_t)(option.saved_bytes - stage->output_bytes));
    return option;
}

static uint64_t
forward_tmp_of(const struct dry_stage *stage, uint32_t option)
{
    if (option == 0 || !stage->options[option - 1].has_forward_tmp)
        return stage->forward_tmp_bytes;
    return stage->options[option - 1].forward_tmp_bytes;
}

static struct dry_stage
random_stage(struct random *r, const struct chains_form *form, bool is_last)
{
    uint32_t bytes = form->bytes_max ? form->bytes_max : 6;
    struct dry_stage stage = {.name = "stage"};
    stage.forward_ns = pick(r, form->ns_max ? form->ns_max : 6);
    stage.backward_ns = random_below(r, 2) ? 2 * stage.forward_ns : pick(r, 9);
    bool is_loss = is_last && random_below(r, 2);
    stage.output_bytes = is_loss ? 0 : pick(r, bytes);
    stage.gradient_bytes = random_below(r, 4) ? stage.output_bytes : pick(r, bytes);
    stage.saved_bytes = stage.output_bytes + pick(r, 2 * bytes);
    if (form->has_tmp && random_below(r, 2)) {
        stage.forward_tmp_bytes = pick(r, bytes);
        stage.backward_tmp_bytes = pick(r, 2 * bytes);
    }
    if (form->has_grads && random_below(r, 2))
        stage.grads_bytes = pick(r, bytes);
    stage.is_fixed = form->has_fixed && random_below(r, 5) == 0;
    return stage;
}

struct dry_chain *
chains_make(struct random *r, const struct chains_form *form)
{
    uint32_t spread = form->stages_max - form->stages_min;
    uint32_t count = form->stages_min + (uint32_t)pick(r, spread);
    uint32_t bytes = form->bytes_max ? form->bytes_max : 6;
    struct dry_chain_frame frame = random_frame(r, form, bytes);
    struct dry_chain *chain;
    require(dry_chain_create(&frame, NULL, &chain, NULL) == DRY_OK);
    while (dry_chain_get_count(chain) < count) {
        size_t left = count - dry_chain_get_count(chain);
        struct dry_stage stage = random_stage(r, form, left == 1);
        struct dry_stage_option options[8];
        stage.option_count = pick(r, form->options_max > 8 ? 8 : form->options_max);
        for (size_t k = 0; k < stage.option_count; k++)
            options[k] = random_option(r, form, &stage);
        stage.options = options;
        size_t repeat = random_below(r, 4) ? 1 : 1 + random_below(r, left);
        require(dry_chain_add(chain, &stage, repeat, NULL) == DRY_OK);
    }
    return chain;
}

static uint64_t
at(const uint64_t *row, size_t i)
{
    return row ? row[i] : 0;
}

struct dry_chain *
chains_of_rows(const struct chains_rows *rows)
{
    struct dry_chain *chain;
    require(dry_chain_create(&rows->frame, NULL, &chain, NULL) == DRY_OK);
    for (size_t i = 0; i < rows->count; i++) {
        struct dry_stage stage = {
            .forward_ns = at(rows->forward, i),
            .backward_ns = at(rows->backward, i),
            .output_bytes = at(rows->output, i),
            .gradient_bytes = at(rows->gradient ? rows->gradient : rows->output, i),
            .saved_bytes = at(rows->saved, i),
        };
        require(dry_chain_add(chain, &stage, 1, NULL) == DRY_OK);
    }
    return chain;
}

/* --- random plans ------------------------------------------------------------------------- */

struct task {
    uint32_t first, last; /* stages to cover */
    uint32_t begin;       /* the first that was */
    uint32_t range;       /* the item whose inner count is complete then */
    bool is_done;
};

static bool
has_fixed(const struct dry_chain *chain, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++) {
        if (dry_chain_get_stage(chain, i)->is_fixed)
            return true;
    }
    return false;
}

static struct dry_plan_item
random_item(struct random *r, const struct dry_chain *chain, const struct task *t)
{
    struct dry_plan_item item = {.first = t->first};
    item.last = t->first + (uint32_t)random_below(r, t->last - t->first + 1u);
    bool is_whole =
        t->range != UINT32_MAX && item.first == t->begin && item.last == t->last;
    if (random_below(r, 2) && !has_fixed(chain, item.first, item.last) && !is_whole) {
        item.kind = DRY_PLAN_CHECKPOINT;
        return item;
    }
    item.kind = DRY_PLAN_SAVE;
    const struct dry_stage *stage = dry_chain_get_stage(chain, item.first);
    if (stage->option_count && random_below(r, 2)) {
        item.last = item.first;
        item.option = (uint32_t)pick(r, (uint32_t)stage->option_count);
    }
    return item;
}

size_t
chains_random_plan(struct random *r, const struct dry_chain *chain,
                   struct dry_plan_item *items, size_t capacity)
{
    struct task stack[4 * CHAINS_STAGES_MAX];
    size_t depth = 1, count = 0;
    stack[0] = (struct task){.last = (uint32_t)dry_chain_get_count(chain) - 1,
                             .range = UINT32_MAX};
    while (depth) {
        struct task *t = &stack[depth - 1];
        if (t->is_done) {
            if (t->range != UINT32_MAX)
                items[t->range].inner_count = (uint32_t)(count - t->range - 1);
            depth--;
            continue;
        }
        require(count < capacity && depth < 4 * CHAINS_STAGES_MAX);
        struct dry_plan_item item = random_item(r, chain, t);
        items[count++] = item;
        t->is_done = item.last == t->last;
        t->first = item.last + 1;
        if (item.kind == DRY_PLAN_CHECKPOINT && random_below(r, 3))
            stack[depth++] = (struct task){item.first, item.last, item.first,
                                           (uint32_t)count - 1, false};
    }
    return count;
}

/* --- the naive evaluation ------------------------------------------------------------------ */

enum op_kind { OP_KEEP, OP_PASS, OP_SEND, OP_DROP, OP_BACKWARD, OP_RUN };

struct op {
    enum op_kind kind;
    uint32_t stage, option;
    bool is_again;     /* forwards: not for the first time */
    bool is_first;     /* OP_PASS: of its range; the input belongs to somebody else */
    size_t begin, end; /* OP_RUN: of items */
};

struct ops {
    struct op *list;
    size_t count;
};

static void
add_op(struct ops *ops, struct op op)
{
    ops->list = realloc(ops->list, (ops->count + 1) * sizeof op);
    require(ops->list != NULL);
    ops->list[ops->count++] = op;
}

/* What stage i - 1 sends away if its option says so goes when stage i has run. */
static void
add_forward(struct ops *ops, struct op op, const struct op *before)
{
    add_op(ops, op);
    if (before && before->kind == OP_KEEP && before->option)
        add_op(ops, (struct op){.kind = OP_SEND,
                                .stage = before->stage,
                                .option = before->option});
}

static void
add_item_forward(struct ops *ops, const struct dry_plan_item *item, bool is_again,
                 struct op *before)
{
    for (uint32_t i = item->first; i <= item->last; i++) {
        struct op op = {.kind = item->kind == DRY_PLAN_SAVE ? OP_KEEP : OP_PASS,
                        .stage = i,
                        .option = item->option,
                        .is_again = is_again,
                        .is_first = i == item->first};
        add_forward(ops, op, before);
        *before = op;
    }
}

static void
add_item_backward(struct ops *ops, const struct dry_plan_item *items, size_t at_item)
{
    const struct dry_plan_item *item = &items[at_item];
    if (item->kind == DRY_PLAN_SAVE) {
        for (uint32_t i = item->last + 1; i-- > item->first;)
            add_op(ops,
                   (struct op){.kind = OP_BACKWARD, .stage = i, .option = item->option});
        return;
    }
    add_op(ops, (struct op){.kind = OP_DROP, .stage = item->last});
    if (item->inner_count) {
        add_op(ops, (struct op){.kind = OP_RUN,
                                .is_again = true,
                                .begin = at_item + 1,
                                .end = at_item + 1 + item->inner_count});
        return;
    }
    for (uint32_t i = item->first; i <= item->last; i++)
        add_op(ops, (struct op){.kind = OP_KEEP, .stage = i, .is_again = true});
    for (uint32_t i = item->last + 1; i-- > item->first;)
        add_op(ops, (struct op){.kind = OP_BACKWARD, .stage = i});
}

/* The operations that one run stands for; ranges become runs of their own. */
static void
expand_run(struct ops *ops, const struct dry_plan_item *items, const struct op *run)
{
    size_t tops[256], count = 0;
    struct op before = {.kind = OP_PASS};
    for (size_t i = run->begin; i < run->end; i += 1 + items[i].inner_count) {
        require(count < 256);
        tops[count++] = i;
        add_item_forward(ops, &items[i], run->is_again, &before);
    }
    while (count)
        add_item_backward(ops, items, tops[--count]);
}

static struct ops
operations_of(const struct dry_plan_item *items, size_t count)
{
    struct ops ops = {0};
    bool has_runs = true;
    add_op(&ops, (struct op){.kind = OP_RUN, .end = count});
    while (has_runs) {
        struct ops next = {0};
        has_runs = false;
        for (size_t i = 0; i < ops.count; i++) {
            if (ops.list[i].kind == OP_RUN) {
                has_runs = true;
                expand_run(&next, items, &ops.list[i]);
            } else {
                add_op(&next, ops.list[i]);
            }
        }
        free(ops.list);
        ops = next;
    }
    return ops;
}

/* Every tensor by itself: 0 is "not there". Index 0 of gradient is that of the input. */
struct tensors {
    const struct dry_chain *chain;
    bool has_output[CHAINS_STAGES_MAX], has_saved[CHAINS_STAGES_MAX];
    uint64_t saved[CHAINS_STAGES_MAX], sent[CHAINS_STAGES_MAX];
    uint64_t gradient[CHAINS_STAGES_MAX + 1], grads[CHAINS_STAGES_MAX];
    uint64_t frame, tmp;
    struct dry_plan_cost cost;
};

static uint64_t
sum_live(const struct tensors *t)
{
    uint64_t sum = t->frame + t->tmp;
    for (size_t i = 0; i < dry_chain_get_count(t->chain); i++) {
        if (t->has_output[i])
            sum += dry_chain_get_stage(t->chain, i)->output_bytes;
        if (t->has_saved[i])
            sum += t->saved[i] - t->sent[i];
        sum += t->grads[i];
    }
    for (size_t i = 0; i <= dry_chain_get_count(t->chain); i++)
        sum += t->gradient[i];
    return sum;
}

static void
note_peak(struct tensors *t, uint64_t stage, enum dry_plan_phase phase)
{
    uint64_t live = sum_live(t);
    if (live <= t->cost.peak_bytes)
        return;
    t->cost.peak_bytes = live;
    t->cost.peak_stage = stage;
    t->cost.peak_phase = phase;
}

static bool
has_input(const struct tensors *t, uint32_t stage)
{
    return stage == 0 || t->has_output[stage - 1] || t->has_saved[stage - 1];
}

static void
do_forward(struct tensors *t, const struct op *op)
{
    const struct dry_stage *stage = dry_chain_get_stage(t->chain, op->stage);
    require(has_input(t, op->stage));
    if (op->kind == OP_KEEP) {
        require(!t->has_saved[op->stage]);
        t->has_saved[op->stage] = true;
        t->saved[op->stage] =
            op->option ? stage->options[op->option - 1].saved_bytes : stage->saved_bytes;
    } else {
        require(!t->has_output[op->stage]);
        t->has_output[op->stage] = true;
    }
    t->tmp = op->kind == OP_KEEP ? forward_tmp_of(stage, op->option)
                                 : stage->forward_tmp_bytes;
    note_peak(t, op->stage, op->is_again ? DRY_PHASE_RECOMPUTE : DRY_PHASE_FORWARD);
    t->tmp = 0;
    if (op->kind == OP_PASS && !op->is_first)
        t->has_output[op->stage - 1] = false;
    t->cost.time_ns += stage->forward_ns;
    t->cost.recomputed_count += op->is_again;
}

static void
do_backward(struct tensors *t, const struct op *op)
{
    const struct dry_stage *stage = dry_chain_get_stage(t->chain, op->stage);
    uint32_t i = op->stage;
    require(t->has_saved[i] && t->sent[i] == 0 && has_input(t, i));
    if (i)
        t->sent[i - 1] = 0;
    t->gradient[i] = i ? dry_chain_get_stage(t->chain, i - 1)->gradient_bytes
                       : dry_chain_get_frame(t->chain)->input_gradient_bytes;
    t->grads[i] = stage->grads_bytes;
    t->tmp = op->option ? stage->options[op->option - 1].backward_tmp_bytes
                        : stage->backward_tmp_bytes;
    note_peak(t, i, DRY_PHASE_BACKWARD);
    t->tmp = 0;
    t->has_saved[i] = false;
    t->gradient[i + 1] = 0;
    t->cost.time_ns += stage->backward_ns;
    t->cost.time_ns += op->option ? stage->options[op->option - 1].recompute_ns : 0;
}

static void
do_op(struct tensors *t, const struct op *op)
{
    if (op->kind == OP_KEEP || op->kind == OP_PASS) {
        do_forward(t, op);
    } else if (op->kind == OP_BACKWARD) {
        do_backward(t, op);
    } else if (op->kind == OP_SEND) {
        const struct dry_stage *stage = dry_chain_get_stage(t->chain, op->stage);
        t->sent[op->stage] = stage->options[op->option - 1].offload_bytes;
    } else {
        require(t->has_output[op->stage]);
        t->has_output[op->stage] = false;
    }
}

struct dry_plan_cost
chains_evaluate(const struct dry_chain *chain, const struct dry_plan_item *items,
                size_t count)
{
    struct tensors t = {.chain = chain};
    const struct dry_chain_frame *frame = dry_chain_get_frame(chain);
    size_t stages = dry_chain_get_count(chain);
    struct ops ops = operations_of(items, count);
    require(stages <= CHAINS_STAGES_MAX);
    t.frame = frame->persistent_bytes + frame->input_bytes;
    t.gradient[stages] = dry_chain_get_stage(chain, stages - 1)->gradient_bytes;
    bool is_forward = true;
    for (size_t i = 0; i < ops.count; i++) {
        bool turns = ops.list[i].kind == OP_BACKWARD || ops.list[i].kind == OP_DROP;
        if (is_forward && turns) {
            is_forward = false;
            t.cost.held_bytes = sum_live(&t);
        }
        do_op(&t, &ops.list[i]);
    }
    free(ops.list);
    t.frame = frame->persistent_bytes;
    t.gradient[0] = 0;
    t.tmp = frame->step_bytes;
    note_peak(&t, stages, DRY_PHASE_STEP);
    t.cost.base_ns = dry_chain_get_time(chain);
    t.cost.extra_ns = t.cost.time_ns - t.cost.base_ns;
    return t.cost;
}

/* --- all plans of one level --------------------------------------------------------------- */

/*
 * One digit a stage: 0 .. options: it saves so; then: a range begins with it; then: it goes on
 * with the range of the stage before.
 */
struct odometer {
    uint32_t digits[12], options[12], count;
    bool is_fixed[12];
};

static bool
is_plan(const struct odometer *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        bool goes_on = o->digits[i] == o->options[i] + 2;
        if (goes_on && (i == 0 || o->digits[i - 1] <= o->options[i - 1]))
            return false;
        if (o->is_fixed[i] && o->digits[i] > o->options[i])
            return false;
    }
    return true;
}

static size_t
items_of(const struct odometer *o, struct dry_plan_item *items)
{
    size_t count = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t digit = o->digits[i];
        if (digit == o->options[i] + 2)
            items[count - 1].last = i;
        else if (digit == o->options[i] + 1)
            items[count++] = (struct dry_plan_item){DRY_PLAN_CHECKPOINT, i, i, 0, 0};
        else
            items[count++] = (struct dry_plan_item){DRY_PLAN_SAVE, i, i, digit, 0};
    }
    return count;
}

static bool
turn(struct odometer *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->digits[i]++ < o->options[i] + 2)
            return true;
        o->digits[i] = 0;
    }
    return false;
}

static void
insert_point(struct chains_point *points, size_t *count, struct chains_point point)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (points[i].peak_bytes <= point.peak_bytes &&
            points[i].time_ns <= point.time_ns)
            return;
    }
    for (size_t i = 0; i < *count; i++) {
        if (points[i].peak_bytes < point.peak_bytes || points[i].time_ns < point.time_ns)
            points[kept++] = points[i];
    }
    require(kept < CHAINS_POINTS_MAX);
    size_t place = kept;
    for (; place && points[place - 1].peak_bytes > point.peak_bytes; place--)
        points[place] = points[place - 1];
    points[place] = point;
    *count = kept + 1;
}

size_t
chains_one_level(const struct dry_chain *chain, struct chains_point *points)
{
    struct odometer o = {.count = (uint32_t)dry_chain_get_count(chain)};
    size_t count = 0;
    require(o.count <= 12);
    for (uint32_t i = 0; i < o.count; i++) {
        o.options[i] = (uint32_t)dry_chain_get_stage(chain, i)->option_count;
        o.is_fixed[i] = dry_chain_get_stage(chain, i)->is_fixed;
    }
    do {
        struct dry_plan_item items[12];
        struct dry_plan_cost cost;
        if (!is_plan(&o))
            continue;
        require(dry_plan_evaluate(chain, items, items_of(&o, items), NULL, &cost, NULL) ==
                DRY_OK);
        insert_point(points, &count,
                     (struct chains_point){cost.peak_bytes, cost.time_ns});
    } while (turn(&o));
    return count;
}

uint64_t
chains_least_time(const struct chains_point *points, size_t count, uint64_t budget_bytes)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count && points[i].peak_bytes <= budget_bytes; i++)
        least = points[i].time_ns;
    return least;
}

/* --- all states of memory ----------------------------------------------------------------- */

/*
 * A state: how many backwards are to come, and of every stage what is there: nothing, its
 * output, or what it saves by one of its options.
 */
enum { NOTHING, OUTPUT, SAVED };

#define OPTIMUM_STAGES_MAX 6u

struct state {
    uint32_t left;
    uint32_t there[OPTIMUM_STAGES_MAX];
};

struct entry {
    uint64_t time;
    uint32_t code;
};

struct space {
    const struct dry_chain *chain;
    const struct dry_stage *stages[OPTIMUM_STAGES_MAX];
    uint32_t count, radix;
    uint64_t budget;
    uint64_t *times; /* by code */
    struct entry *heap;
    size_t heap_count, heap_capacity;
};

static uint32_t
code_of(const struct space *s, const struct state *state)
{
    uint32_t code = state->left;
    for (uint32_t i = 0; i < s->count; i++)
        code = code * s->radix + state->there[i];
    return code;
}

static struct state
state_of(const struct space *s, uint32_t code)
{
    struct state state;
    for (uint32_t i = s->count; i-- > 0;) {
        state.there[i] = code % s->radix;
        code /= s->radix;
    }
    state.left = code;
    return state;
}

static void
heap_push(struct space *s, struct entry entry)
{
    if (s->heap_count == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? 2 * s->heap_capacity : 1024;
        s->heap = realloc(s->heap, s->heap_capacity * sizeof *s->heap);
        require(s->heap != NULL);
    }
    size_t i = s->heap_count++;
    for (; i && s->heap[(i - 1) / 2].time > entry.time; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = entry;
}

static struct entry
heap_pop(struct space *s)
{
    struct entry top = s->heap[0], last = s->heap[--s->heap_count];
    size_t i = 0;
    for (size_t child = 1; child < s->heap_count; i = child, child = 2 * i + 1) {
        if (child + 1 < s->heap_count && s->heap[child + 1].time < s->heap[child].time)
            child++;
        if (s->heap[child].time >= last.time)
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

static void
reach(struct space *s, const struct state *state, uint64_t time, uint64_t needed)
{
    uint32_t code = code_of(s, state);
    if (needed > s->budget || time >= s->times[code])
        return;
    s->times[code] = time;
    heap_push(s, (struct entry){time, code});
}

static uint64_t
saved_of(const struct dry_stage *stage, uint32_t option)
{
    return option ? stage->options[option - 1].saved_bytes : stage->saved_bytes;
}

static uint64_t
held_in(const struct space *s, const struct state *state)
{
    const struct dry_chain_frame *frame = dry_chain_get_frame(s->chain);
    uint64_t held = frame->persistent_bytes + frame->input_bytes;
    for (uint32_t i = 0; i < s->count; i++) {
        if (state->there[i] == OUTPUT)
            held += s->stages[i]->output_bytes;
        else if (state->there[i] >= SAVED)
            held += saved_of(s->stages[i], state->there[i] - SAVED);
        if (i >= state->left)
            held += s->stages[i]->grads_bytes;
    }
    return held;
}

static void
try_forward(struct space *s, const struct state *state, uint32_t i, uint64_t time)
{
    const struct dry_stage *stage = s->stages[i];
    if (state->there[i] >= SAVED || (i && state->there[i - 1] == NOTHING))
        return;
    uint64_t bare = held_in(s, state) + s->stages[state->left - 1]->gradient_bytes;
    struct state next = *state;
    for (uint32_t option = 0; option <= stage->option_count; option++) {
        next.there[i] = SAVED + option;
        reach(s, &next, time + stage->forward_ns,
              bare + saved_of(stage, option) + forward_tmp_of(stage, option));
    }
    next.there[i] = OUTPUT;
    if (state->there[i] == NOTHING)
        reach(s, &next, time + stage->forward_ns,
              bare + stage->output_bytes + stage->forward_tmp_bytes);
}

static void
try_free(struct space *s, const struct state *state, uint32_t i, uint64_t time)
{
    struct state next = *state;
    bool is_wanted = i + 1 < state->left && state->there[i + 1] >= SAVED;
    if (state->there[i] != OUTPUT || is_wanted)
        return;
    next.there[i] = NOTHING;
    reach(s, &next, time, 0);
}

static void
try_backward(struct space *s, const struct state *state, uint64_t time)
{
    uint32_t i = state->left - 1;
    const struct dry_stage *stage = s->stages[i];
    if (state->there[i] < SAVED || (i && state->there[i - 1] == NOTHING))
        return;
    const struct dry_stage_option *option =
        state->there[i] > SAVED ? &stage->options[state->there[i] - SAVED - 1] : NULL;
    uint64_t needed = held_in(s, state) + stage->gradient_bytes + stage->grads_bytes;
    needed += i ? s->stages[i - 1]->gradient_bytes
                : dry_chain_get_frame(s->chain)->input_gradient_bytes;
    needed += option ? option->backward_tmp_bytes : stage->backward_tmp_bytes;
    struct state next = *state;
    next.left = i;
    next.there[i] = NOTHING;
    reach(s, &next, time + stage->backward_ns + (option ? option->recompute_ns : 0),
          needed);
}

static uint64_t
shortest(struct space *s)
{
    while (s->heap_count) {
        struct entry entry = heap_pop(s);
        struct state state = state_of(s, entry.code);
        if (entry.time > s->times[entry.code])
            continue;
        if (state.left == 0)
            return entry.time;
        for (uint32_t i = 0; i < state.left; i++) {
            try_forward(s, &state, i, entry.time);
            try_free(s, &state, i, entry.time);
        }
        try_backward(s, &state, entry.time);
    }
    return UINT64_MAX;
}

static uint64_t
step_of(const struct dry_chain *chain)
{
    const struct dry_chain_frame *frame = dry_chain_get_frame(chain);
    uint64_t needed = frame->persistent_bytes + frame->step_bytes;
    for (size_t i = 0; i < dry_chain_get_count(chain); i++)
        needed += dry_chain_get_stage(chain, i)->grads_bytes;
    return needed;
}

uint64_t
chains_optimum(const struct dry_chain *chain, uint64_t budget_bytes)
{
    struct space s = {.chain = chain, .radix = SAVED + 1, .budget = budget_bytes};
    s.count = (uint32_t)dry_chain_get_count(chain);
    require(s.count <= OPTIMUM_STAGES_MAX);
    if (step_of(chain) > budget_bytes)
        return UINT64_MAX;
    for (uint32_t i = 0; i < s.count; i++) {
        s.stages[i] = dry_chain_get_stage(chain, i);
        require(!s.stages[i]->is_fixed);
        if (s.stages[i]->option_count + SAVED + 1 > s.radix)
            s.radix = (uint32_t)s.stages[i]->option_count + SAVED + 1;
    }
    size_t codes = s.count + 1;
    for (uint32_t i = 0; i < s.count; i++)
        codes *= s.radix;
    s.times = malloc(codes * sizeof *s.times);
    require(s.times != NULL);
    memset(s.times, 0xff, codes * sizeof *s.times);
    struct state start = {.left = s.count};
    reach(&s, &start, 0, 0);
    uint64_t time = shortest(&s);
    free(s.times);
    free(s.heap);
    return time;
}
