/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without a fuzzer: over the files given, over the files of the
 * folders given, and over nothing at all. A finding is a crash, so this is a test like
 * any other, under every compiler.
 */
#include "support/fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All bytes of a file; the caller frees. NULL for what is not a readable file. */
static uint8_t *
read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *bytes = NULL;
    size_t count = 0, got;
    do {
        uint8_t *grown = realloc(bytes, count + 65536);
        if (!grown)
            abort();
        bytes = grown;
        got = fread(bytes + count, 1, 65536, file);
        count += got;
    } while (got > 0);
    bool failed = ferror(file);
    fclose(file);
    if (failed) {
        free(bytes);
        return NULL;
    }
    *size = count;
    return bytes;
}

static bool
run_file(const char *path)
{
    size_t size;
    uint8_t *bytes = read_file(path, &size);
    if (!bytes)
        return false;
    /* A block of exactly the right size, so that a sanitizer sees a read past its end. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, bytes, size);
    free(bytes);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that crashed */
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return true;
}

static size_t
run_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    size_t count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        char name[4096];
        int length = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof name)
            count += run_file(name);
    }
    closedir(folder);
    return count;
}

int
main(int argc, char **argv)
{
    size_t count = 0;
    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        count += run_file(argv[i]) ? 1 : run_folder(argv[i]);
    printf("%zu inputs\n", count);
    return 0;
}
