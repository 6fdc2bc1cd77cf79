/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CARD_FILE_H
#define TOOL_CARD_FILE_H

/*
 * A card that no table has: a JSON object whose members are those of struct dry_card.
 *
 *     {"like": "a100-80", "name": "mine", "usable_bytes": 51539607552, "sm_count": 96}
 *
 * "like" names the known card that all members are taken from which the file leaves away.
 * "capability" is a text, "9.0".
 */

#include <drystone/card.h>

#include <jansson.h>

struct card_file {
    struct dry_card card;
    json_t *json; /* its texts belong to this */
};

/*
 * Find the card that `text` names: a file if it has a slash or ends in ".json", else a card of
 * the table, by its name or by a beginning that no other card has. *card lives as long as
 * `file`. Returns an exit_code; card_file_finish() is due in any case.
 */
int card_file_find(struct card_file *file, const char *command, const char *text,
                   const struct dry_card **card);
void card_file_finish(struct card_file *file);

#endif
