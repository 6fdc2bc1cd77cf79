/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options of any age: the bytes that both sides know are copied over the defaults, and what lies
 * beyond them must be zero. The rules for older and newer callers stand in options.h.
 */

#include "base/options.h"

#include <string.h>

#include "base/fail.h"

enum dry_status
dryi_options_take(void *to, size_t to_bytes, const void *from, struct dry_error *err)
{
    if (!from)
        return DRY_OK;
    size_t from_bytes;
    memcpy(&from_bytes, from, sizeof from_bytes);
    if (from_bytes < sizeof from_bytes)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "options without struct_size: call the init function first");
    const unsigned char *bytes = from;
    for (size_t i = to_bytes; i < from_bytes; i++) {
        if (bytes[i])
            return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                             "options of %zu bytes set a field this library (%zu) lacks",
                             from_bytes, to_bytes);
    }
    memcpy(to, from, from_bytes < to_bytes ? from_bytes : to_bytes);
    memcpy(to, &to_bytes, sizeof to_bytes);
    return DRY_OK;
}
