/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STATUS_H
#define DRY_STATUS_H

/*
 * Statuses, errors, and the rules by which structs may grow.
 *
 * Every call that can fail returns enum dry_status. Cold calls (open, parse, create, run)
 * also fill a struct dry_error that the caller owns. Hot calls return the status alone.
 *
 * Ownership  struct dry_error is plain data: copy it, there is nothing to free.
 * Errors     A failed call leaves its outputs untouched unless its comment says
 *            otherwise. Comments name statuses without DRY_ERR_.
 * NULL       `err` may be NULL everywhere. `options` NULL means the defaults, or ARGUMENT
 *            if an option is required. Destroy and close do nothing with NULL. No other
 *            argument may be NULL, unless its function says so.
 * Threads    Everything here may be called from any thread.
 * Units      `offset` is in bytes.
 *
 * A program may run with an older or newer release of the library, whose structs have
 * fewer or more members. A struct that may grow begins with `struct_size`; the caller
 * owns it and passes its address, as options or for a result. A struct inside another
 * struct or an array has none, because it never changes. A struct that the library owns
 * and a caller only reads grows at its end.
 *
 *     struct dry_pool_options options;
 *     dry_pool_options_init(&options);
 *     struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
 *     if (dry_pool_get_counters(pool, &counters) != DRY_OK) ...
 *
 * Options    Members beyond the caller's struct get their defaults. Members beyond the
 *            library's struct must be zero, otherwise the call returns UNSUPPORTED.
 * Results    Members that either side lacks are not filled.
 * Sizes      A struct_size of 0 is ARGUMENT: the struct was not initialized.
 */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DRY_API __attribute__((visibility("default")))
#define DRY_CHECK_RESULT __attribute__((warn_unused_result))
#else
#define DRY_API
#define DRY_CHECK_RESULT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers never change; new ones are appended. */
enum dry_status {
    DRY_OK = 0,
    DRY_END = 1,              /* the end of an iteration */
    DRY_ERR_ARGUMENT = -1,    /* the caller broke a documented rule */
    DRY_ERR_MEMORY = -2,      /* the host has no memory for the library's own records */
    DRY_ERR_FORMAT = -3,      /* the input is not what it claims to be */
    DRY_ERR_LIMIT = -4,       /* the input is well formed, but larger than allowed */
    DRY_ERR_NO_SPACE = -5,    /* the device or pool has no free memory */
    DRY_ERR_SYSTEM = -6,      /* the operating system or driver failed; see os_errno */
    DRY_ERR_UNSUPPORTED = -7, /* well formed, but this release or machine does not support
                                 it */
    DRY_ERR_CANCELLED = -8,   /* the caller's callback asked to cancel */
};

#define DRY_NO_OFFSET UINT64_MAX

/* A failure; `text` is for people: one line, no newline, with the value and the limit. */
struct dry_error {
    enum dry_status status;
    int os_errno;    /* errno; 0: not from the operating system */
    uint64_t offset; /* byte offset in the input; DRY_NO_OFFSET: none */
    char text[232];
};

/* Return the name of a status, "DRY_ERR_FORMAT"; "unknown status" for other numbers. */
DRY_API const char *dry_status_name(enum dry_status status);

/* Return the reason for people, "the operating system or the driver refuses". */
DRY_API const char *dry_status_text(enum dry_status status);

#ifdef __cplusplus
}

template <typename Type>
inline Type
dry_init()
{
    Type made = Type();
    made.struct_size = sizeof made;
    return made;
}
#define DRY_INIT(type) dry_init<type>()
#else
/* A struct with its struct_size set and all other members zero. Options have init
   functions instead. */
#define DRY_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

#endif
