/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_MESSAGE_REPORT_H
#define TOOL_MESSAGE_REPORT_H

/*
 * The report on out-of-memory messages found in a text, as text and as JSON.
 *
 * JSON, schema drystone.message/1:
 *
 *     schema, file         file: the path, "-" for standard input, null for a text given
 *     bytes_read           bytes of the text that were read
 *     count                messages found
 *     distinct             messages after merging those equal in everything but the rank
 *     left_out             messages not in `messages`: beyond the 64th distinct one
 *     messages[]           the distinct messages, sorted by offset:
 *       count              occurrences in the text
 *       offset, line       of the first occurrence; bytes from 0, lines from 1
 *       labels[]           the first 16 ranks that printed the message: "rank3"
 *       form, backend      "modern", "cuda": dry_message_form_name(), ..._backend_name()
 *       device             null if not named
 *       releases           "2.2 to 2.4", or null
 *       is_cut             the text ends before the message does
 *       tried, total, free, process, allowed, allocated, private_pools, unallocated,
 *       reserved, non_pytorch, expandable_reserve
 *                          {"bytes", "low", "high"}; null: not printed; "beyond": printed,
 *                          but impossible, such as "17179869184.00 GiB"
 *       processes[]        {"pid", "memory": as above, "is_this": bool}
 *       processes_left_out number of processes beyond the 16th
 *       hints[]            "expandable_segments", "max_split_size_mb",
 *                          "expandable_segments_reserve", "empty_cache",
 *                          "high_watermark_ratio"
 *       kind               which text of another program, "vllm-length", or null: PyTorch's
 *       figures[]          {"name": dry_message_quantity_name(), "unit": "bytes", "count" or
 *                          "millionths", "is_negative", "value": as above}
 *       derived            reserved, unallocated, process, others, non_pytorch, as above
 *       verdict            cause: dry_cause_name(); is_certain; alternatives[]: causes
 *       proofs[]           reason, cause ("none": a remark), text, terms[], sum
 *                          terms: {"name", "sign": 1 or -1, "bytes", "low", "high"};
 *                          sum: {"bytes", "low", "high"}, null without terms
 *       checks[]           equation, result ("holds", "open", "fails"), terms[], remainder
 *       steps[]            cause that the step is for ("none": any), why, code or null,
 *                          language: "shell", "python" or null
 */

#include <stdbool.h>

/*
 * Report the messages in `text`, or in the file at `path` if `text` is NULL; `path` NULL
 * or "-" is standard input. Returns an exit_code: EXIT_FOUND if a message was found;
 * EXIT_INPUT after printing a reason if none was found or the file is unreadable.
 */
int message_report_run(const char *command, const char *text, const char *path,
                       bool json);

/*
 * Return whether a file is a text that no reader of traces knows: a log. Reads its first
 * 64 KiB. False for what is no file.
 */
bool message_report_is_log(const char *path);

#endif
