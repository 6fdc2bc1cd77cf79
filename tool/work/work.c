/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in work.h. */
#include "work/work.h"

#include <sched.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/progress.h"
#include "base/report.h"
#include "work/crew.h"
#include "work/store.h"

/* A task that is to be done. */
struct due {
    size_t task;
    uint64_t weight;
};

struct run {
    const struct work *work;
    struct store *store; /* NULL: none */
    struct work_results *results;
    struct due *due; /* the heaviest first */
    size_t due_count;
    uint64_t weight, weight_done;
    struct work_task described; /* the one that is looked at */
    struct progress progress;
};

static int
report_memory(const struct work *work)
{
    return report_failure(work->name, NULL, EXIT_MACHINE, "no memory for the results");
}

/* --- what is due -------------------------------------------------------------------------- */

static int
compare_due(const void *left, const void *right)
{
    const struct due *l = left, *r = right;
    if (l->weight != r->weight)
        return l->weight > r->weight ? -1 : 1;
    return l->task < r->task ? -1 : l->task > r->task;
}

static int
find_due(struct run *r)
{
    for (size_t i = 0; i < r->work->count; i++) {
        r->work->describe(r->work->self, i, &r->described);
        if (r->store) {
            int code = store_find(r->store, r->described.key, r->described.stamp,
                                  &r->results->texts[i]);
            if (code != EXIT_FINE)
                return code;
        }
        if (!r->results->texts[i]) {
            r->due[r->due_count++] = (struct due){i, r->described.weight};
            r->weight += r->described.weight;
        }
    }
    if (r->due_count > 1)
        qsort(r->due, r->due_count, sizeof *r->due, compare_due);
    return EXIT_FINE;
}

/* --- doing it ----------------------------------------------------------------------------- */

static int
keep(struct run *r, const struct crew_result *result)
{
    r->results->texts[result->task] = result->text;
    if (!result->text)
        return report_memory(r->work);
    r->results->done++;
    r->work->describe(r->work->self, result->task, &r->described);
    r->weight_done += r->described.weight;
    progress_update(&r->progress, r->weight_done);
    if (!r->store)
        return EXIT_FINE;
    return store_put(r->store, r->described.key, r->described.stamp, result->text);
}

static int
do_due(struct run *r, struct crew *crew)
{
    int code = EXIT_FINE;
    size_t next = 0;
    struct crew_result result;
    do {
        while (next < r->due_count && crew_wants(crew))
            crew_give(crew, r->due[next++].task);
        if (!crew_take(crew, &result))
            break;
        code = keep(r, &result);
    } while (code == EXIT_FINE);
    return code;
}

static unsigned
count_threads(unsigned asked, size_t due)
{
    cpu_set_t cores;
    unsigned threads = asked;
    if (threads == 0)
        threads = sched_getaffinity(0, sizeof cores, &cores) == 0
                      ? (unsigned)CPU_COUNT(&cores)
                      : 1;
    threads = threads > WORK_THREADS_MAX ? WORK_THREADS_MAX : threads;
    return threads > due ? (unsigned)due : threads;
}

static int
run_due(struct run *r, const struct work_options *options)
{
    int code = find_due(r);
    if (code != EXIT_FINE || r->due_count == 0)
        return code;
    struct crew *crew =
        crew_begin(r->work, count_threads(options->threads, r->due_count));
    if (!crew)
        return report_memory(r->work);
    progress_begin(&r->progress, r->work->name, r->weight);
    code = do_due(r, crew);
    crew_end(crew);
    progress_end(&r->progress);
    return code;
}

int
work_run(const struct work *work, const struct work_options *options,
         struct work_results *results)
{
    *results = (struct work_results){.count = work->count};
    struct run *r = calloc(1, sizeof *r);
    if (!r)
        return report_memory(work);
    r->work = work;
    r->results = results;
    results->texts = calloc(work->count + 1, sizeof *results->texts);
    r->due = calloc(work->count + 1, sizeof *r->due);
    int code = results->texts && r->due ? EXIT_FINE : report_memory(work);
    if (code == EXIT_FINE && options->store)
        code = store_open(work->name, options->store, &r->store);
    if (code == EXIT_FINE)
        code = run_due(r, options);
    int closed = store_close(r->store);
    code = code == EXIT_FINE ? closed : code;
    free(r->due);
    free(r);
    if (code != EXIT_FINE)
        work_results_drop(results);
    return code;
}

void
work_results_drop(struct work_results *results)
{
    for (size_t i = 0; results->texts && i < results->count; i++)
        free(results->texts[i]);
    free(results->texts);
    *results = (struct work_results){0};
}
