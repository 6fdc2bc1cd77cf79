/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_summary DEVICE ABBREVIATED: read lines "KEY NUMBER", the keys of
 * torch.cuda.memory_stats(), and print their summary. For golden/summary.py, which compares
 * it with PyTorch's own. Exit: 0; 2 if a key or a number makes no sense.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/stats.h>
#include <drystone/trace.h>

#define NUMBERS (sizeof(struct dry_stats) / sizeof(int64_t))

struct search {
    const char *key;
    int64_t number; /* of the key's value in the struct; -1: no such key */
};

static void
find_value(void *self, const char *key, int64_t value)
{
    struct search *search = self;
    if (strcmp(search->key, key) == 0)
        search->number = value;
}

/* Where a key's value stands: each number is filled with its place, and the key shows it. */
static int64_t
find(const char *key)
{
    int64_t places[NUMBERS];
    struct dry_stats stats;
    struct search search = {.key = key, .number = -1};
    for (size_t i = 0; i < NUMBERS; i++)
        places[i] = (int64_t)i;
    memcpy(&stats, places, sizeof stats);
    dry_stats_visit(&stats, find_value, &search);
    return search.number;
}

static enum dry_status
write_out(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    (void)err;
    return fwrite(bytes, 1, count, self) == count ? DRY_OK : DRY_ERR_SYSTEM;
}

int
main(int argc, char **argv)
{
    int64_t numbers[NUMBERS] = {0};
    char line[128];
    if (argc != 3)
        return 2;
    while (fgets(line, sizeof line, stdin)) {
        char *blank = strchr(line, ' ');
        if (!blank)
            return 2;
        *blank = '\0';
        int64_t at = find(line);
        if (at < 0)
            return 2;
        numbers[at] = strtoll(blank + 1, NULL, 10);
    }
    struct dry_stats stats;
    struct dry_error err;
    struct dry_sink sink = {write_out, stdout};
    memcpy(&stats, numbers, sizeof stats);
    int32_t device = (int32_t)strtol(argv[1], NULL, 10);
    return dry_stats_write_summary(&stats, device, argv[2][0] == '1', &sink, &err) !=
           DRY_OK;
}
