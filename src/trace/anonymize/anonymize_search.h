/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ANONYMIZE_SEARCH_H
#define DRYI_ANONYMIZE_SEARCH_H

/*
 * The words that must not be in an anonymous trace, and the search for them.
 *
 * All strings of the original are gathered, by the part they play. Strings that are
 * replaced give words to search for. Words that occur in kept strings, or in PyTorch's
 * own vocabulary, are excused: `forward` may be a function of the user and one of
 * PyTorch. The check that each string was replaced, one by one, is in anonymize_verify.c.
 */

#include <drystone/anonymize.h>

#include "trace/anonymize/anonymize_rules.h"
#include "trace/anonymize/words.h"
#include "trace/model/trace.h"

struct dryi_anonymize_search {
    const struct dry_trace *original;
    const struct dry_anonymize_options *options;
    struct dry_anonymize_proof *proof;
    struct dry_memory memory;
    struct dryi_words words;
    struct dryi_intern seen; /* a letter for the part a string plays, and the string */
    char *scratch;
    size_t scratch_capacity;
    bool is_failed; /* no memory, or `is_bad` */
    bool is_bad;    /* unknown keys that are no run of opcodes */
    /* Reading through the search: what was read last, for words across two reads. */
    struct dry_source source;
    unsigned char tail[DRYI_WORD_BYTES_MAX - 1];
    size_t tail_count;
    uint64_t byte_count;
};

void dryi_anonymize_search_init(struct dryi_anonymize_search *s,
                                const struct dry_trace *original,
                                const struct dry_anonymize_options *options,
                                struct dry_anonymize_proof *proof);
void dryi_anonymize_search_finish(struct dryi_anonymize_search *s);

/* Gather and count everything. False: s->is_bad, or no memory. */
bool dryi_anonymize_search_gather(struct dryi_anonymize_search *s);

/* A source that gives what `source` gives, and searches it. */
struct dry_source dryi_anonymize_search_source(struct dryi_anonymize_search *s,
                                               const struct dry_source *source);

/* Search all strings of the trace that was read. False: no memory. */
bool dryi_anonymize_search_strings(struct dryi_anonymize_search *s,
                                   const struct dry_trace *again);

/* Say what speaks against the result; the first finding stays. */
__attribute__((format(printf, 2, 3))) void dryi_proof_refute(
    struct dry_anonymize_proof *proof, const char *format, ...);

#endif
