/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CARD_FILE_H
#define TOOL_CARD_FILE_H

/*
 * A card that is not in the table: a JSON object whose members are those of struct
 * dry_card.
 *
 *     {"like": "a100-80", "name": "mine", "usable_bytes": 51539607552, "sm_count": 96}
 *
 * Members that the file omits come from the known card named by "like". "capability" is a
 * text, "9.0". No table has a card's speed: somebody measured it.
 */

#include <drystone/card.h>

#include <jansson.h>

/* Speeds of a card, for each second of a step; 0: not known. */
struct card_speed {
    uint64_t
        operations; /* floating-point, of matrix products, convolutions and attention */
    uint64_t link_bytes; /* between it and the host */
};

struct card_file {
    struct dry_card card;
    struct card_speed speed;
    json_t *json; /* owns the texts of `card` */
};

/*
 * Find the card that `text` names. A `text` with a slash or ending in ".json" is a JSON
 * file; others are a name or an unambiguous prefix in the table. *card lives as long as
 * `file`. Returns an exit_code; call card_file_finish() in any case.
 */
int card_file_find(struct card_file *file, const char *command, const char *text,
                   const struct dry_card **card);
/* Find a card that runs CUDA, like card_file_find(), and give it `memory` bytes; 0: its own. */
int card_file_choose(struct card_file *file, const char *command, const char *text,
                     uint64_t memory, const struct dry_card **card);
void card_file_finish(struct card_file *file);

#endif
