/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that elf_write.c writes: the dynamic linker loads them, elf_read.c finds in them what
 * was put there, and no broken one is read beyond its end.
 */
#include "support/cmocka.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dryrun/elf_write.h"
#include "dryrun/replacements.h"
#include "support/random.h"

static char folder[] = "/tmp/drystone-test-elf-XXXXXX";

static const char *
path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static const char *const functions[] = {"cudaAlpha", "cudaBeta", "cuGamma_v2"};
static const char *const versions[] = {"libcudart.so.13", "NVSHMEM"};

static struct elf_library
make_library(const char *const *needed, size_t needed_count)
{
    return (struct elf_library){
        .machine = ELF_X86_64,
        .soname = "libcudart.so.13",
        .needed = needed,
        .needed_count = needed_count,
        .versions = versions,
        .version_count = 2,
        .functions = functions,
        .function_count = 3,
    };
}

static void
what_was_put_there_is_found(void **state)
{
    (void)state;
    char path[256];
    const char *const needed[] = {"libone.so", "libtwo.so.2"};
    static const enum elf_machine machines[] = {ELF_X86_64, ELF_AARCH64};
    for (size_t m = 0; m < 2; m++) {
        struct elf_library library = make_library(needed, 2);
        struct elf elf;
        library.machine = machines[m];
        assert_int_equal(elf_write(&library, path_of("found.so", path), NULL), DRY_OK);
        assert_int_equal(elf_open(&elf, path, NULL), DRY_OK);
        assert_int_equal(elf.machine, machines[m]);
        assert_string_equal(elf.soname, "libcudart.so.13");
        assert_string_equal(elf_needed(&elf, 0), "libone.so");
        assert_string_equal(elf_needed(&elf, 1), "libtwo.so.2");
        assert_null(elf_needed(&elf, 2));
        assert_int_equal(elf.symbol_count, 5);
        assert_false(elf_symbol(&elf, 1).is_defined);
        assert_string_equal(elf_symbol(&elf, 1).name, "drystone_standin_unwritten");
        for (size_t i = 0; i < 3; i++) {
            assert_true(elf_symbol(&elf, 2 + i).is_defined);
            assert_string_equal(elf_symbol(&elf, 2 + i).name, functions[i]);
        }
        elf_close(&elf);
    }
}

/* The loader is that of this machine; another machine's library is not for it. */
static void
linker_loads_it_and_calls_are_counted(void **state)
{
    (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
    const char *standin = getenv("DRY_TEST_STANDIN");
    char path[256];
    if (!standin)
        skip_because("no stand-in in DRY_TEST_STANDIN");
    const char *const needed[] = {standin};
    struct elf_library library = make_library(needed, 1);
#ifdef __aarch64__
    library.machine = ELF_AARCH64;
#endif
    assert_int_equal(elf_write(&library, path_of("loaded.so", path), NULL), DRY_OK);
    void *loaded = dlopen(path, RTLD_NOW);
    if (!loaded)
        fail_msg("%s", dlerror());
    for (size_t i = 0; i < 3; i++) {
        uint64_t (*function)(int, int);
        void *found = dlsym(loaded, functions[i]);
        assert_non_null(found);
        memcpy(&function, &found, sizeof found);
        assert_int_equal(function(1, 2), 0);
        assert_int_equal(function(3, 4), 0);
    }
    assert_null(dlsym(loaded, "cudaDelta"));
    /* the stand-in is found through it, as a program finds it by cudart's name */
    assert_non_null(dlsym(loaded, "cudaMalloc"));
    dlclose(loaded);
#else
    skip_because("files are written for x86-64 and arm64 alone");
#endif
}

/* --- broken ones -------------------------------------------------------------------------- */

static unsigned char *
read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, in);
    fclose(in);
    return bytes;
}

/* Open it, and look at all that there is. */
static enum dry_status
look_at(const char *path, struct dry_error *err)
{
    struct elf elf;
    size_t length = 0;
    enum dry_status status = elf_open(&elf, path, err);
    if (status != DRY_OK)
        return status;
    for (size_t i = 0; i < elf.symbol_count; i++) {
        struct elf_symbol symbol = elf_symbol(&elf, i);
        length += strlen(symbol.name) + (symbol.version ? strlen(symbol.version) : 0);
    }
    const char *needed;
    for (size_t i = 0; (needed = elf_needed(&elf, i)) != NULL; i++)
        length += strlen(needed);
    assert_true(length < 1 << 28);
    elf_close(&elf);
    return DRY_OK;
}

static void
write_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

static void
no_part_of_a_library_is_read_beyond_its_end(void **state)
{
    (void)state;
    char whole[256], part[256];
    const char *const needed[] = {"libone.so"};
    struct elf_library library = make_library(needed, 1);
    struct dry_error err;
    size_t size;
    assert_int_equal(elf_write(&library, path_of("whole.so", whole), NULL), DRY_OK);
    unsigned char *bytes = read_file(whole, &size);
    path_of("part.so", part);
    for (size_t length = 0; length < size; length += length < 2048 ? 1 : 1531) {
        write_file(part, bytes, length);
        if (look_at(part, &err) != DRY_OK)
            assert_true(strlen(err.text) > 10);
    }
    free(bytes);
}

static void
spoilt_libraries_are_read_or_refused(void **state)
{
    (void)state;
    char whole[256], part[256];
    const char *const needed[] = {"libone.so"};
    struct elf_library library = make_library(needed, 1);
    size_t size;
    assert_int_equal(elf_write(&library, path_of("whole.so", whole), NULL), DRY_OK);
    unsigned char *bytes = read_file(whole, &size);
    path_of("part.so", part);
    struct random r = {.state = 7};
    for (int round = 0; round < 400; round++) {
        unsigned char *spoilt = malloc(size);
        assert_non_null(spoilt);
        memcpy(spoilt, bytes, size);
        for (int i = 0; i < 3; i++) {
            size_t at = random_below(&r, round % 2 ? 1536 : size);
            spoilt[at] = (unsigned char)random_below(&r, 256);
        }
        write_file(part, spoilt, size);
        free(spoilt);
        (void)look_at(part, NULL);
    }
    free(bytes);
}

static void
what_is_no_library_is_refused_with_a_reason(void **state)
{
    (void)state;
    char path[256];
    struct dry_error err;
    struct elf elf;
    write_file(path_of("text.so", path), (const unsigned char *)"INPUT(-lc)\n", 11);
    assert_int_equal(elf_open(&elf, path, &err), DRY_ERR_FORMAT);
    assert_non_null(strstr(err.text, "no ELF header"));
    assert_int_equal(elf_open(&elf, path_of("nowhere.so", path), &err), DRY_ERR_SYSTEM);
    assert_int_equal(elf_open(&elf, folder, &err), DRY_ERR_FORMAT);
}

/* --- a wheel ------------------------------------------------------------------------------ */

static void
wheel_without_cuda_is_refused(void **state)
{
    (void)state;
    struct dry_error err;
    char *preload = NULL;
    char wheel[256];
    snprintf(wheel, sizeof wheel, "%s/wheel", folder);
    const struct replacements_request request = {
        .wheel = wheel, .standin = getenv("DRY_TEST_STANDIN"), .folder = folder};
    assert_int_equal(replacements_make(&request, &preload, &err), DRY_ERR_SYSTEM);
    char command[600];
    snprintf(command, sizeof command, "mkdir -p %s", wheel);
    assert_int_equal(system(command), 0);
    assert_int_equal(replacements_make(&request, &preload, &err), DRY_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "libtorch_cuda.so"));
    assert_null(preload);
}

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_there_is_found),
        cmocka_unit_test(linker_loads_it_and_calls_are_counted),
        cmocka_unit_test(no_part_of_a_library_is_read_beyond_its_end),
        cmocka_unit_test(spoilt_libraries_are_read_or_refused),
        cmocka_unit_test(what_is_no_library_is_refused_with_a_reason),
        cmocka_unit_test(wheel_without_cuda_is_refused),
    };
    return cmocka_run_group_tests_name("elf", tests, make_folder, remove_folder);
}
