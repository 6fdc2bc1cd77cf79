/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_ANONYMIZE_H
#define DRY_ANONYMIZE_H

/*
 * A trace to share: what happened stays, who and where does not.
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
 *            becomes a letter, '_' and hexadecimal digits of its SipHash-2-4 under the key:
 *            f_3fa92c1d a function, d_... a folder, m_... a file, s_... any other text. A
 *            path is replaced part by part and keeps its separators and the ending of its
 *            file, where that is a common one. Equal strings have equal digits, different
 *            strings have different ones: where two would meet, the later has more digits.
 *            Numbers above 255 under unknown keys are replaced too. Times begin at 0.
 * Kept       Sizes, addresses, streams, pools, the order and number of everything, lines,
 *            differences of time; what is public knowledge: keys and actions of PyTorch,
 *            its allocator options, functions and files of an installed PyTorch
 *            (site-packages/torch/...), C++ functions all of whose names begin with at::,
 *            c10::, torch::, std:: or the like, Python's <module> and <lambda>.
 *
 * Sizes and their order can tell a model apart from others; that is what a trace is for.
 *
 * Strength   Without the key, candidates cannot be tried against the digits. A key that can
 *            be guessed is as good as none: give 16 random bytes and forget them.
 * Ownership  The new trace is the caller's, and independent of the old.
 * Threads    The functions may run at once, on the same trace too.
 */

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
    const void *key;     /* must be given: the library has no randomness of its own */
    size_t key_bytes;    /* 16: used as they are; any other number is hashed to 16 */
    uint32_t hash_all;   /* replace functions and files of PyTorch, too */
    uint32_t drop_lines; /* all line numbers become 0; frames may become equal by it */
    uint32_t keep_times; /* do not shift them */
    uint32_t digits;     /* least number of digits, 1 to 16; default 8 */
};

DRY_API void dry_anonymize_options_init(struct dry_anonymize_options *options);

/*
 * A copy of `trace` of the same kind with its strings replaced, so that it can be written
 * with dry_trace_write() if `trace` can. O(size of the trace). Fails with ARGUMENT (no key,
 * too many digits, `extra` that is no run of opcodes), MEMORY, or LIMIT when 64 digits do
 * not tell two strings apart.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_trace_anonymize(
    const struct dry_trace *trace, const struct dry_anonymize_options *options,
    struct dry_trace **anonymized, struct dry_error *err);

/* Counts of different strings: how many were replaced, how many stand as they were. */
struct dry_anonymize_count {
    uint64_t replaced, kept;
};

struct dry_anonymize_proof {
    uint32_t is_verified;
    uint32_t reserved;
    struct dry_anonymize_count functions; /* names of frames */
    struct dry_anonymize_count files; /* kept: in whole; parts may be kept in others */
    struct dry_anonymize_count texts; /* metadata, labels, compile contexts, actions */
    struct dry_anonymize_count annotations; /* names and stages */
    struct dry_anonymize_count settings;    /* words of the settings string */
    struct dry_anonymize_count values;      /* under unknown keys; numbers one by one */
    uint64_t dropped_values; /* dicts whose unknown keys would have grown too long */
    uint64_t searched_words; /* of the original, 4 bytes or longer, that must not occur */
    uint64_t public_words;   /* found in what is kept, so that nothing can be said */
    uint64_t found_texts;    /* hidden words in the strings of the result */
    uint64_t found_bytes;    /* of 8 bytes or longer, anywhere in its bytes, or more */
    char text[168];          /* what speaks against it; "" if nothing */
};

/*
 * Prove a result: read what was written and compare it with the original. It must have the
 * same devices, events, sizes, addresses, lanes, segments and blocks, times shifted by one
 * amount, and strings and stacks that are equal exactly where the original's are; every
 * string must be either public or made of digits; and no word of what was replaced may
 * occur in it: in any string from 4 bytes on, in the bytes as they are from 8 bytes on
 * (shorter ones occur in numbers by chance). A trace that a builder made must hold only
 * actions that a snapshot can.
 *
 * `options` are those the result was made with; the key serves only to check numbers.
 * DRY_OK: the proof was tried, and *proof says how it ended; other than that as
 * dry_trace_read(), which reads `written` to its end. O(bytes), whatever they are.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_anonymize_verify(
    const struct dry_trace *original, const struct dry_anonymize_options *options,
    const struct dry_source *written, struct dry_anonymize_proof *proof,
    struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
