/* SPDX-License-Identifier: Apache-2.0 */

#include "cases/model.h"
#include "cases/scripts.h"

#define LOAD "load@pipeline/io.py:31; main@run.py:20; <module>@run.py:64"
#define WORK "step@pipeline/loop.py:52; main@run.py:44; <module>@run.py:64"
#define SIDE_STREAM UINT64_C(0x562c00aa40)
#define PIECES 40

static void
load(struct program *p, unsigned count, uint64_t bytes)
{
    program_in(p, LOAD);
    program_at(p, "from_file@pipeline/io.py:17");
    for (unsigned i = 0; i < count; i++)
        program_keep(p, program_take(p, bytes));
    program_in(p, WORK);
}

static void
pass(struct program *p, const char *frames, unsigned count, uint64_t bytes)
{
    uint32_t made[PIECES];
    program_at(p, frames);
    for (unsigned i = 0; i < count; i++)
        made[i] = program_take(p, bytes);
    program_give_all(p, made, count);
    program_wait(p, 7000);
}

/* Each token adds a block of keys and values for every beam; nothing is given back. */
void
script_beams(struct program *p)
{
    load(p, 48, 256 * MIB);
    for (unsigned token = 0; token < 400 && !program_is_over(p); token++) {
        program_at(p, "append@pipeline/beams.py:40; extend@pipeline/beams.py:71");
        program_keep(p, program_take(p, 64 * MIB));
        pass(p, "score@pipeline/beams.py:55", 2, 30 * MIB);
    }
    program_unwind(p, false);
}

/* 256 MiB each, then 250 of it and 6 that stay: the 250 lie apart once they are free. */
static void
leave_pieces(struct program *p)
{
    uint32_t buffers[PIECES];
    program_in(p, WORK);
    program_at(p, "stage@pipeline/stage.py:23");
    for (unsigned i = 0; i < PIECES; i++)
        buffers[i] = program_take(p, 256 * MIB);
    program_give_all(p, buffers, PIECES);
    for (unsigned i = 0; i < PIECES; i++) {
        program_at(p, "stage@pipeline/stage.py:23");
        buffers[i] = program_take(p, 250 * MIB);
        program_at(p, "header@pipeline/stage.py:29");
        program_keep(p, program_take(p, 6 * MIB));
    }
    program_give_all(p, buffers, PIECES);
}

void
script_pieces_between(struct program *p)
{
    leave_pieces(p);
    program_at(p, "merge@pipeline/stage.py:60");
    program_take(p, 4 * GIB);
    program_unwind(p, false);
}

void
script_pieces_with_room(struct program *p)
{
    leave_pieces(p);
    program_at(p, "merge@pipeline/stage.py:60");
    uint32_t merged = program_take(p, 12 * GIB);
    program_give(p, merged);
}

static void
fill_pool(struct program *p, uint64_t pool, uint64_t bytes)
{
    uint32_t made[12];
    program_begin_pool(p, pool, 0);
    program_at(p, "forward@pipeline/net.py:88; capture@pipeline/graphs.py:30");
    for (unsigned i = 0; i < 12; i++)
        made[i] = program_take(p, bytes);
    program_at(p, "outputs@pipeline/graphs.py:36");
    program_keep(p, program_take(p, 128 * KIB));
    program_give_all(p, made, 12);
    program_end_pool(p, pool, 0);
}

/* The pools of two graphs cache what the program needs outside of both. */
void
script_two_graph_pools(struct program *p)
{
    load(p, 30, 200 * MIB);
    fill_pool(p, 1, 320 * MIB);
    fill_pool(p, 2, 340 * MIB);
    program_in(p, WORK);
    program_at(p, "gather@pipeline/loop.py:77");
    program_take(p, 2 * GIB);
    program_unwind(p, false);
}

/* The gradients of each step are put on a list, for a plot. */
void
script_kept_gradients(struct program *p)
{
    load(p, 24, 150 * MIB);
    for (unsigned step = 0; step < 40 && !program_is_over(p); step++) {
        pass(p, "forward@pipeline/net.py:70", 8, 200 * MIB);
        program_at(p, "grad@pipeline/plot.py:15; record@pipeline/plot.py:21");
        for (unsigned i = 0; i < 4; i++)
            program_keep(p, program_take(p, 150 * MIB));
        program_end_step(p);
    }
    program_unwind(p, false);
}

/* Steps like one another; then one row of ten times the usual length. */
void
script_one_long_row(struct program *p)
{
    load(p, 30, 200 * MIB);
    for (unsigned step = 0; step < 40 && !program_is_over(p); step++) {
        program_begin_scope(p, "ProfilerStep");
        pass(p, "forward@pipeline/net.py:70", 10, 120 * MIB);
        pass(p, "backward@pipeline/net.py:95", 10, 120 * MIB);
        program_end_scope(p, "ProfilerStep");
        program_end_step(p);
    }
    program_begin_scope(p, "ProfilerStep");
    pass(p, "forward@pipeline/net.py:70", 10, 1200 * MIB);
    program_unwind(p, false);
}

void
script_two_replicas(struct program *p)
{
    for (unsigned device = 0; device < 2; device++) {
        if (device > 0)
            program_next_device(p);
        load(p, 5, 200 * MIB);
        for (unsigned step = 0; step < 3 && !program_is_over(p); step++) {
            pass(p, "forward@pipeline/net.py:70", 12, (device ? 900 : 90) * MIB);
            program_end_step(p);
        }
        program_unwind(p, false);
    }
}

void
script_big_model(struct program *p)
{
    load(p, 60, 400 * MIB);
    for (unsigned step = 0; step < 2 && !program_is_over(p); step++)
        pass(p, "forward@pipeline/net.py:70", 10, 400 * MIB);
    program_unwind(p, false);
}

#define LAGGING 20

/* Copies to the host lag behind: their sources wait, beside headers that stay. */
void
script_lagging_copies(struct program *p)
{
    uint32_t buffers[LAGGING];
    program_in(p, WORK);
    program_at(p, "stage@pipeline/stage.py:23");
    for (unsigned i = 0; i < LAGGING; i++)
        buffers[i] = program_take(p, 512 * MIB);
    program_give_all(p, buffers, LAGGING);
    for (unsigned i = 0; i < LAGGING; i++) {
        program_at(p, "stage@pipeline/stage.py:23");
        buffers[i] = program_take(p, 384 * MIB);
        program_at(p, "header@pipeline/stage.py:29");
        program_keep(p, program_take(p, 126 * MIB));
    }
    program_give_all(p, buffers, LAGGING);
    for (unsigned i = 0; i <= LAGGING; i++) {
        program_at(p, "offload@pipeline/copy.py:18");
        uint32_t source = program_take(p, 384 * MIB);
        program_record_stream(p, source, SIDE_STREAM);
        program_give(p, source);
    }
    program_unwind(p, false);
}

/* Even steps cache blocks that odd steps cannot use, and the other way round. */
void
script_even_and_odd(struct program *p)
{
    load(p, 30, 200 * MIB);
    for (unsigned step = 0; step < 8; step++) {
        pass(p, "forward@pipeline/net.py:70", 12, (step % 2 ? 364 : 300) * MIB);
        program_end_step(p);
    }
}

void
script_pages_by_turns(struct program *p)
{
    load(p, 30, 200 * MIB);
    for (unsigned step = 0; step < 8; step++) {
        program_on(p, step % 2 ? SIDE_STREAM : 0);
        pass(p, "forward@pipeline/net.py:70", 12, 300 * MIB);
        program_end_step(p);
    }
}

/* Fifty steps of a sampler, all alike. */
void
script_sampler(struct program *p)
{
    load(p, 30, 160 * MIB);
    for (unsigned step = 0; step < 50; step++) {
        program_at(p, "denoise@pipeline/sampler.py:33");
        uint32_t latent = program_take(p, 64 * MIB);
        pass(p, "attend@pipeline/unet.py:120", 6, 220 * MIB);
        program_give(p, latent);
    }
}

/* Rows sorted by length, the longest last: nothing cached is ever large enough. */
void
script_growing_lengths(struct program *p)
{
    load(p, 20, 200 * MIB);
    for (unsigned step = 0; step < 12; step++) {
        pass(p, "forward@pipeline/net.py:70", 8, (100 + 30 * step) * MIB);
        program_end_step(p);
    }
}

/* The program's end: all that is still recorded is that it gives back. */
void
script_last_frees(struct program *p)
{
    uint32_t made[PIECES];
    program_in(p, WORK);
    program_at(p, "forward@pipeline/net.py:70");
    for (unsigned i = 0; i < PIECES; i++)
        made[i] = program_take(p, 210 * MIB);
    program_give_all(p, made, PIECES);
}

/* Too large a batch is caught, and half of it tried. */
void
script_retry_smaller(struct program *p)
{
    load(p, 40, 200 * MIB);
    for (uint64_t bytes = 2048 * MIB; bytes >= 512 * MIB; bytes /= 2) {
        pass(p, "forward@pipeline/net.py:70", 10, bytes);
        if (!program_is_over(p))
            break;
        program_unwind(p, false);
        program_catch(p);
        program_in(p, WORK);
    }
    pass(p, "forward@pipeline/net.py:70", 10, 512 * MIB);
}
