/* SPDX-License-Identifier: Apache-2.0 */

/* Findings on the program's malloc and its settings, from LD_PRELOAD and other
   variables. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "host/doctor/doctor_inside.h"
#include "host/doctor/doctor_text.h"
#include "host/facts/facts_read.h"

#define LIBRARY_PATH_MAX 1024
#define LIBRARY_BYTES_MAX (UINT64_C(64) << 20)
#define SHOWN_MAX 80

enum malloc_kind { GLIBC, JEMALLOC, TCMALLOC, MIMALLOC };

static const struct dryi_check check_malloc = {
    DRY_DOCTOR_MALLOC, "malloc", "the malloc of the program",
    "of a tensor of 32 MiB nearly all the time goes into pages that free gave back and "
    "malloc takes again: what keeps them is three to six times faster"};
static const struct dryi_check check_preload = {
    DRY_DOCTOR_MALLOC, "malloc-preload", "libraries that are to be loaded first",
    "the loader warns of a file that is not there and goes on without it"};
static const struct dryi_check check_jemalloc = {
    DRY_DOCTOR_MALLOC, "jemalloc-version", "jemalloc's release",
    "5.3.0, which Debian has, was reported 60 % slower than 5.2.1 for PyTorch, and gives "
    "blocks of 8 MiB and more back at once; 5.3.1 does so only without background "
    "threads"};
static const struct dryi_check check_conf = {
    DRY_DOCTOR_MALLOC, "malloc-conf", "jemalloc's options (MALLOC_CONF)",
    "an option that jemalloc does not know is skipped with a warning that few see"};
static const struct dryi_check check_tunables = {
    DRY_DOCTOR_MALLOC, "glibc-tunables", "glibc's options (GLIBC_TUNABLES)",
    "a name that glibc does not know is skipped without a word"};

/* --- which -------------------------------------------------------------------------------- */

/* Get the next name in LD_PRELOAD; names are separated by colons and blanks. */
static bool
next_library(const char *text, size_t *at, struct dryi_doctor_piece *path)
{
    *at += strspn(text + *at, ": ");
    size_t length = strcspn(text + *at, ": ");
    *path = (struct dryi_doctor_piece){text + *at, length};
    *at += length;
    return length > 0;
}

static bool
names(struct dryi_doctor_piece path, const char *word)
{
    return memmem(path.bytes, path.length, word, strlen(word)) != NULL;
}

static enum malloc_kind
get_kind(struct dryi_doctor_piece path)
{
    if (names(path, "libjemalloc"))
        return JEMALLOC;
    if (names(path, "libtcmalloc"))
        return TCMALLOC;
    return names(path, "libmimalloc") ? MIMALLOC : GLIBC;
}

/* Find the first preloaded malloc, or else glibc's. */
static enum malloc_kind
find_preloaded(const struct dry_doctor *d, struct dryi_doctor_piece *path)
{
    const char *preload = dryi_doctor_variable(d, "LD_PRELOAD");
    size_t at = 0;
    while (preload && next_library(preload, &at, path))
        if (get_kind(*path) != GLIBC)
            return get_kind(*path);
    return GLIBC;
}

/* Find the malloc of the program. If the program runs and its mapped files are known,
   these decide and not LD_PRELOAD. */
static enum malloc_kind
find_malloc(const struct dry_doctor *d, struct dryi_doctor_piece *path)
{
    if (!d->process.knows_files)
        return find_preloaded(d, path);
    *path = (struct dryi_doctor_piece){d->process.malloc, strlen(d->process.malloc)};
    return get_kind(*path);
}

/* Open a library under the root. Returns a negative errno, or -1 if the path is too
   long. */
static int
open_library(const struct dry_doctor *d, struct dryi_doctor_piece path)
{
    char full[LIBRARY_PATH_MAX];
    size_t root = strlen(d->facts.root);
    if (root + path.length >= sizeof full)
        return -1;
    memcpy(full, d->facts.root, root);
    memcpy(full + root, path.bytes, path.length);
    full[root + path.length] = '\0';
    return d->kernel.open(d->kernel.self, full);
}

static bool
can_be_opened(const struct dry_doctor *d, struct dryi_doctor_piece path)
{
    int file = open_library(d, path);
    if (file >= 0)
        d->kernel.close(d->kernel.self, file);
    return file >= 0;
}

static int
shown(struct dryi_doctor_piece word)
{
    return word.length > SHOWN_MAX ? SHOWN_MAX : (int)word.length;
}

/* Check that preloaded files exist. Names without a slash are skipped, because the
   loader's search path is not known. */
static void
check_files(struct dry_doctor *d)
{
    const char *preload = dryi_doctor_variable(d, "LD_PRELOAD");
    struct dryi_doctor_piece path;
    size_t at = 0;
    if (!preload || !d->is_here)
        return;
    dryi_doctor_begin(d, &check_preload);
    for (size_t i = 0; i < 16 && next_library(preload, &at, &path); i++) {
        bool is_there = !memchr(path.bytes, '/', path.length) || can_be_opened(d, path);
        dryi_doctor_is(d, "%.*s%s", shown(path), path.bytes,
                       is_there ? "" : " cannot be opened");
        if (!is_there)
            dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
    }
    if (!dryi_doctor_is_good(d)) {
        dryi_doctor_should_be(d, "files that are there");
        dryi_doctor_fix(d, "# unset LD_PRELOAD, or give the library's whole path");
    }
    dryi_doctor_end(d);
}

/* --- jemalloc ----------------------------------------------------------------------------- */

static bool
read_version(const struct dry_doctor *d, struct dryi_doctor_piece path,
             struct dryi_jemalloc *j)
{
    const struct dryi_kernel *k = &d->kernel;
    char bytes[4096];
    int file = open_library(d, path);
    *j = (struct dryi_jemalloc){.is_known = false};
    if (file < 0)
        return false;
    for (uint64_t sum = 0; sum < LIBRARY_BYTES_MAX && !j->is_known;) {
        ssize_t got = k->read(k->self, file, bytes, sizeof bytes);
        if (got <= 0 || (size_t)got > sizeof bytes)
            break;
        dryi_jemalloc_feed(j, bytes, (size_t)got);
        sum += (uint64_t)got;
    }
    k->close(k->self, file);
    return j->is_known;
}

/* jemalloc uses the last of two equal options, so existing settings can come first. */
static void
keep_freed(struct dry_doctor *d)
{
    const char *set = dryi_doctor_variable(d, "MALLOC_CONF");
    bool is_set = set && *set;
    dryi_doctor_fix(d,
                    "export MALLOC_CONF=%soversize_threshold:1,background_thread:true,"
                    "metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1%s",
                    is_set ? "\"$MALLOC_CONF," : "", is_set ? "\"" : "");
    dryi_doctor_undo(d, is_set ? "# take these out again" : "unset MALLOC_CONF");
}

static void
check_release(struct dry_doctor *d, struct dryi_doctor_piece path)
{
    struct dryi_jemalloc j;
    dryi_doctor_begin(d, &check_jemalloc);
    if (!read_version(d, path, &j)) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "the library does not tell");
    } else {
        dryi_doctor_is(d, "%u.%u.%u", j.major, j.minor, j.patch);
        if (j.major == 5 && j.minor == 3 && j.patch == 0) {
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
            dryi_doctor_should_be(d, "measured with your program, or 5.3.1");
            keep_freed(d);
        }
    }
    dryi_doctor_end(d);
}

static const char *const jemalloc_options[] = {
    "abort",
    "abort_conf",
    "background_thread",
    "cache_oblivious",
    "calloc_madvise_threshold",
    "confirm_conf",
    "debug_double_free_max_scan",
    "dirty_decay_ms",
    "dss",
    "experimental_infallible_new",
    "hpa",
    "hpa_dirty_mult",
    "hpa_hugification_threshold",
    "hpa_hugify_delay_ms",
    "hpa_hugify_sync",
    "hpa_min_purge_interval_ms",
    "hpa_sec_batch_fill_extra",
    "hpa_sec_bytes_after_flush",
    "hpa_sec_max_alloc",
    "hpa_sec_max_bytes",
    "hpa_sec_nshards",
    "hpa_slab_max_alloc",
    "huge_arena_pac_thp",
    "junk",
    "lg_extent_max_active_fit",
    "lg_prof_interval",
    "lg_prof_sample",
    "lg_san_uaf_align",
    "lg_tcache_flush_large_div",
    "lg_tcache_flush_small_div",
    "lg_tcache_max",
    "lg_tcache_nslots_mul",
    "max_background_threads",
    "metadata_thp",
    "mutex_max_spin",
    "muzzy_decay_ms",
    "narenas",
    "oversize_threshold",
    "percpu_arena",
    "process_madvise_max_batch",
    "prof",
    "prof_accum",
    "prof_active",
    "prof_final",
    "prof_gdump",
    "prof_leak",
    "prof_leak_error",
    "prof_prefix",
    "prof_recent_alloc_max",
    "prof_stats",
    "prof_sys_thread_name",
    "prof_thread_active_init",
    "prof_time_resolution",
    "retain",
    "san_guard_large",
    "san_guard_small",
    "slab_sizes",
    "stats_interval",
    "stats_interval_opts",
    "stats_print",
    "stats_print_opts",
    "tcache",
    "tcache_gc_delay_bytes",
    "tcache_gc_incr_bytes",
    "tcache_max",
    "tcache_nslots_large",
    "tcache_nslots_small_max",
    "tcache_nslots_small_min",
    "thp",
    "trust_madvise",
    "utrace",
    "xmalloc",
    "zero",
    "zero_realloc",
};

static bool
is_option_of_jemalloc(struct dryi_doctor_piece key)
{
    for (size_t i = 0; i < sizeof jemalloc_options / sizeof *jemalloc_options; i++)
        if (dryi_doctor_piece_is(key, jemalloc_options[i]))
            return true;
    return false;
}

/* Judge jemalloc's settings; true: freed memory is kept. Only this setting matters for
   large tensors. */
static bool
judge_settings(struct dry_doctor *d, const char *text)
{
    struct dryi_doctor_setting s;
    size_t at = 0;
    bool keeps = false;
    for (size_t i = 0;
         i < 64 && dryi_text_setting((struct dryi_doctor_piece){text, strlen(text)}, ',',
                                     ':', &at, &s);
         i++) {
        keeps = keeps || (dryi_doctor_piece_is(s.key, "dirty_decay_ms") &&
                          !dryi_doctor_piece_is(s.value, "0"));
        if (s.value.length == 0) {
            dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
            dryi_doctor_is(d, "%.*s has no value: all after it is skipped", shown(s.key),
                           s.key.bytes);
        } else if (!is_option_of_jemalloc(s.key)) {
            dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
            dryi_doctor_is(d, "%.*s is none of jemalloc's", shown(s.key), s.key.bytes);
        }
    }
    return keeps;
}

static void
check_options(struct dry_doctor *d, enum malloc_kind kind)
{
    const char *text = dryi_doctor_variable(d, "MALLOC_CONF");
    if (!text && kind != JEMALLOC)
        return;
    dryi_doctor_begin(d, &check_conf);
    dryi_doctor_is(d, "%.*s", SHOWN_MAX, text ? text : "not set");
    bool keeps = text && judge_settings(d, text);
    if (!dryi_doctor_is_good(d))
        dryi_doctor_should_be(d, "options that jemalloc has, each with a value");
    if (text && kind != JEMALLOC) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_is(d, "but jemalloc is not loaded");
        dryi_doctor_should_be(d, "for a jemalloc that is loaded");
        dryi_doctor_fix(d, "# start the program with LD_PRELOAD=libjemalloc.so.2\n"
                           "# or: unset MALLOC_CONF");
    } else if (!keeps) {
        dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
        dryi_doctor_should_be(d, "with dirty_decay_ms and muzzy_decay_ms of 30000 or -1 "
                                 "(never gives back), oversize_threshold of 1");
        keep_freed(d);
    }
    dryi_doctor_end(d);
}

/* --- glibc -------------------------------------------------------------------------------- */

static bool
is_tunable(struct dryi_doctor_piece key)
{
    static const char *const known[] = {"arena_max",
                                        "arena_test",
                                        "check",
                                        "hugetlb",
                                        "mmap_max",
                                        "mmap_threshold",
                                        "mxfast",
                                        "perturb",
                                        "tcache_count",
                                        "tcache_max",
                                        "tcache_unsorted_limit",
                                        "top_pad",
                                        "trim_threshold"};
    static const char prefix[] = "glibc.malloc.";
    const size_t n = sizeof prefix - 1;
    if (key.length < n || memcmp(key.bytes, prefix, n) != 0)
        return true; /* glibc has tunables of other parts than malloc */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dryi_doctor_piece_is(
                (struct dryi_doctor_piece){key.bytes + n, key.length - n}, known[i]))
            return true;
    return false;
}

/* Return whether the tunables keep large blocks: both thresholds are set, or mmap is not
   used. */
static bool
tunables_keep(const struct dry_doctor *d)
{
    const char *text = dryi_doctor_variable(d, "GLIBC_TUNABLES");
    bool by_names = text && strstr(text, "glibc.malloc.trim_threshold") &&
                    (strstr(text, "glibc.malloc.mmap_threshold") ||
                     strstr(text, "glibc.malloc.mmap_max"));
    return by_names || (dryi_doctor_variable(d, "MALLOC_TRIM_THRESHOLD_") &&
                        (dryi_doctor_variable(d, "MALLOC_MMAP_THRESHOLD_") ||
                         dryi_doctor_variable(d, "MALLOC_MMAP_MAX_")));
}

static void
check_glibc(struct dry_doctor *d)
{
    const char *text = dryi_doctor_variable(d, "GLIBC_TUNABLES");
    struct dryi_doctor_setting s;
    size_t at = 0;
    if (!text)
        return;
    dryi_doctor_begin(d, &check_tunables);
    dryi_doctor_is(d, "%.*s", SHOWN_MAX, text);
    for (size_t i = 0;
         i < 64 && dryi_text_setting((struct dryi_doctor_piece){text, strlen(text)}, ':',
                                     '=', &at, &s);
         i++) {
        if (s.value.length && is_tunable(s.key))
            continue;
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_is(d, "%.*s is none of glibc's, or has no value", shown(s.key),
                       s.key.bytes);
        dryi_doctor_should_be(d, "names as in: ld.so --list-tunables");
    }
    dryi_doctor_end(d);
}

/* --- all of it ---------------------------------------------------------------------------- */

static void
check_kind(struct dry_doctor *d, enum malloc_kind kind, struct dryi_doctor_piece path)
{
    dryi_doctor_begin(d, &check_malloc);
    if (d->options.process && !d->process.knows_files) {
        dryi_doctor_judge(d, DRY_DOCTOR_NOT_KNOWN);
        dryi_doctor_is(d, "/proc/%lld/maps cannot be read",
                       (long long)d->options.process);
    } else if (kind != GLIBC) {
        dryi_doctor_is(d, "%.*s", shown(path), path.bytes);
    } else if (d->options.process && find_preloaded(d, &path) != GLIBC) {
        dryi_doctor_judge(d, DRY_DOCTOR_WRONG);
        dryi_doctor_is(d, "glibc's: %.*s of LD_PRELOAD is not in the process's memory",
                       shown(path), path.bytes);
        dryi_doctor_should_be(d, "the one that LD_PRELOAD names");
        dryi_doctor_fix(d, "# give a path that the program's machine or container has");
    } else if (tunables_keep(d)) {
        dryi_doctor_is(d, "glibc's, which is told to keep large blocks");
    } else {
        dryi_doctor_is(d, "glibc's, which gives large blocks back at once");
        if (d->options.purpose == DRY_DOCTOR_CPU) {
            dryi_doctor_judge(d, DRY_DOCTOR_COULD_BE_BETTER);
            dryi_doctor_should_be(d, "one that keeps them");
            const char *set = dryi_doctor_variable(d, "GLIBC_TUNABLES");
            bool is_set = set && *set;
            dryi_doctor_fix(d,
                            "export GLIBC_TUNABLES=%sglibc.malloc.mmap_threshold="
                            "1073741824:glibc.malloc.trim_threshold=1073741824%s",
                            is_set ? "\"$GLIBC_TUNABLES:" : "", is_set ? "\"" : "");
            dryi_doctor_undo(d, is_set ? "# take these two out again"
                                       : "unset GLIBC_TUNABLES");
        }
    }
    dryi_doctor_end(d);
}

void
dryi_doctor_check_malloc(struct dry_doctor *d)
{
    struct dryi_doctor_piece path = {NULL, 0};
    if (!dryi_doctor_knows_variables(d))
        return;
    enum malloc_kind kind = find_malloc(d, &path);
    check_kind(d, kind, path);
    check_files(d);
    /* Only without a process: root would open any path that another user's process names,
       such as a device. */
    if (d->options.process == 0 && kind == JEMALLOC &&
        memchr(path.bytes, '/', path.length))
        check_release(d, path);
    check_options(d, kind);
    check_glibc(d);
}
