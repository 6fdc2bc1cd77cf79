/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Find messages in a stream of text, in one pass and constant memory.
 *
 * Blanks, colours and prefixes of lines are dropped. The other characters go into `tail`, where
 * heads are searched, and into the open message of their rank. Each rank has a `lane`, so that
 * lines of different ranks may alternate. A line without a rank belongs to the rank of the line
 * before. A lane ends after a gap without a phrase, at its rank's next message, or, if it is
 * PyTorch's, when full. Full lanes of others, such as the dump of an allocator, are read and emptied.
 *
 * Lines before a message may belong to it: how much the weights take, how full the host is. Each is a
 * lane whose numbers wait as a `note` for the next message of the rank.
 *
 * F1  A lane's text begins with a head, or with the line that has one, until the lane is emptied. It
 *     has no blanks.
 * F2  Each character goes into at most one lane, and a lane is read each time its length doubles:
 *     the time is linear in the text.
 */
#include <string.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "explain/message/message.h"

#define LANE_COUNT 16
#define LANE_BYTES 6144
#define LANE_KEPT 192 /* a phrase may be cut at the end of an emptied lane */
#define FIRST_CHECK_BYTES 512
#define PIECE_BYTES 1024
#define TAIL_CHARS 2048
#define TAIL_KEPT 96 /* longest exception, colon and longest head */
#define ESCAPE_BYTES_MAX 256

struct lane {
    bool is_open;
    bool is_own; /* the head begins a line or follows a colon */
    bool has_after;
    char after;                           /* the character after the head, also '\n' */
    const struct dryi_message_head *head; /* NULL: one of PyTorch's */
    enum dry_message_backend backend;
    enum dryi_message_exception exception;
    uint64_t rank;   /* hash of the rank's prefix */
    uint64_t number; /* counts lanes in order of opening */
    uint64_t offset, line;
    char label[DRY_MESSAGE_LABEL_BYTES];
    struct dryi_message_reading reading; /* the emptied part was read so far */
    size_t head_chars;                   /* 0 after the lane was emptied */
    size_t used, check_at;
    size_t alive_at; /* a phrase ended here, or later */
    char *text;      /* LANE_BYTES of the finder's `texts` */
};

struct note {
    uint64_t rank;
    struct dry_message message; /* its figures */
};

enum escape { NO_ESCAPE, ESCAPE_BEGUN, ESCAPE_CSI, ESCAPE_OSC };

struct dry_message_finder {
    struct dry_memory memory;
    bool (*found)(void *self, const struct dry_message *message);
    void *found_self;
    bool is_cancelled;

    uint64_t offset; /* offset of piece[0] in the whole text */
    uint64_t line;
    size_t piece_used;
    bool at_line_begin;
    size_t line_chars; /* characters of the current line in the tail */

    enum escape escape;
    size_t escape_bytes;
    bool has_backslash;
    uint64_t backslash_offset;

    uint64_t rank;                       /* the current line's rank */
    char label[DRY_MESSAGE_LABEL_BYTES]; /* "" if the line has no rank of its own */
    struct lane *current;                /* the open lane of `rank`; NULL if none */
    struct lane *fresh;                  /* the lane that waits for
                                            its `after`; NULL if none */
    uint64_t lanes_opened;

    /* Foreign heads by their last character: index + 1 of the first, and of the next. */
    const struct dryi_message_head *heads;
    uint8_t first_head[256], next_head[256], head_length[256];
    struct note notes[LANE_COUNT];
    size_t notes_made;

    size_t tail_used;
    char tail[TAIL_CHARS];
    uint64_t tail_offset[TAIL_CHARS], tail_line[TAIL_CHARS];
    char piece[PIECE_BYTES];
    struct lane lanes[LANE_COUNT];
    char texts[LANE_COUNT][LANE_BYTES];
};

/* --- lanes -------------------------------------------------------------------------------- */

/* Return whether the line ends after the head. */
static bool
is_closed(const struct lane *lane)
{
    return !lane->has_after || strchr("\n\r", lane->after);
}

static bool
is_foreign_message(const struct lane *lane, const struct dryi_message_reading *r)
{
    DRYI_ASSERT(lane->head);
    const struct dryi_message_kind *k = r->kind;
    uint8_t flags = lane->head->flags;
    bool is_sized = r->message.tried.known != DRY_MESSAGE_ABSENT;
    if (r->is_excluded || (k->needs && !r->has_needed) ||
        ((k->flags & DRYI_KIND_SIZED) && !is_sized) ||
        ((flags & DRYI_HEAD_CLOSED) && !is_closed(lane)))
        return false;
    return is_sized || lane->is_own || (flags & DRYI_HEAD_SURE) ||
           !(k->flags & DRYI_KIND_OWN);
}

/* Return whether a text is a message. A sentence that mentions running out of memory is not; an
   exception that ends with such a head is. */
static bool
is_message(const struct lane *lane, const struct dryi_message_reading *r)
{
    const struct dry_message *m = &r->message;
    if (r->kind)
        return is_foreign_message(lane, r);
    bool is_bare = r->end == 0 ||
                   (m->form == DRY_MESSAGE_SHORT && m->tried.known == DRY_MESSAGE_ABSENT);
    bool has_request = m->tried.known != DRY_MESSAGE_ABSENT ||
                       m->form == DRY_MESSAGE_HUGE || m->form == DRY_MESSAGE_REJECTED;
    if (lane->backend == DRY_MESSAGE_BACKEND_UNKNOWN)
        return has_request; /* a request identifies such heads */
    if (!is_bare && m->form != DRY_MESSAGE_DRIVER)
        return true;
    return lane->is_own && (is_closed(lane) || strchr(".(\"')]}<\\", lane->after));
}

/* Return the rank's note. If `make`, a new one may take the place of the oldest. */
static struct note *
find_note(struct dry_message_finder *f, uint64_t rank, bool make)
{
    for (size_t i = 0; i < LANE_COUNT; i++) {
        if (f->notes[i].message.figure_count && f->notes[i].rank == rank)
            return f->notes + i;
    }
    if (!make)
        return NULL;
    struct note *note = f->notes + f->notes_made++ % LANE_COUNT;
    *note = (struct note){.rank = rank};
    return note;
}

/* Keep a note's figures for the message behind it. The last ones count. */
static void
keep_note(struct dry_message_finder *f, uint64_t rank, const struct dry_message *m)
{
    if (m->figure_count == 0)
        return;
    struct note *note = find_note(f, rank, true);
    struct dry_message both = *m;
    for (size_t i = 0; i < note->message.figure_count; i++)
        dryi_message_take(&both, note->message.figures + i);
    note->message = both;
}

/* Give a message those figures of a note that it has not, the oldest first. */
static void
give_note(struct note *note, struct dry_message *m)
{
    for (size_t i = note->message.figure_count; i-- > 0;)
        dryi_message_take(m, note->message.figures + i);
    note->message.figure_count = 0;
}

/* Give the rank's note, or that of lines without a rank, to a message; then those of all ranks, if
   they belong to its kind. */
static void
take_note(struct dry_message_finder *f, uint64_t rank,
          const struct dryi_message_kind *kind, struct dry_message *m)
{
    struct note *note = find_note(f, rank, false);
    if (!note)
        note = find_note(f, 0, false);
    if (note)
        give_note(note, m);
    for (size_t i = 0; i < LANE_COUNT && kind && kind->flags & DRYI_KIND_RANKS; i++)
        give_note(f->notes + i, m);
}

/* Read a lane's text behind what was read before. Phrases that begin at `limit` are left. */
static struct dryi_message_reading
read_lane(const struct lane *lane, size_t limit)
{
    struct dryi_message_reading r = lane->reading;
    dryi_message_read(&r, lane->text, lane->used, limit);
    return r;
}

static void
drop_lane(struct dry_message_finder *f, struct lane *lane)
{
    lane->is_open = false;
    if (f->current == lane)
        f->current = NULL;
    if (f->fresh == lane)
        f->fresh = NULL;
}

static void
close_lane(struct dry_message_finder *f, struct lane *lane)
{
    struct dryi_message_reading r = read_lane(lane, lane->used);
    struct dry_message *m = &r.message;
    drop_lane(f, lane);
    if (r.kind && !r.kind->key) {
        keep_note(f, lane->rank, m);
        return;
    }
    if (!is_message(lane, &r))
        return;
    take_note(f, lane->rank, r.kind, m);
    m->struct_size = sizeof *m;
    m->offset = lane->offset;
    m->line = lane->line;
    memcpy(m->label, lane->label, sizeof m->label);
    dryi_message_name_releases(m, lane->text, lane->used, lane->exception);
    if (!f->is_cancelled && f->found(f->found_self, m) != 0)
        f->is_cancelled = true;
}

/* Return a free lane. If all are used, close the lane that was opened first,
   and report its message. */
static struct lane *
take_lane(struct dry_message_finder *f)
{
    struct lane *oldest = f->lanes;
    for (size_t i = 0; i < LANE_COUNT; i++) {
        struct lane *lane = f->lanes + i;
        if (!lane->is_open)
            return lane;
        if (lane->number < oldest->number)
            oldest = lane;
    }
    close_lane(f, oldest);
    return oldest;
}

static void
find_current(struct dry_message_finder *f)
{
    f->current = NULL;
    for (size_t i = 0; i < LANE_COUNT; i++) {
        if (f->lanes[i].is_open && f->lanes[i].rank == f->rank)
            f->current = f->lanes + i;
    }
}

/* Return whether a phrase ended less than a gap ago. */
static bool
is_alive(struct lane *lane)
{
    size_t gap = dryi_message_gap(lane->reading.kind);
    if (lane->alive_at + gap < lane->used) {
        size_t end = read_lane(lane, lane->used).end;
        lane->alive_at = end > lane->alive_at ? end : lane->alive_at;
    }
    return lane->alive_at + gap >= lane->used;
}

/* Read a full lane, and keep its end only. */
static void
empty_lane(struct lane *lane)
{
    size_t limit = LANE_BYTES - LANE_KEPT;
    lane->reading = read_lane(lane, limit);
    /* A phrase may end behind the limit. */
    size_t from = lane->reading.end > limit ? lane->reading.end : limit;
    memmove(lane->text, lane->text + from, LANE_BYTES - from);
    lane->used = LANE_BYTES - from;
    lane->check_at = FIRST_CHECK_BYTES;
    lane->reading.end = lane->alive_at = lane->head_chars = 0;
}

static void
append(struct dry_message_finder *f, struct lane *lane, char c)
{
    DRYI_ASSERT(lane->used < LANE_BYTES);
    lane->text[lane->used++] = c;
    bool is_full = lane->used == LANE_BYTES;
    if (!is_full && lane->used < lane->check_at)
        return;
    lane->check_at *= 2;
    if (!is_alive(lane) || (is_full && !lane->head))
        close_lane(f, lane);
    else if (is_full)
        empty_lane(lane);
}

/* --- heads -------------------------------------------------------------------------------- */

/* Return the length of the tail's end that is the first `at` characters of `words` without their
   blanks, 0 if it differs. */
static size_t
match_words(const struct dry_message_finder *f, const char *words, size_t at)
{
    size_t used = 0;
    while (at > 0) {
        char c = words[--at];
        if (c == ' ')
            continue;
        if (used == f->tail_used || f->tail[f->tail_used - used - 1] != c)
            return 0;
        used++;
    }
    return used;
}

/* Return whether the tail, without its last `skipped` characters, ends with `word`. */
static bool
ends_with(const struct dry_message_finder *f, size_t skipped, const char *word)
{
    size_t n = strlen(word);
    return f->tail_used >= skipped + n &&
           memcmp(f->tail + f->tail_used - skipped - n, word, n) == 0;
}

static enum dryi_message_exception
find_exception(const struct dry_message_finder *f, size_t head)
{
    if (ends_with(f, head, "torch.cuda.OutOfMemoryError:"))
        return MESSAGE_EXCEPTION_CUDA_OOM;
    if (ends_with(f, head, "torch.OutOfMemoryError:"))
        return MESSAGE_EXCEPTION_OOM;
    if (ends_with(f, head, "RuntimeError:"))
        return MESSAGE_EXCEPTION_RUNTIME;
    return MESSAGE_EXCEPTION_UNKNOWN;
}

/* Open a lane: the last `head` characters of the tail begin a message. A head that holds a part of
   the current lane's head takes the lane's place. */
static void
open_lane(struct dry_message_finder *f, size_t head, enum dry_message_backend backend)
{
    if (f->current) {
        size_t *used = &f->current->used;
        *used -= head < *used ? head : *used; /* remove the head from
                                                 the rank's current lane */
        if (*used < f->current->head_chars)
            drop_lane(f, f->current);
        else
            close_lane(f, f->current);
    }
    struct lane *lane = take_lane(f);
    size_t begin = f->tail_used - head;
    *lane = (struct lane){
        .is_open = true,
        .is_own = f->line_chars == head || ends_with(f, head, ":"),
        .backend = backend,
        .exception = find_exception(f, head),
        .rank = f->rank,
        .number = f->lanes_opened++,
        .offset = f->tail_offset[begin],
        .line = f->tail_line[begin],
        .reading.message.backend = backend,
        .head_chars = head,
        .used = head,
        .check_at = FIRST_CHECK_BYTES,
        .text = f->texts[lane - f->lanes],
    };
    memcpy(lane->label, f->label, sizeof lane->label);
    memcpy(lane->text, f->tail + begin, head);
    f->current = f->fresh = lane;
}

static void
find_known_backend(struct dry_message_finder *f)
{
    static const struct {
        const char *word;
        enum dry_message_backend backend;
    } heads[] = {
        {"CUDAoutofmemory", DRY_MESSAGE_CUDA},
        {"HIPoutofmemory", DRY_MESSAGE_HIP},
        {"XPUoutofmemory", DRY_MESSAGE_XPU},
        {"NPUoutofmemory", DRY_MESSAGE_NPU},
        {"MPSbackendoutofmemory", DRY_MESSAGE_BACKEND_MPS},
        {"CUDAerror:outofmemory", DRY_MESSAGE_CUDA},
        {"HIPerror:outofmemory", DRY_MESSAGE_HIP},
    };
    bool is_held = f->current && f->current->head &&
                   (f->current->reading.kind->flags & DRYI_KIND_HOLDS) &&
                   is_alive(f->current);
    if (!ends_with(f, 0, "outofmemory") ||
        (is_held && ends_with(f, 0, "error:outofmemory")))
        return;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (ends_with(f, 0, heads[i].word)) {
            open_lane(f, strlen(heads[i].word), heads[i].backend);
            return;
        }
    }
}

/* Match "Allocation on device 0 would exceed allowed memory". */
static void
find_async(struct dry_message_finder *f)
{
    static const char end[] = "wouldexceedallowedmemory", begin[] = "Allocationondevice";
    if (!ends_with(f, 0, end))
        return;
    size_t head = sizeof end - 1, digits = 0;
    while (digits < 10 && head + digits < f->tail_used) {
        char c = f->tail[f->tail_used - head - digits - 1];
        if (c < '0' || c > '9')
            break;
        digits++;
    }
    if (digits > 0 && ends_with(f, head + digits, begin))
        open_lane(f, head + digits + sizeof begin - 1, DRY_MESSAGE_CUDA);
}

/* Match heads without a known backend: the newest texts name none. The rest of the text tells. */
static void
find_unknown_backend(struct dry_message_finder *f, const char *end)
{
    size_t n = strlen(end), head = 0;
    if (!ends_with(f, 0, end))
        return;
    if (ends_with(f, n, "utofmemory.")) /* the text was "Out" or "WORD out" */
        head = n + strlen("outofmemory.");
    else if (ends_with(f, n, "OutOfMemoryError:"))
        head = n;
    bool is_begun = f->current && f->current->used <= head + strlen("MPSbackend");
    if (head > 0 && head <= f->tail_used && !is_begun)
        open_lane(f, head, DRY_MESSAGE_BACKEND_UNKNOWN);
}

/* Return how much of the line before a head is read, too: TAIL_KEPT holds both. */
static size_t
measure_line(const struct dry_message_finder *f, size_t head)
{
    size_t most = f->line_chars < TAIL_KEPT ? f->line_chars : TAIL_KEPT;
    return most > head ? most - head : 0;
}

static void
open_foreign(struct dry_message_finder *f, const struct dryi_message_head *head,
             size_t length)
{
    const struct dryi_message_kind *kind = dryi_message_get_kind(head->kind);
    open_lane(f, length, kind->backend);
    struct lane *lane = f->current;
    lane->head = head;
    lane->reading.kind = kind;
    lane->reading.message.form = kind->form;
    lane->reading.message.kind = kind->key;
    if (head->flags & DRYI_HEAD_LINE) {
        lane->used = length + measure_line(f, length);
        memcpy(lane->text, f->tail + f->tail_used - lane->used, lane->used);
    }
    lane->alive_at = lane->head_chars = lane->used;
}

/* Return whether the number before the last `skipped` characters is 0. */
static bool
is_after_zero(const struct dry_message_finder *f, size_t skipped)
{
    const char *end = f->tail + f->tail_used - skipped;
    size_t left = f->tail_used - skipped;
    return left >= 1 && end[-1] == '0' && (left < 2 || !dryi_is_digit(end[-2]));
}

/* Match heads of foreign kinds: those that end with the last character. */
static void
find_foreign(struct dry_message_finder *f, char last)
{
    for (size_t i = f->first_head[(unsigned char)last]; i > 0; i = f->next_head[i]) {
        const struct dryi_message_head *head = f->heads + i - 1;
        size_t length = match_words(f, head->words, f->head_length[i]);
        if (length == 0 ||
            ((head->flags & DRYI_HEAD_COUNTED) && is_after_zero(f, length)))
            continue;
        bool is_part = head->joins && f->current &&
                       f->current->reading.kind == dryi_message_get_kind(head->joins) &&
                       is_alive(f->current);
        if (is_part)
            f->current->alive_at = f->current->used;
        else
            open_foreign(f, head, length);
        return;
    }
}

static void
add_to_tail(struct dry_message_finder *f, char c, uint64_t offset)
{
    if (f->tail_used == TAIL_CHARS) {
        size_t from = TAIL_CHARS - TAIL_KEPT;
        memcpy(f->tail, f->tail + from, TAIL_KEPT);
        memcpy(f->tail_offset, f->tail_offset + from, TAIL_KEPT * sizeof *f->tail_offset);
        memcpy(f->tail_line, f->tail_line + from, TAIL_KEPT * sizeof *f->tail_line);
        f->tail_used = TAIL_KEPT;
    }
    f->tail[f->tail_used] = c;
    f->tail_offset[f->tail_used] = offset;
    f->tail_line[f->tail_used] = f->line;
    f->tail_used++;
    f->line_chars++;
}

/* --- characters --------------------------------------------------------------------------- */

static void
note_after(struct dry_message_finder *f, char c)
{
    if (!f->fresh)
        return;
    f->fresh->after = c;
    f->fresh->has_after = true;
    f->fresh = NULL;
}

static void
push(struct dry_message_finder *f, char c, uint64_t offset)
{
    note_after(f, c);
    add_to_tail(f, c, offset);
    if (f->current)
        append(f, f->current, c);
    find_foreign(f, c);
    if (c == 'y') {
        find_known_backend(f);
        find_async(f);
    } else if (c == 'e') {
        find_unknown_backend(f, "Triedtoallocate");
    } else if (c == 'd') {
        find_unknown_backend(f, "Allocationwaspreemptivelyrejected");
    }
}

/* Return whether the byte is part of a terminal's escape sequence. */
static bool
is_of_escape(struct dry_message_finder *f, char c)
{
    if (f->escape == NO_ESCAPE) {
        if (c != '\x1b')
            return false;
        f->escape = ESCAPE_BEGUN;
        f->escape_bytes = 0;
        return true;
    }
    if (c == '\n' || ++f->escape_bytes > ESCAPE_BYTES_MAX) {
        f->escape = NO_ESCAPE;
        return false;
    }
    if (f->escape == ESCAPE_BEGUN)
        f->escape = c == '[' ? ESCAPE_CSI : c == ']' ? ESCAPE_OSC : NO_ESCAPE;
    else if (f->escape == ESCAPE_CSI ? c >= '@' && c <= '~' : c == '\a' || c == '\\')
        f->escape = NO_ESCAPE;
    return true;
}

/* Take a character. NUL is dropped, so that UTF-16 can be read. A literal "\n", from a printed
   string representation, counts as the end of a line. */
static void
take_char(struct dry_message_finder *f, char c, uint64_t offset)
{
    if (c == '\0' || is_of_escape(f, c))
        return;
    if (f->has_backslash) {
        f->has_backslash = false;
        if (c == 'n' || c == 'r' || c == 't') {
            note_after(f, '\n');
            return;
        }
        push(f, '\\', f->backslash_offset);
    }
    if (c == '\n' || c == '\r') {
        note_after(f, c);
        f->line += c == '\n';
        return;
    }
    if (c == '\\') {
        f->has_backslash = true;
        f->backslash_offset = offset;
        return;
    }
    if (c != ' ' && c != '\t' && c != '\v' && c != '\f')
        push(f, c, offset);
}

/* --- prefixes of lines -------------------------------------------------------------------- */

struct span {
    const char *text;
    size_t length;
};

/* Match "rank3", "default 0", "7", "1,0": letters, then numbers. */
static bool
is_rank(struct span s)
{
    size_t i = 0, digits = 0;
    while (i < s.length && dryi_is_letter(s.text[i]))
        i++;
    if (i > 12)
        return false;
    if (i > 0 && i < s.length && (s.text[i] == ' ' || s.text[i] == '_'))
        i++;
    for (; i < s.length && (dryi_is_digit(s.text[i]) || s.text[i] == ','); i++)
        digits++;
    return digits > 0 && digits <= 12 && i == s.length;
}

static size_t
find_char(struct span s, size_t limit, char wanted)
{
    size_t i = 0;
    while (i < s.length && i < limit && s.text[i] != wanted)
        i++;
    return i < s.length && i < limit ? i : 0;
}

/* Measure "[rank3]:", "[1,0]<stderr>:", "[2025-01-31 12:00:00]", "(worker pid=17, ip=10.0.0.1)". */
static size_t
measure_bracket(struct span s, struct span *label)
{
    size_t close = find_char(s, 96, s.text[0] == '[' ? ']' : ')');
    if (close == 0)
        return 0;
    struct span inside = {s.text + 1, close - 1};
    if (s.text[0] == '(') {
        size_t pid = 0;
        while (pid + 4 <= inside.length && memcmp(inside.text + pid, "pid=", 4) != 0)
            pid++;
        if (pid + 4 > inside.length)
            return 0; /* "(GPU 0; ..." is part of a message */
        *label = (struct span){inside.text + pid, 4};
        while (pid + label->length < inside.length && label->length < 14 &&
               dryi_is_digit(label->text[label->length]))
            label->length++;
    } else if (is_rank(inside)) {
        *label = inside;
    }
    size_t used = close + 1;
    if (s.length - used > 8 && memcmp(s.text + used, "<std", 4) == 0)
        used += 8;
    return used + (used < s.length && s.text[used] == ':');
}

/* Measure "2025-01-31 12:00:00,123", "0: " of srun, "17:" of grep; not "44.00". */
static size_t
measure_numbers(struct span s, struct span *label)
{
    size_t used = 0, marks = 0;
    while (used < s.length && used < 40 &&
           (dryi_is_digit(s.text[used]) ||
            (s.text[used] && strchr("-:/.,TZ+", s.text[used])))) {
        marks += strchr("-:/", s.text[used]) != NULL;
        used++;
    }
    if (marks == 0)
        return 0;
    if (s.text[used - 1] == ':' && marks == 1) {
        if (used < s.length && s.text[used] == ' ')
            *label = (struct span){s.text, used - 1};
        return used;
    }
    return used >= 5 ? used : 0;
}

/* Measure "Nov 08 09:14:02 host program[48213]:" of journald, "trainer-1  | " of docker compose. */
static size_t
measure_service(struct span s)
{
    size_t used = 0;
    if (s.length > 16 && s.text[3] == ' ' && s.text[6] == ' ' && s.text[9] == ':' &&
        s.text[12] == ':') {
        size_t colon = find_char((struct span){s.text + 16, s.length - 16}, 96, ':');
        return colon ? 16 + colon + 1 : 0;
    }
    while (used < s.length && used < 40 &&
           (dryi_is_letter(s.text[used]) || dryi_is_digit(s.text[used]) ||
            (s.text[used] && strchr("-_.", s.text[used]))))
        used++;
    size_t name = used;
    while (used < s.length && used < 64 && s.text[used] == ' ')
        used++;
    return used > name && used < s.length && s.text[used] == '|' ? used + 1 : 0;
}

/* Measure "ERROR:", "WARNING " and "rank3:". */
static size_t
measure_word(struct span s, struct span *label)
{
    static const char *const levels[] = {"ERROR",    "WARNING", "INFO",
                                         "CRITICAL", "DEBUG",   "FATAL"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        size_t n = strlen(levels[i]);
        if (s.length > n && memcmp(s.text, levels[i], n) == 0 &&
            (s.text[n] == ':' || s.text[n] == ' '))
            return n + 1;
    }
    size_t colon = find_char(s, 12, ':');
    if (colon > 4 && memcmp(s.text, "rank", 4) == 0 &&
        is_rank((struct span){s.text, colon})) {
        *label = (struct span){s.text, colon};
        return colon + 1;
    }
    return 0;
}

/* Measure a colour's escape sequence, at most to the end of the line. */
static size_t
measure_escape(struct span s)
{
    if (s.length < 2 || s.text[1] != '[')
        return 1;
    size_t used = 2;
    while (used < s.length && used < 32 && s.text[used] >= ' ' && s.text[used] < '@')
        used++;
    return used < s.length && s.text[used] >= '@' ? used + 1 : used;
}

/* Measure all prefixes of a line. The last rank among them becomes its label. */
static size_t
measure_prefix(struct span line, struct span *label)
{
    size_t used = 0;
    for (int rounds = 0; rounds < 12 && used < line.length; rounds++) {
        struct span s = {line.text + used, line.length - used};
        char c = s.text[0];
        size_t n = 0;
        if (c == ' ' || c == '\t' || c == '#' || c == '>' || c == '|' || c == '*')
            n = 1;
        else if (c == '\x1b')
            n = measure_escape(s);
        else if (c == '[' || c == '(')
            n = measure_bracket(s, label);
        else if (dryi_is_digit(c))
            n = measure_numbers(s, label);
        else if (dryi_is_letter(c))
            n = measure_word(s, label);
        if (n == 0 && used == 0)
            n = measure_service(s);
        if (n == 0)
            break;
        used += n;
        while (used < line.length && line.text[used] == ' ')
            used++;
    }
    return used;
}

static void
begin_line(struct dry_message_finder *f, struct span label)
{
    f->line_chars = 0;
    memset(f->label, 0, sizeof f->label);
    if (label.length == 0)
        return; /* the line belongs to the rank before */
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < label.length; i++)
        hash = (hash ^ (unsigned char)label.text[i]) * UINT64_C(0x100000001b3);
    size_t n = label.length < sizeof f->label ? label.length : sizeof f->label - 1;
    memcpy(f->label, label.text, n);
    if (hash == f->rank)
        return;
    f->rank = hash;
    find_current(f);
}

/* Process the collected bytes. Requires at least one byte. */
static void
take_piece(struct dry_message_finder *f)
{
    size_t i = 0;
    if (f->at_line_begin) {
        struct span label = {NULL, 0};
        i = measure_prefix((struct span){f->piece, f->piece_used}, &label);
        begin_line(f, label);
    }
    for (; i < f->piece_used; i++)
        take_char(f, f->piece[i], f->offset + i);
    char last = f->piece[f->piece_used - 1];
    f->at_line_begin = last == '\n' || last == '\r';
    f->offset += f->piece_used;
    f->piece_used = 0;
}

/* --- public calls ------------------------------------------------------------------------- */

void
dry_message_options_init_sized(struct dry_message_options *options, size_t struct_size)
{
    const struct dry_message_options defaults = {0};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* Reset to the beginning of a text; memory and callback stay. */
static void
begin_text(struct dry_message_finder *f)
{
    f->offset = 0;
    f->line = 1;
    f->piece_used = 0;
    f->at_line_begin = true;
    f->line_chars = 0;
    f->escape = NO_ESCAPE;
    f->has_backslash = false;
    f->rank = 0;
    f->current = f->fresh = NULL;
    f->lanes_opened = 0;
    f->tail_used = 0;
    f->is_cancelled = false;
    memset(f->notes, 0, sizeof f->notes);
    f->notes_made = 0;
}

/* Chain the heads by their last character, in the table's order. */
static void
chain_heads(struct dry_message_finder *f)
{
    size_t count;
    f->heads = dryi_message_get_heads(&count);
    DRYI_ASSERT(count < 255);
    for (size_t i = count; i > 0; i--) {
        const char *words = f->heads[i - 1].words;
        size_t length = strlen(words);
        unsigned char last = (unsigned char)words[length - 1];
        f->head_length[i] = (uint8_t)length;
        f->next_head[i] = f->first_head[last];
        f->first_head[last] = (uint8_t)i;
    }
}

enum dry_status
dry_message_finder_create(const struct dry_message_options *options,
                          struct dry_message_finder **finder, struct dry_error *err)
{
    struct dry_message_options o;
    dry_message_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status != DRY_OK)
        return status;
    if (!o.found)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "a finder without a function to call");
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_message_finder *f = dryi_memory_zalloc(&memory, 1, sizeof *f);
    if (!f)
        return dryi_fail_memory(err, "a finder of messages");
    f->memory = memory;
    f->found = o.found;
    f->found_self = o.found_self;
    chain_heads(f);
    begin_text(f);
    *finder = f;
    return DRY_OK;
}

enum dry_status
dry_message_finder_feed(struct dry_message_finder *f, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && !f->is_cancelled; i++) {
        char c = bytes[i];
        f->piece[f->piece_used++] = c;
        if (c == '\n' || c == '\r' || f->piece_used == PIECE_BYTES)
            take_piece(f);
    }
    return f->is_cancelled ? DRY_ERR_CANCELLED : DRY_OK;
}

enum dry_status
dry_message_finder_end(struct dry_message_finder *f)
{
    if (f->piece_used > 0 && !f->is_cancelled)
        take_piece(f);
    for (size_t left = LANE_COUNT; left > 0; left--) {
        struct lane *oldest = NULL;
        for (size_t i = 0; i < LANE_COUNT; i++) {
            struct lane *lane = f->lanes + i;
            if (lane->is_open && (!oldest || lane->number < oldest->number))
                oldest = lane;
        }
        if (oldest)
            close_lane(f, oldest);
    }
    enum dry_status status = f->is_cancelled ? DRY_ERR_CANCELLED : DRY_OK;
    begin_text(f);
    return status;
}

void
dry_message_finder_destroy(struct dry_message_finder *f)
{
    if (!f)
        return;
    struct dry_memory memory = f->memory;
    dryi_memory_free(&memory, f, 1, sizeof *f);
}

enum dry_status
dry_message_find(const char *text, size_t length,
                 const struct dry_message_options *options, struct dry_error *err)
{
    struct dry_message_finder *f = NULL;
    enum dry_status status = dry_message_finder_create(options, &f, err);
    if (!f)
        return status;
    status = dry_message_finder_feed(f, text, length);
    if (status == DRY_OK)
        status = dry_message_finder_end(f);
    dry_message_finder_destroy(f);
    if (status == DRY_ERR_CANCELLED)
        return dryi_fail(err, status, "cancelled");
    return status;
}

/* --- the first message -------------------------------------------------------------------- */

struct first {
    struct dry_message *message;
    bool is_found;
};

/* Keep the message with the lowest offset: lanes may end in another order. */
static bool
keep_first(void *self, const struct dry_message *message)
{
    struct first *first = self;
    if (!first->is_found || message->offset < first->message->offset)
        *first->message = *message;
    first->is_found = true;
    return false;
}

enum dry_status
dry_message_parse(const char *text, size_t length, const struct dry_memory *memory,
                  struct dry_message *message, struct dry_error *err)
{
    struct dry_message found;
    struct first first = {.message = &found};
    struct dry_message_options options;
    dry_message_options_init(&options);
    options.memory = memory;
    options.found = keep_first;
    options.found_self = &first;
    enum dry_status status = dry_message_find(text, length, &options, err);
    if (status != DRY_OK)
        return status;
    if (!first.is_found)
        return DRY_END;
    return dry_message_copy(&found, message);
}
