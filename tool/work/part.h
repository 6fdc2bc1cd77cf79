/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PART_H
#define TOOL_PART_H

/*
 * Find the part of the work that this process does. It is given on the command line, or
 * by variables that launchers set for each process:
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
    size_t number; /* counted from 0 */
    size_t count;
};

/* A launcher, and how it numbers the processes that it starts. */
struct launcher {
    const char *name;
    const char *number, *count; /* variables; count is NULL if the launcher sets none */
    bool starts_ranks; /* all processes have the same command line and share the work */
    bool has_mpi;
};

/*
 * Find the launcher that started several processes, including this one. Returns NULL if
 * none did. A launcher without a count is found only with `is_count_known`. `get` is
 * getenv().
 */
const struct launcher *part_find_launcher(char *(*get)(const char *), bool is_count_known,
                                          struct part *part);
/* Parse "K/N", "auto" or "auto/N". Returns false and sets *why if it is invalid. */
bool part_parse(const char *text, char *(*get)(const char *), struct part *part,
                const char **why);

#endif
