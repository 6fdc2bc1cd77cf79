/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h explains the format. Numbers are decimal; every value is checked. */
#include "setup.h"

#include "standin.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct standin_setup setup = {
    .name = "NVIDIA A100-SXM4-80GB",
    .device_count = 1,
    .total_bytes = UINT64_C(85094825984),
    .major = 8,
    .sm_count = 108,
    .threads_per_sm = 2048,
    .shared_per_sm = 167936,
    .shared_per_block = 49152,
    .shared_per_block_max = 166912,
    .l2_bytes = 41943040,
    .cuda_version = 13000,
    .cudnn_version = 92600,
    .nccl_version = 23007,
    .copy_bytes_max = 1 << 20,
};

static void
die(const char *key, const char *value)
{
    fprintf(stderr, "drystone: DRYSTONE_STANDIN: '%s=%s': not a word of the launcher's\n",
            key, value);
    abort();
}

enum kind { KIND_TEXT, KIND_INT, KIND_BYTES, KIND_YES, KIND_CAPABILITY };

static const struct word {
    const char *key;
    enum kind kind;
    size_t offset, size;
} words[] = {
#define WORD(key, kind, member)                                                          \
    {                                                                                    \
        key, kind, offsetof(struct standin_setup, member), sizeof setup.member           \
    }
    WORD("name", KIND_TEXT, name),
    WORD("devices", KIND_INT, device_count),
    WORD("total", KIND_BYTES, total_bytes),
    WORD("limit", KIND_BYTES, limit_bytes),
    WORD("context", KIND_BYTES, context_bytes),
    WORD("capability", KIND_CAPABILITY, major),
    WORD("sms", KIND_INT, sm_count),
    WORD("threads", KIND_INT, threads_per_sm),
    WORD("shared_sm", KIND_BYTES, shared_per_sm),
    WORD("shared_block", KIND_BYTES, shared_per_block_max),
    WORD("l2", KIND_BYTES, l2_bytes),
    WORD("cuda", KIND_INT, cuda_version),
    WORD("cudnn", KIND_INT, cudnn_version),
    WORD("nccl", KIND_INT, nccl_version),
    WORD("descending", KIND_YES, is_descending),
    WORD("late", KIND_YES, is_late),
    WORD("pin", KIND_YES, pins),
    WORD("copy", KIND_BYTES, copy_bytes_max),
    WORD("report", KIND_TEXT, report),
#undef WORD
};

static bool
read_number(const char *text, unsigned long long most, unsigned long long *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *number <= most;
}

static bool
store(const struct word *word, const char *value)
{
    char *at = (char *)&setup + word->offset;
    unsigned long long number;
    switch (word->kind) {
    case KIND_TEXT:
        if (strlen(value) >= word->size)
            return false;
        memcpy(at, value, strlen(value) + 1);
        return true;
    case KIND_INT:
        if (!read_number(value, INT32_MAX, &number))
            return false;
        memcpy(at, &(int){(int)number}, sizeof(int));
        return true;
    case KIND_BYTES:
        if (!read_number(value, UINT64_MAX >> 1, &number))
            return false;
        memcpy(at, &(uint64_t){number}, sizeof(uint64_t));
        return true;
    case KIND_YES:
        *(bool *)(void *)at = strcmp(value, "1") == 0;
        return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    case KIND_CAPABILITY:
        return sscanf(value, "%d.%d", &setup.major, &setup.minor) == 2;
    }
    return false;
}

static void
take(char *pair)
{
    char *value = strchr(pair, '=');
    if (!value)
        die(pair, "");
    *value++ = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].key, pair) == 0) {
            if (!store(&words[i], value))
                die(pair, value);
            return;
        }
    }
    die(pair, value);
}

static void
read_setup(void)
{
    const char *text = getenv("DRYSTONE_STANDIN");
    char *copy = strdup(text ? text : ""), *next = NULL;
    for (char *pair = copy ? strtok_r(copy, ";", &next) : NULL; pair;
         pair = strtok_r(NULL, ";", &next))
        take(pair);
    free(copy);
    if (setup.device_count > STANDIN_DEVICES_MAX)
        die("devices", "more than 16");
}

const struct standin_setup *
standin_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_setup);
    return &setup;
}
