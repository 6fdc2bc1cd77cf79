/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_CONF_READER_H
#define DRYI_TORCH_CONF_READER_H

/*
 * The tokens of an allocator setting and the numbers in them, read as PyTorch's ConfigTokenizer
 * reads them (torch_conf.c has the language).
 *
 * A token is a range of the text, read in place: reading takes no memory and is linear in the
 * text. The text may hold anything, zero bytes too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "place/torch/torch.h"

/* Bytes [begin, end) of the text, white space among them not counting. */
struct dryi_conf_token {
    size_t begin, end;
};

struct dryi_conf_reader {
    const char *text;
    size_t length;
    size_t at;    /* where the next token begins or white space before it */
    size_t index; /* of `now`, as PyTorch numbers tokens in its messages */
    struct dryi_conf_token now;
    const struct dryi_torch_rules *rules;
    struct dryi_torch_conf *conf;
    struct dry_error *err;
};

/* The token after `now`, not stepped to; false: there is none. */
bool dryi_conf_peek(const struct dryi_conf_reader *r, struct dryi_conf_token *token);
/* Step to the next token; false: there is none, and `now` stays. */
bool dryi_conf_next(struct dryi_conf_reader *r);
/* Begin again before the first token. */
void dryi_conf_rewind(struct dryi_conf_reader *r);
/* Is the token this word, its white space left out? */
bool dryi_conf_is(const struct dryi_conf_reader *r, struct dryi_conf_token token,
                  const char *word);
/* Copy at most `capacity` - 1 bytes of a token, and end them with a zero; returns how many. */
size_t dryi_conf_copy(const struct dryi_conf_reader *r, struct dryi_conf_token token,
                      char *buffer, size_t capacity);

#define DRYI_CONF_WORD_BYTES 48 /* of a token, in a message */

/* Fail with FORMAT: the text ends where a token is expected. */
enum dry_status dryi_conf_fail_end(struct dryi_conf_reader *r);
/* Fail with FORMAT at the token: `what`, and the token. */
enum dry_status dryi_conf_fail_value(struct dryi_conf_reader *r,
                                     struct dryi_conf_token token, const char *what);

/* Read as std::stoull: a sign, decimal digits, anything. FORMAT: no number, or above 64 bits. */
enum dry_status dryi_conf_read_u64(struct dryi_conf_reader *r,
                                   struct dryi_conf_token token, uint64_t *value);

/* More than the 767 digits that can matter to a double; a longer token is read so far. */
#define DRYI_CONF_NUMBER_BYTES 1024

/* Read as std::stod, which refuses what overflows and what underflows: FORMAT. */
enum dry_status dryi_conf_read_double(struct dryi_conf_reader *r,
                                      struct dryi_conf_token token, double *value);
/*
 * strtod in the C locale, whatever the program's is: glibc's newlocale() of all of "C" hands out a
 * static object. NaN if even that cannot be had.
 */
double dryi_conf_strtod(const char *text, char **end);

#endif
