/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory map as a picture. Each pool has its segments in order of address and a scale
 * of its own. Free bytes are hatched. Segments that few used bytes keep from being
 * released are outlined and numbered. The bytes that an OOM requested are drawn under
 * each pool at its scale, to show that they do not fit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/svg.h"
#include "base/term.h"
#include "export/export.h"
#include "export/export_svg.h"
#include "export/svg_owners.h"

#define MAP_TOP 74.0
#define ROW_HEIGHT 16.0
#define ROW_STEP 24.0
#define POOL_HEAD 34.0 /* height of the pool's title */
#define POOL_FOOT 14.0
#define REQUEST_STEP 26.0
#define POOLS_MAX 12
#define ROWS_MAX 24 /* of a pool */
#define PINNERS_MAX 8
#define CELL_PIXELS 1.0 /* narrower blocks are merged */

struct place {
    double x, y; /* upper left corner of a segment */
    double pixels_per_byte;
};

struct pool_layout {
    double y, bytes_per_row, gap;
    size_t row_count;
};

struct map {
    const struct export_job *job;
    struct writer *w;
    const struct dry_timeline_view *view;
    struct dry_state *state;
    struct svg_owners owners;
    uint64_t slot_bytes[SVG_SLOT_COUNT];
    struct place *places; /* by segment; pixels_per_byte is 0 if it is not drawn */
    struct pool_layout pools[POOLS_MAX];
    size_t pool_count;
    uint64_t request; /* bytes that the OOM requested; 0 without OOM */
    double height;    /* of the layout so far */
};

/* --- layout ------------------------------------------------------------------------------- */

/* Lay a pool's segments out in rows; store them in `places` unless NULL. Returns rows. */
static size_t
lay_rows(const struct map *m, uint32_t pool, const struct pool_layout *layout,
         struct place *places)
{
    double scale = SVG_PLOT / layout->bytes_per_row, x = 0;
    size_t row = 0;
    for (size_t i = 0; i < m->state->segment_count; i++) {
        const struct dry_state_segment *s = m->state->segments + i;
        if (s->pool != pool)
            continue;
        double width = (double)s->size * scale;
        if (x > 0 && x + width > SVG_PLOT + 0.01) {
            row++;
            x = 0;
        }
        if (places)
            places[i] = (struct place){
                SVG_LEFT + x, layout->y + POOL_HEAD + (double)row * ROW_STEP, scale};
        x += width + layout->gap;
    }
    return row + 1;
}

/* Fill a row with the pool's largest segment. Too many rows: shrink the scale. */
static void
lay_pool(struct map *m, uint32_t pool)
{
    struct pool_layout *layout = m->pools + pool;
    double largest = 0, total = 0, count = 0;
    for (size_t i = 0; i < m->state->segment_count; i++) {
        const struct dry_state_segment *s = m->state->segments + i;
        if (s->pool != pool)
            continue;
        largest = (double)s->size > largest ? (double)s->size : largest;
        total += (double)s->size;
        count++;
    }
    *layout = (struct pool_layout){.y = m->height, .bytes_per_row = largest};
    if (total / ROWS_MAX > largest)
        layout->bytes_per_row = total / ROWS_MAX;
    for (;;) {
        double average = total / count / layout->bytes_per_row * SVG_PLOT;
        layout->gap = average >= 8 ? 4 : average >= 3 ? 1 : 0;
        layout->row_count = lay_rows(m, pool, layout, NULL);
        if (layout->row_count <= ROWS_MAX)
            break;
        layout->bytes_per_row *= 1.1;
    }
    lay_rows(m, pool, layout, m->places);
    m->height += POOL_HEAD + (double)layout->row_count * ROW_STEP + POOL_FOOT;
    if (m->request > 0)
        m->height += REQUEST_STEP;
}

static void
lay_map(struct map *m)
{
    m->height = MAP_TOP;
    for (uint32_t i = 0; i < m->state->pool_count && i < POOLS_MAX; i++) {
        if (m->state->pools[i].reserved == 0)
            break;
        lay_pool(m, i);
        m->pool_count++;
    }
}

/* --- blocks ------------------------------------------------------------------------------- */

/*
 * A cell that is drawn: a block, or adjacent blocks that are too narrow to be drawn
 * alone. Merged blocks take the kind of the largest used one: even few used bytes hold a
 * segment.
 */
enum cell_kind { CELL_FREE, CELL_USED, CELL_PENDING };
struct cell {
    double x0, x1;
    enum cell_kind kind;
    unsigned slot;
};

struct cell_walk {
    const struct map *m;
    const struct dry_state_segment *segment;
    const struct place *place;
    size_t next; /* next block of the segment */
};

static enum cell_kind
kind_of(const struct dry_state_block *b)
{
    return b->state == DRY_BLOCK_INACTIVE ? CELL_FREE
           : b->state == DRY_BLOCK_ACTIVE ? CELL_USED
                                          : CELL_PENDING;
}

static unsigned
slot_of(const struct map *m, const struct dry_state_block *b)
{
    if (b->allocation == DRY_NONE)
        return SVG_SLOT_CARRIED;
    return svg_owners_slot(&m->owners, m->view->allocations + b->allocation);
}

static bool
next_cell(struct cell_walk *walk, struct cell *cell)
{
    const struct dry_state_block *blocks =
        walk->m->state->blocks + walk->segment->first_block;
    uint64_t largest = 0;
    if (walk->next == walk->segment->block_count)
        return false;
    *cell = (struct cell){.x0 = walk->place->x + (double)(blocks[walk->next].address -
                                                          walk->segment->address) *
                                                     walk->place->pixels_per_byte};
    cell->x1 = cell->x0;
    while (walk->next < walk->segment->block_count && cell->x1 - cell->x0 < CELL_PIXELS) {
        const struct dry_state_block *b = blocks + walk->next;
        double width = (double)b->size * walk->place->pixels_per_byte;
        if (cell->x1 > cell->x0 && width >= CELL_PIXELS)
            break;
        cell->x1 += width;
        if (kind_of(b) != CELL_FREE && b->size > largest) {
            largest = b->size;
            cell->kind = kind_of(b);
            cell->slot = slot_of(walk->m, b);
        }
        walk->next++;
    }
    if (cell->x1 - cell->x0 < 0.6 && cell->kind != CELL_FREE)
        cell->x1 = cell->x0 + 0.6; /* stays visible */
    return true;
}

/* Write all cells of a slot (SVG_SLOT_COUNT: free), or all pending ones, as one path. */
static void
write_cells(struct map *m, unsigned slot, bool is_of_pending, const char *fill)
{
    writer_format(m->w, "<path fill=\"%s\" d=\"", fill);
    for (size_t i = 0; i < m->state->segment_count && m->w->status == DRY_OK; i++) {
        struct cell_walk walk = {m, m->state->segments + i, m->places + i, 0};
        struct cell cell;
        while (walk.place->pixels_per_byte > 0 && next_cell(&walk, &cell)) {
            bool is_free = cell.kind == CELL_FREE;
            bool is_wanted = is_of_pending ? cell.kind == CELL_PENDING
                             : is_free     ? slot == SVG_SLOT_COUNT
                                           : slot == cell.slot;
            if (is_wanted)
                svg_box(m->w, cell.x0, walk.place->y, cell.x1,
                        walk.place->y + ROW_HEIGHT);
        }
    }
    writer_put(m->w, "\"/>\n");
}

static void
write_outlines(struct map *m)
{
    writer_put(m->w, "<path fill=\"none\" stroke=\"#333\" stroke-width=\".7\" d=\"");
    for (size_t i = 0; i < m->state->segment_count; i++) {
        const struct place *at = m->places + i;
        double width = (double)m->state->segments[i].size * at->pixels_per_byte;
        if (width >= 2)
            svg_box(m->w, at->x, at->y, at->x + width, at->y + ROW_HEIGHT);
    }
    writer_put(m->w, "\"/>\n");
}

static void
write_blocks(struct map *m)
{
    writer_put(m->w, "<g shape-rendering=\"crispEdges\">\n");
    write_cells(m, SVG_SLOT_COUNT, false, "url(#hole)");
    for (unsigned slot = 0; slot < SVG_SLOT_COUNT; slot++)
        write_cells(m, slot, false, svg_slot_fill(slot));
    write_cells(m, 0, true, "url(#pending)");
    writer_put(m->w, "</g>\n");
    write_outlines(m);
}

/* --- pools and pinners -------------------------------------------------------------------- */

static void
write_request(struct map *m, uint32_t pool)
{
    const struct pool_layout *layout = m->pools + pool;
    double y = layout->y + POOL_HEAD + (double)layout->row_count * ROW_STEP;
    double width = (double)m->request * SVG_PLOT / layout->bytes_per_row;
    bool is_cut = width > SVG_PLOT;
    char text[EXPORT_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
    double drawn = is_cut ? SVG_PLOT : width < 1 ? 1 : width;
    writer_put(m->w, "<path fill=\"#b00020\" fill-opacity=\".12\" stroke=\"#b00020\" "
                     "stroke-width=\"1.3\" d=\"");
    svg_box(m->w, SVG_LEFT, y, SVG_LEFT + drawn, y + ROW_HEIGHT);
    writer_put(m->w, "\"/>\n");
    snprintf(text, sizeof text, "what was asked for: %s",
             term_format_bytes(m->request, bytes));
    if (is_cut)
        snprintf(text, sizeof text, "what was asked for: %s, %.1f rows of this scale",
                 bytes, width / SVG_PLOT);
    bool is_inside = drawn > 420;
    svg_text(m->w, SVG_LEFT + (is_inside ? 8 : drawn + 8), y + 12.5,
             "fill=\"#b00020\" font-weight=\"bold\"", text);
}

static void
write_pool(struct map *m, uint32_t index)
{
    const struct dry_state_pool *p = m->state->pools + index;
    const struct dry_lane *lane = dry_trace_get_view(m->view->trace)->lanes + p->lane;
    double y = m->pools[index].y;
    char name[EXPORT_NAME_BYTES], text[2 * EXPORT_NAME_BYTES];
    char b[6][TERM_NUMBER_BYTES];
    uint64_t active = p->allocated + p->pending;
    snprintf(text, sizeof text, "%s: %s reserved",
             export_lane_class_name(lane, p->is_large, name),
             term_format_bytes(p->reserved, b[0]));
    svg_text(m->w, SVG_LEFT, y + 10, "font-weight=\"bold\"", text);
    snprintf(
        text, sizeof text, "= %s in use + %s releasable + %s stranded; largest hole %s",
        term_format_bytes(active, b[1]), term_format_bytes(p->releasable, b[2]),
        term_format_bytes(p->stranded, b[3]), term_format_bytes(p->largest_free, b[4]));
    svg_text(m->w, SVG_LEFT, y + 26, "fill=\"#444\"", text);
    snprintf(text, sizeof text, "a full row is %s; %u segment%s",
             term_format_bytes((uint64_t)m->pools[index].bytes_per_row, b[5]),
             p->segment_count, p->segment_count == 1 ? "" : "s");
    svg_text(m->w, SVG_LEFT + SVG_PLOT, y + 26, "text-anchor=\"end\" fill=\"#444\"",
             text);
    if (m->request > 0)
        write_request(m, index);
}

/* Outline and number the drawn pinning segments, worst first. Returns their number. */
static size_t
write_pinners(struct map *m, double y)
{
    size_t number = 0;
    for (size_t i = 0; i < m->state->pinner_count && number < PINNERS_MAX; i++) {
        const struct dry_pinner *pin = m->state->pinners + i;
        const struct place *at = m->places + pin->segment;
        double width =
            (double)m->state->segments[pin->segment].size * at->pixels_per_byte;
        char text[EXPORT_NAME_BYTES], pinned[TERM_NUMBER_BYTES], used[TERM_NUMBER_BYTES];
        if (width <= 0)
            continue;
        number++;
        writer_put(m->w,
                   "<path fill=\"none\" stroke=\"#b00020\" stroke-width=\"2\" d=\"");
        svg_box(m->w, at->x - 1, at->y - 1, at->x + width + 1, at->y + ROW_HEIGHT + 1);
        writer_put(m->w, "\"/>\n");
        snprintf(text, sizeof text, "%zu", number);
        svg_text(m->w, at->x + 4, at->y + 12.5,
                 SVG_HALO " font-weight=\"bold\" "
                          "fill=\"#b00020\"",
                 text);
        snprintf(text, sizeof text, "%zu: %s held by %s in %u block%s", number,
                 term_format_bytes(pin->pinned, pinned),
                 term_format_bytes(pin->used, used), pin->used_count,
                 pin->used_count == 1 ? "" : "s");
        size_t row = (number - 1) / 2, column = (number - 1) % 2;
        svg_text(m->w, SVG_LEFT + (double)column * SVG_PLOT / 2,
                 y + 20 + (double)row * SVG_LEGEND_ROW, "", text);
    }
    if (number > 0)
        svg_text(m->w, SVG_LEFT, y, "font-weight=\"bold\" fill=\"#b00020\"",
                 "free bytes that little keeps from being given back");
    return number;
}

/* --- the whole map ------------------------------------------------------------------------ */

static bool
has_slot(const struct map *m, unsigned slot)
{
    if (slot < SVG_COLORS)
        return m->owners.owners[slot] != DRY_NONE;
    if (slot == SVG_SLOT_OTHER)
        return m->owners.other_count > 0;
    return m->slot_bytes[slot] > 0;
}

static void
write_legend(struct map *m, double y)
{
    size_t index = 0;
    for (unsigned slot = 0; slot < SVG_SLOT_COUNT; slot++) {
        char name[EXPORT_NAME_BYTES], bytes[TERM_NUMBER_BYTES];
        if (!has_slot(m, slot))
            continue;
        struct svg_entry entry = {
            .fill = svg_slot_fill(slot),
            .bytes = term_format_bytes(m->slot_bytes[slot], bytes),
            .text = svg_slot_name(&m->owners, slot, name),
        };
        svg_legend(m->w, y, index++, &entry);
    }
    struct svg_entry entry = {.fill = "url(#hole)", .text = "free"};
    svg_legend(m->w, y, index++, &entry);
    if (m->state->pending == 0)
        return;
    entry.text = "white stripes: given back, but a stream still uses it";
    entry.fill = "#777";
    svg_legend(m->w, y, index, &entry);
    entry.fill = "url(#pending)";
    entry.text = "";
    svg_legend(m->w, y, index, &entry);
}

static void
write_title(struct map *m, double height)
{
    char text[2 * EXPORT_NAME_BYTES], name[EXPORT_NAME_BYTES], at[EXPORT_NAME_BYTES];
    char b[5][TERM_NUMBER_BYTES];
    size_t length = strlen(m->job->path);
    const char *base = export_base_name(m->job->path, &length);
    term_make_printable(name, sizeof name, base, length);
    snprintf(text, sizeof text, "%.200s, GPU %d: memory map at %s", name,
             (int)m->view->device, export_moment_name(m->job, m->job->main, at));
    svg_begin(m->w, height, text);
    svg_text(m->w, SVG_LEFT, 30, "font-size=\"17\" font-weight=\"bold\"", text);
    const struct dry_state *s = m->state;
    snprintf(text, sizeof text,
             "%s reserved = %s in use + %s releasable + %s stranded; every pool has its "
             "own scale",
             term_format_bytes(s->reserved, b[0]), term_format_bytes(s->active, b[1]),
             term_format_bytes(s->releasable, b[2]),
             term_format_bytes(s->stranded, b[3]));
    svg_text(m->w, SVG_LEFT, 50, "fill=\"#444\"", text);
}

static void
write_map(struct map *m)
{
    double pinners_y = m->height + 10;
    double legend_y = pinners_y;
    const size_t rows = PINNERS_MAX / 2;
    if (m->state->pinner_count > 0)
        legend_y += 36 + (double)rows * SVG_LEGEND_ROW;
    write_title(m, legend_y + 7 * SVG_LEGEND_ROW);
    for (uint32_t i = 0; i < m->pool_count; i++)
        write_pool(m, i);
    write_blocks(m);
    write_pinners(m, pinners_y);
    write_legend(m, legend_y + 8);
    if (m->pool_count == 0)
        svg_text(m->w, SVG_LEFT, MAP_TOP, "", "nothing is reserved");
    svg_end(m->w);
    if (m->state->pool_count > m->pool_count)
        export_note(m->job, "%zu pool%s not drawn, the largest is",
                    m->state->pool_count - m->pool_count,
                    m->state->pool_count - m->pool_count == 1 ? " is" : "s are");
    if (m->state->unplaced_count > 0)
        export_note(m->job, "%u allocation%s in no known segment and %s not drawn",
                    m->state->unplaced_count,
                    m->state->unplaced_count == 1 ? " lies" : "s lie",
                    m->state->unplaced_count == 1 ? "is" : "are");
}

/* Return the rounded request of the OOM; 0 if the map shows another moment. */
static uint64_t
find_request(const struct map *m)
{
    const struct dry_timeline_view *v = m->view;
    if (v->oom_count == 0 || m->state->moment != v->oom_event)
        return 0;
    return dry_trace_get_view(v->trace)->size[v->first_event + v->oom_event];
}

static void
draw_map(struct map *m)
{
    m->places = calloc(m->state->segment_count + 1, sizeof *m->places);
    if (!m->places || !svg_owners_init(&m->owners, m->job)) {
        writer_fail(m->w, DRY_ERR_MEMORY, "no memory");
        return;
    }
    for (size_t i = 0; i < m->state->block_count; i++) {
        const struct dry_state_block *b = m->state->blocks + i;
        if (b->allocation != DRY_NONE)
            svg_owners_add(&m->owners, m->view->allocations + b->allocation,
                           (double)b->size);
    }
    svg_owners_rank(&m->owners);
    for (size_t i = 0; i < m->state->block_count; i++) {
        const struct dry_state_block *b = m->state->blocks + i;
        if (b->state != DRY_BLOCK_INACTIVE)
            m->slot_bytes[slot_of(m, b)] += b->size;
    }
    m->request = find_request(m);
    lay_map(m);
    write_map(m);
}

void
export_svg_write_map(const struct export_job *job, struct writer *w)
{
    struct map m = {.job = job, .w = w, .view = export_view(job, job->main)};
    struct dry_error err;
    enum dry_status status = dry_state_create(job->study->devices[job->main].timeline,
                                              job->moments[job->main], &m.state, &err);
    if (status == DRY_OK)
        draw_map(&m);
    else
        writer_fail(w, status, "%s", err.text);
    svg_owners_finish(&m.owners);
    free(m.places);
    dry_state_destroy(m.state);
}
