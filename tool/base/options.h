/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

/*
 * A command's options come from one table, which also prints their help.
 *
 * The values are written into the command's own struct, at each option's offset; the
 * command sets the defaults first. The forms `--name VALUE`, `--name=VALUE`, `-n VALUE`,
 * `-nVALUE` and `--` follow getopt_long(); options and operands may be mixed.
 *
 * A row also holds the range of its number and the options it requires or excludes. The
 * parser checks both, so a command checks only what depends on values or on its files.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct command;

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_STRING, /* const char *: the last value given */
    OPTION_LIST,   /* struct option_list: all values given, in order */
    OPTION_SIZE,   /* uint64_t bytes: 512MiB, 40GiB, 1g, 4096 */
    OPTION_INT,    /* int64_t; if `min` is not negative, uint64_t too */
};

/* Defaults that mark a size or a number as not given. */
#define NOT_GIVEN UINT64_MAX
#define NO_NUMBER INT64_MIN

/* The `max` of a range without an upper bound. If both `min` and `max` are 0, there is no
   range at all. */
#define NO_MAX INT64_MAX

/* Options that another option requires or excludes. */
struct option_tie {
    const char *others; /* names without the dashes, apart by spaces; NULL: no tie */
    const char *why;    /* "for --inference alone": the message is "--NAME is WHY" */
};
#define OPTION_REFUSALS_MAX 2
#define OPTIONS_MAX 64 /* most options of a command; the parser keeps one bit for each */

struct option_spec {
    const char *name;     /* without dashes */
    char letter;          /* 0: no short form */
    const char *argument; /* value's name in the help, such as "SIZE"; NULL for flags */
    enum option_kind kind;
    size_t where; /* offsetof the member in the command's values */
    const char *help;
    /* The range of a number or size. Both 0: no range; only `max` 0: no upper bound.
       Defaults are not checked against it. */
    int64_t min, max;
    /* At least one of `needs` must be given, and none of `refuses`, unless one of
       `unless` is given. A number at its `min`, as in --data 1, counts as not given for
       `needs` and `refuses`. */
    struct option_tie needs, refuses[OPTION_REFUSALS_MAX];
    const char *unless;
};

struct option_list {
    const char **values;
    size_t count;
};

/*
 * Parse argv[1] .. argv[argc - 1] into `values`, and the words that are not options into
 * `operands`. Returns false if the command must end with *exit_code: help was printed, or
 * an error. Words and numbers are checked in command-line order, then ties in table
 * order; only the first error is printed. Call options_finish() in any case.
 */
bool options_parse(const struct command *command, int argc, char **argv, void *values,
                   struct option_list *operands, int *exit_code);
void options_finish(const struct command *command, void *values,
                    struct option_list *operands);

/* Check that a command got exactly one operand, its file. Returns EXIT_FINE, or
   EXIT_USAGE after printing the message. */
int options_expect_one_file(const struct command *command,
                            const struct option_list *operands);

/* An option that would have no effect, which is an error. Ties cover effects that depend
   on other options only; a misuse depends on a value or on a file. */
struct option_misuse {
    const char *option; /* without dashes */
    bool is_there;
    const char *why; /* "for --method every alone", as in a tie */
};

/* Print the first misuse whose `is_there` is set. Returns EXIT_USAGE, or EXIT_FINE if
   none is set. */
int options_refuse_misuse(const struct command *command, const struct option_misuse *all,
                          size_t count);

void options_print_help(const struct command *command, FILE *out);

/*
 * Read a size: "40GiB", "1.5g", "512MiB" are binary, "80GB" is 80 * 10^9 bytes. Without a
 * unit, only 0 and numbers from 1048576 on are accepted. Returns false if `text` is not a
 * size or is too large.
 */
bool options_parse_size(const char *text, uint64_t *bytes);

/* The candidate nearest to `word`, if any is similar; initialize with {word}. */
struct suggestion {
    const char *word;
    const char *best; /* NULL: no similar candidate so far */
    size_t distance;
};
void suggestion_consider(struct suggestion *suggestion, const char *candidate);

/* Names by index from 0 on; NULL after the last. */
typedef const char *name_function(unsigned index);
/* Write the end of an error message about an unknown word: "; did you mean fp32?" or,
   without a similar name, all names. */
#define SUGGESTION_BYTES 240
const char *suggestion_write(const struct suggestion *suggestion, name_function *name_at,
                             char text[SUGGESTION_BYTES]);

#endif
