/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ANONYMIZE_H
#define DRY_ANONYMIZE_H

/*
 * Make a copy of a trace that is safe to share: names, paths and labels are replaced;
 * sizes, addresses and order stay.
 *
 *     uint8_t key[16];
 *     getrandom(key, sizeof key, 0);
 *     struct dry_anonymize_options options;
 *     dry_anonymize_options_init(&options);
 *     options.key = key;
 *     options.key_bytes = sizeof key;
 *     if (dry_trace_anonymize(trace, &options, &hidden, &err) != DRY_OK) ...
 *     if (dry_trace_write(hidden, &sink, &err) != DRY_OK) ...
 *     if (dry_anonymize_verify(trace, &options, &written, &proof, &err) != DRY_OK ||
 *         !proof.is_verified) ...
 *
 * Replaced   Names and files of frames, user_metadata (labels), compile_context, names of
 *            annotations, actions, keys and values that this library does not know, and
 *            words of the allocator settings that are no option of PyTorch. A string
 *            becomes a letter, '_' and hexadecimal digits of its SipHash-2-4 under the
 *            key: f_3fa92c1d a function, d_... a folder, m_... a file, s_... any other
 *            text. Each component of a path is replaced; the path keeps its separators,
 *            and the ending of its file if that ending is a common one. Equal strings
 *            have equal digits and different strings have different digits: on a
 *            collision the later string gets more digits. Numbers above 255 under unknown
 *            keys are replaced too. Times begin at 0.
 * Kept       Sizes, addresses, streams, pools, the order and number of all records, line
 *            numbers and time differences. Public names stay as well: keys and actions of
 *            PyTorch, its allocator options, functions and files of an installed PyTorch
 *            (site-packages/torch/...), C++ functions all of whose names begin with at::,
 *            c10::, torch::, std:: or similar, Python's <module> and <lambda>.
 *
 * Sizes and their order can tell a model apart from others; they are not hidden.
 *
 * Strength   Without the key, guessed names cannot be tested against the digits. So the
 *            key must not be guessable: use 16 random bytes and do not store them.
 * Ownership  The caller owns the new trace, which is independent of the old one.
 * Errors     Each function names its own.
 * Threads    The functions may run at once, on the same trace too.
 * Cost       O(size of the trace), or of the bytes that are read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/status.h>
#include <drystone/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_anonymize_options {
    size_t struct_size; /* set by dry_anonymize_options_init() */
    const struct dry_memory *memory;
    const void *key; /* required: the library has no randomness of its own */
    /* 16 bytes are used as they are; any other number is hashed to 16. */
    size_t key_bytes;
    bool hash_all;   /* also replace functions and files of PyTorch */
    bool drop_lines; /* set all line numbers to 0, which may make frames equal */
    bool keep_times; /* do not shift times to begin at 0 */
    uint32_t digits; /* the least number of digits, 1 to 16; default 8 */
};

/* Set all options to their defaults; the caller must then set the key. */
DRY_API void dry_anonymize_options_init_sized(struct dry_anonymize_options *options,
                                              size_t struct_size);
#define dry_anonymize_options_init(options)                                              \
    dry_anonymize_options_init_sized(options, sizeof *(options))

/*
 * Make a copy of `trace`, of the same kind, with its strings replaced under the key of
 * `options`. The copy is *anonymized; dry_trace_write() can write it if it can write
 * `trace`. O(size of the trace). Errors: ARGUMENT (no key, too many digits, `extra` that
 * is no run of opcodes), MEMORY, LIMIT (64 digits do not tell two strings apart).
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_anonymize(
    const struct dry_trace *trace, const struct dry_anonymize_options *options,
    struct dry_trace **anonymized, struct dry_error *err);

/* Numbers of distinct strings: replaced, and kept as they were. */
struct dry_anonymize_count {
    uint64_t replaced, kept;
};

/* The result of dry_anonymize_verify(): whether the proof holds, and its counts. */
struct dry_anonymize_proof {
    size_t struct_size; /* DRY_INIT sets it */
    bool is_verified;
    uint8_t reserved[7];
    struct dry_anonymize_count functions; /* function names of frames */
    /* `kept` counts paths kept whole; components of other paths may be kept, too. */
    struct dry_anonymize_count files;
    struct dry_anonymize_count texts; /* metadata, labels, compile contexts, actions */
    struct dry_anonymize_count annotations; /* names and stages */
    struct dry_anonymize_count settings;    /* words of the settings string */
    /* Values under unknown keys; each number counts. */
    struct dry_anonymize_count values;
    /* Dicts left out because their unknown keys would have become too long. */
    uint64_t dropped_values;
    /* Words of 4 bytes or more in the original that must not occur in the result. */
    uint64_t searched_words;
    /* Words of the original that also occur in kept strings, so finding them proves
       nothing. */
    uint64_t public_words;
    uint64_t found_texts; /* searched words found in the strings of the result */
    /* Searched words of 8 bytes or more found anywhere in the result's bytes. An
       occurrence that spans two reads may count twice. */
    uint64_t found_bytes;
    char text[168]; /* the first finding that refutes the proof; "" if there is none */
};

/*
 * Prove a result: read what was written and compare it with the original.
 *
 * The result must have the same devices, events, sizes, addresses, lanes, segments and
 * blocks; its times may be shifted, all by one amount. Its strings and stacks must be
 * equal exactly where the original's are. Every string must be public or made of digits.
 * No word of a replaced string may occur in it: from 4 bytes on in its strings, from 8
 * bytes on in its raw bytes. Shorter words may occur in numbers by chance. A trace that a
 * builder made must hold only actions that a snapshot can hold.
 *
 * `options` are those that made the result; the key is needed here only to check replaced
 * numbers. `written` is read to its end, as dry_trace_read() reads it. DRY_OK: the proof
 * was tried, and *proof has the outcome. Other statuses: those of dry_trace_read(),
 * MEMORY, and ARGUMENT for an original whose `extra` is no run of opcodes. O(bytes) for
 * any input.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_anonymize_verify(
    const struct dry_trace *original, const struct dry_anonymize_options *options,
    const struct dry_source *written, struct dry_anonymize_proof *proof,
    struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
