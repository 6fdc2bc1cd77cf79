/* SPDX-License-Identifier: Apache-2.0 */
/* See fail.h. The library has the same function in src/base/fail.h, which the tool must
   not include. */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum dry_status
fail_at(struct dry_error *err, enum dry_status status, uint64_t offset,
        const char *format, ...)
{
    if (!err)
        return status;
    err->status = status;
    err->os_errno = status == DRY_ERR_SYSTEM ? errno : 0;
    err->offset = offset;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    for (char *c = err->text; *c; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
    }
    return status;
}

enum dry_status
fail_memory(struct dry_error *err, const char *text)
{
    return fail_at(err, DRY_ERR_MEMORY, DRY_NO_OFFSET, "%s", text);
}
