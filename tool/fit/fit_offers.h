/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIT_OFFERS_H
#define TOOL_FIT_OFFERS_H

/*
 * The changes that drystone.fit (python/drystone/fit) offers for a program, from the facts of a
 * dry run. The program's own process wrote them, so they are checked like a foreign file.
 */

#include <jansson.h>

#include "dryrun/vary.h"
#include "fit/fit_search.h"

#define FIT_LABEL_BYTES 400

struct fit_offers {
    json_t *root; /* owned; the members below point into it */
    struct fit_offer list[FIT_OFFERS_MAX];
    const json_t *json[FIT_OFFERS_MAX];
    size_t count;
    size_t words; /* the offer of fit_offers_add_words(); SIZE_MAX: there is none */
};

/* Read the offers of facts["fit"]. EXIT_INPUT after a message if they have another form. Call
   fit_offers_finish() in any case. */
int fit_offers_read(struct fit_offers *offers, const char *command, const json_t *fit);
/* Return {NAME: reason} of the changes that are not offered; NULL: there are none, or memory ran
   out. */
json_t *fit_offers_read_refused(const json_t *fit);
/* Add the values of --vary, which all names have as many of: the first are the program's as it is,
   the others a strength. No change of drystone.fit. */
int fit_offers_add_words(struct fit_offers *offers, const char *command,
                         const struct vary *vary);
void fit_offers_finish(struct fit_offers *offers);

/* Return the combination of --vary in a set. */
size_t fit_offers_find_words(const struct fit_offers *offers, const struct vary *vary,
                             const struct fit_set *set);
/* Return {NAME: VALUE, ...} of a set, without its words; NULL: memory ran out. */
json_t *fit_offers_make_changes(const struct fit_offers *offers,
                                const struct fit_set *set);
/* Return the text of DRYSTONE_FIT for changes, which this call releases. The caller frees it. NULL:
   memory ran out. */
char *fit_offers_make_variable(json_t *changes, bool looks, bool counts);
/* Write a set in words: "checkpoint 11 of 32 layers + allocator paged". */
void fit_offers_write(const struct fit_offers *offers, const struct fit_set *set,
                      char text[FIT_LABEL_BYTES]);
/* Return a list of lines of Python that a person would write for a set; NULL: memory ran out. */
json_t *fit_offers_make_hand(const struct fit_offers *offers, const struct fit_set *set);
/* Tell whether facts["fit"] says that each change of a set was made; else write why not. */
bool fit_offers_check(const struct fit_offers *offers, const struct fit_set *set,
                      const json_t *fit, char why[FIT_LABEL_BYTES]);
/* Return what a set does to numbers, in words. */
const char *fit_numbers_name(enum fit_numbers numbers);
/* Return the same as a word of JSON: "same", "rows" or "other". */
const char *fit_numbers_key(enum fit_numbers numbers);

#endif
