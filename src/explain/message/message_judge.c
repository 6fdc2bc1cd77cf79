/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Derive the cause of an OOM from the numbers of its message.
 *
 * PyTorch writes the text after it has freed all empty cached segments and asked the driver again.
 * So `free` is what remains when nothing more can be freed, and `unallocated` is in segments
 * pinned by live blocks. PyTorch could use at most unallocated + free for this request, within the
 * limit if there is one:
 *
 *     tried > free                  the driver had to refuse
 *     tried - free > unallocated    a shortage: no arrangement of the blocks would do
 *     tried - free <= unallocated   the bytes were there, in pieces
 *
 * A shortage is one of capacity if live memory and the request exceed the device. It is one of
 * other memory if other users of the device hold at least the missing bytes. All comparisons use
 * intervals. If intervals overlap, the printed digits decide, and the verdict is not certain.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/sized.h"
#include "explain/message/message.h"

/* An estimate of what a CUDA context with its libraries takes, some hundred MiB, rounded up. Only
   memory of this process that exceeds the estimate, outside PyTorch, counts as other memory. */
#define CONTEXT_BYTES DRYI_GIB

/* DeepSpeed prints percents as they are: 95.3. */
#define HOST_FULL_PERCENT 90000000

/* --- sums --------------------------------------------------------------------------------- */

struct builder {
    const struct dry_message *m;
    struct dry_message_judgement *j;
};

/* Return a number of the message, or one that derive() made of such. */
static struct dry_message_figure
find_quantity(const struct builder *b, enum dry_message_quantity quantity)
{
    struct dry_message_figure f = {.quantity = quantity};
    switch ((int)quantity) {
    case DRY_MESSAGE_PROCESS:
        f.size = b->j->process;
        break;
    case DRY_MESSAGE_OTHERS:
        f.size = b->j->others;
        break;
    case DRY_MESSAGE_UNALLOCATED:
        f.size = b->j->unallocated;
        break;
    case DRY_MESSAGE_RESERVED:
        f.size = b->j->reserved;
        break;
    case DRY_MESSAGE_NON_PYTORCH:
        f.size = b->j->non_pytorch;
        break;
    case DRY_MESSAGE_CONTEXT:
        f.size = (struct dry_message_size){DRY_MESSAGE_KNOWN, CONTEXT_BYTES,
                                           CONTEXT_BYTES, CONTEXT_BYTES};
        break;
    default:
        return dryi_message_get(b->m, quantity);
    }
    return f;
}

/* Sums end with sign 0. Numbers are below 2^58, so sums do not overflow. */
#define PARTS(...)                                                                       \
    ((const struct dryi_message_part[]){__VA_ARGS__, {0, DRY_MESSAGE_TRIED}})

/* Add up the terms. Returns false if one is unknown. */
static bool
add_up(const struct builder *b, const struct dryi_message_part *parts,
       struct dry_message_term terms[DRY_MESSAGE_TERMS_MAX], size_t *count,
       struct dry_message_sum *sum)
{
    *sum = (struct dry_message_sum){0};
    *count = 0;
    for (; parts->sign != 0; parts++) {
        const struct dry_message_figure f = find_quantity(b, parts->quantity);
        if (f.size.known != DRY_MESSAGE_KNOWN)
            return false;
        struct dry_message_sum v = {(int64_t)f.size.bytes, (int64_t)f.size.low,
                                    (int64_t)f.size.high};
        int sign = f.is_negative ? -parts->sign : parts->sign;
        DRYI_ASSERT(*count < DRY_MESSAGE_TERMS_MAX);
        terms[(*count)++] = (struct dry_message_term){parts->quantity, sign, v};
        sum->bytes += sign * v.bytes;
        sum->low += sign > 0 ? v.low : -v.high;
        sum->high += sign > 0 ? v.high : -v.low;
    }
    return true;
}

/* A sum of which only the value is used. */
struct value {
    bool is_known;
    struct dry_message_sum sum;
};

static struct value
evaluate(const struct builder *b, const struct dryi_message_part *parts)
{
    struct dry_message_term terms[DRY_MESSAGE_TERMS_MAX];
    size_t count;
    struct value v;
    v.is_known = add_up(b, parts, terms, &count, &v.sum);
    return v;
}

/* Compare the printed value with 0. Both comparisons are false for unknown sums. */
static bool
is_above(const struct value *v)
{
    return v->is_known && v->sum.bytes > 0;
}

static bool
is_not_above(const struct value *v)
{
    return v->is_known && v->sum.bytes <= 0;
}

/* Return whether all values within the rounding have the same sign. */
static bool
is_decided(const struct value *v)
{
    return v->is_known && (v->sum.low > 0 || v->sum.high <= 0);
}

/* --- proofs ------------------------------------------------------------------------------- */

/* Add a proof; `parts` NULL: one without numbers. Returns false, adding nothing, if a number is
   missing or there is no space. */
static bool
add_proof(struct builder *b, enum dry_message_reason reason, enum dry_cause cause,
          const struct dryi_message_part *parts)
{
    struct dry_message_judgement *j = b->j;
    if (j->proof_count == DRY_MESSAGE_PROOFS_MAX)
        return false;
    struct dry_message_proof *p = j->proofs + j->proof_count;
    *p = (struct dry_message_proof){
        .reason = reason, .cause = cause, .text = dry_message_reason_text(reason)};
    if (parts && !add_up(b, parts, p->terms, &p->term_count, &p->sum))
        return false;
    j->proof_count++;
    return true;
}

static void
remark(struct builder *b, enum dry_message_reason reason)
{
    add_proof(b, reason, DRY_CAUSE_NONE, NULL);
}

static void
add_alternative(struct builder *b, enum dry_cause cause)
{
    b->j->alternatives |= 1u << cause;
}

static void
decide(struct builder *b, enum dry_cause cause, bool is_certain)
{
    b->j->cause = cause;
    b->j->is_certain = is_certain;
}

/* --- derived sizes ------------------------------------------------------------------------ */

static struct dry_message_size
make_size(const struct value *v)
{
    struct dry_message_size size = {0};
    if (!v->is_known || v->sum.high < 0)
        return size;
    size.known = DRY_MESSAGE_KNOWN;
    size.bytes = v->sum.bytes > 0 ? (uint64_t)v->sum.bytes : 0;
    size.low = v->sum.low > 0 ? (uint64_t)v->sum.low : 0;
    size.high = (uint64_t)v->sum.high;
    return size;
}

/* Add up the listed processes, except index `without`. The sum is unknown if one size is. */
static struct dry_message_size
add_others(const struct dry_message *m, size_t without)
{
    struct dry_message_size sum = {0};
    for (size_t i = 0; i < m->other_count; i++) {
        const struct dry_message_size *s = &m->others[i].bytes;
        if (i == without)
            continue;
        if (s->known != DRY_MESSAGE_KNOWN)
            return (struct dry_message_size){0};
        sum.known = DRY_MESSAGE_KNOWN;
        sum.bytes += s->bytes;
        sum.low += s->low;
        sum.high += s->high;
    }
    return sum;
}

/*
 * Find this process in the list of processes. In a container NVML reports other process ids, so
 * PyTorch does not recognise itself. If the listed processes plus PyTorch's reserved bytes exceed
 * the used memory, one of them is this process. If only one is large enough, it is this process.
 */
static void
find_this_process(struct builder *b)
{
    const struct dry_message *m = b->m;
    struct dry_message_judgement *j = b->j;
    struct value in_use = evaluate(b, PARTS(PLUS(TOTAL), MINUS(FREE)));
    struct dry_message_size all = add_others(m, SIZE_MAX);
    if (m->process.known != DRY_MESSAGE_ABSENT || all.known != DRY_MESSAGE_KNOWN ||
        j->reserved.known != DRY_MESSAGE_KNOWN || !in_use.is_known ||
        (int64_t)(all.low + j->reserved.low) <= in_use.sum.high)
        return;
    int32_t found = -1;
    for (size_t i = 0; i < m->other_count; i++) {
        if (m->others[i].bytes.high < j->reserved.low)
            continue;
        if (found >= 0)
            return;
        found = (int32_t)i;
    }
    j->this_process = found;
}

static void
derive(struct builder *b)
{
    const struct dry_message *m = b->m;
    struct dry_message_judgement *j = b->j;
    struct value v;
    j->unallocated = m->unallocated;
    j->reserved = m->reserved;
    j->process = m->process;
    j->non_pytorch = m->non_pytorch;
    if (j->unallocated.known == DRY_MESSAGE_ABSENT) {
        v = evaluate(b, PARTS(PLUS(RESERVED), MINUS(ALLOCATED)));
        j->unallocated = make_size(&v);
    }
    if (j->reserved.known == DRY_MESSAGE_ABSENT) {
        v = evaluate(b, PARTS(PLUS(ALLOCATED), PLUS(UNALLOCATED)));
        j->reserved = make_size(&v);
    }
    find_this_process(b);
    size_t self = j->this_process < 0 ? SIZE_MAX : (size_t)j->this_process;
    if (self != SIZE_MAX)
        j->process = m->others[self].bytes;
    j->others = add_others(m, self);
    if (j->non_pytorch.known == DRY_MESSAGE_ABSENT) {
        v = evaluate(b, PARTS(PLUS(PROCESS), MINUS(RESERVED)));
        j->non_pytorch = make_size(&v);
    }
}

/* --- consistency of the numbers ----------------------------------------------------------- */

static void
check(struct builder *b, enum dry_message_equation equation,
      const struct dryi_message_part *parts)
{
    struct dry_message_judgement *j = b->j;
    struct dry_message_check *c = j->checks + j->check_count;
    *c = (struct dry_message_check){.equation = equation};
    if (!add_up(b, parts, c->terms, &c->term_count, &c->remainder))
        return;
    c->result = c->remainder.high < 0   ? DRY_MESSAGE_FAILS
                : c->remainder.low >= 0 ? DRY_MESSAGE_HOLDS
                                        : DRY_MESSAGE_OPEN;
    j->check_count++;
}

static void
check_all(struct builder *b)
{
    bool has_others = b->j->others.known == DRY_MESSAGE_KNOWN;
    bool has_process = b->j->process.known == DRY_MESSAGE_KNOWN;
    if (has_process && has_others)
        check(b, DRY_MESSAGE_EQ_DEVICE,
              PARTS(PLUS(TOTAL), MINUS(FREE), MINUS(PROCESS), MINUS(OTHERS)));
    else if (has_process)
        check(b, DRY_MESSAGE_EQ_DEVICE, PARTS(PLUS(TOTAL), MINUS(FREE), MINUS(PROCESS)));
    else if (has_others)
        check(b, DRY_MESSAGE_EQ_DEVICE, PARTS(PLUS(TOTAL), MINUS(FREE), MINUS(OTHERS)));
    check(b, DRY_MESSAGE_EQ_PROCESS,
          PARTS(PLUS(PROCESS), MINUS(ALLOCATED), MINUS(UNALLOCATED)));
    check(b, DRY_MESSAGE_EQ_PYTORCH, PARTS(PLUS(TOTAL), MINUS(FREE), MINUS(RESERVED)));
    check(b, DRY_MESSAGE_EQ_POOLS, PARTS(PLUS(ALLOCATED), MINUS(PRIVATE_POOLS)));
    check(b, DRY_MESSAGE_EQ_FREE, PARTS(PLUS(TOTAL), MINUS(FREE)));
    if (b->m->reserved.known == DRY_MESSAGE_KNOWN)
        check(b, DRY_MESSAGE_EQ_ALLOCATED, PARTS(PLUS(RESERVED), MINUS(ALLOCATED)));
}

/* Add remarks that make the verdict doubtful. */
static void
add_doubts(struct builder *b)
{
    struct dry_message_judgement *j = b->j;
    bool fails = false;
    for (size_t i = 0; i < j->check_count; i++)
        fails |= j->checks[i].result == DRY_MESSAGE_FAILS;
    struct value spill = evaluate(b, PARTS(PLUS(ALLOCATED), MINUS(TOTAL)));
    if (spill.is_known && spill.sum.low > 0)
        add_proof(b, DRY_MESSAGE_REASON_HOST_SPILL, DRY_CAUSE_NONE,
                  PARTS(PLUS(ALLOCATED), MINUS(TOTAL)));
    else if (fails)
        remark(b, DRY_MESSAGE_REASON_CONTRADICTION);
    if (fails)
        j->is_certain = false;
    else if (!j->is_certain && j->cause != DRY_CAUSE_UNKNOWN &&
             b->m->form < DRY_MESSAGE_HOST)
        remark(b, DRY_MESSAGE_REASON_ROUNDED);
    if (j->this_process >= 0)
        remark(b, DRY_MESSAGE_REASON_THIS_IS_PROCESS);
}

/* --- rules, in order; true: decided ------------------------------------------------------- */

static bool
judge_form(struct builder *b)
{
    switch (b->m->form) {
    case DRY_MESSAGE_HUGE:
        add_proof(b, DRY_MESSAGE_REASON_HUGE, DRY_CAUSE_CAPACITY, NULL);
        decide(b, DRY_CAUSE_CAPACITY, true);
        return true;
    case DRY_MESSAGE_REJECTED:
        add_proof(b, DRY_MESSAGE_REASON_REJECTED, DRY_CAUSE_LIMIT, NULL);
        decide(b, DRY_CAUSE_LIMIT, true);
        return true;
    case DRY_MESSAGE_DRIVER:
        remark(b, DRY_MESSAGE_REASON_DRIVER);
        return true;
    case DRY_MESSAGE_SHORT:
    case DRY_MESSAGE_CLASSIC:
    case DRY_MESSAGE_MODERN:
    case DRY_MESSAGE_ASYNC:
    case DRY_MESSAGE_MPS:
    DRYI_MESSAGE_CASE_FOREIGN: /* see judge_foreign() */
        break;
    }
    return false;
}

/* Add a proof with the sentence of a row. */
static void
add_stated(struct builder *b, enum dry_message_reason reason, const char *text,
           enum dry_cause cause, const struct dryi_message_part *parts)
{
    enum dry_cause proved = cause == DRY_CAUSE_UNKNOWN ? DRY_CAUSE_NONE : cause;
    if (add_proof(b, reason, proved, parts) && text)
        b->j->proofs[b->j->proof_count - 1].text = text;
}

/* Judge by the first rule whose sum is above 0. */
static bool
judge_rules(struct builder *b, const struct dryi_message_kind *k)
{
    for (size_t i = 0; i < k->rule_count; i++) {
        const struct dryi_message_rule *rule = k->rules + i;
        struct value over = evaluate(b, rule->parts);
        if (!is_above(&over))
            continue;
        add_stated(b, rule->reason, rule->text, rule->cause, rule->parts);
        decide(b, rule->cause, over.sum.low > (int64_t)rule->margin);
        if (!b->j->is_certain)
            b->j->alternatives |= k->alternatives;
        return true;
    }
    return false;
}

/* Judge a foreign kind by its text, and by its rules if it has the numbers. */
static bool
judge_foreign(struct builder *b)
{
    const struct dryi_message_kind *k = dryi_message_find_kind(b->m);
    if (!k)
        return b->m->form >= DRY_MESSAGE_HOST;
    if (judge_rules(b, k))
        return true;
    add_stated(b, k->reason, k->text, k->cause, NULL);
    decide(b, k->cause, k->cause != DRY_CAUSE_UNKNOWN && k->alternatives == 0);
    b->j->alternatives |= k->alternatives;
    return true;
}

/*
 * Judge vLLM's estimate for CUDA graphs, which it takes off the KV cache. Below 0, it makes the cache
 * too large, and the device runs out. Above the weights, it may leave nothing that would be there.
 */
static void
judge_graphs(struct builder *b)
{
    static const char negative[] =
        "vLLM's estimate for CUDA graphs is below 0, which cannot be: the "
        "KV cache is too large by this much";
    const struct dryi_message_part *without = PARTS(PLUS(CACHE), PLUS(GRAPHS));
    struct value over = evaluate(b, PARTS(PLUS(GRAPHS), MINUS(WEIGHTS)));
    struct value left = evaluate(b, without);
    if (find_quantity(b, DRY_MESSAGE_GRAPHS).is_negative) {
        add_stated(b, DRY_MESSAGE_REASON_GRAPH_ESTIMATE, negative, DRY_CAUSE_UNKNOWN,
                   PARTS(MINUS(GRAPHS)));
    } else if (b->m->form == DRY_MESSAGE_KV_CACHE && over.is_known && over.sum.low > 0 &&
               left.is_known && left.sum.low > 0) {
        b->j->proof_count = 0;
        add_proof(b, DRY_MESSAGE_REASON_GRAPH_ESTIMATE, DRY_CAUSE_LIMIT, without);
        decide(b, DRY_CAUSE_LIMIT, true);
        b->j->alternatives = 0;
    }
}

/* Tell what lines before the message add. */
static void
judge_notes(struct builder *b)
{
    struct dry_message_size share = find_quantity(b, DRY_MESSAGE_HOST_SHARE).size;
    judge_graphs(b);
    if (b->m->backend == DRY_MESSAGE_BACKEND_HOST && share.known == DRY_MESSAGE_KNOWN &&
        share.bytes > HOST_FULL_PERCENT)
        remark(b, DRY_MESSAGE_REASON_HOST_FULL);
}

static bool
judge_request(struct builder *b)
{
    struct value over = evaluate(b, PARTS(PLUS(TRIED), MINUS(TOTAL)));
    if (!is_above(&over))
        return false;
    add_proof(b, DRY_MESSAGE_REASON_REQUEST_EXCEEDS_DEVICE, DRY_CAUSE_CAPACITY,
              PARTS(PLUS(TRIED), MINUS(TOTAL)));
    decide(b, DRY_CAUSE_CAPACITY, over.sum.low > 0);
    return true;
}

/* Judge MPS: its limit counts all that Metal holds for the process, and the text does not
   give the device's memory. */
static bool
judge_watermark(struct builder *b)
{
    if (b->m->form != DRY_MESSAGE_MPS)
        return false;
    const struct dryi_message_part *parts =
        PARTS(PLUS(RESERVED), PLUS(NON_PYTORCH), PLUS(TRIED), MINUS(ALLOWED));
    struct value over = evaluate(b, parts);
    if (over.is_known && over.sum.high > 0) {
        add_proof(b, DRY_MESSAGE_REASON_WATERMARK, DRY_CAUSE_LIMIT, parts);
        decide(b, DRY_CAUSE_LIMIT, over.sum.low > 0);
        return true;
    }
    remark(b, DRY_MESSAGE_REASON_CUT);
    return true;
}

static bool
judge_expandable_reserve(struct builder *b)
{
    const struct dryi_message_part *parts = PARTS(PLUS(TRIED), MINUS(EXPANDABLE_RESERVE));
    struct value over = evaluate(b, parts);
    if (!over.is_known || over.sum.high <= 0)
        return false;
    add_proof(b, DRY_MESSAGE_REASON_EXPANDABLE_RESERVE, DRY_CAUSE_LIMIT, parts);
    decide(b, DRY_CAUSE_LIMIT, true);
    return true;
}

/* Judge the limit: PyTorch itself refuses if reserved + tried > allowed. cudaMallocAsync compares
   allocated instead of reserved bytes. */
static bool
judge_limit(struct builder *b)
{
    bool is_async = b->m->form == DRY_MESSAGE_ASYNC;
    const struct dryi_message_part *by_reserved =
        PARTS(PLUS(RESERVED), PLUS(TRIED), MINUS(ALLOWED));
    const struct dryi_message_part *by_live =
        PARTS(PLUS(ALLOCATED), PLUS(TRIED), MINUS(ALLOWED));
    struct value over = evaluate(b, is_async ? by_live : by_reserved);
    struct value live = evaluate(b, by_live);
    struct value missing = evaluate(b, PARTS(PLUS(TRIED), MINUS(FREE)));
    struct value shortage =
        evaluate(b, PARTS(PLUS(TRIED), MINUS(UNALLOCATED), MINUS(FREE)));
    bool had_room = missing.is_known && missing.sum.high <= 0;
    if (!over.is_known || over.sum.high <= 0 || (over.sum.bytes <= 0 && !had_room))
        return false;
    add_proof(b, DRY_MESSAGE_REASON_LIMIT, DRY_CAUSE_LIMIT,
              is_async ? by_live : by_reserved);
    bool device_is_short = is_above(&shortage);
    bool is_alone = is_not_above(&missing) || !missing.is_known ||
                    (is_above(&live) && !device_is_short);
    if (!is_alone) {
        add_alternative(b, DRY_CAUSE_LIMIT); /* the device was full, too */
        return false;
    }
    if (is_above(&live) && !is_async)
        add_proof(b, DRY_MESSAGE_REASON_LIMIT_LIVE, DRY_CAUSE_LIMIT, by_live);
    if (!is_async && is_not_above(&live) && b->j->unallocated.bytes > 0) {
        add_proof(b, DRY_MESSAGE_REASON_LIMIT_PIECES, DRY_CAUSE_FRAGMENTATION,
                  PARTS(PLUS(ALLOWED), MINUS(ALLOCATED), MINUS(TRIED)));
        add_alternative(b, DRY_CAUSE_FRAGMENTATION);
    }
    if (had_room)
        add_proof(b, DRY_MESSAGE_REASON_REFUSED_THOUGH_FREE, DRY_CAUSE_LIMIT,
                  PARTS(PLUS(FREE), MINUS(TRIED)));
    decide(b, DRY_CAUSE_LIMIT, over.sum.low > 0 || had_room);
    return true;
}

/* Judge a refusal despite free memory, if no value within the rounding explains the refusal. */
static bool
judge_refusal(struct builder *b)
{
    struct value missing = evaluate(b, PARTS(PLUS(TRIED), MINUS(FREE)));
    if (!missing.is_known || missing.sum.high > 0)
        return false;
    add_proof(b, DRY_MESSAGE_REASON_REFUSED_THOUGH_FREE, DRY_CAUSE_UNKNOWN,
              PARTS(PLUS(FREE), MINUS(TRIED)));
    return true;
}

/* --- a shortage: who holds the memory ------------------------------------------------------ */

/* Add a proof against a holder of memory, if its bytes are at least the shortage. `parts` subtracts
   a context where one is needed. */
static bool
accuse(struct builder *b, enum dry_message_reason reason,
       const struct dryi_message_part *parts, struct value *left)
{
    *left = evaluate(b, parts);
    if (!left->is_known || left->sum.bytes < 0)
        return false;
    add_proof(b, reason, DRY_CAUSE_OTHER_MEMORY, parts);
    return true;
}

/*
 * Look for a holder of the missing bytes. Other processes can be stopped. This process's bytes
 * outside PyTorch can be freed except for a context. If the text lists no processes, memory that
 * is neither free nor PyTorch's has an unknown owner.
 */
static bool
accuse_others(struct builder *b, bool *is_certain)
{
    struct value left;
    if (accuse(b, DRY_MESSAGE_REASON_OTHER_PROCESSES,
               PARTS(PLUS(OTHERS), PLUS(UNALLOCATED), PLUS(FREE), MINUS(TRIED)), &left)) {
        *is_certain = left.sum.low >= 0;
        return true;
    }
    *is_certain = false;
    bool has_names = b->j->process.known == DRY_MESSAGE_KNOWN;
    if (has_names
            ? accuse(b, DRY_MESSAGE_REASON_NON_PYTORCH,
                     PARTS(PLUS(NON_PYTORCH), MINUS(CONTEXT), PLUS(UNALLOCATED),
                           PLUS(FREE), MINUS(TRIED)),
                     &left)
            : accuse(b, DRY_MESSAGE_REASON_NOT_PYTORCH,
                     PARTS(PLUS(TOTAL), MINUS(CONTEXT), MINUS(ALLOCATED), MINUS(TRIED)),
                     &left)) {
        add_alternative(b, DRY_CAUSE_CAPACITY);
        *is_certain = left.sum.low >= 0;
        return true;
    }
    return false;
}

static void
judge_shortage(struct builder *b, const struct value *shortage)
{
    const struct dryi_message_part *on_device =
        PARTS(PLUS(ALLOCATED), PLUS(TRIED), MINUS(TOTAL));
    struct value over = evaluate(b, on_device);
    bool is_certain = is_decided(shortage), others_certain = false;
    if (is_above(&over)) {
        add_proof(b, DRY_MESSAGE_REASON_LIVE_EXCEEDS_DEVICE, DRY_CAUSE_CAPACITY,
                  on_device);
        decide(b, DRY_CAUSE_CAPACITY, is_certain && over.sum.low > 0);
    } else if (accuse_others(b, &others_certain)) {
        decide(b, DRY_CAUSE_OTHER_MEMORY, is_certain && others_certain);
    } else {
        decide(b, DRY_CAUSE_CAPACITY, is_certain);
    }
    add_proof(b, DRY_MESSAGE_REASON_LIVE_EXCEEDS_REACH, b->j->cause,
              PARTS(PLUS(TRIED), MINUS(UNALLOCATED), MINUS(FREE)));
    const struct dryi_message_part *in_pools =
        PARTS(PLUS(PRIVATE_POOLS), PLUS(UNALLOCATED), PLUS(FREE), MINUS(TRIED));
    struct value pools = evaluate(b, in_pools);
    if (pools.is_known && pools.sum.bytes >= 0) {
        add_proof(b, DRY_MESSAGE_REASON_PRIVATE_POOLS, DRY_CAUSE_STRANDED, in_pools);
        add_alternative(b, DRY_CAUSE_STRANDED);
    }
    if (!is_certain)
        add_alternative(b, DRY_CAUSE_FRAGMENTATION);
}

/* --- no shortage: fragmentation ----------------------------------------------------------- */

static void
judge_pieces(struct builder *b, const struct value *shortage)
{
    const struct dryi_message_part *left =
        PARTS(PLUS(UNALLOCATED), PLUS(FREE), MINUS(TRIED));
    const struct dryi_message_part *second =
        PARTS(PLUS(UNALLOCATED), PLUS(FREE), MINUS(TRIED), MINUS(TRIED));
    struct value missing = evaluate(b, PARTS(PLUS(TRIED), MINUS(FREE)));
    add_proof(b, DRY_MESSAGE_REASON_SHORT, DRY_CAUSE_FRAGMENTATION,
              PARTS(PLUS(TRIED), MINUS(FREE)));
    add_proof(b, DRY_MESSAGE_REASON_PIECES, DRY_CAUSE_FRAGMENTATION, left);
    decide(b, DRY_CAUSE_FRAGMENTATION,
           shortage->sum.high <= 0 && is_above(&missing) && is_decided(&missing));
    if (shortage->sum.high > 0)
        add_alternative(b, DRY_CAUSE_CAPACITY);
    remark(b, DRY_MESSAGE_REASON_WHICH_PIECES);
    add_alternative(b, DRY_CAUSE_STRANDED);
    add_alternative(b, DRY_CAUSE_PENDING);
    const struct dry_message_size *tried = &b->m->tried;
    if (tried->low <= 2 * DRYI_MIB && tried->high >= 2 * DRYI_MIB)
        remark(b, DRY_MESSAGE_REASON_SMALL_POOL);
    struct value again = evaluate(b, second);
    if (again.is_known && again.sum.bytes < 0) {
        add_proof(b, DRY_MESSAGE_REASON_SECOND_REQUEST, DRY_CAUSE_CAPACITY, second);
        add_alternative(b, DRY_CAUSE_CAPACITY);
    }
}

/* Judge without the cached bytes: only live memory can be compared with the device. */
static void
judge_without_cache(struct builder *b)
{
    const struct dryi_message_part *on_device =
        PARTS(PLUS(ALLOCATED), PLUS(TRIED), MINUS(TOTAL));
    struct value over = evaluate(b, on_device);
    if (is_above(&over)) {
        add_proof(b, DRY_MESSAGE_REASON_LIVE_EXCEEDS_DEVICE, DRY_CAUSE_CAPACITY,
                  on_device);
        decide(b, DRY_CAUSE_CAPACITY, over.sum.low > 0);
        return;
    }
    add_proof(b, DRY_MESSAGE_REASON_SHORT, DRY_CAUSE_UNKNOWN,
              PARTS(PLUS(TRIED), MINUS(FREE)));
    struct value others = evaluate(b, PARTS(PLUS(OTHERS), PLUS(FREE), MINUS(TRIED)));
    if (others.is_known && others.sum.bytes >= 0)
        add_alternative(b, DRY_CAUSE_OTHER_MEMORY);
    if (b->m->form == DRY_MESSAGE_ASYNC && over.is_known) {
        remark(b, DRY_MESSAGE_REASON_CACHE_UNKNOWN);
        add_alternative(b, DRY_CAUSE_FRAGMENTATION);
        add_alternative(b, DRY_CAUSE_OTHER_MEMORY);
        return;
    }
    remark(b, DRY_MESSAGE_REASON_CUT);
}

static void
judge_cause(struct builder *b)
{
    if (judge_foreign(b) || judge_form(b) || judge_request(b) || judge_watermark(b) ||
        judge_expandable_reserve(b) || judge_limit(b) || judge_refusal(b))
        return;
    struct value shortage =
        evaluate(b, PARTS(PLUS(TRIED), MINUS(UNALLOCATED), MINUS(FREE)));
    if (!shortage.is_known)
        judge_without_cache(b);
    else if (shortage.sum.bytes > 0)
        judge_shortage(b, &shortage);
    else
        judge_pieces(b, &shortage);
}

/* Move the proof of the cause to the front; keep the order of the others. */
static void
put_deciding_proof_first(struct dry_message_judgement *j)
{
    size_t at = 0;
    while (at < j->proof_count && j->proofs[at].cause != j->cause)
        at++;
    if (at == 0 || at == j->proof_count)
        return;
    struct dry_message_proof deciding = j->proofs[at];
    memmove(j->proofs + 1, j->proofs, at * sizeof *j->proofs);
    j->proofs[0] = deciding;
}

enum dry_status
dry_message_judge(const struct dry_message *message,
                  struct dry_message_judgement *judgement)
{
    struct dry_message_judgement j = {
        .cause = DRY_CAUSE_UNKNOWN,
        .this_process = -1,
    };
    struct dry_message m = {0};
    enum dry_status status = dryi_sized_take(&m, sizeof m, message, NULL);
    if (status != DRY_OK)
        return status;
    struct builder b = {&m, &j};
    derive(&b);
    check_all(&b);
    judge_cause(&b);
    judge_notes(&b);
    put_deciding_proof_first(&j);
    add_doubts(&b);
    j.alternatives &= ~(1u << j.cause);
    dryi_message_lay_out_steps(&m, &j);
    return dryi_sized_give(judgement, &j, sizeof j);
}
