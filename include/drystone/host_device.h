/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_HOST_DEVICE_H
#define DRY_HOST_DEVICE_H

/*
 * The host's own memory as a device: a pool on it returns pointers that the program can
 * dereference.
 *
 *     struct dry_host_device_options options;
 *     dry_host_device_options_init(&options);
 *     if (dry_host_device_create(&options, &host, &err) != DRY_OK) ...
 *     struct dry_device device = dry_host_device_get_device(host);
 *     ...                                   for example, create a pool on it
 *     dry_host_device_destroy(host);
 *
 * Addresses are reserved without memory (PROT_NONE). A page is a range of one memfd, so
 * that it can be mapped at different addresses over time, as on a GPU. A page has memory
 * from create to release, zeroed at first. There are no streams: an event has passed as
 * soon as it is recorded. After fork the child shares the pages and has copies of all
 * other memory.
 *
 * Ownership  dry_host_device_create() and dry_host_device_destroy(). All memory must be
 *            returned to the device before destroy.
 * Errors     The statuses of <drystone/device.h>. NO_SPACE also if capacity_bytes is
 *            reached.
 * Threads    Any thread may call.
 * Units      Bytes.
 */

#include <drystone/device.h>
#include <drystone/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_host_device;

struct dry_host_device_options {
    size_t struct_size; /* set by dry_host_device_options_init() */
    const struct dry_memory *memory;
    uint64_t capacity_bytes; /* default: all memory of the machine */
    uint64_t page_bytes;     /* a power of two, at least the base page; default 2 MiB */
};

DRY_API void dry_host_device_options_init_sized(struct dry_host_device_options *options,
                                                size_t struct_size);
#define dry_host_device_options_init(options)                                            \
    dry_host_device_options_init_sized(options, sizeof *(options))
DRY_API DRY_CHECK_RESULT enum dry_status dry_host_device_create(
    const struct dry_host_device_options *options, struct dry_host_device **host,
    struct dry_error *err);
DRY_API void dry_host_device_destroy(struct dry_host_device *host);
DRY_API struct dry_device dry_host_device_get_device(struct dry_host_device *host);

#ifdef __cplusplus
}
#endif

#endif
