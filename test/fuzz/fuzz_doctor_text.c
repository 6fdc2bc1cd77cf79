/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a text of /proc, a command line or a variable. Refused, an output stays as it
 * was; what is found lies within the text.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "host/doctor/doctor_text.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
require_inside(struct dryi_doctor_piece piece, const char *text, size_t size)
{
    require(piece.length == 0 ||
            (piece.bytes >= text && piece.bytes + piece.length <= text + size));
}

static void
check_pieces(const char *text, size_t size)
{
    size_t at = 0, count = 0;
    struct dryi_doctor_piece piece;
    while (dryi_doctor_piece_next(text, size, &at, &piece)) {
        uint64_t number = UNTOUCHED;
        require(piece.length > 0);
        require_inside(piece, text, size);
        if (!dryi_doctor_piece_number(piece, &number))
            require(number == UNTOUCHED);
        number = UNTOUCHED;
        if (!dryi_doctor_piece_size(piece, &number))
            require(number == UNTOUCHED);
        count++;
    }
    require(at == size && count <= size);
    if (dryi_text_chosen(text, size, &piece))
        require_inside(piece, text, size);
}

static void
check_files(const char *text, size_t size)
{
    uint64_t a = UNTOUCHED, b = UNTOUCHED;
    uint32_t major = 7, minor = 7;
    if (!dryi_text_limit(text, size, "Max open files", &a, &b))
        require(a == UNTOUCHED && b == UNTOUCHED);
    a = b = UNTOUCHED;
    if (!dryi_text_buddies(text, size, 0, 9, &a, &b))
        require(a == UNTOUCHED && b == UNTOUCHED);
    else
        require(b <= a);
    struct dryi_blocks blocks = {UNTOUCHED, UNTOUCHED, UNTOUCHED};
    if (!dryi_text_blocks(text, size, 0, &blocks))
        require(blocks.unmovable == UNTOUCHED && blocks.reclaimable == UNTOUCHED &&
                blocks.all == UNTOUCHED);
    else
        require(blocks.all && blocks.unmovable <= blocks.all &&
                blocks.reclaimable <= blocks.all);
    struct dryi_doctor_piece path = {text, 0};
    if (dryi_text_mapped(text, size, "lib", &path)) {
        require_inside(path, text, size);
        require(path.length >= 4 && path.bytes[0] == '/');
    }
    a = UNTOUCHED;
    if (!dryi_text_window(text, size, &a))
        require(a == UNTOUCHED);
    else
        require(a > 1);
    a = UNTOUCHED;
    if (!dryi_text_mount_size(text, size, "/dev/shm", &a))
        require(a == UNTOUCHED);
    if (!dryi_text_release(text, size, &major, &minor))
        require(major == 7 && minor == 7);
    a = b = UNTOUCHED;
    if (!dryi_text_driver(text, size, &a, &b))
        require(a == UNTOUCHED && b == UNTOUCHED);
}

static void
check_boot(const char *text, size_t size)
{
    struct dryi_doctor_piece value = {text, 0};
    uint64_t pages = UNTOUCHED;
    if (dryi_text_boot_option(text, size, "init_on_alloc", &value))
        require_inside(value, text, size);
    if (!dryi_text_boot_pool(text, size, 2 << 20, 2 << 20, &pages))
        require(pages == UNTOUCHED);
}

static void
check_settings(const char *text, size_t size, char between, char inside)
{
    struct dryi_doctor_setting s;
    size_t at = 0, last = 0, count = 0;
    while (dryi_text_setting((struct dryi_doctor_piece){text, size}, between, inside, &at,
                             &s)) {
        require_inside(s.key, text, size);
        require_inside(s.value, text, size);
        require(at > last && at <= size);
        last = at;
        count++;
    }
    require(count <= size);
}

/* In one piece and byte by byte it is the same. */
static void
check_jemalloc(const char *text, size_t size)
{
    struct dryi_jemalloc whole = {.is_known = false}, bytes = {.is_known = false};
    dryi_jemalloc_feed(&whole, text, size);
    for (size_t i = 0; i < size; i++)
        dryi_jemalloc_feed(&bytes, text + i, 1);
    require(whole.is_known == bytes.is_known && whole.major == bytes.major &&
            whole.minor == bytes.minor && whole.patch == bytes.patch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size ? size : 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    check_pieces(text, size);
    check_files(text, size);
    check_boot(text, size);
    check_settings(text, size, ',', ':');
    check_settings(text, size, ':', '=');
    check_jemalloc(text, size);
    free(text);
    return 0;
}
