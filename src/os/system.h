/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_SYSTEM_H
#define DRYI_OS_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

/* Return the kernel's page size in bytes: 4 KiB on x86-64, up to 64 KiB on arm64. */
uint64_t dryi_system_page_bytes(void);
/* Return the bytes of memory of the machine; UINT64_MAX if unknown. */
uint64_t dryi_system_memory_bytes(void);
/* Return microseconds since the epoch, by CLOCK_REALTIME. */
uint64_t dryi_system_time_us(void);
/* Return nanoseconds since the machine started, including sleep. All processes see the
   same clock. */
uint64_t dryi_system_uptime_ns(void);

/* Describe the failure of a call that has just set errno: "SUBJECT: WHAT: No such file or
   directory". `err` gets the errno for any `status`. Returns `status`. */
enum dry_status dryi_system_fail(struct dry_error *err, enum dry_status status,
                                 const char *subject, const char *what);

/* Return the process id in this PID namespace, and the name from /proc/self/comm, "" if
   unreadable. */
uint64_t dryi_system_process(void);
void dryi_system_process_name(char *text, size_t capacity);

#endif
