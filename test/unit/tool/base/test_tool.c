/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's frame: options, sizes, suggestions, printable text, tables. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/table.h"
#include "base/term.h"

struct values {
    bool json;
    const char *conf;
    struct option_list places;
    uint64_t capacity;
    int64_t device;
};

static const struct option_spec specs[] = {
    {"json", 'j', NULL, OPTION_FLAG, offsetof(struct values, json), .help = "print JSON"},
    {"conf", 'c', "STR", OPTION_STRING, offsetof(struct values, conf),
     .help = "the settings"},
    {"place", 'p', "NAME", OPTION_LIST, offsetof(struct values, places), .help = "where"},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
     .help = "how much"},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help =
         "a help text so long that it does not fit the line that it begins on, by far"},
};

static const struct command command = {
    .name = "try",
    .summary = "a command to try things with",
    .usage = "[options] FILE",
    .examples = "drystone try x\ndrystone try y\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
};

#define PARSE(values, operands, code, ...)                                               \
    parse((values), (operands), (code), (const char *[]){"try", __VA_ARGS__, NULL})

static bool
parse(struct values *values, struct option_list *operands, int *code, const char **words)
{
    int argc = 0;
    char *argv[32];
    for (; words[argc]; argc++)
        argv[argc] = strdup(words[argc]);
    *values = (struct values){0};
    bool ok = options_parse(&command, argc, argv, values, operands, code);
    /* What was found points into argv: name the words by their constant twins. */
    for (int i = 0; i < argc; i++) {
        for (size_t k = 0; k < operands->count; k++) {
            if (operands->values[k] == argv[i])
                operands->values[k] = words[i];
        }
        for (size_t k = 0; k < values->places.count; k++) {
            if (values->places.values[k] == argv[i])
                values->places.values[k] = words[i];
        }
        if (values->conf == argv[i])
            values->conf = words[i];
        free(argv[i]);
    }
    return ok;
}

static void
options_and_operands_mix(void **state)
{
    (void)state;
    struct values v;
    struct option_list files;
    int code = -1;
    assert_true(PARSE(&v, &files, &code, "one", "--json", "-c", "a:b",
                      "--capacity=1.5GiB", "two", "-p", "torch", "--place", "paged", "-d",
                      "-3", "--", "--json"));
    assert_true(v.json);
    assert_string_equal(v.conf, "a:b");
    assert_true(v.capacity == UINT64_C(3) << 29);
    assert_true(v.device == -3);
    assert_int_equal(v.places.count, 2);
    assert_string_equal(v.places.values[1], "paged");
    assert_int_equal(files.count, 3);
    assert_string_equal(files.values[2], "--json");
    options_finish(&command, &v, &files);
    assert_true(PARSE(&v, &files, &code, "-"));
    assert_int_equal(files.count, 1);
    options_finish(&command, &v, &files);
}

static void
wrong_command_lines_end_with_2(void **state)
{
    (void)state;
    struct values v;
    struct option_list files;
    int code = -1;
    static const char *const wrong[] = {
        "--jsn", "--json=1",      "--capacity", "--capacity=soon", "--device=1x", "-x",
        "-jx",   "--capacity=1z", "-d"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        code = -1;
        assert_false(PARSE(&v, &files, &code, wrong[i]));
        assert_int_equal(code, EXIT_USAGE);
        options_finish(&command, &v, &files);
    }
}

/* --- bounds and ties ---------------------------------------------------------------------- */

struct bound_values {
    int64_t free, least, any, few, stage;
    uint64_t many, size, span;
    bool judge, map, quick;
};

#define AT(member) offsetof(struct bound_values, member)

static const struct option_spec bound_specs[] = {
    {"free", 0, "N", OPTION_INT, AT(free), .help = "no bounds"},
    {"least", 'l', "N", OPTION_INT, AT(least), .help = "1 or more", .min = 1},
    {"any", 0, "N", OPTION_INT, AT(any), .help = "0 or more", .max = NO_MAX},
    {"few", 0, "N", OPTION_INT, AT(few), .help = "-1 to 3", .min = -1, .max = 3},
    {"many", 0, "N", OPTION_INT, AT(many), .help = "devices", .min = 1},
    {"size", 0, "SIZE", OPTION_SIZE, AT(size), .help = "1 or more", .min = 1},
    {"span", 0, "SIZE", OPTION_SIZE, AT(span), .help = "4KiB to 1GiB", .min = 4096,
     .max = 1 << 30},
    {"stage", 0, "N", OPTION_INT, AT(stage), .help = "of many", .max = NO_MAX,
     .needs = {"many quick", "of --many, or of --quick"}},
    {"map", 'm', NULL, OPTION_FLAG, AT(map), .help = "a map",
     .refuses = {{"judge any", "of no judge"}, {"quick", "slow"}}, .unless = "few"},
    {"quick", 'q', NULL, OPTION_FLAG, AT(quick), .help = "quick"},
    {"judge", 0, NULL, OPTION_FLAG, AT(judge), .help = "a judge"},
};

static const struct command bound_command = {
    .name = "bound",
    .summary = "numbers with bounds",
    .usage = "[options]",
    .options = bound_specs,
    .option_count = sizeof bound_specs / sizeof *bound_specs,
};

#define BOUND_MESSAGE_BYTES 256

/* Parse a line of words that stand apart by a space, with stderr in `message`. */
static bool
parse_bound(const char *line, struct bound_values *values,
            char message[BOUND_MESSAGE_BYTES])
{
    char copy[256] = "bound ", *argv[16] = {NULL}, *rest;
    int argc = 0, code = -1;
    strcat(copy, line);
    while (argc < 15 && (argv[argc] = strtok_r(argc ? NULL : copy, " ", &rest)))
        argc++;
    FILE *caught = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(caught);
    assert_true(kept >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0);
    struct option_list operands;
    bool ok = options_parse(&bound_command, argc, argv, values, &operands, &code);
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(caught);
    message[fread(message, 1, BOUND_MESSAGE_BYTES - 1, caught)] = '\0';
    assert_int_equal(fclose(caught), 0);
    assert_int_equal(code, ok ? -1 : EXIT_USAGE);
    options_finish(&bound_command, values, &operands);
    return ok;
}

static void
expect_bound(const char *line, const char *expected)
{
    struct bound_values values = {0};
    char message[BOUND_MESSAGE_BYTES], whole[BOUND_MESSAGE_BYTES] = "";
    bool ok = parse_bound(line, &values, message);
    assert_int_equal(ok, !expected);
    if (expected)
        snprintf(whole, sizeof whole, "drystone: bound: %s\ntry: drystone bound --help\n",
                 expected);
    assert_string_equal(message, whole);
}

static void
numbers_keep_to_their_bounds(void **state)
{
    (void)state;
    static const char *const good[] = {
        "--free -9223372036854775808 --free=9223372036854775807",
        "--least 1 -l9223372036854775807",
        "--any 0 --any=9223372036854775807",
        "--few=-1 --few 3",
        "--size 1B --size=18446744073709551615 --size 1048576",
        "--span 4KiB --span=1GiB",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_bound(good[i], NULL);
    expect_bound("--least 0", "--least 0: expected 1 or more");
    expect_bound("--least=-7", "--least -7: expected 1 or more");
    expect_bound("-l0", "--least 0: expected 1 or more");
    expect_bound("--any -1", "--any -1: expected 0 or more");
    expect_bound("--few -2", "--few -2: expected -1 to 3");
    expect_bound("--few=4", "--few 4: expected -1 to 3");
    expect_bound("--size 0", "--size 0: expected 1 or more");
    expect_bound("--span 4095B", "--span 4095B: expected 4KiB to 1GiB");
    expect_bound("--span 40", "--span: '40' has no unit, as in 512MiB, 40GiB or 4096B");
    expect_bound("--size 1048575",
                 "--size: '1048575' has no unit, as in 512MiB, 40GiB or 4096B");
    expect_bound("--span=1.5g", "--span 1.5g: expected 4KiB to 1GiB");
    expect_bound("--span 16383PiB", "--span 16383PiB: expected 4KiB to 1GiB");
    expect_bound("--few 9 --least 0 --stage 1", "--few 9: expected -1 to 3");
    expect_bound("--least x --few 9", "--least: 'x' is not a whole number");
}

/* A default may lie outside: it stands for what was not given. */
static void
defaults_are_not_held_against_bounds(void **state)
{
    (void)state;
    struct bound_values v = {.least = NO_NUMBER, .few = 99, .size = 0, .span = NOT_GIVEN};
    char message[BOUND_MESSAGE_BYTES];
    assert_true(parse_bound("--many 7", &v, message));
    assert_true(v.least == NO_NUMBER && v.few == 99 && v.size == 0);
    assert_true(v.span == NOT_GIVEN && v.many == 7);
    assert_false(parse_bound("--few 4 --span 0", &v, message));
    assert_true(v.few == 99 && v.span == NOT_GIVEN); /* nor is a wrong one stored */
}

static void
options_are_tied_to_others(void **state)
{
    (void)state;
    static const char *const good[] = {"--stage 0 --many 2", "--many=2 --stage=0",
                                       "--stage 1 -q",       "--map",
                                       "--map --any 0",      "--quick --judge",
                                       "-mq --few 0",        "--judge --map --few -1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_bound(good[i], NULL);
    expect_bound("--stage 0", "--stage is of --many, or of --quick");
    expect_bound("--stage=0 --judge", "--stage is of --many, or of --quick");
    expect_bound("--stage 0 --many 1", "--stage is of --many, or of --quick");
    expect_bound("--map --judge", "--map is of no judge");
    expect_bound("--judge -m", "--map is of no judge");
    expect_bound("--any=1 --map", "--map is of no judge");
    expect_bound("-qm", "--map is slow");
    expect_bound("-qm --judge", "--map is of no judge");
    expect_bound("--map --quick --least 3", "--map is slow");
    expect_bound("--judge --map --stage 1", "--stage is of --many, or of --quick");
}

/* "judge any" names two options. */
static void
check_names(const struct command *c, const char *names)
{
    for (const char *at = names; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), found = 0;
        for (size_t i = 0; i < c->option_count; i++)
            found += strlen(c->options[i].name) == length &&
                     memcmp(c->options[i].name, at, length) == 0;
        assert_int_equal(found, 1);
        at += length;
    }
}

static void
tables_of_the_commands_are_sound(void **state)
{
    (void)state;
    static const struct command *const all[] = {
        &command_anonymize, &command_demo,   &command_diff,   &command_estimate,
        &command_explain,   &command_export, &command_info,   &command_pages,
        &command_plan,      &command_sweep,  &command_replay, &command_run,
        &command_steps,     &command_top};
    for (size_t i = 0; i < sizeof all / sizeof(const struct command *); i++) {
        assert_true(all[i]->option_count <= OPTIONS_MAX);
        for (size_t k = 0; k < all[i]->option_count; k++) {
            const struct option_spec *s = &all[i]->options[k];
            assert_non_null(s->name); /* a count beyond the rows */
            bool has_number = s->kind == OPTION_INT || s->kind == OPTION_SIZE;
            assert_true(has_number || (s->min == 0 && s->max == 0));
            assert_true(s->max == 0 || s->min < s->max);
            assert_true(s->kind != OPTION_SIZE || s->min >= 0);
            assert_true(!s->needs.others == !s->needs.why);
            check_names(all[i], s->needs.others);
            check_names(all[i], s->unless);
            for (size_t r = 0; r < OPTION_REFUSALS_MAX; r++) {
                assert_true(!s->refuses[r].others == !s->refuses[r].why);
                check_names(all[i], s->refuses[r].others);
            }
        }
    }
}

static void
sizes_are_binary_and_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"4096B", 4096},
        {"1048576", 1048576},
        {"512MiB", UINT64_C(512) << 20},
        {"40GiB", UINT64_C(40) << 30},
        {"1g", UINT64_C(1) << 30},
        {"1 GiB", UINT64_C(1) << 30},
        {"2K", 2048},
        {"100b", 100},
        {"0.5k", 512},
        {"1.25TiB", UINT64_C(5) << 38},
        {"18446744073709551615", UINT64_MAX},
        {"16383PiB", UINT64_C(16383) << 50},
        {"1EiB", UINT64_C(1) << 60},
        {"15.5e", UINT64_C(31) << 59},
        {"0.1k", 102},
        {"1.0000009MiB", UINT64_C(1) << 20},
        {"80GB", UINT64_C(80000000000)},
        {"1kb", 1000},
        {"1.5 GB", UINT64_C(1500000000)},
        {"18EB", UINT64_C(18000000000000000000)},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 1;
        assert_true(options_parse_size(good[i].text, &bytes));
        assert_true(bytes == good[i].bytes);
    }
    static const char *const bad[] = {"",
                                      "x",
                                      "-1",
                                      "1.5",
                                      "40",
                                      "1048575",
                                      "GiB",
                                      "1GiBs",
                                      "1 2k",
                                      "1bib",
                                      "1.5b",
                                      "40GBs",
                                      "19EB",
                                      "16384PiB",
                                      "16EiB",
                                      "99999999999999999999GiB",
                                      "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes;
        assert_false(options_parse_size(bad[i], &bytes));
    }
}

static void
near_words_are_suggested(void **state)
{
    (void)state;
    struct suggestion s = {.word = "relpay"};
    suggestion_consider(&s, "info");
    assert_null(s.best);
    suggestion_consider(&s, "replay");
    assert_string_equal(s.best, "replay");
    struct suggestion short_one = {.word = "rep"};
    suggestion_consider(&short_one, "replay");
    assert_string_equal(short_one.best, "replay");
    struct suggestion far = {.word = "frobnicate"};
    suggestion_consider(&far, "replay");
    assert_null(far.best);
}

static char *
print_to_string(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    print(out);
    fclose(out);
    return text;
}

static void
print_help(FILE *out)
{
    options_print_help(&command, out);
}

static void
help_fits_80_columns(void **state)
{
    (void)state;
    char *text = print_to_string(print_help);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    assert_non_null(strstr(text, "  -c, --conf STR          the settings\n"));
    assert_non_null(strstr(text, "examples:\n  drystone try x\n"));
    free(text);
}

static void
check_printable(const char *bytes, size_t length, const char *expected)
{
    char text[64];
    size_t used = term_make_printable(text, sizeof text, bytes, length);
    assert_string_equal(text, expected);
    assert_int_equal(used, strlen(expected));
}

static void
hostile_text_is_made_printable(void **state)
{
    (void)state;
    check_printable("plain", 5, "plain");
    check_printable("a\x1b[31m\n\r\0b", 10, "a?[31m???b");
    check_printable("größe €𝄞", strlen("größe €𝄞"), "größe €𝄞");
    check_printable("\xc0\xaf\xed\xa0\x80\xff\xc3", 7,
                    "?????");                  /* not UTF-8; a surrogate is one */
    check_printable("\xc2\x85", 2, "??");      /* a C1 control */
    check_printable("\xe2\x80\xae", 3, "???"); /* turns the line */
    check_printable("\xd8\x9c\xe2\x80\x8b", 5, "?????"); /* U+061C, U+200B */
    check_printable("\xc2\xad\xef\xbb\xbf", 5, "?????"); /* U+00AD, U+FEFF */
    check_printable("\xf3\xa0\x81\x81", 4, "????");      /* U+E0041, a tag */
    check_printable("\xe2\x80\x90\xef\xb7\xbf", 6, "\xe2\x80\x90\xef\xb7\xbf");
    char cut[4];
    assert_int_equal(term_make_printable(cut, sizeof cut, "ab€", 5), 2);
    assert_string_equal(cut, "ab");
}

static void
numbers_read_well(void **state)
{
    (void)state;
    char t[TERM_NUMBER_BYTES];
    assert_string_equal(term_format_bytes(0, t), "0 B");
    assert_string_equal(term_format_bytes(1023, t), "1023 B");
    assert_string_equal(term_format_bytes(1024, t), "1.00 KiB");
    assert_string_equal(term_format_bytes((UINT64_C(1) << 30) - 1, t), "1.00 GiB");
    assert_string_equal(term_format_bytes(UINT64_C(14184129495), t), "13.21 GiB");
    assert_string_equal(term_format_bytes(UINT64_MAX, t), "16.00 EiB");
    assert_string_equal(term_format_count(1234567, t), "1 234 567");
    assert_string_equal(term_format_count(UINT64_MAX, t), "18 446 744 073 709 551 615");
    assert_string_equal(term_format_count(12, t), "12");
    assert_string_equal(term_format_time(999, t), "999 us");
    assert_string_equal(term_format_time(12345, t), "12 ms");
    assert_string_equal(term_format_time(12500000, t), "12.5 s");
    assert_string_equal(term_format_time(UINT64_C(3725000000), t), "62 min 5 s");
    assert_string_equal(term_format_time(UINT64_C(10920000000), t), "3 h 2 min");
}

static void
print_subject(FILE *out, bool is_terminal, const char *file)
{
    struct term term = {.out = out, .is_terminal = is_terminal, .width = 80};
    term_print_subject(&term, file, TERM_BOLD,
                       "device %d, peak of active memory at event 7", 0);
}

/* Where both are longer than a line, each has one, in a pipe too. */
static void
long_file_names_take_a_line(void **state)
{
    (void)state;
    static const char name[] = "/a/folder/and/another/and/one/run\x1b.pickle";
    FILE *out = tmpfile();
    assert_non_null(out);
    print_subject(out, true, "run.pickle");
    print_subject(out, true, name);
    print_subject(out, false, name);
    rewind(out);
    char text[256] = "";
    size_t length = fread(text, 1, sizeof text - 1, out);
    assert_int_equal(fclose(out), 0);
    text[length] = '\0';
    assert_string_equal(text, "run.pickle: device 0, peak of active memory at event 7\n"
                              "/a/folder/and/another/and/one/run?.pickle:\n"
                              "  device 0, peak of active memory at event 7\n"
                              "/a/folder/and/another/and/one/run?.pickle:\n"
                              "  device 0, peak of active memory at event 7\n");
}

static void
numbers_keep_their_units(void **state)
{
    (void)state;
    FILE *out = tmpfile();
    assert_non_null(out);
    term_print_wrapped(out, "in use are 12.50 GiB, of 80 % 5 GiB", 0, 16);
    term_print_wrapped(out, "counted up to 12 sums", 0, 18);
    term_print_wrapped(out, "the device has 1", 0, 14);
    rewind(out);
    char text[256] = "";
    size_t length = fread(text, 1, sizeof text - 1, out);
    assert_int_equal(fclose(out), 0);
    text[length] = '\0';
    assert_string_equal(text, "in use are\n12.50 GiB, of\n80 % 5 GiB\n"
                              "counted up to 12\nsums\n"
                              "the device has\n1\n");
}

/* What is no terminal is taken for 80 columns; here for 30. */
static void
print_to_a_pipe(FILE *out)
{
    struct term term = {.out = out, .width = 30};
    term_print_subject(&term, "run.pickle", TERM_PLAIN, "device %d, 5 events", 0);
    term_print_subject(&term, "run12.pickle", TERM_PLAIN, "device %d, 5 events", 0);
    term_print_subject(&term, "/a/folder/and/another/one/run.pickle", TERM_BOLD,
                       "device 0");
    struct table t;
    table_init(&t, ">bytes <line");
    t.is_bounded = true;
    table_add(&t, "1");
    table_add(&t, "net.py:7 forward");
    table_add(&t, "1234");
    table_add(&t, "net.py:17 attention (aten::softmax)");
    table_add(&t, "12");
    table_add(&t, "net.py:7 at::native::a_long_n\xc3\xa4me::call (aten::mm)");
    assert_true(table_print(&t, &term));
    table_init(&t, "<pool >bytes");
    t.is_bounded = true;
    table_add(&t, "pool (0, 3) stream 0x55d0c0ffee00 large");
    table_add(&t, "12");
    assert_true(table_print(&t, &term));
}

static void
lines_in_a_pipe_end_where_they_are_told_to(void **state)
{
    (void)state;
    char *text = print_to_string(print_to_a_pipe);
    assert_string_equal(text, "run.pickle: device 0, 5 events\n"
                              "run12.pickle:\n"
                              "  device 0, 5 events\n"
                              "…r/and/another/one/run.pickle:\n"
                              "  device 0\n"
                              "  bytes  line\n"
                              "      1  net.py:7 forward\n"
                              "   1234  net.py:17 attention\n"
                              "         (aten::softmax)\n"
                              "     12  net.py:7\n"
                              "         …e::a_long_n\xc3\xa4me::call\n"
                              "         (aten::mm)\n"
                              "  pool                   bytes\n"
                              "  pool (…c0ffee00 large     12\n");
    free(text);
}

static void
print_tables(FILE *out)
{
    struct term term = {.out = out, .has_width = true, .width = 30};
    struct table t;
    table_init(&t, "<name >the_bytes");
    table_add(&t, "a");
    table_add(&t, "1");
    table_add(&t, "/a/very/long/path/to/a/file.py");
    table_add(&t, "1234");
    assert_true(table_print(&t, &term));
}

static void
tables_are_aligned_and_fit(void **state)
{
    (void)state;
    char *text = print_to_string(print_tables);
    assert_string_equal(text, "  name               the bytes\n"
                              "  a                          1\n"
                              "  /a/ve…o/a/file.py       1234\n");
    free(text);
}

/* Names that differ in the middle alone, one that is a word longer than its column. */
static void
print_names(FILE *out)
{
    struct term term = {.out = out, .has_width = true, .width = 39};
    struct table t;
    table_init(&t, ">bytes =line <what");
    table_add(&t, "1");
    table_add(&t, "models/a.py:174 update_nodes");
    table_add(&t, "mm");
    table_add(&t, "2");
    table_add(&t, "models/a.py:184 update_nodes");
    table_add(&t, "");
    table_add(&t, "3");
    table_add(&t, "models/of/a/long/f\xc3\xb6lder/a.py:1 f");
    table_add(&t, "relu_and_more");
    assert_true(table_print(&t, &term));
}

static void
names_that_tell_rows_apart_are_never_cut(void **state)
{
    (void)state;
    char *text = print_to_string(print_names);
    assert_string_equal(text, "  bytes  line             what\n"
                              "      1  models/a.py:174  mm\n"
                              "         update_nodes\n"
                              "      2  models/a.py:184\n"
                              "         update_nodes\n"
                              "      3  models/of/a/lon  relu_and_more\n"
                              "         g/f\xc3\xb6lder/a.py:1\n"
                              "         f\n");
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_operands_mix),
        cmocka_unit_test(wrong_command_lines_end_with_2),
        cmocka_unit_test(numbers_keep_to_their_bounds),
        cmocka_unit_test(defaults_are_not_held_against_bounds),
        cmocka_unit_test(options_are_tied_to_others),
        cmocka_unit_test(tables_of_the_commands_are_sound),
        cmocka_unit_test(sizes_are_binary_and_checked),
        cmocka_unit_test(near_words_are_suggested),
        cmocka_unit_test(help_fits_80_columns),
        cmocka_unit_test(hostile_text_is_made_printable),
        cmocka_unit_test(numbers_read_well),
        cmocka_unit_test(long_file_names_take_a_line),
        cmocka_unit_test(numbers_keep_their_units),
        cmocka_unit_test(lines_in_a_pipe_end_where_they_are_told_to),
        cmocka_unit_test(tables_are_aligned_and_fit),
        cmocka_unit_test(names_that_tell_rows_apart_are_never_cut),
    };
    return cmocka_run_group_tests_name("tool", tests, NULL, NULL);
}
