/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any JSON as what a program's process told of its changes. Offers that are taken give labels,
 * changes and lines for each of their values, printable and without a fault.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "fit/fit_offers.h"

static void
require(int condition)
{
    if (!condition)
        abort();
}

/* Use a set as a run does. */
static void
use(const struct fit_offers *offers, const struct fit_set *set, const json_t *fit)
{
    char label[FIT_LABEL_BYTES], why[FIT_LABEL_BYTES];
    json_t *changes = fit_offers_make_changes(offers, set),
           *lines = fit_offers_make_hand(offers, set);
    fit_offers_write(offers, set, label);
    require(strlen(label) < sizeof label && !strpbrk(label, "\n\r\033"));
    if (!fit_offers_check(offers, set, fit, why))
        require(why[0] != '\0' && strlen(why) < sizeof why && !strpbrk(why, "\n\r\033"));
    require(json_is_array(lines) && json_object_size(changes) <= offers->count);
    char *variable = fit_offers_make_variable(changes, false, true);
    require(variable != NULL && !strchr(variable, '\n'));
    free(variable);
    json_decref(lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fit_offers offers;
    json_t *fit = json_loadb((const char *)data, size, 0, NULL);
    if (fit)
        json_decref(fit_offers_read_refused(fit));
    if (fit && fit_offers_read(&offers, "fit", fit) == EXIT_FINE) {
        char *values[] = {(char *)(uintptr_t) "1", (char *)(uintptr_t) "2"};
        struct vary vary = {.names = {{(char *)(uintptr_t) "A", values, 2}},
                            .name_count = 1,
                            .combination_count = 2};
        require(fit_offers_add_words(&offers, "fit", &vary) == EXIT_FINE);
        struct fit_set set = {.value = {0}};
        for (size_t value = 1; value <= 3; value++) {
            for (size_t i = 0; i < offers.count; i++)
                set.value[i] = value <= offers.list[i].value_count ? value : 0;
            use(&offers, &set, fit);
        }
    }
    if (fit)
        fit_offers_finish(&offers);
    json_decref(fit);
    return 0;
}
