/* SPDX-License-Identifier: Apache-2.0 */
/* See pages_report.h. */
#include "machine/pages_report.h"

#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"

/* --- what there is ------------------------------------------------------------------------ */

static void
add_size(struct table *t, const char *where, const struct dry_pages_size *size)
{
    char text[TERM_NUMBER_BYTES];
    bool is_pool = size->kind == DRY_PAGES_POOL;
    char kind[48];
    snprintf(kind, sizeof kind, "%s%s", dry_pages_kind_name(size->kind),
             size->is_off ? ", off" : "");
    table_add(t, where);
    table_add(t, kind);
    table_add(t, term_format_bytes(size->page_bytes, text));
    table_add(t, is_pool ? term_format_count(size->total_count, text) : "");
    table_add(t, is_pool ? term_format_count(size->free_count, text) : "");
    table_add(t, is_pool ? term_format_count(size->growth_count, text) : "");
}

/* Add the page sizes of the machine or of a node. Only pools are per node. */
static void
add_sizes(struct table *t, const char *root, int32_t node)
{
    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX];
    char where[32] = "machine";
    size_t count = dry_pages_read_sizes(root, node, sizes);
    if (node >= 0)
        snprintf(where, sizeof where, "node %d", (int)node);
    for (size_t i = 0; i < count; i++)
        if (node < 0 || sizes[i].kind == DRY_PAGES_POOL)
            add_size(t, where, &sizes[i]);
}

bool
pages_report_list(const struct dry_topology_view *view, const char *root,
                  const struct term *term)
{
    struct table t;
    fputc('\n', term->out);
    table_init(&t, "<where <pages >size >in_the_pool >free >may_grow_by");
    add_sizes(&t, root, -1);
    for (size_t i = 0; i < view->node_count && view->node_count > 1; i++)
        add_sizes(&t, root, view->nodes[i].node);
    return table_print(&t, term);
}

json_t *
pages_report_sizes(const char *root, int32_t node)
{
    struct dry_pages_size sizes[DRY_PAGES_SIZES_MAX];
    size_t count = dry_pages_read_sizes(root, node, sizes);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct dry_pages_size *s = &sizes[i];
        if (s->kind != DRY_PAGES_POOL)
            json_array_append_new(
                list, json_pack("{s:s, s:o, s:b}", "kind", dry_pages_kind_name(s->kind),
                                "page_bytes", json_out_number(s->page_bytes), "off",
                                s->is_off));
        else
            json_array_append_new(
                list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind",
                                dry_pages_kind_name(s->kind), "page_bytes",
                                json_out_number(s->page_bytes), "pages",
                                json_out_number(s->total_count), "free_pages",
                                json_out_number(s->free_count), "growth_pages",
                                json_out_number(s->growth_count)));
    }
    return list;
}

static json_t *
known(uint64_t bytes)
{
    return bytes == DRY_TOPOLOGY_NOT_KNOWN ? json_null() : json_out_number(bytes);
}

json_t *
pages_report_nodes(const struct dry_topology_view *view, const char *root)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < view->node_count; i++) {
        const struct dry_topology_node *n = &view->nodes[i];
        json_array_append_new(
            nodes,
            json_pack("{s:i, s:o, s:o, s:i, s:o}", "node", (int)n->node, "total_bytes",
                      known(n->total_bytes), "free_bytes", known(n->free_bytes), "cpus",
                      (int)n->cpu_count, "pages", pages_report_sizes(root, n->node)));
    }
    return nodes;
}

/* --- the machine's name ------------------------------------------------------------------- */

static void
read_name(char *name, size_t capacity)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(name, capacity, "a processor without a name");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += strspn(colon, ": \t");
        term_make_printable(name, capacity, colon, strcspn(colon, "\n"));
        break;
    }
    if (file)
        fclose(file);
}

/* --- bars --------------------------------------------------------------------------------- */

struct bar {
    const char *name;
    double wanted; /* expected ratio; 0: none, shown for comparison */
    double ratio;  /* 0: not measured */
};
#define BARS 6

static const struct bench_pages *
find_kind(const struct bench *b, enum dry_pages_kind kind)
{
    for (size_t i = 0; i < b->kind_count; i++)
        if (b->kinds[i].kind == kind)
            return &b->kinds[i];
    return NULL;
}

static double
divide(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Compare transparent huge pages, or else pool pages, with base pages. Filling existing
   memory is near the machine's limit, so new memory can hardly be filled faster. */
static void
make_bars(const struct bench *b, struct bar bars[BARS])
{
    const struct bench_pages *base = find_kind(b, DRY_PAGES_BASE),
                             *huge = find_kind(b, DRY_PAGES_TRANSPARENT);
    const struct bench_malloc *m = b->mallocs;
    if (!huge)
        huge = find_kind(b, DRY_PAGES_POOL);
    bool has = base && huge;
    bool has_run = b->malloc_count > 1 && m[0].is_measured && m[1].is_measured;
    bars[0] = (struct bar){"populate beside memset of new memory, all cores", 1,
                           has ? divide(b->new_memset_ns, huge->populate_ns) : 0};
    bars[1] = (struct bar){"populate beside memset of what is there, all cores", 0,
                           has ? divide(huge->memset_ns, huge->populate_ns) : 0};
    bars[2] = (struct bar){"unmap, huge pages beside base", 10,
                           has ? divide(base->unmap_ns, huge->unmap_ns) : 0};
    bars[3] = (struct bar){"random loads, huge pages beside base", 1.7,
                           has ? divide(base->load_ns, huge->load_ns) : 0};
    bars[4] = (struct bar){"chained loads, huge pages beside base", 1.7,
                           has ? divide(base->chained_ns, huge->chained_ns) : 0};
    bars[5] = (struct bar){"32 MiB of malloc, under run beside as it is", 3,
                           has_run ? divide(m[0].ns[2], m[1].ns[2]) : 0};
}

static const char *
verdict(const struct bar *bar)
{
    if (bar->wanted <= 0)
        return "-";
    return bar->ratio >= bar->wanted ? "met" : "not met";
}

static bool
print_bars(const struct bench *b, const struct term *term)
{
    struct bar bars[BARS];
    struct table t;
    char text[32];
    make_bars(b, bars);
    table_init(&t, "<bar >wanted >here <");
    for (size_t i = 0; i < BARS; i++) {
        if (bars[i].ratio <= 0)
            continue;
        table_add(&t, bars[i].name);
        snprintf(text, sizeof text, "%.1fx", bars[i].wanted);
        table_add(&t, bars[i].wanted > 0 ? text : "-");
        snprintf(text, sizeof text, "%.2fx", bars[i].ratio);
        table_add(&t, text);
        table_add(&t, verdict(&bars[i]));
    }
    return table_print(&t, term);
}

/* --- text --------------------------------------------------------------------------------- */

static void
add_ms(struct table *t, double ns, uint64_t bytes)
{
    char text[32];
    double gib = (double)bytes / (double)(UINT64_C(1) << 30);
    double ms = ns / 1e6 / gib;
    snprintf(text, sizeof text, "%.*f", ms < 1 ? 3 : ms < 100 ? 1 : 0, ms);
    table_add(t, ns > 0 ? text : "-");
}

static void
add_ns(struct table *t, double ns)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f", ns);
    table_add(t, text);
}

static bool
print_kinds(const struct bench *b, const struct term *term)
{
    struct table t;
    char text[64], number[TERM_NUMBER_BYTES];
    table_init(&t, "<ms_a_GiB,_ns_a_load >fill >memset >lock >unlock >unmap >load "
                   ">chained >huge");
    for (size_t i = 0; i < b->kind_count; i++) {
        const struct bench_pages *k = &b->kinds[i];
        snprintf(text, sizeof text, "%s %s", dry_pages_kind_name(k->kind),
                 term_format_bytes(k->page_bytes, number));
        table_add(&t, text);
        add_ms(&t, k->populate_ns, b->bytes);
        add_ms(&t, k->memset_ns, b->bytes);
        add_ms(&t, k->lock_ns, b->bytes);
        add_ms(&t, k->unlock_ns, b->bytes);
        add_ms(&t, k->unmap_ns, b->bytes);
        add_ns(&t, k->load_ns);
        add_ns(&t, k->chained_ns);
        snprintf(text, sizeof text, "%.0f %%",
                 100.0 * (double)k->huge_bytes / (double)b->bytes);
        table_add(&t, text);
    }
    bool is_done = table_print(&t, term);
    printf("  new memory: memset by %u thread%s %.0f ms a GiB, touched by one %.0f\n",
           b->thread_count, b->thread_count == 1 ? "" : "s",
           b->new_memset_ns / 1e6 * (double)(UINT64_C(1) << 30) / (double)b->bytes,
           b->touch_ns / 1e6 * (double)(UINT64_C(1) << 30) / (double)b->bytes);
    return is_done;
}

/* Print the times of pinning memory, which GPUs need for copies at full speed. Prints
   nothing without a driver. */
static bool
print_pinning(const struct bench *b, const struct term *term)
{
    struct table t;
    bool is_any = false;
    for (size_t i = 0; i < b->kind_count; i++)
        is_any = is_any || b->kinds[i].pin_ns > 0;
    if (!is_any)
        return true;
    printf("\n");
    table_init(&t, "<ms_a_GiB,_CUDA >fill,_register >unregister,_unmap");
    for (size_t i = 0; i < b->kind_count; i++) {
        char text[64], number[TERM_NUMBER_BYTES];
        const struct bench_pages *k = &b->kinds[i];
        snprintf(text, sizeof text, "%s %s", dry_pages_kind_name(k->kind),
                 term_format_bytes(k->page_bytes, number));
        table_add(&t, text);
        add_ms(&t, k->pin_ns, b->bytes);
        add_ms(&t, k->unpin_ns, b->bytes);
    }
    return table_print(&t, term);
}

static bool
print_mallocs(const struct bench *b, const struct term *term)
{
    struct table t;
    char text[64];
    table_init(&t, "<us_to_allocate,_fill,_free >1_MiB >6_MiB >32_MiB >64_MiB");
    for (size_t i = 0; i < b->malloc_count; i++) {
        const struct bench_malloc *m = &b->mallocs[i];
        table_add(&t, m->name);
        for (size_t k = 0; k < BENCH_SIZES; k++) {
            snprintf(text, sizeof text, "%.0f", m->ns[k] / 1e3);
            table_add(&t, m->is_measured ? text : "-");
        }
    }
    return table_print(&t, term);
}

int
pages_report_bench(const struct bench *b, const struct dry_topology_view *view)
{
    struct term term;
    char name[64], bytes[TERM_NUMBER_BYTES];
    bool is_done = true;
    term_init(&term, stdout);
    read_name(name, sizeof name);
    printf("%s, %u CPU%s, %zu node%s\n", name, view->allowed_cpu_count,
           view->allowed_cpu_count == 1 ? "" : "s", view->node_count,
           view->node_count == 1 ? "" : "s");
    if (b->kind_count) {
        printf("\n%s, medians of %u\n", term_format_bytes(b->bytes, bytes), b->rounds);
        is_done = print_kinds(b, &term) && print_pinning(b, &term);
    }
    if (b->malloc_count) {
        printf("\n");
        is_done &= print_mallocs(b, &term);
    }
    printf("\n");
    is_done &= print_bars(b, &term);
    return is_done ? EXIT_FINE : report_memory("pages", NULL);
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
measured(double ns)
{
    return ns > 0 ? json_real(ns) : json_null();
}

static json_t *
make_kinds(const struct bench *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->kind_count; i++) {
        const struct bench_pages *k = &b->kinds[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                      "kind", dry_pages_kind_name(k->kind), "page_bytes",
                      json_out_number(k->page_bytes), "huge_bytes",
                      json_out_number(k->huge_bytes), "populate_ns",
                      measured(k->populate_ns), "memset_ns", measured(k->memset_ns),
                      "lock_ns", measured(k->lock_ns), "unlock_ns",
                      measured(k->unlock_ns), "pin_ns", measured(k->pin_ns), "unpin_ns",
                      measured(k->unpin_ns), "unmap_ns", measured(k->unmap_ns), "load_ns",
                      measured(k->load_ns), "chained_load_ns", measured(k->chained_ns)));
    }
    return list;
}

static json_t *
make_times(const double ns[BENCH_SIZES])
{
    json_t *list = json_array();
    for (size_t i = 0; i < BENCH_SIZES; i++)
        json_array_append_new(list, json_pack("{s:o, s:o}", "bytes",
                                              json_out_number(bench_malloc_bytes(i)),
                                              "ns", measured(ns[i])));
    return list;
}

static json_t *
make_mallocs(const struct bench *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->malloc_count; i++) {
        const struct bench_malloc *m = &b->mallocs[i];
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "name", m->name, "times",
                            m->is_measured ? make_times(m->ns) : json_null()));
    }
    return list;
}

static json_t *
make_bars_json(const struct bench *b)
{
    struct bar bars[BARS];
    json_t *list = json_array();
    make_bars(b, bars);
    for (size_t i = 0; i < BARS; i++)
        if (bars[i].ratio > 0)
            json_array_append_new(
                list, json_pack("{s:s, s:o, s:f, s:o}", "name", bars[i].name, "wanted",
                                measured(bars[i].wanted), "ratio", bars[i].ratio, "met",
                                bars[i].wanted > 0
                                    ? json_boolean(bars[i].ratio >= bars[i].wanted)
                                    : json_null()));
    return list;
}

int
pages_report_bench_json(const struct bench *b, const struct dry_topology_view *view)
{
    char name[64];
    read_name(name, sizeof name);
    return json_out_print(
        "pages",
        json_pack("{s:s, s:n, s:{s:s, s:i, s:i}, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o}",
                  "schema", "drystone.pages-bench/1", "file", "machine", "processor",
                  name, "cpus", (int)view->allowed_cpu_count, "nodes",
                  (int)view->node_count, "bytes", json_out_number(b->bytes), "rounds",
                  (int)b->rounds, "threads", (int)b->thread_count, "new_memset_ns",
                  measured(b->new_memset_ns), "new_touch_ns", measured(b->touch_ns),
                  "pages", make_kinds(b), "malloc", make_mallocs(b), "bars",
                  make_bars_json(b)));
}

int
pages_report_here(const double ns[BENCH_SIZES], bool is_json)
{
    if (is_json)
        return json_out_print("pages", json_pack("{s:s, s:n, s:o}", "schema",
                                                 "drystone.pages-bench/1", "file", "here",
                                                 make_times(ns)));
    char bytes[TERM_NUMBER_BYTES];
    for (size_t i = 0; i < BENCH_SIZES; i++)
        printf("  %-12s%10.0f us\n", term_format_bytes(bench_malloc_bytes(i), bytes),
               ns[i] / 1e3);
    return EXIT_FINE;
}
