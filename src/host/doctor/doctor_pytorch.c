/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on PyTorch's options for host memory in the program's variables. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"

#define SHOWN_MAX 80
#define THREADS_MAX 128

static const struct dryi_check check_pinned = {
    DRY_DOCTOR_PYTORCH, "pytorch-pinned", "PyTorch's cache of page-locked memory",
    "page-locked memory costs half a second to a second a GiB when the driver fills it "
    "with one thread; touched by several first and then registered, a fifth of that and "
    "less"};
static const struct dryi_check check_both = {
    DRY_DOCTOR_PYTORCH, "pytorch-conf", "PyTorch's two variables",
    "PYTORCH_ALLOC_CONF is the newer name of PYTORCH_CUDA_ALLOC_CONF; which of the two "
    "holds depends on the release"};
static const struct dryi_check check_thp = {
    DRY_DOCTOR_PYTORCH, "pytorch-thp", "PyTorch's tensors in huge pages",
    "with THP_MEM_ALLOC_ENABLE=1 tensors of 2 MiB and more ask the kernel for huge "
    "pages, which they get even where transparent pages are on \"madvise\""};
static const struct dryi_check check_threads = {
    DRY_DOCTOR_PYTORCH, "omp-threads", "threads of an operator",
    "one a physical core of one node is most that helps; more wait for each other, and "
    "memory they touch first lies on the wrong node"};

static const struct dryi_check check_process = {
    DRY_DOCTOR_PYTORCH, "torch-loaded", "PyTorch in the process",
    "variables of malloc are read when a program begins, those of PyTorch when it is "
    "loaded or first asked for memory; what is set afterwards changes nothing"};

enum form { FORM_TRUTH, FORM_NUMBER, FORM_THREADS };

static const struct {
    const char *key;
    enum form form;
} pinned_options[] = {
    {"pinned_free_catch_all", FORM_TRUTH},
    {"pinned_max_cached_size_mb", FORM_NUMBER},
    {"pinned_max_round_threshold_mb", FORM_NUMBER},
    {"pinned_num_register_threads", FORM_THREADS},
    {"pinned_reserve_segment_size_mb", FORM_NUMBER},
    {"pinned_use_background_threads", FORM_TRUTH},
    {"pinned_use_cuda_host_register", FORM_TRUTH},
    {"pinned_use_hip_host_register", FORM_TRUTH},
};

static bool
is_value(struct dryi_doctor_piece value, enum form form)
{
    uint64_t n;
    if (form == FORM_TRUTH)
        return dryi_doctor_piece_is(value, "True") ||
               dryi_doctor_piece_is(value, "False");
    if (!dryi_doctor_piece_number(value, &n))
        return false;
    return form == FORM_NUMBER || (dryi_is_power_of_two(n) && n <= THREADS_MAX);
}

/* Trim blanks, which PyTorch ignores. */
static struct dryi_doctor_piece
trim(struct dryi_doctor_piece piece)
{
    while (piece.length && piece.bytes[0] == ' ')
        piece.bytes++, piece.length--;
    while (piece.length && piece.bytes[piece.length - 1] == ' ')
        piece.length--;
    return piece;
}

static const char *
get_conf(const struct dry_doctor *d)
{
    const char *text = dryi_doctor_variable(d, "PYTORCH_ALLOC_CONF");
    return text ? text : dryi_doctor_variable(d, "PYTORCH_CUDA_ALLOC_CONF");
}

static int
shown(struct dryi_doctor_piece word)
{
    return word.length > SHOWN_MAX ? SHOWN_MAX : (int)word.length;
}

/* Report one option of the pinned cache, and judge it. */
static void
judge_setting(struct dry_doctor *d, const struct dryi_doctor_setting *s)
{
    for (size_t i = 0; i < sizeof pinned_options / sizeof *pinned_options; i++) {
        if (!dryi_doctor_piece_is(s->key, pinned_options[i].key))
            continue;
        dryi_doctor_is(d, "%s:%.*s", pinned_options[i].key, shown(s->value),
                       s->value.bytes);
        if (is_value(s->value, pinned_options[i].form))
            return;
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "%s: %s", pinned_options[i].key,
                              pinned_options[i].form == FORM_TRUTH ? "True or False"
                              : pinned_options[i].form == FORM_NUMBER
                                  ? "a whole number"
                                  : "a power of two up "
                                    "to 128");
        return;
    }
    dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    dryi_doctor_is(d, "%.*s, which PyTorch does not know", shown(s->key), s->key.bytes);
    dryi_doctor_should_be(d, "options that PyTorch has");
}

/* Return a power of two, as PyTorch requires; more than 8 threads were never faster. */
static unsigned
fill_threads(const struct dry_doctor *d)
{
    uint64_t cpus = d->view->allowed_cpu_count;
    return cpus == 0 || cpus >= 8 ? 8 : 1U << dryi_log2_floor(cpus);
}

/* Recommend the two options; existing options are kept. */
static void
mend_cache(struct dry_doctor *d, const char *set)
{
    bool is_old = set && !dryi_doctor_variable(d, "PYTORCH_ALLOC_CONF");
    const char *name = is_old ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF";
    bool is_set = set && *set;
    dryi_doctor_fix(d,
                    "export %s=%s%s%spinned_use_cuda_host_register:True,"
                    "pinned_num_register_threads:%u%s",
                    name, is_set ? "\"$" : "", is_set ? name : "", is_set ? "," : "",
                    fill_threads(d), is_set ? "\"" : "");
    if (is_set)
        dryi_doctor_undo(d, "# take these two out again");
    else
        dryi_doctor_undo(d, "unset %s", name);
}

static void
check_cache(struct dry_doctor *d)
{
    const char *text = get_conf(d);
    struct dryi_doctor_setting s;
    size_t at = 0, count = 0;
    bool registers = false;
    if (!dryi_doctor_has_gpu_purpose(d))
        return;
    dryi_doctor_begin(d, &check_pinned);
    for (size_t i = 0; text && i < 64 &&
                       dryi_text_setting((struct dryi_doctor_piece){text, strlen(text)},
                                         ',', ':', &at, &s);
         i++) {
        s = (struct dryi_doctor_setting){trim(s.key), trim(s.value)};
        if (s.key.length < 7 || memcmp(s.key.bytes, "pinned_", 7) != 0)
            continue;
        judge_setting(d, &s);
        count++;
        registers =
            registers || (dryi_doctor_piece_is(s.key, "pinned_use_cuda_host_register") &&
                          dryi_doctor_piece_is(s.value, "True"));
    }
    if (count == 0)
        dryi_doctor_is(d, "no option is set");
    if (!registers) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "filled by several threads, then registered");
        mend_cache(d, text);
    }
    dryi_doctor_end(d);
}

static void
check_names(struct dry_doctor *d)
{
    const char *new = dryi_doctor_variable(d, "PYTORCH_ALLOC_CONF");
    const char *old = dryi_doctor_variable(d, "PYTORCH_CUDA_ALLOC_CONF");
    if (!new || !old)
        return;
    dryi_doctor_begin(d, &check_both);
    dryi_doctor_is(d, "%s",
                   strcmp(new, old) == 0 ? "both, alike" : "both, and they differ");
    if (strcmp(new, old) != 0) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_should_be(d, "one of them");
        dryi_doctor_fix(d, "unset PYTORCH_CUDA_ALLOC_CONF");
    }
    dryi_doctor_end(d);
}

static void
check_huge_tensors(struct dry_doctor *d)
{
    const char *value = dryi_doctor_variable(d, "THP_MEM_ALLOC_ENABLE");
    bool is_on = value && strcmp(value, "1") == 0;
    if (d->options.purpose != DRY_DOCTOR_CPU)
        return;
    dryi_doctor_begin(d, &check_thp);
    dryi_doctor_is(d, "THP_MEM_ALLOC_ENABLE %s%.*s", value ? "is " : "is not set",
                   SHOWN_MAX, value ? value : "");
    if (!is_on) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "1");
        dryi_doctor_fix(d, "export THP_MEM_ALLOC_ENABLE=1");
        dryi_doctor_undo(d, "unset THP_MEM_ALLOC_ENABLE");
    }
    dryi_doctor_end(d);
}

/* Return the allowed cores of the node with the most. */
static uint64_t
cores_of_a_node(const struct dry_doctor *d)
{
    uint64_t most = 0;
    for (size_t i = 0; i < d->view->node_count; i++)
        if (d->view->nodes[i].allowed_core_count > most)
            most = d->view->nodes[i].allowed_core_count;
    return most;
}

static void
check_omp(struct dry_doctor *d)
{
    const char *value = dryi_doctor_variable(d, "OMP_NUM_THREADS");
    uint64_t cores = cores_of_a_node(d), threads;
    if (d->options.purpose != DRY_DOCTOR_CPU || cores == 0)
        return;
    dryi_doctor_begin(d, &check_threads);
    if (!value) {
        dryi_doctor_is(d, "OMP_NUM_THREADS is not set: as many as there are CPUs");
        if (d->view->allowed_cpu_count > cores)
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    } else if (!dryi_doctor_piece_number(
                   (struct dryi_doctor_piece){value, strcspn(value, ",")}, &threads)) {
        dryi_doctor_is(d, "OMP_NUM_THREADS is no number");
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    } else {
        dryi_doctor_is(d, "%llu", (unsigned long long)threads);
        if (threads > cores)
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
    }
    if (!dryi_doctor_is_good(d)) {
        dryi_doctor_should_be(d, "%llu or less", (unsigned long long)cores);
        dryi_doctor_fix(d, "export OMP_NUM_THREADS=%llu", (unsigned long long)cores);
        dryi_doctor_undo(d, "unset OMP_NUM_THREADS");
    }
    dryi_doctor_end(d);
}

/* Return whether a bad finding exists that variables can fix. */
static bool
has_bad_variables(const struct dry_doctor *d)
{
    for (size_t i = 0; i < d->finding_count; i++) {
        const struct dryi_finding *f = &d->findings[i];
        if (f->verdict >= DRY_DOCTOR_COULD_BE_BETTER &&
            (f->check->topic == DRY_DOCTOR_MALLOC ||
             f->check->topic == DRY_DOCTOR_PYTORCH))
            return true;
    }
    return false;
}

/* Report whether variables can still take effect in a running program. */
static void
check_loaded(struct dry_doctor *d)
{
    const char *torch = d->process.torch;
    if (d->options.process == 0)
        return;
    bool is_bad = has_bad_variables(d);
    dryi_doctor_begin(d, &check_process);
    if (!d->process.knows_files) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "/proc/%lld/maps cannot be read",
                       (long long)d->options.process);
    } else if (!*torch) {
        dryi_doctor_is(d, "libtorch is not loaded: PYTORCH_* that the program itself "
                          "sets before it imports torch still hold");
    } else {
        dryi_doctor_is(d, "%.*s is loaded: PYTORCH_* set now are too late", SHOWN_MAX,
                       torch);
        if (is_bad) {
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
            dryi_doctor_should_be(d, "started with the variables that the findings of "
                                     "malloc and PyTorch name");
            dryi_doctor_fix(d, "# set them, then start the program again");
        }
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_pytorch(struct dry_doctor *d)
{
    if (!dryi_doctor_knows_variables(d))
        return;
    check_cache(d);
    check_names(d);
    check_huge_tensors(d);
    check_omp(d);
    check_loaded(d);
}
