/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in crew.h. One lock protects two rings: tasks to do, and results. */
#include "work/crew.h"

#include <pthread.h>
#include <stdlib.h>

struct crew {
    const struct work *work;
    pthread_mutex_t lock;
    pthread_cond_t has_task, has_result;
    pthread_t *threads;
    size_t thread_count;
    size_t capacity; /* capacity of each ring: two tasks a thread */
    size_t given;    /* tasks given and not taken back */
    size_t *tasks;
    size_t task_first, task_count;
    struct crew_result *results;
    size_t result_first, result_count;
    bool is_over;
};

static void
put_result(struct crew *c, struct crew_result result)
{
    c->results[(c->result_first + c->result_count++) % c->capacity] = result;
    pthread_cond_signal(&c->has_result);
}

static void *
do_tasks(void *crew)
{
    struct crew *c = crew;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->task_count == 0 && !c->is_over)
            pthread_cond_wait(&c->has_task, &c->lock);
        if (c->is_over)
            break;
        size_t task = c->tasks[c->task_first];
        c->task_first = (c->task_first + 1) % c->capacity;
        c->task_count--;
        pthread_mutex_unlock(&c->lock);
        char *text = c->work->run(c->work->self, task);
        pthread_mutex_lock(&c->lock);
        put_result(c, (struct crew_result){task, text});
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void
free_crew(struct crew *c)
{
    pthread_cond_destroy(&c->has_result);
    pthread_cond_destroy(&c->has_task);
    pthread_mutex_destroy(&c->lock);
    free(c->results);
    free(c->tasks);
    free(c->threads);
    free(c);
}

/* Start the threads. If the system allows fewer, the crew works with those. */
static struct crew *
start_threads(struct crew *c, unsigned threads)
{
    while (c->thread_count < threads &&
           pthread_create(&c->threads[c->thread_count], NULL, do_tasks, c) == 0)
        c->thread_count++;
    if (c->thread_count > 0)
        return c;
    free_crew(c);
    return NULL;
}

struct crew *
crew_begin(const struct work *work, unsigned threads)
{
    struct crew *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->work = work;
    c->capacity = (size_t)threads * 2;
    c->threads = calloc(threads, sizeof *c->threads);
    c->tasks = calloc(c->capacity, sizeof *c->tasks);
    c->results = calloc(c->capacity, sizeof *c->results);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->has_task, NULL);
    pthread_cond_init(&c->has_result, NULL);
    if (c->threads && c->tasks && c->results)
        return start_threads(c, threads);
    free_crew(c);
    return NULL;
}

size_t
crew_busy(const struct crew *c)
{
    return c->given;
}

bool
crew_wants(const struct crew *c)
{
    return c->given < c->thread_count * 2;
}

void
crew_give(struct crew *c, size_t task)
{
    pthread_mutex_lock(&c->lock);
    c->tasks[(c->task_first + c->task_count++) % c->capacity] = task;
    c->given++;
    pthread_cond_signal(&c->has_task);
    pthread_mutex_unlock(&c->lock);
}

static bool
take_result(struct crew *c, struct crew_result *result, bool does_wait)
{
    if (c->given == 0)
        return false;
    pthread_mutex_lock(&c->lock);
    while (c->result_count == 0 && does_wait)
        pthread_cond_wait(&c->has_result, &c->lock);
    bool is_there = c->result_count > 0;
    if (is_there) {
        *result = c->results[c->result_first];
        c->result_first = (c->result_first + 1) % c->capacity;
        c->result_count--;
        c->given--;
    }
    pthread_mutex_unlock(&c->lock);
    return is_there;
}

bool
crew_take(struct crew *c, struct crew_result *result)
{
    return take_result(c, result, true);
}

bool
crew_poll(struct crew *c, struct crew_result *result)
{
    return take_result(c, result, false);
}

void
crew_end(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->has_task);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->thread_count; i++)
        pthread_join(c->threads[i], NULL);
    for (size_t i = 0; i < c->result_count; i++)
        free(c->results[(c->result_first + i) % c->capacity].text);
    free_crew(c);
}
