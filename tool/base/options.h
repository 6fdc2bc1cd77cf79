/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

/*
 * A command's options come from one table, which also prints their help.
 *
 * The values go into a struct of the command's own, at each option's offset; the command
 * sets the defaults first. `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE` and `--`
 * mean what they mean elsewhere; options and operands may be mixed.
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
    OPTION_INT,    /* int64_t */
};

/* What a command puts where a size, or a number, may be left away. */
#define NOT_GIVEN UINT64_MAX
#define NO_NUMBER INT64_MIN

struct option_spec {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* "SIZE"; NULL for flags */
    enum option_kind kind;
    size_t where; /* offsetof the member */
    const char *help;
};

struct option_list {
    const char **values;
    size_t count;
};

/*
 * Read argv[1] .. argv[argc - 1] into `values` and what is no option into `operands`.
 * False: the command shall end with *exit_code, because help was asked for and printed or
 * because something is wrong and was said. options_finish() is due in either case.
 */
bool options_parse(const struct command *command, int argc, char **argv, void *values,
                   struct option_list *operands, int *exit_code);
void options_finish(const struct command *command, void *values,
                    struct option_list *operands);

/* A command that takes one file: EXIT_FINE, or what is wrong is said and EXIT_USAGE. */
int options_expect_one_file(const struct command *command,
                            const struct option_list *operands);

/* An option that would change nothing where it stands, which is a mistake. */
struct option_misuse {
    const char *option; /* without the dashes */
    bool is_there;
    const char *why; /* "of --method every": what it is instead */
};

/* EXIT_FINE, or the first one that is there is said and EXIT_USAGE. */
int options_refuse_misuse(const struct command *command, const struct option_misuse *all,
                          size_t count);

void options_print_help(const struct command *command, FILE *out);

/* "40GiB", "1.5g", "512MiB", "4096"; units are binary. False: not a size, or too large.
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
/* What ends the message of a word that is none of them: "; did you mean fp32?", or all. */
#define SUGGESTION_BYTES 240
const char *suggestion_write(const struct suggestion *suggestion, name_function *name_at,
                             char text[SUGGESTION_BYTES]);

#endif
