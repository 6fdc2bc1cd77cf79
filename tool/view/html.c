/* SPDX-License-Identifier: Apache-2.0 */
/* See html.h. */
#include "view/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/command.h"
#include "base/grow.h"
#include "base/output.h"
#include "base/term.h"
#include "base/writer.h"

/* The place of answers in the page: a JSON object follows this tag. */
#define ANSWERS "<script type=\"application/json\" id=\"answers\">"
/* The place of recordings in a page with the engine inside, which follows. */
#define RECORDINGS "<script type=\"application/json\" id=\"recordings\">"
/* The content security policy lets a served page ask its server. A written page gets the
   second rule instead, so that it cannot send data anywhere. */
#define MAY_CONNECT "connect-src 'self'"
#define MAY_NOT_CONNECT "connect-src 'none'"

/* --- answers ------------------------------------------------------------------------------ */

static char *
to_base64(const unsigned char *bytes, size_t count, size_t *length)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((count + 2) / 3 * 4 + 1), *to = text;
    for (size_t i = 0; text && i < count; i += 3) {
        unsigned left = count - i < 3 ? (unsigned)(count - i) : 3;
        unsigned three = (unsigned)bytes[i] << 16;
        three |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        three |= left > 2 ? bytes[i + 2] : 0;
        for (unsigned k = 0; k < 4; k++)
            *to++ = (char)(k > left ? '=' : digits[three >> (18 - 6 * k) & 63]);
    }
    if (text)
        *length = (size_t)(to - text);
    return text;
}

char *
html_pack(const unsigned char *bytes, size_t count, size_t *length)
{
    uLongf packed_length = compressBound((uLong)count);
    unsigned char *packed = malloc(packed_length);
    bool is_fine =
        packed && compress2(packed, &packed_length, bytes, (uLong)count, 9) == Z_OK;
    char *text = is_fine ? to_base64(packed, packed_length, length) : NULL;
    free(packed);
    return text;
}

bool
html_answers_add(struct html_answers *a, const char *key, char *text, size_t length)
{
    struct html_entry *larger = grow(a->entries, a->count, &a->capacity, sizeof *larger);
    if (!larger)
        return false;
    a->entries = larger;
    struct html_entry *entry = &a->entries[a->count];
    entry->key = strdup(key);
    entry->text = text;
    entry->length = length;
    a->count += entry->key != NULL;
    return entry->key != NULL;
}

bool
html_answers_have(const struct html_answers *a, const char *key)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->entries[i].key, key) == 0)
            return true;
    return false;
}

void
html_answers_finish(struct html_answers *a)
{
    for (size_t i = 0; i < a->count; i++) {
        free(a->entries[i].key);
        free(a->entries[i].text);
    }
    free(a->entries);
    *a = (struct html_answers){0};
}

/* --- the page ----------------------------------------------------------------------------- */

/* The rest of a page that is being written. */
struct rest {
    const unsigned char *at, *end;
};

/* Write the page up to `word`, and go behind it. viewer/build.mjs builds pages with all of
   these words. */
static void
write_up_to(struct writer *w, struct rest *rest, const char *word, bool with_word)
{
    const unsigned char *found =
        memmem(rest->at, (size_t)(rest->end - rest->at), word, strlen(word));
    if (!found)
        abort();
    const unsigned char *behind = found + strlen(word);
    writer_bytes(w, rest->at, (size_t)((with_word ? behind : found) - rest->at));
    rest->at = behind;
}

static void
write_texts(struct writer *w, const struct html_answers *a)
{
    for (size_t i = 0; i < a->count; i++) {
        writer_put(w, i == 0 ? "{" : ",\n");
        writer_json(w, a->entries[i].key, strlen(a->entries[i].key));
        writer_put(w, ":\"");
        writer_bytes(w, a->entries[i].text, a->entries[i].length);
        writer_char(w, '"');
    }
    writer_char(w, '}');
}

static void
write_all(struct writer *w, const struct html *html, const struct html_answers *a,
          const struct html_answers *recordings)
{
    struct rest rest = {html->bytes, html->bytes + html->length};
    if (recordings) {
        write_up_to(w, &rest, MAY_NOT_CONNECT, true);
    } else {
        write_up_to(w, &rest, MAY_CONNECT, false);
        writer_put(w, MAY_NOT_CONNECT);
    }
    write_up_to(w, &rest, ANSWERS, true);
    write_texts(w, a);
    if (recordings) {
        write_up_to(w, &rest, RECORDINGS, true);
        write_texts(w, recordings);
    }
    writer_bytes(w, rest.at, (size_t)(rest.end - rest.at));
}

bool
html_has_engine(const struct html *html)
{
    static const char *const words[] = {MAY_NOT_CONNECT, ANSWERS, RECORDINGS};
    const unsigned char *at = html->bytes, *end = at + html->length;
    for (size_t i = 0; at && i < sizeof words / sizeof *words; i++)
        at = memmem(at, (size_t)(end - at), words[i], strlen(words[i]));
    return at != NULL;
}

int
html_write(const struct html *html, const char *command, const char *path,
           const struct html_answers *answers, const struct html_answers *recordings,
           uint64_t *written)
{
    struct output out;
    int code = output_open(&out, command, path);
    if (code != EXIT_FINE)
        return code;
    struct dry_sink sink = output_sink(&out);
    struct dry_error err;
    struct writer w;
    writer_init(&w, &sink, NULL);
    write_all(&w, html, answers, recordings);
    *written = w.written;
    enum dry_status status = writer_finish(&w, &err);
    return output_close(&out, status, &err);
}

void
html_say_written(const char *path, uint64_t written, const char *const *left_out,
                 size_t count)
{
    if (strcmp(path, "-") == 0)
        return;
    term_print_text(stderr, path, strlen(path));
    fprintf(stderr, ": %.1f MiB", (double)written / (1 << 20));
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s%s", i ? "; " : "; left out: ", left_out[i]);
    fputc('\n', stderr);
}
