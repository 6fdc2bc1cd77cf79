/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find where steps begin, and measure them.
 *
 * Marks of the program take precedence. Without marks, the rhythm of the allocations tells:
 * first by stacks if there are any, then by stacks and sizes. Then each step is compared
 * with its neighbours. The first and the last step are partial unless they contain nearly
 * all that their neighbour does.
 */
#include <drystone/steps.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "explain/steps/hints.h"
#include "explain/steps/markers.h"
#include "explain/steps/rhythm.h"
#include "explain/steps/sequence.h"
#include "explain/steps/steps_inside.h"
#include "explain/timeline/timeline_inside.h"

/* A step at the window's edge is whole if it has this share of the usual likeness. */
#define WHOLE_PERCENT 95u
/* An allocation freed before this many others were made is a temporary. */
#define TEMPORARY_SPAN 8u
/* With fewer different stacks, sizes are needed to tell allocations apart. */
#define STACKS_MIN 4u

const char *
dry_steps_source_name(enum dry_steps_source source)
{
    static const char *const names[] = {"none", "annotations", "metadata", "periodicity"};
    return (unsigned)source <= DRY_STEPS_PERIODICITY ? names[source] : "unknown";
}

void
dry_steps_options_init_sized(struct dry_steps_options *options, size_t struct_size)
{
    const struct dry_steps_options defaults = {.until = DRY_MOMENT_NEVER};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* The evidence for the end of the last step. */
enum ending {
    ENDING_OPEN,   /* unknown */
    ENDING_CLOSED, /* marked by the program */
    ENDING_TAIL,   /* the last part follows the last step */
};

/* --- where steps begin -------------------------------------------------------------------- */

static bool
add_step(struct dry_steps *s, uint32_t begin)
{
    if (!dryi_memory_grow(&s->memory, &s->rows, &s->capacity, (size_t)s->count + 1,
                          sizeof *s->rows))
        return false;
    if (s->count > 0)
        s->rows[s->count - 1].end = begin;
    s->rows[s->count++] = (struct dry_step){.begin = begin, .end = s->until};
    return true;
}

/* Return the first event that allocates or frees. */
static uint32_t
find_first_use(const struct dry_timeline_view *v)
{
    uint32_t e = 0;
    while (e < v->event_count && v->event_allocation[e] == DRY_NONE)
        e++;
    return e;
}

/* Add a boundary. The first step begins at moment 0 in any case. A boundary before the first
   allocation or free is the first step's own. */
static bool
add_boundary(struct dry_steps *s, uint32_t moment)
{
    uint32_t last = dry_timeline_get_view(s->timeline)->event_count;
    if (moment >= s->until || moment >= last)
        return true;
    if (s->count == 1 && moment <= s->first_use) {
        s->has_first_mark = true;
        return true;
    }
    return add_step(s, moment);
}

/* Return whether nothing is allocated at or after a moment. */
static bool
is_quiet_after(const struct dryi_sequence *q, const struct dry_timeline_view *v,
               uint32_t moment)
{
    return q->count == 0 || v->allocations[q->count - 1].begin <= moment;
}

static enum dry_status
use_markers(struct dry_steps *s, const struct dryi_markers *m,
            const struct dryi_sequence *q, enum ending *ending, struct dry_error *err)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    size_t count = m->count;
    bool is_quiet = m->ends_last && is_quiet_after(q, v, m->moments[count - 1]);
    if (m->ends_last)
        *ending = is_quiet ? ENDING_CLOSED : ENDING_TAIL;
    count -= is_quiet; /* only frees follow: they belong to the last step */
    for (size_t i = 0; i < count; i++) {
        if (!add_boundary(s, m->moments[i]))
            return dryi_fail_memory(err, "the steps");
    }
    s->source = m->is_metadata ? DRY_STEPS_METADATA : DRY_STEPS_ANNOTATIONS;
    s->marker = m->name;
    return DRY_OK;
}

static enum dry_status
use_rhythm(struct dry_steps *s, const struct dryi_rhythm *r, struct dry_error *err)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    for (size_t i = 0; i < r->count; i++) {
        if (!add_boundary(s, v->allocations[r->begins[i]].begin - 1))
            return dryi_fail_memory(err, "the steps");
    }
    s->source = DRY_STEPS_PERIODICITY;
    s->encloses_models = r->encloses_models;
    s->anchor = r->begins[0];
    return DRY_OK;
}

static void
give_up(struct dry_steps *s, const struct dryi_sequence *q, uint16_t inner_hints)
{
    if (q->count == 0)
        s->reason = "nothing is allocated in the window";
    else if (inner_hints & DRYI_HINT_OPTIMIZER)
        s->reason =
            "what repeats runs inside one step of an optimizer: parameters, not steps";
    else if (inner_hints & ~(unsigned)DRYI_HINT_INIT)
        s->reason = "what repeats runs inside one call of a model: layers, not steps";
    else if (inner_hints)
        s->reason = "what repeats builds or moves parameters: no step does";
    else
        s->reason = "no code allocates in the same way three times, one after the other";
}

/* Find steps by periodicity: with the given alphabet, then, if that fails, by stacks and sizes, then
   by runs of equal stacks. */
static enum dry_status
search_rhythm(struct dry_steps *s, struct dryi_sequence *q, bool by_stack,
              const struct dryi_rhythm_context *context, struct dry_error *err)
{
    struct dryi_rhythm r;
    enum dry_status status = dryi_rhythm_find(&r, q, context, err);
    uint16_t inner_hints = r.inner_hints;
    enum dryi_alphabet alphabet =
        by_stack ? DRYI_ALPHABET_STACK_SIZE : DRYI_ALPHABET_STACK_RUN;
    for (; alphabet <= DRYI_ALPHABET_STACK_RUN; alphabet++) {
        if (status != DRY_OK || r.is_found || inner_hints & ~(unsigned)DRYI_HINT_INIT)
            break;
        dryi_rhythm_finish(&r);
        dryi_sequence_finish(q);
        status = dryi_sequence_init(q, s->timeline, alphabet, s->until, &s->memory, err);
        if (status == DRY_OK)
            status = dryi_rhythm_find(&r, q, context, err);
        inner_hints |= r.inner_hints;
    }
    if (status == DRY_OK && r.is_found)
        status = use_rhythm(s, &r, err);
    else if (status == DRY_OK)
        give_up(s, q, inner_hints);
    dryi_rhythm_finish(&r);
    return status;
}

static enum dry_status
find_rhythm(struct dry_steps *s, struct dryi_sequence *q, bool by_stack,
            struct dry_error *err)
{
    struct dryi_hints hints = {.memory = s->memory};
    struct dryi_scopes optimizer = {.memory = s->memory};
    struct dryi_rhythm_context context = {
        .timeline = s->timeline, .hints = &hints, .optimizer = &optimizer};
    enum dry_status status = dryi_hints_init(
        &hints, dry_timeline_get_view(s->timeline)->trace, &s->memory, err);
    if (status == DRY_OK)
        status =
            dryi_scopes_init(&optimizer, s->timeline, "Optimizer.step", &s->memory, err);
    if (status == DRY_OK)
        status = search_rhythm(s, q, by_stack, &context, err);
    dryi_hints_finish(&hints);
    dryi_scopes_finish(&optimizer);
    return status;
}

/* Set the begin and end of all steps. `q` becomes the sequence in which they were found. */
static enum dry_status
find_steps(struct dry_steps *s, struct dryi_sequence *q, enum ending *ending,
           struct dry_error *err)
{
    struct dryi_markers markers;
    enum dry_status status = dryi_sequence_init(q, s->timeline, DRYI_ALPHABET_STACK,
                                                s->until, &s->memory, err);
    bool by_stack = q->used_count >= STACKS_MIN;
    if (status == DRY_OK && !by_stack) {
        dryi_sequence_finish(q);
        status = dryi_sequence_init(q, s->timeline, DRYI_ALPHABET_STACK_SIZE, s->until,
                                    &s->memory, err);
    }
    if (status != DRY_OK)
        return status;
    status = dryi_markers_init(&markers, s->timeline, s->until, &s->memory, err);
    s->first_use = find_first_use(dry_timeline_get_view(s->timeline));
    if (status == DRY_OK && !add_step(s, 0))
        status = dryi_fail_memory(err, "the steps");
    if (status == DRY_OK && markers.count > 0)
        status = use_markers(s, &markers, q, ending, err);
    else if (status == DRY_OK)
        status = find_rhythm(s, q, by_stack, err);
    dryi_markers_finish(&markers);
    return status;
}

/* --- comparing steps ---------------------------------------------------------------------- */

struct comparison {
    uint32_t *begins; /* first allocation of each step, and the end of the last */
    uint32_t *shared; /* number of allocations shared with the step before */
    double usual;     /* usual share of a step's allocations that the next step repeats */
};

static uint32_t
part_size(const struct comparison *c, uint32_t i)
{
    return c->begins[i + 1] - c->begins[i];
}

/* Return whether `shared` reaches 95 % of the usual share of `of` allocations. */
static bool
reaches_usual_share(const struct comparison *c, uint32_t shared, uint32_t of)
{
    return of > 0 && shared * 100.0 >= of * c->usual * WHOLE_PERCENT;
}

static void
mark_ooms(struct dry_steps *s)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    const uint8_t *action = dry_trace_get_view(v->trace)->action;
    uint32_t i = 0;
    for (uint32_t e = 0; v->oom_count > 0 && e < v->event_count && e < s->until; e++) {
        while (i + 1 < s->count && e >= s->rows[i].end)
            i++;
        s->rows[i].is_partial |= action[v->first_event + e] == DRY_ACTION_OOM;
    }
}

/* Return the smaller of the two steps before the last, so that one large odd step does not make
   the last step partial. */
static uint32_t
usual_size(const struct comparison *c, uint32_t last)
{
    uint32_t a = part_size(c, last - 1), b = part_size(c, last > 1 ? last - 2 : 0);
    return last > 2 && b < a ? b : a;
}

/* Count allocations and frees in a step. Cost: O(moments of the step). */
static uint32_t
count_uses(const struct dry_steps *s, uint32_t i)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    uint32_t uses = 0;
    for (uint32_t e = s->rows[i].begin; e < s->rows[i].end && e < v->event_count; e++)
        uses += v->event_allocation[e] != DRY_NONE;
    return uses;
}

/* Return whether the last step made nearly all allocations and frees of the steps before it. */
static bool
is_last_whole(const struct dry_steps *s, const struct comparison *c)
{
    uint32_t last = s->count - 1, before = count_uses(s, last - 1);
    if (last > 2 && count_uses(s, last - 2) < before)
        before = count_uses(s, last - 2);
    return reaches_usual_share(c, c->shared[last], usual_size(c, last)) &&
           reaches_usual_share(c, count_uses(s, last), before);
}

static void
find_whole_steps(struct dry_steps *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->rows[i].is_partial)
            continue;
        if (s->whole_end == 0)
            s->first_whole = i;
        s->whole_end = i + 1;
    }
}

static void
mark_partial(struct dry_steps *s, const struct comparison *c, enum ending ending)
{
    mark_ooms(s);
    if (s->count < 2) {
        s->rows[0].is_partial = true;
        return;
    }
    uint32_t last = s->count - 1;
    if (!s->has_first_mark)
        s->rows[0].is_partial |= !reaches_usual_share(c, c->shared[1], part_size(c, 1));
    if (ending == ENDING_TAIL || (ending == ENDING_OPEN && !is_last_whole(s, c)))
        s->rows[last].is_partial = true;
    find_whole_steps(s);
}

/* Return the share of allocations in the steps first .. end - 1 that the next step repeats. */
static double
measure_likeness(const struct comparison *c, uint32_t first, uint32_t end)
{
    uint64_t found = 0, of = 0;
    for (uint32_t i = first; i + 1 < end; i++) {
        found += c->shared[i + 1];
        of += part_size(c, i);
    }
    return of > 0 ? (double)found / (double)of : 0.0;
}

static enum dry_status
compare_steps(struct dry_steps *s, const struct dryi_sequence *q, enum ending ending,
              struct dry_error *err)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    size_t slot_count = (size_t)s->count + 1;
    struct comparison c = {
        .begins = dryi_memory_zalloc(&s->memory, slot_count, sizeof *c.begins),
        .shared = dryi_memory_zalloc(&s->memory, slot_count, sizeof *c.shared),
    };
    bool is_ok = c.begins && c.shared;
    if (is_ok) {
        uint32_t a = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            while (a < q->count && v->allocations[a].begin <= s->rows[i].begin)
                a++;
            c.begins[i] = a;
        }
        c.begins[s->count] = q->count;
        is_ok = dryi_sequence_compare(q, c.begins, s->count, c.shared);
    }
    if (is_ok) {
        c.usual = s->count > 3 ? measure_likeness(&c, 1, s->count - 1) : 1.0;
        mark_partial(s, &c, ending);
        s->confidence = measure_likeness(&c, s->first_whole, s->whole_end);
    }
    dryi_memory_free(&s->memory, c.begins, slot_count, sizeof *c.begins);
    dryi_memory_free(&s->memory, c.shared, slot_count, sizeof *c.shared);
    return is_ok ? DRY_OK : dryi_fail_memory(err, "the comparison of steps");
}

/* --- measuring steps ---------------------------------------------------------------------- */

/* Set the events and times of a step, whose last event comes before the moment `last`. */
static void
number_events(const struct dry_timeline *timeline, struct dry_step *step, uint32_t last)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    step->first_event = v->first_event + step->begin;
    step->event_count = dryi_min32(step->end, v->event_count) - step->begin;
    step->peak_event = step->peak.moment > step->begin
                           ? v->first_event + step->peak.moment - 1
                           : SIZE_MAX;
    step->begin_us = dry_timeline_time(timeline, step->begin + 1);
    step->end_us = dry_timeline_time(timeline, last);
    int64_t next_us =
        last < step->end ? step->end_us : dry_timeline_time(timeline, step->end + 1);
    if (next_us > step->begin_us)
        step->duration_us = (uint64_t)next_us - (uint64_t)step->begin_us;
}

static void
measure_heights(struct dry_steps *s)
{
    struct dryi_timeline_walk walk;
    dryi_timeline_walk_begin(&walk, s->timeline);
    for (uint32_t i = 0; i < s->count; i++) {
        struct dry_step *step = &s->rows[i];
        step->peak = (struct dry_peak){.moment = step->begin};
        uint32_t last = i + 1 < s->count ? step->end : s->until - 1;
        for (;; dryi_timeline_walk_advance(&walk)) {
            uint64_t height = walk.height[DRY_CURVE_ACTIVE];
            if (walk.moment <= step->end &&
                (height > step->peak.bytes || walk.moment == step->begin))
                step->peak = (struct dry_peak){.bytes = height, .moment = walk.moment};
            step->reserved_peak =
                dryi_max(step->reserved_peak, walk.height[DRY_CURVE_RESERVED]);
            if (walk.moment >= last)
                break;
        }
        step->active_end = walk.height[DRY_CURVE_ACTIVE];
        step->reserved_end = walk.height[DRY_CURVE_RESERVED];
        number_events(s->timeline, step, last);
    }
}

static void
add_allocation(struct dry_step *step, const struct dry_timeline_view *v, uint32_t a,
               uint32_t next_end)
{
    const struct dry_allocation *row = &v->allocations[a];
    uint32_t born = v->allocation_count - v->carried_over_count;
    step->alloc_bytes = dryi_add_saturating(step->alloc_bytes, row->size);
    step->alloc_count++;
    if (row->end > next_end)
        step->kept_bytes = dryi_add_saturating(step->kept_bytes, row->size);
    bool is_temporary = row->freed != DRY_MOMENT_NEVER &&
                        (born - a <= TEMPORARY_SPAN ||
                         v->allocations[a + TEMPORARY_SPAN].begin > row->freed);
    if (is_temporary) {
        step->temporary_bytes = dryi_add_saturating(step->temporary_bytes, row->size);
        step->temporary_count++;
    }
}

static void
measure_allocations(struct dry_steps *s, uint32_t count)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(s->timeline);
    uint32_t i = 0;
    for (uint32_t a = 0; a < count; a++) {
        while (i + 1 < s->count && v->allocations[a].begin > s->rows[i].end)
            i++;
        uint32_t next = i + 1 < s->count ? i + 1 : i;
        uint32_t end = next + 1 < s->count ? s->rows[next].end : s->until - 1;
        add_allocation(&s->rows[i], v, a, end);
    }
}

/* --- create and destroy ------------------------------------------------------------------- */

static enum dry_status
create(struct dry_steps *s, struct dry_error *err)
{
    struct dryi_sequence q = {.memory = s->memory};
    enum ending ending = ENDING_OPEN;
    enum dry_status status = find_steps(s, &q, &ending, err);
    if (status == DRY_OK)
        status = compare_steps(s, &q, ending, err);
    if (status == DRY_OK) {
        measure_heights(s);
        measure_allocations(s, q.count);
        status = dryi_growth_find(s, err);
    }
    dryi_sequence_finish(&q);
    return status;
}

enum dry_status
dry_steps_create(const struct dry_timeline *timeline,
                 const struct dry_steps_options *options, struct dry_steps **steps,
                 struct dry_error *err)
{
    struct dry_steps_options o;
    dry_steps_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    uint32_t dump = dry_timeline_get_view(timeline)->dump_moment;
    if (o.until == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "steps until moment 0: expected 1 or more");
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_steps *s = dryi_memory_zalloc(&memory, 1, sizeof *s);
    if (!s)
        return dryi_fail_memory(err, "steps");
    s->memory = memory;
    s->timeline = timeline;
    s->until = o.until < dump ? o.until : dump;
    s->reason = "";
    s->marker = s->anchor = DRY_NONE;
    status = create(s, err);
    if (status == DRY_OK)
        *steps = s;
    else
        dry_steps_destroy(s);
    return status;
}

void
dry_steps_destroy(struct dry_steps *s)
{
    if (!s)
        return;
    struct dry_memory memory = s->memory;
    dryi_memory_free(&memory, s->rows, s->capacity, sizeof *s->rows);
    dryi_memory_free(&memory, s->growth, s->growth_capacity, sizeof *s->growth);
    dryi_memory_free(&memory, s, 1, sizeof *s);
}

enum dry_steps_source
dry_steps_get_source(const struct dry_steps *steps)
{
    return steps->source;
}

bool
dryi_steps_enclose_models(const struct dry_steps *steps)
{
    return steps->encloses_models;
}

const char *
dry_steps_get_reason(const struct dry_steps *steps)
{
    return steps->reason;
}

const char *
dry_steps_get_marker(const struct dry_steps *steps, size_t *length)
{
    const struct dry_trace *trace = dry_timeline_get_view(steps->timeline)->trace;
    const char *text = dry_trace_string(trace, steps->marker, length);
    if (!text && length)
        *length = 0;
    return text ? text : "";
}

uint32_t
dry_steps_get_anchor(const struct dry_steps *steps)
{
    return steps->anchor;
}

double
dry_steps_get_confidence(const struct dry_steps *steps)
{
    return steps->confidence;
}

const struct dry_step *
dry_steps_get(const struct dry_steps *steps, uint32_t *count)
{
    *count = steps->count;
    return steps->rows;
}

uint32_t
dry_steps_find(const struct dry_steps *steps, uint32_t moment)
{
    if (moment >= steps->until)
        return DRY_NONE;
    uint32_t low = 0, high = steps->count; /* invariant: rows[low].begin <= moment */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (steps->rows[middle].begin <= moment)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const struct dry_growth *
dry_steps_get_growth(const struct dry_steps *steps, size_t *count)
{
    *count = steps->growth_count;
    return steps->growth;
}

uint64_t
dry_steps_growth_per_step(const struct dry_steps *steps)
{
    return steps->growth_per_step;
}
