/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_SYSTEM_H
#define DRYI_OS_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* The bytes of a page as the kernel maps it: 4 KiB on x86-64, up to 64 KiB on arm64. */
uint64_t dryi_system_page_bytes(void);
/* The memory of the whole machine; UINT64_MAX if the system does not say. */
uint64_t dryi_system_memory_bytes(void);
/* Microseconds since the epoch, by the system's clock. */
uint64_t dryi_system_time_us(void);
/* Nanoseconds since the machine started, sleep included: the same in all processes. */
uint64_t dryi_system_uptime_ns(void);

/*
 * Describe the failure of a call that has just set errno, which goes into `err` with any status:
 * "SUBJECT: WHAT: No such file or directory". Returns `status`.
 */
enum dry_status dryi_system_fail(struct dry_error *err, enum dry_status status,
                                 const char *subject, const char *what);

/* This process, as its PID namespace counts; and what /proc calls it, "" if there is none. */
uint64_t dryi_system_process(void);
void dryi_system_process_name(char *text, size_t room);

#endif
