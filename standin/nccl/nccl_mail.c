/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks as files of one folder. nccl_mail.h explains the design. */
#include "nccl_mail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "setup.h"

/* A rank that was never seen may be late or not exist; a live one may be stuck. */
#define ABSENT_MS_MAX 20000.0
#define STUCK_MS_MAX 120000.0
#define NAP_US_MAX 2000

struct nccl_box {
    char folder[4096];
    uint64_t id;
    int rank, size;
    int lock;       /* descriptor of a file that stays locked while this rank lives */
    bool is_silent; /* a receive has timed out: later ones do not wait */
    uint64_t *sent, *received; /* number of messages to and from each rank */
};

struct path {
    char text[4096 + 96];
};

/* --- files ---------------------------------------------------------------------------------- */

static struct path
path_of_rank(const struct nccl_box *box, int rank)
{
    struct path path;
    snprintf(path.text, sizeof path.text, "%s/nccl-%016llx-%d", box->folder,
             (unsigned long long)box->id, rank);
    return path;
}

static struct path
path_of_message(const struct nccl_box *box, int from, int to, uint64_t ordinal)
{
    struct path path;
    snprintf(path.text, sizeof path.text, "%s/nccl-%016llx-%d-%d-%llu", box->folder,
             (unsigned long long)box->id, from, to, (unsigned long long)ordinal);
    return path;
}

/* Return the name of an incomplete file. */
static struct path
path_of_begun(const struct path *path)
{
    struct path begun = *path;
    size_t length = strlen(begun.text);
    snprintf(begun.text + length, sizeof begun.text - length, ".begun");
    return begun;
}

/* Find the folder of the launcher's report. Returns false if there is no report. */
static bool
find_folder(char *folder, size_t capacity)
{
    const char *report = standin_setup()->report, *end = strrchr(report, '/');
    size_t length = end ? (size_t)(end - report) : 0;
    if (length == 0 || length >= capacity)
        return false;
    memcpy(folder, report, length);
    folder[length] = '\0';
    return true;
}

static double
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- presence of ranks ---------------------------------------------------------------------- */

/*
 * Create the file that announces this rank, and return its descriptor. It is locked
 * before its rename: others take an unlocked file for a dead rank. -1: failed.
 */
static int
say_here(const struct nccl_box *box)
{
    struct path path = path_of_rank(box, box->rank), begun = path_of_begun(&path);
    int file = open(begun.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (file >= 0 &&
        (fcntl(file, F_SETLK, &lock) != 0 || rename(begun.text, path.text) != 0)) {
        close(file);
        return -1;
    }
    return file;
}

enum presence { PRESENCE_NEVER, PRESENCE_HERE, PRESENCE_GONE };

static enum presence
find_presence(const struct nccl_box *box, int rank)
{
    struct path path = path_of_rank(box, rank);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path.text, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return PRESENCE_NEVER;
    bool is_known = fcntl(file, F_GETLK, &lock) == 0;
    close(file);
    return is_known && lock.l_type == F_UNLCK ? PRESENCE_GONE : PRESENCE_HERE;
}

/* --- boxes ---------------------------------------------------------------------------------- */

struct nccl_box *
nccl_box_open(uint64_t id, int rank, int size)
{
    struct nccl_box *box = calloc(1, sizeof *box);
    if (!box || size < 2 || !find_folder(box->folder, sizeof box->folder)) {
        free(box);
        return NULL;
    }
    box->id = id;
    box->rank = rank;
    box->size = size;
    box->sent = calloc((size_t)size * 2, sizeof *box->sent);
    box->lock = box->sent ? say_here(box) : -1;
    if (box->lock < 0) {
        free(box->sent);
        free(box);
        return NULL;
    }
    box->received = box->sent + size;
    return box;
}

void
nccl_box_close(struct nccl_box *box)
{
    if (!box)
        return;
    close(box->lock);
    free(box->sent);
    free(box);
}

static bool
is_carried(const struct nccl_box *box, int rank, uint64_t bytes)
{
    return box && rank >= 0 && rank < box->size && rank != box->rank &&
           bytes <= NCCL_MAIL_BYTES_MAX;
}

static bool
write_all(int file, uint64_t address, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t more =
            write(file, (const char *)(uintptr_t)(address + done), bytes - done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return false;
        done += (uint64_t)more;
    }
    return true;
}

void
nccl_box_send(struct nccl_box *box, int to, uint64_t from_address, uint64_t bytes)
{
    if (!is_carried(box, to, bytes))
        return;
    struct path path = path_of_message(box, box->rank, to, box->sent[to]++);
    struct path begun = path_of_begun(&path);
    int file = open(begun.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    bool is_written = write_all(file, from_address, bytes);
    close(file);
    if (!is_written || rename(begun.text, path.text) != 0)
        unlink(begun.text);
}

/* Read and remove a message if it has arrived. */
static bool
take(const struct path *path, uint64_t to_address, uint64_t bytes)
{
    static __thread char message[NCCL_MAIL_BYTES_MAX];
    int file = open(path->text, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    uint64_t done = 0;
    for (ssize_t more = 1; more > 0 && done<bytes; done += more> 0 ? (uint64_t)more : 0)
        more = read(file, message + done, bytes - done);
    close(file);
    unlink(path->text);
    standin_copy(to_address, (uintptr_t)message, done);
    return true;
}

bool
nccl_box_receive(struct nccl_box *box, int from, uint64_t to_address, uint64_t bytes)
{
    if (!is_carried(box, from, bytes))
        return false;
    struct path path = path_of_message(box, from, box->rank, box->received[from]++);
    double begin = now_ms();
    for (long nap_us = 20; !box->is_silent; nap_us += nap_us < NAP_US_MAX ? nap_us : 0) {
        if (take(&path, to_address, bytes))
            return true;
        enum presence presence = find_presence(box, from);
        if (presence == PRESENCE_GONE) /* its last message may have arrived meanwhile */
            return take(&path, to_address, bytes);
        double max = presence == PRESENCE_HERE ? STUCK_MS_MAX : ABSENT_MS_MAX;
        box->is_silent = now_ms() - begin > max;
        nanosleep(&(struct timespec){0, nap_us * 1000}, NULL);
    }
    return take(&path, to_address, bytes);
}
