/* SPDX-License-Identifier: Apache-2.0 */
/* See run_watch.h. The program is a child process; take_sample() takes a sample and computes the
   time of the next. */
#include "run/run_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"
#include "base/now.h"
#include "base/report.h"
#include "run/run_prove.h"
#include "run/run_start.h"

#define FIRST_NS INT64_C(5000000)
#define LAST_NS INT64_C(30000000000)
/* sampling takes at most 1/50 of one CPU, the kernel's page walk included */
#define COST_PART 50

struct watch {
    const struct run_plan *plan;
    char *const *arguments;
    pid_t program;
    sigset_t signals, before;
    struct run_proof *proof;
    struct run_sample *sample;
    int64_t begin_ns, wait_ns;
};

static void
block_signals(struct watch *w)
{
    static const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP,
                                  SIGQUIT, SIGUSR1, SIGUSR2};
    sigemptyset(&w->signals);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&w->signals, signals[i]);
    sigprocmask(SIG_BLOCK, &w->signals, &w->before);
}

/* Exec the program in the child. On success, the pipe closes without data (O_CLOEXEC); on
   failure it carries errno. */
static void
become_child(const struct watch *w, int to_parent)
{
    sigprocmask(SIG_SETMASK, &w->before, NULL);
    run_set_variables(w->plan);
    int code = run_become(w->arguments);
    int error = errno;
    if (write(to_parent, &error, sizeof error) != sizeof error)
        code = RUN_CANNOT_START;
    _exit(code);
}

/* Start the program. Returns EXIT_FINE if it runs; a failure is printed. */
static int
start_child(struct watch *w)
{
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return report_failure("run", NULL, EXIT_MACHINE, "%s", strerror(errno));
    w->program = fork();
    if (w->program == 0)
        become_child(w, ends[1]);
    error = w->program < 0 ? errno : 0;
    close(ends[1]);
    ssize_t got = 0;
    if (w->program > 0)
        while ((got = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR)
            continue;
    close(ends[0]);
    if (w->program < 0)
        return report_failure("run", NULL, EXIT_MACHINE, "%s", strerror(error));
    if (got != sizeof error)
        return EXIT_FINE;
    int status;
    while (waitpid(w->program, &status, 0) < 0 && errno == EINTR)
        continue;
    int code = error == ENOENT || error == ENOTDIR ? RUN_NOT_FOUND : RUN_CANNOT_START;
    return report_failure("run", w->arguments[0], (enum exit_code)code, "%s",
                          strerror(error));
}

static int64_t
smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * Take a sample. The next is due when the time since the start has doubled, at the latest
 * after LAST_NS or COST_PART times the sample's cost, whichever is longer. So short
 * programs are sampled when they are large, too.
 */
static void
take_sample(struct watch *w)
{
    int64_t begin = (int64_t)now_ns(CLOCK_THREAD_CPUTIME_ID);
    if (run_sample_read(w->sample, w->program, w->plan))
        run_proof_take(w->proof, w->sample);
    int64_t cost = (int64_t)now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    int64_t passed = (int64_t)now_ns(CLOCK_MONOTONIC) - w->begin_ns;
    w->wait_ns = smaller(passed, LAST_NS);
    if (w->wait_ns < cost * COST_PART)
        w->wait_ns = smaller(passed, cost * COST_PART);
    if (w->wait_ns < FIRST_NS)
        w->wait_ns = FIRST_NS;
}

/* Sample until the program has ended. Returns its wait status. */
static int
wait_for_program(struct watch *w)
{
    w->begin_ns = (int64_t)now_ns(CLOCK_MONOTONIC);
    int64_t due = w->begin_ns + w->wait_ns;
    for (;;) {
        int status;
        pid_t ended = waitpid(w->program, &status, WNOHANG);
        if (ended == w->program)
            return status;
        int64_t left = due - (int64_t)now_ns(CLOCK_MONOTONIC);
        siginfo_t info;
        if (left <= 0) {
            take_sample(w);
            due = (int64_t)now_ns(CLOCK_MONOTONIC) + w->wait_ns;
            continue;
        }
        struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int signal = sigtimedwait(&w->signals, &info, &t);
        /* The kernel sends a terminal's signals to the program too, so pass on only those
           sent by processes. */
        if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
            kill(w->program, signal);
    }
}

static int
to_exit_code(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "drystone: run: signal %d (%s) ended the program\n", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

int
run_watch(const struct run_plan *plan, char *const *arguments, bool is_strict)
{
    struct watch w = {.plan = plan, .arguments = arguments, .wait_ns = FIRST_NS};
    w.proof = calloc(1, sizeof *w.proof);
    w.sample = calloc(1, sizeof *w.sample);
    int code = EXIT_FINE;
    if (!w.proof || !w.sample)
        code = report_memory("run", NULL);
    block_signals(&w);
    if (code == EXIT_FINE)
        code = start_child(&w);
    if (code == EXIT_FINE) {
        code = to_exit_code(wait_for_program(&w));
        bool is_so = run_proof_judge(w.proof, plan);
        run_proof_print(w.proof, stderr);
        if (!is_so && is_strict && code == EXIT_FINE)
            code = EXIT_FOUND;
    }
    sigprocmask(SIG_SETMASK, &w.before, NULL);
    free(w.proof);
    free(w.sample);
    return code;
}
