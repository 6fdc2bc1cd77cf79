/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_report.h. The text is here, the JSON in doctor_json.c. */
#include "machine/doctor_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "base/term.h"
#include "machine/pages_report.h"

#define TEXT_COLUMN 13
#define COMMAND_COLUMN 3
#define WIDTH 80
#define ADVICE_BYTES_MAX 1024

struct printer {
    struct term term;
    const struct doctor_report *r;
};

static const char *const verdict_names[DRY_DOCTOR_VERDICT_COUNT] = {
    "good", "not known", "could be better", "wrong"};
static const enum term_style verdict_styles[DRY_DOCTOR_VERDICT_COUNT] = {
    TERM_GREEN, TERM_DIM, TERM_YELLOW, TERM_RED};

bool
doctor_report_has(const struct doctor_report *r, const char *id)
{
    for (size_t i = 0; i < r->id_count; i++)
        if (strcmp(r->ids[i], id) == 0)
            return true;
    return r->id_count == 0;
}

size_t
doctor_report_count(const struct doctor_report *r, enum dry_doctor_verdict verdict)
{
    size_t count = 0;
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    for (size_t i = 0; i < dry_doctor_get_finding_count(r->doctor); i++) {
        dry_doctor_get_finding(r->doctor, i, &f);
        count += f.verdict == verdict && doctor_report_has(r, f.id);
    }
    return count;
}

const char *
doctor_report_fix(const struct dry_doctor_finding *f)
{
    bool is_of_nodes =
        strcmp(f->id, "numa-no-cpus") == 0 || strcmp(f->id, "gpu-node") == 0;
    if (is_of_nodes && f->verdict == DRY_DOCTOR_COULD_BE_BETTER)
        return "# start programs by: drystone run --node N -- PROGRAM";
    return f->fix;
}

/* --- one finding -------------------------------------------------------------------------- */

/* Print a labelled text, made printable: it may quote files and variables. False: memory
   ran out. */
static bool
print_text(const struct printer *p, const char *label, const char *text)
{
    size_t length = strlen(text);
    if (length == 0)
        return true;
    char *printable = malloc(length + 1);
    if (!printable)
        return false;
    term_make_printable(printable, length + 1, text, length);
    fprintf(p->term.out, "  %-*s", TEXT_COLUMN - 2, label);
    term_print_wrapped(p->term.out, printable, TEXT_COLUMN, WIDTH);
    free(printable);
    return true;
}

/* Return how many bytes of a command fit into `columns_max`: up to a blank, else up to a comma
   or colon. */
static size_t
find_cut(const char *line, size_t columns_max)
{
    for (size_t cut = columns_max; cut > 0; cut--)
        if (line[cut] == ' ')
            return cut;
    for (size_t cut = columns_max; cut > 0; cut--)
        if (line[cut - 1] == ',' || line[cut - 1] == ':')
            return cut;
    return 0;
}

/* Print a command. Long commands continue on the next line after a backslash, so they can
   be pasted. */
static void
print_command(FILE *out, const char *line, size_t length)
{
    size_t column = COMMAND_COLUMN;
    while (column + length > WIDTH) {
        size_t cut = find_cut(line, WIDTH - 2 - column);
        if (cut == 0)
            break;
        bool is_word = line[cut] != ' ';
        fprintf(out, "%*s", (int)column, "");
        term_print_text(out, line, cut);
        fputs(is_word ? "\\\n" : " \\\n", out);
        column = is_word ? 0 : COMMAND_COLUMN + 2;
        line += cut + !is_word;
        length -= cut + !is_word;
    }
    fprintf(out, "%*s", (int)column, "");
    term_print_text(out, line, length);
    fputc('\n', out);
}

/* Print a line of a file unbroken, with less indentation if the line is long. */
static void
print_file_line(FILE *out, const char *line, size_t length)
{
    size_t columns_max = length < WIDTH ? WIDTH - length : 0;
    fprintf(out, "%*s",
            (int)(columns_max < COMMAND_COLUMN ? columns_max : COMMAND_COLUMN), "");
    term_print_text(out, line, length);
    fputc('\n', out);
}

/* Print advice that is not a command, wrapped between words. */
static void
print_advice(FILE *out, const char *line, size_t length)
{
    char text[ADVICE_BYTES_MAX];
    term_make_printable(text, sizeof text, line, length);
    fprintf(out, "%*s# ", COMMAND_COLUMN, "");
    term_print_wrapped(out, text, COMMAND_COLUMN + 2, WIDTH);
}

static void
print_lines(const struct printer *p, const char *label, const char *lines, bool is_shell)
{
    if (!*lines)
        return;
    fprintf(p->term.out, "  %s:\n", label);
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        if (strncmp(lines, "# ", 2) == 0)
            print_advice(p->term.out, lines + 2, length - 2);
        else if (is_shell)
            print_command(p->term.out, lines, length);
        else
            print_file_line(p->term.out, lines, length);
        lines += length + (lines[length] == '\n');
    }
}

static bool
print_finding(const struct printer *p, const struct dry_doctor_finding *f)
{
    FILE *out = p->term.out;
    fprintf(out, "%s%s%s: %s%s%s (%s)\n",
            term_style(&p->term, verdict_styles[f->verdict]), verdict_names[f->verdict],
            term_style(&p->term, TERM_PLAIN), term_style(&p->term, TERM_BOLD), f->title,
            term_style(&p->term, TERM_PLAIN), f->id);
    if (!print_text(p, "is", f->is))
        return false;
    if (f->verdict < DRY_DOCTOR_COULD_BE_BETTER)
        return true;
    if (!print_text(p, "should be", f->should_be) || !print_text(p, "why", f->why))
        return false;
    print_lines(p,
                f->needs_reboot ? "mended, as root and with a reboot, by"
                : f->needs_root ? "mended, as root, by"
                                : "mended by",
                doctor_report_fix(f), true);
    print_lines(p, "undone by", f->undo, true);
    print_lines(p, "lasts by", f->persist, false);
    return true;
}

/* --- topics, worst first ------------------------------------------------------------------ */

static bool
is_shown(const struct printer *p, const struct dry_doctor_finding *f)
{
    return doctor_report_has(p->r, f->id) &&
           (p->r->shows_good || p->r->id_count || f->verdict != DRY_DOCTOR_GOOD);
}

/* Return a topic's worst verdict; -1: none of its findings is shown. */
static int
find_worst(const struct printer *p, enum dry_doctor_topic topic)
{
    int worst = -1;
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    for (size_t i = 0; i < dry_doctor_get_finding_count(p->r->doctor); i++) {
        dry_doctor_get_finding(p->r->doctor, i, &f);
        if (f.topic == topic && is_shown(p, &f) && (int)f.verdict > worst)
            worst = (int)f.verdict;
    }
    return worst;
}

static bool
print_topic(const struct printer *p, enum dry_doctor_topic topic, int worst)
{
    struct dry_doctor_finding f = DRY_INIT(struct dry_doctor_finding);
    fprintf(p->term.out, "\n%s--- %s ---%s\n", term_style(&p->term, TERM_BOLD),
            dry_doctor_topic_name(topic), term_style(&p->term, TERM_PLAIN));
    for (int verdict = worst; verdict >= 0; verdict--) {
        for (size_t i = 0; i < dry_doctor_get_finding_count(p->r->doctor); i++) {
            dry_doctor_get_finding(p->r->doctor, i, &f);
            if (f.topic == topic && (int)f.verdict == verdict && is_shown(p, &f) &&
                !print_finding(p, &f))
                return false;
        }
    }
    return true;
}

static bool
print_topics(const struct printer *p)
{
    for (int verdict = DRY_DOCTOR_WRONG; verdict >= 0; verdict--)
        for (unsigned t = 0; t < DRY_DOCTOR_TOPIC_COUNT; t++)
            if (find_worst(p, (enum dry_doctor_topic)t) == verdict &&
                !print_topic(p, (enum dry_doctor_topic)t, verdict))
                return false;
    return true;
}

/* --- head and needs ----------------------------------------------------------------------- */

/* Print the machine or root, the purpose, and the hardware as far as known. */
static void
print_machine(const struct printer *p)
{
    struct dry_doctor_machine m = DRY_INIT(struct dry_doctor_machine);
    char kernel[32] = "", memory[TERM_NUMBER_BYTES + 2] = "", nodes[32] = "";
    char number[TERM_NUMBER_BYTES], text[160];
    dry_doctor_get_machine(p->r->doctor, &m);
    if (m.kernel_major)
        snprintf(kernel, sizeof kernel, ", Linux %u.%u", m.kernel_major, m.kernel_minor);
    if (m.memory_bytes)
        snprintf(memory, sizeof memory, ", %s",
                 term_format_bytes(m.memory_bytes, number));
    if (m.node_count)
        snprintf(nodes, sizeof nodes, ", %zu node%s", m.node_count,
                 m.node_count == 1 ? "" : "s");
    snprintf(text, sizeof text, "for %s%s%s%s%s", dry_doctor_purpose_name(p->r->purpose),
             kernel, memory, nodes, m.has_nvidia_driver ? ", an NVIDIA driver" : "");
    if (*p->r->root)
        term_print_subject(&p->term, p->r->root, TERM_BOLD, "%s", text);
    else
        fprintf(p->term.out, "%s\n", text);
}

static void
print_head(const struct printer *p)
{
    FILE *out = p->term.out;
    print_machine(p);
    if (p->r->process)
        fprintf(out, "process %lld: its limits, its malloc, its variables\n",
                (long long)p->r->process);
    size_t good = doctor_report_count(p->r, DRY_DOCTOR_GOOD);
    fprintf(out, "%zu wrong, %zu could be better, %zu not known, %zu good%s\n",
            doctor_report_count(p->r, DRY_DOCTOR_WRONG),
            doctor_report_count(p->r, DRY_DOCTOR_COULD_BE_BETTER),
            doctor_report_count(p->r, DRY_DOCTOR_NOT_KNOWN), good,
            good && !p->r->shows_good && !p->r->id_count ? " (--all shows them)" : "");
}

static void
add_row(struct table *t, const struct dry_doctor_row *row)
{
    char text[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%d", (int)row->node);
    table_add(t, row->node == DRY_DOCTOR_ANY_NODE ? "any" : text);
    table_add(t, term_format_bytes(row->page_bytes, text));
    table_add(t, term_format_count(row->needed_count, text));
    table_add(t, term_format_count(row->total_count, text));
    table_add(t, term_format_count(row->free_count, text));
    table_add(t, term_format_count(row->missing_count, text));
    table_add(t, row->budget_bytes == UINT64_MAX
                     ? "not known"
                     : term_format_bytes(row->budget_bytes, text));
    table_add(t, row->missing_count == 0 ? "-" : row->fits ? "yes" : "no");
}

static bool
print_needs(const struct printer *p)
{
    char text[TERM_NUMBER_BYTES];
    struct table t;
    uint64_t sum = 0;
    size_t count = dry_doctor_get_row_count(p->r->doctor);
    for (size_t i = 0; i < p->r->need_count; i++)
        sum += p->r->needs_bytes[i];
    if (p->r->need_count == 0)
        return true;
    fputc('\n', p->term.out);
    fprintf(p->term.out, "needed: %s in %zu region%s\n", term_format_bytes(sum, text),
            p->r->need_count, p->r->need_count == 1 ? "" : "s");
    table_init(&t, "<node >pages_of >needed >there >free >missing >room >fits");
    for (size_t i = 0; i < count; i++) {
        struct dry_doctor_row row = DRY_INIT(struct dry_doctor_row);
        dry_doctor_get_row(p->r->doctor, i, &row);
        add_row(&t, &row);
    }
    bool ok = count == 0 || table_print(&t, &p->term);
    table_finish(&t);
    return ok;
}

bool
doctor_report_print(const struct doctor_report *r)
{
    struct printer p = {.r = r};
    term_init(&p.term, stdout);
    print_head(&p);
    return (r->id_count || pages_report_list(r->topology, r->root, &p.term)) &&
           print_needs(&p) && print_topics(&p);
}
