/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_STATUS_H
#define DRY_STATUS_H

/*
 * How calls end, why they failed, and how structs may grow.
 *
 * Every call that can fail returns enum dry_status. Cold calls (open, parse, create, run) also
 * fill a struct dry_error that the caller owns. Hot calls return the status alone.
 *
 * Ownership  struct dry_error is plain data: copy it, there is nothing to free.
 * Errors     A failed call leaves its outputs untouched unless its comment says otherwise.
 *            Comments name statuses without DRY_ERR_.
 * NULL       Everywhere: without `err` nothing is said. Options that are NULL are the defaults,
 *            or ARGUMENT if one of them is required. Destroy and close do nothing with NULL. No
 *            other argument may be NULL, unless its function says so.
 * Threads    Everything here may be called from any thread.
 * Units      `offset` is in bytes.
 *
 * A program runs with a library of another release, older or newer, whose structs have more or
 * fewer members. A struct begins with `struct_size` if it may grow: its caller owns it and hands
 * over its address, as options or for a result. No struct that another struct or an array holds
 * has one: it never changes. A struct of the library's, which a caller only reads, grows at its
 * end.
 *
 *     struct dry_pool_options options;
 *     dry_pool_options_init(&options);
 *     struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
 *     if (dry_pool_get_counters(pool, &counters) != DRY_OK) ...
 *
 * Options    Members beyond the caller's struct have their defaults. Members beyond the
 *            library's must be zero, otherwise the call is UNSUPPORTED.
 * Results    Members that either side lacks are left out.
 * Sizes      A struct_size of 0 is ARGUMENT: nobody began the struct.
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

/* The numbers are fixed for ever; new ones are only appended. */
enum dry_status {
    DRY_OK = 0,
    DRY_END = 1,              /* an iteration is over */
    DRY_ERR_ARGUMENT = -1,    /* the caller broke a documented rule */
    DRY_ERR_MEMORY = -2,      /* the host has no memory for our own records */
    DRY_ERR_FORMAT = -3,      /* the input is not what it claims to be */
    DRY_ERR_LIMIT = -4,       /* the input is well formed, but larger than allowed */
    DRY_ERR_NO_SPACE = -5,    /* the device (or pool) has no room */
    DRY_ERR_SYSTEM = -6,      /* the operating system or driver refused; see os_errno */
    DRY_ERR_UNSUPPORTED = -7, /* well formed, but nothing here can do it */
    DRY_ERR_CANCELLED = -8,   /* the caller's callback asked to stop */
};

#define DRY_NO_OFFSET UINT64_MAX

/* A failure; `text` is for people: one line, no newline, with the value and the limit. */
struct dry_error {
    enum dry_status status;
    int os_errno;    /* 0 if the operating system was not asked */
    uint64_t offset; /* byte of the input the text speaks of; DRY_NO_OFFSET if none */
    char text[232];
};

/* The name of a status, e.g. "DRY_ERR_FORMAT"; "unknown status" for other numbers. */
DRY_API const char *dry_status_name(enum dry_status status);

/* The reason in words for people, e.g. "the operating system or the driver refuses". */
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
/* A struct that begins with its struct_size; all else is zero. Options have init functions. */
#define DRY_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

#endif
