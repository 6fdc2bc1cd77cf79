/* SPDX-License-Identifier: Apache-2.0 */
/* See message_report.h. The text is fed to the finder in buffers of READ_BYTES. Equal
   messages become one entry, with the labels of the ranks that printed them. */
#include "explain/message_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <drystone/message.h>
#include <drystone/trace.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/term.h"
#include "record/load.h"

#define DISTINCT_MAX 64
#define LABELS_MAX 16
#define READ_BYTES ((size_t)256 << 10)
#define CODE_BYTES 1024

/* The mark of a rank, and the offset in the text of that rank's message. Ranks that fail
   alike share one entry. */
struct label {
    uint64_t offset;
    char text[DRY_MESSAGE_LABEL_BYTES];
};

struct entry {
    struct dry_message message;
    size_t count;
    struct label labels[LABELS_MAX]; /* sorted by offset in the end */
    size_t label_count;
};

struct report {
    const char *command, *path; /* path NULL: a text was given */
    uint64_t bytes_read;
    size_t count, left_out, entry_count;
    struct entry entries[DISTINCT_MAX];
    struct progress progress;
};

/* --- collecting --------------------------------------------------------------------------- */

static void
add_label(struct entry *e, const struct dry_message *m)
{
    if (!m->label[0] || e->label_count == LABELS_MAX)
        return;
    for (size_t i = 0; i < e->label_count; i++) {
        if (strcmp(e->labels[i].text, m->label) == 0)
            return;
    }
    struct label *label = e->labels + e->label_count++;
    label->offset = m->offset;
    memcpy(label->text, m->label, sizeof label->text);
}

static bool
collect(void *self, const struct dry_message *m)
{
    struct report *r = self;
    r->count++;
    for (size_t i = 0; i < r->entry_count; i++) {
        struct entry *e = r->entries + i;
        if (!dry_message_is_same(&e->message, m))
            continue;
        e->count++;
        if (m->offset < e->message.offset)
            dry_message_copy(m, &e->message);
        add_label(e, m);
        return false;
    }
    if (r->entry_count == DISTINCT_MAX) {
        r->left_out++;
        return false;
    }
    struct entry *e = r->entries + r->entry_count++;
    *e = (struct entry){.message = DRY_INIT(struct dry_message), .count = 1};
    dry_message_copy(m, &e->message);
    add_label(e, m);
    return false;
}

static int
compare_places(const void *a, const void *b)
{
    uint64_t x = ((const struct entry *)a)->message.offset;
    uint64_t y = ((const struct entry *)b)->message.offset;
    return (x > y) - (x < y);
}

static int
compare_labels(const void *a, const void *b)
{
    uint64_t x = ((const struct label *)a)->offset;
    uint64_t y = ((const struct label *)b)->offset;
    return (x > y) - (x < y);
}

/* Sort messages by their beginnings; the finder reports them by their ends. */
static void
sort_by_place(struct report *r)
{
    qsort(r->entries, r->entry_count, sizeof *r->entries, compare_places);
    for (size_t i = 0; i < r->entry_count; i++) {
        struct entry *e = r->entries + i;
        qsort(e->labels, e->label_count, sizeof *e->labels, compare_labels);
    }
}

static int
feed_file(struct report *r, struct dry_message_finder *finder, FILE *file)
{
    char *buffer = malloc(READ_BYTES);
    if (!buffer)
        return report_memory(r->command, r->path);
    enum dry_status status = DRY_OK;
    size_t got;
    progress_begin(&r->progress, "reading", 0);
    while (status == DRY_OK && (got = fread(buffer, 1, READ_BYTES, file)) > 0) {
        r->bytes_read += got;
        status = dry_message_finder_feed(finder, buffer, got);
        progress_update(&r->progress, r->bytes_read);
    }
    progress_end(&r->progress);
    free(buffer);
    if (ferror(file))
        return report_failure(r->command, r->path, EXIT_INPUT, "cannot read: %s",
                              strerror(errno));
    return EXIT_FINE;
}

static int
feed_path(struct report *r, struct dry_message_finder *finder)
{
    if (strcmp(r->path, "-") == 0)
        return feed_file(r, finder, stdin);
    FILE *file = fopen(r->path, "rbe");
    if (!file)
        return report_failure(r->command, r->path, EXIT_INPUT, "cannot open: %s",
                              strerror(errno));
    int code = feed_file(r, finder, file);
    fclose(file);
    return code;
}

static int
collect_all(struct report *r, const char *text)
{
    struct dry_message_options options;
    dry_message_options_init(&options);
    options.found = collect;
    options.found_self = r;
    struct dry_message_finder *finder;
    struct dry_error err;
    if (dry_message_finder_create(&options, &finder, &err) != DRY_OK)
        return report_error(r->command, r->path, &err);
    int code = EXIT_FINE;
    if (text) {
        r->bytes_read = strlen(text);
        if (dry_message_finder_feed(finder, text, (size_t)r->bytes_read) != DRY_OK)
            code = EXIT_MACHINE; /* only memory can run out: collect() never cancels */
    } else {
        code = feed_path(r, finder);
    }
    if (dry_message_finder_end(finder) != DRY_OK)
        code = EXIT_MACHINE;
    dry_message_finder_destroy(finder);
    sort_by_place(r);
    return code;
}

/* --- text --------------------------------------------------------------------------------- */

/* Format a size with its sign: "1.95 GiB", "-1.95 GiB". */
static const char *
format_sum(int64_t bytes, char text[TERM_NUMBER_BYTES + 1])
{
    uint64_t size = bytes < 0 ? (uint64_t)-bytes : (uint64_t)bytes;
    text[0] = '-';
    term_format_bytes(size, text + (bytes < 0));
    return text;
}

static void
print_number(const char *what, const struct dry_message_size *size, const char *note)
{
    char text[TERM_NUMBER_BYTES];
    if (size->known == DRY_MESSAGE_ABSENT)
        return;
    printf("  %-32s %12s%s\n", what,
           size->known == DRY_MESSAGE_BEYOND ? "not known"
                                             : term_format_bytes(size->bytes, text),
           note);
}

static void
print_processes(const struct dry_message *m, const struct dry_message_judgement *j)
{
    for (size_t i = 0; i < m->other_count; i++) {
        char what[48];
        snprintf(what, sizeof what, "process %" PRIu64, m->others[i].pid);
        print_number(what, &m->others[i].bytes,
                     (int32_t)i == j->this_process ? "  (must be this process)" : "");
    }
    if (m->other_dropped)
        printf("  and %zu more process%s\n", m->other_dropped,
               m->other_dropped == 1 ? "" : "es");
}

/* Return the words for a quantity. Other programs' texts are not about PyTorch's. */
static const char *
name_quantity(const struct dry_message *m, enum dry_message_quantity quantity)
{
    switch (m->kind ? (int)quantity : -1) {
    case DRY_MESSAGE_TRIED:
        return "asked for";
    case DRY_MESSAGE_FREE:
        return "free";
    case DRY_MESSAGE_PROCESS:
        return "the process";
    case DRY_MESSAGE_ALLOCATED:
        return "allocated";
    case DRY_MESSAGE_RESERVED:
        return "reserved";
    default:
        return dry_message_quantity_text(quantity);
    }
}

static void
print_figure(const struct dry_message_figure *f)
{
    const char *what = dry_message_quantity_text(f->quantity);
    double value = (double)f->size.bytes;
    const char *sign = f->is_negative ? "-" : "";
    char text[TERM_NUMBER_BYTES], number[TERM_NUMBER_BYTES + 1];
    if (f->size.known == DRY_MESSAGE_BEYOND) {
        print_number(what, &f->size, "");
        return;
    }
    switch (dry_message_quantity_unit(f->quantity)) {
    case DRY_MESSAGE_COUNT:
        printf("  %-32s %12" PRIu64 "\n", what, f->size.bytes);
        return;
    case DRY_MESSAGE_MILLIONTHS:
        printf("  %-32s %12.4g\n", what, value / 1e6);
        return;
    case DRY_MESSAGE_BYTES:
        snprintf(number, sizeof number, "%s%s", sign,
                 term_format_bytes(f->size.bytes, text));
        printf("  %-32s %12s\n", what, number);
    }
}

static void
print_numbers(const struct dry_message *m, const struct dry_message_judgement *j)
{
    print_number(name_quantity(m, DRY_MESSAGE_TRIED), &m->tried, "");
    print_number("the device's memory", &m->total, "");
    print_number(name_quantity(m, DRY_MESSAGE_FREE), &m->free, "");
    print_number(name_quantity(m, DRY_MESSAGE_PROCESS), &m->process, "");
    print_processes(m, j);
    if (m->form == DRY_MESSAGE_ASYNC && m->allowed.known == DRY_MESSAGE_BEYOND)
        printf("  %-32s %12s\n", "the limit", "none");
    else
        print_number(m->form == DRY_MESSAGE_MPS ? "the high watermark" : "the limit",
                     &m->allowed, "");
    print_number(name_quantity(m, DRY_MESSAGE_ALLOCATED), &m->allocated, "");
    print_number("of it free in private pools", &m->private_pools, "");
    print_number("reserved, not allocated", &j->unallocated,
                 m->unallocated.known == DRY_MESSAGE_ABSENT ? "  (worked out)" : "");
    print_number(name_quantity(m, DRY_MESSAGE_RESERVED), &m->reserved, "");
    print_number("this process, not PyTorch", &j->non_pytorch,
                 m->non_pytorch.known == DRY_MESSAGE_ABSENT ? "  (worked out)" : "");
    for (size_t i = 0; i < m->figure_count; i++)
        print_figure(m->figures + i);
}

static void
print_head(const struct term *term, const struct report *r, const struct entry *e)
{
    const struct dry_message *m = &e->message;
    printf("%s", term_style(term, TERM_BOLD));
    if (r->path)
        term_print_text(stdout, r->path, strlen(r->path));
    else
        printf("message");
    printf("%s: line %" PRIu64 ", byte %" PRIu64, term_style(term, TERM_PLAIN), m->line,
           m->offset);
    if (m->has_device)
        printf(", device %" PRIu32, m->device);
    for (size_t i = 0; i < e->label_count && i < 4; i++) {
        printf(", ");
        term_print_text(stdout, e->labels[i].text, strlen(e->labels[i].text));
    }
    if (e->label_count > 4)
        printf(" ...");
    if (e->count > 1)
        printf(", %zu times", e->count);
    printf("\n");
    const char *writer = dry_message_get_writer(m);
    if (writer)
        printf("  written by %s\n", writer);
    else if (m->releases)
        printf("  reads like PyTorch %s%s\n", m->releases,
               m->is_cut ? ", cut short" : "");
    else if (m->is_cut)
        printf("  cut short\n");
}

/* Print the cause and its alternatives: "fragmentation, or stranded or pending". */
static void
print_verdict(const struct term *term, const struct dry_message_judgement *j)
{
    enum term_style style = j->cause == DRY_CAUSE_UNKNOWN ? TERM_YELLOW : TERM_RED;
    printf("verdict  %s%s%s", term_style(term, style), dry_cause_name(j->cause),
           term_style(term, TERM_PLAIN));
    const char *between = ", or ";
    for (int cause = 0; cause < DRY_CAUSE_COUNT; cause++) {
        if (!(j->alternatives >> cause & 1))
            continue;
        printf("%s%s", between, dry_cause_name((enum dry_cause)cause));
        between = " or ";
    }
    if (j->cause != DRY_CAUSE_UNKNOWN && !j->is_certain)
        printf(" (not certain)");
    printf("\n");
}

static void
print_terms(const struct dry_message *m, const struct dry_message_term *terms,
            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[TERM_NUMBER_BYTES];
        printf("      %c %-32s %12s\n",
               terms[i].sign < 0 ? '-'
               : i               ? '+'
                                 : ' ',
               name_quantity(m, terms[i].quantity),
               term_format_bytes((uint64_t)terms[i].value.bytes, text));
    }
}

/* Print a sum: "= 1.00 MiB", and the interval that rounding in the message leaves. */
static void
print_sum(const struct dry_message_sum *sum)
{
    char text[TERM_NUMBER_BYTES + 1], half[TERM_NUMBER_BYTES];
    printf("      = %-32s %12s", "", format_sum(sum->bytes, text));
    uint64_t width = (uint64_t)(sum->high - sum->low) / 2;
    if (width > 0)
        printf("  +- %s", term_format_bytes(width, half));
    printf("\n");
}

static void
print_proofs(const struct term *term, const struct dry_message *m,
             const struct dry_message_judgement *j)
{
    for (size_t i = 0; i < j->proof_count; i++) {
        const struct dry_message_proof *p = j->proofs + i;
        char line[240];
        snprintf(line, sizeof line, "%s%s", p->text, p->term_count ? ":" : ".");
        printf("  ");
        term_print_wrapped(stdout, line, 2, term->width);
        if (p->term_count) {
            print_terms(m, p->terms, p->term_count);
            print_sum(&p->sum);
        }
    }
}

static void
print_checks(const struct term *term, const struct dry_message *m,
             const struct dry_message_judgement *j)
{
    static const char *const results[] = {"agree", "agree, within rounding",
                                          "CONTRADICT EACH OTHER"};
    if (j->check_count == 0)
        return;
    printf("do the numbers agree?\n");
    for (size_t i = 0; i < j->check_count; i++) {
        const struct dry_message_check *c = j->checks + i;
        char text[TERM_NUMBER_BYTES + 1];
        bool fails = c->result == DRY_MESSAGE_FAILS;
        printf("  %-40s %12s  %s%s%s\n", dry_message_equation_text(c->equation),
               format_sum(c->remainder.bytes, text),
               fails ? term_style(term, TERM_RED) : "", results[c->result],
               fails ? term_style(term, TERM_PLAIN) : "");
        if (fails)
            print_terms(m, c->terms, c->term_count);
    }
}

/* Print code at the left margin on lines of its own, so that users can copy the code. */
static void
print_code(const struct term *term, const struct dry_message_step *step)
{
    char code[CODE_BYTES];
    dry_message_step_write(step, code, sizeof code);
    printf("%s%s%s\n", term_style(term, TERM_GREEN), code, term_style(term, TERM_PLAIN));
}

static void
print_steps(const struct term *term, const struct dry_message_judgement *j)
{
    if (j->step_count > 0)
        printf("next\n");
    for (size_t i = 0; i < j->step_count; i++) {
        const struct dry_message_step *s = j->steps + i;
        char line[512];
        bool is_if = s->cause != DRY_CAUSE_NONE && s->cause != j->cause;
        snprintf(line, sizeof line, "%s%s%s%s", is_if ? "If it is " : "",
                 is_if ? dry_cause_name(s->cause) : "", is_if ? ": " : "", s->why);
        printf("  %zu. ", i + 1);
        term_print_wrapped(stdout, line, 5, term->width);
        if (s->code)
            print_code(term, s);
    }
}

/* Tell whether two judgements have the same steps, which are then printed once. */
static bool
has_same_steps(const struct dry_message_judgement *a,
               const struct dry_message_judgement *b)
{
    if (a->step_count != b->step_count)
        return false;
    for (size_t i = 0; i < a->step_count; i++) {
        if (a->steps[i].why != b->steps[i].why || a->steps[i].code != b->steps[i].code ||
            strcmp(a->steps[i].value, b->steps[i].value) != 0)
            return false;
    }
    return true;
}

static void
print_report(const struct report *r)
{
    struct term term;
    term_init(&term, stdout);
    struct dry_message_judgement last = DRY_INIT(struct dry_message_judgement);
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    for (size_t i = 0; i < r->entry_count; i++) {
        const struct entry *e = r->entries + i;
        last = j;
        dry_message_judge(&e->message, &j);
        if (i > 0)
            printf("\n");
        print_head(&term, r, e);
        print_numbers(&e->message, &j);
        print_verdict(&term, &j);
        print_proofs(&term, &e->message, &j);
        print_checks(&term, &e->message, &j);
        if (i > 0 && j.step_count > 0 && has_same_steps(&last, &j))
            printf("next     as for the message above\n");
        else
            print_steps(&term, &j);
    }
    if (r->left_out)
        printf("\n%zu more message%s not shown\n", r->left_out,
               r->left_out == 1 ? " is" : "s are");
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_size(const struct dry_message_size *s)
{
    if (s->known == DRY_MESSAGE_ABSENT)
        return json_null();
    if (s->known == DRY_MESSAGE_BEYOND)
        return json_string("beyond");
    return json_pack("{s:o, s:o, s:o}", "bytes", json_out_number(s->bytes), "low",
                     json_out_number(s->low), "high", json_out_number(s->high));
}

static json_t *
make_sum(const struct dry_message_sum *s)
{
    return json_pack("{s:I, s:I, s:I}", "bytes", (json_int_t)s->bytes, "low",
                     (json_int_t)s->low, "high", (json_int_t)s->high);
}

static json_t *
make_terms(const struct dry_message_term *terms, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        list = json_out_append(
            list, json_pack("{s:s, s:i, s:I, s:I, s:I}", "name",
                            dry_message_quantity_name(terms[i].quantity), "sign",
                            terms[i].sign, "bytes", (json_int_t)terms[i].value.bytes,
                            "low", (json_int_t)terms[i].value.low, "high",
                            (json_int_t)terms[i].value.high));
    return list;
}

static json_t *
make_processes(const struct dry_message *m, const struct dry_message_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->other_count; i++)
        list = json_out_append(list, json_pack("{s:o, s:o, s:b}", "pid",
                                               json_out_number(m->others[i].pid),
                                               "memory", make_size(&m->others[i].bytes),
                                               "is_this", (int32_t)i == j->this_process));
    return list;
}

static json_t *
make_hints(uint32_t hints)
{
    static const char *const names[] = {"expandable_segments", "max_split_size_mb",
                                        "expandable_segments_reserve", "empty_cache",
                                        "high_watermark_ratio"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (hints >> i & 1)
            list = json_out_append(list, json_string(names[i]));
    }
    return list;
}

static json_t *
make_labels(const struct entry *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->label_count; i++)
        list = json_out_append(list, json_out_string(e->labels[i].text));
    return list;
}

static json_t *
make_verdict(const struct dry_message_judgement *j)
{
    json_t *list = json_array();
    for (int cause = 0; cause < DRY_CAUSE_COUNT; cause++) {
        if (j->alternatives >> cause & 1)
            list =
                json_out_append(list, json_string(dry_cause_name((enum dry_cause)cause)));
    }
    return json_pack("{s:s, s:b, s:o}", "cause", dry_cause_name(j->cause), "is_certain",
                     j->is_certain, "alternatives", list);
}

static json_t *
make_proofs(const struct dry_message_judgement *j)
{
    json_t *list = json_array();
    for (size_t i = 0; i < j->proof_count; i++) {
        const struct dry_message_proof *p = j->proofs + i;
        list = json_out_append(
            list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "reason",
                            dry_message_reason_name(p->reason), "cause",
                            dry_cause_name(p->cause), "text", p->text, "terms",
                            make_terms(p->terms, p->term_count), "sum",
                            p->term_count ? make_sum(&p->sum) : json_null()));
    }
    return list;
}

static json_t *
make_checks(const struct dry_message_judgement *j)
{
    static const char *const results[] = {"holds", "open", "fails"};
    json_t *list = json_array();
    for (size_t i = 0; i < j->check_count; i++) {
        const struct dry_message_check *c = j->checks + i;
        list = json_out_append(list, json_pack("{s:s, s:s, s:o, s:o}", "equation",
                                               dry_message_equation_name(c->equation),
                                               "result", results[c->result], "terms",
                                               make_terms(c->terms, c->term_count),
                                               "remainder", make_sum(&c->remainder)));
    }
    return list;
}

/* Make the list of steps. Code keeps its line feeds, because users paste the code; all of
   the code is ours, so no escaping is needed. */
static json_t *
make_steps(const struct dry_message_judgement *j)
{
    static const char *const languages[] = {NULL, "shell", "python"};
    json_t *list = json_array();
    for (size_t i = 0; i < j->step_count; i++) {
        const struct dry_message_step *s = j->steps + i;
        char code[CODE_BYTES];
        dry_message_step_write(s, code, sizeof code);
        list = json_out_append(
            list,
            json_pack("{s:s, s:s, s:o, s:o}", "cause", dry_cause_name(s->cause), "why",
                      s->why, "code", s->code ? json_string(code) : json_null(),
                      "language", json_out_string(languages[s->language])));
    }
    return list;
}

static json_t *
make_derived(const struct dry_message_judgement *j)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "reserved", make_size(&j->reserved),
                     "unallocated", make_size(&j->unallocated), "process",
                     make_size(&j->process), "others", make_size(&j->others),
                     "non_pytorch", make_size(&j->non_pytorch));
}

static json_t *
make_figures(const struct dry_message *m)
{
    static const char *const units[] = {"bytes", "count", "millionths"};
    json_t *list = json_array();
    for (size_t i = 0; i < m->figure_count; i++) {
        const struct dry_message_figure *f = m->figures + i;
        list = json_out_append(
            list, json_pack("{s:s, s:s, s:b, s:o}", "name",
                            dry_message_quantity_name(f->quantity), "unit",
                            units[dry_message_quantity_unit(f->quantity)], "is_negative",
                            f->is_negative, "value", make_size(&f->size)));
    }
    return list;
}

static json_t *
make_message(const struct entry *e)
{
    const struct dry_message *m = &e->message;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    dry_message_judge(m, &j);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:b,"
        " s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
        " s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "count", json_out_number(e->count), "offset", json_out_number(m->offset), "line",
        json_out_number(m->line), "labels", make_labels(e), "form",
        dry_message_form_name(m->form), "backend", dry_message_backend_name(m->backend),
        "device", json_out_known(m->has_device, m->device), "releases",
        json_out_string(m->releases), "is_cut", m->is_cut, "tried", make_size(&m->tried),
        "total", make_size(&m->total), "free", make_size(&m->free), "process",
        make_size(&m->process), "allowed", make_size(&m->allowed), "allocated",
        make_size(&m->allocated), "private_pools", make_size(&m->private_pools),
        "unallocated", make_size(&m->unallocated), "reserved", make_size(&m->reserved),
        "non_pytorch", make_size(&m->non_pytorch), "expandable_reserve",
        make_size(&m->expandable_reserve), "processes", make_processes(m, &j),
        "processes_left_out", json_out_number(m->other_dropped), "hints",
        make_hints(m->hints), "kind", json_out_string(m->kind), "figures",
        make_figures(m), "derived", make_derived(&j), "verdict", make_verdict(&j),
        "proofs", make_proofs(&j), "checks", make_checks(&j), "steps", make_steps(&j));
}

static int
print_json(const struct report *r)
{
    json_t *messages = json_array();
    for (size_t i = 0; i < r->entry_count; i++)
        messages = json_out_append(messages, make_message(r->entries + i));
    json_t *root = NULL;
    if (messages)
        root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
                         "drystone.message/1", "file", json_out_string(r->path),
                         "bytes_read", json_out_number(r->bytes_read), "count",
                         json_out_number(r->count), "distinct",
                         json_out_number(r->entry_count), "left_out",
                         json_out_number(r->left_out), "messages", messages);
    return json_out_print(r->command, root);
}

/* --- is it a log? ------------------------------------------------------------------------- */

#define FIRST_CHECK_BYTES ((size_t)64 << 10)

struct beginning {
    const unsigned char *bytes;
    size_t length, at;
};

static enum dry_status
read_beginning(void *self, void *buffer, size_t capacity, size_t *got,
               struct dry_error *err)
{
    struct beginning *beginning = self;
    (void)err;
    *got = beginning->length - beginning->at < capacity
               ? beginning->length - beginning->at
               : capacity;
    memcpy(buffer, beginning->bytes + beginning->at, *got);
    beginning->at += *got;
    return DRY_OK;
}

/* Return whether the bytes are text: no control characters but those of terminals. */
static bool
is_text(const struct beginning *beginning)
{
    for (size_t i = 0; i < beginning->length; i++) {
        unsigned char c = beginning->bytes[i];
        if (c < ' ' && (c == '\0' || !strchr("\t\n\r\f\b\a\x1b", c)))
            return false;
    }
    return beginning->length > 0;
}

/* Return whether the text begins like JSON, not like "[rank0]: " or "[2026-11-28 ". */
static bool
is_json(const struct beginning *beginning)
{
    size_t i = 0;
    while (i < beginning->length && strchr(" \t\r\n", beginning->bytes[i]))
        i++;
    if (i == beginning->length || beginning->bytes[i] != '[')
        return i < beginning->length && beginning->bytes[i] == '{';
    for (i++; i < beginning->length && strchr(" \t\r\n", beginning->bytes[i]); i++)
        ;
    return i == beginning->length || strchr("{[]\"", beginning->bytes[i]);
}

/* Return whether the reader of traces finds no format in the text, or a dump in a log: the message
   of the log tells more. It knows by the first line, so the rest may be missing. */
static bool
is_no_trace(struct beginning *beginning)
{
    static const char unknown[] = "not a known trace";
    struct dry_trace *trace = NULL;
    struct dry_error err = {.offset = DRY_NO_OFFSET};
    struct dry_source source = {read_beginning, beginning};
    bool is_bracket = beginning->bytes[0] == '['; /* JSON to the reader */
    enum dry_status status = dry_trace_read(&source, NULL, &trace, &err);
    bool is_dump = trace && dry_trace_get_view(trace)->kind == DRY_TRACE_BFC;
    dry_trace_destroy(trace);
    return is_dump ||
           (status == DRY_ERR_FORMAT && (is_bracket || strstr(err.text, unknown)));
}

bool
message_report_is_log(const char *path)
{
    unsigned char *bytes = malloc(FIRST_CHECK_BYTES);
    struct stat stat_of;
    bool is_file = stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode);
    FILE *file = bytes && is_file ? fopen(path, "rbe") : NULL;
    struct beginning beginning = {.bytes = bytes};
    if (file) {
        beginning.length = fread(bytes, 1, FIRST_CHECK_BYTES, file);
        fclose(file);
    }
    bool is_log = is_text(&beginning) && !is_json(&beginning) && is_no_trace(&beginning);
    free(bytes);
    return is_log;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Return whether the file holds the map of an allocator, which other commands show. */
static bool
holds_dump(const char *path)
{
    struct dry_trace *trace = NULL;
    struct input_content content;
    struct dry_error err;
    bool is_read =
        load_trace_quietly(path, load_memory_bytes(), &trace, &content, &err) == DRY_OK;
    bool is_dump = is_read && dry_trace_get_view(trace)->kind == DRY_TRACE_BFC;
    dry_trace_destroy(trace);
    return is_dump;
}

static int
report_nothing(const struct report *r, const char *path)
{
    if (path && strcmp(path, "-") != 0 && holds_dump(path))
        return report_failure(r->command, path, EXIT_INPUT,
                              "a dump of the BFC allocator without an OOM message: "
                              "drystone top --free and drystone view show it");
    return report_failure(r->command, r->path, EXIT_INPUT,
                          "%sno OOM message in the %" PRIu64 " byte%s read",
                          path ? "not a known trace or snapshot, and " : "",
                          r->bytes_read, r->bytes_read == 1 ? "" : "s");
}

/* Tell whether a message is of a failure. Those of engines that start are not. */
static bool
has_failure(const struct report *r)
{
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    bool fails = r->left_out > 0;
    for (size_t i = 0; i < r->entry_count && !fails; i++) {
        dry_message_judge(&r->entries[i].message, &j);
        fails = j.cause != DRY_CAUSE_NONE;
    }
    return fails;
}

int
message_report_run(const char *command, const char *text, const char *path, bool json)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r)
        return report_memory(command, path);
    r->command = command;
    r->path = text ? NULL : path ? path : "-";
    int code = collect_all(r, text);
    if (code == EXIT_FINE && r->count == 0)
        code = report_nothing(r, text ? NULL : path);
    else if (code == EXIT_FINE && json)
        code = print_json(r);
    else if (code == EXIT_FINE)
        print_report(r);
    if (code == EXIT_FINE && has_failure(r))
        code = EXIT_FOUND;
    free(r);
    return code;
}
