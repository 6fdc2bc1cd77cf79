/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine of the page has instead of a system: progress goes to the worker, which also runs
 * commands in instances of their own; tasks run one after the other; databases, which take SQLite, and
 * files to write are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/command.h"
#include "base/fail.h"
#include "base/now.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/report.h"
#include "record/nsight.h"
#include "sweep/sweep_table.h"
#include "work/work.h"

#define EVERY_NS UINT64_C(100000000)

/* The worker supplies this: tell the page how far the work is; total 0: unknown. */
__attribute__((import_module("page"), import_name("progress"))) void page_progress(
    const char *what, size_t length, double done, double total);

/* --- progress ----------------------------------------------------------------------------- */

void
progress_begin(struct progress *progress, const char *what, uint64_t total)
{
    *progress = (struct progress){.what = what, .total = total, .is_wanted = true};
    progress->next_ns = now_ns(CLOCK_MONOTONIC) + EVERY_NS;
}

bool
progress_update(void *self, uint64_t done)
{
    struct progress *p = self;
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (now < p->next_ns)
        return false;
    p->next_ns = now + EVERY_NS;
    page_progress(p->what, strlen(p->what), (double)done, (double)p->total);
    return false;
}

void
progress_end(struct progress *progress)
{
    progress->is_wanted = false;
}

/* --- commands ----------------------------------------------------------------------------- */

/* The worker supplies this: run a command in an instance of its own. *text is what it printed, with a zero
   behind it, in memory from page_allocate(). Returns the exit_code; -1: the instance stopped. */
__attribute__((import_module("page"), import_name("command"))) int page_command(
    int argc, char **argv, char **text, size_t *length);

/* A child is over when child_begin() returns; its output waits here for child_end(). */
static struct child_output ended;

int
child_print_command(void *self)
{
    const struct child_command *c = self;
    ended = (struct child_output){0};
    ended.code = page_command(c->argc, c->argv, &ended.text, &ended.length);
    return ended.code;
}

bool
child_begin(struct child *child, const struct child_work *work)
{
    *child = (struct child){.status = work->print(work->self)};
    return child->status >= 0;
}

bool
child_is_over(struct child *child, bool does_wait)
{
    (void)child;
    (void)does_wait;
    return true;
}

bool
child_end(struct child *child, struct child_output *output)
{
    (void)child;
    *output = ended;
    return output->text != NULL;
}

/* --- tasks -------------------------------------------------------------------------------- */

static int
run_tasks(const struct work *work, struct work_results *results)
{
    struct work_task *task = malloc(sizeof *task);
    struct progress progress;
    uint64_t weight = 0, done = 0;
    for (size_t i = 0; task && i < work->count; i++) {
        work->describe(work->self, i, task);
        weight += task->weight;
    }
    progress_begin(&progress, work->name, weight);
    bool is_whole = task != NULL;
    for (size_t i = 0; is_whole && i < work->count; i++) {
        work->describe(work->self, i, task);
        results->texts[i] = work->run(work->self, i);
        is_whole = results->texts[i] != NULL;
        done += task->weight;
        progress_update(&progress, done);
    }
    progress_end(&progress);
    free(task);
    results->done = results->count;
    return is_whole ? EXIT_FINE : report_memory(work->name, NULL);
}

int
work_run(const struct work *work, const struct work_options *options,
         struct work_results *results)
{
    *results = (struct work_results){.count = work->count};
    if (options->store || options->part || options->does_merge)
        return report_usage(work->name, "a page keeps no results: no --store, no --part");
    results->texts = calloc(work->count + 1, sizeof *results->texts);
    return results->texts ? run_tasks(work, results) : report_memory(work->name, NULL);
}

void
work_results_drop(struct work_results *results)
{
    for (size_t i = 0; results->texts && i < results->count; i++)
        free(results->texts[i]);
    free(results->texts);
    *results = (struct work_results){0};
}

/* --- files and databases -------------------------------------------------------------------- */

bool
nsight_is_database(const unsigned char *bytes, size_t count)
{
    return count >= 16 && memcmp(bytes, "SQLite format 3", 16) == 0;
}

enum dry_status
nsight_read(const char *path, uint64_t memory_bytes_max, struct dry_trace **trace,
            char note[NSIGHT_NOTE_BYTES], struct dry_error *err)
{
    (void)path;
    (void)memory_bytes_max;
    (void)trace;
    (void)note;
    return fail_at(err, DRY_ERR_UNSUPPORTED, DRY_NO_OFFSET,
                   "a page reads no databases; `drystone view` on Linux shows those of "
                   "Nsight Systems");
}

int
output_write_text(const char *command, const char *path, char *text)
{
    free(text);
    return report_failure(command, path, EXIT_USAGE, "a page writes no files");
}

int
sweep_table_write(const struct sweep *sweep)
{
    (void)sweep;
    return report_failure("sweep", NULL, EXIT_USAGE, "a page writes no databases");
}
