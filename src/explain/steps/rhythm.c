/* SPDX-License-Identifier: Apache-2.0 */

/* Count symbols, group them by count, and test each group's most even symbol as an anchor. rhythm.h
   has the rules and the cost. */
#include "explain/steps/rhythm.h"

#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "explain/timeline/timeline_inside.h"

#define CANDIDATES_MAX 64u
/* Four classes per octave: gaps in neighbouring classes differ by a factor below 1.5. */
#define GAP_CLASSES 136u

/* An allocation freed before this many others were made is a temporary. */
#define TEMPORARY_SPAN 8u
/* A stack under a model's call that occurs so often in each iteration is that of its layers. */
#define LAYERS_MIN 4u

/* All symbols with the same number of occurrences. */
struct candidate {
    uint32_t count;        /* number of occurrences */
    uint32_t symbol;       /* the most evenly spaced of the symbols */
    uint32_t evenness;     /* evenness of `symbol`, in thousandths */
    uint32_t symbol_count; /* number of evenly spaced symbols */
};

/* The result of testing a candidate. */
struct verdict {
    bool is_loop, has_modules;
    bool encloses_models; /* an iteration calls a model, and is not a call of one layer */
    uint16_t is_inner;    /* DRYI_HINT_... of the call that contains the loop */
    uint32_t lockstep_count;
};

struct search {
    const struct dryi_sequence *s;
    const struct dry_timeline *timeline;
    const struct dry_timeline_view *view;
    const struct dryi_hints *hints;
    const struct dryi_scopes *optimizer;
    struct candidate *by_count; /* [count]; max_count + 1 entries */
    uint32_t max_count;
    struct candidate candidates[CANDIDATES_MAX];
    uint32_t candidate_count;
    struct verdict verdicts[CANDIDATES_MAX];
    uint8_t *is_even; /* per symbol */
    uint32_t *shared; /* per part; at most max_count entries */
};

/* --- even spacing ------------------------------------------------------------------------- */

static uint32_t
classify_gap(uint32_t gap)
{
    if (gap < 4)
        return gap;
    unsigned log = dryi_log2_floor(gap);
    return 4 * (log - 1) + (gap >> (log - 2) & 3);
}

/* Return the share of about equal gaps in thousandths: those in the two neighbouring
   classes with the most gaps. */
static uint32_t
measure_evenness(const struct dryi_sequence *s, uint32_t symbol)
{
    uint32_t classes[GAP_CLASSES + 1];
    memset(classes, 0, sizeof classes);
    const uint32_t *places = s->places + s->begins[symbol];
    uint32_t gap_count = s->counts[symbol] - 1;
    for (uint32_t i = 0; i < gap_count; i++)
        classes[classify_gap(places[i + 1] - places[i])]++;
    uint32_t best = 0;
    for (uint32_t c = 0; c < GAP_CLASSES; c++) {
        uint32_t both = classes[c] + classes[c + 1];
        best = both > best ? both : best;
    }
    return (uint32_t)((uint64_t)best * 1000 / gap_count);
}

static void
consider_symbol(struct search *f, uint32_t symbol)
{
    uint32_t evenness = measure_evenness(f->s, symbol);
    if (evenness < 600)
        return;
    f->is_even[symbol] = 1;
    struct candidate *c = &f->by_count[f->s->counts[symbol]];
    c->symbol_count++;
    if (evenness > c->evenness ||
        (evenness == c->evenness &&
         f->s->places[f->s->begins[symbol]] < f->s->places[f->s->begins[c->symbol]])) {
        c->evenness = evenness;
        c->symbol = symbol;
        c->count = f->s->counts[symbol];
    }
}

/* Choose the counts that most symbols share, in ascending order of count. */
static void
choose_candidates(struct search *f)
{
    for (uint32_t count = DRYI_STEPS_MIN; count <= f->max_count; count++) {
        const struct candidate *c = &f->by_count[count];
        if (c->symbol_count == 0)
            continue;
        uint32_t n = f->candidate_count;
        if (n == CANDIDATES_MAX) {
            uint32_t worst = 0;
            for (uint32_t i = 1; i < n; i++) {
                if (f->candidates[i].symbol_count < f->candidates[worst].symbol_count)
                    worst = i;
            }
            if (f->candidates[worst].symbol_count >= c->symbol_count)
                continue;
            memmove(&f->candidates[worst], &f->candidates[worst + 1],
                    (n - 1 - worst) * sizeof *f->candidates);
            n--;
        }
        f->candidates[n] = *c;
        f->candidate_count = n + 1;
    }
}

/* --- testing a candidate ------------------------------------------------------------------ */

/* Count the anchor's parts, except the last, that contain a symbol exactly once. */
static uint32_t
count_single_parts(const struct dryi_sequence *s, uint32_t anchor, uint32_t symbol)
{
    const uint32_t *cuts = s->places + s->begins[anchor];
    const uint32_t *places = s->places + s->begins[symbol];
    uint32_t count = s->counts[symbol], i = 0, single = 0;
    while (i < count && places[i] < cuts[0])
        i++;
    for (uint32_t p = 0; p + 1 < s->counts[anchor]; p++) {
        uint32_t first = i;
        while (i < count && places[i] < cuts[p + 1])
            i++;
        single += i - first == 1;
    }
    return single;
}

static bool
keeps_time(const struct dryi_sequence *s, uint32_t anchor, uint32_t symbol)
{
    uint32_t parts = s->counts[anchor] - 1;
    return count_single_parts(s, anchor, symbol) >= parts - parts * 3 / 20;
}

static bool
is_as_frequent(uint32_t a, uint32_t b)
{
    uint32_t slack = a / 10 > 1 ? a / 10 : 1;
    return a <= b ? b - a <= slack : a - b <= slack;
}

static bool
has_company(const struct search *f, uint32_t anchor, struct verdict *v)
{
    const struct dryi_sequence *s = f->s;
    uint32_t alike = 0;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++) {
        if (!is_as_frequent(s->counts[anchor], s->counts[symbol]))
            continue;
        alike++;
        v->lockstep_count += f->is_even[symbol] && keeps_time(s, anchor, symbol);
    }
    return (uint64_t)v->lockstep_count * 10 >= (uint64_t)alike * 4;
}

/* Return whether the parts between anchors repeat each other and cover most of the window. */
static bool
repeats(const struct search *f, uint32_t anchor, bool *has_memory)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *cuts = s->places + s->begins[anchor];
    uint32_t count = s->counts[anchor];
    *has_memory = dryi_sequence_compare(s, cuts, count, f->shared);
    if (!*has_memory)
        return false;
    uint64_t explained = 0;
    for (uint32_t p = 0; p < count; p++) {
        uint32_t next = p + 1 < count ? f->shared[p + 1] : 0;
        explained += f->shared[p] > next ? f->shared[p] : next;
    }
    uint64_t behind = s->count - cuts[0];
    return behind >= 2ull * count && explained * 10 >= behind * 6 &&
           explained * 2 >= s->count;
}

/* --- where a loop runs -------------------------------------------------------------------- */

/* Iterate over a stack's Python frames, outermost first. Other frames are skipped: the same Python
   call does not always have the same C frames around it. */
struct python_frames {
    const struct dryi_hints *hints;
    const uint32_t *frames; /* innermost first, as in the trace */
    size_t left;
    uint16_t all; /* DRYI_HINT_... bits of the whole stack, other frames included */
};

static uint32_t
next_frame(struct python_frames *p)
{
    while (p->left > 0) {
        uint32_t frame = p->frames[--p->left];
        if (p->hints->frames[frame] & DRYI_HINT_PYTHON)
            return frame;
    }
    return DRY_NONE;
}

/* The outermost frames that all of a loop's Python code shares. */
struct callers {
    struct python_frames first;
    size_t count; /* number of shared frames */
};

static void
keep_common(struct callers *c, struct python_frames other)
{
    if (!c->first.hints) {
        *c = (struct callers){.first = other, .count = SIZE_MAX};
        return;
    }
    struct python_frames first = c->first;
    size_t common = 0;
    while (common < c->count) {
        uint32_t frame = next_frame(&first);
        if (frame == DRY_NONE || frame != next_frame(&other))
            break;
        common++;
    }
    c->count = common;
}

/* Return whether half of the bytes allocated in the loop, without temporaries, are alive in its
   last iteration. Layers accumulate what they keep for the backward pass; steps free it. */
static bool
piles_up(const struct search *f, uint32_t anchor)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[anchor];
    uint32_t first = places[0], last = places[s->counts[anchor] - 1];
    const struct dry_allocation *rows = f->view->allocations;
    uint64_t kept = 0, all = 0;
    for (uint32_t a = first; a < last; a++) {
        bool is_temporary = a + TEMPORARY_SPAN < s->count &&
                            rows[a].freed < rows[a + TEMPORARY_SPAN].begin;
        bool is_kept = rows[a].end >= rows[last].begin;
        all += is_temporary ? 0 : rows[a].size / 4;
        kept += is_kept ? rows[a].size / 4 : 0;
    }
    return kept > 0 && kept >= all / 2;
}

/* Return whether a symbol is code of the loop that has Python names, and its Python frames. Code
   that mostly ran before or after the loop is not part of it, however often it ran. */
static bool
find_python(const struct search *f, uint32_t anchor, uint32_t symbol,
            struct python_frames *python)
{
    const struct dryi_sequence *s = f->s;
    if (s->counts[symbol] < s->counts[anchor] / 2 || s->counts[symbol] == 0)
        return false;
    uint32_t middle = s->places[s->begins[symbol] + s->counts[symbol] / 2];
    const uint32_t *places = s->places + s->begins[anchor];
    if (middle < places[0] || middle > places[s->counts[anchor] - 1])
        return false;
    uint32_t stack = f->view->allocations[s->places[s->begins[symbol]]].stack;
    *python =
        (struct python_frames){.hints = f->hints, .all = dryi_hints_get(f->hints, stack)};
    python->frames = dry_trace_stack(f->view->trace, stack, &python->left);
    return (python->all & DRYI_HINT_PYTHON) != 0;
}

/* Return whether all code of the loop moves parameters, or builds them below the shared callers. */
static bool
builds(const struct search *f, uint32_t anchor, const struct callers *callers)
{
    for (uint32_t symbol = 0; symbol < f->s->symbol_count; symbol++) {
        struct python_frames python;
        uint16_t hints = 0;
        if (!find_python(f, anchor, symbol, &python) || python.all & DRYI_HINT_MOVE)
            continue;
        for (size_t i = 0; i < callers->count && next_frame(&python) != DRY_NONE;)
            i++;
        for (uint32_t frame; (frame = next_frame(&python)) != DRY_NONE;)
            hints |= f->hints->frames[frame];
        if (!(hints & DRYI_HINT_INIT))
            return false;
    }
    return callers->first.hints != NULL;
}

/* Return how many allocations of before the loop are alive in its last iteration: a layer needs at
   least one of its own. */
static uint32_t
count_kept_before(const struct search *f, uint32_t anchor)
{
    const uint32_t *places = f->s->places + f->s->begins[anchor];
    uint32_t last = places[f->s->counts[anchor] - 1], kept = 0;
    for (uint32_t a = 0; a < places[0]; a++)
        kept += f->view->allocations[a].end >= f->view->allocations[last].begin;
    return kept + f->view->carried_over_count;
}

/*
 * Detect loops inside a step: all of their code runs under one line of a model's forward(), or
 * in an optimizer. (Steps of inference may all run under one module's call, but not under one
 * line of its forward().) A loop that only builds or moves parameters runs before the steps.
 */
static void
check_callers(const struct search *f, uint32_t anchor, struct verdict *v)
{
    struct callers callers = {0};
    bool calls_models = false, calls_layers = false, in_module = false;
    for (uint32_t symbol = 0; symbol < f->s->symbol_count; symbol++) {
        struct python_frames python;
        if (!find_python(f, anchor, symbol, &python))
            continue;
        v->has_modules |= (python.all & DRYI_HINT_MODULE) != 0;
        bool is_called = (python.all & (DRYI_HINT_MODULE | DRYI_HINT_FORWARD)) != 0;
        calls_models |= is_called;
        calls_layers |=
            is_called && f->s->counts[symbol] / LAYERS_MIN >= f->s->counts[anchor];
        keep_common(&callers, python);
    }
    if (builds(f, anchor, &callers))
        v->is_inner |= DRYI_HINT_INIT;
    for (size_t i = 0; i < callers.count; i++) {
        uint32_t frame = next_frame(&callers.first);
        if (frame == DRY_NONE)
            break;
        uint16_t hints = f->hints->frames[frame];
        v->is_inner |= hints & (DRYI_HINT_FORWARD | DRYI_HINT_OPTIMIZER);
        in_module |= (hints & DRYI_HINT_MODULE) != 0;
    }
    if (in_module && piles_up(f, anchor))
        v->is_inner |= DRYI_HINT_MODULE;
    bool is_outside = calls_models && !in_module && !v->is_inner;
    v->encloses_models = is_outside && (calls_layers || f->s->counts[anchor] >
                                                            count_kept_before(f, anchor));
}

/* Detect loops inside a step by annotations: two iterations in one optimizer scope. */
static void
check_scopes(const struct search *f, uint32_t anchor, struct verdict *v)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[anchor];
    uint32_t inside = 0, i = 0;
    size_t visited = 0;
    for (size_t k = 0; k < f->optimizer->count; k++) {
        const struct dryi_scope *scope = &f->optimizer->rows[k];
        uint32_t before = inside;
        for (; i < s->counts[anchor]; i++) {
            uint32_t born = f->view->allocations[places[i]].begin;
            if (born > scope->end)
                break;
            inside += born > scope->begin;
        }
        visited += inside > before;
    }
    if (inside > 2 * visited)
        v->is_inner |= DRYI_HINT_OPTIMIZER;
}

static bool
try_candidate(const struct search *f, uint32_t anchor, struct verdict *v)
{
    bool has_memory = true;
    *v = (struct verdict){0};
    if (!has_company(f, anchor, v) || !repeats(f, anchor, &has_memory))
        return has_memory;
    v->is_loop = true;
    check_callers(f, anchor, v);
    check_scopes(f, anchor, v);
    return true;
}

/* --- the choice --------------------------------------------------------------------------- */

/*
 * Choose a loop, the outermost first. If stacks contain modules' calls, loops over layers
 * are already excluded, and an outer loop needs half of the best loop's lockstep symbols.
 * Without them, an eighth.
 */
static void
choose(const struct search *f, struct dryi_rhythm *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < f->candidate_count; i++) {
        const struct verdict *v = &f->verdicts[i];
        if (v->is_loop && v->is_inner)
            r->inner_hints |= v->is_inner;
        else if (v->is_loop && v->lockstep_count > most)
            most = v->lockstep_count;
    }
    for (uint32_t i = 0; i < f->candidate_count && !r->is_found; i++) {
        const struct verdict *v = &f->verdicts[i];
        uint32_t share = v->has_modules ? 2 : 8;
        if (!v->is_loop || v->is_inner || (uint64_t)v->lockstep_count * share < most)
            continue;
        if (v->lockstep_count < 2 && most >= 2)
            continue;
        r->is_found = true;
        r->encloses_models = v->encloses_models;
        r->anchor = f->candidates[i].symbol;
        r->lockstep_count = v->lockstep_count;
    }
}

/* Return the active bytes just before each allocation. */
static uint64_t *
measure_heights(const struct search *f)
{
    uint64_t *heights =
        dryi_memory_zalloc(&f->s->memory, (size_t)f->s->count + 1, sizeof *heights);
    if (!heights)
        return NULL;
    struct dryi_timeline_walk walk;
    dryi_timeline_walk_begin(&walk, f->timeline);
    for (uint32_t i = 0; i < f->s->count; i++) {
        while (walk.moment + 1 < f->view->allocations[i].begin)
            dryi_timeline_walk_advance(&walk);
        heights[i] = walk.height[DRY_CURVE_ACTIVE];
    }
    return heights;
}

static uint64_t
mean_height(const struct search *f, uint32_t symbol, const uint64_t *heights)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[symbol];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->counts[symbol]; i++)
        sum += heights[places[i]] / s->counts[symbol];
    return sum;
}

/* Choose the anchor: of the symbols with the most single parts, the one with the fewest
   active bytes before it. */
static void
settle_anchor(const struct search *f, const uint64_t *heights, struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    uint32_t anchor = r->anchor, most = 0;
    uint64_t lowest = UINT64_MAX;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++) {
        if (!f->is_even[symbol] ||
            !is_as_frequent(s->counts[anchor], s->counts[symbol]) ||
            !keeps_time(s, anchor, symbol))
            continue;
        uint32_t single = count_single_parts(s, anchor, symbol);
        if (single < most)
            continue;
        uint64_t height = mean_height(f, symbol, heights);
        if (single == most && height >= lowest)
            continue;
        most = single;
        lowest = height;
        r->anchor = symbol;
    }
}

/* --- where steps begin -------------------------------------------------------------------- */

/* Return the first of the allocations first + 1 .. last with the fewest active bytes before it. */
static uint32_t
find_lowest(const uint64_t *heights, uint32_t first, uint32_t last)
{
    uint32_t lowest = last;
    for (uint32_t a = last; a > first; a--) {
        if (heights[a] <= heights[lowest])
            lowest = a;
    }
    return lowest;
}

static bool
add_begin(struct dryi_rhythm *r, uint32_t allocation)
{
    if (!dryi_memory_grow(&r->memory, &r->begins, &r->capacity, r->count + 1,
                          sizeof *r->begins))
        return false;
    r->begins[r->count++] = allocation;
    return true;
}

/* Collect the lowest points between anchors. Returns false if memory ran out. */
static bool
collect_lowest(const struct search *f, const uint64_t *heights, struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[r->anchor];
    for (uint32_t i = 0; i + 1 < s->counts[r->anchor]; i++) {
        if (!add_begin(r, find_lowest(heights, places[i], places[i + 1])))
            return false;
    }
    return true;
}

/* Return whether 4 of 5 begins have the same code, and 4 of 5 have fewer active
   bytes than the anchor. */
static bool
agree(const struct search *f, const uint64_t *heights, const struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[r->anchor];
    uint32_t code = s->symbols[r->begins[r->count / 2]];
    size_t same = 0, lower = 0;
    for (size_t i = 0; i < r->count; i++) {
        same += s->symbols[r->begins[i]] == code;
        lower += heights[r->begins[i]] < heights[places[i + 1]];
    }
    return same * 5 >= r->count * 4 && lower * 5 >= r->count * 4;
}

/*
 * Correct lowest points with unusual code, as in a first step that creates the optimizer's state.
 * Such a point moves to the usual code if that is as far before its anchor as in the middle step.
 * Also find the begins of the steps before the first and after the last lowest point.
 */
static bool
straighten(const struct search *f, struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[r->anchor];
    size_t middle = r->count / 2;
    uint32_t code = s->symbols[r->begins[middle]];
    uint32_t ahead = places[middle + 1] - r->begins[middle];
    for (size_t i = 0; i < r->count; i++) {
        uint32_t a = places[i + 1] - ahead;
        if (s->symbols[r->begins[i]] != code && ahead <= places[i + 1] && a > places[i] &&
            s->symbols[a] == code)
            r->begins[i] = a;
    }
    uint64_t last = r->begins[r->count - 1];
    uint64_t next = last + (r->count > 1 ? last - r->begins[r->count - 2] : s->count);
    if (next < s->count && s->symbols[next] == code && !add_begin(r, (uint32_t)next))
        return false;
    if (ahead > places[0] || s->symbols[places[0] - ahead] != code)
        return true;
    if (!add_begin(r, 0))
        return false;
    memmove(r->begins + 1, r->begins, (r->count - 1) * sizeof *r->begins);
    r->begins[0] = places[0] - ahead;
    return true;
}

static bool
place_steps(const struct search *f, const uint64_t *heights, struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    const uint32_t *places = s->places + s->begins[r->anchor];
    if (!collect_lowest(f, heights, r))
        return false;
    if (agree(f, heights, r))
        return straighten(f, r);
    r->count = 0;
    for (uint32_t i = 0; i < s->counts[r->anchor]; i++) {
        if (!add_begin(r, places[i]))
            return false;
    }
    return true;
}

/* --- public call -------------------------------------------------------------------------- */

static bool
search(struct search *f, struct dryi_rhythm *r)
{
    const struct dryi_sequence *s = f->s;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++) {
        if (s->counts[symbol] >= DRYI_STEPS_MIN)
            consider_symbol(f, symbol);
    }
    choose_candidates(f);
    for (uint32_t i = 0; i < f->candidate_count; i++) {
        if (!try_candidate(f, f->candidates[i].symbol, &f->verdicts[i]))
            return false;
    }
    choose(f, r);
    if (!r->is_found)
        return true;
    uint64_t *heights = measure_heights(f);
    bool is_ok = heights != NULL;
    if (is_ok) {
        settle_anchor(f, heights, r);
        is_ok = place_steps(f, heights, r);
    }
    dryi_memory_free(&s->memory, heights, (size_t)s->count + 1, sizeof *heights);
    return is_ok;
}

enum dry_status
dryi_rhythm_find(struct dryi_rhythm *r, const struct dryi_sequence *s,
                 const struct dryi_rhythm_context *context, struct dry_error *err)
{
    struct search *f = dryi_memory_zalloc(&s->memory, 1, sizeof *f);
    *r = (struct dryi_rhythm){.memory = s->memory};
    if (!f)
        return dryi_fail_memory(err, "the search for steps");
    f->s = s;
    f->timeline = context->timeline;
    f->view = dry_timeline_get_view(context->timeline);
    f->hints = context->hints;
    f->optimizer = context->optimizer;
    for (uint32_t symbol = 0; symbol < s->symbol_count; symbol++)
        f->max_count =
            s->counts[symbol] > f->max_count ? s->counts[symbol] : f->max_count;
    size_t slot_count = (size_t)f->max_count + 1;
    f->by_count = dryi_memory_zalloc(&s->memory, slot_count, sizeof *f->by_count);
    f->shared = dryi_memory_zalloc(&s->memory, slot_count, sizeof *f->shared);
    f->is_even = dryi_memory_zalloc(&s->memory, s->symbol_count, 1);
    bool is_ok = f->by_count && f->shared && f->is_even && search(f, r);
    dryi_memory_free(&s->memory, f->by_count, slot_count, sizeof *f->by_count);
    dryi_memory_free(&s->memory, f->shared, slot_count, sizeof *f->shared);
    dryi_memory_free(&s->memory, f->is_even, s->symbol_count, 1);
    dryi_memory_free(&s->memory, f, 1, sizeof *f);
    if (is_ok)
        return DRY_OK;
    dryi_rhythm_finish(r);
    return dryi_fail_memory(err, "the search for steps");
}

void
dryi_rhythm_finish(struct dryi_rhythm *r)
{
    dryi_memory_free(&r->memory, r->begins, r->capacity, sizeof *r->begins);
    *r = (struct dryi_rhythm){.memory = r->memory};
}
