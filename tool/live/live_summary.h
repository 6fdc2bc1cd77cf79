/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LIVE_SUMMARY_H
#define TOOL_LIVE_SUMMARY_H

/*
 * Texts and sums of a watch, shared by text, JSON, the screen and the thresholds.
 *
 * A process's sums cover its sources on devices; pinned caches belong to the host. Pages
 * are hostile input, so sums saturate.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/term.h"
#include "live/watch.h"

#define LIVE_TEXT_BYTES 160

/* Return a state's name: "live", "seen", "bad", "ended". */
const char *live_state_name(enum watch_state state);
/* Return a source kind's name: "pool", "pinned", "other". */
const char *live_kind_name(uint32_t kind);

/* Return the process ID in our namespace, else the one in its page; 0: unknown. */
uint64_t live_process_number(const struct watch_process *process);
/* Tell whether `wanted` is the process ID or a part of the name. NULL matches all. */
bool live_is_wanted(const struct watch_process *process, const char *wanted);
/* Return the only wanted process, or the only one with a page; NULL: none or several. */
struct watch_process *live_find_only(const struct watch *watch, const char *wanted);

/* Sum over the process's sources; WATCH_UNKNOWN if no source reports a value. */
uint64_t live_allocated(const struct watch_process *process);
uint64_t live_stranded(const struct watch_process *process);
/* Return the least bytes that one of the process's sources can still reserve. */
uint64_t live_headroom(const struct watch_process *process);
/* Return the share of a source's limit that is used up; negative: unknown. */
double live_share(const struct watch_source *source);

/* List the device numbers: "0", "0,2", "0-7", "host", or "" if unknown. */
void live_name_devices(const struct watch_process *process, char text[LIVE_TEXT_BYTES]);

/* Format bytes with three digits, at most 8 columns: "71.2 GiB"; "-" if unknown. */
const char *live_format_bytes(uint64_t bytes, char text[TERM_NUMBER_BYTES]);
/* Describe the growth: "+12.00 MiB/s: full in 52 s at this rate", or "steady". */
void live_format_trend(const struct watch_source *source, char text[LIVE_TEXT_BYTES]);
/* Return the seconds since the blocks of a detail were walked. Requires that the detail
   has a time. */
double live_detail_age(const struct dry_live_detail *detail, uint64_t now_ns);
/* Format a duration in one unit, "3 min": estimates do not deserve more precision. */
const char *live_format_seconds(double seconds, char text[TERM_NUMBER_BYTES]);
/* Cut printable text to `columns`, at least 4, by replacing its middle. */
void live_cut(char text[LIVE_TEXT_BYTES], const char *from, size_t columns);

#endif
