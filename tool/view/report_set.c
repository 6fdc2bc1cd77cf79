/* SPDX-License-Identifier: Apache-2.0 */
/* See report_set.h. */
#include "view/report_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/answers.h"

#define KEY_BYTES 64
#define CONF_BYTES 256
#define MISSES_MAX 8  /* tiles in a row that do not fit before a level is abandoned */
#define STACK_SHARE 3 /* stacks take at most 1/3 of the budget */

/* --- texts -------------------------------------------------------------------------------- */

/* Keep the JSON of `sweep`, which names the device and the best settings. */
static void
note_settings(struct report_set *s, const struct answer *answer)
{
    json_decref(s->recommended);
    s->recommended = json_loadb((const char *)answer->bytes, answer->length, 0, NULL);
}

/* Add the answer for `key` if it takes at most `most` bytes. False: it does not fit. */
static bool
keep(struct report_set *s, const char *key, size_t most)
{
    struct answer answer;
    if (s->has_failed || html_answers_have(&s->answers, key) ||
        view_answer(s->view, key, &answer) != VIEW_FOUND)
        return true;
    size_t length = 0;
    char *text = html_pack(answer.bytes, answer.length, &length);
    bool fits = text && length + strlen(key) + 8 <= most;
    if (fits && answer.is_json && strstr(key, "/sweep"))
        note_settings(s, &answer);
    free(answer.bytes);
    s->has_failed |= !text || (fits && !html_answers_add(&s->answers, key, text, length));
    if (!fits || s->has_failed)
        free(text);
    else
        s->used += length + strlen(key) + 8;
    progress_update(s->progress, s->used);
    return fits;
}

static size_t
left(const struct report_set *s)
{
    return s->used < s->budget ? s->budget - s->used : 0;
}

/* --- what is worth most ------------------------------------------------------------------- */

static void
say(struct report_set *s, const char *sentence)
{
    char *own = s->sentences[s->sentence_count];
    snprintf(own, REPORT_SENTENCE_BYTES, "%s", sentence);
    s->sentence_list[s->sentence_count++] = own;
}

static void
keep_stacks(struct report_set *s, size_t file)
{
    static const uint32_t depths[] = {0, 32, 12, 4, 1};
    const size_t tries = s->has_recordings ? 1 : sizeof depths / sizeof *depths;
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%zu/stacks", file);
    for (size_t i = 0; i < tries; i++) {
        s->view->depth_max = depths[i];
        if (keep(s, key, left(s) / STACK_SHARE)) {
            if (i > 0 && s->sentence_count == 0) {
                char text[REPORT_SENTENCE_BYTES];
                snprintf(text, sizeof text, "stacks: the %u innermost frames of each",
                         depths[i]);
                say(s, text);
            }
            return;
        }
    }
    if (s->sentence_count == 0)
        say(s, "stacks: none, they are too many");
}

static void
keep_places(struct report_set *s, size_t file, size_t device)
{
    const struct view_device *d = &s->view->files[file].devices[device];
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%zu/%zu/tile/0/0", file, device);
    keep(s, key, left(s));
    for (unsigned i = 0; i < d->place_count; i++) {
        snprintf(key, sizeof key, "%zu/%zu/owners/%u", file, device, d->places[i].moment);
        keep(s, key, left(s) / 4);
        snprintf(key, sizeof key, "%zu/%zu/map/%u", file, device, d->places[i].moment);
        s->maps_wanted++;
        s->maps_kept += keep(s, key, left(s) / 4);
    }
}

/* Keep the curves under the settings that `sweep` recommends. */
static void
keep_curves(struct report_set *s, size_t file)
{
    const json_t *rows = json_object_get(s->recommended, "candidates");
    json_int_t device = json_integer_value(json_object_get(s->recommended, "device"));
    const struct view_file *f = &s->view->files[file];
    for (size_t d = 0; d < f->study.device_count; d++) {
        if (f->devices[d].v->device != device)
            continue;
        for (size_t i = 0; i < json_array_size(rows) && i < REPORT_CURVES_MAX; i++) {
            const char *conf =
                json_string_value(json_object_get(json_array_get(rows, i), "conf"));
            char key[KEY_BYTES + CONF_BYTES];
            if (!conf || strlen(conf) >= CONF_BYTES)
                continue;
            snprintf(key, sizeof key, "%zu/%zu/reserved/%s", file, d, conf);
            keep(s, key, left(s) / 4);
        }
    }
    json_decref(s->recommended);
    s->recommended = NULL;
}

static void
keep_file(struct report_set *s, size_t file)
{
    char key[KEY_BYTES];
    for (size_t i = 0; i < (s->is_what_if ? VIEW_COMMANDS : VIEW_COMMANDS - 1); i++) {
        snprintf(key, sizeof key, "%zu/%s", file, view_commands[i]->name);
        keep(s, key, left(s) / 2);
    }
    keep_stacks(s, file);
    keep_curves(s, file);
    for (size_t i = 0; i < s->view->files[file].study.device_count; i++)
        keep_places(s, file, i);
}

/* --- tiles and events --------------------------------------------------------------------- */

static bool
is_within(const struct view_device *d, uint32_t level, uint32_t index, uint32_t moment)
{
    return tile_begin(d, level, index) <= moment &&
           moment < tile_begin(d, level, index + 1);
}

static bool
is_around_place(const struct view_device *d, uint32_t level, uint32_t index)
{
    for (unsigned i = 0; i < d->place_count; i++)
        if (is_within(d, level, index, d->places[i].moment))
            return true;
    return false;
}

static bool
keep_tile(struct report_set *s, size_t file, size_t device, uint32_t level,
          uint32_t index)
{
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%zu/%zu/tile/%u/%u", file, device, level, index);
    return keep(s, key, left(s));
}

/* Return the tile of a level that contains a moment. */
static uint32_t
find_tile(const struct view_device *d, uint32_t level, uint32_t moment)
{
    uint32_t index = (uint32_t)(((uint64_t)moment << level) / d->moments);
    while (tile_begin(d, level, index + 1) <= moment)
        index++;
    return index;
}

static void
keep_tiles_around_places(struct report_set *s, size_t file, size_t device)
{
    const struct view_device *d = &s->view->files[file].devices[device];
    for (uint32_t level = 1; level < d->levels; level++)
        for (unsigned i = 0; i < d->place_count; i++)
            keep_tile(s, file, device, level, find_tile(d, level, d->places[i].moment));
}

static void
keep_other_tiles(struct report_set *s, size_t file, size_t device)
{
    const struct view_device *d = &s->view->files[file].devices[device];
    unsigned misses = 0;
    for (uint32_t level = 1; level < d->levels; level++) {
        for (uint32_t i = 0; i < UINT32_C(1) << level && misses < MISSES_MAX; i++)
            if (!is_around_place(d, level, i))
                misses = keep_tile(s, file, device, level, i) ? 0 : misses + 1;
    }
}

static void
keep_events(struct report_set *s, size_t file, size_t device)
{
    const struct view_device *d = &s->view->files[file].devices[device];
    uint32_t pages = d->v->event_count / VIEW_EVENTS_PER_ANSWER + 1;
    char key[KEY_BYTES];
    unsigned misses = 0;
    for (unsigned i = 0; i < d->place_count; i++) {
        snprintf(key, sizeof key, "%zu/%zu/events/%u", file, device,
                 d->places[i].moment / VIEW_EVENTS_PER_ANSWER);
        keep(s, key, left(s));
    }
    for (uint32_t i = 0; i < pages && misses < MISSES_MAX; i++) {
        snprintf(key, sizeof key, "%zu/%zu/events/%u", file, device, i);
        misses = keep(s, key, left(s)) ? 0 : misses + 1;
    }
}

/* Count the possible answers and those kept, for the sentences about omissions. */
static void
count_kept(struct report_set *s)
{
    for (size_t f = 0; f < s->view->file_count; f++) {
        for (size_t i = 0; i < s->view->files[f].study.device_count; i++) {
            const struct view_device *d = &s->view->files[f].devices[i];
            s->tiles_wanted += ((size_t)1 << d->levels) - 1;
            s->events_wanted += d->v->event_count / VIEW_EVENTS_PER_ANSWER + 1;
        }
    }
    for (size_t i = 0; i < s->answers.count; i++) {
        s->tiles_kept += strstr(s->answers.entries[i].key, "/tile/") != NULL;
        s->events_kept += strstr(s->answers.entries[i].key, "/events/") != NULL;
    }
}

static void
say_left_out(struct report_set *s)
{
    static const char *const names[] = {"pieces of the timeline", "pages of events",
                                        "memory maps"};
    count_kept(s);
    size_t kept[] = {s->tiles_kept, s->events_kept, s->maps_kept};
    size_t wanted[] = {s->tiles_wanted, s->events_wanted, s->maps_wanted};
    for (size_t i = 0; i < 3; i++) {
        char text[REPORT_SENTENCE_BYTES];
        snprintf(text, sizeof text, "%s: %zu of %zu", names[i], kept[i], wanted[i]);
        if (kept[i] < wanted[i])
            say(s, text);
    }
}

static void
keep_detail(struct report_set *s,
            void (*keep_some)(struct report_set *s, size_t file, size_t device))
{
    for (size_t f = 0; f < s->view->file_count; f++) {
        const struct study *study = &s->view->files[f].study;
        keep_some(s, f, study->main);
        for (size_t i = 0; i < study->device_count; i++)
            if (i != study->main)
                keep_some(s, f, i);
    }
}

/* Reserve bytes for the answer `about`, which comes last because it lists omissions. */
static void
set_aside_about(struct report_set *s)
{
    struct answer answer;
    size_t length = 0;
    if (view_answer(s->view, "about", &answer) != VIEW_FOUND)
        return;
    char *text = html_pack(answer.bytes, answer.length, &length);
    free(answer.bytes);
    free(text);
    length += REPORT_SENTENCES_MAX * (size_t)REPORT_SENTENCE_BYTES * 2;
    s->budget = s->budget > length ? s->budget - length : 0;
}

bool
report_set_fill(struct report_set *s)
{
    s->view->is_report = true;
    set_aside_about(s);
    for (size_t i = 0; i < s->view->file_count; i++)
        keep_file(s, i);
    if (s->has_recordings) {
        s->sentence_count = 0;
    } else {
        keep_detail(s, keep_tiles_around_places);
        keep_detail(s, keep_other_tiles);
        keep_detail(s, keep_events);
        say_left_out(s);
    }
    s->view->left_out = s->sentence_list;
    s->view->left_out_count = s->sentence_count;
    keep(s, "about", SIZE_MAX);
    return !s->has_failed && html_answers_have(&s->answers, "about");
}

void
report_set_finish(struct report_set *s)
{
    html_answers_finish(&s->answers);
    json_decref(s->recommended);
    *s = (struct report_set){0};
}
