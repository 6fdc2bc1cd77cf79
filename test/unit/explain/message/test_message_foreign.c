/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts of others than PyTorch's allocator of a device: recognised with their numbers,
 * judged, and with something to do; sentences about them are none.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/message.h>

#define KIB (UINT64_C(1) << 10)
#define GIB (UINT64_C(1) << 30)
#define OR(cause) (1u << DRY_CAUSE_##cause)

struct example {
    const char *text;
    enum dry_message_form form;
    enum dry_message_backend backend;
    uint64_t tried, allowed, process; /* 0: not in the text */
    enum dry_cause cause;
    uint32_t alternatives;
    const char *code; /* of a step that must be there */
};

static const struct example examples[] = {
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not "
     "enough memory: you tried to allocate 17179869184 bytes.",
     DRY_MESSAGE_HOST, DRY_MESSAGE_BACKEND_HOST, 16 * GIB, 0, 0, DRY_CAUSE_CAPACITY,
     OR(LIMIT) | OR(OTHER_MEMORY), "drystone pages"},
    {"RuntimeError: [enforce fail at CPUAllocator.cpp:64] . DefaultCPUAllocator: can't "
     "allocate memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot "
     "allocate memory)",
     DRY_MESSAGE_HOST, DRY_MESSAGE_BACKEND_HOST, 8 * GIB, 0, 0, DRY_CAUSE_CAPACITY,
     OR(LIMIT) | OR(OTHER_MEMORY), "mmap=True"},
    {"XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
     "17179869184 bytes.",
     DRY_MESSAGE_XLA, DRY_MESSAGE_BACKEND_XLA, 16 * GIB, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "XLA_PYTHON_CLIENT_MEM_FRACTION"},
    {"RESOURCE_EXHAUSTED: Out of memory allocating 4294967296 bytes.", DRY_MESSAGE_XLA,
     DRY_MESSAGE_BACKEND_XLA, 4 * GIB, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "donate_argnums"},
    {"RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device "
     "ordinal 0",
     DRY_MESSAGE_XLA, DRY_MESSAGE_BACKEND_XLA, 2 * GIB, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "save_device_memory_profile"},
    {"RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory "
     "space hbm. Used 19.00G of 15.48G hbm.",
     DRY_MESSAGE_XLA_PROGRAM, DRY_MESSAGE_BACKEND_XLA, 19 * GIB, 0, 0, DRY_CAUSE_CAPACITY,
     0, "memory_analysis"},
    {"ValueError: No available memory for the cache blocks. Try increasing "
     "`gpu_memory_utilization` when initializing the engine.",
     DRY_MESSAGE_KV_CACHE, DRY_MESSAGE_CUDA, 0, 0, 0, DRY_CAUSE_LIMIT,
     OR(CAPACITY) | OR(OTHER_MEMORY), "--gpu-memory-utilization"},
    {"ValueError: To serve at least one request with the models's max seq len (131072), "
     "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
     "(10.00 GiB). Based on the available memory, ...",
     DRY_MESSAGE_KV_CACHE, DRY_MESSAGE_CUDA, 16 * GIB, 10 * GIB, 0, DRY_CAUSE_CAPACITY, 0,
     "--max-model-len"},
    {"Last error:\nCuda failure 2 'out of memory'\n", DRY_MESSAGE_NCCL, DRY_MESSAGE_CUDA,
     0, 0, 0, DRY_CAUSE_UNKNOWN, OR(CAPACITY) | OR(OTHER_MEMORY), "NCCL_BUFFSIZE"},
    {"Last error:\nFailed to CUDA calloc async 608 bytes\n", DRY_MESSAGE_NCCL,
     DRY_MESSAGE_CUDA, 608, 0, 0, DRY_CAUSE_UNKNOWN, OR(CAPACITY) | OR(OTHER_MEMORY),
     "NCCL_MAX_NCHANNELS"},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
     "`cublasCreate(handle)`",
     DRY_MESSAGE_LIBRARY, DRY_MESSAGE_CUDA, 0, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(OTHER_MEMORY), "current_blas_handle"},
    {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", DRY_MESSAGE_LIBRARY,
     DRY_MESSAGE_CUDA, 0, 0, 0, DRY_CAUSE_UNKNOWN, OR(CAPACITY) | OR(OTHER_MEMORY),
     "set_per_process_memory_fraction"},
    {"[12345.678901] Out of memory: Killed process 1234 (python) total-vm:99999999kB, "
     "anon-rss:67108864kB, file-rss:0kB, shmem-rss:0kB, UID:1000",
     DRY_MESSAGE_KILLED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 64 * GIB, DRY_CAUSE_CAPACITY,
     OR(OTHER_MEMORY), "drystone pages"},
    {"[12345.678901] Out of memory: Kill process 1234 (python) score 900 or sacrifice "
     "child",
     DRY_MESSAGE_KILLED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_CAPACITY,
     OR(OTHER_MEMORY), "drystone pages"},
    {"kernel: Memory cgroup out of memory: Killed process 99 (python3) "
     "total-vm:99999999kB, anon-rss:1024kB, file-rss:0kB",
     DRY_MESSAGE_KILLED_IN_GROUP, DRY_MESSAGE_BACKEND_HOST, 0, 0, 1024 * KIB,
     DRY_CAUSE_LIMIT, 0, "memory.peak"},
    {"slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step "
     "tasks have been OOM Killed.",
     DRY_MESSAGE_SLURM, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_LIMIT, 0, "sbatch"},
    {"slurmstepd: error: Detected 2 oom-kill event(s) in step 7.batch cgroup.",
     DRY_MESSAGE_SLURM, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_LIMIT, 0, "sacct"},
    {"Error: model requires more system memory (24.0 GiB) than is available (15.2 GiB)",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 24 * GIB, 0, 0, DRY_CAUSE_CAPACITY, 0,
     "drystone pages"},
    {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  "
     "std::bad_alloc",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_CAPACITY,
     OR(LIMIT) | OR(OTHER_MEMORY), "mmap=True"},
    {"OSError: [Errno 12] Cannot allocate memory", DRY_MESSAGE_STATED,
     DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_CAPACITY, OR(LIMIT) | OR(OTHER_MEMORY),
     "drystone pages"},
    {"##[error] Process completed with exit code 137.", DRY_MESSAGE_STATED,
     DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "journalctl -k"},
    {"Primary job terminated normally, but 1 process exited on signal 9 (Killed)",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "journalctl -k"},
    {"torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with "
     "signal SIGKILL",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_UNKNOWN,
     OR(CAPACITY) | OR(LIMIT) | OR(OTHER_MEMORY), "journalctl -k"},
    {"TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit "
     "code 137.\n\nResource usage summary:\n    CPU time : 41.18 sec.\n    Max Memory : "
     "65536 MB\n    Total Requested Memory : 64.00 GB\n",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 64 * GIB, 64 * GIB, DRY_CAUSE_LIMIT,
     0, "qsub"},
    {"systemd-oomd[812]: Killed /user.slice/a.scope due to memory pressure for "
     "/user.slice/user-1000.slice being 65.05% > 50.00% for > 20s with reclaim activity",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_LIMIT, 0,
     "drystone pages"},
    {"slurmstepd: error: Job 7 exceeded memory limit (10485760 > 4194304), being killed",
     DRY_MESSAGE_STATED, DRY_MESSAGE_BACKEND_HOST, 0, 4 * GIB, 10 * GIB, DRY_CAUSE_LIMIT,
     0, "sbatch"},
    {"slurmstepd: error: Exceeded job memory limit", DRY_MESSAGE_SLURM,
     DRY_MESSAGE_BACKEND_HOST, 0, 0, 0, DRY_CAUSE_LIMIT, 0, "sacct"},
};
#define EXAMPLE_COUNT (sizeof examples / sizeof *examples)

static enum dry_status
parse(const char *text, struct dry_message *m)
{
    *m = DRY_INIT(struct dry_message);
    return dry_message_parse(text, strlen(text), NULL, m, NULL);
}

static void
check_size(const struct dry_message_size *size, uint64_t wanted)
{
    assert_int_equal(size->known, wanted ? DRY_MESSAGE_KNOWN : DRY_MESSAGE_ABSENT);
    assert_int_equal(size->bytes, wanted);
}

static void
each_text_is_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message m;
        print_message("%s\n", x->text);
        assert_int_equal(parse(x->text, &m), DRY_OK);
        assert_string_equal(dry_message_form_name(m.form),
                            dry_message_form_name(x->form));
        assert_int_equal(m.backend, x->backend);
        assert_null(m.releases);
        assert_false(m.is_cut);
        check_size(&m.tried, x->tried);
        check_size(&m.allowed, x->allowed);
        check_size(&m.process, x->process);
    }
}

static bool
has_code(const struct dry_message_judgement *j, const char *words)
{
    for (size_t i = 0; i < j->step_count; i++) {
        if (j->steps[i].code && strstr(j->steps[i].code, words))
            return true;
    }
    return false;
}

static void
each_text_is_judged_and_has_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        const struct example *x = examples + i;
        struct dry_message m;
        struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
        print_message("%s\n", x->text);
        assert_int_equal(parse(x->text, &m), DRY_OK);
        dry_message_judge(&m, &j);
        assert_string_equal(dry_cause_name(j.cause), dry_cause_name(x->cause));
        assert_int_equal(j.alternatives, x->alternatives);
        assert_int_equal(j.is_certain,
                         x->cause != DRY_CAUSE_UNKNOWN && x->alternatives == 0);
        assert_int_equal(j.proof_count, 1);
        assert_true(has_code(&j, x->code));
        assert_false(has_code(&j, "expandable_segments"));
        assert_false(has_code(&j, "_record_memory_history"));
        if (x->backend == DRY_MESSAGE_BACKEND_HOST)
            assert_false(has_code(&j, "nvidia-smi"));
        for (size_t k = 0; k < j.step_count; k++) {
            assert_int_equal(j.steps[k].cause, DRY_CAUSE_NONE);
            assert_true(!j.steps[k].code || strlen(j.steps[k].code) <= 80);
        }
    }
}

/* People read who wrote a text; its key is for programs. */
static void
each_text_has_a_writer(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        struct dry_message m;
        assert_int_equal(parse(examples[i].text, &m), DRY_OK);
        assert_non_null(m.kind);
        const char *writer = dry_message_get_writer(&m);
        assert_non_null(writer);
        assert_true(strlen(writer) <= 60);
        assert_string_not_equal(writer, m.kind);
    }
    const struct dry_message own = {.struct_size = sizeof own,
                                    .form = DRY_MESSAGE_MODERN};
    assert_null(dry_message_get_writer(&own));
}

/* 16 GiB are needed of 10 GiB. */
static void
a_cache_that_is_short_shows_its_sum(void **state)
{
    (void)state;
    struct dry_message m;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    assert_int_equal(parse(examples[7].text, &m), DRY_OK);
    dry_message_judge(&m, &j);
    assert_int_equal(j.proofs[0].reason, DRY_MESSAGE_REASON_KV_CACHE_SHORT);
    assert_int_equal(j.proofs[0].term_count, 2);
    assert_int_equal(j.proofs[0].sum.bytes, 6 * GIB);
}

static void
written_texts_read_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        struct dry_message m, again;
        char text[512];
        assert_int_equal(parse(examples[i].text, &m), DRY_OK);
        assert_true(dry_message_write(&m, text, sizeof text) < sizeof text);
        print_message("%s\n", text);
        assert_int_equal(parse(text, &again), DRY_OK);
        assert_int_equal(again.form, m.form);
        assert_int_equal(again.backend, m.backend);
        check_size(&again.tried, examples[i].tried);
        check_size(&again.allowed, examples[i].allowed);
        check_size(&again.process, examples[i].process);
    }
}

static void
sentences_are_no_messages(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rpc error: RESOURCE_EXHAUSTED: Received message larger than max",
        "grpc: code = ResourceExhausted",
        "handles CUBLAS_STATUS_ALLOC_FAILED errors",
        "the DefaultCPUAllocator: see the documentation",
        "see \"No available memory for the cache blocks\" in the manual",
        "oom_kill_disable 0",
        "memory.oom.group: kill all",
        "Out of memory: not yet",
        "0 Workers (tasks / actors) killed due to memory pressure (OOM)",
        "Invalid buffer size: 12\nGET /",
        "Unable to allocate a port",
        ("Requested amount of GPU memory (4294967296 bytes) could not be allocated.\n"
         "Skipping tactic 3 due to insufficient memory on requested size of 4294967296"),
        "[A][Upstream 67108864B][FAILURE maximum pool size exceeded]",
        "x = x.pin_memory()\nRuntimeError: CUDA error: invalid argument",
        "Possibly too large swap space. 4.00 GiB out of the 7.75 GiB total CPU memory",
        "worker 3 exceeded memory limit (5 GiB) and was restarted",
        "evicted due to memory pressure for /var, retry",
        "(bfc) ran out of memory trying to allocate 1.16GiB, this is not a failure",
        "Model loading took 15.20 GiB memory and 9.1 seconds",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct dry_message m;
        print_message("%s\n", texts[i]);
        assert_int_equal(parse(texts[i], &m), DRY_END);
    }
}

/* A comma before a size ends the number before it. No bytes at all may have a fraction. */
static void
lists_of_sizes_are_read(void **state)
{
    (void)state;
    struct dry_message m;
    assert_int_equal(
        parse("Out of memory error on GPU 1. Cannot allocate 2.000000GB memory on "
              "GPU 1, 139.500000GB memory has been allocated and available memory "
              "is only 0.000000B.",
              &m),
        DRY_OK);
    assert_string_equal(m.kind, "paddle");
    check_size(&m.tried, 2 * GIB);
    check_size(&m.allocated, 279 * (GIB / 2));
    assert_int_equal(m.free.known, DRY_MESSAGE_KNOWN);
    assert_int_equal(m.free.bytes, 0);
}

/* A message of PyTorch and the kernel's line behind it are two. */
static void
the_kernel_ends_what_was_open(void **state)
{
    (void)state;
    struct dry_message m;
    assert_int_equal(parse("CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a "
                           "total capacity of 2.00 GiB\nOut of memory: Killed process 7 "
                           "(python) anon-rss:1024kB",
                           &m),
                     DRY_OK);
    assert_int_equal(m.form, DRY_MESSAGE_MODERN);
    check_size(&m.tried, GIB);
    check_size(&m.process, 0);
}

/* What follows a head of one kind is not read as if it were of another. */
static void
phrases_of_others_are_passed_over(void **state)
{
    (void)state;
    struct dry_message m;
    assert_int_equal(
        parse("CUDA out of memory while trying to allocate 2.00 GiB. GPU 0 has "
              "a total capacity of 4.00 GiB, anon-rss:1024kB",
              &m),
        DRY_OK);
    assert_int_equal(m.form, DRY_MESSAGE_MODERN);
    check_size(&m.total, 4 * GIB);
    check_size(&m.tried, 0);
    check_size(&m.process, 0);
    assert_int_equal(
        parse("Out of memory: Killed process 7 (python) Requested: 1.00 GiB, "
              "Tried to allocate 2.00 GiB, GPU 0 has a total capacity of 4.00 "
              "GiB, anon-rss:1024kB",
              &m),
        DRY_OK);
    assert_int_equal(m.form, DRY_MESSAGE_KILLED);
    assert_false(m.has_device);
    check_size(&m.tried, 0);
    check_size(&m.total, 0);
    check_size(&m.process, 1024 * KIB);
}

static struct dry_message_figure
find_figure(const struct dry_message *m, enum dry_message_quantity quantity)
{
    for (size_t i = 0; i < m->figure_count; i++) {
        if (m->figures[i].quantity == quantity)
            return m->figures[i];
    }
    fail_msg("no %s", dry_message_quantity_name(quantity));
    return (struct dry_message_figure){0};
}

/* A dump of 600 KB: each free piece counts, and the lane does not grow. */
static void
a_long_dump_is_read_to_its_end(void **state)
{
    (void)state;
    const size_t capacity = (size_t)1 << 20;
    char *text = malloc(capacity);
    assert_non_null(text);
    size_t used =
        (size_t)snprintf(text, capacity, "%s",
                         "bfc_allocator.cc:485] Allocator (GPU_0_bfc) ran out of "
                         "memory trying to allocate 2.00GiB\n");
    for (unsigned i = 1; i <= 8000; i++)
        used +=
            (size_t)snprintf(text + used, capacity - used,
                             "2026-09-24 21:35:14.9: I bfc_allocator.cc:1095] Free  at "
                             "7f%010x of size %u next %u\n",
                             i, i, i);
    used += (size_t)snprintf(text + used, capacity - used,
                             "Stats: \nLimit: 8589934592\nInUse: 1073741824\n");
    struct dry_message m;
    assert_true(used < capacity - 1);
    assert_int_equal(parse(text, &m), DRY_OK);
    assert_string_equal(m.kind, "bfc");
    check_size(&m.free, 8000 * 8001 / 2);
    check_size(&m.allocated, GIB);
    check_size(&m.allowed, 8 * GIB);
    assert_int_equal(find_figure(&m, DRY_MESSAGE_LARGEST_FREE).size.bytes, 8000);
    free(text);
}

/* The weights of rank 1 are no figure of rank 0's message, and its own serve only once. */
static void
notes_belong_to_their_rank(void **state)
{
    (void)state;
    static const char text[] = "[rank0]: Model loading took 1.00 GiB memory\n"
                               "[rank1]: Model loading took 2.00 GiB memory\n"
                               "[rank0]: Estimated CUDA graph memory: -3.00 GiB total\n"
                               "[rank0]: ValueError: No available memory for the cache "
                               "blocks.\n";
    struct dry_message m;
    assert_int_equal(parse(text, &m), DRY_OK);
    assert_int_equal(find_figure(&m, DRY_MESSAGE_WEIGHTS).size.bytes, GIB);
    assert_true(find_figure(&m, DRY_MESSAGE_GRAPHS).is_negative);
    assert_int_equal(m.figure_count, 2);
}

/* "{}" in code is a number of the text, or the step is not there. */
static void
code_has_the_number_of_the_text(void **state)
{
    (void)state;
    struct dry_message m;
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    char code[256], few[8];
    assert_int_equal(
        parse("ValueError: Free memory on device (31.44/47.38 GiB) on startup is "
              "less than desired GPU memory utilization (0.95, 45.01 GiB).",
              &m),
        DRY_OK);
    dry_message_judge(&m, &j);
    assert_int_equal(j.cause, DRY_CAUSE_OTHER_MEMORY);
    assert_true(j.is_certain);
    size_t length = dry_message_step_write(j.steps, code, sizeof code);
    assert_string_equal(code, "vllm serve MODEL --gpu-memory-utilization 0.66");
    assert_int_equal(length, strlen(code));
    assert_int_equal(dry_message_step_write(j.steps, few, sizeof few), length);
    assert_string_equal(few, "vllm se");
    m.free.known = m.total.known = DRY_MESSAGE_ABSENT;
    m.total.bytes = 0;
    dry_message_judge(&m, &j);
    for (size_t i = 0; i < j.step_count; i++)
        assert_true(!j.steps[i].code || !strstr(j.steps[i].code, "{}"));
}

/* A program may make a message of its own: a kind that is not known proves nothing. */
static void
unknown_kinds_are_judged_unknown(void **state)
{
    (void)state;
    const struct dry_message m = {
        .struct_size = sizeof m, .form = DRY_MESSAGE_STATED, .kind = "of tomorrow"};
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    char text[64];
    dry_message_judge(&m, &j);
    assert_int_equal(j.cause, DRY_CAUSE_UNKNOWN);
    assert_int_equal(dry_message_write(&m, text, sizeof text), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_is_recognised),
        cmocka_unit_test(each_text_is_judged_and_has_steps),
        cmocka_unit_test(each_text_has_a_writer),
        cmocka_unit_test(a_cache_that_is_short_shows_its_sum),
        cmocka_unit_test(written_texts_read_the_same),
        cmocka_unit_test(sentences_are_no_messages),
        cmocka_unit_test(lists_of_sizes_are_read),
        cmocka_unit_test(the_kernel_ends_what_was_open),
        cmocka_unit_test(phrases_of_others_are_passed_over),
        cmocka_unit_test(a_long_dump_is_read_to_its_end),
        cmocka_unit_test(notes_belong_to_their_rank),
        cmocka_unit_test(code_has_the_number_of_the_text),
        cmocka_unit_test(unknown_kinds_are_judged_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
