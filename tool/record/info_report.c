/* SPDX-License-Identifier: Apache-2.0 */
/* The report of info_report.h as text. A table shows at most ROWS_MAX rows. */
#include "record/info_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <drystone/pool_trace.h>

#include "base/command.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "record/info_doubts.h"

/* --- names --------------------------------------------------------------------------- */

const char *
info_report_name_state(size_t state)
{
    static const char *const names[] = {"inactive", "active_allocated",
                                        "active_pending_free"};
    return names[state];
}

const char *
info_report_name_unknown(uint32_t where)
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

/* Return "host" or the number of the device. */
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
print_head(const struct info_report *s, const struct term *term)
{
    const struct dry_trace_view *v = s->view;
    char size[TERM_NUMBER_BYTES], unpacked[TERM_NUMBER_BYTES];
    char protocol[40] = "", packed[48] = "", bytes[48] = "", detail[64] = "", text[400];
    if (v->protocol >= 0 && !s->input.is_converted)
        snprintf(protocol, sizeof protocol, ", pickle protocol %d", v->protocol);
    if (v->dump_count > 1)
        snprintf(detail, sizeof detail, ", the last of %u in the log",
                 (unsigned)v->dump_count);
    if (v->reserved_peak_bytes)
        snprintf(detail, sizeof detail, ", %s reserved at most",
                 term_format_bytes(v->reserved_peak_bytes, size));
    if (s->input.file_bytes)
        snprintf(bytes, sizeof bytes, ", %s",
                 term_format_bytes(s->input.file_bytes, size));
    if (s->input.is_unpacked && !s->input.is_converted)
        snprintf(packed, sizeof packed, " (%s unpacked)",
                 term_format_bytes(v->byte_count, unpacked));
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", dry_trace_kind_text(v->kind), protocol,
             v->is_bare_list ? ", segments only" : detail, s->input.format[0] ? ", " : "",
             s->input.format, bytes, packed);
    printf("%s", term_style(term, TERM_BOLD));
    term_print_text(stdout, s->path, strlen(s->path));
    printf("%s\n  ", term_style(term, TERM_PLAIN));
    term_print_wrapped(stdout, text, 2, term->width);
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

/* Print the counts of actions that have no column in the table, over all devices. */
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
print_events(const struct info_report *s, const struct term *term)
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
    if (in->device_count > ROWS_MAX)
        printf("  and %zu device%s more\n", in->device_count - ROWS_MAX,
               in->device_count == ROWS_MAX + 1 ? "" : "s");
    print_other_events(in);
    return ok;
}

static void
add_group(struct table *t, const struct info_report *s, const struct info_group *g)
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
print_segments(const struct info_report *s, const struct term *term)
{
    const struct info *in = &s->info;
    struct table t;
    table_init(&t, "<device =kind <pool <stream >segments >reserved >allocated");
    t.is_bounded = true;
    for (size_t i = 0; i < in->group_count && i < ROWS_MAX; i++)
        add_group(&t, s, &in->groups[i]);
    printf("\nsegments at the end\n");
    bool ok = table_print(&t, term);
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
print_blocks(const struct info_report *s, const struct term *term)
{
    struct table t;
    table_init(&t, "<blocks >count >bytes");
    for (size_t i = 0; i < 3; i++) {
        table_add(&t, info_report_name_state(i));
        add_count(&t, s->info.block_count[i]);
        add_bytes(&t, s->info.block_bytes[i]);
    }
    printf("\n");
    return table_print(&t, term);
}

static unsigned
percent(size_t part, size_t whole)
{
    return whole ? (unsigned)((double)part / (double)whole * 100) : 0;
}

static void
print_stacks(const struct info_report *s)
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

/*
 * Print the settings of a Drystone pool, under which PyTorch's settings had no effect.
 * Returns false if the trace is not from such a pool.
 */
static bool
print_placement(const struct info_report *s)
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
print_settings(const struct info_report *s)
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
print_others(const struct info_report *s)
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
        printf("  %-16s %10" PRIu64 "  ", info_report_name_unknown(u->where), u->count);
        term_print_text(stdout, name ? name : "", name && length < 200 ? length : 0);
        printf("\n");
    }
    if (v->unknown_count > ROWS_MAX)
        printf("  and %zu more\n", v->unknown_count - ROWS_MAX);
}

static void
print_doubts(const struct info_report *s, const struct term *term)
{
    struct info_doubt doubts[INFO_DOUBTS_MAX];
    size_t count = info_doubts_find(&s->info, s->view, doubts);
    enum term_style style = count ? TERM_YELLOW : TERM_GREEN;
    printf("\n%s%s%s\n", term_style(term, style), "trust", term_style(term, TERM_PLAIN));
    if (count == 0)
        printf("  nothing speaks against it\n");
    for (size_t i = 0; i < count; i++) {
        char number[TERM_NUMBER_BYTES];
        const struct info_doubt *d = &doubts[i];
        if (!d->one)
            printf("  - %s\n", d->text);
        else
            printf("  - %s %s\n", term_format_count(d->count, number),
                   d->count == 1 ? d->one : d->text);
    }
}

int
info_report_print(const struct info_report *s)
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
