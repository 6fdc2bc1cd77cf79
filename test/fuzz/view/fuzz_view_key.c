/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any text as a key of the views, about a small trace. A key that has an answer is written in the
 * one way there is for its numbers; one of numbers in their bounds has an answer; and a pack's
 * columns lie within it.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "view/view.h"

#define KEY_BYTES_MAX 2048

static const char trace[] = "i 1 1048576 0 0\n"
                            "a 2 2097152 0 1\n"
                            "a 3 512 1 2\n"
                            "f 1 0 0 3\n"
                            "a 4 30000000 0 4\n"
                            "f 3 0 0 5\n"
                            "f 2 0 0 6\n";

/* Open the trace once; it is looked at until the end. */
static struct view *
the_view(void)
{
    static struct view view;
    static char path[64];
    static const char *const paths[] = {path};
    if (view.file_count > 0)
        return &view;
    int file = memfd_create("trace", 0);
    fuzz_require(file >= 0 && write(file, trace, sizeof trace - 1) > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    fuzz_require(view_open(&view, "view", paths, 1) == EXIT_FINE);
    return &view;
}

/* Tell whether `key` is "0/0/NOUN/NUMBER" with a number below `bound`, by writing it anew. */
static bool
is_numbered(const char *key, const char *noun, uint32_t bound)
{
    char anew[64];
    int begin = snprintf(anew, sizeof anew, "0/0/%s/", noun);
    if (strncmp(key, anew, (size_t)begin) != 0)
        return false;
    unsigned long long number = strtoull(key + begin, NULL, 10);
    snprintf(anew + begin, sizeof anew - (size_t)begin, "%llu", number);
    return number < bound && strcmp(key, anew) == 0;
}

static bool
is_tile(const char *key, uint32_t levels)
{
    static const char begin[] = "0/0/tile/";
    char anew[64], *end;
    if (strncmp(key, begin, strlen(begin)) != 0)
        return false;
    unsigned long long level = strtoull(key + strlen(begin), &end, 10);
    unsigned long long index = *end == '/' ? strtoull(end + 1, NULL, 10) : 0;
    snprintf(anew, sizeof anew, "%s%llu/%llu", begin, level, index);
    return level < levels && index >> level == 0 && strcmp(key, anew) == 0;
}

/* Tell whether `key` is a question, in another way than the views do. */
static bool
is_question(const struct view_device *d, const char *key)
{
    return strcmp(key, "about") == 0 || strcmp(key, "0/stacks") == 0 ||
           is_tile(key, d->levels) || is_numbered(key, "map", d->moments) ||
           is_numbered(key, "owners", d->moments) ||
           is_numbered(key, "events", d->v->event_count / VIEW_EVENTS_PER_ANSWER + 1);
}

static uint32_t
u32_at(const struct answer *a, size_t at)
{
    uint32_t value;
    fuzz_require(at + sizeof value <= a->length);
    memcpy(&value, a->bytes + at, sizeof value);
    return value;
}

static void
check_pack(const struct answer *a)
{
    static const size_t widths[] = {0, 1, 4, 8, 8};
    fuzz_require(a->length >= 8 && memcmp(a->bytes, "DSV1", 4) == 0);
    uint32_t count = u32_at(a, 4);
    for (uint32_t i = 0; i < count; i++) {
        size_t row = 8 + (size_t)i * 32;
        uint32_t type = u32_at(a, row + 16), at = u32_at(a, row + 24);
        fuzz_require(type >= 1 && type <= 4 && at % 8 == 0);
        fuzz_require(at + (uint64_t)u32_at(a, row + 28) * widths[type] <= a->length);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char key[KEY_BYTES_MAX + 1];
    struct answer answer;
    struct view *view = the_view();
    if (size > KEY_BYTES_MAX)
        return 0;
    if (size)
        memcpy(key, data, size);
    key[size] = '\0';
    bool is_conf = strncmp(key, "0/0/reserved/", strlen("0/0/reserved/")) == 0;
    if (view_is_slow(view, key) && !is_conf)
        return 0; /* a command, for which a child would be started, or no question */
    enum view_status status = view_answer(view, key, &answer);
    fuzz_require(status != VIEW_FAILED);
    fuzz_require(is_conf ||
                 (status == VIEW_FOUND) == is_question(view->files[0].devices, key));
    if (status == VIEW_FOUND && !answer.is_json)
        check_pack(&answer);
    free(answer.bytes);
    return 0;
}
