/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_HTML_H
#define TOOL_HTML_H

/*
 * Pages bundled by viewer/build.mjs: HTML with script and style inside. A page written to
 * a file also contains its answers, by key, and fetches nothing.
 *
 *     struct html_answers answers = {0};
 *     char *text = html_pack(bytes, count, &length);
 *     if (text && html_answers_add(&answers, "about", text, length))
 *         code = html_write(&view_html, "view", path, &answers, NULL, &written);
 *     html_answers_finish(&answers);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page compiled in; scripts/embed.py generates the source from the HTML file. */
struct html {
    const unsigned char *bytes;
    size_t length;
};

extern const struct html view_html;  /* viewer/page.html: a recording; can be served */
extern const struct html fleet_html; /* viewer/fleet.html: all ranks of a job */

/* An answer as text: base64 of a zlib stream. */
struct html_entry {
    char *key, *text;
    size_t length; /* bytes of the text */
};

struct html_answers {
    struct html_entry *entries;
    size_t count, capacity;
};

/* Compress bytes into an answer's text, which the caller frees. NULL: memory ran out. */
char *html_pack(const unsigned char *bytes, size_t count, size_t *length);
/* Add an answer and take ownership of its text. False: memory ran out, and the caller
   still owns the text. */
bool html_answers_add(struct html_answers *answers, const char *key, char *text,
                      size_t length);
/* Tell whether there is an answer for a key. O(answers). */
bool html_answers_have(const struct html_answers *answers, const char *key);
void html_answers_finish(struct html_answers *answers);

/* Tell whether a page takes recordings, as those with the engine inside do. */
bool html_has_engine(const struct html *html);

/*
 * Write the page with its answers to `path`, "-" for standard output; `command` is for
 * messages. `recordings` are for a page with the engine inside (view/recordings.h); NULL:
 * the page has none. Sets *written to the page's bytes. Returns an exit_code after printing
 * failures.
 */
int html_write(const struct html *html, const char *command, const char *path,
               const struct html_answers *answers, const struct html_answers *recordings,
               uint64_t *written);
/* Print the size of the page at `path`, and what was left out, to standard error. Prints
   nothing if the page went to standard output. */
void html_say_written(const char *path, uint64_t written, const char *const *left_out,
                      size_t count);

#endif
