/* SPDX-License-Identifier: Apache-2.0 */
/* Listing due tasks, running them on threads, and choosing how to run, see work.h. */
#include "work/work.h"

#include <sched.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/report.h"
#include "work/work_inside.h"

int
work_report_memory(const struct work *work)
{
    return report_failure(work->name, NULL, EXIT_MACHINE, "no memory for the results");
}

/* --- tasks to run ------------------------------------------------------------------------- */

static int
compare_due(const void *left, const void *right)
{
    const struct due *l = left, *r = right;
    if (l->weight != r->weight)
        return l->weight > r->weight ? -1 : 1;
    return l->task < r->task ? -1 : l->task > r->task;
}

void
work_list(struct run *r)
{
    r->due_count = r->work->count;
    for (size_t i = 0; i < r->due_count; i++) {
        r->work->describe(r->work->self, i, &r->described);
        r->due[i] = (struct due){i, r->described.weight};
    }
    if (r->due_count > 1)
        qsort(r->due, r->due_count, sizeof *r->due, compare_due);
}

int
work_find_stored(struct run *r)
{
    size_t kept = 0;
    int code = EXIT_FINE;
    for (size_t i = 0; i < r->due_count && code == EXIT_FINE; i++) {
        size_t task = r->due[i].task;
        r->work->describe(r->work->self, task, &r->described);
        char **text = &r->results->texts[task];
        if (r->store)
            code = store_find(r->store, r->described.key, r->described.stamp, text);
        if (*text && r->work->is_whole(*text))
            continue;
        free(*text);
        *text = NULL;
        r->weight += r->due[i].weight;
        r->due[kept++] = r->due[i];
    }
    r->due_count = kept;
    return code;
}

/* --- by threads --------------------------------------------------------------------------- */

int
work_keep(struct run *r, const struct crew_result *result)
{
    r->results->texts[result->task] = result->text;
    if (!result->text)
        return work_report_memory(r->work);
    r->results->done++;
    r->work->describe(r->work->self, result->task, &r->described);
    r->weight_done += r->described.weight;
    progress_update(&r->progress, r->weight_done);
    if (!r->store)
        return EXIT_FINE;
    return store_put(r->store, r->described.key, r->described.stamp, result->text);
}

unsigned
work_count_cores(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return count > 0 ? (unsigned)count : 1;
}

static unsigned
count_threads(const struct run *r)
{
    unsigned threads = (unsigned)r->options->threads;
    threads = threads == 0 ? work_count_cores() : threads;
    threads = threads > WORK_THREADS_MAX ? WORK_THREADS_MAX : threads;
    return threads > r->due_count ? (unsigned)r->due_count : threads;
}

int
work_run_due(struct run *r)
{
    if (r->due_count == 0)
        return EXIT_FINE;
    struct crew *crew = crew_begin(r->work, count_threads(r));
    if (!crew)
        return work_report_memory(r->work);
    progress_begin(&r->progress, r->work->name, r->weight);
    int code = EXIT_FINE;
    struct crew_result result;
    for (size_t next = 0; code == EXIT_FINE;) {
        while (next < r->due_count && crew_wants(crew))
            crew_give(crew, r->due[next++].task);
        if (!crew_take(crew, &result))
            break;
        code = work_keep(r, &result);
    }
    crew_end(crew);
    progress_end(&r->progress);
    return code;
}

/* --- the whole work ----------------------------------------------------------------------- */

int
work_open_here(struct run *r)
{
    int code = EXIT_FINE;
    if (r->options->store)
        code = store_open(r->work->name, r->options->store, &r->store);
    if (code == EXIT_FINE && r->options->does_merge)
        code = parts_merge(r);
    return code == EXIT_FINE ? work_find_stored(r) : code;
}

/* Run as one of several processes, each of which would do all of the work without MPI. */
static int
run_as_rank(struct run *r, const struct launcher *launcher, const struct part *part)
{
#ifdef HAVE_MPI
    if (launcher->has_mpi)
        return work_run_mpi(r);
#endif
    return report_failure(r->work->name, NULL, EXIT_USAGE,
                          "this process is number %zu of %zu that %s started, and each "
                          "would do all of the work; give --part auto with --store, or "
                          "use a drystone that is built with -Dmpi=enabled",
                          part->number, part->count, launcher->name);
}

static int
run_all(struct run *r)
{
    if ((r->options->part || r->options->does_merge) && !r->options->store)
        return report_usage(r->work->name, "--part and --merge need --store FILE");
    work_list(r);
    if (r->options->part)
        return parts_run(r);
    struct part part;
    const struct launcher *launcher =
        r->options->is_local ? NULL : part_find_launcher(getenv, false, &part);
    if (launcher && launcher->starts_ranks)
        return run_as_rank(r, launcher, &part);
    int code = work_open_here(r);
    return code == EXIT_FINE ? work_run_due(r) : code;
}

int
work_run(const struct work *work, const struct work_options *options,
         struct work_results *results)
{
    *results = (struct work_results){.count = work->count};
    struct run *r = calloc(1, sizeof *r);
    if (!r)
        return work_report_memory(work);
    r->work = work;
    r->options = options;
    r->results = results;
    results->texts = calloc(work->count + 1, sizeof *results->texts);
    r->due = calloc(work->count + 1, sizeof *r->due);
    int code = results->texts && r->due ? run_all(r) : work_report_memory(work);
    int closed = store_close(r->store);
    free(r->due);
    free(r);
    return code == EXIT_FINE ? closed : code;
}

void
work_results_drop(struct work_results *results)
{
    for (size_t i = 0; results->texts && i < results->count; i++)
        free(results->texts[i]);
    free(results->texts);
    *results = (struct work_results){0};
}
