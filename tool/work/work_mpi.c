/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on the ranks of an MPI job. Rank 0 gives tasks to the ranks that ask, including
 * itself, heaviest first, and keeps all results. Only rank 0 has the store.
 *
 *     rank to 0    ASK      nothing: the sender can take a task
 *     rank to 0    RESULT   u64: the task, then its text; no text: memory ran out
 *     0 to rank    TASK     u64: the task, or NO_TASK if none is left
 *
 * All ranks must see the same tasks, which is checked before the first is run. MPI ends
 * the whole job when a rank dies. The store then has the results so far.
 */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/command.h"
#include "base/fnv.h"
#include "base/report.h"
#include "work/work_inside.h"

enum tag { TAG_ASK = 1, TAG_RESULT, TAG_TASK };
#define NO_TASK UINT64_MAX
#define NAP_NS                                                                           \
    500000 /* pause between polls, because a blocking MPI call keeps a core busy */

struct job {
    struct run *run;
    struct crew *crew;
    int rank, size;
    size_t next;     /* rank 0: index of the next due task */
    size_t sent_off; /* rank 0: ranks that were sent NO_TASK */
    bool has_asked;  /* others: a requested task has not arrived */
    bool is_over;    /* others: received NO_TASK */
};

static void
take_a_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* End all ranks, because others wait for this one. The failure was printed before. */
static void
end_job(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
    exit(code);
}

/* --- rank 0 ------------------------------------------------------------------------------- */

static void
hand_out(struct job *j, int rank)
{
    struct run *r = j->run;
    uint64_t task = j->next < r->due_count ? r->due[j->next++].task : NO_TASK;
    MPI_Send(&task, 1, MPI_UINT64_T, rank, TAG_TASK, MPI_COMM_WORLD);
    j->sent_off += task == NO_TASK;
}

static void
keep(struct job *j, const struct crew_result *result)
{
    int code = work_keep(j->run, result);
    if (code != EXIT_FINE)
        end_job(code);
}

static void
receive_result(struct job *j, const MPI_Status *status)
{
    int length;
    MPI_Get_count(status, MPI_BYTE, &length);
    char *message = malloc((size_t)length + 1);
    if (!message)
        end_job(work_report_memory(j->run->work));
    MPI_Recv(message, length, MPI_BYTE, status->MPI_SOURCE, TAG_RESULT, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    uint64_t task;
    memcpy(&task, message, sizeof task);
    size_t text = (size_t)length - sizeof task;
    memmove(message, message + sizeof task, text);
    message[text] = '\0';
    if (text == 0)
        free(message);
    keep(j, &(struct crew_result){(size_t)task, text == 0 ? NULL : message});
}

/* Answer one message. Returns false if none is waiting. */
static bool
serve(struct job *j)
{
    int is_there;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
    if (!is_there)
        return false;
    if (status.MPI_TAG == TAG_RESULT) {
        receive_result(j, &status);
        return true;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, TAG_ASK, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    hand_out(j, status.MPI_SOURCE);
    return true;
}

static void
lead(struct job *j)
{
    struct run *r = j->run;
    struct crew_result result;
    progress_begin(&r->progress, r->work->name, r->weight);
    while (r->results->done < r->due_count || j->sent_off + 1 < (size_t)j->size) {
        while (j->next < r->due_count && crew_wants(j->crew))
            crew_give(j->crew, r->due[j->next++].task);
        bool has_served = serve(j);
        bool has_result = crew_poll(j->crew, &result);
        if (has_result)
            keep(j, &result);
        if (!has_served && !has_result)
            take_a_nap();
    }
    progress_end(&r->progress);
}

/* --- other ranks -------------------------------------------------------------------------- */

static void
send_result(struct job *j, const struct crew_result *result)
{
    uint64_t task = result->task;
    size_t text = result->text ? strlen(result->text) : 0;
    char *message = malloc(sizeof task + text);
    if (!message || text > INT32_MAX - sizeof task)
        end_job(work_report_memory(j->run->work));
    memcpy(message, &task, sizeof task);
    if (text > 0)
        memcpy(message + sizeof task, result->text, text);
    MPI_Send(message, (int)(sizeof task + text), MPI_BYTE, 0, TAG_RESULT, MPI_COMM_WORLD);
    free(message);
    free(result->text);
}

/* Take the requested task if it has arrived. */
static bool
receive_task(struct job *j)
{
    int is_there;
    MPI_Iprobe(0, TAG_TASK, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    if (!is_there)
        return false;
    uint64_t task;
    MPI_Recv(&task, 1, MPI_UINT64_T, 0, TAG_TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    j->has_asked = false;
    if (task == NO_TASK)
        j->is_over = true;
    else
        crew_give(j->crew, (size_t)task);
    return true;
}

/* Ask for one task at a time, so that each rank receives NO_TASK exactly once. */
static void
follow(struct job *j)
{
    struct crew_result result;
    while (!j->is_over || crew_busy(j->crew) > 0) {
        if (!j->is_over && !j->has_asked && crew_wants(j->crew)) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ASK, MPI_COMM_WORLD);
            j->has_asked = true;
        }
        bool has_task = receive_task(j);
        bool has_result = crew_poll(j->crew, &result);
        if (has_result)
            send_result(j, &result);
        if (!has_task && !has_result)
            take_a_nap();
    }
}

/* --- all ranks ---------------------------------------------------------------------------- */

static uint64_t
hash_tasks(struct run *r)
{
    uint64_t hash = FNV_BEGIN;
    for (size_t i = 0; i < r->work->count; i++) {
        r->work->describe(r->work->self, i, &r->described);
        hash = fnv_add_text(hash, r->described.key);
        hash = fnv_add(hash, &r->described.stamp, sizeof r->described.stamp);
    }
    return hash;
}

static bool
see_all_the_same(struct run *r)
{
    uint64_t mine = hash_tasks(r), least, most;
    MPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return least == most;
}

/* Return this rank's share of the cores that the ranks of the machine may use. */
static unsigned
count_threads(const struct job *j)
{
    if (j->run->options->threads > 0)
        return (unsigned)j->run->options->threads;
    MPI_Comm here;
    int ranks;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, j->rank, MPI_INFO_NULL,
                        &here);
    MPI_Comm_size(here, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, &cores, (int)sizeof cores, MPI_BYTE, MPI_BOR, here);
    MPI_Comm_free(&here);
    unsigned threads = (unsigned)CPU_COUNT(&cores) / (unsigned)ranks;
    return threads > 0 ? threads : 1;
}

/* Begin a rank: only rank 0 opens the store. */
static int
begin_rank(struct job *j)
{
    struct run *r = j->run;
    MPI_Comm_rank(MPI_COMM_WORLD, &j->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j->size);
    r->results->is_elsewhere = j->rank != 0;
    r->results->is_job = true;
    if (!see_all_the_same(r))
        return j->rank != 0
                   ? EXIT_INPUT
                   : report_failure(r->work->name, NULL, EXIT_INPUT,
                                    "the ranks do not see the same files; do all "
                                    "machines have this folder?");
    j->crew = crew_begin(r->work, count_threads(j));
    if (!j->crew)
        end_job(work_report_memory(r->work));
    int code = j->rank == 0 ? work_open_here(r) : EXIT_FINE;
    if (code != EXIT_FINE)
        end_job(code);
    return EXIT_FINE;
}

int
work_run_mpi(struct run *r)
{
    struct job job = {.run = r};
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    int code = begin_rank(&job);
    if (code == EXIT_FINE) {
        if (job.rank == 0)
            lead(&job);
        else
            follow(&job);
        crew_end(job.crew);
    }
    MPI_Finalize();
    return code;
}
