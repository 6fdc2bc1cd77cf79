/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_TORCH_CONF_READER_H
#define DRYI_TORCH_CONF_READER_H

/*
 * Tokens and numbers of an allocator setting, read as PyTorch's ConfigTokenizer reads them
 * (torch_conf.c describes the language).
 *
 * A token is a range of the text, read in place: reading allocates no memory and takes linear time.
 * The text may contain any bytes, zeros included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "place/torch/torch.h"

/* Bytes [begin, end) of the text; white space inside is ignored. */
struct dryi_conf_token {
    size_t begin, end;
};

struct dryi_conf_reader {
    const char *text;
    size_t length;
    size_t at;    /* offset after `now`; white space may precede the next token */
    size_t index; /* index of `now`, counted as PyTorch's messages do */
    struct dryi_conf_token now;
    const struct dryi_torch_rules *rules;
    struct dryi_torch_conf *conf;
    struct dry_error *err;
};

/* Get the token after `now` without moving to it. False: there is none. */
bool dryi_conf_peek(const struct dryi_conf_reader *r, struct dryi_conf_token *token);
/* Move to the next token. False: there is none, and `now` is unchanged. */
bool dryi_conf_next(struct dryi_conf_reader *r);
/* Move back before the first token. */
void dryi_conf_rewind(struct dryi_conf_reader *r);
/* Does the token equal this word, without its white space? */
bool dryi_conf_is(const struct dryi_conf_reader *r, struct dryi_conf_token token,
                  const char *word);
/* Copy a token without white space, up to `capacity` - 1 bytes plus a zero. Returns the length. */
size_t dryi_conf_copy(const struct dryi_conf_reader *r, struct dryi_conf_token token,
                      char *buffer, size_t capacity);

#define DRYI_CONF_WORD_BYTES 48 /* bytes of a token shown in a message */

/* Fail with FORMAT: the text ends where a token is expected. */
enum dry_status dryi_conf_fail_end(struct dryi_conf_reader *r);
/* Fail with FORMAT at the token; the message is `what` and the token. */
enum dry_status dryi_conf_fail_value(struct dryi_conf_reader *r,
                                     struct dryi_conf_token token, const char *what);

/*
 * Read a number as std::stoull does: a sign, decimal digits, anything. FORMAT: no number, or beyond
 * 64 bits.
 */
enum dry_status dryi_conf_read_u64(struct dryi_conf_reader *r,
                                   struct dryi_conf_token token, uint64_t *value);

/* Bytes of a token that are read: more than the 767 digits that can affect a double. */
#define DRYI_CONF_NUMBER_BYTES 1024

/* Read a number as std::stod does. FORMAT: no number, overflow or underflow. */
enum dry_status dryi_conf_read_double(struct dryi_conf_reader *r,
                                      struct dryi_conf_token token, double *value);
/*
 * Do as strtod() in the C locale, whatever the program's locale. glibc's newlocale() of "C" returns
 * a static object, so this is cheap. NaN if newlocale() fails.
 */
double dryi_conf_strtod(const char *text, char **end);

#endif
