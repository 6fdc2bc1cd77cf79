/* SPDX-License-Identifier: Apache-2.0 */

/* The report on messages: exit codes, 80 columns, nothing hostile, JSON with its keys. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/command.h"
#include "base/term.h"
#include "explain/message_report.h"

static const char pieces[] =
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 58.00 MiB. "
    "GPU 0 has a total capacity of 23.56 GiB of which 57.00 MiB is free. Including "
    "non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated "
    "memory 23.10 GiB is allocated by PyTorch, and 74.06 MiB is reserved by PyTorch "
    "but unallocated.\n";

static const char others[] =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has "
    "a total capacity of 14.57 GiB of which 1.58 GiB is free. Process 2493055 has "
    "12.02 GiB memory in use. Including non-PyTorch memory, this process has "
    "17179869184.00 GiB memory in use. Of the allocated memory 734.07 MiB is allocated "
    "by PyTorch, and 33.93 MiB is reserved by PyTorch but unallocated.\n";

/* What a call printed: standard output and error, each as one string. */
struct printed {
    int code;
    char *out, *err;
};

static char *
read_back(FILE *file)
{
    long length = ftell(file);
    assert_true(length >= 0);
    char *text = calloc(1, (size_t)length + 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)length, file), length);
    fclose(file);
    return text;
}

static struct printed
run(const char *text, const char *path, bool json)
{
    FILE *files[2] = {tmpfile(), tmpfile()};
    int saved[2] = {dup(1), dup(2)};
    assert_true(files[0] && files[1] && saved[0] >= 0 && saved[1] >= 0);
    fflush(stdout);
    dup2(fileno(files[0]), 1);
    dup2(fileno(files[1]), 2);
    struct printed p;
    p.code = message_report_run("explain", text, path, json);
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i + 1);
        close(saved[i]);
        fseek(files[i], 0, SEEK_END);
    }
    p.out = read_back(files[0]);
    p.err = read_back(files[1]);
    return p;
}

static void
finish(struct printed *p)
{
    free(p->out);
    free(p->err);
}

static void
assert_fits(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        char line[512];
        assert_true(length < sizeof line);
        memcpy(line, text, length);
        line[length] = '\0';
        if (term_columns(line) > 80)
            fail_msg("%zu columns: %s", term_columns(line), line);
        text += length + (text[length] == '\n');
    }
}

static void
text_says_verdict_sums_and_steps(void **state)
{
    (void)state;
    struct printed p = run(pieces, NULL, false);
    assert_int_equal(p.code, EXIT_FOUND);
    assert_string_equal(p.err, "");
    assert_non_null(strstr(p.out, "message: line 1, byte 33, device 0, rank0\n"));
    assert_non_null(strstr(p.out, "verdict  fragmentation, or stranded or pending\n"));
    assert_non_null(
        strstr(p.out, "=                                      1.00 MiB  +- "));
    assert_non_null(strstr(p.out, "held by nobody the text names"));
    assert_non_null(
        strstr(p.out, "\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments"));
    assert_non_null(strstr(p.out, "\ntorch.cuda.memory._record_memory_history("));
    assert_fits(p.out);
    finish(&p);
}

static void
every_form_fits_eighty_columns(void **state)
{
    (void)state;
    static const char *const texts[] = {
        others,
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 8.00 GiB "
        "total capacity; 203.44 MiB already allocated; 0 bytes free; 6.44 GiB reserved "
        "in total)",
        "MPS backend out of memory (MPS allocated: 7.12 GiB, other allocations: 10.47 "
        "GiB, max allowed: 17.76 GiB). Tried to allocate 512.00 MiB on shared pool.",
        "Allocation on device 0 would exceed allowed memory. (out of "
        "memory)\nCurrently allocated : 29.97 GiB\nRequested : 7.17 GiB\nDevice limit "
        ": 15.92 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by "
        "user-supplied memory fraction)\n : 17179869184.00 GiB",
        "CUDA out of memory. Tried to allocate more than 1EB memory.",
        "HIP out of memory. Tried to allocate 76.00 MiB. GPU 0 has a total capacity of "
        "255.69 GiB of which 252.82 GiB is free. 1.20 GiB allowed; Of the allocated "
        "memory 1.14 GiB is allocated by PyTorch, with 17.00 MiB allocated in private "
        "pools (e.g., HIP Graphs), and 18.63 MiB is reserved by PyTorch but "
        "unallocated.",
        "CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity "
        "of 79.15 GiB of which 40.10 GiB is free. This process has 99.00 GiB memory in "
        "use, and this process has 39.00 GiB memory in use. Of the allocated memory "
        "50.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but "
        "unallocated. This allocation exceeds the expandable-segment reserve of 8.00 "
        "GiB for this stream.",
        "XPU out of memory. Tried to allocate 1.00 GiB.",
        "RuntimeError: CUDA error: out of memory",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct printed p = run(texts[i], NULL, false);
        assert_int_equal(p.code, EXIT_FOUND);
        assert_fits(p.out);
        finish(&p);
    }
}

static void
nothing_found_is_said(void **state)
{
    (void)state;
    struct printed p = run("all is well", NULL, false);
    assert_int_equal(p.code, EXIT_INPUT);
    assert_string_equal(p.out, "");
    assert_non_null(strstr(p.err, "no OOM message in the 11 bytes read"));
    finish(&p);
    p = run(NULL, "/nowhere/at/all", false);
    assert_int_equal(p.code, EXIT_INPUT);
    assert_non_null(strstr(p.err, "/nowhere/at/all: cannot open"));
    finish(&p);
    p = run(NULL, "/", true);
    assert_int_equal(p.code, EXIT_INPUT);
    assert_non_null(strstr(p.err, "cannot read"));
    finish(&p);
}

/* A log of ranks that failed alike: told once, with how often and by whom. */
static void
equal_messages_are_told_once(void **state)
{
    (void)state;
    char path[] = "/tmp/test_message_report_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int rank = 0; rank < 6; rank++)
        fprintf(file, "[rank%d]: starting\n[rank%d]%s", rank, rank, pieces + 7);
    fputs(others, file);
    fclose(file);
    struct printed p = run(NULL, path, false);
    assert_int_equal(p.code, EXIT_FOUND);
    assert_non_null(strstr(p.out, "rank0, rank1, rank2, rank3 ..., 6 times\n"));
    assert_non_null(strstr(p.out, "not known"));
    const char *verdict = strstr(p.out, "verdict  fragmentation");
    assert_non_null(verdict);
    if (verdict)
        assert_null(strstr(verdict + 1, "verdict  fragmentation"));
    finish(&p);
    p = run(NULL, path, true);
    assert_int_equal(p.code, EXIT_FOUND);
    json_t *root = json_loads(p.out, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "count")), 7);
    assert_int_equal(json_integer_value(json_object_get(root, "distinct")), 2);
    assert_string_equal(json_string_value(json_object_get(root, "file")), path);
    json_t *first = json_array_get(json_object_get(root, "messages"), 0);
    assert_int_equal(json_array_size(json_object_get(first, "labels")), 6);
    json_decref(root);
    finish(&p);
    unlink(path);
}

static void
more_than_sixty_four_are_counted(void **state)
{
    (void)state;
    char *text = malloc(1 << 16);
    assert_non_null(text);
    size_t used = 0;
    for (int i = 0; i < 70; i++)
        used +=
            (size_t)snprintf(text + used, (1 << 16) - used,
                             "CUDA out of memory. Tried to allocate %d.00 GiB.\n", i + 1);
    struct printed p = run(text, NULL, false);
    assert_non_null(strstr(p.out, "\n6 more messages are not shown\n"));
    assert_non_null(strstr(p.out, "next     as for the message above\n"));
    finish(&p);
    p = run(text, NULL, true);
    json_t *root = json_loads(p.out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "left_out")), 6);
    assert_int_equal(json_array_size(json_object_get(root, "messages")), 64);
    json_decref(root);
    finish(&p);
    free(text);
}

static json_t *
get(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("no key %s", key);
    return value;
}

static void
json_has_its_keys(void **state)
{
    (void)state;
    struct printed p = run(others, NULL, true);
    assert_int_equal(p.code, EXIT_FOUND);
    json_t *root = json_loads(p.out, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(get(root, "schema")), "drystone.message/1");
    assert_true(json_is_null(get(root, "file")));
    json_t *m = json_array_get(get(root, "messages"), 0);
    static const char *const keys[] = {
        "count",         "offset",      "line",        "labels",
        "form",          "backend",     "device",      "releases",
        "is_cut",        "tried",       "total",       "free",
        "process",       "allowed",     "allocated",   "reserved",
        "private_pools", "unallocated", "non_pytorch", "expandable_reserve",
        "processes",     "hints",       "derived",     "verdict",
        "proofs",        "checks",      "steps",       "processes_left_out",
        "kind",          "figures",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        get(m, keys[i]);
    assert_int_equal(json_object_size(m), sizeof keys / sizeof *keys);
    assert_int_equal(json_integer_value(get(get(m, "tried"), "bytes")), 2093796557);
    assert_string_equal(json_string_value(get(m, "process")), "beyond");
    assert_true(json_is_null(get(m, "allowed")));
    json_t *verdict = get(m, "verdict");
    assert_string_equal(json_string_value(get(verdict, "cause")), "other-memory");
    assert_true(json_is_true(get(verdict, "is_certain")));
    json_t *proof = json_array_get(get(m, "proofs"), 0);
    assert_string_equal(json_string_value(get(proof, "reason")), "other_processes");
    assert_int_equal(json_array_size(get(proof, "terms")), 4);
    json_t *term = json_array_get(get(proof, "terms"), 3);
    assert_string_equal(json_string_value(get(term, "name")), "tried");
    assert_int_equal(json_integer_value(get(term, "sign")), -1);
    assert_true(json_integer_value(get(get(proof, "sum"), "low")) > 0);
    json_t *check = json_array_get(get(m, "checks"), 0);
    get(check, "equation");
    get(check, "terms");
    get(check, "remainder");
    assert_string_equal(json_string_value(get(check, "result")), "holds");
    json_t *step = json_array_get(get(m, "steps"), 0);
    assert_string_equal(json_string_value(get(step, "language")), "shell");
    json_decref(root);
    finish(&p);
}

/* What a log says of itself cannot move a cursor. */
static void
hostile_names_are_made_printable(void **state)
{
    (void)state;
    char path[] = "/tmp/test_message_\x1b[31m_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, pieces, sizeof pieces - 1), sizeof pieces - 1);
    close(fd);
    struct printed p = run(NULL, path, false);
    assert_null(strchr(p.out, '\x1b'));
    finish(&p);
    p = run(NULL, path, true);
    assert_null(strchr(p.out, '\x1b'));
    json_t *root = json_loads(p.out, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    finish(&p);
    unlink(path);
}

/* Text that is no trace is a log, also if it begins with the bracket of a rank. */
static void
logs_are_told_from_traces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        bool is_log;
    } files[] = {
        {"step 1\nCUDA out of memory. Tried to allocate 1.00 GiB\n",
         sizeof "step 1\nCUDA out of memory. Tried to allocate 1.00 GiB\n" - 1, true},
        {"[rank0]: hello\n", sizeof "[rank0]: hello\n" - 1, true},
        {"[2026-11-10 08:00:01] \x1b[31mred\x1b[0m\n",
         sizeof "[2026-11-10 08:00:01] \x1b[31mred\x1b[0m\n" - 1, true},
        {"# a trace\ni 1 512 0 0\n", sizeof "# a trace\ni 1 512 0 0\n" - 1, false},
        {"id,lower,upper,size\n0,0,1,512\n",
         sizeof "id,lower,upper,size\n0,0,1,512\n" - 1, false},
        {"[{\"a\": 1}]", sizeof "[{\"a\": 1}]" - 1, false},
        {" {\"segments\": []}", sizeof " {\"segments\": []}" - 1, false},
        {"<html>", sizeof "<html>" - 1, false},
        {"\x80\x04}q\0.", sizeof "\x80\x04}q\0." - 1, false},
        {"", sizeof "" - 1, false},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[] = "/tmp/drystone-log-XXXXXX";
        int fd = mkstemp(path);
        print_message("%s\n", files[i].text);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, files[i].text, files[i].length), files[i].length);
        close(fd);
        assert_int_equal(message_report_is_log(path), files[i].is_log);
        unlink(path);
    }
    assert_false(message_report_is_log("/tmp"));
    assert_false(message_report_is_log("/nowhere/at/all"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_are_told_from_traces),
        cmocka_unit_test(text_says_verdict_sums_and_steps),
        cmocka_unit_test(every_form_fits_eighty_columns),
        cmocka_unit_test(nothing_found_is_said),
        cmocka_unit_test(equal_messages_are_told_once),
        cmocka_unit_test(more_than_sixty_four_are_counted),
        cmocka_unit_test(json_has_its_keys),
        cmocka_unit_test(hostile_names_are_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
