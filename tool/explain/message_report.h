/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MESSAGE_REPORT_H
#define TOOL_MESSAGE_REPORT_H

/*
 * The report on out-of-memory messages in a text, for people and for machines.
 *
 * JSON, schema drystone.message/1:
 *
 *     schema, file         file: the path, "-" for standard input, null for a text given
 *     bytes_read           of the text
 *     count                messages found
 *     distinct             different ones: equal in all that was read, ranks apart
 *     left_out             messages beyond the 64th different one; not in `messages`
 *     messages[]           the different ones, by place:
 *       count              how often it stands in the text
 *       offset, line       of the first; bytes from 0, lines from 1
 *       labels[]           marks of the ranks that had it, "rank3"; the first 16
 *       form, backend      "modern", "cuda": dry_message_form_name(), ..._backend_name()
 *       device             null if not named
 *       releases           "2.2 to 2.4", or null
 *       is_cut             the text ends before its form does
 *       tried, total, free, process, allowed, allocated, private_pools, unallocated,
 *       reserved, non_pytorch, expandable_reserve
 *                          {"bytes", "low", "high"}; null: not printed; "beyond": printed,
 *                          but no amount of memory, as "17179869184.00 GiB" is
 *       processes[]        {"pid", "memory": as above, "is_this": bool}
 *       processes_left_out beyond the 16th
 *       hints[]            "expandable_segments", "max_split_size_mb",
 *                          "expandable_segments_reserve", "empty_cache",
 *                          "high_watermark_ratio"
 *       derived            reserved, unallocated, process, others, non_pytorch, as above
 *       verdict            cause: dry_cause_name(); is_certain; alternatives[]: causes
 *       proofs[]           reason, cause ("none": a remark), text, terms[], sum
 *                          terms: {"name", "sign": 1 or -1, "bytes", "low", "high"};
 *                          sum: {"bytes", "low", "high"}, null where there are no terms
 *       checks[]           equation, result ("holds", "open", "fails"), terms[], remainder
 *       steps[]            cause (that it is for; "none": any), why, code (or null),
 *                          language ("shell", "python" or null)
 */

#include <stdbool.h>

/*
 * Report the messages in `text`, or in the file at `path` if `text` is NULL; `path` NULL or
 * "-" is standard input. Returns an exit_code: EXIT_FOUND if there was a message, EXIT_INPUT
 * if there was none or the file could not be read, and the reason is on standard error.
 */
int message_report_run(const char *command, const char *text, const char *path,
                       bool json);

#endif
