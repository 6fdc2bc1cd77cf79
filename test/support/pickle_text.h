/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PICKLE_TEXT_H
#define TEST_PICKLE_TEXT_H

/*
 * Pickles that can be read in a test. Most opcodes are letters already; the others are
 * written
 *
 *     'text'   BINUNICODE          #12  #-3   LONG1          = TUPLE2
 *     + -      NEWTRUE, NEWFALSE   %          BINFLOAT 0.5   m MEMOIZE
 *     q7 h7    BINPUT, BINGET of one digit
 *
 * and blanks are nothing: "}('segments'](e u ." has PROTO 4 put before it.
 */

#include <stddef.h>

struct pickle_text {
    unsigned char bytes[16384];
    size_t count;
};

void pickle_text_init(struct pickle_text *p, const char *text);

#endif
