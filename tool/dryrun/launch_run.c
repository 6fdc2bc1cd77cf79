/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run the program of launch.h, from its environment to its exit.
 *
 * Signals, including SIGCHLD, are blocked and taken with sigtimedwait(). No handler runs,
 * so an interrupt cannot leave the temporary folder behind.
 */
#include "dryrun/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"
#include "base/now.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/term.h"

#define BOUNDLESS_BYTES (UINT64_C(1) << 40)
/* time from an interrupt to SIGTERM, in case the program ignores the interrupt */
#define TERMINATE_NS UINT64_C(3000000000)
#define KILL_NS UINT64_C(6000000000)
#define LINES_SHOWN 20
#define TRACKER_TICKS 250 /* of 20 ms, for Python's tracker to remove what is shared */
#define SOCKETS_BYTES 60  /* of a folder in which sockets find room for their names */

/* --- its environment ---------------------------------------------------------------------- */

/* Prepend `first` to a colon-separated variable. */
static void
put_first(const char *name, const char *first)
{
    const char *rest = getenv(name);
    size_t size = strlen(first) + (rest ? strlen(rest) : 0) + 2;
    char *joined = malloc(size);
    if (!joined)
        _exit(127);
    snprintf(joined, size, "%s%s%s", first, rest && *rest ? ":" : "", rest ? rest : "");
    setenv(name, joined, 1);
    free(joined);
}

static void
set_number(const char *name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    setenv(name, text, 1);
}

static void
set_card(const struct launch *l)
{
    const struct launch_request *w = &l->request;
    const struct dry_card *card = w->card;
    char text[2 * LAUNCH_PATH_BYTES];
    snprintf(
        text, sizeof text,
        "name=%s;devices=%d;total=%llu;limit=%llu;context=%llu;capability=%d.%d;sms=%d;"
        "threads=%d;"
        "shared_sm=%llu;shared_block=%llu;l2=%llu;cuda=%d;cudnn=%d;nccl=%d;descending=%d;"
        "late=%d;report=%s/called",
        card->title, w->device_count, (unsigned long long)card->usable_bytes,
        (unsigned long long)(w->is_boundless ? BOUNDLESS_BYTES : 0),
        (unsigned long long)card->context_bytes, card->capability_major,
        card->capability_minor, card->sm_count, card->threads_per_sm,
        (unsigned long long)card->shared_per_sm_bytes,
        (unsigned long long)card->shared_per_block_max_bytes,
        (unsigned long long)card->l2_bytes, l->wheel.cuda_version, l->wheel.cudnn_version,
        l->wheel.nccl_version, card->descends != w->is_other_order, w->is_late, l->out);
    setenv("DRYSTONE_STANDIN", text, 1);
}

static void
set_hook(const struct launch *l)
{
    const struct launch_request *w = &l->request;
    char text[2 * LAUNCH_PATH_BYTES], request[60] = "null";
    if (w->prompt_tokens > 0)
        snprintf(request, sizeof request, "[%lld, %lld]", (long long)w->prompt_tokens,
                 (long long)w->answer_tokens);
    snprintf(text, sizeof text,
             "{\"out\": \"%s\", \"steps\": %lld, \"until\": \"%s\", "
             "\"events\": %llu, \"brief\": %s, \"patience\": %lld, "
             "\"values\": %s, \"write\": %s, \"request\": %s, \"world_size\": %lld}",
             l->out, (long long)w->step_max, w->ends_at_epoch ? "epoch" : "end",
             (unsigned long long)w->event_max, w->is_brief ? "true" : "false",
             (long long)w->patience_s, w->has_values ? "true" : "false",
             w->may_write ? "true" : "false", request, (long long)w->world_size);
    setenv("DRYSTONE_DRY_RUN", text, 1);
    if (w->changes) {
        setenv("DRYSTONE_FIT", w->changes, 1);
        put_first("PYTHONPATH", w->package);
    }
    put_first("PYTHONPATH", l->hook);
}

/* Set the variables that torchrun sets, for one rank of a simulated job. */
static void
set_rank(const struct launch_request *w)
{
    if (w->world_size == 0)
        return;
    set_number("WORLD_SIZE", w->world_size);
    set_number("RANK", w->rank);
    set_number("LOCAL_RANK", w->rank % w->device_count);
    set_number("LOCAL_WORLD_SIZE",
               w->world_size < w->device_count ? w->world_size : w->device_count);
    set_number("GROUP_RANK", w->rank / w->device_count);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", "29500", 1);
    /* the monitoring threads would wait for the other ranks */
    setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 1);
}

static void
set_variables(const struct launch *l)
{
    char text[LAUNCH_PATH_BYTES];
    set_card(l);
    set_hook(l);
    set_rank(&l->request);
    put_first("LD_PRELOAD", l->preload);
    setenv("TRITON_LIBCUDA_PATH", l->folder, 1);
    /* kernels compiled or tuned on a stand-in must not reach later runs */
    setenv("USE_PYTORCH_KERNEL_CACHE", "0", 1);
    snprintf(text, sizeof text, "%.4000s/inductor", l->folder);
    setenv("TORCHINDUCTOR_CACHE_DIR", text, 1);
    snprintf(text, sizeof text, "%.4000s/triton", l->folder);
    setenv("TRITON_CACHE_DIR", text, 1);
    snprintf(text, sizeof text, "%.4000s/vllm", l->folder);
    setenv("VLLM_CACHE_ROOT", text, 1);
    snprintf(text, sizeof text, "%.4000s/sglang", l->folder);
    setenv("SGLANG_CACHE_DIR", text, 1);
    setenv("FLASHINFER_WORKSPACE_BASE", l->folder, 1);
    if (strlen(l->folder) < SOCKETS_BYTES)
        setenv("VLLM_RPC_BASE_PATH", l->folder, 1);
    unsetenv("CUDA_VISIBLE_DEVICES"); /* the number of devices comes from our options */
}

static void
write_log_path(const struct launch *l, char path[LAUNCH_PATH_BYTES])
{
    snprintf(path, LAUNCH_PATH_BYTES, "%.4000s/log", l->folder);
}

static void
set_output(const struct launch *l)
{
    if (l->request.output == LAUNCH_OUTPUT_ERROR)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    if (l->request.output != LAUNCH_OUTPUT_HIDDEN)
        return;
    char path[LAUNCH_PATH_BYTES];
    write_log_path(l, path);
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (log < 0)
        _exit(127);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    close(log);
}

static void
become_program(const struct launch *l, const sigset_t *mask)
{
    const struct option_list *arguments = l->request.arguments;
    char **argv = calloc(arguments->count + 1, sizeof *argv);
    if (!argv)
        _exit(127);
    for (size_t i = 0; i < arguments->count; i++)
        /* the cast is safe: execvp() does not modify the words */
        argv[i] = (char *)(uintptr_t)arguments->values[i];
    set_variables(l);
    set_output(l);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(arguments->values[0], argv);
    const char *why = strerror(errno);
    fputs("drystone: ", stderr);
    term_print_text(stderr, argv[0], strlen(argv[0]));
    fprintf(stderr, ": %s\n", why);
    _exit(127);
}

/* --- its end ------------------------------------------------------------------------------ */

struct wait {
    const struct launch *launch;
    pid_t child;
    sigset_t signals;
    uint64_t begin_ns, interrupt_ns; /* 0: not interrupted */
    struct progress progress;
    struct host_watch host;
    char title[160];
};

/* Read "STEPS ALLOCATED RESERVED" of the process that reserves most. */
static bool
read_progress(const char *out, uint64_t best[3])
{
    DIR *folder = opendir(out);
    const struct dirent *entry;
    bool is_found = false;
    while (folder && (entry = readdir(folder)) != NULL) {
        char path[LAUNCH_PATH_BYTES + 260], line[100] = "", *at = line;
        if (!strstr(entry->d_name, ".progress"))
            continue;
        snprintf(path, sizeof path, "%s/%s", out, entry->d_name);
        FILE *in = fopen(path, "r");
        if (in && !fgets(line, sizeof line, in))
            line[0] = '\0';
        if (in)
            fclose(in);
        uint64_t numbers[3];
        for (int i = 0; i < 3; i++)
            numbers[i] = strtoull(at, &at, 10);
        if (line[0] && (!is_found || numbers[2] > best[2]))
            memcpy(best, numbers, sizeof numbers);
        is_found |= line[0] != '\0';
    }
    if (folder)
        closedir(folder);
    return is_found;
}

static void
show_progress(struct wait *w)
{
    const char *title = w->launch->request.title ? w->launch->request.title : "running";
    uint64_t numbers[3] = {0},
             done = (now_ns(CLOCK_MONOTONIC) - w->begin_ns) / 1000000000;
    char reserved[TERM_NUMBER_BYTES];
    if (w->launch->request.output != LAUNCH_OUTPUT_HIDDEN)
        return;
    snprintf(w->title, sizeof w->title, "%.80s, seconds", title);
    if (read_progress(w->launch->out, numbers)) {
        snprintf(w->title, sizeof w->title, "%.80s, %s reserved, step", title,
                 term_format_bytes(numbers[2], reserved));
        done = numbers[0];
    }
    w->progress.what = w->title;
    progress_update(&w->progress, done);
}

/* Pass a signal on; a terminal sends SIGINT to the program itself. A program that ignores
   the signal gets SIGTERM after TERMINATE_NS and SIGKILL after KILL_NS. */
static void
take_signal(struct wait *w, int number)
{
    if (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP) {
        if (number != SIGINT)
            kill(w->child, number);
        if (w->interrupt_ns == 0)
            w->interrupt_ns = now_ns(CLOCK_MONOTONIC);
    }
    uint64_t since = w->interrupt_ns ? now_ns(CLOCK_MONOTONIC) - w->interrupt_ns : 0;
    if (since > KILL_NS)
        kill(w->child, SIGKILL);
    else if (since > TERMINATE_NS)
        kill(w->child, SIGTERM);
}

/* Return how many serving engines are ready; 0 as long as one of the program's is not. */
static unsigned
count_ready(const struct launch *l)
{
    char path[LAUNCH_PATH_BYTES + 8], line[24];
    unsigned long count = 0;
    snprintf(path, sizeof path, "%s/ready", l->out);
    FILE *in = fopen(path, "r");
    if (in && fgets(line, sizeof line, in))
        count = strtoul(line, NULL, 10);
    if (in)
        fclose(in);
    return count < UINT_MAX ? (unsigned)count : UINT_MAX;
}

static int
wait_for_end(struct wait *w)
{
    static const struct timespec tick = {.tv_nsec = 200000000};
    int ended = 0;
    pid_t done;
    while ((done = waitpid(w->child, &ended, WNOHANG)) == 0) {
        take_signal(w, sigtimedwait(&w->signals, NULL, &tick));
        host_watch_look(&w->host, w->child);
        show_progress(w);
        if (count_ready(w->launch) > 0)
            kill(w->child, SIGKILL);
    }
    return done < 0 ? 127 << 8 : ended;
}

/* Tell whether a process is Python's tracker, which ends by itself and removes shared memory once
   nobody of the program is left. */
static bool
is_tracker(pid_t child)
{
    char path[64], words[400] = "";
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)child);
    FILE *in = fopen(path, "r");
    size_t length = in ? fread(words, 1, sizeof words - 1, in) : 0;
    if (in)
        fclose(in);
    for (size_t i = 0; i < length; i++) {
        if (!words[i])
            words[i] = ' ';
    }
    return strstr(words, "multiprocessing.resource_tracker") != NULL;
}

/* Return one of our children, including orphans that the kernel gave to us; 0: none. */
static pid_t
find_child(bool has_trackers)
{
    char path[64], word[24];
    pid_t child = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *in = fopen(path, "r");
    while (in && child == 0 && fscanf(in, "%23s", word) == 1) {
        pid_t one = (pid_t)strtoll(word, NULL, 10);
        child = has_trackers || !is_tracker(one) ? one : 0;
    }
    if (in)
        fclose(in);
    return child;
}

static size_t
kill_children(bool has_trackers)
{
    pid_t child;
    size_t count = 0;
    while ((child = find_child(has_trackers)) > 0) {
        kill(child, SIGKILL);
        if (waitpid(child, NULL, 0) < 0)
            break;
        count++;
    }
    return count;
}

/* Kill processes that the program left running, such as Inductor's compile workers,
   because they keep writing into our temporary folder. Returns their number. */
static size_t
end_orphans(void)
{
    static const struct timespec tick = {.tv_nsec = 20000000};
    size_t count = kill_children(false);
    for (int i = 0; i < TRACKER_TICKS && find_child(true) > 0; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        nanosleep(&tick, NULL);
    }
    kill_children(true);
    return count;
}

int
launch_run(struct launch *l, int *status)
{
    struct wait w = {
        .launch = l, .begin_ns = now_ns(CLOCK_MONOTONIC), .host = {.out = l->out}};
    static const int numbers[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigset_t before;
    sigemptyset(&w.signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&w.signals, numbers[i]);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &w.signals, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    progress_begin(&w.progress, "running", 0);
    w.child = fork();
    if (w.child == 0)
        become_program(l, &before);
    int ended = w.child > 0 ? wait_for_end(&w) : 0, error = errno;
    l->engine_count = count_ready(l);
    l->orphan_count = end_orphans();
    host_watch_end(&w.host);
    l->host = w.host.use;
    progress_end(&w.progress);
    while (sigtimedwait(&w.signals, NULL, &(struct timespec){0}) > 0)
        ; /* drop pending signals that were meant for the program */
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (w.child < 0)
        return report_failure(l->request.command, NULL, EXIT_MACHINE, "%s",
                              strerror(error));
    if (l->engine_count > 0)
        ended = 0;
    l->signal = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    *status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
    if (w.interrupt_ns)
        return report_failure(l->request.command, NULL, EXIT_INTERRUPTED,
                              "interrupted after %.1f s; nothing is left behind",
                              (double)(w.interrupt_ns - w.begin_ns) / 1e9);
    return EXIT_FINE;
}

void
launch_show_output(const struct launch *l)
{
    char path[LAUNCH_PATH_BYTES], lines[LINES_SHOWN][400];
    size_t count = 0;
    write_log_path(l, path);
    FILE *in = fopen(path, "r");
    while (in && fgets(lines[count % LINES_SHOWN], sizeof *lines, in))
        count++;
    for (size_t i = count > LINES_SHOWN ? count - LINES_SHOWN : 0; i < count; i++) {
        char safe[420];
        char *line = lines[i % LINES_SHOWN];
        line[strcspn(line, "\n")] = '\0';
        term_make_printable(safe, sizeof safe, line, strlen(line));
        fprintf(stderr, "  | %s\n", safe);
    }
    if (in)
        fclose(in);
}
