/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a job: make_fleet DIR SEED RANKS STAGES [SICKNESS=RANK]...
 *
 * Ranks are runs of pipeline stages, of which the first and the last have the embedding. The
 * batch differs a little from rank to rank. A host has eight ranks, its own path to the
 * source, and from the fifth host on an edited file. Sicknesses: leak, extra (a line that
 * no other rank has), oom, device (another one than its rank tells), stage (RANK is a stage,
 * which has three times the layers).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <drystone/trace.h>

#include "cases/cases.h"
#include "cases/model.h"
#include "cases/program.h"
#include "support/random.h"

#define STEPS 6
#define NOBODY 1000000u
#define A_HOST 8u

/* The rank that is made, and who is sick: scripts take no arguments. */
static struct job {
    unsigned rank, ranks, stages;
    unsigned leak, extra, oom, device, stage;
    struct random random;
} job = {
    .leak = NOBODY, .extra = NOBODY, .oom = NOBODY, .device = NOBODY, .stage = NOBODY};

static void
make_buffers(struct program *p)
{
    char frames[160];
    unsigned host = job.rank / A_HOST;
    snprintf(frames, sizeof frames, "make_buffer@/mnt/host%u/proj/src/buffers.py:%u",
             host, host < 4 ? 12 : 15);
    program_at(p, frames);
    for (unsigned i = 0; i < 4; i++)
        program_keep(p, program_take(p, 6 * MIB));
}

static void
run_step(struct program *p, struct model *m)
{
    uint32_t extra = NO_TENSOR;
    if (job.rank == job.extra) {
        program_at(p, "gather_logits@/mnt/host/proj/metrics.py:88; log@train.py:70");
        extra = program_take(p, 96 * MIB);
    }
    model_step(p, m);
    program_give(p, extra);
    if (job.rank == job.leak) {
        program_at(p, "append@train.py:74; log_metrics@train.py:69");
        program_keep(p, program_take(p, 9 * MIB));
    }
    program_end_step(p);
}

static void
script_rank(struct program *p)
{
    unsigned stage = job.rank / (job.ranks / job.stages);
    bool is_edge = stage == 0 || stage + 1 == job.stages;
    struct model m = {.layers = stage == job.stage ? 12 : 4,
                      .heads = 8,
                      .hidden = 512,
                      .vocab = is_edge ? 16000 : 64,
                      .batch = 4,
                      .length = 496 + 8 * random_below(&job.random, 5),
                      .has_optimizer = true};
    for (unsigned i = 0; i < 3 && job.rank == job.device; i++)
        program_next_device(p);
    program_wait(p, 11 * (int64_t)job.rank);
    model_load(p, &m);
    make_buffers(p);
    for (unsigned step = 0; step < STEPS && !program_is_over(p); step++) {
        char name[32];
        snprintf(name, sizeof name, "step %u", step);
        program_tag(p, name);
        run_step(p, &m);
    }
    program_unwind(p, false);
}

static enum dry_status
write_bytes(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    if (fwrite(bytes, 1, count, self) == count)
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot write"};
    return DRY_ERR_SYSTEM;
}

static bool
make_rank(const char *folder)
{
    char path[4096];
    struct labelled_case label = {.name = "rank",
                                  .what = "a rank of a job",
                                  .total_bytes = (job.rank == job.oom ? 250 : 4000) * MIB,
                                  .other_bytes = 10 * MIB,
                                  .run = script_rank};
    struct case_truth truth;
    struct dry_trace *snapshot;
    struct dry_error err;
    snprintf(path, sizeof path, "%s/rank%u_memory_snapshot.pickle", folder, job.rank);
    if (case_make(&label, &snapshot, &truth, &err) != DRY_OK) {
        fprintf(stderr, "make_fleet: %s: %s\n", path, err.text);
        return false;
    }
    FILE *file = fopen(path, "wb");
    struct dry_sink sink = {write_bytes, file};
    bool is_written = file && dry_trace_write(snapshot, &sink, &err) == DRY_OK;
    is_written = file && fclose(file) == 0 && is_written;
    dry_trace_destroy(snapshot);
    return is_written;
}

static bool
read_sickness(const char *text)
{
    const struct {
        const char *name;
        unsigned *rank;
    } known[] = {{"leak=", &job.leak},
                 {"extra=", &job.extra},
                 {"oom=", &job.oom},
                 {"device=", &job.device},
                 {"stage=", &job.stage}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(text, known[i].name, length) == 0) {
            *known[i].rank = (unsigned)strtoul(text + length, NULL, 10);
            return true;
        }
    }
    return false;
}

int
main(int argc, char **argv)
{
    bool is_fine = argc >= 5;
    for (int i = 5; i < argc && is_fine; i++)
        is_fine = read_sickness(argv[i]);
    if (!is_fine) {
        fprintf(stderr, "usage: make_fleet DIR SEED RANKS STAGES [SICKNESS=RANK]...\n");
        return 2;
    }
    random_init(&job.random, strtoull(argv[2], NULL, 10));
    job.ranks = (unsigned)strtoul(argv[3], NULL, 10);
    job.stages = (unsigned)strtoul(argv[4], NULL, 10);
    if (mkdir(argv[1], 0777) != 0 && errno != EEXIST) {
        perror(argv[1]);
        return 1;
    }
    for (job.rank = 0; job.rank < job.ranks && is_fine; job.rank++)
        is_fine = make_rank(argv[1]);
    return is_fine ? 0 : 1;
}
