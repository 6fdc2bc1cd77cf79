/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_NAME_H
#define DRYI_LIVE_NAME_H

#include <stdbool.h>

/* File name of a page: this prefix, the process id, "-", and a number unique in the process. */
#define DRYI_LIVE_PREFIX "drystone-live-"

/* Return whether a file's name has the form of a page's. */
static inline bool
dryi_live_is_name(const char *name)
{
    const char *prefix = DRYI_LIVE_PREFIX;
    while (*prefix && *name == *prefix) {
        name++;
        prefix++;
    }
    if (*prefix)
        return false;
    int digits = 0, dashes = 0;
    for (; *name; name++) {
        bool is_digit = *name >= '0' && *name <= '9';
        if (!is_digit && (*name != '-' || digits == 0 || dashes > 0))
            return false;
        dashes += !is_digit;
        digits = is_digit ? digits + 1 : 0;
        if (digits > 10)
            return false;
    }
    return digits > 0 && dashes == 1;
}

#endif
