/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a shared library. A file that is taken has names that end within it; one that is
 * not taken says why.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dryrun/elf_read.h"

#define SYMBOLS_MAX 4096 /* of a file that is worth a look at each */

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
look_at(const struct elf *elf)
{
    size_t count = elf->symbol_count < SYMBOLS_MAX ? elf->symbol_count : SYMBOLS_MAX;
    for (size_t i = 0; i < count; i++) {
        struct elf_symbol symbol = elf_symbol(elf, i);
        require(strlen(symbol.name) < elf->size);
        require(!symbol.version || strlen(symbol.version) < elf->size);
    }
    const char *needed;
    for (size_t i = 0; i < SYMBOLS_MAX && (needed = elf_needed(elf, i)) != NULL; i++)
        require(strlen(needed) < elf->size);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct elf elf;
    struct dry_error err = {.text = ""};
    int file = memfd_create("elf", 0);
    if (file < 0)
        return 0;
    if (write(file, data, size) == (ssize_t)size) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        if (elf_open(&elf, path, &err) == DRY_OK) {
            look_at(&elf);
            elf_close(&elf);
        } else {
            require(err.text[0] != '\0');
        }
    }
    close(file);
    return 0;
}
