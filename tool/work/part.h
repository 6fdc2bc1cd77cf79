/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PART_H
#define TOOL_PART_H

/*
 * Which part of the work this process does: told by the command line, or by the variables
 * that launchers set for each process they start.
 *
 *     launcher                       number                   of
 *     Open MPI's mpirun              OMPI_COMM_WORLD_RANK     OMPI_COMM_WORLD_SIZE
 *     MPICH's, Slurm's PMI           PMI_RANK                 PMI_SIZE
 *     srun                           SLURM_PROCID             SLURM_STEP_NUM_TASKS
 *     torchrun                       RANK                     WORLD_SIZE
 *     a Slurm array (from 0)         SLURM_ARRAY_TASK_ID      SLURM_ARRAY_TASK_COUNT
 *     an indexed job of Kubernetes   JOB_COMPLETION_INDEX     not told
 */

#include <stdbool.h>
#include <stddef.h>

#define PARTS_MAX 1000000

struct part {
    size_t number; /* from 0 */
    size_t count;
};

/* A launcher that numbered this process. */
struct launcher {
    const char *name;
    const char *number, *count; /* variables; count NULL: the launcher does not tell */
    bool
        starts_ranks; /* all processes have one command line and mean one piece of work */
    bool has_mpi;
};

/*
 * Find the launcher that started several processes, this one among them; NULL: none did. A
 * launcher that does not tell how many counts only with `is_count_known`. `get` is getenv().
 */
const struct launcher *part_find_launcher(char *(*get)(const char *), bool is_count_known,
                                          struct part *part);
/* Read "K/N", "auto" or "auto/N"; false: *why says what is wrong with it. */
bool part_parse(const char *text, char *(*get)(const char *), struct part *part,
                const char **why);

#endif
