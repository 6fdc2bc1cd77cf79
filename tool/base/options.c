/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See options.h. Each word is looked up in the command's table, linearly. A bit per row
 * records the options that were given; the ties need it. Suggestions use the edit
 * distance (Wagner and Fischer 1974, keeping one row). Cost: O(words * rows).
 */
#include "base/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"

struct parser {
    const struct command *command;
    int argc;
    char **argv;
    int next; /* index of the next word in argv */
    unsigned char *values;
    struct option_list *operands;
    uint64_t given; /* bit i: row i of the table was given */
    int exit_code;
};

enum size_kind { SIZE_FINE, SIZE_NONE, SIZE_TOO_LARGE, SIZE_BARE };
/* A size below 1 MiB must have a unit: someone who types 40 means 40 GiB or 40 MiB, not
   40 bytes. */
#define BARE_LEAST (1u << 20)

/* Split "12.5" into its integer part and millionths. Returns the text after them. */
static const char *
read_decimal(const char *text, unsigned long long *whole, uint64_t *millionths)
{
    char *end;
    uint64_t scale = 1000000;
    *whole = strtoull(text, &end, 10);
    *millionths = 0;
    if (*end != '.')
        return end;
    for (end++; *end >= '0' && *end <= '9'; end++) {
        scale /= 10; /* becomes 0 after six digits: further digits are ignored */
        *millionths += scale * (uint64_t)(*end - '0');
    }
    return end;
}

/* Read a size's unit. "GiB" and "g" are binary; "GB" is decimal, as vendors count. No
   unit means bytes. Returns the unit's bytes; 0: not a unit. */
static uint64_t
read_unit(const char *unit)
{
    static const char letters[] = "kmgtpe";
    const char *known = *unit ? strchr(letters, *unit | 0x20) : NULL;
    if (!known)
        return strcasecmp(unit, "b") == 0 || !*unit;
    uint64_t scale = 1, step = strcasecmp(unit + 1, "b") == 0 ? 1000 : 1024;
    if (unit[1] && step == 1024 && strcasecmp(unit + 1, "ib") != 0)
        return 0;
    for (long i = known - letters; i >= 0; i--)
        scale *= step;
    return scale;
}

static enum size_kind
read_size(const char *text, uint64_t *bytes)
{
    if (text[0] < '0' || text[0] > '9')
        return SIZE_NONE;
    unsigned long long whole;
    uint64_t millionths, sum;
    errno = 0;
    const char *unit = read_decimal(text, &whole, &millionths);
    bool is_too_large = errno == ERANGE;
    uint64_t scale = read_unit(unit + strspn(unit, " "));
    if (scale == 0 || (millionths && scale == 1))
        return SIZE_NONE;
    uint64_t part =
        millionths * (scale / 1000000) + millionths * (scale % 1000000) / 1000000;
    if (is_too_large || __builtin_mul_overflow((uint64_t)whole, scale, &sum) ||
        __builtin_add_overflow(sum, part, bytes))
        return SIZE_TOO_LARGE;
    return *unit || *bytes == 0 || *bytes >= BARE_LEAST ? SIZE_FINE : SIZE_BARE;
}

bool
options_parse_size(const char *text, uint64_t *bytes)
{
    return read_size(text, bytes) == SIZE_FINE;
}

#define WORD_BYTES_MAX 32

/* Return the number of insertions, deletions and substitutions that turn a into b.
   Requires that both are shorter than WORD_BYTES_MAX. */
static size_t
edit_distance(const char *a, const char *b)
{
    size_t row[WORD_BYTES_MAX + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            size_t shorter = row[j - 1] < row[j] ? row[j - 1] : row[j];
            diagonal = row[j];
            row[j] = changed < shorter + 1 ? changed : shorter + 1;
        }
    }
    return row[width];
}

void
suggestion_consider(struct suggestion *suggestion, const char *candidate)
{
    size_t length = strlen(suggestion->word);
    if (length >= WORD_BYTES_MAX || strlen(candidate) >= WORD_BYTES_MAX || length == 0)
        return;
    size_t distance = edit_distance(suggestion->word, candidate);
    if (strncmp(candidate, suggestion->word, length) == 0)
        distance = 1; /* an abbreviation counts as similar */
    if (distance > 1 + length / 4 ||
        (suggestion->best && distance >= suggestion->distance))
        return;
    suggestion->best = candidate;
    suggestion->distance = distance;
}

static bool
append(struct parser *p, struct option_list *list, const char *value)
{
    if (!list->values) /* argc bounds the length of every list */
        list->values = calloc((size_t)p->argc, sizeof *list->values);
    if (!list->values) {
        p->exit_code = report_memory(p->command->name, NULL);
        return false;
    }
    list->values[list->count++] = value;
    return true;
}

__attribute__((format(printf, 2, 3))) static bool
refuse(struct parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    p->exit_code = report_usage_args(p->command->name, format, args);
    va_end(args);
    return false;
}

#define BOUND_BYTES 32

/* Write a bound as its option is typed: "100", or for a size the largest unit that gives
   a whole number, "16MiB". */
static const char *
write_bound(const struct option_spec *spec, int64_t bound, char text[BOUND_BYTES])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    for (; spec->kind == OPTION_SIZE && bound && bound % 1024 == 0; unit++)
        bound /= 1024;
    snprintf(text, BOUND_BYTES, "%lld%s", (long long)bound, units[unit]);
    return text;
}

/* Check a number against its row's bounds. `text` is the number as typed. */
static bool
check_range(struct parser *p, const struct option_spec *spec, int64_t number,
            const char *text)
{
    bool has_max = spec->max != 0 && spec->max != NO_MAX;
    bool has_range = spec->min != 0 || spec->max != 0;
    char min[BOUND_BYTES], max[BOUND_BYTES];
    if (!has_range || (number >= spec->min && (!has_max || number <= spec->max)))
        return true;
    write_bound(spec, spec->min, min);
    if (!has_max)
        return refuse(p, "--%s %s: expected %s or more", spec->name, text, min);
    return refuse(p, "--%s %s: expected %s to %s", spec->name, text, min,
                  write_bound(spec, spec->max, max));
}

static bool
store_int(struct parser *p, const struct option_spec *spec, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end)
        return refuse(p, "--%s: '%s' is not a whole number", spec->name, text);
    if (errno)
        return refuse(p, "--%s: '%s' is more than 63 bits", spec->name, text);
    int64_t stored = value;
    if (!check_range(p, spec, stored, text))
        return false;
    memcpy(p->values + spec->where, &stored, sizeof stored);
    return true;
}

static bool
store_size(struct parser *p, const struct option_spec *spec, const char *text)
{
    uint64_t bytes;
    enum size_kind kind = read_size(text, &bytes);
    if (kind == SIZE_NONE)
        return refuse(p, "--%s: '%s' is not a size such as 512MiB or 40GiB", spec->name,
                      text);
    if (kind == SIZE_TOO_LARGE)
        return refuse(p, "--%s: '%s' is more than 64 bits of bytes", spec->name, text);
    if (kind == SIZE_BARE)
        return refuse(p, "--%s: '%s' has no unit, as in 512MiB, 40GiB or 4096B",
                      spec->name, text);
    if (!check_range(p, spec, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX, text))
        return false;
    memcpy(p->values + spec->where, &bytes, sizeof bytes);
    return true;
}

static bool
store(struct parser *p, const struct option_spec *spec, const char *text)
{
    unsigned char *at = p->values + spec->where;
    bool yes = true;
    p->given |= UINT64_C(1) << (spec - p->command->options);
    switch (spec->kind) {
    case OPTION_FLAG:
        memcpy(at, &yes, sizeof yes);
        return true;
    case OPTION_STRING:
        memcpy(at, &text, sizeof text);
        return true;
    case OPTION_LIST:
        return append(p, (struct option_list *)(void *)at, text);
    case OPTION_SIZE:
        return store_size(p, spec, text);
    case OPTION_INT:
        return store_int(p, spec, text);
    }
    return false;
}

/* Store an option's value. `value` is the text after '=' or after a letter; NULL: the
   next word is the value. */
static bool
take_option(struct parser *p, const struct option_spec *spec, const char *value)
{
    if (spec->kind == OPTION_FLAG && value)
        return refuse(p, "--%s takes no value", spec->name);
    if (spec->kind != OPTION_FLAG && !value) {
        if (p->next == p->argc)
            return refuse(p, "--%s needs a value: %s", spec->name, spec->argument);
        value = p->argv[p->next++];
    }
    return store(p, spec, value);
}

static bool
take_long(struct parser *p, const char *name)
{
    const struct command *c = p->command;
    size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < c->option_count; i++) {
        const struct option_spec *spec = &c->options[i];
        if (strlen(spec->name) == length && strncmp(spec->name, name, length) == 0)
            return take_option(p, spec, value);
    }
    struct suggestion s = {.word = name};
    for (size_t i = 0; i < c->option_count; i++)
        suggestion_consider(&s, c->options[i].name);
    if (s.best)
        return refuse(p, "there is no option --%s; did you mean --%s?", name, s.best);
    return refuse(p, "there is no option --%s", name);
}

/* Take a group of letters such as -abc. The first option with a value takes the rest of
   the word as its value. */
static bool
take_letters(struct parser *p, const char *letters)
{
    const struct command *c = p->command;
    while (*letters) {
        const struct option_spec *spec = NULL;
        for (size_t i = 0; i < c->option_count && !spec; i++) {
            if (c->options[i].letter == *letters)
                spec = &c->options[i];
        }
        if (!spec)
            return refuse(p, "there is no option -%c", *letters);
        letters++;
        if (spec->kind != OPTION_FLAG)
            return take_option(p, spec, *letters ? letters : NULL);
        if (!take_option(p, spec, NULL))
            return false;
    }
    return true;
}

static bool
take_word(struct parser *p, const char *word, bool *only_operands)
{
    if (*only_operands || word[0] != '-' || word[1] == '\0') {
        *only_operands |= p->command->stops_at_operand;
        return append(p, p->operands, word);
    }
    if (strcmp(word, "--") == 0) {
        *only_operands = true;
        return true;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        options_print_help(p->command, stdout);
        p->exit_code = EXIT_FINE;
        return false;
    }
    return word[1] == '-' ? take_long(p, word + 2) : take_letters(p, word + 1);
}

/* Tell whether `name` is among `names`, which are separated by spaces. */
static bool
is_among(const char *name, const char *names)
{
    size_t length = strlen(name);
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0)
            return true;
        at += word;
    }
    return false;
}

/* Tell whether an option changes anything: a number at its `min` does not. */
static bool
is_asking(const struct parser *p, const struct option_spec *spec)
{
    int64_t number;
    if (spec->kind != OPTION_INT)
        return true;
    memcpy(&number, p->values + spec->where, sizeof number);
    return number != spec->min;
}

/* Tell whether one of `names` was given; NULL names none. With `asks`, count only options
   that change something. */
static bool
is_one_there(const struct parser *p, const char *names, bool asks)
{
    for (size_t i = 0; names && i < p->command->option_count; i++) {
        const struct option_spec *spec = &p->command->options[i];
        if ((p->given >> i & 1) != 0 && is_among(spec->name, names) &&
            (!asks || is_asking(p, spec)))
            return true;
    }
    return false;
}

static bool
check_ties_with(struct parser *p, const struct option_spec *spec)
{
    bool refuses = !is_one_there(p, spec->unless, false);
    for (size_t i = 0; i < OPTION_REFUSALS_MAX && refuses; i++) {
        if (is_one_there(p, spec->refuses[i].others, true))
            return refuse(p, "--%s is %s", spec->name, spec->refuses[i].why);
    }
    if (spec->needs.others && !is_one_there(p, spec->needs.others, true))
        return refuse(p, "--%s is %s", spec->name, spec->needs.why);
    return true;
}

static bool
check_ties(struct parser *p)
{
    for (size_t i = 0; i < p->command->option_count; i++) {
        if ((p->given >> i & 1) != 0 && !check_ties_with(p, &p->command->options[i]))
            return false;
    }
    return true;
}

bool
options_parse(const struct command *command, int argc, char **argv, void *values,
              struct option_list *operands, int *exit_code)
{
    struct parser p = {.command = command,
                       .argc = argc,
                       .argv = argv,
                       .next = 1,
                       .values = values,
                       .operands = operands};
    *operands = (struct option_list){0};
    bool only_operands = false, is_good = true;
    while (p.next < argc && is_good)
        is_good = take_word(&p, argv[p.next++], &only_operands);
    is_good = is_good && check_ties(&p);
    if (!is_good)
        *exit_code = p.exit_code;
    return is_good;
}

int
options_refuse_misuse(const struct command *command, const struct option_misuse *all,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].is_there)
            return report_usage(command->name, "--%s is %s", all[i].option, all[i].why);
    }
    return EXIT_FINE;
}

int
options_expect_one_file(const struct command *command, const struct option_list *operands)
{
    if (operands->count == 1)
        return EXIT_FINE;
    return report_usage(command->name, "%zu files are given, one is expected",
                        operands->count);
}

void
options_finish(const struct command *command, void *values, struct option_list *operands)
{
    free(operands->values);
    *operands = (struct option_list){0};
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].kind != OPTION_LIST)
            continue;
        unsigned char *at = (unsigned char *)values + command->options[i].where;
        struct option_list *list = (struct option_list *)(void *)at;
        free(list->values);
        *list = (struct option_list){0};
    }
}

#define HELP_COLUMN 26
#define HELP_WIDTH 80

static void
print_option(const struct option_spec *spec, FILE *out)
{
    int used =
        spec->letter ? fprintf(out, "  -%c, ", spec->letter) : fprintf(out, "      ");
    used += fprintf(out, "--%s", spec->name);
    if (spec->argument)
        used += fprintf(out, " %s", spec->argument);
    if (used >= HELP_COLUMN)
        used = fprintf(out, "\n") - 1;
    fprintf(out, "%*s", HELP_COLUMN - used, "");
    term_print_wrapped(out, spec->help, HELP_COLUMN, HELP_WIDTH);
}

static void
print_examples(const char *examples, FILE *out)
{
    fprintf(out, "\nexamples:\n");
    while (*examples) {
        size_t length = strcspn(examples, "\n");
        fprintf(out, "  %.*s\n", (int)length, examples);
        examples += length + (examples[length] == '\n');
    }
}

void
options_print_help(const struct command *command, FILE *out)
{
    static const struct option_spec help = {
        .name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "this text"};
    fprintf(out, "usage: drystone %s %s\n\n", command->name, command->usage);
    term_print_wrapped(out, command->summary, 0, HELP_WIDTH);
    if (command->about) {
        fprintf(out, "\n");
        term_print_wrapped(out, command->about, 0, HELP_WIDTH);
    }
    fprintf(out, "\noptions:\n");
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], out);
    print_option(&help, out);
    if (command->examples)
        print_examples(command->examples, out);
}

const char *
suggestion_write(const struct suggestion *suggestion, name_function *name_at,
                 char text[SUGGESTION_BYTES])
{
    size_t used = 0;
    if (suggestion->best) {
        snprintf(text, SUGGESTION_BYTES, "; did you mean %s?", suggestion->best);
        return text;
    }
    text[0] = '\0';
    for (unsigned i = 0; name_at(i) && used < SUGGESTION_BYTES; i++)
        used += (size_t)snprintf(text + used, SUGGESTION_BYTES - used, "%s%s",
                                 i == 0           ? "; expected "
                                 : name_at(i + 1) ? ", "
                                                  : " or ",
                                 name_at(i));
    return text;
}
