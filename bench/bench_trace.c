/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_trace FILE RUNS: measure how fast a snapshot is read, written back and replayed.
 *
 * Every measurement runs in a child of its own, so that its peak of resident memory is
 * its own. The output is one line of JSON for each kind, with the seconds of each run:
 *
 *     touch   the file through read() into a 256 KiB buffer: no reader can be faster
 *     copy    memcpy of the mapped file: what the memory of this machine gives
 *     read    dry_trace_read
 *     write   dry_trace_write to a sink that counts
 *     walk    one pass over the columns a replay needs: no replay can be faster
 *     check   dry_replay_create: the program, the layout before it, the self-check
 *     rerun   dry_replay_run under PyTorch's defaults, from an empty device
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <drystone/replay.h>
#include <drystone/trace.h>

#define WINDOW_BYTES ((size_t)256 << 10)
#define COPY_BYTES ((size_t)4 << 20)

/* The sample that a child sends through the pipe. */
struct sample {
    double seconds;
    uint64_t bytes, event_count, rss_bytes;
};

struct measurement {
    const char *name;
    void (*run)(const char *path, struct sample *sample);
};

static void
die(const char *what)
{
    fprintf(stderr, "bench_trace: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
open_file(const char *path, uint64_t *size)
{
    struct stat info;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &info) < 0)
        die(path);
    *size = (uint64_t)info.st_size;
    return fd;
}

static void
measure_touch(const char *path, struct sample *s)
{
    int fd = open_file(path, &s->bytes);
    char *window = malloc(WINDOW_BYTES);
    if (!window)
        die("memory");
    double begin = now();
    while (read(fd, window, WINDOW_BYTES) > 0)
        continue;
    s->seconds = now() - begin;
    free(window);
    close(fd);
}

static void
measure_copy(const char *path, struct sample *s)
{
    int fd = open_file(path, &s->bytes);
    const char *from = mmap(NULL, s->bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    char *to = malloc(COPY_BYTES);
    if (from == MAP_FAILED || !to)
        die("map");
    memset(to, 1, COPY_BYTES);
    double begin = now();
    for (uint64_t at = 0; at < s->bytes; at += COPY_BYTES) {
        size_t left = s->bytes - at;
        memcpy(to, from + at, left < COPY_BYTES ? left : COPY_BYTES);
        __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is wanted */
    }
    s->seconds = now() - begin;
    free(to);
    close(fd);
}

static enum dry_status
read_file(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    const int *fd = self;
    ssize_t count = read(*fd, buffer, capacity);
    *got = count > 0 ? (size_t)count : 0;
    if (count >= 0)
        return DRY_OK;
    *err = (struct dry_error){.status = DRY_ERR_SYSTEM, .text = "cannot read"};
    return DRY_ERR_SYSTEM;
}

static enum dry_status
count_bytes(void *self, const void *bytes, size_t count, struct dry_error *err)
{
    (void)bytes;
    (void)err;
    uint64_t *sum = self;
    *sum += count;
    return DRY_OK;
}

static struct dry_trace *
read_trace(const char *path, struct sample *s)
{
    int fd = open_file(path, &s->bytes);
    struct dry_source source = {read_file, &fd};
    struct dry_trace *trace;
    struct dry_error err;
    double begin = now();
    if (dry_trace_read(&source, NULL, &trace, &err) != DRY_OK) {
        fprintf(stderr, "bench_trace: byte %llu: %s\n", (unsigned long long)err.offset,
                err.text);
        exit(1);
    }
    s->seconds = now() - begin;
    s->event_count = dry_trace_get_view(trace)->event_count;
    close(fd);
    return trace;
}

static void
measure_read(const char *path, struct sample *s)
{
    dry_trace_destroy(read_trace(path, s));
}

static void
measure_write(const char *path, struct sample *s)
{
    struct dry_trace *trace = read_trace(path, s);
    struct dry_sink sink = {count_bytes, &s->bytes};
    struct dry_error err;
    s->bytes = 0;
    double begin = now();
    if (dry_trace_write(trace, &sink, &err) != DRY_OK) {
        fprintf(stderr, "bench_trace: %s\n", err.text);
        exit(1);
    }
    s->seconds = now() - begin;
    dry_trace_destroy(trace);
}

static void
measure_walk(const char *path, struct sample *s)
{
    struct dry_trace *trace = read_trace(path, s);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    uint64_t sum = 0;
    double begin = now();
    for (size_t i = 0; i < v->event_count; i++)
        sum += v->action[i] ^ v->addr[i] ^ v->size[i] ^ v->lane[i];
    __asm__ volatile("" : : "r"(sum) : "memory"); /* the sum is wanted */
    s->seconds = now() - begin;
    s->bytes = v->event_count *
               (sizeof *v->action + sizeof *v->addr + sizeof *v->size + sizeof *v->lane);
    dry_trace_destroy(trace);
}

static struct dry_replay *
make_replay(const struct dry_trace *trace)
{
    struct dry_replay *replay;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK) {
        fprintf(stderr, "bench_trace: %s\n", err.text);
        exit(1);
    }
    if (!dry_replay_get_check(replay)->exact) {
        fprintf(stderr, "bench_trace: the replay is not exact\n");
        exit(1);
    }
    return replay;
}

static void
measure_check(const char *path, struct sample *s)
{
    struct dry_trace *trace = read_trace(path, s);
    double begin = now();
    struct dry_replay *replay = make_replay(trace);
    s->seconds = now() - begin;
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
measure_rerun(const char *path, struct sample *s)
{
    struct dry_trace *trace = read_trace(path, s);
    struct dry_replay *replay = make_replay(trace);
    struct dry_run_options options;
    struct dry_run run;
    struct dry_error err;
    dry_run_options_init(&options);
    options.conf = "";
    double begin = now();
    if (dry_replay_run(replay, &options, &run, &err) != DRY_OK) {
        fprintf(stderr, "bench_trace: %s\n", err.text);
        exit(1);
    }
    s->seconds = now() - begin;
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
}

static void
run_child(const struct measurement *m, const char *path, int pipe_end)
{
    struct sample sample = {0};
    struct rusage usage;
    m->run(path, &sample);
    getrusage(RUSAGE_SELF, &usage);
    sample.rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (write(pipe_end, &sample, sizeof sample) != (ssize_t)sizeof sample)
        die("pipe");
    _exit(0);
}

static struct sample
run_once(const struct measurement *m, const char *path)
{
    struct sample sample;
    int ends[2];
    if (pipe(ends) < 0)
        die("pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0)
        run_child(m, path, ends[1]);
    close(ends[1]);
    if (read(ends[0], &sample, sizeof sample) != (ssize_t)sizeof sample)
        exit(1); /* the child has said why */
    close(ends[0]);
    waitpid(child, NULL, 0);
    return sample;
}

int
main(int argc, char **argv)
{
    static const struct measurement measurements[] = {
        {"touch", measure_touch}, {"copy", measure_copy}, {"read", measure_read},
        {"write", measure_write}, {"walk", measure_walk}, {"check", measure_check},
        {"rerun", measure_rerun},
    };
    long runs = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (runs < 1) {
        fprintf(stderr, "bench_trace FILE RUNS\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof measurements / sizeof *measurements; i++) {
        struct sample sample = {0};
        printf("{\"what\":\"%s\",\"seconds\":[", measurements[i].name);
        for (long run = 0; run < runs; run++) {
            sample = run_once(&measurements[i], argv[1]);
            printf("%s%.6f", run ? "," : "", sample.seconds);
        }
        printf("],\"bytes\":%llu,\"events\":%llu,\"rss_bytes\":%llu}\n",
               (unsigned long long)sample.bytes, (unsigned long long)sample.event_count,
               (unsigned long long)sample.rss_bytes);
    }
    return 0;
}
