/* SPDX-License-Identifier: Apache-2.0 */

/* The kinds of values are in pickle_value.h; this file names them in error texts. */
#include "trace/pickle/pickle_value.h"

const char *
dryi_value_noun(uint64_t value)
{
    static const char *const nouns[] = {
        [DRYI_VALUE_NONE] = "None",
        [DRYI_VALUE_BOOL] = "a bool",
        [DRYI_VALUE_INT] = "an integer",
        [DRYI_VALUE_STRING] = "a string",
        [DRYI_VALUE_BYTES] = "bytes",
        [DRYI_VALUE_BYTEARRAY] = "a bytearray",
        [DRYI_VALUE_PAIR] = "a tuple",
        [DRYI_VALUE_FRAME] = "a frame",
        [DRYI_VALUE_STACK] = "a list of frames",
        [DRYI_VALUE_EXTRA] = "something unknown",
        [DRYI_VALUE_WIDE_INT] = "an integer",
        [DRYI_VALUE_WIDE_UINT] = "an integer",
        [DRYI_VALUE_FLOAT] = "a float",
        [DRYI_VALUE_DICT] = "a dict",
        [DRYI_VALUE_LIST] = "a list",
        [DRYI_VALUE_TUPLE] = "a tuple",
        [DRYI_VALUE_FAR] = "a number",
        [DRYI_VALUE_EVENT] = "an event",
        [DRYI_VALUE_BLOCK] = "a block",
        [DRYI_VALUE_SEGMENT] = "a segment",
        [DRYI_VALUE_ANNOTATION] = "an annotation",
        [DRYI_VALUE_HISTORY] = "a block's history",
        [DRYI_VALUE_ROWS] = "a list that is used already",
    };
    return nouns[dryi_value_kind(value)];
}
