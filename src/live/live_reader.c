/* SPDX-License-Identifier: Apache-2.0 */

/* The reader's side of a page. The file is untrusted: every read copies, and every number
   is checked in the copy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <drystone/live.h>

#include "base/fail.h"
#include "base/memory.h"
#include "live/live_name.h"
#include "os/shared_file.h"
#include "os/system.h"

#define TRIES_MAX 100
#define OTHERS_MAY 077 /* permission bits of group and others */

struct dry_live_reader {
    struct dry_memory memory;
    char *path;
    size_t path_capacity;
    int file;
    uint32_t owner;
    uint32_t count; /* sources at the last dry_live_count(); never falls */
    struct dry_live_program program;
};

#define AT(field) offsetof(struct dry_live_page, field)

static uint64_t
slot_at(uint32_t number)
{
    return AT(slots) + number * sizeof(struct dry_live_slot);
}

/* --- opening ------------------------------------------------------------------------------ */

static enum dry_status
check_facts(const struct dryi_shared_facts *facts, const char *path,
            struct dry_error *err)
{
    if (!facts->is_plain || facts->names != 1)
        return dryi_fail(err, DRY_ERR_FORMAT, "%s: not a plain file of one name", path);
    if (facts->user != 0 && facts->owner != facts->user)
        return dryi_fail(err, DRY_ERR_FORMAT, "%s: belongs to user %u, not to %u", path,
                         facts->owner, facts->user);
    if (facts->mode & OTHERS_MAY)
        return dryi_fail(err, DRY_ERR_FORMAT,
                         "%s: mode %04o lets others in, expected 0600", path,
                         facts->mode);
    if (facts->bytes != DRY_LIVE_PAGE_BYTES)
        return dryi_fail(err, DRY_ERR_FORMAT, "%s: %llu bytes, expected %llu", path,
                         (unsigned long long)facts->bytes,
                         (unsigned long long)DRY_LIVE_PAGE_BYTES);
    return DRY_OK;
}

static bool
is_text(const char *text, size_t capacity)
{
    return strnlen(text, capacity) < capacity;
}

static enum dry_status
read_head(struct dry_live_reader *r, struct dry_error *err)
{
    struct {
        uint64_t magic;
        uint32_t version, page_bytes;
        struct dry_live_program program;
    } head;
    _Static_assert(sizeof head == AT(source_count), "the head lies before the count");
    if (!dryi_shared_file_read(r->file, 0, &head, sizeof head))
        return dryi_system_fail(err, DRY_ERR_SYSTEM, r->path, "cannot be read");
    if (head.magic != DRY_LIVE_MAGIC)
        return dryi_fail_at(err, DRY_ERR_FORMAT, 0, "%s: no page, or not yet", r->path);
    if (head.version != DRY_LIVE_VERSION || head.page_bytes != DRY_LIVE_PAGE_BYTES)
        return dryi_fail_at(err, DRY_ERR_FORMAT, AT(version),
                            "%s: version %u of %u bytes, expected version %u of %u",
                            r->path, head.version, head.page_bytes, DRY_LIVE_VERSION,
                            (unsigned)DRY_LIVE_PAGE_BYTES);
    if (!is_text(head.program.name, sizeof head.program.name) ||
        !is_text(head.program.labels, sizeof head.program.labels))
        return dryi_fail_at(err, DRY_ERR_FORMAT, AT(program), "%s: a text has no end",
                            r->path);
    r->program = head.program;
    return DRY_OK;
}

static enum dry_status
open_file(struct dry_live_reader *r, struct dry_error *err)
{
    struct dryi_shared_facts facts;
    if (dryi_shared_file_open(r->path, &r->file, &facts) != DRY_OK)
        return dryi_system_fail(err, DRY_ERR_SYSTEM, r->path, "cannot be opened");
    r->owner = facts.owner;
    enum dry_status status = check_facts(&facts, r->path, err);
    return status == DRY_OK ? read_head(r, err) : status;
}

static struct dry_live_reader *
make(const char *folder, const char *name, const struct dry_memory *memory)
{
    struct dry_memory hooks = dryi_memory_or_default(memory);
    struct dry_live_reader *r = dryi_memory_zalloc(&hooks, 1, sizeof *r);
    if (!r)
        return NULL;
    r->memory = hooks;
    r->file = -1;
    r->path_capacity = strlen(folder) + 1 + strlen(name) + 1;
    r->path = dryi_memory_zalloc(&hooks, 1, r->path_capacity);
    if (!r->path) {
        dryi_memory_free(&hooks, r, 1, sizeof *r);
        return NULL;
    }
    (void)snprintf(r->path, r->path_capacity, "%s/%s", folder, name);
    return r;
}

enum dry_status
dry_live_open(const char *folder, const char *name, const struct dry_memory *memory,
              struct dry_live_reader **reader, struct dry_error *err)
{
    if (!dryi_live_is_name(name))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "%s: not a page's name, " DRYI_LIVE_PREFIX "PROCESS-N", name);
    struct dry_live_reader *made = make(folder, name, memory);
    if (!made)
        return dryi_fail_memory(err, "a reader of a page");
    enum dry_status status = open_file(made, err);
    if (status != DRY_OK) {
        dry_live_close(made);
        return status;
    }
    *reader = made;
    return DRY_OK;
}

void
dry_live_close(struct dry_live_reader *reader)
{
    if (!reader)
        return;
    struct dry_memory memory = reader->memory;
    struct dryi_shared_file file = {.file = reader->file};
    dryi_shared_file_close(&file);
    dryi_memory_free(&memory, reader->path, 1, reader->path_capacity);
    dryi_memory_free(&memory, reader, 1, sizeof *reader);
}

const struct dry_live_program *
dry_live_get_program(const struct dry_live_reader *reader)
{
    return &reader->program;
}

uint32_t
dry_live_get_owner(const struct dry_live_reader *reader)
{
    return reader->owner;
}

bool
dry_live_is_alive(const struct dry_live_reader *reader, uint64_t *process)
{
    return dryi_shared_file_is_held(reader->file, process);
}

/* --- reading ------------------------------------------------------------------------------ */

uint32_t
dry_live_count(struct dry_live_reader *reader)
{
    uint64_t count;
    if (!dryi_shared_file_read(reader->file, AT(source_count), &count, sizeof count))
        return 0;
    reader->count = count < DRY_LIVE_SOURCES_MAX ? (uint32_t)count : DRY_LIVE_SOURCES_MAX;
    return reader->count;
}

/* Check the sums that hold in every sound allocator, and all counts before
   they are used as indices. */
static enum dry_status
check_source(const struct dry_live_reader *r, uint32_t number,
             const struct dry_live_source *s, struct dry_error *err)
{
    const char *wrong = NULL;
    if (s->kind < DRY_LIVE_POOL || s->kind > DRY_LIVE_OTHER)
        wrong = "a kind that is not known";
    else if (s->detail.lane_count > DRY_LIVE_LANES_MAX ||
             s->detail.line_count > DRY_LIVE_LINES_MAX)
        wrong = "more lanes or lines than there is room for";
    else if (!is_text(s->name, sizeof s->name) || !is_text(s->uuid, sizeof s->uuid))
        wrong = "a text without an end";
    for (uint32_t i = 0; !wrong && i < s->detail.line_count; i++)
        if (!is_text(s->detail.lines[i].text, sizeof s->detail.lines[i].text))
            wrong = "a text without an end";
    if (!wrong)
        return DRY_OK;
    return dryi_fail_at(err, DRY_ERR_FORMAT, slot_at(number), "%s: source %u has %s",
                        r->path, number, wrong);
}

enum try {
    TRY_DONE,
    TRY_AGAIN,
    TRY_HALF, /* the sequence is odd: a write is under way */
    TRY_UNREADABLE,
};

/* Bytes of a slot before its lanes. Lanes and lines are read up to their counts only. */
#define SLOT_HEAD offsetof(struct dry_live_slot, source.detail.lanes)

/* Read the lanes and lines in use. The counts are untrusted, so they are capped at the capacity. */
static bool
read_rows(const struct dry_live_reader *r, uint32_t number, struct dry_live_detail *d)
{
    uint64_t at = slot_at(number) + offsetof(struct dry_live_slot, source.detail);
    size_t lanes =
        d->lane_count < DRY_LIVE_LANES_MAX ? d->lane_count : DRY_LIVE_LANES_MAX;
    size_t lines =
        d->line_count < DRY_LIVE_LINES_MAX ? d->line_count : DRY_LIVE_LINES_MAX;
    return (lanes == 0 ||
            dryi_shared_file_read(r->file, at + offsetof(struct dry_live_detail, lanes),
                                  d->lanes, lanes * sizeof *d->lanes)) &&
           (lines == 0 ||
            dryi_shared_file_read(r->file, at + offsetof(struct dry_live_detail, lines),
                                  d->lines, lines * sizeof *d->lines));
}

static enum try
try_read(const struct dry_live_reader *r, uint32_t number, struct dry_live_slot *slot)
{
    uint64_t after;
    if (!dryi_shared_file_read(r->file, slot_at(number), slot, SLOT_HEAD))
        return TRY_UNREADABLE;
    if (slot->sequence % 2 != 0)
        return TRY_HALF;
    if (!read_rows(r, number, &slot->source.detail) ||
        !dryi_shared_file_read(r->file, slot_at(number), &after, sizeof after))
        return TRY_UNREADABLE;
    return slot->sequence == after ? TRY_DONE : TRY_AGAIN;
}

static void
copy_source(struct dry_live_source *to, const struct dry_live_source *from)
{
    memcpy(to, from, offsetof(struct dry_live_source, detail.lanes));
    memcpy(to->detail.lanes, from->detail.lanes,
           from->detail.lane_count * sizeof *to->detail.lanes);
    memcpy(to->detail.lines, from->detail.lines,
           from->detail.line_count * sizeof *to->detail.lines);
}

static enum dry_status
fail_try(const struct dry_live_reader *r, uint32_t number, enum try result,
         struct dry_error *err)
{
    uint64_t process;
    if (result == TRY_UNREADABLE)
        return dryi_system_fail(err, DRY_ERR_SYSTEM, r->path, "cannot be read");
    if (result == TRY_HALF && !dry_live_is_alive(r, &process))
        return dryi_fail_at(err, DRY_ERR_FORMAT, slot_at(number),
                            "%s: source %u is half written, and its program has ended",
                            r->path, number);
    return dryi_fail(err, DRY_ERR_CANCELLED, "%s: source %u was written all the time",
                     r->path, number);
}

enum dry_status
dry_live_read(struct dry_live_reader *reader, uint32_t number,
              struct dry_live_source *source, struct dry_error *err)
{
    struct dry_live_slot slot;
    if (number >= reader->count && number >= dry_live_count(reader))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%s: there is no source %u", reader->path,
                         number);
    enum try result = TRY_AGAIN;
    for (unsigned i = 0; i < TRIES_MAX && result != TRY_DONE; i++) {
        result = try_read(reader, number, &slot);
        if (result == TRY_UNREADABLE)
            break;
    }
    if (result != TRY_DONE)
        return fail_try(reader, number, result, err);
    enum dry_status status = check_source(reader, number, &slot.source, err);
    if (status == DRY_OK)
        copy_source(source, &slot.source);
    return status;
}

/* --- requests for snapshots --------------------------------------------------------------- */

/* Write the path, then the number, so that the program never sees a number without its path. */
static bool
write_request(int file, const char text[DRY_LIVE_PATH_BYTES], uint64_t *number)
{
    uint64_t next;
    if (!dryi_shared_file_read(file, AT(request), &next, sizeof next))
        return false;
    next++;
    if (!dryi_shared_file_write(file, AT(request.path), text, DRY_LIVE_PATH_BYTES) ||
        !dryi_shared_file_write(file, AT(request), &next, sizeof next))
        return false;
    *number = next;
    return true;
}

enum dry_status
dry_live_request(struct dry_live_reader *reader, const char *path, uint64_t *number,
                 struct dry_error *err)
{
    char text[DRY_LIVE_PATH_BYTES] = "";
    size_t length = strlen(path);
    if (length >= sizeof text)
        return dryi_fail(err, DRY_ERR_LIMIT, "a path of %zu bytes: %zu are possible",
                         length, sizeof text - 1);
    memcpy(text, path, length + 1);
    const uint64_t at = AT(request), bytes = sizeof(struct dry_live_request);
    if (!dryi_shared_file_claim(reader->file, at, bytes)) {
        bool is_taken = errno == EAGAIN || errno == EACCES;
        return dryi_system_fail(err, is_taken ? DRY_ERR_CANCELLED : DRY_ERR_SYSTEM,
                                reader->path, "nothing can be requested");
    }
    enum dry_status status = DRY_OK;
    if (!write_request(reader->file, text, number))
        status = dryi_system_fail(err, DRY_ERR_SYSTEM, reader->path, "cannot be written");
    dryi_shared_file_release(reader->file, at, bytes);
    return status;
}

enum dry_status
dry_live_get_answer(struct dry_live_reader *reader, struct dry_live_answer *answer,
                    struct dry_error *err)
{
    struct dry_live_answer found;
    if (!dryi_shared_file_read(reader->file, AT(answer), &found, sizeof found))
        return dryi_system_fail(err, DRY_ERR_SYSTEM, reader->path, "cannot be read");
    if (!is_text(found.text, sizeof found.text))
        return dryi_fail_at(err, DRY_ERR_FORMAT, AT(answer),
                            "%s: the answer's text has no end", reader->path);
    *answer = found;
    return DRY_OK;
}

/* --- files -------------------------------------------------------------------------------- */

struct listing {
    enum dry_status (*visit)(void *self, const char *name);
    void *self;
};

static enum dry_status
visit_name(void *self, const char *name)
{
    const struct listing *l = self;
    return dryi_live_is_name(name) ? l->visit(l->self, name) : DRY_OK;
}

enum dry_status
dry_live_list(const char *folder, enum dry_status (*visit)(void *self, const char *name),
              void *self, struct dry_error *err)
{
    struct listing listing = {visit, self};
    enum dry_status status =
        dryi_shared_file_list(folder, DRYI_LIVE_PREFIX, visit_name, &listing);
    if (status == DRY_ERR_SYSTEM)
        return dryi_system_fail(err, status, folder, "cannot be listed");
    return status;
}

enum dry_status
dry_live_remove(struct dry_live_reader *reader, struct dry_error *err)
{
    uint64_t process;
    if (dry_live_is_alive(reader, &process))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%s: its program lives", reader->path);
    if (!dryi_shared_file_is_named(reader->file, reader->path))
        return dryi_fail(err, DRY_ERR_SYSTEM, "%s: is another file now", reader->path);
    dryi_shared_file_remove(reader->path);
    return DRY_OK;
}
