/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_BRINK_H
#define TOOL_BRINK_H

/*
 * Thresholds on processes, and the snapshots that are asked for when one is crossed.
 *
 * A rule fires once per process, and again only after its value fell below 90 % of the
 * threshold. A process's value is the maximum over its sources on devices.
 *
 *     struct brink *brink = brink_create(&options);
 *     while (...) {
 *         watch_sample(watch);
 *         brink_check(brink, watch, wanted, tell, self);
 *     }
 *     brink_destroy(brink);
 *
 * The program writes the snapshot itself, with its own rights, to
 * DIR/NAME-rank3-PID-1.pickle. Characters of the name except letters, digits, '.', '_'
 * and '-' become '_'. If the file exists, the last number is raised.
 *
 * Threads    One at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "live/watch.h"

enum brink_rule {
    BRINK_SHARE,   /* percent of the limit that cannot be reserved any more */
    BRINK_RETRIES, /* retries per minute */
    BRINK_GROWTH,  /* growth in bytes per minute */
    BRINK_RULES,
    BRINK_HAND = BRINK_RULES, /* a user asked, not a rule */
};

struct brink_options {
    double at[BRINK_RULES]; /* thresholds; 0: the rule is off */
    const char *folder;     /* absolute folder for rules' snapshots; NULL: no snapshots */
    const char *hand;       /* absolute folder for brink_ask(), which requires one */
    uint64_t at_most;       /* limit on snapshots by rules, for the whole run */
};

/* An event of `process`, valid during the callback only. */
struct brink_event {
    const struct watch_process *process;
    bool is_answer;
    enum brink_rule rule;
    double value, at;
    const char *path; /* path of the snapshot; NULL: none was asked for */
    const char *why;  /* why none was asked for; NULL: no folder is set */
    int64_t result;   /* answers only; 0: written */
    const char *text;
};
typedef void brink_tell(void *self, const struct brink_event *event);

struct brink;

/* Copy the options; the folder names must outlive the object. NULL: memory ran out. */
struct brink *brink_create(const struct brink_options *options);
void brink_destroy(struct brink *brink);
/* Apply the rules to the watch's last sample and report events. False: memory ran out, and
   some processes were not judged. */
bool brink_check(struct brink *brink, struct watch *watch, const char *wanted,
                 brink_tell *tell, void *self);
/* Ask a process for a snapshot now, regardless of the rules. False: memory ran out. */
bool brink_ask(struct brink *brink, struct watch_process *process, brink_tell *tell,
               void *self);

#endif
