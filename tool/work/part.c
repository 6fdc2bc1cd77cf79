/* SPDX-License-Identifier: Apache-2.0 */
/* A table of launchers, tried from top to bottom; part.h lists their variables. */
#include "work/part.h"

#include <stdlib.h>
#include <string.h>

static const struct launcher launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true, true},
    {"mpirun", "PMI_RANK", "PMI_SIZE", true, true},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true, true},
    {"torchrun", "RANK", "WORLD_SIZE", true, false},
    {"a Slurm array", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", false, false},
    {"Kubernetes", "JOB_COMPLETION_INDEX", NULL, false, false},
};

/* Parse digits up to `end`, or to the end of the text. False: other characters. */
static bool
read_number(const char *text, const char *end, size_t *number)
{
    *number = 0;
    const char *at = text;
    for (; at && at != end && *at >= '0' && *at <= '9'; at++) {
        *number = *number * 10 + (size_t)(*at - '0');
        if (*number > PARTS_MAX)
            return false;
    }
    return at && at != text && (end ? at == end : *at == '\0');
}

const struct launcher *
part_find_launcher(char *(*get)(const char *), bool is_count_known, struct part *part)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *l = &launchers[i];
        struct part found = {0, 0};
        bool is_told = l->count != NULL;
        if (!read_number(get(l->number), NULL, &found.number) ||
            (is_told && !read_number(get(l->count), NULL, &found.count)))
            continue;
        if (is_told ? found.count > 1 : is_count_known) {
            *part = found;
            return l;
        }
    }
    return NULL;
}

/* Parse "auto", or "auto/N" if `slash` points to its "/N". */
static bool
find_auto(const char *slash, char *(*get)(const char *), struct part *part,
          const char **why)
{
    size_t count = 0;
    if (slash && !read_number(slash + 1, NULL, &count)) {
        *why = "expected auto, or auto/N with N the number of parts";
        return false;
    }
    if (!part_find_launcher(get, slash != NULL, part)) {
        *why = "no launcher has numbered this process; expected K/N, such as 0/8";
        return false;
    }
    if (slash && part->count != 0 && part->count != count) {
        *why = "the launcher tells another number of parts";
        return false;
    }
    part->count = slash ? count : part->count;
    return true;
}

bool
part_parse(const char *text, char *(*get)(const char *), struct part *part,
           const char **why)
{
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    if (length == 4 && memcmp(text, "auto", 4) == 0) {
        if (!find_auto(slash, get, part, why))
            return false;
    } else if (!slash || !read_number(text, slash, &part->number) ||
               !read_number(slash + 1, NULL, &part->count)) {
        *why = "expected K/N, such as 0/8, or auto";
        return false;
    }
    if (part->number < part->count)
        return true;
    *why = "parts count from 0 to below their number";
    return false;
}
