/* SPDX-License-Identifier: Apache-2.0 */
/* See view_report.h. */
#include "view/view_report.h"

#include <stdlib.h>

#include "base/report.h"
#include "view/html.h"
#include "view/recordings.h"
#include "view/report_set.h"

/* A page in the making. */
struct page {
    struct html html;
    unsigned char *engine; /* bytes of `html` with the engine inside; NULL: it has none */
    struct html_answers recordings;
    struct report_set set;
};

static size_t
room(const struct html *html, uint64_t max_bytes)
{
    return max_bytes > html->length ? (size_t)(max_bytes - html->length) : 0;
}

/* Choose the page with the engine if it is there and the recordings fit beside it. At most
   half of the rest goes to answers, which the page then has at once. */
static void
choose_page(struct page *page, const struct view *view, uint64_t max_bytes)
{
    struct html whole = {0};
    page->engine = recordings_find_engine(&whole.length);
    whole.bytes = page->engine;
    size_t left = page->engine ? room(&whole, max_bytes) : 0;
    size_t packed = recordings_pack(view, left / 2, &page->recordings);
    page->set.has_recordings = packed > 0;
    page->html = packed > 0 ? whole : view_html;
    page->set.budget = packed > 0 ? left - packed : room(&view_html, max_bytes);
}

static int
write_output(const struct page *page, const char *path)
{
    uint64_t written = 0;
    const struct report_set *set = &page->set;
    int code = html_write(&page->html, "view", path, &set->answers,
                          set->has_recordings ? &page->recordings : NULL, &written);
    if (code == EXIT_FINE)
        html_say_written(path, written, set->sentence_list, set->sentence_count);
    return code;
}

int
view_report_write(struct view *view, const struct view_report *wanted)
{
    struct progress progress;
    struct page page = {
        .set = {.view = view, .progress = &progress, .is_what_if = !wanted->is_quick}};
    choose_page(&page, view, wanted->max_bytes);
    progress_begin(&progress, "making the report", page.set.budget);
    bool is_fine = report_set_fill(&page.set);
    progress_end(&progress);
    int code =
        is_fine ? write_output(&page, wanted->output)
                : report_failure("view", NULL, EXIT_MACHINE, "no memory for the report");
    free(page.engine);
    html_answers_finish(&page.recordings);
    report_set_finish(&page.set);
    return code;
}
