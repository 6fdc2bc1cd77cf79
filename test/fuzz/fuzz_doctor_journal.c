/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a journal. What is taken names only files and words that doctor writes, and
 * reads as itself when it is written again. And any bytes as a need.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/doctor.h>

#include "machine/doctor_journal.h"
#include "machine/need.h"

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_again(const struct journal *journal)
{
    struct journal again;
    struct dry_error err;
    size_t length = 0;
    char *text = journal_write(journal, &length);
    if (!text)
        return;
    require(journal_read(text, length, &again, &err) == DRY_OK);
    require(again.count == journal->count);
    for (size_t i = 0; i < again.count; i++)
        require(memcmp(&again.entries[i], &journal->entries[i],
                       sizeof again.entries[i]) == 0);
    journal_finish(&again);
    free(text);
}

static void
check_need(const char *data, size_t size)
{
    char text[256];
    uint64_t bytes;
    if (size >= sizeof text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!need_parse(text, &bytes))
        require(bytes <= UINT64_C(1) << 62);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal journal;
    struct dry_error err;
    if (size == 0)
        return 0;
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data, size);
    if (journal_read(text, size, &journal, &err) == DRY_OK) {
        for (size_t i = 0; i < journal.count; i++)
            require(dry_doctor_may_write(journal.entries[i].path,
                                         journal.entries[i].new_value));
        check_again(&journal);
        journal_finish(&journal);
    }
    check_need(text, size);
    free(text);
    return 0;
}
