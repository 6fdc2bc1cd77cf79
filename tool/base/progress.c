/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "base/progress.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/now.h"
#include "base/term.h"

#define FIRST_NS UINT64_C(1000000000)
#define EVERY_NS UINT64_C(100000000)

/* Wipe out the progress line and let the signal end the program. */
static void
end_by_signal(int number)
{
    static const char wipe[] = "\r\x1b[K";
    ssize_t ignored = write(STDERR_FILENO, wipe, sizeof wipe - 1);
    (void)ignored;
    raise(number); /* SA_RESETHAND has restored the default action */
}

/* Catch SIGINT to wipe out the line, unless SIGINT is ignored or handled already. */
static void
catch_interrupt(struct progress *p)
{
    struct sigaction now, action = {.sa_handler = end_by_signal};
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    p->is_caught = sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
                   sigaction(SIGINT, &action, NULL) == 0;
}

void
progress_begin(struct progress *progress, const char *what, uint64_t total)
{
    *progress = (struct progress){.what = what, .total = total};
    progress->is_wanted = isatty(STDERR_FILENO);
    progress->begin_ns = now_ns(CLOCK_MONOTONIC);
    progress->next_ns = progress->begin_ns + FIRST_NS;
}

bool
progress_update(void *self, uint64_t done)
{
    struct progress *p = self;
    uint64_t now = p->is_wanted ? now_ns(CLOCK_MONOTONIC) : 0;
    if (!p->is_wanted || now < p->next_ns)
        return false;
    p->next_ns = now + EVERY_NS;
    if (!p->is_shown)
        catch_interrupt(p);
    p->is_shown = true;
    char what[60], count[TERM_NUMBER_BYTES];
    term_make_printable(what, sizeof what, p->what, strlen(p->what));
    if (p->total >= done && p->total > 0)
        fprintf(stderr, "\r%s: %u %%\x1b[K", what,
                (unsigned)((double)done / (double)p->total * 100));
    else
        fprintf(stderr, "\r%s: %s\x1b[K", what, term_format_count(done, count));
    fflush(stderr);
    return false;
}

void
progress_end(struct progress *progress)
{
    if (progress->is_shown)
        fputs("\r\x1b[K", stderr);
    if (progress->is_caught)
        signal(SIGINT, SIG_DFL);
    progress->is_shown = progress->is_caught = false;
}
