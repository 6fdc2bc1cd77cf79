/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_offers.h. */
#include "fit/fit_offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/term.h"

#define NAME_BYTES 40
#define VALUES_MAX 256

static const struct {
    const char *key, *text;
} numbers[] = {
    [FIT_SAME] = {"same", "same"},
    [FIT_ROWS] = {"rows", "row means"},
    [FIT_OTHER] = {"other", "other"},
};
static const char *const passes[] = {[FIT_ANY] = "any",
                                     [FIT_BACKWARD] = "backward",
                                     [FIT_STEP] = "step",
                                     [FIT_EVALUATION] = "evaluation"};

const char *
fit_numbers_name(enum fit_numbers n)
{
    return numbers[n].text;
}

const char *
fit_numbers_key(enum fit_numbers n)
{
    return numbers[n].key;
}

static const char *
get_text(const json_t *offer, const char *key)
{
    const char *text = json_string_value(json_object_get(offer, key));
    return text ? text : "";
}

/* Read one offer. False: its form is another. */
static bool
read_offer(struct fit_offer *offer, const json_t *json)
{
    const json_t *values = json_object_get(json, "values");
    const char *name = get_text(json, "name"), *text = get_text(json, "text");
    size_t count = json_array_size(values), n = 0, pass = 0, i = 0;
    while (n < FIT_OTHER && strcmp(numbers[n].key, get_text(json, "numbers")) != 0)
        n++;
    while (pass < FIT_EVALUATION && strcmp(passes[pass], get_text(json, "helps")) != 0)
        pass++;
    for (const json_t *value; i < count; i++) {
        value = json_array_get(values, i);
        if (!json_is_number(value) && !json_is_string(value) && !json_is_true(value))
            return false;
    }
    *offer = (struct fit_offer){.numbers = (enum fit_numbers)n,
                                .helps = (enum fit_pass)pass,
                                .value_count = count};
    return *name && strlen(name) < NAME_BYTES && *text && count > 0 &&
           count <= VALUES_MAX &&
           strcmp(numbers[n].key, get_text(json, "numbers")) == 0 &&
           strcmp(passes[pass], get_text(json, "helps")) == 0;
}

int
fit_offers_read(struct fit_offers *o, const char *command, const json_t *fit)
{
    const json_t *all = json_object_get(fit, "offers");
    *o = (struct fit_offers){.root = json_deep_copy(all), .words = SIZE_MAX};
    if (!json_is_array(all) || json_array_size(all) >= FIT_OFFERS_MAX)
        return report_failure(command, NULL, EXIT_INPUT,
                              "the program's process told no changes that can be made");
    if (!o->root)
        return report_memory(command, NULL);
    for (size_t i = 0; i < json_array_size(o->root); i++) {
        o->json[i] = json_array_get(o->root, i);
        if (!read_offer(&o->list[i], o->json[i]))
            return report_failure(command, NULL, EXIT_INPUT,
                                  "the program's process told change %zu in a form that "
                                  "is not known",
                                  i + 1);
        o->count++;
    }
    return EXIT_FINE;
}

json_t *
fit_offers_read_refused(const json_t *fit)
{
    json_t *all = json_object_get(fit, "refused"), *why,
           *kept = json_is_object(all) ? json_object() : NULL;
    const char *name;
    json_object_foreach(all, name, why)
    {
        if (json_is_string(why) && json_object_size(kept) < FIT_OFFERS_MAX)
            json_object_set(kept, name, why);
    }
    return kept;
}

int
fit_offers_add_words(struct fit_offers *o, const char *command, const struct vary *vary)
{
    size_t count = vary->name_count > 0 ? vary->names[0].count : 1;
    json_t *labels = json_array();
    for (size_t i = 1; i < count; i++) {
        char label[VARY_LABEL_BYTES];
        vary_label(vary, vary_together(vary, i), label);
        labels = json_out_append(labels, json_out_string(label));
    }
    if (count == 1) {
        json_decref(labels);
        return EXIT_FINE;
    }
    json_t *offer = json_pack("{s:s, s:o, s:s, s:s, s:s, s:s}", "name", "words", "values",
                              labels, "text", "{}", "numbers", "other", "helps", "any",
                              "patch", "# start the program with {}\n");
    if (!offer || json_array_append_new(o->root, offer) != 0)
        return report_memory(command, NULL);
    o->words = o->count++;
    o->json[o->words] = offer;
    o->list[o->words] = (struct fit_offer){
        .numbers = FIT_OTHER, .helps = FIT_ANY, .value_count = count - 1};
    return EXIT_FINE;
}

size_t
fit_offers_find_words(const struct fit_offers *o, const struct vary *vary,
                      const struct fit_set *set)
{
    return vary_together(vary, o->words < o->count ? set->value[o->words] : 0);
}

void
fit_offers_finish(struct fit_offers *o)
{
    json_decref(o->root);
    *o = (struct fit_offers){.root = NULL};
}

static json_t *
get_value(const struct fit_offers *o, const struct fit_set *set, size_t i)
{
    return json_array_get(json_object_get(o->json[i], "values"), set->value[i] - 1);
}

json_t *
fit_offers_make_changes(const struct fit_offers *o, const struct fit_set *set)
{
    json_t *changes = json_object();
    for (size_t i = 0; i < o->count && changes; i++) {
        if (i != o->words && set->value[i] > 0 &&
            json_object_set(changes, get_text(o->json[i], "name"),
                            get_value(o, set, i)) != 0) {
            json_decref(changes);
            changes = NULL;
        }
    }
    return changes;
}

char *
fit_offers_make_variable(json_t *changes, bool looks, bool counts)
{
    return json_out_dump(changes ? json_pack("{s:o, s:b, s:b}", "changes", changes,
                                             "looks", looks, "counts", counts)
                                 : NULL,
                         JSON_COMPACT | JSON_ENSURE_ASCII);
}

/* Return a text of an offer with its value in the place of each "{}"; the caller frees it. NULL:
   memory ran out. */
static char *
fill(const char *text, const json_t *value)
{
    const char *word = json_string_value(value);
    char number[40] = "", *whole = NULL;
    size_t length;
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%g", json_real_value(value));
    FILE *out = open_memstream(&whole, &length);
    if (!out)
        return NULL;
    for (const char *place; (place = strstr(text, "{}")); text = place + 2)
        fprintf(out, "%.*s%s", (int)(place - text), text, word ? word : number);
    fputs(text, out);
    if (fclose(out) == 0)
        return whole;
    free(whole);
    return NULL;
}

void
fit_offers_write(const struct fit_offers *o, const struct fit_set *set,
                 char text[FIT_LABEL_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < o->count && used + 8 < FIT_LABEL_BYTES; i++) {
        if (set->value[i] == 0)
            continue;
        if (used > 0)
            used += (size_t)snprintf(text + used, FIT_LABEL_BYTES - used, " + ");
        char *one = fill(get_text(o->json[i], "text"), get_value(o, set, i));
        const char *shown = one ? one : get_text(o->json[i], "name");
        used += term_make_printable(text + used, FIT_LABEL_BYTES - used, shown,
                                    strlen(shown));
        free(one);
    }
}

json_t *
fit_offers_make_hand(const struct fit_offers *o, const struct fit_set *set)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < o->count; i++) {
        if (set->value[i] == 0)
            continue;
        char *text = fill(get_text(o->json[i], "patch"), get_value(o, set, i));
        if (!text) {
            json_decref(lines);
            return NULL;
        }
        for (const char *line = text; *line;) {
            size_t length = strcspn(line, "\n");
            lines = json_out_append(lines, json_out_text(line, length));
            line += length + (line[length] == '\n');
        }
        free(text);
    }
    return lines;
}

bool
fit_offers_check(const struct fit_offers *o, const struct fit_set *set, const json_t *fit,
                 char why[FIT_LABEL_BYTES])
{
    const json_t *applied = json_object_get(fit, "applied"),
                 *refused = json_object_get(fit, "refused");
    for (size_t i = 0; i < o->count; i++) {
        const char *name = get_text(o->json[i], "name");
        if (set->value[i] == 0 || i == o->words || json_object_get(applied, name))
            continue;
        const char *reason = get_text(refused, name);
        char text[FIT_LABEL_BYTES];
        snprintf(text, sizeof text, "%s: %.300s", name,
                 *reason ? reason : "it was not made");
        term_make_printable(why, FIT_LABEL_BYTES, text, strlen(text));
        return false;
    }
    return true;
}
