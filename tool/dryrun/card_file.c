/* SPDX-License-Identifier: Apache-2.0 */
/* See card_file.h. */
#include "dryrun/card_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_in.h"
#include "base/report.h"

#define NAMES_BYTES 400

/* --- by name ------------------------------------------------------------------------------ */

/* Find the only card whose name begins with `text`, or with `text` and a size. */
static const struct dry_card *
find_beginning(const char *text, const char *then, char names[NAMES_BYTES])
{
    const struct dry_card *found = NULL, *card;
    size_t count = 0, used = 0, length = strlen(text);
    names[0] = '\0';
    for (size_t i = 0; (card = dry_card_get(i)) != NULL; i++) {
        if (strncmp(card->name, text, length) != 0 ||
            strncmp(card->name + length, then, strlen(then)) != 0)
            continue;
        found = card;
        if (used < NAMES_BYTES)
            used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s",
                                     count ? ", " : "", card->name);
        count++;
    }
    return count == 1 ? found : NULL;
}

static int
find_name(const char *command, const char *text, const struct dry_card **card)
{
    char names[NAMES_BYTES];
    *card = dry_card_find(text);
    if (!*card && *text)
        *card = find_beginning(text, "-", names); /* l4 is no beginning of l40-48 */
    if (!*card && *text && !names[0])
        *card = find_beginning(text, "", names);
    if (*card)
        return EXIT_FINE;
    if (*text && names[0])
        return report_usage(command, "--card %s: which of %s?", text, names);
    return report_usage(command, "--card %s: no card of drystone estimate --list", text);
}

/* --- from a file -------------------------------------------------------------------------- */

static void
read_capability(struct json_in *in, const struct json_at *at, struct dry_card *card)
{
    const char *text = json_in_text(in, *at, NULL);
    char *end;
    if (!text)
        return;
    long major = strtol(text, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    if (*end || major < 5 || major > 99 || minor < 0 || minor > 9)
        json_in_fail(in, at, "expected a capability like \"9.0\"");
    card->capability_major = (int)major;
    card->capability_minor = (int)minor;
}

static void
read_like(struct json_in *in, const struct json_at *at, struct dry_card *card)
{
    const char *name = json_in_text(in, *at, "h100-80");
    const struct dry_card *like = dry_card_find(name);
    if (like)
        *card = *like;
    else
        json_in_fail(in, at, "no card of drystone estimate --list");
}

static void
read_bytes(struct json_in *in, const struct json_at *root, const char *key,
           uint64_t *bytes)
{
    *bytes = json_in_unsigned_or(in, json_in_key(root, key), *bytes);
}

static void
read_count(struct json_in *in, const struct json_at *root, const char *key, int *count)
{
    struct json_at at = json_in_key(root, key);
    uint64_t number = json_in_unsigned_or(in, at, (uint64_t)*count);
    if (number < 1 || number > 65536)
        json_in_fail(in, &at, "expected 1 to 65536");
    *count = (int)number;
}

/* Read a short text. The texts go into the stand-in's setup string, where semicolons
   separate the fields. */
static const char *
read_text(struct json_in *in, const struct json_at *root, const char *key,
          const char *absent)
{
    struct json_at at = json_in_key(root, key);
    const char *text = json_in_text(in, at, absent);
    if (strchr(text, ';') || strlen(text) > 80)
        json_in_fail(in, &at, "expected at most 80 bytes, without ';'");
    return text;
}

static void
read_card(struct json_in *in, const struct json_at *root, struct dry_card *card,
          struct card_speed *speed)
{
    static const char *const keys[] = {"like",
                                       "name",
                                       "title",
                                       "usable_bytes",
                                       "context_bytes",
                                       "capability",
                                       "sm_count",
                                       "threads_per_sm",
                                       "shared_per_sm_bytes",
                                       "shared_per_block_max_bytes",
                                       "l2_bytes",
                                       "descends",
                                       "operations_per_second",
                                       "link_bytes_per_second",
                                       NULL};
    json_in_object(in, root, keys);
    struct json_at like = json_in_key(root, "like");
    struct json_at capability = json_in_key(root, "capability");
    read_like(in, &like, card);
    card->name = read_text(in, root, "name", "card");
    card->title = read_text(in, root, "title", card->title ? card->title : "");
    read_capability(in, &capability, card);
    read_bytes(in, root, "usable_bytes", &card->usable_bytes);
    read_bytes(in, root, "context_bytes", &card->context_bytes);
    read_bytes(in, root, "shared_per_sm_bytes", &card->shared_per_sm_bytes);
    read_bytes(in, root, "shared_per_block_max_bytes", &card->shared_per_block_max_bytes);
    read_bytes(in, root, "l2_bytes", &card->l2_bytes);
    read_count(in, root, "sm_count", &card->sm_count);
    read_count(in, root, "threads_per_sm", &card->threads_per_sm);
    card->descends = json_in_flag(in, json_in_key(root, "descends"), card->descends);
    read_bytes(in, root, "operations_per_second", &speed->operations);
    read_bytes(in, root, "link_bytes_per_second", &speed->link_bytes);
    if (card->usable_bytes <= card->context_bytes || card->usable_bytes > UINT64_C(1)
                                                                              << 44)
        json_in_fail(in, root,
                     "usable_bytes: expected more than context_bytes, %llu, "
                     "and at most 2^44",
                     (unsigned long long)card->context_bytes);
}

int
card_file_find(struct card_file *file, const char *command, const char *text,
               const struct dry_card **card)
{
    size_t length = strlen(text);
    *file = (struct card_file){0};
    if (!strchr(text, '/') && (length < 5 || strcmp(text + length - 5, ".json") != 0))
        return find_name(command, text, card);
    struct dry_error err;
    struct json_in in = {.err = &err};
    char *bytes = NULL;
    if (json_in_read_file(text, &bytes, &length, &err) != DRY_OK ||
        json_in_parse(bytes, length, &file->json, &err) != DRY_OK) {
        free(bytes);
        return report_error(command, text, &err);
    }
    free(bytes);
    const struct json_at root = {.value = file->json};
    read_card(&in, &root, &file->card, &file->speed);
    *card = &file->card;
    return in.status == DRY_OK ? EXIT_FINE : report_error(command, text, &err);
}

int
card_file_choose(struct card_file *file, const char *command, const char *text,
                 uint64_t memory, const struct dry_card **card)
{
    const struct dry_card *found = NULL;
    int code = card_file_find(file, command, text, &found);
    *card = found;
    if (code != EXIT_FINE || !found)
        return code;
    if (strncmp(found->title, "AMD ", 4) == 0)
        return report_usage(command,
                            "--card %s: no CUDA runs there; replays alone know the card",
                            found->name);
    if (memory == 0)
        return EXIT_FINE;
    if (memory <= found->context_bytes || memory > UINT64_C(1) << 44)
        return report_usage(command,
                            "--memory: expected more than the context's %llu bytes, and "
                            "at most 16 TiB",
                            (unsigned long long)found->context_bytes);
    file->card = *found;
    file->card.usable_bytes = memory;
    *card = &file->card;
    return EXIT_FINE;
}

void
card_file_finish(struct card_file *file)
{
    json_decref(file->json);
    *file = (struct card_file){0};
}
