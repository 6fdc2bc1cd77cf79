/* SPDX-License-Identifier: Apache-2.0 */
/* Findings and pages as JSON: schema drystone.pages/2, see drystone-pages(1). */
#include <string.h>

#include "base/json_out.h"
#include "machine/doctor_report.h"
#include "machine/pages_report.h"

/* Make a list with one text per line; "" gives an empty list. */
static json_t *
make_lines(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t length = strcspn(text, "\n");
        json_array_append_new(list, json_out_text(text, length));
        text += length + (text[length] == '\n');
    }
    return list;
}

static json_t *
make_changes(const struct doctor_report *r, const struct dry_doctor_finding *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->change_count; i++) {
        struct dry_doctor_change c = DRY_INIT(struct dry_doctor_change);
        dry_doctor_get_change(r->doctor, f->first_change + i, &c);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "path", c.path, "old",
                                              c.old_value, "new", c.new_value));
    }
    return list;
}

static json_t *
make_finding(const struct doctor_report *r, const struct dry_doctor_finding *f)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:b, s:o}",
                     "id", f->id, "topic", dry_doctor_topic_name(f->topic), "verdict",
                     dry_doctor_verdict_name(f->verdict), "title", f->title, "is",
                     json_out_filled(f->is), "should_be", json_out_filled(f->should_be),
                     "why", f->why, "fix", make_lines(doctor_report_fix(f)), "undo",
                     make_lines(f->undo), "persist", make_lines(f->persist), "needs_root",
                     f->needs_root, "needs_reboot", f->needs_reboot, "changes",
                     make_changes(r, f));
}

static json_t *
make_findings(const struct doctor_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < dry_doctor_get_finding_count(r->doctor); i++) {
        struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
        dry_doctor_get_finding(r->doctor, i, &f);
        if (doctor_report_has(r, f.id))
            json_array_append_new(list, make_finding(r, &f));
    }
    return list;
}

static json_t *
known(uint64_t value, uint64_t unknown)
{
    return value == unknown ? json_null() : json_out_number(value);
}

static json_t *
make_machine(const struct doctor_report *r)
{
    struct dry_doctor_machine m = DRY_INIT(struct dry_doctor_machine);
    char release[32];
    dry_doctor_get_machine(r->doctor, &m);
    snprintf(release, sizeof release, "%u.%u", m.kernel_major, m.kernel_minor);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "kernel",
                     m.kernel_major ? json_string(release) : json_null(), "memory_bytes",
                     known(m.memory_bytes, 0), "base_page_bytes",
                     known(m.base_page_bytes, 0), "huge_page_bytes",
                     known(m.huge_page_bytes, 0), "nodes", known(m.node_count, 0),
                     "nvidia_driver", m.has_nvidia_driver);
}

static json_t *
make_row(const struct dry_doctor_row *row)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "node",
        row->node == DRY_DOCTOR_ANY_NODE ? json_null() : json_integer(row->node),
        "page_bytes", json_out_number(row->page_bytes), "needed",
        json_out_number(row->needed_count), "total", json_out_number(row->total_count),
        "free", json_out_number(row->free_count), "missing",
        json_out_number(row->missing_count), "budget_bytes",
        known(row->budget_bytes, UINT64_MAX), "cache_bytes",
        json_out_number(row->cache_bytes), "fits", row->fits, "recommended",
        row->is_recommended);
}

static json_t *
make_needs(const struct doctor_report *r)
{
    json_t *bytes = json_array(), *rows = json_array();
    for (size_t i = 0; i < r->need_count; i++)
        json_array_append_new(bytes, json_out_number(r->needs_bytes[i]));
    for (size_t i = 0; i < dry_doctor_get_row_count(r->doctor); i++) {
        struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
        dry_doctor_get_row(r->doctor, i, &row);
        json_array_append_new(rows, make_row(&row));
    }
    return json_pack("{s:o, s:o}", "regions_bytes", bytes, "rows", rows);
}

static json_t *
make_counts(const struct doctor_report *r)
{
    json_t *counts = json_object();
    for (unsigned v = 0; v < DRY_DOCTOR_VERDICT_COUNT; v++)
        json_object_set_new(
            counts, dry_doctor_verdict_name((enum dry_doctor_verdict)v),
            json_out_number(doctor_report_count(r, (enum dry_doctor_verdict)v)));
    return counts;
}

int
doctor_report_print_json(const struct doctor_report *r)
{
    return json_out_print(
        "pages",
        json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                  "drystone.pages/2", "root", json_out_filled(r->root), "process",
                  r->process ? json_integer(r->process) : json_null(), "purpose",
                  dry_doctor_purpose_name(r->purpose), "machine", make_machine(r),
                  "pages", pages_report_sizes(r->root, -1), "nodes",
                  pages_report_nodes(r->topology, r->root), "counts", make_counts(r),
                  "need", r->need_count ? make_needs(r) : json_null(), "findings",
                  make_findings(r)));
}
