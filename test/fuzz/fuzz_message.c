/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a log. What is found must lie in it, every number within its interval, every
 * sum be that of its terms; in pieces of any size it must be the same; and what is written
 * of it must read as itself. The first byte chooses the size of the pieces.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/message.h>

#define KEPT_MAX 32

static void
require(int condition)
{
    if (!condition)
        abort();
}

struct found {
    struct dry_message messages[KEPT_MAX];
    size_t count, size;
};

static void
check_size(const struct dry_message_size *s)
{
    if (s->known == DRY_MESSAGE_KNOWN)
        require(s->low <= s->bytes && s->bytes <= s->high && s->high < UINT64_C(1) << 59);
    else
        require(s->bytes == 0 && s->low == 0 && s->high == 0);
}

static void
check_terms(const struct dry_message_term *terms, size_t count,
            const struct dry_message_sum *sum)
{
    struct dry_message_sum s = {0};
    require(count <= DRY_MESSAGE_TERMS_MAX);
    for (size_t i = 0; i < count; i++) {
        require(terms[i].value.low >= 0 && terms[i].value.low <= terms[i].value.high);
        s.bytes += terms[i].sign * terms[i].value.bytes;
        s.low += terms[i].sign > 0 ? terms[i].value.low : -terms[i].value.high;
        s.high += terms[i].sign > 0 ? terms[i].value.high : -terms[i].value.low;
    }
    require(s.bytes == sum->bytes && s.low == sum->low && s.high == sum->high);
    require(sum->low <= sum->bytes && sum->bytes <= sum->high);
}

static void
check_judgement(const struct dry_message *m)
{
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    dry_message_judge(m, &j);
    require((size_t)j.cause < DRY_CAUSE_COUNT && j.cause != DRY_CAUSE_NONE);
    require(!(j.alternatives >> j.cause & 1) && j.step_count <= DRY_MESSAGE_STEPS_MAX);
    require(j.this_process < (int32_t)m->other_count);
    for (size_t i = 0; i < j.step_count; i++) {
        char code[1024];
        require(dry_message_step_write(j.steps + i, code, sizeof code) < sizeof code);
        require(!strstr(code, "{}"));
    }
    require(j.cause == DRY_CAUSE_UNKNOWN || j.proofs[0].cause == j.cause);
    for (size_t i = 0; i < j.check_count; i++)
        check_terms(j.checks[i].terms, j.checks[i].term_count, &j.checks[i].remainder);
    for (size_t i = 0; i < j.proof_count; i++)
        check_terms(j.proofs[i].terms, j.proofs[i].term_count, &j.proofs[i].sum);
}

/* Once through the writer, a message is at rest. */
static void
check_writing(const struct dry_message *m)
{
    char text[4096], again[4096];
    struct dry_message one = DRY_INIT(struct dry_message), two = one;
    size_t length = dry_message_write(m, text, sizeof text);
    require(length < sizeof text && length == strlen(text));
    require(dry_message_parse(text, length, NULL, &one, NULL) == DRY_OK);
    require(dry_message_write(&one, again, sizeof again) < sizeof again);
    require(dry_message_parse(again, strlen(again), NULL, &two, NULL) == DRY_OK);
    require(dry_message_is_same(&one, &two));
    require(one.backend == m->backend || m->form == DRY_MESSAGE_DRIVER);
    require(!one.kind == !m->kind && (!m->kind || strcmp(one.kind, m->kind) == 0));
    require(one.tried.known == m->tried.known || m->form == DRY_MESSAGE_HUGE ||
            m->form == DRY_MESSAGE_DRIVER);
}

static bool
take(void *self, const struct dry_message *m)
{
    struct found *f = self;
    require(m->offset < f->size && m->line >= 1);
    require(memchr(m->label, '\0', sizeof m->label) != NULL);
    require(m->other_count <= DRY_MESSAGE_PROCESSES_MAX);
    check_size(&m->tried);
    check_size(&m->total);
    check_size(&m->free);
    check_size(&m->process);
    check_size(&m->allowed);
    check_size(&m->allocated);
    check_size(&m->private_pools);
    check_size(&m->unallocated);
    check_size(&m->reserved);
    check_size(&m->non_pytorch);
    check_size(&m->expandable_reserve);
    for (size_t i = 0; i < m->other_count; i++)
        check_size(&m->others[i].bytes);
    require(m->figure_count <= DRY_MESSAGE_FIGURES_MAX);
    for (size_t i = 0; i < m->figure_count; i++)
        check_size(&m->figures[i].size);
    check_judgement(m);
    if (f->count < 4)
        check_writing(m);
    if (f->count < KEPT_MAX)
        f->messages[f->count] = *m;
    f->count++;
    return false;
}

static void
find(const uint8_t *data, size_t size, size_t step, struct found *f)
{
    struct dry_message_options options;
    dry_message_options_init(&options);
    options.found = take;
    options.found_self = f;
    f->size = size;
    struct dry_message_finder *finder;
    require(dry_message_finder_create(&options, &finder, NULL) == DRY_OK);
    for (size_t at = 0; at < size; at += step)
        require(dry_message_finder_feed(finder, (const char *)data + at,
                                        size - at < step ? size - at : step) == DRY_OK);
    require(dry_message_finder_end(finder) == DRY_OK);
    dry_message_finder_destroy(finder);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct found *whole = calloc(2, sizeof *whole), *pieces = whole + 1;
    if (!whole)
        return 0;
    find(data, size, size + 1, whole);
    find(data, size, size ? data[0] + 1u : 1, pieces);
    require(whole->count == pieces->count);
    for (size_t i = 0; i < whole->count && i < KEPT_MAX; i++) {
        require(dry_message_is_same(whole->messages + i, pieces->messages + i));
        require(whole->messages[i].offset == pieces->messages[i].offset);
        require(whole->messages[i].line == pieces->messages[i].line);
        require(strcmp(whole->messages[i].label, pieces->messages[i].label) == 0);
    }
    free(whole);
    return 0;
}
