/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes in a page: a good page is spoilt in places, shown as text and as JSON, and asked for
 * its answer. The text has no control character, and the JSON is one.
 *
 * Input: a byte that cuts the file where it is odd; then pieces, each of three bytes for the
 * place, one for the length, and the bytes.
 */
#include "support/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "live/live_json.h"
#include "live/live_text.h"

#define NAME "drystone-live-77-0"
#define PIECE_MAX 64u

static char folder[64], path[96];

static void
remove_folder(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static void
make_folder(void)
{
    if (folder[0])
        return;
    strcpy(folder, "/dev/shm/drystone-fuzz-XXXXXX");
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/drystone-fuzz-XXXXXX");
        fuzz_require(mkdtemp(folder) != NULL);
    }
    (void)snprintf(path, sizeof path, "%s/" NAME, folder);
    fuzz_require(atexit(remove_folder) == 0);
}

static void
make_page(struct dry_live_page *page)
{
    memset(page, 0, sizeof *page);
    page->magic = DRY_LIVE_MAGIC;
    page->version = DRY_LIVE_VERSION;
    page->page_bytes = DRY_LIVE_PAGE_BYTES;
    page->program = (struct dry_live_program){.process = 77, .rank = 3, .world = 8};
    strcpy(page->program.name, "train.py");
    strcpy(page->program.labels, "pod=a,namespace=b");
    page->source_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        struct dry_live_source *s = &page->slots[i].source;
        s->kind = DRY_LIVE_POOL + i;
        s->updates = 1;
        strcpy(s->name, "torch");
        s->detail.at_ns = 1;
        s->detail.lane_count = s->detail.line_count = 2;
        strcpy(s->detail.lines[0].text, "model.py:3 forward");
    }
}

static void
spoil(struct dry_live_page *page, struct fuzz_bytes *in)
{
    while (in->left) {
        size_t at = fuzz_next_byte(in);
        at |= (size_t)fuzz_next_byte(in) << 8;
        at |= (size_t)fuzz_next_byte(in) << 16;
        size_t length = fuzz_next_byte(in) % PIECE_MAX + 1;
        for (size_t i = 0; i < length && in->left; i++)
            ((uint8_t *)page)[(at + i) % sizeof *page] = fuzz_next_byte(in);
    }
}

static void
write_page(const struct dry_live_page *page, size_t bytes)
{
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    fuzz_require(file >= 0 && write(file, page, bytes) == (ssize_t)bytes);
    (void)close(file);
}

static void
ask_for_answer(void)
{
    struct dry_live_reader *reader;
    struct dry_live_answer answer;
    if (dry_live_open(folder, NAME, NULL, &reader, NULL) != DRY_OK)
        return;
    if (dry_live_get_answer(reader, &answer, NULL) == DRY_OK)
        fuzz_require(strlen(answer.text) < sizeof answer.text);
    dry_live_close(reader);
}

static void
show(const struct watch *watch, bool is_json)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    fuzz_require(out != NULL);
    struct term term = {.out = out, .width = 80};
    bool is_shown =
        is_json ? live_json_print(watch, NULL, out) : live_text_print(watch, "77", &term);
    fuzz_require(fclose(out) == 0 && is_shown);
    for (size_t i = 0; i < length; i++)
        fuzz_require(text[i] == '\n' || (unsigned char)text[i] >= 0x20);
    if (is_json) {
        json_t *document = json_loadb(text, length, 0, NULL);
        fuzz_require(document != NULL);
        json_decref(document);
    }
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dry_live_page page;
    struct fuzz_bytes in = {data, size};
    uint8_t cut = fuzz_next_byte(&in);
    make_folder();
    make_page(&page);
    spoil(&page, &in);
    write_page(&page, cut % 2 ? sizeof page * cut / 256 : sizeof page);
    ask_for_answer();
    struct watch_options options = {.folder = folder};
    struct watch *watch = watch_create(&options);
    fuzz_require(watch && watch_sample(watch));
    show(watch, false);
    show(watch, true);
    watch_destroy(watch);
    (void)unlink(path);
    return 0;
}
