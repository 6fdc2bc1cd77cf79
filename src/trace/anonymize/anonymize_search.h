/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_ANONYMIZE_SEARCH_H
#define DRYI_ANONYMIZE_SEARCH_H

/*
 * Search an anonymous trace for words of its original.
 *
 * All strings of the original are gathered, by role. The words of replaced strings are
 * searched for. Words that also occur in kept strings, or in PyTorch's own vocabulary,
 * are excused: `forward` may be a function of the user and one of PyTorch. The check that
 * each string was replaced, one by one, is in anonymize_verify.c.
 */

#include <drystone/anonymize.h>

#include "trace/anonymize/anonymize_rules.h"
#include "trace/anonymize/word_set.h"
#include "trace/model/trace.h"

struct dryi_anonymize_search {
    const struct dry_trace *original;
    const struct dry_anonymize_options *options;
    struct dry_anonymize_proof *proof;
    struct dry_memory memory;
    struct dryi_word_set words;
    struct dryi_intern seen; /* a letter for the string's role, then the string */
    char *scratch;
    size_t scratch_capacity;
    bool is_failed; /* memory ran out, or is_bad */
    bool is_bad;    /* some unknown keys are not a valid run of opcodes */
    /*
     * State of reading through the search. `tail` holds the last bytes read, because a
     * word may cross two reads.
     */
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

/* Gather and count all words. Returns false if memory ran out or s->is_bad. */
bool dryi_anonymize_search_gather(struct dryi_anonymize_search *s);

/* Return a source that passes on the bytes of `source` and searches them. */
struct dry_source dryi_anonymize_search_source(struct dryi_anonymize_search *s,
                                               const struct dry_source *source);

/* Search all strings of the trace that was read again. False: memory ran out. */
bool dryi_anonymize_search_strings(struct dryi_anonymize_search *s,
                                   const struct dry_trace *again);

/* Record a finding against the result; the first one stays. */
__attribute__((format(printf, 2, 3))) void dryi_proof_refute(
    struct dry_anonymize_proof *proof, const char *format, ...);

#endif
