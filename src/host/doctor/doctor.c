/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The doctor's life: validate options, read facts of the machine, then let each topic
 * make its findings (see doctor_inside.h). Findings, changes and rows are growing arrays;
 * the getters take constant time.
 */
#include <drystone/doctor.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/fact_text.h"
#include "host/facts/facts_read.h"
#include "host/facts/topology.h"

#define NEED_BYTES_MAX (UINT64_C(1) << 63)

/* --- names -------------------------------------------------------------------------------- */

const char *
dry_doctor_purpose_name(enum dry_doctor_purpose purpose)
{
    static const char *const names[] = {[DRY_DOCTOR_TRAINING] = "training",
                                        [DRY_DOCTOR_INFERENCE] = "inference",
                                        [DRY_DOCTOR_CPU] = "cpu"};
    return (unsigned)purpose < DRY_DOCTOR_PURPOSE_COUNT ? names[purpose] : NULL;
}

const char *
dry_doctor_topic_name(enum dry_doctor_topic topic)
{
    static const char *const names[] = {
        [DRY_DOCTOR_POOLS] = "pools",
        [DRY_DOCTOR_THP] = "thp",
        [DRY_DOCTOR_FRAGMENTATION] = "fragmentation",
        [DRY_DOCTOR_NUMA] = "numa",
        [DRY_DOCTOR_LIMITS] = "limits",
        [DRY_DOCTOR_CGROUP] = "cgroup",
        [DRY_DOCTOR_KERNEL] = "kernel",
        [DRY_DOCTOR_GPU] = "gpu",
        [DRY_DOCTOR_MALLOC] = "malloc",
        [DRY_DOCTOR_PYTORCH] = "pytorch",
    };
    return (unsigned)topic < DRY_DOCTOR_TOPIC_COUNT ? names[topic] : NULL;
}

const char *
dry_doctor_verdict_name(enum dry_doctor_verdict verdict)
{
    static const char *const names[] = {
        [DRY_DOCTOR_GOOD] = "good",
        [DRY_DOCTOR_NOT_KNOWN] = "not-known",
        [DRY_DOCTOR_COULD_BE_BETTER] = "could-be-better",
        [DRY_DOCTOR_WRONG] = "wrong",
    };
    return (unsigned)verdict < DRY_DOCTOR_VERDICT_COUNT ? names[verdict] : NULL;
}

/* --- the machine as a whole --------------------------------------------------------------- */

static void
read_memory_facts(struct dry_doctor *d)
{
    struct dry_doctor_machine *m = &d->machine;
    struct dryi_fact_file file;
    struct dryi_thp_facts thp;
    dryi_facts_thp(&d->facts, &thp);
    m->huge_page_bytes = thp.huge_bytes;
    d->pool_count = dryi_facts_pool_sizes(&d->facts, d->pools);
    d->default_pool = dryi_facts_default_pool(&d->facts);
    if (dryi_facts_read(&d->facts, &file, "/proc/meminfo"))
        dryi_fact_keyed(file.text, file.length, "MemTotal", &m->memory_bytes);
    m->base_page_bytes = dryi_facts_base_bytes(&d->facts);
}

static void
read_node_facts(struct dry_doctor *d)
{
    struct dryi_fact_file file;
    if (!dryi_facts_nodes(&d->facts, &d->nodes, &d->allowed_nodes))
        d->nodes = d->allowed_nodes = (struct dry_pages_nodes){{0}};
    if (dryi_facts_read(&d->facts, &file, "/sys/devices/system/node/has_cpu"))
        dryi_fact_list(file.text, file.length, d->cpu_nodes.words, DRY_PAGES_NODES_MAX);
    d->machine.node_count = dryi_doctor_count_nodes(&d->nodes);
}

void
dryi_doctor_read_machine(struct dry_doctor *d)
{
    struct dry_doctor_machine *m = &d->machine;
    struct dryi_fact_file file;
    uint64_t minor;
    read_memory_facts(d);
    read_node_facts(d);
    if (dryi_topology_read(&d->facts, &d->memory, &d->topology, NULL) == DRY_OK)
        d->view = dry_topology_get_view(d->topology);
    else
        d->lacks_memory = true;
    if (dryi_facts_read(&d->facts, &file, "/proc/sys/kernel/osrelease"))
        dryi_text_release(file.text, file.length, &m->kernel_major, &m->kernel_minor);
    m->has_nvidia_driver =
        dryi_facts_read(&d->facts, &file, "/proc/driver/nvidia/version");
    if (m->has_nvidia_driver)
        dryi_text_driver(file.text, file.length, &d->driver_major, &minor);
}

/* --- create ------------------------------------------------------------------------------- */

void
dry_doctor_options_init_sized(struct dry_doctor_options *options, size_t struct_size)
{
    const struct dry_doctor_options defaults = {.node = DRY_DOCTOR_ANY_NODE};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
check_needs(const struct dry_doctor_options *o, struct dry_error *err)
{
    uint64_t sum = 0;
    if (o->need_count && !o->needs_bytes)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%zu needs, but needs_bytes is NULL",
                         o->need_count);
    for (size_t i = 0; i < o->need_count; i++)
        sum = dryi_add_saturating(sum, o->needs_bytes[i]);
    if (sum > NEED_BYTES_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "the needs are more than 2^63 bytes");
    return DRY_OK;
}

static enum dry_status
check_options(const struct dry_doctor_options *o, struct dry_error *err)
{
    if ((unsigned)o->purpose >= DRY_DOCTOR_PURPOSE_COUNT)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "there is no purpose %d",
                         (int)o->purpose);
    if (o->node < DRY_DOCTOR_ANY_NODE || o->node >= DRY_PAGES_NODES_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "node %d: expected -1 to %d",
                         (int)o->node, DRY_PAGES_NODES_MAX - 1);
    if (o->page_bytes && !dryi_is_power_of_two(o->page_bytes))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "pages of %llu bytes: expected a power of two",
                         (unsigned long long)o->page_bytes);
    if (o->process < 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "process %lld: expected 1 or more",
                         (long long)o->process);
    if (o->variable_count && !o->variables)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%zu variables, but they are NULL",
                         o->variable_count);
    for (size_t i = 0; i < o->variable_count; i++)
        if (!o->variables[i].name || !o->variables[i].value)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "variable %zu is NULL", i);
    return check_needs(o, err);
}

static void
check_all(struct dry_doctor *d)
{
    dryi_doctor_read_machine(d);
    if (d->lacks_memory)
        return;
    dryi_doctor_check_needs(d);
    dryi_doctor_check_pools(d);
    dryi_doctor_check_thp(d);
    dryi_doctor_check_fragmentation(d);
    dryi_doctor_check_numa(d);
    dryi_doctor_check_limits(d);
    dryi_doctor_check_cgroup(d);
    dryi_doctor_check_kernel(d);
    dryi_doctor_check_gpu(d);
    dryi_doctor_check_malloc(d);
    dryi_doctor_check_pytorch(d);
}

/* Drop pointers to the caller's data, which is valid during the call only. */
static void
forget(struct dry_doctor *d)
{
    dry_topology_destroy(d->topology);
    d->topology = NULL;
    d->view = NULL;
    d->options.root = NULL;
    d->options.variables = NULL;
    d->options.needs_bytes = NULL;
    d->facts.root = "";
    dryi_doctor_forget_process(d);
}

enum dry_status
dryi_doctor_create(const struct dry_doctor_options *options,
                   const struct dryi_kernel *kernel, struct dry_doctor **doctor,
                   struct dry_error *err)
{
    struct dry_doctor_options o;
    dry_doctor_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = check_options(&o, err);
    if (status != DRY_OK)
        return status;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_doctor *d = dryi_memory_zalloc(&memory, 1, sizeof *d);
    if (!d)
        return dryi_fail_memory(err, "doctor");
    d->memory = memory;
    d->kernel = *kernel;
    d->options = o;
    d->facts = (struct dryi_facts){
        .kernel = &d->kernel, .root = o.root ? o.root : "", .process = o.process};
    d->is_here = d->facts.root[0] == '\0' && o.process == 0;
    status = dryi_doctor_take_process(d, err);
    if (status == DRY_OK)
        check_all(d);
    forget(d);
    if (status == DRY_OK && d->lacks_memory)
        status = dryi_fail_memory(err, "findings");
    if (status != DRY_OK) {
        dry_doctor_destroy(d);
        return status;
    }
    *doctor = d;
    return DRY_OK;
}

enum dry_status
dry_doctor_create(const struct dry_doctor_options *options, struct dry_doctor **doctor,
                  struct dry_error *err)
{
    struct dryi_kernel kernel;
    dryi_kernel_init(&kernel);
    return dryi_doctor_create(options, &kernel, doctor, err);
}

void
dry_doctor_destroy(struct dry_doctor *doctor)
{
    if (!doctor)
        return;
    struct dry_memory memory = doctor->memory;
    dryi_memory_free(&memory, doctor->findings, doctor->finding_capacity,
                     sizeof *doctor->findings);
    dryi_memory_free(&memory, doctor->changes, doctor->change_capacity,
                     sizeof *doctor->changes);
    dryi_memory_free(&memory, doctor->rows, doctor->row_capacity, sizeof *doctor->rows);
    dryi_memory_free(&memory, doctor->text, doctor->text_capacity, 1);
    dryi_memory_free(&memory, doctor, 1, sizeof *doctor);
}

/* --- questions ---------------------------------------------------------------------------- */

enum dry_status
dry_doctor_get_machine(const struct dry_doctor *doctor,
                       struct dry_doctor_machine *machine)
{
    return dryi_sized_give(machine, &doctor->machine, sizeof doctor->machine);
}

size_t
dry_doctor_get_finding_count(const struct dry_doctor *doctor)
{
    return doctor->finding_count;
}

enum dry_status
dry_doctor_get_finding(const struct dry_doctor *doctor, size_t i,
                       struct dry_doctor_finding *finding)
{
    DRYI_ASSERT(i < doctor->finding_count);
    const struct dryi_finding *f = &doctor->findings[i];
    const char *text = doctor->text;
    const struct dry_doctor_finding all = {
        .id = f->texts[DRYI_TEXT_ID] ? text + f->texts[DRYI_TEXT_ID] : f->check->id,
        .topic = f->check->topic,
        .verdict = f->verdict,
        .title = f->check->title,
        .is = text + f->texts[DRYI_TEXT_IS],
        .should_be = text + f->texts[DRYI_TEXT_SHOULD_BE],
        .why = f->texts[DRYI_TEXT_WHY] ? text + f->texts[DRYI_TEXT_WHY] : f->check->why,
        .fix = text + f->texts[DRYI_TEXT_FIX],
        .undo = text + f->texts[DRYI_TEXT_UNDO],
        .persist = text + f->texts[DRYI_TEXT_PERSIST],
        .needs_root = f->needs_root,
        .needs_reboot = f->needs_reboot,
        .first_change = f->first_change,
        .change_count = f->change_count,
    };
    return dryi_sized_give(finding, &all, sizeof all);
}

enum dry_status
dry_doctor_get_change(const struct dry_doctor *doctor, size_t i,
                      struct dry_doctor_change *change)
{
    DRYI_ASSERT(i < doctor->change_count);
    const struct dryi_change *c = &doctor->changes[i];
    const struct dry_doctor_change all = {.path = doctor->text + c->path,
                                          .old_value = doctor->text + c->old_value,
                                          .new_value = doctor->text + c->new_value};
    return dryi_sized_give(change, &all, sizeof all);
}

size_t
dry_doctor_get_row_count(const struct dry_doctor *doctor)
{
    return doctor->row_count;
}

enum dry_status
dry_doctor_get_row(const struct dry_doctor *doctor, size_t i, struct dry_doctor_row *row)
{
    DRYI_ASSERT(i < doctor->row_count);
    return dryi_sized_give(row, &doctor->rows[i], sizeof *row);
}
