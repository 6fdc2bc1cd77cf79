/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_WORDS_H
#define TOOL_LIVE_WORDS_H

/*
 * A watch in words and sums: text, JSON, screens and thresholds say the same.
 *
 * Sums of a process are over its sources of devices; pinned caches are the host's. A page is
 * hostile, so a sum that would not fit stays at the largest number.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/term.h"
#include "live/watch.h"

#define LIVE_WORDS_BYTES 160

/* "live", "seen", "bad", "ended". */
const char *live_state_name(enum watch_state state);
/* "pool", "pinned", "other". */
const char *live_kind_name(uint32_t kind);

/* The process's number here, else the one that its page tells; 0: none. */
uint64_t live_process_number(const struct watch_process *process);
/* Tell whether `wanted` is the process's number, or a part of its name. NULL: all are. */
bool live_is_wanted(const struct watch_process *process, const char *wanted);
/* The one wanted process, or the only one with a page; NULL: there are none, or several. */
struct watch_process *live_find_only(const struct watch *watch, const char *wanted);

/* WATCH_UNKNOWN: no source tells. */
uint64_t live_allocated(const struct watch_process *process);
uint64_t live_stranded(const struct watch_process *process);
/* The least that one of its sources may still reserve. */
uint64_t live_room(const struct watch_process *process);
/* The part of a source's limit that cannot be reserved any more; negative: not known. */
double live_share(const struct watch_source *source);

/* "0", "0,2", "0-7"; "host"; "" if no device is known. */
void live_name_devices(const struct watch_process *process, char text[LIVE_WORDS_BYTES]);

/* "71.2 GiB", three digits, at most 8 columns; "-" for WATCH_UNKNOWN. */
const char *live_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES]);
/* "+12.00 MiB/s: full in 52 s at this rate", "steady", "not known". */
void live_format_trend(const struct watch_source *source, char text[LIVE_WORDS_BYTES]);
/* Seconds since the blocks of a detail were walked, which has a time. */
double live_detail_age(const struct dry_live_detail *detail, uint64_t now_ns);
/* "3 min": one unit, for what is no promise. */
const char *live_format_seconds(double seconds, char text[TERM_NUMBER_BYTES]);
/* Printable text of at most so many columns, at least 4; what is longer loses its middle. */
void live_cut(char text[LIVE_WORDS_BYTES], const char *from, size_t columns);

#endif
