/* SPDX-License-Identifier: Apache-2.0 */
/* See run_plan.h. This file plans the node, huge pages and threads; run_plan_malloc.c
   chooses the malloc, run_plan_allocator.c sets up PyTorch. */
#include "run/run_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"

void
run_plan_add(struct run_plan *plan, enum run_what what, enum run_state state,
             const char *name, const char *value, const char *reason, ...)
{
    size_t length = strlen(value);
    if (plan->count == RUN_SETTINGS_MAX || (length >= RUN_VALUE_MAX && state == RUN_SET))
        return;
    struct run_setting *s = &plan->settings[plan->count++];
    *s = (struct run_setting){.what = what, .state = state, .name = name};
    memcpy(s->value, value, length < RUN_VALUE_MAX ? length : RUN_VALUE_MAX - 1);
    va_list args;
    va_start(args, reason);
    vsnprintf(s->reason, sizeof s->reason, reason, args);
    va_end(args);
}

void
run_refuse(struct run_refusal *refusal, int exit_code, const char *text, ...)
{
    if (refusal->exit_code != EXIT_FINE)
        return; /* keep the first refusal */
    refusal->exit_code = exit_code;
    va_list args;
    va_start(args, text);
    vsnprintf(refusal->text, sizeof refusal->text, text, args);
    va_end(args);
}

static bool
has_bit(const uint64_t *words, size_t bit)
{
    return words[bit / 64] >> bit % 64 & 1;
}

static void
set_bit(uint64_t *words, size_t bit)
{
    words[bit / 64] |= UINT64_C(1) << bit % 64;
}

size_t
run_format_list(const uint64_t *words, size_t word_count, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < word_count * 64; i++) {
        size_t last = i;
        if (!has_bit(words, i))
            continue;
        while (last + 1 < word_count * 64 && has_bit(words, last + 1))
            last++;
        int n = last == i
                    ? snprintf(text + used, capacity - used, "%s%zu", used ? "," : "", i)
                    : snprintf(text + used, capacity - used, "%s%zu-%zu", used ? "," : "",
                               i, last);
        if (n < 0 || (size_t)n >= capacity - used)
            break;
        used += (size_t)n;
        i = last;
    }
    text[used] = '\0';
    return used;
}

/* --- which node --------------------------------------------------------------------------- */

struct plan_of {
    struct run_plan *plan;
    const struct run_options *options;
    const struct run_machine *machine;
    const struct dry_topology_view *view;
    struct run_refusal *refusal;
    char why[RUN_REASON_MAX]; /* the reason for the node, or for choosing none */
};

/* Read decimal digits up to a comma or the end, and advance past them. */
static bool
take_number(const char **text, uint64_t *number)
{
    if (**text < '0' || **text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long n = strtoull(*text, &end, 10);
    if (errno || (*end != '\0' && *end != ','))
        return false;
    *text = *end ? end + 1 : end;
    *number = n;
    return true;
}

const struct dry_topology_gpu *
run_find_gpu(const struct dry_topology_view *view, uint64_t number)
{
    enum dry_topology_vendor vendor = DRY_TOPOLOGY_AMD;
    for (size_t i = 0; i < view->gpu_count; i++)
        if (view->gpus[i].vendor == DRY_TOPOLOGY_NVIDIA)
            vendor = DRY_TOPOLOGY_NVIDIA;
    for (size_t i = 0; i < view->gpu_count; i++)
        if (view->gpus[i].vendor == vendor && number-- == 0)
            return &view->gpus[i];
    return NULL;
}

/* Read the numbers of the GPUs that the program will see. Returns their count; 0: no
   variable restricts them; SIZE_MAX: none visible, or not given by number. */
#define NUMBERS_MAX 64
static size_t
read_visible(uint64_t numbers[NUMBERS_MAX])
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        size_t count = 0;
        if (!text) /* an empty value is not skipped: it means no GPU */
            continue;
        while (*text && count < NUMBERS_MAX && take_number(&text, &numbers[count]))
            count++;
        return *text || count == 0 ? SIZE_MAX : count;
    }
    return 0;
}

static void
choose_gpu(struct plan_of *p, uint64_t number, const char *because)
{
    const struct dry_topology_gpu *gpu = run_find_gpu(p->view, number);
    if (!gpu) {
        snprintf(p->why, sizeof p->why, "there is no GPU %llu here",
                 (unsigned long long)number);
        return;
    }
    if (gpu->node == DRY_TOPOLOGY_NO_NODE) {
        snprintf(p->why, sizeof p->why, "the machine does not tell the node of GPU %llu",
                 (unsigned long long)number);
        return;
    }
    p->plan->node = gpu->node;
    p->plan->gpu = (int32_t)number;
    snprintf(p->why, sizeof p->why, "node %d, where GPU %llu is (%s)%s", (int)gpu->node,
             (unsigned long long)number, gpu->address, because);
}

/* Find the node that all given GPUs share. Returns NULL, or why there is none. `numbers`
   NULL: GPUs 0 to count - 1. */
static const char *
share_node(const struct plan_of *p, const uint64_t *numbers, size_t count, int32_t *node)
{
    *node = DRY_TOPOLOGY_NO_NODE;
    for (size_t i = 0; i < count; i++) {
        const struct dry_topology_gpu *gpu =
            run_find_gpu(p->view, numbers ? numbers[i] : i);
        if (!gpu)
            return "the visible GPUs are not all here";
        if (gpu->node == DRY_TOPOLOGY_NO_NODE)
            return "the machine does not tell the nodes of its GPUs";
        if (*node != DRY_TOPOLOGY_NO_NODE && *node != gpu->node)
            return "GPUs are on several nodes: --node gpu:K chooses";
        *node = gpu->node;
    }
    return count ? NULL : "no GPU says which node: --node N chooses";
}

/* Choose the node by the GPUs: a torchrun worker uses the GPU of its local rank, other
   programs their visible GPUs. */
static void
choose_by_gpus(struct plan_of *p)
{
    uint64_t numbers[NUMBERS_MAX], rank;
    size_t visible = read_visible(numbers), count = 0;
    const char *text = run_variable("LOCAL_RANK");
    while (run_find_gpu(p->view, count))
        count++;
    if (visible == SIZE_MAX) {
        snprintf(p->why, sizeof p->why, "the visible GPUs are none, or not numbers");
    } else if (text && take_number(&text, &rank) && !*text &&
               rank < (visible ? visible : count)) {
        choose_gpu(p, visible ? numbers[rank] : rank, ", by LOCAL_RANK");
    } else {
        int32_t node;
        const char *why_not =
            share_node(p, visible ? numbers : NULL, visible ? visible : count, &node);
        p->plan->node = why_not ? DRY_TOPOLOGY_NO_NODE : node;
        if (why_not)
            snprintf(p->why, sizeof p->why, "%s", why_not);
        else
            snprintf(p->why, sizeof p->why, "node %d, where all its GPUs are", (int)node);
    }
}

static void
choose_auto(struct plan_of *p)
{
    size_t usable = 0, with_cpus = 0;
    int32_t node = 0;
    for (size_t i = 0; i < p->view->node_count; i++) {
        with_cpus += p->view->nodes[i].cpu_count > 0;
        if (p->view->nodes[i].allowed_cpu_count == 0)
            continue;
        node = p->view->nodes[i].node;
        usable++;
    }
    if (with_cpus <= 1) {
        snprintf(p->why, sizeof p->why, "%s",
                 p->view->knows_nodes ? "the machine has one node with CPUs"
                                      : "the machine does not tell its nodes");
    } else if (usable == 1) {
        p->plan->node = node;
        snprintf(p->why, sizeof p->why, "node %d, the only one whose CPUs it may use",
                 (int)node);
    } else {
        choose_by_gpus(p);
    }
}

static void
choose_by_name(struct plan_of *p)
{
    const char *text = p->options->node;
    bool is_gpu = strncmp(text, "gpu:", 4) == 0;
    uint64_t number;
    text += is_gpu ? 4 : 0;
    if (!take_number(&text, &number) || *text) {
        run_refuse(p->refusal, EXIT_USAGE,
                   "--node '%.60s': expected auto, none, gpu:K or a number",
                   p->options->node);
    } else if (is_gpu) {
        choose_gpu(p, number, "");
        if (p->plan->node == DRY_TOPOLOGY_NO_NODE)
            run_refuse(p->refusal, EXIT_MACHINE, "--node %.60s: %s", p->options->node,
                       p->why);
    } else if (number > INT32_MAX ||
               !dry_topology_find_node(p->machine->topology, (int32_t)number)) {
        run_refuse(p->refusal, EXIT_MACHINE, "--node %.60s: there is no such node here",
                   p->options->node);
    } else {
        p->plan->node = (int32_t)number;
        snprintf(p->why, sizeof p->why, "node %d, as asked", (int)number);
    }
}

/* --- CPUs --------------------------------------------------------------------------------- */

/* Return the node whose CPUs serve the chosen node's memory: the node itself, or the
   nearest node with CPUs. */
static const struct dry_topology_node *
node_with_cpus(const struct plan_of *p)
{
    const struct dry_topology_node *best = NULL;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < p->view->node_count; i++) {
        const struct dry_topology_node *n = &p->view->nodes[i];
        uint32_t distance =
            n->node == p->plan->node
                ? 1
                : dry_topology_get_distance(p->machine->topology, n->node, p->plan->node);
        if (n->cpu_count > 0 && distance > 0 && distance < least) {
            best = n;
            least = distance;
        }
    }
    return best;
}

static void
bind_cpus(struct plan_of *p)
{
    struct run_plan *plan = p->plan;
    const struct dry_topology_node *from = node_with_cpus(p);
    bool is_asked = strcmp(p->options->node, "auto") != 0;
    char text[RUN_VALUE_MAX];
    if (!from || from->allowed_cpu_count == 0) {
        if (is_asked)
            run_refuse(p->refusal, EXIT_MACHINE,
                       "--node %.60s: this process may not use the CPUs of node %d",
                       p->options->node, (int)(from ? from->node : plan->node));
        run_plan_add(plan, RUN_WHAT_CPUS, RUN_LEFT, "CPUs", "",
                     "this process may not use those of node %d", (int)plan->node);
        return;
    }
    if (from->allowed_cpu_count < p->view->allowed_cpu_count) {
        memset(&plan->cpus, 0, sizeof plan->cpus);
        for (size_t i = 0; i < p->view->cpu_count; i++)
            if (p->view->cpus[i].is_allowed && p->view->cpus[i].node == from->node)
                set_bit(plan->cpus.words, p->view->cpus[i].cpu);
        plan->binds_cpus = true;
    }
    run_format_list(plan->cpus.words, DRY_TOPOLOGY_CPUS_MAX / 64, text, sizeof text);
    if (from->node != plan->node)
        run_plan_add(plan, RUN_WHAT_CPUS, plan->binds_cpus ? RUN_SET : RUN_KEPT, "CPUs",
                     text, "node %d has none; these are the nearest", (int)plan->node);
    else
        run_plan_add(plan, RUN_WHAT_CPUS, plan->binds_cpus ? RUN_SET : RUN_KEPT, "CPUs",
                     text, "%s", p->why);
}

/* --- memory ------------------------------------------------------------------------------- */

static void
add_memory(struct plan_of *p, enum run_memory_mode mode, const char *word,
           const char *reason)
{
    char list[RUN_VALUE_MAX - 64], text[RUN_VALUE_MAX];
    run_format_list(p->plan->memory_nodes, DRY_TOPOLOGY_NODES_MAX / 64, list,
                    sizeof list);
    if (p->machine->policy < 0) {
        if (mode == RUN_MEMORY_BIND)
            run_refuse(p->refusal, EXIT_MACHINE,
                       "--membind strict: policies for memory are forbidden here");
        run_plan_add(p->plan, RUN_WHAT_MEMORY, RUN_LEFT, "memory", "",
                     "policies are forbidden here (%s); what a bound CPU touches first "
                     "lies on its node",
                     p->machine->policy == -ENOSYS ? "the kernel has no nodes"
                                                   : "seccomp");
        return;
    }
    p->plan->memory_mode = mode;
    snprintf(text, sizeof text, "%s %s", word, list);
    run_plan_add(p->plan, RUN_WHAT_MEMORY, RUN_SET, "memory", text, "%s", reason);
}

static void
interleave(struct plan_of *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->view->node_count; i++) {
        if (!p->view->nodes[i].is_allowed)
            continue;
        set_bit(p->plan->memory_nodes, (size_t)p->view->nodes[i].node);
        count++;
    }
    if (count > 1)
        add_memory(p, RUN_MEMORY_INTERLEAVE, "interleave", "page by page, as asked");
    else
        run_plan_add(p->plan, RUN_WHAT_MEMORY, RUN_LEFT, "memory", "",
                     "there is one node to interleave over");
}

static void
place_memory(struct plan_of *p)
{
    const struct dry_topology_node *n =
        dry_topology_find_node(p->machine->topology, p->plan->node);
    bool is_auto = strcmp(p->options->node, "auto") == 0;
    if (is_auto && p->machine->policy > 0) {
        run_plan_add(p->plan, RUN_WHAT_MEMORY, RUN_KEPT, "memory", "",
                     "this process has a memory policy already");
    } else if (p->options->interleaves) {
        interleave(p);
    } else if (!n) {
        if (p->options->is_strict && p->view->node_count > 1)
            run_refuse(p->refusal, EXIT_MACHINE, "--membind strict, but no node: %s",
                       p->why);
    } else if (!n->is_allowed) {
        if (p->options->is_strict)
            run_refuse(p->refusal, EXIT_MACHINE,
                       "--membind strict: node %d has no memory for this process",
                       (int)n->node);
        run_plan_add(p->plan, RUN_WHAT_MEMORY, RUN_LEFT, "memory", "",
                     "node %d has none for this process", (int)n->node);
    } else {
        set_bit(p->plan->memory_nodes, (size_t)n->node);
        if (p->options->is_strict)
            add_memory(p, RUN_MEMORY_BIND, "only", "there and nowhere else");
        else
            add_memory(p, RUN_MEMORY_PREFER, "prefer", "elsewhere only if it is full");
    }
}

static void
plan_place(struct plan_of *p)
{
    struct run_plan *plan = p->plan;
    for (size_t i = 0; i < p->view->cpu_count; i++)
        if (p->view->cpus[i].is_allowed)
            set_bit(plan->cpus.words, p->view->cpus[i].cpu);
    if (strcmp(p->options->node, "none") == 0)
        snprintf(p->why, sizeof p->why, "as asked");
    else if (strcmp(p->options->node, "auto") == 0)
        choose_auto(p);
    else
        choose_by_name(p);
    if (plan->node != DRY_TOPOLOGY_NO_NODE)
        bind_cpus(p);
    else
        run_plan_add(plan, RUN_WHAT_CPUS, RUN_LEFT, "CPUs and memory", "", "%s", p->why);
    place_memory(p);
}

/* --- transparent huge pages --------------------------------------------------------------- */

static const char thp_variable[] = "THP_MEM_ALLOC_ENABLE";

static void
plan_torch_thp(struct plan_of *p)
{
    const char *is_set = run_variable(thp_variable);
    if (is_set)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_KEPT, thp_variable, is_set,
                     "set already");
    else
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, thp_variable, "1",
                     "huge pages for PyTorch's large tensors");
}

static void
plan_thp(struct plan_of *p)
{
    struct run_plan *plan = p->plan;
    plan->thp = p->options->thp;
    if (plan->thp == RUN_THP_AUTO)
        plan->thp =
            p->options->profile == RUN_MANY_WORKERS ? RUN_THP_ADVISED : RUN_THP_ALWAYS;
    if (plan->thp == RUN_THP_KEEP)
        return;
    if (plan->thp == RUN_THP_NEVER) {
        plan->thp_disable = 1;
        run_plan_add(plan, RUN_WHAT_THP, RUN_SET, "huge pages", "off",
                     "for this program, as asked");
        return;
    }
    if (p->machine->thp_mode == RUN_THP_MODE_NEVER ||
        p->machine->thp_mode == RUN_THP_NOT_KNOWN) {
        run_plan_add(plan, RUN_WHAT_THP, RUN_LEFT, "huge pages", "", "%s",
                     p->machine->thp_mode == RUN_THP_MODE_NEVER
                         ? "the machine has transparent ones off (enabled: never)"
                         : "the machine does not tell of transparent ones");
        plan->thp = RUN_THP_KEEP;
        return;
    }
    if (p->machine->is_thp_disabled) {
        plan->thp_disable = 0;
        run_plan_add(plan, RUN_WHAT_THP, RUN_SET, "huge pages", "on",
                     "what started us had turned them off");
    }
    plan_torch_thp(p);
}

/* --- OpenMP ------------------------------------------------------------------------------- */

/* Count the cores with at least one allowed CPU, limited by the cgroup's CPU time. */
static uint32_t
count_cores(const struct plan_of *p, bool *is_limited)
{
    uint64_t seen[DRY_TOPOLOGY_CPUS_MAX / 64] = {0};
    uint32_t count = 0;
    for (size_t i = 0; i < p->view->cpu_count; i++) {
        const struct dry_topology_cpu *cpu = &p->view->cpus[i];
        if (!has_bit(p->plan->cpus.words, cpu->cpu) || has_bit(seen, cpu->core))
            continue;
        set_bit(seen, cpu->core);
        count++;
    }
    uint64_t limit = (p->view->cpu_limit + 999) / 1000;
    *is_limited = limit > 0 && limit < count;
    return *is_limited ? (uint32_t)limit : count;
}

/* Bind OpenMP threads, on request only: libgomp binds the initial thread too, and
   processes forked from it (data loader workers) inherit that one core. */
static void
bind_omp(struct plan_of *p)
{
    static const char *const pairs[][2] = {
        {"OMP_PROC_BIND", "close"},
        {"OMP_PLACES", "cores"},
        {"KMP_AFFINITY", "granularity=fine,compact,1,0"},
    };
    const char *preloaded = run_variable("LD_PRELOAD");
    bool is_intel = preloaded && strstr(preloaded, "libiomp5.so");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *is_set = run_variable(pairs[i][0]);
        if (is_intel != (i == 2))
            continue;
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, is_set ? RUN_KEPT : RUN_SET, pairs[i][0],
                     is_set ? is_set : pairs[i][1],
                     is_set ? "set already" : "a thread a core, as asked");
    }
}

static void
plan_omp(struct plan_of *p)
{
    static const char name[] = "OMP_NUM_THREADS";
    const char *is_set = run_variable(name);
    bool is_limited;
    uint32_t cores = count_cores(p, &is_limited);
    char text[16];
    snprintf(text, sizeof text, "%u",
             p->options->omp_choice == RUN_CHOOSE_ONE ? p->options->omp_threads : cores);
    if (p->options->binds_omp)
        bind_omp(p);
    if (p->options->omp_choice == RUN_CHOOSE_KEEP)
        return;
    if (p->options->omp_choice == RUN_CHOOSE_ONE)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, name, text, "as asked");
    else if (is_set)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_KEPT, name, is_set, "set already");
    else if (p->options->profile == RUN_MANY_WORKERS)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_LEFT, name, "",
                     "workers share the cores: their launcher knows");
    else if (cores == 0)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_LEFT, name, "",
                     "the machine does not tell its CPUs");
    else if (is_limited)
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, name, text,
                     "the control group grants %llu.%llu CPUs",
                     (unsigned long long)(p->view->cpu_limit / 1000),
                     (unsigned long long)(p->view->cpu_limit % 1000 / 100));
    else
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, name, text,
                     "a thread a core, none for hyperthreads");
}

void
run_plan_make(struct run_plan *plan, const struct run_options *options,
              const struct run_machine *machine, struct run_refusal *refusal)
{
    struct plan_of p = {
        .plan = plan,
        .options = options,
        .machine = machine,
        .view = dry_topology_get_view(machine->topology),
        .refusal = refusal,
    };
    memset(plan, 0, sizeof *plan);
    *refusal = (struct run_refusal){.exit_code = EXIT_FINE};
    plan->node = DRY_TOPOLOGY_NO_NODE;
    plan->gpu = -1;
    plan->thp_disable = -1;
    plan_place(&p);
    plan_thp(&p);
    run_plan_malloc(plan, options, machine, refusal);
    plan_omp(&p);
    run_plan_allocator(plan, options, machine, refusal);
}
