/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `drystone anonymize`: write a snapshot without names, paths and texts, and prove it.
 *
 * The result is written to a temporary file next to OUT, read back and compared with
 * FILE. Only then it is renamed to OUT, so a file with that name has been verified.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <drystone/anonymize.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "record/load.h"

struct values {
    const char *out, *key;
    bool hash_all, drop_lines, keep_times, json;
};

static const struct option_spec specs[] = {
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, out),
     .help = "where the result goes, a pickle; it is there only once it is verified"},
    {"key", 0, "STR", OPTION_STRING, offsetof(struct values, key),
     .help = "the key of the hash, so that several files (the ranks of one job) get the "
             "same names; keep it to yourself; default: random, used once and forgotten"},
    {"hash-all", 0, NULL, OPTION_FLAG, offsetof(struct values, hash_all),
     .help = "replace the functions and files of PyTorch as well"},
    {"drop-lines", 0, NULL, OPTION_FLAG, offsetof(struct values, drop_lines),
     .help = "make all line numbers 0"},
    {"keep-times", 0, NULL, OPTION_FLAG, offsetof(struct values, keep_times),
     .help = "keep the times; default: they begin at 0"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.anonymize/1, see drystone-anonymize(1)"},
};

static const char about_text[] =
    "Replaces every name, path and text of FILE by digits of a keyed hash: equal ones "
    "stay equal, different ones different. Sizes, addresses, streams, order and lines "
    "stay, and so does what is public: names of PyTorch and its options. The result is "
    "read back and compared with FILE before it gets its name.";

#define KEY_BYTES 16

struct session {
    struct values values;
    const char *path;
    struct dry_trace *trace;
    struct dry_anonymize_options options;
    unsigned char random_key[KEY_BYTES];
    struct dry_anonymize_proof proof;
};

static int
report_errno(const char *path, const char *what)
{
    return report_failure("anonymize", path, EXIT_MACHINE, "%s: %s", what,
                          strerror(errno));
}

/* --- the output file ----------------------------------------------------------------------- */

/* Check that OUT is a regular file or missing, and is not FILE under another name. */
static int
check_output(const struct session *s)
{
    const char *out = s->values.out;
    struct stat to;
    if (strcmp(out, "-") == 0)
        return report_usage("anonymize", "-o -: the result is read back, so it needs a "
                                         "file");
    if (stat(out, &to) != 0)
        return errno == ENOENT ? EXIT_FINE : report_errno(out, "cannot write");
    if (!S_ISREG(to.st_mode))
        return report_usage("anonymize", "-o %s: %s, expected a file", out,
                            S_ISCHR(to.st_mode)   ? "a terminal or device"
                            : S_ISDIR(to.st_mode) ? "a folder"
                                                  : "no regular file");
    if (output_is_input(out, s->path))
        return report_usage("anonymize", "-o %s: that is the input", out);
    return EXIT_FINE;
}

/* --- the work ------------------------------------------------------------------------------- */

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    FILE *file = self;
    *got = fread(buffer, 1, capacity, file);
    if (*got > 0 || !ferror(file))
        return DRY_OK;
    return fail_at(err, DRY_ERR_SYSTEM, DRY_NO_OFFSET, "cannot read it back: %s",
                   strerror(errno));
}

static int
write_result(const struct session *s, struct output *out)
{
    struct dry_trace *anonymous = NULL;
    struct dry_sink sink = output_sink(out);
    struct dry_error err = {.offset = DRY_NO_OFFSET};
    enum dry_status status = dry_trace_anonymize(s->trace, &s->options, &anonymous, &err);
    if (status == DRY_OK)
        status = dry_trace_write(anonymous, &sink, &err);
    dry_trace_destroy(anonymous);
    if (status == DRY_ERR_SYSTEM)
        return report_failure("anonymize", s->values.out, EXIT_MACHINE, "%s", err.text);
    if (status != DRY_OK)
        return report_error("anonymize", s->path, &err);
    return fflush(out->file) == 0 ? EXIT_FINE
                                  : report_errno(s->values.out, "cannot write");
}

static int
verify_result(struct session *s, FILE *file)
{
    struct dry_source source = {.read = read_file, .self = file};
    struct dry_error err = {.offset = DRY_NO_OFFSET};
    rewind(file);
    s->proof = DRY_INIT(struct dry_anonymize_proof);
    enum dry_status status =
        dry_anonymize_verify(s->trace, &s->options, &source, &s->proof, &err);
    return status == DRY_OK ? EXIT_FINE : report_error("anonymize", s->values.out, &err);
}

static int
make_result(struct session *s)
{
    struct output out;
    int code = output_open(&out, "anonymize", s->values.out);
    if (code != EXIT_FINE)
        return code;
    code = write_result(s, &out);
    if (code == EXIT_FINE)
        code = verify_result(s, out.file);
    if (code == EXIT_FINE && s->proof.is_verified)
        return output_close(&out, DRY_OK, NULL);
    output_discard(&out);
    return code;
}

/* --- the report ------------------------------------------------------------------------------- */

struct line {
    const char *text, *key; /* names in the table, in JSON */
    struct dry_anonymize_count count;
};
#define LINE_COUNT 6

static void
list_counts(const struct dry_anonymize_proof *p, struct line lines[LINE_COUNT])
{
    lines[0] = (struct line){"functions", "functions", p->functions};
    lines[1] = (struct line){"files", "files", p->files};
    lines[2] = (struct line){"metadata, contexts, actions", "texts", p->texts};
    lines[3] = (struct line){"annotations", "annotations", p->annotations};
    lines[4] = (struct line){"words of the settings", "settings", p->settings};
    lines[5] = (struct line){"unknown keys and values", "values", p->values};
}

static bool
print_table(const struct dry_anonymize_proof *proof)
{
    struct term term;
    term_init(&term, stdout);
    struct line lines[LINE_COUNT];
    list_counts(proof, lines);
    struct table table;
    table_init(&table, "<strings >replaced >kept");
    for (size_t i = 0; i < LINE_COUNT; i++) {
        char number[TERM_NUMBER_BYTES];
        table_add(&table, lines[i].text);
        table_add(&table, term_format_count(lines[i].count.replaced, number));
        table_add(&table, term_format_count(lines[i].count.kept, number));
    }
    return table_print(&table, &term);
}

static void
print_rest(const struct session *s)
{
    const struct dry_anonymize_proof *proof = &s->proof;
    char number[TERM_NUMBER_BYTES];
    if (proof->dropped_values)
        printf("  left out: the unknown keys of %s dict%s, which would have grown too "
               "long\n",
               term_format_count(proof->dropped_values, number),
               proof->dropped_values == 1 ? "" : "s");
    printf("  lines %s, times %s; sizes, addresses, streams and order are kept\n\n",
           s->options.drop_lines ? "are 0" : "are kept",
           s->options.keep_times ? "are kept" : "begin at 0");
    if (!proof->is_verified) {
        printf("verified: no\n  ");
        term_print_text(stdout, proof->text, strlen(proof->text));
        printf("\n  the result was removed\n");
        return;
    }
    printf(
        "verified: yes\n"
        "  the result was read back: the same recording, strings and stacks equal where\n"
        "  they were; %s word%s of the original searched for, none found\n",
        term_format_count(proof->searched_words, number),
        proof->searched_words == 1 ? "" : "s");
}

static int
print_text(const struct session *s)
{
    term_print_text(stdout, s->path, strlen(s->path));
    fputs(" -> ", stdout);
    term_print_text(stdout, s->values.out, strlen(s->values.out));
    puts("\n");
    if (!print_table(&s->proof))
        return report_memory("anonymize", s->path);
    print_rest(s);
    return EXIT_FINE;
}

static json_t *
make_counts(const struct dry_anonymize_proof *proof)
{
    struct line lines[LINE_COUNT];
    list_counts(proof, lines);
    json_t *counts = json_object();
    for (size_t i = 0; i < LINE_COUNT && counts; i++)
        json_object_set_new(counts, lines[i].key,
                            json_pack("{s:o, s:o}", "replaced",
                                      json_out_number(lines[i].count.replaced), "kept",
                                      json_out_number(lines[i].count.kept)));
    return counts;
}

static int
print_json(const struct session *s)
{
    const struct dry_anonymize_proof *p = &s->proof;
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:b, s:o}", "schema",
                  "drystone.anonymize/1", "file", json_out_string(s->path), "output",
                  json_out_string(s->values.out), "strings", make_counts(p),
                  "dropped_values", json_out_number(p->dropped_values), "lines_kept",
                  !s->options.drop_lines, "times_kept", (int)s->options.keep_times,
                  "searched_words", json_out_number(p->searched_words), "public_words",
                  json_out_number(p->public_words), "verified", (int)p->is_verified,
                  "objection", json_out_filled(p->text));
    return json_out_print("anonymize", root);
}

/* --- the command ------------------------------------------------------------------------------ */

static int
set_options(struct session *s)
{
    const struct values *v = &s->values;
    dry_anonymize_options_init(&s->options);
    s->options.key = v->key;
    s->options.key_bytes = v->key ? strlen(v->key) : 0;
    s->options.hash_all = v->hash_all;
    s->options.drop_lines = v->drop_lines;
    s->options.keep_times = v->keep_times;
    if (v->key)
        return EXIT_FINE;
    if (getrandom(s->random_key, sizeof s->random_key, 0) != sizeof s->random_key)
        return report_errno(NULL, "no random key");
    s->options.key = s->random_key;
    s->options.key_bytes = sizeof s->random_key;
    return EXIT_FINE;
}

static int
check_usage(const struct session *s, const struct option_list *operands)
{
    int code = options_expect_one_file(&command_anonymize, operands);
    if (code != EXIT_FINE)
        return code;
    if (!s->values.out)
        return report_usage("anonymize", "where to? give -o OUT");
    if (s->values.key && !s->values.key[0])
        return report_usage("anonymize", "--key '': expected something nobody guesses");
    return EXIT_FINE;
}

static int
check_kind(const struct session *s)
{
    if (dry_trace_get_view(s->trace)->kind == DRY_TRACE_SNAPSHOT)
        return EXIT_FINE;
    return report_failure("anonymize", s->path, EXIT_INPUT,
                          "no snapshot, and only those can be written; of a text trace, "
                          "cut off the labels");
}

static int
anonymize_file(struct session *s)
{
    int code = check_output(s);
    if (code == EXIT_FINE)
        code = load_trace("anonymize", s->path, &s->trace, NULL);
    if (code == EXIT_FINE)
        code = check_kind(s);
    if (code == EXIT_FINE)
        code = set_options(s);
    if (code == EXIT_FINE)
        code = make_result(s);
    if (code == EXIT_FINE)
        code = s->values.json ? print_json(s) : print_text(s);
    return code == EXIT_FINE && !s->proof.is_verified ? EXIT_FOUND : code;
}

static int
run(int argc, char **argv)
{
    struct session s = {.path = NULL};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_anonymize, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = anonymize_file(&s);
        }
    }
    dry_trace_destroy(s.trace);
    explicit_bzero(s.random_key, sizeof s.random_key);
    options_finish(&command_anonymize, &s.values, &operands);
    return code;
}

const struct command command_anonymize = {
    .name = "anonymize",
    .summary = "a snapshot to share: without names, paths and texts, verified",
    .usage = "[options] FILE -o OUT",
    .about = about_text,
    .examples = "drystone anonymize run.pickle -o shared.pickle\n"
                "drystone anonymize rank0.pickle -o s0.pickle --key \"$SECRET\"\n"
                "drystone anonymize run.pickle.gz -o s.pickle --hash-all --drop-lines\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
