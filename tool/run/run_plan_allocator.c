/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's settings for GPU memory: the variables that the Python package's hook reads
   (python/drystone/torch/hook), and the hook itself on PYTHONPATH. */
#include "run/run_plan.h"

#include <stdio.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "base/command.h"

struct allocator_plan {
    struct run_plan *plan;
    const struct run_options *options;
    const struct run_machine *machine;
    struct run_refusal *refusal;
};

static enum dry_status
try_conf(const struct run_options *options, struct dry_error *error)
{
    struct dry_sim_options sim_options;
    struct dry_sim *sim;
    struct dry_pool *pool;
    dry_sim_options_init(&sim_options);
    enum dry_status status = dry_sim_create(&sim_options, &sim, error);
    if (status != DRY_OK)
        return status;
    struct dry_pool_options pool_options;
    dry_pool_options_init(&pool_options);
    pool_options.device = dry_sim_get_device(sim);
    pool_options.conf = options->allocator_conf;
    if (strcmp(options->allocator, "torch") == 0)
        pool_options.placement = DRY_PLACEMENT_TORCH;
    status = dry_pool_create(&pool_options, &pool, error);
    if (status == DRY_OK)
        dry_pool_destroy(pool);
    dry_sim_destroy(sim);
    return status;
}

/* Check --allocator-conf now, not when the program first uses a GPU. */
static void
check_conf(const struct allocator_plan *p)
{
    struct dry_error error;
    const struct run_options *options = p->options;
    if (options->allocator && options->allocator_conf &&
        try_conf(options, &error) != DRY_OK)
        run_refuse(p->refusal, error.status == DRY_ERR_MEMORY ? EXIT_MACHINE : EXIT_USAGE,
                   "--allocator-conf: %.160s", error.text);
}

static void
set(const struct allocator_plan *p, const char *name, const char *value)
{
    if (!value)
        return;
    if (strlen(value) >= RUN_VALUE_MAX)
        run_refuse(p->refusal, EXIT_USAGE, "the value for %s is too long", name);
    run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, name, value, "as asked");
}

/* Set DRYSTONE_WATCH. A value that is set already is kept, because it may name another
   folder for the pages. */
static void
set_watch(const struct allocator_plan *p)
{
    static const char name[] = "DRYSTONE_WATCH";
    const char *is_set = run_variable(name);
    if (!p->options->watches)
        return;
    run_plan_add(p->plan, RUN_WHAT_VARIABLE, is_set ? RUN_KEPT : RUN_SET, name,
                 is_set ? is_set : "1",
                 is_set ? "set already" : "for a page in /dev/shm, as asked");
}

/* Put the hook first on PYTHONPATH. The hook runs a sitecustomize that it shadows. */
static void
set_path(const struct allocator_plan *p)
{
    static const char name[] = "PYTHONPATH";
    const char *hook = p->machine->hook, *is_set = run_variable(name);
    size_t length = strlen(hook);
    char text[RUN_VALUE_MAX];
    if (is_set && strncmp(is_set, hook, length) == 0 &&
        (is_set[length] == ':' || is_set[length] == '\0')) {
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_KEPT, name, is_set,
                     "has it already");
        return;
    }
    int n = snprintf(text, sizeof text, "%s%s%s", hook, is_set ? ":" : "",
                     is_set ? is_set : "");
    if (n < 0 || (size_t)n >= sizeof text)
        run_refuse(p->refusal, EXIT_MACHINE, "PYTHONPATH is too long already");
    else
        run_plan_add(p->plan, RUN_WHAT_VARIABLE, RUN_SET, name, text,
                     "Python asks there, and then PyTorch is told");
}

/* Set DRYSTONE to this command: the Python package runs `drystone` for verdicts and
   should use the same build. */
static void
set_command(const struct allocator_plan *p)
{
    static const char name[] = "DRYSTONE";
    const char *is_set = run_variable(name);
    run_plan_add(p->plan, RUN_WHAT_VARIABLE, is_set ? RUN_KEPT : RUN_SET, name,
                 is_set ? is_set : p->machine->command,
                 is_set ? "set already" : "this command, for the package");
}

void
run_plan_allocator(struct run_plan *plan, const struct run_options *options,
                   const struct run_machine *machine, struct run_refusal *refusal)
{
    const struct allocator_plan p = {plan, options, machine, refusal};
    if (!options->allocator && !options->on_oom && !options->watches)
        return;
    if (!machine->hook[0]) {
        run_refuse(refusal, EXIT_MACHINE,
                   "the Python package is not beside this command; Drystone's wheel has "
                   "both");
        return;
    }
    check_conf(&p);
    plan->has_allocator = options->allocator != NULL;
    set(&p, "DRYSTONE_ALLOCATOR", options->allocator);
    set(&p, "DRYSTONE_ALLOCATOR_CONF", options->allocator_conf);
    set(&p, "DRYSTONE_ON_OOM", options->on_oom);
    set_watch(&p);
    set_command(&p);
    set_path(&p);
}
