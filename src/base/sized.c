/* SPDX-License-Identifier: Apache-2.0 */

/* Copy structs between versions of a header: only the members that both sides know. sized.h has the
   rules for older and newer callers. */

#include "base/sized.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"

static size_t
read_size(const void *sized)
{
    size_t bytes;
    memcpy(&bytes, sized, sizeof bytes);
    return bytes;
}

/* Copy the members after struct_size that fit into both sizes. */
static void
copy_members(void *to, const void *from, size_t bytes, size_t known_bytes)
{
    size_t end = bytes < known_bytes ? bytes : known_bytes;
    memcpy((char *)to + sizeof end, (const char *)from + sizeof end, end - sizeof end);
}

void
dryi_sized_init(void *to, size_t to_bytes, const void *defaults, size_t known_bytes)
{
    DRYI_ASSERT(to_bytes >= sizeof to_bytes);
    memset(to, 0, to_bytes);
    memcpy(to, &to_bytes, sizeof to_bytes);
    copy_members(to, defaults, to_bytes, known_bytes);
}

enum dry_status
dryi_sized_take(void *to, size_t known_bytes, const void *from, struct dry_error *err)
{
    if (!from)
        return DRY_OK;
    size_t bytes = read_size(from);
    if (bytes < sizeof bytes)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "options without struct_size: call the init function first");
    for (size_t i = known_bytes; i < bytes; i++)
        if (((const unsigned char *)from)[i])
            return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                             "options of %zu bytes set a field this library (%zu) lacks",
                             bytes, known_bytes);
    copy_members(to, from, bytes, known_bytes);
    memcpy(to, &known_bytes, sizeof known_bytes);
    return DRY_OK;
}

enum dry_status
dryi_sized_give(void *to, const void *from, size_t known_bytes)
{
    size_t bytes = read_size(to);
    if (bytes < sizeof bytes)
        return DRY_ERR_ARGUMENT;
    copy_members(to, from, bytes, known_bytes);
    return DRY_OK;
}
