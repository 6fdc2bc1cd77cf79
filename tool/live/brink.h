/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BRINK_H
#define TOOL_BRINK_H

/*
 * Programs on the brink: who crosses a threshold, and the snapshots that are asked for then.
 *
 * A rule fires for a process once, and again only after its value has fallen below nine tenths of
 * the threshold. A value is the largest of the process's sources of devices.
 *
 *     struct brink *brink = brink_create(&options);
 *     while (...) {
 *         watch_look(watch);
 *         brink_look(brink, watch, wanted, tell, self);
 *     }
 *     brink_destroy(brink);
 *
 * The program writes the snapshot itself, with its own rights, to DIR/NAME-rank3-PID-1.pickle. Signs
 * of a name that are no letter, digit, '.', '_' or '-' become '_'. A file that is there is not asked
 * for again: the number goes up.
 *
 * Threads    One at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "live/watch.h"

enum brink_rule {
    BRINK_SHARE,   /* percent of the limit that cannot be reserved any more */
    BRINK_RETRIES, /* a minute */
    BRINK_GROWTH,  /* bytes a minute */
    BRINK_RULES,
    BRINK_HAND = BRINK_RULES, /* somebody asked: no rule */
};

struct brink_options {
    double at[BRINK_RULES]; /* 0: the rule is not asked for */
    const char *folder;     /* absolute, for rules; NULL: no snapshots */
    const char *hand;       /* the same for brink_ask(), which requires it */
    uint64_t at_most;       /* snapshots by rules, of the whole run */
};

/* Something that happened to `process`. Valid while it is told. */
struct brink_event {
    const struct watch_process *process;
    bool is_answer;
    enum brink_rule rule;
    double value, at;
    const char *path; /* of the snapshot; NULL: none was asked for */
    const char *why;  /* why none was; NULL: no folder is given */
    int64_t result;   /* of an answer: 0 for done */
    const char *text;
};
typedef void brink_tell(void *self, const struct brink_event *event);

struct brink;

/* NULL: there is no memory. `options` are copied, the folders' names are not. */
struct brink *brink_create(const struct brink_options *options);
void brink_destroy(struct brink *brink);
/* Judge what the watch saw last, and tell. False: there was no memory for all of them. */
bool brink_look(struct brink *brink, struct watch *watch, const char *wanted,
                brink_tell *tell, void *self);
/* Ask a process for a snapshot now, whatever the rules say. False: there was no memory. */
bool brink_ask(struct brink *brink, struct watch_process *process, brink_tell *tell,
               void *self);

#endif
