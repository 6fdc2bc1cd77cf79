/* SPDX-License-Identifier: Apache-2.0 */
/* See frag_report.h. */
#include "explain/frag_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

/* --- text --------------------------------------------------------------------------------- */

static void
print_header(const struct frag_report *r, const struct term *term)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    char number[TERM_NUMBER_BYTES], when[MOMENT_BYTES];
    term_print_subject(term, r->file, TERM_PLAIN, "device %d, %s %sevent%s",
                       (int)v->device, term_format_count(v->event_count, number),
                       r->is_simulated ? "simulated " : "",
                       v->event_count == 1 ? "" : "s");
    printf("  %s\n", moment_write(r->timeline, &r->moment, when));
}

static void
print_sum(const char *name, uint64_t bytes, const char *text)
{
    char number[TERM_NUMBER_BYTES];
    printf("  %-12s%11s  ", name, term_format_bytes(bytes, number));
    term_print_wrapped(stdout, text, 27, 80);
}

static void
print_sums(const struct frag_report *r)
{
    const struct dry_state *s = r->state;
    char number[TERM_NUMBER_BYTES], text[120];
    print_sum("reserved", s->reserved, "= active + releasable + stranded");
    snprintf(text, sizeof text, "%s of it are rounding",
             term_format_bytes(s->rounding, number));
    print_sum("active", s->active, text);
    if (s->pending)
        print_sum("  pending", s->pending, "of it: freed, waiting for streams");
    print_sum("releasable", s->releasable,
              "free segments: given back before anything fails");
    if (s->private_free) {
        snprintf(text, sizeof text, "free beside what is used; %s in private pools",
                 term_format_bytes(s->private_free, number));
        print_sum("stranded", s->stranded, text);
    } else {
        print_sum("stranded", s->stranded, "free, but beside something in use");
    }
    if (s->unplaced_bytes)
        print_sum("unexplained", s->unplaced_bytes, "alive outside of every segment");
}

/* Name a pool: "stream 0 large", "pool (0, 3) stream 7 small". */
static void
name_pool(const struct frag_report *r, const struct dry_state_pool *pool, char *text,
          size_t capacity)
{
    const struct dry_lane *lane = &dry_trace_get_view(r->trace)->lanes[pool->lane];
    int used = 0;
    if (pool->is_private)
        used = snprintf(text, capacity, "pool (%" PRIu64 ", %" PRIu64 ") ", lane->pool_a,
                        lane->pool_b);
    snprintf(text + used, capacity - (size_t)used, "stream %#" PRIx64 " %s", lane->stream,
             pool->is_large ? "large" : "small");
}

static uint64_t
pool_active(const struct dry_state_pool *p)
{
    return p->allocated + p->pending;
}

/* Return the bytes lost to rounding requests up. */
static uint64_t
pool_rounding(const struct dry_state_pool *p)
{
    return p->requested < pool_active(p) ? pool_active(p) - p->requested : 0;
}

/* Print each pool's reserved bytes by use. The columns add up to the reserved bytes. */
static bool
print_pool_sums(const struct frag_report *r, size_t shown, const struct term *term)
{
    char text[96];
    struct table t;
    table_init(&t, "<pool >reserved >active >releasable >stranded");
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++) {
        const struct dry_state_pool *p = &r->state->pools[i];
        name_pool(r, p, text, sizeof text);
        table_add(&t, text);
        table_add(&t, term_format_bytes(p->reserved, text));
        table_add(&t, term_format_bytes(pool_active(p), text));
        table_add(&t, term_format_bytes(p->releasable, text));
        table_add(&t, term_format_bytes(p->stranded, text));
    }
    return table_print(&t, term);
}

/* Print details of each pool: what its active bytes contain, and how fragmented its free
   bytes are. */
static bool
print_pool_details(const struct frag_report *r, size_t shown, const struct term *term)
{
    char text[96];
    struct table t;
    table_init(&t, "<pool >pending >rounding >segments >holes >largest_hole");
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++) {
        const struct dry_state_pool *p = &r->state->pools[i];
        name_pool(r, p, text, sizeof text);
        table_add(&t, text);
        table_add(&t, term_format_bytes(p->pending, text));
        table_add(&t, term_format_bytes(pool_rounding(p), text));
        table_add(&t, term_format_count(p->segment_count, text));
        table_add(&t, term_format_count(p->hole_count, text));
        table_add(&t, term_format_bytes(p->largest_free, text));
    }
    return table_print(&t, term);
}

static bool
print_pools(const struct frag_report *r, const struct term *term)
{
    size_t count = r->state->pool_count;
    size_t shown = count < r->row_max ? count : r->row_max;
    if (count == 0)
        return true;
    printf("\n");
    bool is_done = print_pool_sums(r, shown, term);
    printf("\n");
    is_done &= print_pool_details(r, shown, term);
    if (shown < count)
        printf("  (%zu more pool%s)\n", count - shown, count - shown == 1 ? "" : "s");
    return is_done;
}

/* Draw a segment scaled to `columns`: '#' mostly in use, ':' in use by less than half,
   '=' pending free, '.' free. */
#define MAP_COLUMNS_MAX 200
static void
draw_segment(const struct dry_state *s, const struct dry_state_segment *segment,
             char *map, size_t columns)
{
    double scale = (double)columns / (double)segment->size;
    double used[MAP_COLUMNS_MAX] = {0};
    memset(map, '.', columns);
    map[columns] = '\0';
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = &s->blocks[segment->first_block + i];
        if (b->state == DRY_BLOCK_INACTIVE)
            continue;
        double from = (double)(b->address - segment->address) * scale;
        double to = from + (double)b->size * scale;
        size_t first = (size_t)from;
        for (size_t c = first; c < columns && (double)c < to; c++) {
            double begin = from > (double)c ? from : (double)c;
            double end = to < (double)c + 1 ? to : (double)c + 1;
            used[c] += end - begin;
            /* Draw every block, however small: small blocks are what pins segments. */
            if (map[c] == '.')
                map[c] = ':';
            if (b->state == DRY_BLOCK_PENDING_FREE)
                map[c] = '=';
            else if (used[c] >= 0.5 && map[c] != '=')
                map[c] = '#';
        }
    }
}

static void
print_segment(const struct dry_state *s, size_t index, const struct term *term,
              const char *text)
{
    const struct dry_state_segment *segment = &s->segments[index];
    char map[MAP_COLUMNS_MAX + 1];
    size_t columns = (size_t)(term->width > 20 ? term->width : 20) - 4;
    draw_segment(s, segment, map, columns < MAP_COLUMNS_MAX ? columns : MAP_COLUMNS_MAX);
    printf("  ");
    term_print_wrapped(stdout, text, 4, term->width);
    printf("  [%s]\n", map);
}

/* Print the source line that allocated the segment's largest block in use, if known. */
static void
print_holder(const struct frag_report *r, const struct dry_state_segment *segment,
             const struct term *term)
{
    const struct dry_allocation *all = dry_timeline_get_view(r->timeline)->allocations;
    const struct dry_state_block *largest = NULL;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = &r->state->blocks[segment->first_block + i];
        if (b->state != DRY_BLOCK_INACTIVE && (!largest || b->size > largest->size))
            largest = b;
    }
    if (!largest || all[largest->allocation].stack == DRY_NONE)
        return;
    static const char before[] = "  held by ", after[] = " and others";
    char name[256], text[sizeof name + sizeof after];
    size_t length = dry_owners_write_line(r->owners, all[largest->allocation].stack, name,
                                          sizeof name);
    length = term_make_printable(text, sizeof name, name, length);
    snprintf(text + length, sizeof text - length, "%s",
             segment->block_count > 2 ? after : "");
    printf("%s", before);
    term_print_name(stdout, text, sizeof before - 1, term->width);
}

static int
compare_pinners(const void *a, const void *b)
{
    const struct dry_pinner *x = *(const struct dry_pinner *const *)a;
    const struct dry_pinner *y = *(const struct dry_pinner *const *)b;
    if (x->pinned != y->pinned)
        return x->pinned < y->pinned ? 1 : -1;
    return (x > y) - (x < y); /* the library's order: the least in the way */
}

/* Order the pinners by the bytes they pin. The caller frees; NULL: out of memory. */
static const struct dry_pinner **
order_pinners(const struct dry_state *s)
{
    const struct dry_pinner **order = calloc(s->pinner_count + 1, sizeof *order);
    for (size_t i = 0; order && i < s->pinner_count; i++)
        order[i] = &s->pinners[i];
    if (order)
        qsort(order, s->pinner_count, sizeof *order, compare_pinners);
    return order;
}

static bool
print_pinned_segments(const struct frag_report *r, const struct term *term)
{
    const struct dry_state *s = r->state;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES], line[200];
    const struct dry_pinner **order = order_pinners(s);
    for (size_t i = 0; order && i < s->pinner_count && i < r->row_max; i++) {
        const struct dry_pinner *p = order[i];
        const struct dry_state_segment *segment = &s->segments[p->segment];
        snprintf(line, sizeof line, "%#" PRIx64 "  %s of %s pinned by %s in %u block%s",
                 segment->address, term_format_bytes(p->pinned, c),
                 term_format_bytes(segment->size, a), term_format_bytes(p->used, b),
                 p->used_count, p->used_count == 1 ? "" : "s");
        print_segment(s, p->segment, term, line);
        print_holder(r, segment, term);
    }
    bool is_done = order != NULL;
    free(order);
    return is_done;
}

/* False: out of memory. */
static bool
print_pinners(const struct frag_report *r, const struct term *term)
{
    const struct dry_state *s = r->state;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES], line[200];
    uint64_t pinned = 0;
    for (size_t i = 0; i < s->pinner_count; i++)
        pinned += s->pinners[i].pinned;
    if (s->pinner_count == 0)
        return true;
    int used =
        snprintf(line, sizeof line, "%s segment%s pin%s %s",
                 term_format_count(s->pinner_count, a), s->pinner_count == 1 ? "" : "s",
                 s->pinner_count == 1 ? "s" : "", term_format_bytes(pinned, b));
    if (s->loose_count > 0 && s->loose_count < s->pinner_count)
        used +=
            snprintf(line + used, sizeof line - (size_t)used, "; %s of them pin%s %s",
                     term_format_count(s->loose_count, a), s->loose_count == 1 ? "s" : "",
                     term_format_bytes(s->loose_pinned, b));
    if (s->loose_count > 0)
        snprintf(line + used, sizeof line - (size_t)used, " for %s in %u block%s",
                 term_format_bytes(s->loose_used, c), s->loose_blocks,
                 s->loose_blocks == 1 ? "" : "s");
    printf("\n");
    term_print_wrapped(stdout, line, 2, term->width);
    return r->has_map || print_pinned_segments(r, term);
}

static void
print_map(const struct frag_report *r, const struct term *term)
{
    const struct dry_state *s = r->state;
    char line[200], pool[96], a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    printf("\n");
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct dry_state_segment *segment = &s->segments[i];
        name_pool(r, &s->pools[segment->pool], pool, sizeof pool);
        snprintf(line, sizeof line, "%#" PRIx64 "  %s, %s in use, %s%s", segment->address,
                 term_format_bytes(segment->size, a),
                 term_format_bytes(segment->allocated + segment->pending, b), pool,
                 segment->is_expandable ? ", expandable" : "");
        print_segment(s, i, term, line);
    }
}

bool
frag_report_print(const struct frag_report *report)
{
    struct term term;
    term_init(&term, stdout);
    print_header(report, &term);
    print_sums(report);
    bool is_done = print_pools(report, &term);
    is_done &= print_pinners(report, &term);
    if (report->has_map)
        print_map(report, &term);
    if (report->state->segment_count > 0 &&
        (report->has_map || report->state->pinner_count > 0))
        printf(
            "  # in use   : in use, less than half   = waiting for a stream   . free\n");
    return is_done;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_pools(const struct frag_report *r)
{
    json_t *list = json_array();
    const struct dry_trace_view *v = dry_trace_get_view(r->trace);
    for (size_t i = 0; i < r->state->pool_count; i++) {
        const struct dry_state_pool *p = &r->state->pools[i];
        const struct dry_lane *lane = &v->lanes[p->lane];
        json_array_append_new(
            list,
            json_pack("{s:o, s:[o,o], s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                      "s:I}",
                      "stream", json_out_number(lane->stream), "pool_id",
                      json_out_number(lane->pool_a), json_out_number(lane->pool_b),
                      "large", p->is_large, "segments", (json_int_t)p->segment_count,
                      "reserved_bytes", json_out_number(p->reserved), "allocated_bytes",
                      json_out_number(p->allocated), "pending_bytes",
                      json_out_number(p->pending), "requested_bytes",
                      json_out_number(p->requested), "releasable_bytes",
                      json_out_number(p->releasable), "stranded_bytes",
                      json_out_number(p->stranded), "largest_free_bytes",
                      json_out_number(p->largest_free), "holes",
                      (json_int_t)p->hole_count));
    }
    return list;
}

static json_t *
make_blocks(const struct frag_report *r, const struct dry_state_segment *segment)
{
    json_t *list = json_array();
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct dry_state_block *b = &r->state->blocks[segment->first_block + i];
        if (b->state == DRY_BLOCK_INACTIVE)
            continue;
        uint32_t stack =
            dry_timeline_get_view(r->timeline)->allocations[b->allocation].stack;
        char name[256];
        size_t length = dry_owners_write_line(r->owners, stack, name, sizeof name);
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o, s:b, s:I}", "line",
                            stack == DRY_NONE ? json_null() : json_out_text(name, length),
                            "address", json_out_number(b->address), "bytes",
                            json_out_number(b->size), "requested_bytes",
                            json_out_number(b->requested), "pending",
                            b->state == DRY_BLOCK_PENDING_FREE, "allocation",
                            (json_int_t)b->allocation));
    }
    return list;
}

static json_t *
make_pinners(const struct frag_report *r)
{
    const struct dry_pinner **order = order_pinners(r->state);
    json_t *list = order ? json_array() : NULL;
    for (size_t i = 0; list && i < r->state->pinner_count; i++) {
        const struct dry_pinner *p = order[i];
        const struct dry_state_segment *segment = &r->state->segments[p->segment];
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:o}", "address",
                      json_out_number(segment->address), "segment_bytes",
                      json_out_number(segment->size), "pinned_bytes",
                      json_out_number(p->pinned), "used_bytes", json_out_number(p->used),
                      "blocks", (json_int_t)p->used_count, "loose",
                      (size_t)(p - r->state->pinners) < r->state->loose_count, "used",
                      make_blocks(r, segment)));
    }
    free(order);
    return list;
}

int
frag_report_print_json(const char *command, const struct frag_report *r)
{
    const struct dry_state *s = r->state;
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    size_t event = moment_event(v, &r->moment);
    json_t *root = json_pack(
        "{s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "schema", "drystone.top-free/1", "file", json_out_string(r->file), "device",
        (int)s->device, "event", event == SIZE_MAX ? json_null() : json_out_number(event),
        "reserved_bytes", json_out_number(s->reserved), "active_bytes",
        json_out_number(s->active), "pending_bytes", json_out_number(s->pending),
        "requested_bytes", json_out_number(s->requested), "releasable_bytes",
        json_out_number(s->releasable), "stranded_bytes", json_out_number(s->stranded),
        "rounding_bytes", json_out_number(s->rounding), "private_free_bytes",
        json_out_number(s->private_free), "unplaced_bytes",
        json_out_number(s->unplaced_bytes), "loosely_pinned_bytes",
        json_out_number(s->loose_pinned), "pools", make_pools(r), "pinners",
        make_pinners(r));
    return json_out_print(command, root);
}
