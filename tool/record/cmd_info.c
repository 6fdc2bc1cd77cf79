/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone info`: what is in a file and how far it can be trusted. */
#include <inttypes.h>
#include <string.h>

#include <drystone/pool_trace.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "record/info.h"
#include "record/load.h"

struct values {
    bool json;
};

static const struct option_spec specs[] = {
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.info/1, see drystone-info(1)"},
};

static const char about_text[] =
    "FILE is a PyTorch memory snapshot (a pickle or its JSON), a plain trace, a log of "
    "RMM or a CSV of lifetimes, packed by gzip or zstd or not; - is standard input. "
    "Nothing in it is executed.";

struct subject {
    const char *path;
    const struct dry_trace *trace;
    const struct dry_trace_view *view;
    struct input_description input;
    struct info info;
};

/* --- how far it can be trusted ------------------------------------------------------- */

struct doubt {
    const char *code;
    const char *one;  /* after a count of 1; NULL: no count is shown */
    const char *text; /* after every other; in JSON always */
    size_t count;
};

static size_t
sum_devices(const struct info *info, size_t member)
{
    size_t sum = 0;
    for (size_t i = 0; i < info->device_count; i++) {
        size_t count;
        memcpy(&count, (const char *)&info->devices[i] + member, sizeof count);
        sum += count;
    }
    return sum;
}

/* The two forms of what is doubted, in the order of the codes. */
static const struct doubt doubt_texts[] = {
    {.code = "no_events",
     .text = "no events: history was not recorded, only the end is known"},
    {.code = "window_begins_warm",
     .one = "free without its alloc: the window begins with memory in use",
     .text = "frees without their alloc: the window begins with memory in use"},
    {.code = "older_blocks",
     .one = "block in use at the end that was allocated before the window",
     .text = "blocks in use at the end that were allocated before the window"},
    {.code = "history_disagrees",
     .one = "block in use by the events, but not by the segments at the end",
     .text = "blocks in use by the events, but not by the segments at the end"},
    {.code = "no_segments", .text = "no segments: the layout at the end is not known"},
    {.code = "no_stacks",
     .text = "no stacks: nobody can say which line asked for the memory"},
    {.code = "some_stacks_missing",
     .one = "event without a stack",
     .text = "events without a stack"},
    {.code = "time_goes_back",
     .one = "event earlier than the one before: clocks were mixed",
     .text = "events earlier than the one before: clocks were mixed"},
    {.code = "blocks_do_not_fill",
     .one = "segment whose blocks do not add up to its size",
     .text = "segments whose blocks do not add up to their size"},
    {.code = "sums_disagree",
     .one = "segment whose allocated or active size is not that of its blocks",
     .text = "segments whose allocated or active size is not that of their blocks"},
    {.code = "unknown_actions",
     .one = "event of an unknown action: a later PyTorch wrote this",
     .text = "events of an unknown action: a later PyTorch wrote this"},
    {.code = "unknown_keys",
     .one = "value under an unknown key: kept, but not understood",
     .text = "values under unknown keys: kept, but not understood"},
};
#define DOUBTS_MAX (sizeof doubt_texts / sizeof *doubt_texts)

/* What there is reason for, with its counts. */
static size_t
find_doubts(const struct subject *s, struct doubt doubts[DOUBTS_MAX])
{
    const struct info *in = &s->info;
    const struct dry_trace_view *v = s->view;
    bool is_snapshot = v->kind == DRY_TRACE_SNAPSHOT;
    size_t old_blocks = sum_devices(in, offsetof(struct info_device, old_blocks));
    const size_t counts[DOUBTS_MAX] = {
        in->request_events == 0,
        sum_devices(in, offsetof(struct info_device, warm_frees)),
        in->request_events ? old_blocks : 0,
        sum_devices(in, offsetof(struct info_device, lost_blocks)),
        is_snapshot && v->event_count > 0 && v->segment_count == 0,
        in->stackable_events > 0 && in->stack_events == 0,
        in->stack_events > 0 ? in->stackable_events - in->stack_events : 0,
        sum_devices(in, offsetof(struct info_device, time_reversals)),
        in->gap_segments,
        in->sum_segments,
        in->unknown_actions,
        in->unknown_keys,
    };
    size_t used = 0;
    for (size_t i = 0; i < DOUBTS_MAX; i++) {
        if (counts[i] == 0)
            continue;
        doubts[used] = doubt_texts[i];
        doubts[used++].count = counts[i];
    }
    return used;
}

/* --- words --------------------------------------------------------------------------- */

static const char *
name_kind(enum dry_trace_kind kind)
{
    switch (kind) {
    case DRY_TRACE_SNAPSHOT:
        return "snapshot";
    case DRY_TRACE_PLAIN:
        return "plain";
    case DRY_TRACE_RMM:
        return "rmm";
    case DRY_TRACE_LIFETIMES:
        return "lifetimes";
    case DRY_TRACE_BUILT:
        return "built";
    }
    return "unknown";
}

static const char *
describe_kind(enum dry_trace_kind kind)
{
    switch (kind) {
    case DRY_TRACE_SNAPSHOT:
        return "PyTorch memory snapshot";
    case DRY_TRACE_PLAIN:
        return "plain trace";
    case DRY_TRACE_RMM:
        return "RMM log";
    case DRY_TRACE_LIFETIMES:
        return "lifetimes";
    case DRY_TRACE_BUILT:
        break;
    }
    return "trace";
}

static const char *
name_block_state(size_t state)
{
    static const char *const names[] = {"inactive", "active_allocated",
                                        "active_pending_free"};
    return names[state];
}

static const char *
name_unknown(uint32_t where)
{
    static const char *const names[] = {"action",        "event_key", "block_key",
                                        "segment_key",   "frame_key", "top_key",
                                        "annotation_key"};
    return where < sizeof names / sizeof *names ? names[where] : "other";
}

static uint64_t
span_us(const struct info_device *d)
{
    return d->timed_count ? (uint64_t)d->last_us - (uint64_t)d->first_us : 0;
}

/* "device 0", "host" */
static const char *
name_device(int32_t device, char text[TERM_NUMBER_BYTES])
{
    if (device == DRY_DEVICE_HOST)
        return "host";
    snprintf(text, TERM_NUMBER_BYTES, "%" PRId32, device);
    return text;
}

/* --- text ---------------------------------------------------------------------------- */

#define ROWS_MAX 20

static void
add_bytes(struct table *t, uint64_t bytes)
{
    char text[TERM_NUMBER_BYTES];
    table_add(t, term_format_bytes(bytes, text));
}

static void
add_count(struct table *t, uint64_t count)
{
    char text[TERM_NUMBER_BYTES];
    table_add(t, count ? term_format_count(count, text) : "-");
}

static void
print_head(const struct subject *s, const struct term *term)
{
    const struct dry_trace_view *v = s->view;
    char size[TERM_NUMBER_BYTES];
    printf("%s", term_style(term, TERM_BOLD));
    term_print_text(stdout, s->path, strlen(s->path));
    printf("%s\n  %s", term_style(term, TERM_PLAIN), describe_kind(v->kind));
    if (v->protocol >= 0 && !s->input.is_converted)
        printf(", pickle protocol %d", v->protocol);
    if (v->is_bare_list)
        printf(", segments only");
    if (s->input.format[0])
        printf(", %s", s->input.format);
    if (s->input.file_bytes)
        printf(", %s", term_format_bytes(s->input.file_bytes, size));
    if (s->input.is_unpacked && !s->input.is_converted)
        printf(" (%s unpacked)", term_format_bytes(v->byte_count, size));
    printf("\n");
}

static const enum dry_action shown_actions[] = {
    DRY_ACTION_ALLOC,        DRY_ACTION_FREE_REQUESTED, DRY_ACTION_SEGMENT_ALLOC,
    DRY_ACTION_SEGMENT_FREE, DRY_ACTION_SEGMENT_MAP,    DRY_ACTION_SEGMENT_UNMAP,
    DRY_ACTION_OOM,
};
#define SHOWN_COUNT (sizeof shown_actions / sizeof *shown_actions)

static bool
is_shown(enum dry_action action)
{
    for (size_t i = 0; i < SHOWN_COUNT; i++) {
        if (shown_actions[i] == action)
            return true;
    }
    return false;
}

/* Actions without a column, of all devices together. */
static void
print_other_events(const struct info *in)
{
    for (size_t action = 0; action < DRY_ACTION_COUNT; action++) {
        size_t count = 0;
        for (size_t i = 0; i < in->device_count; i++)
            count += in->devices[i].action_count[action];
        char text[TERM_NUMBER_BYTES];
        if (count > 0 && !is_shown((enum dry_action)action))
            printf("  %s %s\n", term_format_count(count, text),
                   dry_action_name((enum dry_action)action));
    }
}

static bool
print_events(const struct subject *s, const struct term *term)
{
    const struct info *in = &s->info;
    struct table t;
    table_init(&t, "<device >events >span >alloc >free >seg+ >seg- >map >unmap >oom");
    for (size_t i = 0; i < in->device_count && i < ROWS_MAX; i++) {
        const struct info_device *d = &in->devices[i];
        char text[TERM_NUMBER_BYTES];
        table_add(&t, name_device(d->device, text));
        add_count(&t, d->event_count);
        table_add(&t, d->timed_count ? term_format_time(span_us(d), text) : "-");
        for (size_t k = 0; k < SHOWN_COUNT; k++)
            add_count(&t, d->action_count[shown_actions[k]]);
    }
    printf("\nevents\n");
    bool ok = table_print(&t, term);
    table_finish(&t);
    if (in->device_count > ROWS_MAX)
        printf("  and %zu device%s more\n", in->device_count - ROWS_MAX,
               in->device_count == ROWS_MAX + 1 ? "" : "s");
    print_other_events(in);
    return ok;
}

static void
add_group(struct table *t, const struct subject *s, const struct info_group *g)
{
    static const struct dry_lane unknown = {0};
    const struct dry_trace_view *v = s->view;
    const struct dry_lane *lane = g->lane < v->lane_count ? &v->lanes[g->lane] : &unknown;
    char text[64];
    table_add(t, name_device(g->device, text));
    snprintf(text, sizeof text, "%s%s", g->is_large ? "large" : "small",
             g->is_expandable ? ", expandable" : "");
    table_add(t, text);
    snprintf(text, sizeof text, "(%" PRIu64 ", %" PRIu64 ")", lane->pool_a, lane->pool_b);
    table_add(t, lane->pool_a || lane->pool_b ? text : "default");
    snprintf(text, sizeof text, "%#" PRIx64, lane->stream);
    table_add(t, lane->stream ? text : "default");
    add_count(t, g->segment_count);
    add_bytes(t, g->reserved_bytes);
    add_bytes(t, g->allocated_bytes);
}

static bool
print_segments(const struct subject *s, const struct term *term)
{
    const struct info *in = &s->info;
    struct table t;
    table_init(&t, "<device <kind <pool <stream >segments >reserved >allocated");
    for (size_t i = 0; i < in->group_count && i < ROWS_MAX; i++)
        add_group(&t, s, &in->groups[i]);
    printf("\nsegments at the end\n");
    bool ok = table_print(&t, term);
    table_finish(&t);
    if (in->group_count > ROWS_MAX)
        printf("  and %zu kind%s more\n", in->group_count - ROWS_MAX,
               in->group_count == ROWS_MAX + 1 ? "" : "s");
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES],
        d[TERM_NUMBER_BYTES];
    printf("  in all: reserved %s, allocated %s, active %s,\n          requested %s\n",
           term_format_bytes(in->reserved_bytes, a),
           term_format_bytes(in->allocated_bytes, b),
           term_format_bytes(in->active_bytes, c),
           term_format_bytes(in->requested_bytes, d));
    return ok;
}

static bool
print_blocks(const struct subject *s, const struct term *term)
{
    struct table t;
    table_init(&t, "<blocks >count >bytes");
    for (size_t i = 0; i < 3; i++) {
        table_add(&t, name_block_state(i));
        add_count(&t, s->info.block_count[i]);
        add_bytes(&t, s->info.block_bytes[i]);
    }
    printf("\n");
    bool ok = table_print(&t, term);
    table_finish(&t);
    return ok;
}

static unsigned
percent(size_t part, size_t whole)
{
    return whole ? (unsigned)((double)part / (double)whole * 100) : 0;
}

static void
print_stacks(const struct subject *s)
{
    const struct info *in = &s->info;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    if (in->stack_count == 0)
        return;
    printf(
        "\nstacks\n  %s distinct, of %s frame%s\n", term_format_count(in->stack_count, a),
        term_format_count(s->view->frame_count, b), s->view->frame_count == 1 ? "" : "s");
    if (in->stackable_events)
        printf("  on %u %% of the events\n",
               percent(in->stack_events, in->stackable_events));
    if (in->live_blocks)
        printf("  on %u %% of the blocks in use\n",
               percent(in->stack_blocks, in->live_blocks));
}

static void
print_text_line(const char *name, const char *bytes, size_t length)
{
    printf("  %-30s ", name);
    term_print_text(stdout, bytes ? bytes : "", bytes ? length : 0);
    printf("\n");
}

/* Of a pool of ours: PyTorch's settings were not in force. False: it is not. */
static bool
print_placement(const struct subject *s)
{
    size_t length, conf_length;
    const char *placement = dry_trace_placement(s->trace, &length);
    const char *conf = dry_trace_placement_conf(s->trace, &conf_length);
    if (!placement)
        return false;
    printf("\nsettings of a pool of Drystone\n");
    print_text_line("placement", placement, length);
    print_text_line("options", conf_length ? conf : "none",
                    conf_length ? conf_length : 4);
    return true;
}

static void
print_settings(const struct subject *s)
{
    const struct dry_trace_settings *settings = &s->view->settings;
    if (!s->view->has_settings || print_placement(s))
        return;
    char text[TERM_NUMBER_BYTES];
    size_t length = 0;
    const char *conf = dry_trace_string(s->trace, settings->conf, &length);
    printf("\nsettings\n");
    print_text_line("PYTORCH_CUDA_ALLOC_CONF", conf && length ? conf : "none",
                    conf && length ? length : 4);
    printf("  %-30s %s\n", "expandable_segments",
           settings->expandable_segments ? "true" : "false");
    printf("  %-30s %s\n", "max_split_size",
           settings->max_split_size < 0
               ? "unlimited"
               : term_format_bytes((uint64_t)settings->max_split_size, text));
    printf("  %-30s %g\n", "garbage_collection_threshold",
           settings->garbage_collection_threshold);
}

static void
print_others(const struct subject *s)
{
    const struct dry_trace_view *v = s->view;
    if (v->has_annotations)
        printf("\nannotations  %zu\n", v->annotation_count);
    if (v->has_host)
        printf("\nhost  the file also tells of pinned host memory\n");
    if (v->unknown_count == 0)
        return;
    printf("\nunknown\n");
    for (size_t i = 0; i < v->unknown_count && i < ROWS_MAX; i++) {
        const struct dry_trace_unknown *u = &v->unknowns[i];
        size_t length = 0;
        const char *name = dry_trace_string(s->trace, u->name, &length);
        printf("  %-16s %10" PRIu64 "  ", name_unknown(u->where), u->count);
        term_print_text(stdout, name ? name : "", name && length < 200 ? length : 0);
        printf("\n");
    }
    if (v->unknown_count > ROWS_MAX)
        printf("  and %zu more\n", v->unknown_count - ROWS_MAX);
}

static void
print_doubts(const struct subject *s, const struct term *term)
{
    struct doubt doubts[DOUBTS_MAX];
    size_t count = find_doubts(s, doubts);
    enum term_style style = count ? TERM_YELLOW : TERM_GREEN;
    printf("\n%s%s%s\n", term_style(term, style), "trust", term_style(term, TERM_PLAIN));
    if (count == 0)
        printf("  nothing speaks against it\n");
    for (size_t i = 0; i < count; i++) {
        char number[TERM_NUMBER_BYTES];
        const struct doubt *d = &doubts[i];
        if (!d->one)
            printf("  - %s\n", d->text);
        else
            printf("  - %s %s\n", term_format_count(d->count, number),
                   d->count == 1 ? d->one : d->text);
    }
}

static int
print_text(const struct subject *s)
{
    struct term term;
    term_init(&term, stdout);
    print_head(s, &term);
    bool ok = true;
    if (s->view->event_count > 0)
        ok = print_events(s, &term) && ok;
    if (s->view->segment_count > 0)
        ok = print_segments(s, &term) && print_blocks(s, &term) && ok;
    print_stacks(s);
    print_settings(s);
    print_others(s);
    print_doubts(s, &term);
    if (!ok)
        return report_failure("info", s->path, EXIT_MACHINE, "no memory for a table");
    return EXIT_FINE;
}

/* --- JSON ---------------------------------------------------------------------------- */

/*
 * Failures of jansson are left to the end: setting NULL in an object fails without harm,
 * and the report then lacks a key, so every call is counted.
 */
struct writer {
    bool failed;
};

static void
put(struct writer *w, json_t *object, const char *key, json_t *value)
{
    w->failed |= json_object_set_new(object, key, value) != 0;
}

static void
put_number(struct writer *w, json_t *object, const char *key, uint64_t value)
{
    put(w, object, key, json_out_number(value));
}

static void
put_string(struct writer *w, json_t *object, const char *key, const struct subject *s,
           uint32_t string)
{
    size_t length = 0;
    const char *bytes = dry_trace_string(s->trace, string, &length);
    put(w, object, key, json_out_text(bytes, length));
}

static json_t *
make_device(struct writer *w, const struct info_device *d)
{
    json_t *device = json_object(), *actions = json_object();
    put(w, device, "device", json_integer(d->device));
    put_number(w, device, "events", d->event_count);
    for (size_t i = 0; i < DRY_ACTION_COUNT; i++) {
        if (d->action_count[i])
            put_number(w, actions, dry_action_name((enum dry_action)i),
                       d->action_count[i]);
    }
    put(w, device, "actions", actions);
    put(w, device, "first_us", d->timed_count ? json_integer(d->first_us) : json_null());
    put(w, device, "last_us", d->timed_count ? json_integer(d->last_us) : json_null());
    put_number(w, device, "segments", d->segment_count);
    put_number(w, device, "reserved_bytes", d->reserved_bytes);
    put_number(w, device, "warm_frees", d->warm_frees);
    put_number(w, device, "old_blocks", d->old_blocks);
    put_number(w, device, "lost_blocks", d->lost_blocks);
    put_number(w, device, "time_reversals", d->time_reversals);
    return device;
}

static json_t *
make_group(struct writer *w, const struct subject *s, const struct info_group *g)
{
    static const struct dry_lane unknown = {0};
    const struct dry_lane *lane =
        g->lane < s->view->lane_count ? &s->view->lanes[g->lane] : &unknown;
    json_t *group = json_object();
    put(w, group, "device", json_integer(g->device));
    put(w, group, "size_class", json_string(g->is_large ? "large" : "small"));
    put(w, group, "expandable", json_boolean(g->is_expandable));
    put(w, group, "pool",
        json_pack("[o,o]", json_out_number(lane->pool_a), json_out_number(lane->pool_b)));
    put(w, group, "pool_known", json_boolean(lane->pool_known));
    put_number(w, group, "stream", lane->stream);
    put_number(w, group, "segments", g->segment_count);
    put_number(w, group, "reserved_bytes", g->reserved_bytes);
    put_number(w, group, "allocated_bytes", g->allocated_bytes);
    put_number(w, group, "active_bytes", g->active_bytes);
    put_number(w, group, "requested_bytes", g->requested_bytes);
    return group;
}

static json_t *
make_settings(struct writer *w, const struct subject *s)
{
    const struct dry_trace_settings *settings = &s->view->settings;
    if (!s->view->has_settings)
        return json_null();
    json_t *object = json_object();
    put_string(w, object, "conf", s, settings->conf);
    put(w, object, "expandable_segments", json_boolean(settings->expandable_segments));
    put(w, object, "max_split_size",
        settings->max_split_size < 0 ? json_null()
                                     : json_integer(settings->max_split_size));
    put(w, object, "garbage_collection_threshold",
        json_real(settings->garbage_collection_threshold));
    size_t length;
    const char *text = dry_trace_placement(s->trace, &length);
    put(w, object, "placement", text ? json_out_text(text, length) : json_null());
    text = dry_trace_placement_conf(s->trace, &length);
    put(w, object, "placement_conf", text ? json_out_text(text, length) : json_null());
    return object;
}

static json_t *
make_stacks(struct writer *w, const struct subject *s)
{
    const struct info *in = &s->info;
    json_t *stacks = json_object();
    put_number(w, stacks, "stacks", in->stack_count);
    put_number(w, stacks, "frames", s->view->frame_count);
    put_number(w, stacks, "events", in->stackable_events);
    put_number(w, stacks, "events_with_stack", in->stack_events);
    put_number(w, stacks, "live_blocks", in->live_blocks);
    put_number(w, stacks, "live_blocks_with_stack", in->stack_blocks);
    return stacks;
}

static json_t *
make_unknowns(struct writer *w, const struct subject *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->view->unknown_count; i++) {
        const struct dry_trace_unknown *u = &s->view->unknowns[i];
        json_t *object = json_object();
        put(w, object, "where", json_string(name_unknown(u->where)));
        put_string(w, object, "name", s, u->name);
        put_number(w, object, "count", u->count);
        w->failed |= json_array_append_new(list, object) != 0;
    }
    return list;
}

static json_t *
make_doubts(struct writer *w, const struct subject *s)
{
    struct doubt doubts[DOUBTS_MAX];
    size_t count = find_doubts(s, doubts);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        put(w, object, "code", json_string(doubts[i].code));
        put_number(w, object, "count", doubts[i].count);
        put(w, object, "text", json_string(doubts[i].text));
        w->failed |= json_array_append_new(list, object) != 0;
    }
    return list;
}

static void
put_file(struct writer *w, json_t *root, const struct subject *s)
{
    const struct dry_trace_view *v = s->view;
    put(w, root, "schema", json_string("drystone.info/1"));
    put(w, root, "file", json_out_text(s->path, strlen(s->path)));
    put(w, root, "kind", json_string(name_kind(v->kind)));
    put(w, root, "protocol", v->protocol >= 0 ? json_integer(v->protocol) : json_null());
    put(w, root, "packed", json_string(s->input.format));
    put(w, root, "file_bytes",
        s->input.file_bytes ? json_out_number(s->input.file_bytes) : json_null());
    put_number(w, root, "read_bytes", v->byte_count);
    put(w, root, "segments_only", json_boolean(v->is_bare_list));
}

static void
put_layout(struct writer *w, json_t *root, const struct subject *s)
{
    const struct info *in = &s->info;
    json_t *groups = json_array(), *blocks = json_object();
    for (size_t i = 0; i < in->group_count; i++)
        w->failed |= json_array_append_new(groups, make_group(w, s, &in->groups[i])) != 0;
    put(w, root, "segment_groups", groups);
    for (size_t i = 0; i < 3; i++) {
        json_t *state = json_object();
        put_number(w, state, "count", in->block_count[i]);
        put_number(w, state, "bytes", in->block_bytes[i]);
        put(w, blocks, name_block_state(i), state);
    }
    put(w, root, "blocks", blocks);
    put_number(w, root, "reserved_bytes", in->reserved_bytes);
    put_number(w, root, "allocated_bytes", in->allocated_bytes);
    put_number(w, root, "active_bytes", in->active_bytes);
    put_number(w, root, "requested_bytes", in->requested_bytes);
}

static int
print_json(const struct subject *s)
{
    const struct info *in = &s->info;
    struct writer w = {0};
    json_t *root = json_object(), *devices = json_array();
    put_file(&w, root, s);
    put_number(&w, root, "events", s->view->event_count);
    for (size_t i = 0; i < in->device_count; i++)
        w.failed |= json_array_append_new(devices, make_device(&w, &in->devices[i])) != 0;
    put(&w, root, "devices", devices);
    put_layout(&w, root, s);
    put_number(&w, root, "streams", in->stream_count);
    put_number(&w, root, "private_pools", in->private_pool_count);
    put(&w, root, "stacks", make_stacks(&w, s));
    put(&w, root, "settings", make_settings(&w, s));
    put(&w, root, "annotations",
        s->view->has_annotations ? json_out_number(s->view->annotation_count)
                                 : json_null());
    put(&w, root, "has_host", json_boolean(s->view->has_host));
    put(&w, root, "unknown", make_unknowns(&w, s));
    put(&w, root, "trust", make_doubts(&w, s));
    if (w.failed) {
        json_decref(root);
        root = NULL;
    }
    return json_out_print("info", root);
}

/* --- the command --------------------------------------------------------------------- */

static int
show(const char *path, const struct values *values)
{
    struct dry_trace *trace = NULL;
    struct subject s = {.path = path};
    int code = load_trace("info", path, &trace, &s.input);
    if (code != EXIT_FINE)
        return code;
    s.trace = trace;
    s.view = dry_trace_get_view(trace);
    if (!info_collect(&s.info, trace))
        code = report_failure("info", path, EXIT_MACHINE, "no memory to count");
    else
        code = values->json ? print_json(&s) : print_text(&s);
    info_finish(&s.info);
    dry_trace_destroy(trace);
    return code;
}

static int
run(int argc, char **argv)
{
    struct values values = {0};
    struct option_list files;
    int code;
    if (options_parse(&command_info, argc, argv, &values, &files, &code)) {
        code = options_expect_one_file(&command_info, &files);
        if (code == EXIT_FINE)
            code = show(files.values[0], &values);
    }
    options_finish(&command_info, &values, &files);
    return code;
}

const struct command command_info = {
    .name = "info",
    .summary = "what is in a snapshot or trace and how far it can be trusted",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone info snapshot.pickle\n"
                "drystone info --json snapshot.pickle.gz | jq .trust\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
