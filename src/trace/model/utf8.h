/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_UTF8_H
#define DRYI_UTF8_H

/*
 * Strings as CPython decodes pickled ones: UTF-8 in which lone surrogates are allowed. A
 * byte that is none is escaped as in PEP 383 ("surrogateescape"): it becomes U+DC80 to
 * U+DCFF, so that nothing is lost and Python's pickle.load takes what is written back.
 */

#include <stdbool.h>
#include <stddef.h>

#define DRYI_UTF8_ESCAPE_BYTES 3u /* a byte becomes so many at most */

bool dryi_utf8_is_valid(const unsigned char *bytes, size_t length);

/* `to` has room for length * DRYI_UTF8_ESCAPE_BYTES; returns the length used. */
size_t dryi_utf8_escape(char *to, const unsigned char *bytes, size_t length);

/*
 * Write strict UTF-8, which has no surrogates: a lone one becomes its escape, "\\udc80", and
 * so does a byte that begins no character, as if dryi_utf8_escape() had been there first.
 * `to` NULL: nothing is written. Returns the length.
 */
size_t dryi_utf8_make_strict(char *to, const unsigned char *bytes, size_t length);

#endif
