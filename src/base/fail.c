/* SPDX-License-Identifier: Apache-2.0 */

/* Format errors where they are found; fail.h shows the use. Bytes that a terminal may interpret
   become '?'. errno is recorded for SYSTEM only. */

#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Replace all bytes except printable ASCII by '?': text from a file could send escape
   sequences to a terminal. */
static void
make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c >= 0x7f)
            *c = '?';
    }
}

__attribute__((format(printf, 4, 0))) static void
describe(struct dry_error *err, enum dry_status status, uint64_t offset,
         const char *format, va_list args)
{
    if (!err)
        return;
    err->status = status;
    err->os_errno = status == DRY_ERR_SYSTEM ? errno : 0;
    err->offset = offset;
    vsnprintf(err->text, sizeof err->text, format, args);
    make_printable(err->text);
}

enum dry_status
dryi_fail(struct dry_error *err, enum dry_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    describe(err, status, DRY_NO_OFFSET, format, args);
    va_end(args);
    return status;
}

enum dry_status
dryi_fail_at(struct dry_error *err, enum dry_status status, uint64_t offset,
             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    describe(err, status, offset, format, args);
    va_end(args);
    return status;
}

enum dry_status
dryi_fail_memory(struct dry_error *err, const char *noun)
{
    return dryi_fail(err, DRY_ERR_MEMORY, "no memory for %s", noun);
}

const char *
dry_status_name(enum dry_status status)
{
    switch (status) {
    case DRY_OK:
        return "DRY_OK";
    case DRY_END:
        return "DRY_END";
    case DRY_ERR_ARGUMENT:
        return "DRY_ERR_ARGUMENT";
    case DRY_ERR_MEMORY:
        return "DRY_ERR_MEMORY";
    case DRY_ERR_FORMAT:
        return "DRY_ERR_FORMAT";
    case DRY_ERR_LIMIT:
        return "DRY_ERR_LIMIT";
    case DRY_ERR_NO_SPACE:
        return "DRY_ERR_NO_SPACE";
    case DRY_ERR_SYSTEM:
        return "DRY_ERR_SYSTEM";
    case DRY_ERR_UNSUPPORTED:
        return "DRY_ERR_UNSUPPORTED";
    case DRY_ERR_CANCELLED:
        return "DRY_ERR_CANCELLED";
    }
    return "unknown status";
}

const char *
dry_status_text(enum dry_status status)
{
    switch (status) {
    case DRY_OK:
        return "nothing is wrong";
    case DRY_END:
        return "there is no more";
    case DRY_ERR_ARGUMENT:
        return "the value or address has no meaning here";
    case DRY_ERR_MEMORY:
        return "the host has no memory for it";
    case DRY_ERR_FORMAT:
        return "the input is not what it claims to be";
    case DRY_ERR_LIMIT:
        return "it is larger than allowed";
    case DRY_ERR_NO_SPACE:
        return "there is no room";
    case DRY_ERR_SYSTEM:
        return "the operating system or the driver refuses";
    case DRY_ERR_UNSUPPORTED:
        return "this device, driver or process cannot do it";
    case DRY_ERR_CANCELLED:
        return "the program asked to stop";
    }
    return "the reason is not known";
}
