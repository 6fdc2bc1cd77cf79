/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGE_H
#define TOOL_PAGE_H

/*
 * Pages that viewer/build.mjs bundled: HTML with its script and its style in it. One that is
 * written to a file has answers in it, by their keys, and fetches nothing.
 *
 *     struct page_answers answers = {0};
 *     char *text = page_pack(bytes, count, &length);
 *     if (text && page_answers_add(&answers, "about", text, length))
 *         code = page_write(&view_page, "view", path, &answers, &written);
 *     page_answers_finish(&answers);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* scripts/embed.py makes the source of a page from its file. */
struct page {
    const unsigned char *bytes;
    size_t length;
};

extern const struct page view_page;  /* viewer/page.html: a recording, also served */
extern const struct page fleet_page; /* viewer/fleet.html: all ranks of a job */

/* An answer: base64 of its zlib stream. */
struct page_entry {
    char *key, *text;
    size_t length; /* of the text */
};

struct page_answers {
    struct page_entry *entries;
    size_t count, capacity;
};

/* Pack bytes up as the text of an answer, which is the caller's. NULL: no memory. */
char *page_pack(const unsigned char *bytes, size_t count, size_t *length);
/* Add an answer; its text is the answers' then. False: no memory, the text stays yours. */
bool page_answers_add(struct page_answers *answers, const char *key, char *text,
                      size_t length);
/* Tell whether there is an answer of that key. O(answers). */
bool page_answers_have(const struct page_answers *answers, const char *key);
void page_answers_finish(struct page_answers *answers);

/*
 * Write the page with its answers to `path`, "-" for standard output, on behalf of
 * `command`. Sets *written to its bytes. Returns an exit_code; what failed is on standard
 * error.
 */
int page_write(const struct page *page, const char *command, const char *path,
               const struct page_answers *answers, uint64_t *written);
/*
 * Say on standard error how large the page at `path` is, and what was left out of it. Nothing
 * is said of a page on standard output.
 */
void page_say_written(const char *path, uint64_t written, const char *const *left_out,
                      size_t count);

#endif
