/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text is an option string of the pinned cache: what is accepted is what create accepts and
 * reads the same twice; what is refused has changed nothing and says where.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/pinned.h>

#include "host/pinned/pinned_options.h"

static void
require(bool condition)
{
    if (!condition)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    struct dry_pinned_options options, before, again;
    struct dry_error err = {.text = ""};
    memset(&before, 0, sizeof before);
    dry_pinned_options_init(&before);
    memcpy(&options, &before, sizeof options);
    enum dry_status status = dry_pinned_options_parse(&options, text, &err);
    if (status != DRY_OK) {
        require(memcmp(&options, &before, sizeof options) == 0);
        require(err.status == status && err.text[0] != '\0');
        require(err.offset <= strlen(text));
        return 0;
    }
    require(dryi_pinned_options_take(&options, &again, NULL) == DRY_OK);
    again = options;
    require(dry_pinned_options_parse(&again, text, NULL) == DRY_OK);
    require(again.mode == options.mode && again.block_bytes == options.block_bytes);
    require(again.warm_bytes == options.warm_bytes && again.node == options.node);
    return 0;
}
