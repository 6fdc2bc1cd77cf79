/* SPDX-License-Identifier: Apache-2.0 */
/* See run_prove.h. */
#include "run/run_prove.h"

#include <stdarg.h>
#include <string.h>

#include "base/term.h"
#include "run/run_report.h"

/* With less anonymous memory there is no verdict: stacks and small blocks never become
   huge pages. */
#define TELLING_BYTES (UINT64_C(32) << 20)
#define FEW_BYTES (UINT64_C(1) << 20)
#define SHARE_MIN 90 /* percent that must be on the requested nodes */
/* percent; page tables, code and small blocks remain in base pages */
#define HUGE_SHARE_MIN 50

void
run_proof_take(struct run_proof *proof, const struct run_sample *sample)
{
    proof->sample_count++;
    if (sample->stray_count >= proof->stray_count) {
        proof->stray_count = sample->stray_count;
        proof->cpus = sample->cpus;
    }
    if (sample->resident_bytes > proof->most_bytes)
        proof->most_bytes = sample->resident_bytes;
    if (sample->resident_bytes >= proof->most_bytes / 2)
        proof->best = *sample;
}

__attribute__((format(printf, 4, 5))) static void
add(struct run_proof *proof, enum run_verdict verdict, const char *name,
    const char *format, ...)
{
    if (proof->finding_count == RUN_FINDINGS_MAX)
        return;
    struct run_finding *f = &proof->findings[proof->finding_count++];
    *f = (struct run_finding){.verdict = verdict, .name = name};
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static void
judge_cpus(struct run_proof *proof, const struct run_plan *plan)
{
    char list[160];
    if (plan->node == DRY_TOPOLOGY_NO_NODE)
        return;
    run_format_list(proof->cpus.words, DRY_TOPOLOGY_CPUS_MAX / 64, list, sizeof list);
    if (proof->stray_count)
        add(proof, RUN_NOT_SO, "CPUs", "%zu thread%s may run on %s", proof->stray_count,
            proof->stray_count == 1 ? "" : "s", list);
    else
        add(proof, RUN_PROVEN, "CPUs", "%zu thread%s on %s", proof->best.thread_count,
            proof->best.thread_count == 1 ? "" : "s", list);
}

static unsigned
get_percent(uint64_t part, uint64_t whole)
{
    return whole ? (unsigned)((double)part * 100 / (double)whole) : 0;
}

/* Bytes in total, on the plan's nodes, and on the plan's node with the fewest bytes. */
struct shares {
    uint64_t whole, there, least;
    size_t count;
};

static struct shares
share_nodes(const struct run_sample *s, const struct run_plan *plan)
{
    struct shares sum = {.least = UINT64_MAX};
    for (size_t i = 0; i < DRY_TOPOLOGY_NODES_MAX; i++) {
        sum.whole += s->node_bytes[i];
        if (!(plan->memory_nodes[i / 64] >> i % 64 & 1))
            continue;
        sum.there += s->node_bytes[i];
        sum.count++;
        if (s->node_bytes[i] < sum.least)
            sum.least = s->node_bytes[i];
    }
    return sum;
}

static void
judge_memory(struct run_proof *proof, const struct run_plan *plan)
{
    const struct run_sample *s = &proof->best;
    char bytes[TERM_NUMBER_BYTES], list[100];
    static const char name[] = "memory";
    if (plan->memory_mode == RUN_MEMORY_KEEP)
        return;
    bool is_spread = plan->memory_mode == RUN_MEMORY_INTERLEAVE;
    struct shares sum = share_nodes(s, plan);
    unsigned there = get_percent(sum.there, sum.whole);
    unsigned least = get_percent(sum.least, sum.whole);
    bool is_even = !is_spread || sum.least >= sum.whole / sum.count / 2;
    run_format_list(plan->memory_nodes, DRY_TOPOLOGY_NODES_MAX / 64, list, sizeof list);
    term_format_bytes(sum.whole, bytes);
    if (!s->knows_nodes)
        add(proof, RUN_UNPROVEN, name, "the system does not tell its nodes");
    else if (sum.whole < (is_spread ? TELLING_BYTES : FEW_BYTES))
        add(proof, RUN_UNPROVEN, name, "the program held %s, too little to tell", bytes);
    else if (is_spread)
        add(proof, there >= SHARE_MIN && is_even ? RUN_PROVEN : RUN_NOT_SO, name,
            "%u %% of %s lies on nodes %s, at least %u %% on each", there, bytes, list,
            least);
    else
        add(proof, there >= SHARE_MIN ? RUN_PROVEN : RUN_NOT_SO, name,
            "%u %% of %s lies on node %s", there, bytes, list);
}

static void
judge_malloc(struct run_proof *proof, const struct run_plan *plan)
{
    const struct run_sample *s = &proof->best;
    const char *name = run_malloc_name(plan->malloc);
    unsigned others = s->mallocs & ~1u & ~(1u << RUN_MALLOC_GLIBC);
    if (plan->malloc == RUN_MALLOC_NONE)
        return;
    if (plan->malloc == RUN_MALLOC_GLIBC && others)
        add(proof, RUN_NOT_SO, "malloc", "the program brings %s",
            run_malloc_name((enum run_malloc)__builtin_ctz(others)));
    else if (plan->malloc == RUN_MALLOC_GLIBC)
        add(proof, RUN_PROVEN, "malloc", "no other than glibc's is there");
    else if (s->mallocs >> plan->malloc & 1)
        add(proof, RUN_PROVEN, "malloc", "%s is in process %d", name, (int)s->process);
    else
        add(proof, RUN_NOT_SO, "malloc", "%s is not in process %d: %s", name,
            (int)s->process,
            "it was not loaded (a static or privileged program, or a broken library)");
}

static void
judge_huge(struct run_proof *proof, const struct run_plan *plan)
{
    const struct run_sample *s = &proof->best;
    char bytes[TERM_NUMBER_BYTES];
    static const char name[] = "huge pages";
    unsigned percent = get_percent(s->huge_bytes, s->anonymous_bytes);
    term_format_bytes(s->anonymous_bytes, bytes);
    if (plan->thp == RUN_THP_NEVER) {
        bool is_off = s->is_thp_enabled == 0 || s->huge_bytes == 0;
        add(proof, is_off ? RUN_PROVEN : RUN_NOT_SO, name, "%u %% of %s", percent, bytes);
        return;
    }
    if (plan->thp != RUN_THP_ALWAYS)
        return;
    if (!s->knows_pages)
        add(proof, RUN_UNPROVEN, name, "the system does not tell");
    else if (s->anonymous_bytes < TELLING_BYTES)
        add(proof, RUN_UNPROVEN, name, "the program held %s, too little to tell", bytes);
    else if (plan->malloc == RUN_MALLOC_TCMALLOC || plan->malloc == RUN_MALLOC_MIMALLOC ||
             plan->malloc == RUN_MALLOC_NONE)
        add(proof, percent >= HUGE_SHARE_MIN ? RUN_PROVEN : RUN_UNPROVEN, name,
            "%u %% of %s; this malloc does not ask for them", percent, bytes);
    else
        add(proof, percent >= HUGE_SHARE_MIN ? RUN_PROVEN : RUN_NOT_SO, name,
            "%u %% of %s", percent, bytes);
}

static void
judge_variables(struct run_proof *proof, const struct run_plan *plan)
{
    const struct run_sample *s = &proof->best;
    static const char name[] = "variables";
    const char *missing = NULL;
    size_t count = 0, found = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct run_setting *set = &plan->settings[i];
        if (set->what != RUN_WHAT_VARIABLE || set->state != RUN_SET)
            continue;
        count++;
        found += s->has_variable[i];
        if (!s->has_variable[i] && !missing)
            missing = set->name;
    }
    if (count == 0)
        return;
    if (!s->knows_variables)
        add(proof, RUN_UNPROVEN, name, "the system does not tell");
    else if (missing)
        add(proof, RUN_NOT_SO, name, "%zu of %zu %s there; %s is not, or is changed",
            found, count, found == 1 ? "is" : "are", missing);
    else
        add(proof, RUN_PROVEN, name, "%s%zu of %zu %s there", count > 1 ? "all " : "",
            found, count, count > 1 ? "are" : "is");
}

static void
judge_allocator(struct run_proof *proof, const struct run_plan *plan)
{
    const struct run_sample *s = &proof->best;
    static const char name[] = "allocator";
    if (!plan->has_allocator)
        return;
    if (s->has_allocator)
        add(proof, RUN_PROVEN, name, "ours is in process %d", (int)s->process);
    else
        add(proof, RUN_NOT_SO, name,
            "ours is not in process %d: it had not imported PyTorch, or its Python "
            "ignores "
            "PYTHONPATH (-E, -I, -S)",
            (int)s->process);
}

bool
run_proof_judge(struct run_proof *proof, const struct run_plan *plan)
{
    if (proof->sample_count == 0) {
        add(proof, RUN_UNPROVEN, "all", "the program ended before it could be looked at");
        return true;
    }
    judge_cpus(proof, plan);
    judge_memory(proof, plan);
    judge_malloc(proof, plan);
    judge_huge(proof, plan);
    judge_variables(proof, plan);
    judge_allocator(proof, plan);
    bool is_so = true;
    for (size_t i = 0; i < proof->finding_count; i++)
        is_so &= proof->findings[i].verdict != RUN_NOT_SO;
    return is_so;
}

void
run_proof_print(const struct run_proof *proof, FILE *out)
{
    static const char *const words[] = {
        [RUN_PROVEN] = "proven", [RUN_NOT_SO] = "NOT SO", [RUN_UNPROVEN] = "unsure"};
    for (size_t i = 0; i < proof->finding_count; i++) {
        const struct run_finding *f = &proof->findings[i];
        const struct run_row row = {words[f->verdict], f->name, "", f->text};
        run_report_row(&row, out);
    }
}
