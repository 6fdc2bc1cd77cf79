/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_UTF8_H
#define DRYI_UTF8_H

/*
 * Strings as CPython decodes pickled ones: UTF-8 in which lone surrogates are allowed. A
 * byte that is not part of such UTF-8 becomes U+DC80 to U+DCFF, as in PEP 383
 * ("surrogateescape"). So no byte is lost, and Python's pickle.load accepts what is
 * written back.
 */

#include <stdbool.h>
#include <stddef.h>

#define DRYI_UTF8_ESCAPE_BYTES 3u /* most bytes that one byte becomes */

bool dryi_utf8_is_valid(const unsigned char *bytes, size_t length);

/* Escape into `to`, of length * DRYI_UTF8_ESCAPE_BYTES bytes. Returns the length. */
size_t dryi_utf8_escape(char *to, const unsigned char *bytes, size_t length);

/*
 * Write strict UTF-8, which has no surrogates. A lone surrogate becomes its escape,
 * "\\udc80"; so does an invalid byte, as if dryi_utf8_escape() had run first. With `to`
 * NULL, only count. Returns the length.
 */
size_t dryi_utf8_make_strict(char *to, const unsigned char *bytes, size_t length);

#endif
