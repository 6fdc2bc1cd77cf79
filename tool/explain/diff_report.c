/* SPDX-License-Identifier: Apache-2.0 */
/* See diff_report.h. Sections: figures, words, text, JSON. */
#include "explain/diff_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

#define CELL_BYTES 1100u
#define LABEL_BYTES 24u

/* --- figures ------------------------------------------------------------------------------ */

uint64_t
diff_report_spread(const struct diff_report *r)
{
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &count);
    uint64_t of_totals = dry_diff_get_total(r->diff)->spread;
    /* rows are sorted by spread, widest first */
    return count > 0 && rows[0].spread > of_totals ? rows[0].spread : of_totals;
}

/* Count the rows to print. Rows are sorted by spread, so a small one ends the list. */
static size_t
count_shown(const struct diff_report *r)
{
    size_t count, shown = 0;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &count);
    while (shown < count && shown < r->row_limit && rows[shown].spread > 0 &&
           rows[shown].spread >= r->min_bytes)
        shown++;
    return shown;
}

/* Return the bytes of a subject's total outside the first `shown` rows. */
static uint64_t
find_rest(const struct diff_report *r, size_t shown, uint32_t subject)
{
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &count);
    uint64_t rest = dry_diff_get_total(r->diff)->cells[subject].bytes;
    for (size_t i = 0; i < shown; i++) {
        uint64_t bytes = dry_diff_bytes(&rows[i], subject);
        rest = rest > bytes ? rest - bytes : 0;
    }
    return rest;
}

static bool
are_facts_equal(const struct diff_report *r)
{
    size_t count;
    const struct dry_diff_fact *facts = dry_diff_get_facts(r->diff, &count);
    for (size_t i = 0; i < count; i++) {
        if (!facts[i].is_equal)
            return false;
    }
    return true;
}

/* --- words -------------------------------------------------------------------------------- */

static int32_t
get_device(const struct diff_report_subject *s)
{
    return dry_timeline_get_view(s->study->devices[s->device].timeline)->device;
}

/* Write a subject's label as a column heading: "A" and "B" for two files, "#3" for more,
   "device_3" for devices. */
static const char *
write_label(const struct diff_report *r, size_t subject, char text[LABEL_BYTES])
{
    if (r->is_devices)
        snprintf(text, LABEL_BYTES, "device_%" PRId32, get_device(&r->subjects[subject]));
    else if (r->subject_count == 2)
        snprintf(text, LABEL_BYTES, "%c", subject == 0 ? 'A' : 'B');
    else
        snprintf(text, LABEL_BYTES, "#%zu", subject);
    return text;
}

static const char *
write_label_with_blank(const struct diff_report *r, size_t subject,
                       char text[LABEL_BYTES])
{
    write_label(r, subject, text);
    char *mark = strchr(text, '_');
    if (mark)
        *mark = ' ';
    return text;
}

/* Write a difference: "+9.50 GiB", "-3.10 MiB", or "" if there is none. */
static const char *
write_change(uint64_t from, uint64_t to, char text[TERM_NUMBER_BYTES + 1])
{
    char number[TERM_NUMBER_BYTES];
    if (from == to)
        return "";
    uint64_t bytes = to > from ? to - from : from - to;
    snprintf(text, TERM_NUMBER_BYTES + 1, "%c%s", to > from ? '+' : '-',
             term_format_bytes(bytes, number));
    return text;
}

static void
add_text(struct table *t, const char *bytes, size_t length)
{
    char text[CELL_BYTES];
    term_make_printable(text, sizeof text, bytes, length);
    table_add(t, text);
}

static void
add_bytes(struct table *t, uint64_t bytes)
{
    char number[TERM_NUMBER_BYTES];
    table_add(t, bytes ? term_format_bytes(bytes, number) : "-");
}

/* --- two ---------------------------------------------------------------------------------- */

static void
add_pair(struct table *t, uint64_t a, uint64_t b)
{
    char change[TERM_NUMBER_BYTES + 1];
    table_add(t, write_change(a, b, change));
    add_bytes(t, a);
    add_bytes(t, b);
}

static void
add_word_pair(struct table *t, const char *word, uint64_t a, uint64_t b)
{
    add_pair(t, a, b);
    table_add(t, word);
    table_add(t, "");
}

/* Add an owner's name. The suffix "(freed there)" goes to the column for operations. */
static void
add_owner(struct table *t, const struct dry_diff_row *row)
{
    static const char suffix[] = " (freed there)";
    size_t length = row->name_length, cut = sizeof suffix - 1;
    if (length > cut && memcmp(row->name + length - cut, suffix, cut) == 0) {
        add_text(t, row->name, length - cut);
        table_add_operation(t, suffix + 1, cut - 1);
        return;
    }
    add_text(t, row->name, length);
    table_add_operation(t, row->what, row->what_length);
}

static void
write_others(char text[CELL_BYTES], size_t count)
{
    char number[TERM_NUMBER_BYTES];
    snprintf(text, CELL_BYTES, "(%s other%s)", term_format_count(count, number),
             count == 1 ? "" : "s");
}

static bool
print_two(const struct diff_report *r, const struct term *term)
{
    size_t row_count, shown = count_shown(r);
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &row_count);
    const struct dry_diff_cell *totals = dry_diff_get_total(r->diff)->cells;
    char columns[4 * LABEL_BYTES], a[LABEL_BYTES], b[LABEL_BYTES], others[CELL_BYTES];
    snprintf(columns, sizeof columns, ">change >%s >%s =owner <what",
             write_label(r, 0, a), write_label(r, 1, b));
    struct table t;
    table_init(&t, columns);
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++) {
        add_pair(&t, dry_diff_bytes(&rows[i], 0), dry_diff_bytes(&rows[i], 1));
        add_owner(&t, &rows[i]);
    }
    if (row_count > shown) {
        write_others(others, row_count - shown);
        add_word_pair(&t, others, find_rest(r, shown, 0), find_rest(r, shown, 1));
    }
    add_word_pair(&t, "total", totals[0].bytes, totals[1].bytes);
    return table_print(&t, term);
}

/* --- many --------------------------------------------------------------------------------- */

/* Add the subject that differs most: "#7 only", "#7 most" or "#0 least". */
static void
add_outlier(struct table *t, const struct diff_report *r, const struct dry_diff_row *row)
{
    char label[LABEL_BYTES], text[2 * LABEL_BYTES];
    uint32_t subject = row->cell_count == 1 ? row->cells[0].subject : row->outlier;
    const char *how = row->cell_count == 1                         ? "only"
                      : dry_diff_bytes(row, subject) > row->median ? "most"
                                                                   : "least";
    snprintf(text, sizeof text, "%s %s", write_label_with_blank(r, subject, label), how);
    table_add(t, text);
}

static bool
print_many(const struct diff_report *r, const struct term *term)
{
    size_t row_count, shown = count_shown(r);
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &row_count);
    struct table t;
    fields_init_table(&t, "", dry_diff_get_fields(DRY_DIFF_ROW), "<outlier =owner");
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++) {
        fields_add_cells(&t, dry_diff_get_fields(DRY_DIFF_ROW), &rows[i]);
        add_outlier(&t, r, &rows[i]);
        add_text(&t, rows[i].name, rows[i].name_length);
    }
    bool done = shown == 0 || table_print(&t, term);
    if (shown == 0)
        table_finish(&t);
    char number[TERM_NUMBER_BYTES];
    if (done && row_count > shown)
        printf("  %s%s owner%s differ%s less or not at all\n",
               term_format_count(row_count - shown, number), shown ? " other" : "",
               row_count - shown == 1 ? "" : "s", row_count - shown == 1 ? "s" : "");
    return done;
}

/* --- the head and the foot ---------------------------------------------------------------- */

static void
add_subject(struct table *t, const struct diff_report *r, size_t i)
{
    const struct diff_report_subject *s = &r->subjects[i];
    const struct dry_timeline *timeline = s->study->devices[s->device].timeline;
    size_t event = moment_event(dry_timeline_get_view(timeline), &s->moment);
    const struct dry_diff_row *total = dry_diff_get_total(r->diff);
    uint64_t bytes = total->cells[i].bytes;
    char label[LABEL_BYTES], text[64], change[TERM_NUMBER_BYTES + 1];
    table_add(t, write_label_with_blank(r, i, label));
    table_add(t, term_format_bytes(bytes, text));
    uint64_t reserved =
        dry_timeline_height(timeline, DRY_CURVE_RESERVED, s->moment.moment);
    table_add(t, r->subject_count > 2 ? write_change(total->median, bytes, change)
                                      : term_format_bytes(reserved, text));
    const char *reason = moment_reason_name(s->moment.reason);
    if (event == SIZE_MAX)
        snprintf(text, sizeof text, "%s", reason);
    else if (s->moment.reason == MOMENT_EVENT)
        snprintf(text, sizeof text, "event %zu", event);
    else
        snprintf(text, sizeof text, "%s, event %zu", reason, event);
    table_add(t, text);
    if (r->is_devices)
        return;
    snprintf(text, sizeof text, "%" PRId32 "%s", get_device(s),
             s->study->is_simulated ? " simulated" : "");
    table_add(t, text);
    add_text(t, s->study->path, strlen(s->study->path));
}

static bool
print_subjects(const struct diff_report *r, const struct term *term)
{
    struct table t;
    char columns[80];
    snprintf(columns, sizeof columns, "<%s >active >%s <at%s",
             r->is_devices ? "device" : "file",
             r->subject_count > 2 ? "to_median" : "reserved",
             r->is_devices ? "" : " <device <path");
    table_init(&t, columns);
    t.is_bounded = true;
    for (size_t i = 0; i < r->subject_count; i++)
        add_subject(&t, r, i);
    return table_print(&t, term);
}

static void
print_head(const struct diff_report *r, const struct term *term)
{
    const char *key = dry_owner_key_name(r->key);
    if (r->is_devices)
        term_print_subject(term, r->subjects[0].study->path, TERM_BOLD,
                           "%zu devices, by %s", r->subject_count, key);
    else
        printf("%s%zu files%s, by %s\n", term_style(term, TERM_BOLD), r->subject_count,
               term_style(term, TERM_PLAIN), key);
}

#define VALUE_BYTES_SHOWN 60u

static void
print_fact(const struct diff_report *r, const struct dry_diff_fact *fact)
{
    printf("  different: %s\n", fact->name);
    for (size_t i = 0; i < r->subject_count; i++) {
        char label[LABEL_BYTES], text[VALUE_BYTES_SHOWN];
        size_t length = strlen(fact->values[i]);
        term_make_printable(text, sizeof text, fact->values[i], length);
        printf("    %s  %s%s\n", write_label_with_blank(r, i, label),
               length ? text : "(empty)", length >= sizeof text ? "..." : "");
    }
}

/* Print `word` and a wrapped list of names; print nothing if the list is empty. */
static void
print_names(const struct diff_report *r, const char *word, bool is_known)
{
    size_t count;
    const struct dry_diff_fact *facts = dry_diff_get_facts(r->diff, &count);
    int indent = (int)strlen(word) + 2, used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!facts[i].is_equal || facts[i].is_known != is_known)
            continue;
        if (used == 0)
            used = printf("  %s", word);
        else if (used + (int)strlen(facts[i].name) > 76)
            used = printf(",\n%*s", indent, "") - 2;
        else
            used += printf(",");
        used += printf(" %s", facts[i].name);
    }
    printf("%s", used ? "\n" : "");
}

static void
print_facts(const struct diff_report *r)
{
    size_t count;
    const struct dry_diff_fact *facts = dry_diff_get_facts(r->diff, &count);
    for (size_t i = 0; i < count; i++) {
        if (!facts[i].is_equal)
            print_fact(r, &facts[i]);
    }
    print_names(r, "equal:", true);
    print_names(r, "not known of all:", false);
}

/* Print the owners that exist in one subject only, summed per subject. */
static void
print_only(const struct diff_report *r)
{
    char number[TERM_NUMBER_BYTES], label[LABEL_BYTES];
    size_t row_count;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &row_count);
    for (uint32_t i = 0; i < r->subject_count; i++) {
        size_t count = 0;
        uint64_t bytes = 0;
        for (size_t k = 0; k < row_count; k++) {
            bool is_only = rows[k].cell_count == 1 && rows[k].cells[0].subject == i;
            if (!is_only || rows[k].max < r->min_bytes)
                continue;
            count++;
            if (__builtin_add_overflow(bytes, rows[k].max, &bytes))
                bytes = UINT64_MAX;
        }
        if (count == 0 && r->subject_count > 2)
            continue;
        printf("  only in %s: ", write_label_with_blank(r, i, label));
        if (count == 0)
            printf("nothing of %s or more\n", term_format_bytes(r->min_bytes, number));
        else
            printf("%zu owner%s, %s\n", count, count == 1 ? "" : "s",
                   term_format_bytes(bytes, number));
    }
}

bool
diff_report_print(const struct diff_report *r)
{
    struct term term;
    term_init(&term, stdout);
    print_head(r, &term);
    if (!print_subjects(r, &term))
        return false;
    printf("\n");
    char number[TERM_NUMBER_BYTES];
    if (diff_report_spread(r) == 0)
        printf("  equal: every owner holds the same bytes in each\n\n");
    else if (count_shown(r) == 0)
        printf("  no owner differs by %s or more\n\n",
               term_format_bytes(r->min_bytes, number));
    bool done = r->subject_count == 2 ? print_two(r, &term) : print_many(r, &term);
    if (!done)
        return false;
    printf("\n");
    if (diff_report_spread(r) > 0)
        print_only(r);
    print_facts(r);
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_subjects(const struct diff_report *r)
{
    const struct dry_diff_row *total = dry_diff_get_total(r->diff);
    json_t *list = json_array();
    for (size_t i = 0; i < total->cell_count; i++) {
        const struct diff_report_subject *s = &r->subjects[i];
        const struct dry_timeline *timeline = s->study->devices[s->device].timeline;
        list = json_out_append(
            list, json_pack("{s:o, s:i, s:b, s:o, s:o, s:o}", "file",
                            json_out_string(s->study->path), "device", (int)get_device(s),
                            "simulated", (int)s->study->is_simulated, "at",
                            moment_make_json(timeline, &s->moment), "active_bytes",
                            json_out_number(total->cells[i].bytes), "reserved_bytes",
                            json_out_number(dry_timeline_height(
                                timeline, DRY_CURVE_RESERVED, s->moment.moment))));
    }
    return list;
}

static json_t *
make_cells(const struct dry_diff_row *row)
{
    json_t *list = json_array();
    for (size_t i = 0; i < row->cell_count; i++)
        list = json_out_append(list, fields_add_json(json_object(),
                                                     dry_diff_get_fields(DRY_DIFF_CELL),
                                                     &row->cells[i]));
    return list;
}

static json_t *
make_rows(const struct diff_report *r, size_t shown)
{
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < shown; i++) {
        json_t *row = json_pack("{s:o, s:o, s:o}", "name",
                                json_out_text(rows[i].name, rows[i].name_length), "what",
                                json_out_text(rows[i].what, rows[i].what_length),
                                "subjects", make_cells(&rows[i]));
        list = json_out_append(
            list, fields_add_json(row, dry_diff_get_fields(DRY_DIFF_ROW), &rows[i]));
    }
    return list;
}

static json_t *
make_facts(const struct diff_report *r)
{
    size_t count;
    const struct dry_diff_fact *facts = dry_diff_get_facts(r->diff, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *values = json_array();
        for (size_t k = 0; k < r->subject_count; k++)
            values = json_out_append(values, json_out_string(facts[i].values[k]));
        json_t *fact = json_pack("{s:o}", "values", values);
        list = json_out_append(
            list, fields_add_json(fact, dry_diff_get_fields(DRY_DIFF_FACT), &facts[i]));
    }
    return list;
}

static json_t *
make_rest(const struct diff_report *r, size_t shown)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->subject_count; i++)
        list = json_out_append(list, json_out_number(find_rest(r, shown, i)));
    return list;
}

int
diff_report_print_json(const struct diff_report *r)
{
    size_t row_count, shown = count_shown(r);
    dry_diff_get_rows(r->diff, &row_count);
    bool is_equal = diff_report_spread(r) == 0 && are_facts_equal(r);
    json_t *root = json_pack(
        "{s:s, s:o, s:s, s:o, s:b, s:o, s:o, s:o, s:{s:o, s:o}, s:o}", "schema",
        "drystone.diff/1", "file", json_out_string(r->subjects[0].study->path), "by",
        dry_owner_key_name(r->key), "min_bytes", json_out_number(r->min_bytes), "equal",
        (int)is_equal, "spread_bytes", json_out_number(diff_report_spread(r)), "subjects",
        make_subjects(r), "owners", make_rows(r, shown), "others", "owners",
        json_out_number(row_count - shown), "bytes", make_rest(r, shown), "facts",
        make_facts(r));
    return json_out_print("diff", root);
}
