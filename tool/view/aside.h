/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ASIDE_H
#define TOOL_ASIDE_H

/*
 * Work in a child process, for what it prints: a command of this program, or an answer that
 * takes replays. Whoever serves others meanwhile asks now and then whether it is over. The
 * child's memory goes with it, and nothing of the parent's can change.
 */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "view/pack.h"

struct aside {
    pid_t child; /* and its process group */
    FILE *output;
    int status; /* as waitpid() has it, once it is over */
};

/*
 * Begin: the child calls print(self), whose standard output is kept and whose standard error is
 * not, and ends with the exit_code that it returns. False: it cannot run, and there is nothing
 * to end. Requires a process of one thread.
 */
bool aside_begin(struct aside *aside, int (*print)(void *self), void *self);
bool aside_is_over(struct aside *aside, bool does_wait);
/* End the child, and its children, before its time. aside_end() is still due. */
void aside_stop(struct aside *aside);
/*
 * End work that is over; what it printed is *answer, whose bytes the caller frees. False: it
 * ended badly.
 */
bool aside_end(struct aside *aside, struct answer *answer);

/* Print what `drystone NAME -- PATH` prints, for aside_begin(). */
struct aside_command {
    const char *name, *path;
    bool is_json; /* with --json */
};
int aside_print_command(void *aside_command);

#endif
