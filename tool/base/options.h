/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

/*
 * A command's options come from one table, which also prints their help.
 *
 * The values go into a struct of the command's own, at each option's offset; the command
 * sets the defaults first. The forms `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE`
 * and `--` mean what they mean elsewhere; options and operands may be mixed.
 *
 * A row also says which numbers an option takes and which other options it goes with. The
 * parser checks both, so a command checks only conditions on values and on its files.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct command;

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_STRING, /* const char *: the last one given */
    OPTION_LIST,   /* struct option_list: all given, in order */
    OPTION_SIZE,   /* uint64_t bytes: 512MiB, 40GiB, 1g, 4096 */
    OPTION_INT,    /* int64_t; if `min` is not negative, uint64_t too */
};

/* The defaults of a size and of a number that may be left away. */
#define NOT_GIVEN UINT64_MAX
#define NO_NUMBER INT64_MIN

/* The `max` of "0 or more", whose `min` alone would look like no bounds. */
#define NO_MAX INT64_MAX

/* Other options that one is bound to. */
struct option_tie {
    const char *others; /* names without the dashes, apart by spaces; NULL: no tie */
    const char *why;    /* "of --inference": the message is "--NAME is WHY" */
};
#define OPTION_REFUSALS_MAX 2
#define OPTIONS_MAX 64 /* of a command: the parser has a bit for each */

struct option_spec {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* "SIZE"; NULL for flags */
    enum option_kind kind;
    size_t where; /* offsetof the member */
    const char *help;
    /* The bounds of a number or a size, both 0: none; `max` 0: from `min` on. Defaults are
       not held against them. */
    int64_t min, max;
    /* One of `needs` must be there, too, and none of `refuses`, unless one of `unless` is.
       A number at its `min`, as in --data 1, asks for nothing: it is not there for
       `needs` and `refuses`. */
    struct option_tie needs, refuses[OPTION_REFUSALS_MAX];
    const char *unless;
};

struct option_list {
    const char **values;
    size_t count;
};

/*
 * Read argv[1] .. argv[argc - 1] into `values`, and all words that are no options into
 * `operands`. False: the command shall end with *exit_code, because help was asked for and
 * printed or because something is wrong and was said. Words and numbers are judged in the
 * order of the line, then ties in that of the table; the first wrong one is said.
 * options_finish() is due in either case.
 */
bool options_parse(const struct command *command, int argc, char **argv, void *values,
                   struct option_list *operands, int *exit_code);
void options_finish(const struct command *command, void *values,
                    struct option_list *operands);

/* Check the operands of a command that takes one file. Returns EXIT_FINE, or EXIT_USAGE
   and the message is printed. */
int options_expect_one_file(const struct command *command,
                            const struct option_list *operands);

/* An option that would change nothing where it stands, which is a mistake. A tie says so
   if only other options decide; this is for mistakes that a value or a file decides. */
struct option_misuse {
    const char *option; /* without the dashes */
    bool is_there;
    const char *why; /* "of --method every", as in a tie */
};

/* Say the first misuse that is there. Returns EXIT_USAGE, or EXIT_FINE if none is. */
int options_refuse_misuse(const struct command *command, const struct option_misuse *all,
                          size_t count);

void options_print_help(const struct command *command, FILE *out);

/*
 * "40GiB", "1.5g", "512MiB": binary units; "80GB" is 80 * 10^9. A number of bytes without a unit is 0,
 * or 1048576 and more. False: not a size, or too large.
 */
bool options_parse_size(const char *text, uint64_t *bytes);

/* The candidate most like `word`, if any is like it at all; begin with {word}. */
struct suggestion {
    const char *word;
    const char *best; /* NULL: none so far */
    size_t distance;
};
void suggestion_consider(struct suggestion *suggestion, const char *candidate);

/* Names by their numbers from 0 on; NULL behind the last. */
typedef const char *name_function(unsigned index);
/*
 * Write the end of a message about a word that is none of them: "; did you mean fp32?", or
 * all.
 */
#define SUGGESTION_BYTES 240
const char *suggestion_write(const struct suggestion *suggestion, name_function *name_at,
                             char text[SUGGESTION_BYTES]);

#endif
