/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON: schema drystone.plan/1, which is valid "ckpt-plan/1" too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/json_out.h"
#include "base/output.h"
#include "plan/plan_report.h"

#define TIMELINE_STEPS_MAX 1000000

static json_t *
make_hash(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

static json_t *
make_ratio(double part, double whole)
{
    return whole > 0 ? json_real(part / whole) : json_null();
}

/* Return a stage's index, or null for the optimizer's step, which belongs to no stage. */
static json_t *
make_stage(const struct dry_chain *chain, uint64_t stage)
{
    return stage < dry_chain_get_count(chain) ? json_out_number(stage) : json_null();
}

/* --- items -------------------------------------------------------------------------------- */

/* A list being filled, and the index of the item at which it ends. */
struct level {
    json_t *list;
    size_t end;
};

struct tree {
    const struct chain_file *input;
    const struct dry_plan_item *items;
    struct level levels[PLAN_DEPTH_MAX + 1];
    size_t depth;
};

/* Write an option. Neighbouring stages whose option has the same name and operations
   become one object. Returns false if memory ran out or the option has no name. */
static bool
put_option(const struct tree *t, json_t *list, const struct dry_plan_item *item)
{
    for (uint32_t first = item->first, next; first <= item->last; first = next) {
        const struct dry_stage *s = dry_chain_get_stage(t->input->chain, first);
        const char *name = s->options[item->option - 1].name;
        json_t *policy = chain_find_policy(t->input, first, item->option);
        for (next = first + 1; next <= item->last; next++) {
            const struct dry_stage *other = dry_chain_get_stage(t->input->chain, next);
            if (strcmp(other->options[item->option - 1].name, name) != 0 ||
                chain_find_policy(t->input, next, item->option) != policy)
                break;
        }
        json_t *made = json_pack("{s:[I, I], s:s}", "opt", (json_int_t)first,
                                 (json_int_t)next - 1, "id", name);
        if (json_array_append_new(list, made) != 0 ||
            (policy && json_object_set(made, "policy", policy) != 0))
            return false;
    }
    return true;
}

static bool
put_item(struct tree *t, size_t i)
{
    const struct dry_plan_item *item = &t->items[i];
    json_t *list = t->levels[t->depth - 1].list;
    bool is_range = item->kind == DRY_PLAN_CHECKPOINT;
    if (!is_range && item->option > 0)
        return put_option(t, list, item);
    json_t *made = json_pack("{s:[I, I]}", is_range ? "ckpt" : "save",
                             (json_int_t)item->first, (json_int_t)item->last);
    if (json_array_append_new(list, made) != 0)
        return false;
    if (!is_range || item->inner_count == 0)
        return true;
    json_t *inner = json_array();
    if (json_object_set_new(made, "inner", inner) != 0)
        return false;
    t->levels[t->depth++] = (struct level){inner, i + 1 + item->inner_count};
    return true;
}

static enum dry_status
fill_items(struct tree *t, size_t count, struct dry_error *err)
{
    for (size_t i = 0; i < count; i++) {
        while (i == t->levels[t->depth - 1].end)
            t->depth--;
        if (t->depth > PLAN_DEPTH_MAX)
            return fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                           "the plan has ranges in ranges deeper than %d, too deep for "
                           "JSON",
                           PLAN_DEPTH_MAX);
        if (!put_item(t, i))
            return fail_memory(err, "no memory for a plan");
    }
    return DRY_OK;
}

static json_t *
make_items(const struct plan_report *r, struct dry_error *err)
{
    struct tree *t = calloc(1, sizeof *t);
    json_t *root = json_array();
    enum dry_status status = DRY_ERR_MEMORY;
    if (t && root) {
        t->input = r->input;
        t->items = r->items;
        t->levels[t->depth++] = (struct level){root, SIZE_MAX};
        status = fill_items(t, r->item_count, err);
    } else {
        fail_memory(err, "no memory for a plan");
    }
    free(t);
    if (status == DRY_OK)
        return root;
    json_decref(root);
    return NULL;
}

/* --- the timeline ------------------------------------------------------------------------- */

struct collector {
    json_t *list;
    bool is_full, has_no_memory;
};

static void
collect(void *self, const struct dry_plan_step *step)
{
    struct collector *c = self;
    bool has_stage = step->phase != DRY_PHASE_STEP;
    if (json_array_size(c->list) == TIMELINE_STEPS_MAX) {
        c->is_full = true;
        return;
    }
    json_t *made =
        json_pack("[o, o, s, o]", json_out_number(step->time_ns),
                  json_out_number(step->needed_bytes), dry_phase_name(step->phase),
                  has_stage ? json_integer(step->stage) : json_null());
    c->has_no_memory |= json_array_append_new(c->list, made) != 0;
}

static json_t *
make_timeline(const struct plan_report *r, struct dry_error *err)
{
    struct collector c = {.list = json_array()};
    const struct dry_plan_observer observer = {.step = collect, .self = &c};
    struct dry_plan_cost cost;
    enum dry_status status = dry_plan_evaluate(r->input->chain, r->items, r->item_count,
                                               &observer, &cost, err);
    if (status == DRY_OK && c.is_full)
        status = fail_at(err, DRY_ERR_LIMIT, DRY_NO_OFFSET,
                         "the timeline has more than %d steps, too many for JSON",
                         TIMELINE_STEPS_MAX);
    else if (status == DRY_OK && c.has_no_memory)
        status = fail_memory(err, "no memory for the timeline");
    if (status == DRY_OK)
        return c.list;
    json_decref(c.list);
    return NULL;
}

/* --- figures ------------------------------------------------------------------------------ */

static json_t *
make_cost(const struct plan_report *r, const struct dry_plan_cost *c)
{
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "peak_bytes",
        json_out_number(c->peak_bytes), "peak_phase", dry_phase_name(c->peak_phase),
        "peak_stage", make_stage(r->input->chain, c->peak_stage), "held_at_loss_bytes",
        json_out_number(c->held_bytes), "time_ns", json_out_number(c->time_ns), "base_ns",
        json_out_number(c->base_ns), "extra_ns", json_out_number(c->extra_ns), "overhead",
        make_ratio((double)c->extra_ns, (double)c->base_ns), "recomputed_count",
        json_out_number(c->recomputed_count));
}

static json_t *
make_floor(const struct plan_report *r, const struct dry_plan_summary *s)
{
    char where[PLAN_WHERE_BYTES];
    plan_format_where(r->input->chain, s->floor_phase, s->floor_stage, where);
    return json_pack("{s:o, s:o, s:s, s:o}", "bytes", json_out_number(s->floor_bytes),
                     "stage", make_stage(r->input->chain, s->floor_stage), "phase",
                     dry_phase_name(s->floor_phase), "why", json_out_string(where));
}

static json_t *
make_gap(const struct dry_plan_summary *s)
{
    double over =
        s->cost.time_ns > s->bound_ns ? (double)(s->cost.time_ns - s->bound_ns) : 0;
    return make_ratio(over, (double)s->bound_ns);
}

static json_t *
make_budget(uint64_t bytes)
{
    return bytes == UINT64_MAX ? json_null() : json_out_number(bytes);
}

static json_t *
make_row(const struct plan_report *r, const struct plan_row *row)
{
    const struct dry_plan_summary *s = &row->summary;
    const char *method = dry_method_name(row->method);
    if (!row->is_made)
        return json_pack("{s:s, s:b, s:o}", "algorithm", method, "feasible", 0, "why",
                         json_out_string(row->why));
    return json_pack("{s:s, s:b, s:s, s:o, s:o, s:o, s:o}", "algorithm", method,
                     "feasible", row->fits, "class", dry_plan_class_name(s->plan_class),
                     "predicted", make_cost(r, &s->cost), "lower_bound_ns",
                     json_out_number(s->bound_ns), "gap", make_gap(s),
                     "min_feasible_budget", make_floor(r, s));
}

static json_t *
make_rows(const struct plan_report *r)
{
    if (!r->rows)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < r->row_count && list; i++)
        list = json_out_append(list, make_row(r, &r->rows[i]));
    return list;
}

static json_t *
make_points(const struct plan_report *r)
{
    if (!r->has_curve)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < r->point_count && list; i++)
        list = json_out_append(list, make_cost(r, &r->points[i].cost));
    return list;
}

/* Add the members that only a plan made in this run has; for a plan read from a file they
   are unknown. */
static bool
put_planned(const struct plan_report *r, json_t *root)
{
    const struct dry_plan_summary *s = &r->summary;
    json_t *more =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "algorithm",
                  dry_method_name(s->method), "class", dry_plan_class_name(s->plan_class),
                  "lower_bound_ns", json_out_number(s->bound_ns), "gap", make_gap(s),
                  "min_feasible_budget", make_floor(r, s), "slots",
                  json_out_number(s->slots), "window", json_out_number(s->window),
                  "table_bytes", json_out_number(s->table_bytes), "rounding",
                  s->slots ? "slots" : "none", "plan_hash", make_hash(s->hash));
    int failed = json_object_update(root, more);
    json_decref(more);
    return failed == 0;
}

/* Add the least budget, the only figure known if no plan fits. */
static bool
put_infeasible(const struct plan_report *r, json_t *root)
{
    const struct dry_plan_summary *s = &r->summary;
    return json_object_set_new(root, "algorithm",
                               json_string(dry_method_name(s->method))) == 0 &&
           json_object_set_new(root, "min_feasible_budget", make_floor(r, s)) == 0;
}

static bool
put_plan(const struct plan_report *r, json_t *root, struct dry_error *err)
{
    json_t *items = make_items(r, err);
    if (!items || json_object_set_new(root, "items", items) != 0 ||
        json_object_set_new(root, "plan_hash", make_hash(r->summary.hash)) != 0 ||
        json_object_set_new(root, "predicted", make_cost(r, &r->summary.cost)) != 0)
        return false;
    json_t *timeline = r->has_timeline ? make_timeline(r, err) : json_null();
    if (!timeline || json_object_set_new(root, "timeline", timeline) != 0)
        return false;
    return r->judged || put_planned(r, root);
}

json_t *
plan_json_make(const struct plan_report *r, struct dry_error *err)
{
    uint64_t hash = dry_chain_get_hash(r->input->chain);
    fail_memory(err, "no memory for the report");
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "schema", "drystone.plan/1",
        "format", "ckpt-plan/1", "file", json_out_string(r->file), "feasible",
        r->outcome == PLAN_FITS, "judged", r->judged != NULL, "budget_bytes",
        make_budget(r->summary.budget_bytes), "input_hash", make_hash(hash), "compare",
        make_rows(r), "curve", make_points(r));
    if (!root)
        return NULL;
    bool is_whole =
        r->outcome == PLAN_NONE ? put_infeasible(r, root) : put_plan(r, root, err);
    if (is_whole)
        return root;
    json_decref(root);
    return NULL;
}

/* --- text --------------------------------------------------------------------------------- */

static int
dump(const char *bytes, size_t count, void *self)
{
    struct writer *w = self;
    writer_bytes(w, bytes, count);
    return w->status == DRY_OK ? 0 : -1;
}

static void
write_value(const json_t *value, struct writer *w)
{
    if (json_dump_callback(value, dump, w, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) !=
        0)
        writer_fail(w, DRY_ERR_MEMORY, "no memory for the plan");
}

static void
write_list(const json_t *list, struct writer *w)
{
    size_t count = json_array_size(list);
    writer_put(w, "[\n");
    for (size_t i = 0; i < count; i++) {
        writer_put(w, "    ");
        write_value(json_array_get(list, i), w);
        writer_put(w, i + 1 < count ? ",\n" : "\n  ");
    }
    writer_char(w, ']');
}

static void
write_all(json_t *root, struct writer *w)
{
    writer_put(w, "{\n");
    for (void *at = json_object_iter(root); at;) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        writer_put(w, "  ");
        writer_json(w, key, strlen(key));
        writer_put(w, ": ");
        if (json_is_object(json_array_get(value, 0)) ||
            json_is_array(json_array_get(value, 0)))
            write_list(value, w);
        else
            write_value(value, w);
        at = json_object_iter_next(root, at);
        writer_put(w, at ? ",\n" : "\n");
    }
    writer_put(w, "}\n");
}

int
plan_json_save(json_t *root, const char *path)
{
    struct output out;
    struct dry_error err;
    int code = output_open(&out, "plan", path);
    if (code == EXIT_FINE) {
        struct writer w;
        const struct dry_sink sink = output_sink(&out);
        writer_init(&w, &sink, NULL);
        write_all(root, &w);
        enum dry_status status = writer_finish(&w, &err);
        code = output_close(&out, status, &err);
    }
    json_decref(root);
    return code;
}
