/* SPDX-License-Identifier: Apache-2.0 */
/* Chains, graphs and plans from files: what is read, and what is refused with the key's way. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/chain_json.h"
#include "plan/graph_json.h"
#include "plan/plan_file.h"
#include "plan/plan_report.h"
#include "support/failing_memory.h"

#define STAGE "{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30}"
#define CHAIN(stages) "{\"format\":\"ckpt-chain/1\",\"stages\":[" stages "]}"

static enum dry_status
read_chain(const char *text, struct chain_file *file, struct dry_error *err)
{
    return chain_json_read(text, strlen(text), NULL, file, err);
}

static void
assert_chain(const char *text, struct chain_file *file)
{
    struct dry_error err = {.text = ""};
    enum dry_status status = read_chain(text, file, &err);
    assert_string_equal(status == DRY_OK ? "" : err.text, "");
}

static void
assert_begins(const char *text, const char *begin)
{
    if (strncmp(text, begin, strlen(begin)) != 0)
        assert_string_equal(text, begin);
}

/* --- what is read ------------------------------------------------------------------------- */

static const char whole[] =
    "{\"format\":\"ckpt-chain/1\",\"name\":\"n\","
    "\"budget\":{\"device\":2000000,\"reserve\":1000000,\"fragmentation\":0.25},"
    "\"persistent\":{\"params\":100,\"grads\":{\"bytes\":50,\"alloc\":\"lazy\"},"
    "\"optimizer\":200,\"buffers\":3,\"step_transient\":7},"
    "\"input\":{\"bytes\":5,\"grad\":4},\"convention\":\"autograd\","
    "\"stages\":[{\"name\":\"a\",\"repeat\":3,\"fwd\":1.5,\"bwd\":2,\"out\":10,"
    "\"grad_out\":11,\"saved\":35,\"fwd_tmp\":8,\"bwd_tmp\":9,\"grads\":10,"
    "\"recomputable\":false,\"rng\":true,"
    "\"options\":[{\"id\":\"o\",\"saved\":20,\"recompute\":0.25,\"offload\":1,"
    "\"policy\":{\"aten.mm\":[0,2]}},"
    "{\"id\":\"p\",\"saved\":20,\"recompute\":0,\"fwd_tmp\":4,\"bwd_tmp\":6}]}],"
    "\"loss\":{\"fwd\":3,\"bwd\":4,\"saved\":6,\"tmp\":2}}";

static void
a_whole_file_becomes_a_chain(void **state)
{
    (void)state;
    struct chain_file f;
    assert_chain(whole, &f);
    assert_true(f.budget.is_given);
    assert_int_equal(f.budget.bytes, 750000);
    const struct dry_chain_frame *frame = dry_chain_get_frame(f.chain);
    assert_int_equal(frame->persistent_bytes, 100 + (50 - 30) + 200 + 3);
    assert_int_equal(frame->input_bytes, 5);
    assert_int_equal(frame->input_gradient_bytes, 4);
    assert_int_equal(frame->step_bytes, 7);
    assert_int_equal(dry_chain_get_count(f.chain), 4);
    const struct dry_stage *s = dry_chain_get_stage(f.chain, 0);
    assert_string_equal(s->name, "a");
    assert_int_equal(s->forward_ns, 1500);
    assert_int_equal(s->backward_ns, 2000);
    assert_int_equal(s->gradient_bytes, 11);
    assert_int_equal(s->forward_tmp_bytes, 8);
    assert_int_equal(s->backward_tmp_bytes, 9);
    assert_int_equal(s->grads_bytes, 10);
    assert_true(s->is_fixed);
    assert_int_equal(s->option_count, 2);
    assert_string_equal(s->options[0].name, "o");
    assert_int_equal(s->options[0].recompute_ns, 250);
    assert_int_equal(s->options[0].forward_tmp_bytes, 8); /* the stage's */
    assert_int_equal(s->options[0].backward_tmp_bytes, 9);
    assert_int_equal(s->options[0].offload_bytes, 1);
    assert_true(s->options[1].has_forward_tmp);
    assert_int_equal(s->options[1].forward_tmp_bytes, 4);
    assert_int_equal(s->options[1].backward_tmp_bytes, 6);
    s = dry_chain_get_stage(f.chain, 3);
    assert_string_equal(s->name, "loss");
    assert_int_equal(s->output_bytes, 0);
    assert_int_equal(s->gradient_bytes, 0);
    assert_int_equal(s->saved_bytes, 6);
    assert_int_equal(s->backward_tmp_bytes, 2);
    chain_file_finish(&f);
}

/* Of a repeated stage the first has another input than the others. */
static void
inputs_are_taken_out_and_outputs_put_in(void **state)
{
    (void)state;
    struct chain_file f;
    assert_chain(whole, &f);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->saved_bytes, 35 - 5 + 10);
    assert_int_equal(dry_chain_get_stage(f.chain, 1)->saved_bytes, 35 - 10 + 10);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->options[0].saved_bytes, 25);
    assert_int_equal(dry_chain_get_stage(f.chain, 2)->options[0].saved_bytes, 20);
    chain_file_finish(&f);
    assert_chain("{\"format\":\"ckpt-chain/1\",\"convention\":\"rotor\",\"stages\":"
                 "[{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30}]}",
                 &f);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->saved_bytes, 30);
    chain_file_finish(&f);
    assert_chain(CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30,"
                       "\"saved_has_input\":false,\"saved_has_output\":true}"),
                 &f);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->saved_bytes, 30);
    chain_file_finish(&f);
}

static void
storages_of_one_name_count_once(void **state)
{
    (void)state;
    struct chain_file f;
    assert_chain(CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,"
                       "\"storages\":[[\"b\",7],[\"a\",5],[\"b\",7],[\"c\",0]]}"),
                 &f);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->saved_bytes, 12 + 10);
    chain_file_finish(&f);
}

static void
static_gradients_are_there_all_the_time(void **state)
{
    (void)state;
    struct chain_file f;
    assert_chain("{\"format\":\"ckpt-chain/1\",\"persistent\":{\"grads\":{\"bytes\":50,"
                 "\"alloc\":\"static\"}},\"stages\":[{\"fwd\":1,\"bwd\":2,\"out\":1,"
                 "\"saved\":3,\"grads\":20}]}",
                 &f);
    assert_int_equal(dry_chain_get_frame(f.chain)->persistent_bytes, 50);
    assert_int_equal(dry_chain_get_stage(f.chain, 0)->grads_bytes, 0);
    chain_file_finish(&f);
}

/* --- operations --------------------------------------------------------------------------- */

/* Bytes, time and rules of a block, as its file has them; inputs are the bits of operations. */
static const struct {
    const char *json;
    uint64_t bytes, time_us;
    uint32_t inputs, group, tied_to;
    bool is_always, is_never, is_unread;
} block[] = {
    {"\"name\":\"mm\",\"bytes\":20,\"time\":5", 20, 5, 0, 0, 0, 0, 0, 0},
    {"\"name\":\"gelu\",\"bytes\":30,\"time\":1,\"inputs\":[0]", 30, 1, 1, 0, 0, 0, 0, 0},
    {"\"name\":\"mm\",\"bytes\":6,\"time\":9,\"inputs\":[1,0],\"unread\":true", 6, 9, 3,
     0, 0, 0, 0, 1},
    {"\"name\":\"add\",\"bytes\":8,\"time\":2,\"inputs\":[2],\"tied_to\":null", 8, 2, 4,
     0, 0, 0, 0, 0},
    {"\"name\":\"view\",\"bytes\":0,\"time\":0.5,\"inputs\":[3],\"keep\":\"never\"", 0, 0,
     8, 0, 0, 0, 1, 0},
    {"\"name\":\"rand\",\"bytes\":3,\"time\":1,\"keep\":\"always\"", 3, 1, 0, 0, 0, 1, 0,
     0},
    {"\"name\":\"mm\",\"bytes\":12,\"time\":4,\"inputs\":[3],\"group\":7", 12, 4, 8, 7, 0,
     0, 0, 0},
    {"\"name\":\"mm\",\"bytes\":12,\"time\":3,\"inputs\":[3],\"group\":7,\"keep\":"
     "\"free\"",
     12, 3, 8, 7, 0, 0, 0, 0},
    {"\"name\":\"relu_\",\"bytes\":1,\"time\":1,\"inputs\":[6],\"tied_to\":6", 1, 1, 64,
     0, 7, 0, 0, 0},
};
#define BLOCK_COUNT (sizeof block / sizeof *block)
#define BLOCK_READ 86 /* bytes that the backward reads */

static bool
is_allowed(uint32_t kept)
{
    for (size_t i = 0; i < BLOCK_COUNT; i++) {
        bool is_kept = kept >> i & 1;
        if ((block[i].is_always && !is_kept) || (block[i].is_never && is_kept) ||
            (block[i].tied_to && is_kept != (kept >> (block[i].tied_to - 1) & 1)))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (block[i].group && block[k].group == block[i].group &&
                is_kept != (kept >> k & 1))
                return false;
        }
    }
    return true;
}

/* Nanoseconds, by the rule as knapsack.h has it. */
static uint64_t
cost_of(uint32_t kept, uint64_t *kept_bytes, uint64_t *again_bytes)
{
    uint64_t time_ns = 0;
    uint32_t wanted = 0;
    *kept_bytes = *again_bytes = 0;
    for (size_t i = BLOCK_COUNT; i-- > 0;) {
        if (kept >> i & 1) {
            *kept_bytes += block[i].bytes;
        } else if (!block[i].is_unread || wanted >> i & 1) {
            wanted |= block[i].inputs;
            *again_bytes += block[i].bytes;
            time_ns += block[i].is_never ? 500 : block[i].time_us * 1000;
        }
    }
    return time_ns;
}

static uint64_t
least_within(uint64_t bytes)
{
    uint64_t least = UINT64_MAX, kept_bytes, again_bytes;
    for (uint32_t kept = 0; kept < 1u << BLOCK_COUNT; kept++) {
        uint64_t time_ns = cost_of(kept, &kept_bytes, &again_bytes);
        if (is_allowed(kept) && kept_bytes <= bytes && time_ns < least)
            least = time_ns;
    }
    return least;
}

static uint32_t
kept_by(const json_t *policy)
{
    static const char *const names[] = {"mm",   "gelu", "mm", "add",  "view",
                                        "rand", "mm",   "mm", "relu_"};
    static const int calls[] = {0, 0, 1, 0, 0, 0, 2, 3, 0};
    uint32_t kept = 0;
    for (size_t i = 0; i < BLOCK_COUNT; i++) {
        const json_t *list = json_object_get(policy, names[i]);
        for (size_t k = 0; k < json_array_size(list); k++)
            kept |= (uint32_t)(json_integer_value(json_array_get(list, k)) == calls[i])
                    << i;
    }
    return kept;
}

/* Of a stage before it and two of them; the block saves 14 bytes beside operations. */
static void
make_blocks(char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity,
                                   "{\"format\":\"ckpt-chain/1\",\"stages\":[" STAGE
                                   ",{\"repeat\":2,\"fwd\":30,"
                                   "\"bwd\":60,\"out\":20,\"saved\":120,\"fwd_tmp\":7,"
                                   "\"bwd_tmp\":5,\"options\":[{\"id\":\"o\","
                                   "\"saved\":90,\"recompute\":1}],\"operations\":[");
    for (size_t i = 0; i < BLOCK_COUNT; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s{%s}", i ? "," : "",
                                 block[i].json);
    snprintf(text + used, capacity - used, "]}]}");
}

static void
operations_become_the_best_options(void **state)
{
    (void)state;
    char text[4096];
    struct chain_file f;
    make_blocks(text, sizeof text);
    assert_chain(text, &f);
    for (size_t stage = 1; stage <= 2; stage++) {
        const struct dry_stage *s = dry_chain_get_stage(f.chain, stage);
        uint64_t kept_bytes, again_bytes;
        assert_true(s->option_count >= 4 && s->option_count <= 9);
        assert_string_equal(s->options[0].name, "o");
        assert_null(chain_find_policy(&f, stage, 1));
        for (size_t i = 1; i < s->option_count; i++) {
            const struct dry_stage_option *o = &s->options[i];
            json_t *policy = chain_find_policy(&f, stage, i + 1);
            uint32_t kept = kept_by(policy);
            assert_true(is_allowed(kept));
            assert_int_equal(o->recompute_ns, cost_of(kept, &kept_bytes, &again_bytes));
            assert_int_equal(o->recompute_ns, least_within(kept_bytes));
            assert_int_equal(o->saved_bytes, s->saved_bytes - BLOCK_READ + kept_bytes);
            assert_int_equal(o->backward_tmp_bytes, 5 + again_bytes);
            assert_int_equal(o->forward_tmp_bytes, 7 + BLOCK_READ - kept_bytes);
            assert_true(o->has_forward_tmp);
            assert_true(i == 1 || o->saved_bytes > o[-1].saved_bytes);
            assert_ptr_equal(policy, chain_find_policy(&f, 1, i + 1));
        }
        assert_string_equal(s->options[1].name, "keep:1");
        assert_int_equal(s->options[1].saved_bytes, s->saved_bytes - BLOCK_READ + 3);
        assert_null(chain_find_policy(&f, stage, s->option_count + 1));
    }
    assert_null(chain_find_policy(&f, 0, 1));
    assert_null(chain_find_policy(&f, 3, 1));
    chain_file_finish(&f);
}

/* --- what is refused ---------------------------------------------------------------------- */

struct refusal {
    const char *text;
    const char *says; /* how the message begins */
};

#define WITH(more) CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30," more "}")
#define OP(more) "{\"name\":\"a\",\"bytes\":1,\"time\":1" more "}"
#define ROOT(more) "{\"format\":\"ckpt-chain/1\",\"stages\":[" STAGE "]," more "}"

static const struct refusal wrong_chains[] = {
    {"", "there is nothing in it"},
    {"\xef\xbb\xbf \n", "there is nothing in it"},
    {"\xef\xbb\xbf[]", "an object is expected"},
    {"\xef\xbb", "line 1"},
    {"[]", "an object is expected"},
    {"{\"format\":\"ckpt-chain/1\",\"format\":\"ckpt-chain/1\"}", "line 1"},
    {"{\"format\":\"ckpt-chain/2\"}", "format: expected"},
    {"{\"format\":1}", "format: a text is expected, found 1"},
    {"{\"format\":null}", "format: a text is expected, found null"},
    {"{\"format\":[]}", "format: a text is expected, found a list"},
    {"{}", "format: expected \"ckpt-chain/1\" or \"ckpt-graph/1\", found nothing"},
    {"{\"format\":\"ckpt-plan/1\"}",
     "format: expected \"ckpt-chain/1\" or \"ckpt-graph/1\", found \"ckpt-plan/1\": that "
     "is for --judge"},
    {"{\"format\":\"a\\u0000b\"}", "format: line 1, column 20: a text has \\u0000 in it"},
    {"{\"format\":NaN}",
     "format: line 1, column 13: invalid token near 'NaN'; JSON has "},
    {"{\"stages\":[{},{\"na:,[\\\"me\":[1]},{\"fwd\":1e999",
     "stages[2].fwd: line 1, column 44: real number overflow"},
    {"[1,[2,{\"a\":3},", "[1][2]: line 1"},
    {"{\"a\":[[[[[[[[[[[[[[[[[[x", "line 1, column 24: invalid token near 'x'"},
    {"{\"a", "line 1, column 3: premature end of input near '\"a'"},
    {"{\"format\":\"ckpt-chain/1\"}", "stages: is missing"},
    {CHAIN(""), "stages: there is no stage"},
    {"{\"format\":\"ckpt-chain/1\",\"stages\":{}}", "stages: a list is expected"},
    {CHAIN("3"), "stages[0]: an object is expected"},
    {CHAIN("{}"), "stages[0].fwd: is missing"},
    {WITH("\"fwdtmp\":1"),
     "stages[0]: there is no key 'fwdtmp'; did you mean 'fwd_tmp'?"},
    {WITH("\"\\u001b[2J\":1"), "stages[0]: there is no key '?[2J'"},
    {CHAIN(STAGE ",{\"fwd\":-1,\"bwd\":2,\"out\":10,\"saved\":30}"),
     "stages[1].fwd: -1 is negative"},
    {CHAIN("{\"fwd\":NaN,\"bwd\":2,\"out\":10,\"saved\":30}"), "stages[0].fwd: line 1"},
    {CHAIN("{\"fwd\":1e400,\"bwd\":2,\"out\":10,\"saved\":30}"), "stages[0].fwd: line 1"},
    {CHAIN("{\"fwd\":1e16,\"bwd\":2,\"out\":10,\"saved\":30}"),
     "stages[0].fwd: 1e+16 us are more than 63 bits"},
    {CHAIN("{\"fwd\":9223372036854775807,\"bwd\":2,\"out\":10,\"saved\":30}"),
     "stages[0].fwd: 9.22337e+18 us are more than 63 bits"},
    {CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10.5,\"saved\":30}"),
     "stages[0].out: 10.5 is no whole number"},
    {CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":9223372036854775808}"),
     "stages[0].saved: line 1"},
    {CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":9223372036854775807}"),
     "stages[0].saved: with the output it is beyond 63 bits"},
    {CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":\"10\",\"saved\":30}"),
     "stages[0].out: a whole number is expected, found the text \"10\""},
    {CHAIN(STAGE ",{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":9}"),
     "stages[1].saved: 9 is less than its input's 10"},
    {CHAIN("{\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":9,\"saved_has_output\":true}"),
     "stages[0].saved: 9 is less than its output's 10"},
    {WITH("\"repeat\":0"), "stages[0].repeat: 0 is no number"},
    {WITH("\"repeat\":1000000"), "stages[0].repeat: more than the 100000 stages"},
    {WITH("\"repeat\":99999") "x", "line 1"},
    {WITH("\"recomputable\":1"), "stages[0].recomputable: true or false"},
    {WITH("\"options\":[{\"saved\":20,\"recompute\":1}]"),
     "stages[0].options[0].id: a name is needed"},
    {WITH("\"options\":[{\"id\":\"a\",\"saved\":-20,\"recompute\":1}]"),
     "stages[0].options[0].saved: -20 is negative"},
    {WITH("\"options\":[{\"id\":\"a\",\"saved\":20,\"recompute\":1},"
          "{\"id\":\"a\",\"saved\":20,\"recompute\":1}]"),
     "stages[0].options[1].id: two options"},
    {WITH("\"options\":[{\"id\":\"a\",\"saved\":20,\"recompute\":1,"
          "\"policy\":{\"mm\":[-1]}}]"),
     "stages[0].options[0].policy.mm[0]: -1 is negative"},
    {WITH("\"storages\":[[\"a\",1]]"), "stages[0].saved: the storages are 1 bytes"},
    {WITH("\"storages\":[[\"a\"]]"), "stages[0].storages[0]: a pair"},
    {WITH("\"storages\":[[\"a\",1],[\"a\",2]]"), "stages[0].storages: a storage is"},
    {WITH("\"operations\":{}"), "stages[0].operations: a list is expected"},
    {WITH("\"operations\":[3]"), "stages[0].operations[0]: an object is expected"},
    {WITH("\"operations\":[{\"bytes\":1,\"time\":1}]"),
     "stages[0].operations[0].name: a name is needed"},
    {WITH("\"operations\":[{\"name\":\"a\",\"time\":1}]"),
     "stages[0].operations[0].bytes: is missing"},
    {WITH("\"operations\":[{\"name\":\"a\",\"bytes\":1}]"),
     "stages[0].operations[0].time: is missing"},
    {WITH("\"operations\":[{\"colour\":\"a\"}]"),
     "stages[0].operations[0]: there is no key 'colour'"},
    {WITH("\"operations\":[" OP("") "," OP(",\"inputs\":[0,1]") "]"),
     "stages[0].operations[1].inputs[1]: 1 is no operation before"},
    {WITH("\"operations\":[" OP("") "," OP(",\"tied_to\":1") "]"),
     "stages[0].operations[1].tied_to: 1 is no operation before"},
    {WITH("\"operations\":[" OP(",\"tied_to\":true") "]"),
     "stages[0].operations[0].tied_to: a whole number"},
    {WITH("\"operations\":[" OP(",\"group\":4294967296") "]"),
     "stages[0].operations[0].group: more than 4294967295"},
    {WITH("\"operations\":[" OP(",\"keep\":\"some\"") "]"),
     "stages[0].operations[0].keep: expected \"always\""},
    {WITH("\"operations\":[" OP(",\"unread\":0") "]"),
     "stages[0].operations[0].unread: true or false"},
    {WITH("\"operations\":[" OP(",\"group\":1,\"keep\":\"always\"") "," OP(
         ",\"group\":1,\"keep\":\"never\"") "]"),
     "stages[0].operations: "},
    {WITH("\"operations\":[{\"name\":\"a\",\"bytes\":31,\"time\":1}]"),
     "stages[0].operations: 31 bytes that the backward reads, and the stage saves 30"},
    {WITH("\"repeat\":2,\"operations\":[{\"name\":\"a\",\"bytes\":21,\"time\":1}]"),
     "stages[0].operations: 21 bytes that the backward reads, and the stage saves 20"},
    {WITH("\"operations\":[{\"name\":\"a\",\"bytes\":9223372036854775807,\"time\":1},"
          "{\"name\":\"a\",\"bytes\":1,\"time\":1}]"),
     "stages[0].operations[1]: the sum of bytes is beyond 63 bits"},
    {WITH("\"options\":[3,3],\"operations\":[" OP("") "]"),
     "stages[0].options[0]: an object is expected"},
    {WITH("\"options\":[{\"id\":\"keep:1\",\"saved\":20,\"recompute\":1}],"
          "\"operations\":[" OP("") "]"),
     "stages[0].options: names with keep:"},
    {ROOT("\"convention\":\"tf\""), "convention: expected \"rotor\" or \"autograd\""},
    {ROOT("\"input\":{}"), "input.bytes: is missing"},
    {ROOT("\"budget\":{\"device\":1,\"reserve\":2}"), "budget: the reserve is more"},
    {ROOT("\"budget\":{\"device\":1,\"fragmentation\":1}"),
     "budget.fragmentation: 1 is not below 1"},
    {ROOT("\"persistent\":{\"params\":9223372036854775807,\"buffers\":1}"),
     "persistent: the sum is beyond 63 bits"},
    {ROOT("\"persistent\":{\"grads\":{\"bytes\":1,\"alloc\":\"never\"}}"),
     "persistent.grads.alloc: expected"},
    {ROOT("\"persistent\":{\"grads\":{\"bytes\":1}},\"loss\":{\"fwd\":0,\"bwd\":0,"
          "\"grads\":2}"),
     "persistent.grads: the stages' grads are more"},
    {ROOT("\"loss\":{\"fwd\":0,\"bwd\":0,\"out\":1}"), "loss: there is no key 'out'"},
};

static void
wrong_chains_are_refused_with_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_chains / sizeof *wrong_chains; i++) {
        struct chain_file f;
        struct dry_error err = {.text = ""};
        assert_int_equal(read_chain(wrong_chains[i].text, &f, &err), DRY_ERR_FORMAT);
        assert_begins(err.text, wrong_chains[i].says);
    }
}

static char *
put(char *at, const char *text)
{
    memcpy(at, text, strlen(text) + 1);
    return at + strlen(text);
}

/* Stages of so many operations, of which all but the first have inputs. */
static void
assert_too_many(size_t stages, size_t each, const char *inputs, const char *says)
{
    size_t text_bytes = stages * (100 + each * (50 + strlen(inputs))) + 100;
    char *text = malloc(text_bytes), *at = text;
    struct chain_file f;
    struct dry_error err = {.text = ""};
    assert_non_null(text);
    at = put(at, "{\"format\":\"ckpt-chain/1\",\"stages\":[");
    for (size_t i = 0; i < stages; i++) {
        at = put(at, i ? "," : "");
        at = put(at, "{\"fwd\":1,\"bwd\":2,\"out\":0,\"saved\":0,\"operations\":[");
        for (size_t k = 0; k < each; k++) {
            at = put(at, k ? "," : "");
            at = put(at, "{\"name\":\"a\",\"bytes\":0,\"time\":0");
            at = put(at, k ? inputs : "");
            at = put(at, "}");
        }
        at = put(at, "]}");
    }
    at = put(at, "]}");
    assert_true((size_t)(at - text) < text_bytes);
    assert_int_equal(chain_json_read(text, (size_t)(at - text), NULL, &f, &err),
                     DRY_ERR_FORMAT);
    assert_begins(err.text, says);
    free(text);
}

static void
too_many_operations_are_refused(void **state)
{
    (void)state;
    assert_too_many(1, 1025, "", "stages[0].operations: 1025 operations, more than 1024");
    assert_too_many(17, 1000, "", "stages[16].operations: more than 16384");
    assert_too_many(70, 101, ",\"inputs\":[0,0,0,0,0,0,0,0,0,0]",
                    "stages[65].operations[54].inputs: more than 65536");
}

static void
sums_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    struct chain_file f;
    struct dry_error err;
    assert_int_equal(read_chain(CHAIN("{\"repeat\":3,\"fwd\":1,\"bwd\":2,\"out\":0,"
                                      "\"saved\":4611686018427387904}"),
                                &f, &err),
                     DRY_ERR_LIMIT);
    assert_int_equal(read_chain(CHAIN("{\"repeat\":3,\"fwd\":4e15,\"bwd\":2,\"out\":0,"
                                      "\"saved\":1}"),
                                &f, &err),
                     DRY_ERR_LIMIT);
}

/* Listed one by one; their number is enough, they are not even looked at. */
static void
a_million_stages_are_refused(void **state)
{
    (void)state;
    static const char head[] = "{\"format\":\"ckpt-chain/1\",\"stages\":[0";
    size_t count = 999999, used = sizeof head - 1;
    char *text = malloc(used + 2 * count + 3);
    struct chain_file f;
    struct dry_error err = {.text = ""};
    assert_non_null(text);
    memcpy(text, head, used);
    for (size_t i = 0; i < count; i++, used += 2)
        memcpy(text + used, ",0", 3);
    memcpy(text + used, "]}", 3);
    assert_int_equal(chain_json_read(text, used + 2, NULL, &f, &err), DRY_ERR_FORMAT);
    assert_begins(err.text, "stages: 1000000, more than the 100000");
    free(text);
}

static void
refuse_each_request(const char *text)
{
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct chain_file f;
        struct dry_error err;
        struct dry_memory memory = failing_memory_init(&fm, n);
        enum dry_status status = chain_json_read(text, strlen(text), &memory, &f, &err);
        if (status == DRY_OK)
            chain_file_finish(&f);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

static void
every_failed_request_for_memory_comes_back(void **state)
{
    (void)state;
    char text[4096];
    refuse_each_request(whole);
    make_blocks(text, sizeof text);
    refuse_each_request(text);
}

/* --- plans -------------------------------------------------------------------------------- */

#define PLAN(items) "{\"format\":\"ckpt-plan/1\",\"items\":[" items "]}"

static const char ten[] = "{\"format\":\"ckpt-chain/1\",\"stages\":["
                          "{\"repeat\":5,\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30,"
                          "\"options\":[{\"id\":\"x\",\"saved\":20,\"recompute\":1},"
                          "{\"id\":\"y\",\"saved\":15,\"recompute\":2}]},"
                          "{\"repeat\":5,\"fwd\":1,\"bwd\":2,\"out\":10,\"saved\":30,"
                          "\"options\":[{\"id\":\"y\",\"saved\":15,\"recompute\":2}]}]}";

static void
plans_become_items(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\":\"ckpt-plan/1\",\"input_hash\":\"00000000000000ff\",\"items\":["
        "{\"save\":[0,1]},{\"opt\":[2,6],\"id\":\"y\"},"
        "{\"ckpt\":[7,9],\"inner\":[{\"ckpt\":[7,8],\"inner\":[{\"save\":[7,8]}]},"
        "{\"save\":[9,9]}]}]}";
    struct chain_file f;
    struct plan_file p;
    struct dry_error err;
    assert_chain(ten, &f);
    assert_int_equal(plan_file_read(text, sizeof text - 1, &f, &p, &err), DRY_OK);
    static const struct dry_plan_item expected[] = {
        {DRY_PLAN_SAVE, 0, 1, 0, 0},       {DRY_PLAN_SAVE, 2, 4, 2, 0},
        {DRY_PLAN_SAVE, 5, 6, 1, 0},       {DRY_PLAN_CHECKPOINT, 7, 9, 0, 3},
        {DRY_PLAN_CHECKPOINT, 7, 8, 0, 1}, {DRY_PLAN_SAVE, 7, 8, 0, 0},
        {DRY_PLAN_SAVE, 9, 9, 0, 0},
    };
    assert_int_equal(p.count, sizeof expected / sizeof *expected);
    assert_memory_equal(p.items, expected, sizeof expected);
    assert_true(p.has_input_hash);
    assert_int_equal(p.input_hash, 255);
    assert_false(p.has_plan_hash);
    plan_file_finish(&p);
    chain_file_finish(&f);
}

static const struct refusal wrong_plans[] = {
    {"{}", "format: expected"},
    {"{\"format\":\"ckpt-plan/1\"}", "items: a list"},
    {"{\"format\":\"ckpt-plan/1\",\"items\":[],\"x\":1}", "there is no key 'x'"},
    {PLAN(""), "items: stage 0 is not covered"},
    {PLAN("{\"save\":[0,8]}"), "items: stage 9 is not covered"},
    {PLAN("{\"save\":[0,10]}"), "items[0].save[1]: expected a stage from 0 to 9"},
    {PLAN("{\"save\":[0,9]},{\"save\":[10,10]}"), "items[1].save: stage 9 was the last"},
    {PLAN("{\"save\":[0,3]},{\"save\":[3,9]}"), "items[1].save[0]: stage 4 is the next"},
    {PLAN("{\"save\":[0,3]},{\"ckpt\":[5,9]}"), "items[1].ckpt[0]: stage 4 is the next"},
    {PLAN("{\"save\":[-1,9]}"), "items[0].save[0]: -1 is negative"},
    {PLAN("{\"save\":[0,4294967295]}"), "items[0].save[1]: expected a stage"},
    {PLAN("{\"save\":[0]}"), "items[0].save: a pair"},
    {PLAN("{\"save\":[0,9],\"ckpt\":[0,9]}"), "items[0]: one of save, ckpt and opt"},
    {PLAN("{\"save\":[0,9],\"inner\":[]}"), "items[0]: only a ckpt has an inner"},
    {PLAN("{\"ckpt\":[0,9],\"inner\":[]}"), "items[0].inner: nothing is in it"},
    {PLAN("{\"ckpt\":[0,9],\"inner\":[{\"save\":[0,8]}]}"),
     "items[0].inner: stage 9 is not covered"},
    {PLAN("{\"ckpt\":[0,4],\"inner\":[{\"save\":[0,5]}]}"),
     "items[0].inner[0].save[1]: expected a stage from 0 to 4"},
    {PLAN("{\"opt\":[0,9],\"id\":\"x\"}"), "items[0].id: stage 5 has no option"},
    {PLAN("{\"save\":[0,9],\"policy\":{}}"), "items[0]: only an opt has a policy"},
    {PLAN("{\"opt\":[0,9],\"id\":\"y\",\"policy\":[]}"),
     "items[0].policy: an object is expected"},
    {PLAN("{\"opt\":[0,9],\"id\":\"y\",\"policy\":{\"mm\":[-1]}}"),
     "items[0].policy.mm[0]: -1 is negative"},
    {PLAN("{\"opt\":[0,9]}"), "items[0].id: the option's name is missing"},
    {"{\"format\":\"ckpt-plan/1\",\"items\":[],\"plan_hash\":\"0x0\"}",
     "plan_hash: 16 hex digits"},
};

static void
wrong_plans_are_refused_with_the_way(void **state)
{
    (void)state;
    struct chain_file f;
    assert_chain(ten, &f);
    for (size_t i = 0; i < sizeof wrong_plans / sizeof *wrong_plans; i++) {
        struct plan_file p;
        struct dry_error err = {.text = ""};
        const char *text = wrong_plans[i].text;
        assert_int_equal(plan_file_read(text, strlen(text), &f, &p, &err),
                         DRY_ERR_FORMAT);
        assert_begins(err.text, wrong_plans[i].says);
    }
    chain_file_finish(&f);
}

static enum dry_status
read_kept(const struct chain_file *f, const char *first, const char *second,
          struct dry_error *err)
{
    struct plan_file p;
    char text[512];
    snprintf(text, sizeof text,
             PLAN("{\"save\":[0,0]},{\"opt\":[1,1],\"id\":\"o\"%s},"
                  "{\"opt\":[2,2],\"id\":\"keep:1\"%s}"),
             first, second);
    enum dry_status status = plan_file_read(text, strlen(text), f, &p, err);
    if (status == DRY_OK)
        plan_file_finish(&p);
    return status;
}

/* Where the chain made the option it knows what is kept; of others it does not. */
static void
a_plan_keeps_what_the_option_keeps(void **state)
{
    (void)state;
    char text[4096];
    struct chain_file f;
    struct dry_error err = {.text = ""};
    make_blocks(text, sizeof text);
    assert_chain(text, &f);
    assert_int_equal(read_kept(&f, "", "", &err), DRY_OK);
    assert_int_equal(
        read_kept(&f, ",\"policy\":{\"mm\":[1]}", ",\"policy\":{\"rand\":[0]}", &err),
        DRY_OK);
    assert_int_equal(read_kept(&f, "", ",\"policy\":{\"mm\":[0],\"rand\":[0]}", &err),
                     DRY_ERR_FORMAT);
    assert_begins(err.text, "items[2].policy: not the operations");
    chain_file_finish(&f);
}

/* Ranges of one stage in each other, so many levels deep. */
static char *
make_deep(size_t depth)
{
    static const char open[] = "{\"ckpt\":[0,9],\"inner\":[";
    static const char head[] = "{\"format\":\"ckpt-plan/1\",\"items\":[";
    static const char leaf[] = "{\"save\":[0,9]}";
    char *text = malloc(sizeof head + depth * (sizeof open + 2) + sizeof leaf + 3);
    assert_non_null(text);
    char *at = text;
    memcpy(at, head, sizeof head - 1);
    at += sizeof head - 1;
    for (size_t i = 0; i < depth; i++, at += sizeof open - 1)
        memcpy(at, open, sizeof open - 1);
    memcpy(at, leaf, sizeof leaf - 1);
    at += sizeof leaf - 1;
    for (size_t i = 0; i < depth; i++, at += 2)
        memcpy(at, "]}", 2);
    memcpy(at, "]}", 3);
    return text;
}

static void
depth_has_an_end_and_what_is_written_is_read(void **state)
{
    (void)state;
    struct chain_file f;
    struct plan_file p, again;
    struct dry_error err;
    assert_chain(ten, &f);
    char *text = make_deep(PLAN_DEPTH_MAX);
    assert_int_equal(plan_file_read(text, strlen(text), &f, &p, &err), DRY_ERR_FORMAT);
    free(text);
    text = make_deep(PLAN_DEPTH_MAX - 1);
    assert_int_equal(plan_file_read(text, strlen(text), &f, &p, &err), DRY_OK);
    assert_int_equal(p.count, PLAN_DEPTH_MAX);
    free(text);
    struct plan_report report = {.file = "f",
                                 .input = &f,
                                 .judged = &p,
                                 .items = p.items,
                                 .item_count = p.count,
                                 .summary.budget_bytes = UINT64_MAX};
    json_t *root = plan_json_make(&report, &err);
    assert_non_null(root);
    text = json_dumps(root, JSON_COMPACT);
    assert_non_null(text);
    assert_int_equal(plan_file_read(text, strlen(text), &f, &again, &err), DRY_OK);
    assert_int_equal(again.count, p.count);
    assert_memory_equal(again.items, p.items, p.count * sizeof *p.items);
    free(text);
    json_decref(root);
    plan_file_finish(&again);
    plan_file_finish(&p);
    chain_file_finish(&f);
}

/* --- graphs ------------------------------------------------------------------------------- */

static enum dry_status
read_graph(const char *text, struct graph_file *file, struct dry_error *err)
{
    json_t *tree;
    enum dry_status status = json_in_parse(text, strlen(text), &tree, err);
    if (status != DRY_OK)
        return status;
    status = graph_json_read(tree, NULL, file, err);
    json_decref(tree);
    return status;
}

#define NODES                                                                            \
    "{\"name\":\"a\",\"cost\":1.5,\"bytes\":10,\"tmp\":2,\"fixed\":true},"               \
    "{\"cost\":0,\"alias_of\":0,\"output\":true},{\"cost\":3,\"bytes\":7}"
#define GRAPH(more) "{\"format\":\"ckpt-graph/1\",\"nodes\":[" NODES "]" more "}"

/* What reads a view is given its base; an output that is a view makes its base one. */
static void
views_hold_their_bases(void **state)
{
    (void)state;
    struct graph_file f = {0};
    struct dry_error err;
    struct dry_graph_cost cost;
    static const uint32_t runs[] = {0, 1, 2}, early[] = {0, 1, 2, 1};
    assert_int_equal(
        read_graph(GRAPH(",\"always\":5,\"edges\":[[1,2]],\"order\":[0,1,2]"), &f, &err),
        DRY_OK);
    assert_int_equal(f.always_bytes, 5);
    assert_int_equal(dry_graph_get_count(f.graph), 3);
    const struct dry_graph_node *node = dry_graph_get_node(f.graph, 0);
    assert_string_equal(node->name, "a");
    assert_int_equal(node->time_ns, 1500);
    assert_int_equal(node->tmp_bytes, 2);
    assert_true(node->is_fixed && node->is_output);
    assert_int_equal(dry_graph_evaluate(f.graph, runs, 3, NULL, &cost, &err), DRY_OK);
    assert_int_equal(cost.peak_bytes, 17);
    assert_int_equal(dry_graph_evaluate(f.graph, early, 4, NULL, &cost, &err), DRY_OK);
    assert_int_equal(cost.rerun_count, 1);
    graph_file_finish(&f);
}

static const struct refusal wrong_graphs[] = {
    {"{\"format\":\"ckpt-graph/1\"}", "nodes: there is no node"},
    {GRAPH(",\"edge\":[]"), "there is no key 'edge'; did you mean 'edges'?"},
    {GRAPH(",\"edges\":[[0,3]]"), "edges[0][1]: there is no node 3"},
    {GRAPH(",\"edges\":[[0,1],[2]]"), "edges[1]: a pair"},
    {GRAPH(",\"order\":[0,1]"), "order: 2 nodes, not the graph's 3"},
    {GRAPH(",\"order\":[0,1,9]"), "order[2]: there is no node 9"},
    {GRAPH(",\"always\":-1"), "always: -1 is negative"},
    {"{\"format\":\"ckpt-graph/1\",\"nodes\":[{\"cost\":1,\"alias_of\":0}]}",
     "nodes[0].alias_of: 0 is no node before this one"},
    {"{\"format\":\"ckpt-graph/1\",\"nodes\":[{\"cost\":1},{\"cost\":1,\"bytes\":2,"
     "\"alias_of\":0}]}",
     "nodes[1].bytes: a view has no bytes"},
};

static void
wrong_graphs_are_refused_with_the_way(void **state)
{
    (void)state;
    static const char *const contradictions[] = {
        GRAPH(",\"edges\":[[0,2],[2,0]]"), GRAPH(",\"order\":[0,0,1]"),
        GRAPH(",\"order\":[1,0,2]"), GRAPH(",\"edges\":[[1,1]]")};
    for (size_t i = 0; i < sizeof wrong_graphs / sizeof *wrong_graphs; i++) {
        struct graph_file f;
        struct dry_error err = {.text = ""};
        assert_int_equal(read_graph(wrong_graphs[i].text, &f, &err), DRY_ERR_FORMAT);
        assert_begins(err.text, wrong_graphs[i].says);
    }
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        struct graph_file f;
        struct dry_error err = {.text = ""};
        assert_int_equal(read_graph(contradictions[i], &f, &err), DRY_ERR_FORMAT);
        assert_true(err.text[0] != '\0');
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_becomes_a_chain),
        cmocka_unit_test(inputs_are_taken_out_and_outputs_put_in),
        cmocka_unit_test(storages_of_one_name_count_once),
        cmocka_unit_test(static_gradients_are_there_all_the_time),
        cmocka_unit_test(operations_become_the_best_options),
        cmocka_unit_test(wrong_chains_are_refused_with_the_way),
        cmocka_unit_test(sums_beyond_63_bits_are_refused),
        cmocka_unit_test(too_many_operations_are_refused),
        cmocka_unit_test(a_million_stages_are_refused),
        cmocka_unit_test(every_failed_request_for_memory_comes_back),
        cmocka_unit_test(plans_become_items),
        cmocka_unit_test(wrong_plans_are_refused_with_the_way),
        cmocka_unit_test(a_plan_keeps_what_the_option_keeps),
        cmocka_unit_test(depth_has_an_end_and_what_is_written_is_read),
        cmocka_unit_test(views_hold_their_bases),
        cmocka_unit_test(wrong_graphs_are_refused_with_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
