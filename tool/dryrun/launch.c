/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea stands in launch.h.
 */
#include "dryrun/launch.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drystone/status.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"
#include "dryrun/shims.h"
#include "dryrun/wheel.h"

static int
fail(const struct launch *l, enum exit_code code, const char *subject, const char *text)
{
    return report_failure(l->command, subject, code, "%s", text);
}

/* --- our own files ------------------------------------------------------------------------ */

/* Beside an installed command, or beside one in the folder where it was built. */
static int
find_support(struct launch *l)
{
    static const struct {
        const char *standin, *hook;
    } places[] = {
        {"../lib/drystone/libdrystone-standin.so", "../lib/drystone/hook"},
        {"../standin/libdrystone-standin.so", "../standin/hook"},
    };
    char self[LAUNCH_PATH_BYTES / 2];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return fail(l, EXIT_MACHINE, "/proc/self/exe", strerror(errno));
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(l->standin, sizeof l->standin, "%s%s", self, places[i].standin);
        snprintf(l->hook, sizeof l->hook, "%s%s", self, places[i].hook);
        if (access(l->standin, R_OK) == 0 && access(l->hook, R_OK) == 0)
            return EXIT_FINE;
    }
    return fail(l, EXIT_MACHINE, l->standin,
                "the stand-in is not where it was installed");
}

static int
make_folder(struct launch *l)
{
    const char *base = getenv("TMPDIR");
    int written = snprintf(l->folder, sizeof l->folder, "%s/drystone-XXXXXX",
                           base && *base ? base : "/tmp");
    if (written >= (int)sizeof l->folder - 32 || !mkdtemp(l->folder)) {
        l->folder[0] = '\0';
        return fail(l, EXIT_MACHINE, base && *base ? base : "/tmp",
                    "no temporary folder can be made there");
    }
    snprintf(l->out, sizeof l->out, "%.4000s/out", l->folder);
    if (mkdir(l->out, 0700) != 0)
        return fail(l, EXIT_MACHINE, l->out, strerror(errno));
    return EXIT_FINE;
}

static int
make_shims(struct launch *l)
{
    char libraries[LAUNCH_PATH_BYTES + 8];
    struct dry_error err;
    snprintf(libraries, sizeof libraries, "%s/lib", l->wheel.folder);
    const struct shims_wish wish = {
        .wheel = libraries, .standin = l->standin, .folder = l->folder};
    if (shims_make(&wish, &l->preload, &err) != DRY_OK)
        return report_error(l->command, libraries, &err);
    return EXIT_FINE;
}

int
launch_begin(struct launch *l)
{
    int code = wheel_find(&l->wheel, l->command, l->words->values[0]);
    if (code == EXIT_FINE)
        code = find_support(l);
    if (code == EXIT_FINE)
        code = make_folder(l);
    return code == EXIT_FINE ? make_shims(l) : code;
}

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    remove(path);
    return 0;
}

void
launch_finish(struct launch *l)
{
    if (l->folder[0])
        nftw(l->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    l->folder[0] = '\0';
    free(l->preload);
    l->preload = NULL;
}

/* --- the program -------------------------------------------------------------------------- */

/* Put `first` before what the variable holds. */
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
set_variables(const struct launch *l)
{
    const struct dry_card *card = l->card;
    char text[2 * LAUNCH_PATH_BYTES];
    snprintf(
        text, sizeof text,
        "name=%s;devices=%d;total=%llu;context=%llu;capability=%d.%d;sms=%d;threads=%d;"
        "shared_sm=%llu;shared_block=%llu;l2=%llu;cuda=%d;cudnn=%d;nccl=%d;descending=%d;"
        "late=%d;"
        "report=%s/called",
        card->title, l->device_count, (unsigned long long)card->usable_bytes,
        (unsigned long long)card->context_bytes, card->capability_major,
        card->capability_minor, card->sm_count, card->threads_per_sm,
        (unsigned long long)card->shared_per_sm_bytes,
        (unsigned long long)card->shared_per_block_max_bytes,
        (unsigned long long)card->l2_bytes, l->wheel.cuda_version, l->wheel.cudnn_version,
        l->wheel.nccl_version, card->descends, l->is_late, l->out);
    setenv("DRYSTONE_STANDIN", text, 1);
    snprintf(text, sizeof text, "{\"out\": \"%s\", \"steps\": %lld, \"events\": %llu}",
             l->out, (long long)l->step_max, (unsigned long long)l->event_max);
    setenv("DRYSTONE_DRY_RUN", text, 1);
    put_first("LD_PRELOAD", l->preload);
    put_first("PYTHONPATH", l->hook);
    setenv("TRITON_LIBCUDA_PATH", l->folder, 1);
    /* what was compiled for a stand-in, or timed on one, is nothing for a later run */
    setenv("USE_PYTORCH_KERNEL_CACHE", "0", 1);
    snprintf(text, sizeof text, "%.4000s/inductor", l->folder);
    setenv("TORCHINDUCTOR_CACHE_DIR", text, 1);
    snprintf(text, sizeof text, "%.4000s/triton", l->folder);
    setenv("TRITON_CACHE_DIR", text, 1);
    unsetenv("CUDA_VISIBLE_DEVICES"); /* there are as many as were asked for */
}

static void
become_program(const struct launch *l)
{
    char **argv = calloc(l->words->count + 1, sizeof *argv);
    if (!argv)
        _exit(127);
    for (size_t i = 0; i < l->words->count; i++)
        argv[i] =
            (char *)(uintptr_t)l->words->values[i]; /* exec() does not change them */
    set_variables(l);
    if (l->is_output_for_error)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    execvp(l->words->values[0], argv);
    _exit(127);
}

int
launch_run(struct launch *l, int *status)
{
    fflush(NULL);
    void (*before_int)(int) = signal(SIGINT, SIG_IGN);
    void (*before_quit)(int) = signal(SIGQUIT, SIG_IGN);
    pid_t child = fork();
    if (child == 0)
        become_program(l);
    int code = child > 0 ? EXIT_FINE : fail(l, EXIT_MACHINE, NULL, strerror(errno));
    int ended = 0;
    while (child > 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, before_int);
    signal(SIGQUIT, before_quit);
    *status = WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
    return code;
}
