/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as public knowledge, and above all what does not. */
#include "support/cmocka.h"

#include <string.h>

#include "trace/anonymize/opcode_run.h"
#include "trace/anonymize/public_text.h"
#include "trace/anonymize/word_set.h"

static bool
cpp(const char *name)
{
    return dryi_public_cpp(name, strlen(name));
}

static void
cpp_names_of_public_namespaces_are_public(void **state)
{
    (void)state;
    assert_true(cpp("at::native::empty_cuda(c10::ArrayRef<long>, bool)"));
    assert_true(cpp("void at::native::gpu_kernel<4ul, float>(at::TensorIteratorBase&)"));
    assert_true(cpp("at::(anonymous namespace)::wrapper_CUDA_bmm(at::Tensor const&)"));
    assert_true(cpp("std::_Function_handler<void (), torch::autograd::F>::_M_invoke()"));
    assert_true(
        cpp("torch::autograd::Engine::run()::{lambda(int)#1}::operator()() const"));
    assert_true(cpp("c10::Storage::~Storage() [clone .isra.0]"));
    assert_true(cpp("_object* torch::X<&torch::autograd::THPVariable_ge>(_object*)"));
}

static void
one_foreign_name_hides_the_whole(void **state)
{
    (void)state;
    assert_false(cpp("acme::train(at::Tensor)"));
    assert_false(cpp("at::native::gpu_kernel<AcmeKernel>(at::Tensor)"));
    assert_false(cpp("std::vector<acme::Layer>::push_back(acme::Layer const&)"));
    assert_false(cpp("(anonymous namespace)::acme(at::Tensor)"));
    assert_false(cpp("at::Tensor acme(at::Tensor)"));
    assert_false(cpp("::acme"));
    assert_false(cpp("int::acme"));
    assert_false(cpp("at::f(int) acme::g()"));
    assert_false(cpp("at:: acme"));
    assert_false(cpp("at::acm\xc3\xa9 \xe2\x82\xac"));
    assert_false(cpp("at::f\n"));
    assert_false(cpp("at::f acme"));
    assert_false(cpp("acme"));
    assert_false(cpp("attention::at::f"));
}

static size_t
tail(const char *path)
{
    return dryi_public_tail(path, strlen(path));
}

static void
only_an_installed_torch_is_public(void **state)
{
    (void)state;
    static const char *const others[] = {
        "/home/ada/torch/secret.py",        "/home/ada/torch/lib/site-packages/acme/x.py",
        "/x/site-packages/torchacme/x.py",  "/x/site-packages/acme/torch/x.py",
        "/x/mysite-packages/torch/x.py",    "/x/site-packages/torch/../acme/x.py",
        "/x/site-packages/torch/a b.py",    "/x/site-packages/torch/x",
        "/x/site-packages/torch/",          "/x/site-packages/torch",
        "/x/site-packages/torch/acme/x.py", "/x/site-packages/torch/acme.py",
        "site-packages/torch/x.py",         "",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(tail(others[i]), strlen(others[i]));
    assert_int_equal(tail("/v/site-packages/torch/nn/m.py"), strlen("/v/site-packages/"));
    assert_int_equal(tail("/dist-packages/torch/functional.py"),
                     strlen("/dist-packages/"));
    assert_int_equal(tail("C:\\v\\site-packages\\torch\\nn\\m.py"),
                     strlen("C:\\v\\site-packages\\"));
}

static void
settings_are_public_word_by_word(void **state)
{
    (void)state;
    static const char *const known[] = {"expandable_segments",
                                        "True",
                                        "512",
                                        "0.8",
                                        "40GiB",
                                        "large_segment_size_mb",
                                        "roundup_power2_divisions",
                                        "cudaMallocAsync"};
    static const char *const foreign[] = {
        "acme", "512acme", "true!", "", "123456789012345678901", "1.2.3xyz"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(dryi_public_setting(known[i], strlen(known[i])));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        assert_false(dryi_public_setting(foreign[i], strlen(foreign[i])));
}

static void
annotations_of_torch_are_public(void **state)
{
    (void)state;
    assert_true(dryi_public_annotation("ProfilerStep#12", 15));
    assert_false(dryi_public_annotation("ProfilerStep#", 13));
    assert_false(dryi_public_annotation("ProfilerStep#acme", 17));
    assert_true(dryi_public_annotation("Optimizer.step#AdamW.step", 25));
    assert_true(dryi_public_annotation("Optimizer.zero_grad#SGD.zero_grad", 33));
    assert_false(dryi_public_annotation("Optimizer.step#Acme.step", 24));
    assert_false(dryi_public_annotation("Optimizer.step#step", 19));
    assert_false(dryi_public_annotation("acme", 4));
}

/* Words of every length from 4 on, at the begin, middle and end; shorter ones never. */
static void
words_are_found_everywhere(void **state)
{
    (void)state;
    static const char text[] =
        "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWX"
        "YZabcdefgh";
    for (size_t length = 1; length < sizeof text; length++) {
        for (size_t begin = 0; begin + length < sizeof text; begin += 7) {
            struct dryi_word_set words;
            dryi_word_set_init(&words, NULL);
            assert_true(dryi_word_set_put(&words, text + begin, length));
            uint32_t first = UINT32_MAX;
            uint64_t count =
                dryi_word_set_count(&words, text, sizeof text - 1, 4, &first);
            assert_true((count > 0) == (length >= 4));
            assert_int_equal(
                dryi_word_set_count(&words, text, begin + length - 1, 60, &first),
                length > 64 && begin + length > begin + 64);
            dryi_word_set_excuse(&words, text + begin, length);
            assert_true(dryi_word_set_count(&words, text, sizeof text - 1, 4, &first) ==
                        0);
            dryi_word_set_finish(&words);
        }
    }
}

static bool
is_run(const char *bytes, size_t count)
{
    struct dryi_opcode_run run;
    struct dryi_opcode_piece piece;
    size_t length = 0;
    dryi_opcode_run_init(&run, bytes, count);
    while (dryi_opcode_run_next(&run, &piece))
        length += piece.length;
    assert_true(run.is_bad || length == count);
    return !run.is_bad;
}
#define IS_RUN(text) is_run("" text, sizeof text - 1)

static void
only_whole_pairs_are_a_run(void **state)
{
    (void)state;
    assert_true(IS_RUN(""));
    assert_true(IS_RUN("K\1K\2"));
    assert_true(IS_RUN("\x8c\1aK\2"));
    assert_true(IS_RUN("\x8c\1a}(\x8c\1bK\2u"));
    assert_true(IS_RUN("K\1K\1\x86K\2"));
    assert_true(IS_RUN("K\1(K\1K\2K\3t"));
    assert_true(IS_RUN("K\1](K\1K\2K\3e"));
    assert_false(IS_RUN("K\1"));
    assert_false(IS_RUN("K"));
    assert_false(IS_RUN("K\1\x8c\5ab"));
    assert_false(IS_RUN("K\1](K\1"));
    assert_false(IS_RUN("K\1e"));
    assert_false(IS_RUN("K\1\x86"));
    assert_false(IS_RUN("K\1\x8a\012aaaaaaaaaa"));
    assert_false(IS_RUN("K\1cposix\nsystem\n"));
    assert_false(IS_RUN("K\1\x96\xff\xff\xff\xff\xff\xff\xff\xff"));
}

/* However much follows: nothing of it may pass for mark-up, which is kept. */
static void
unknown_opcodes_end_a_run(void **state)
{
    (void)state;
    char bytes[1024] = "K\1c";
    memset(bytes + 3, 'N', sizeof bytes - 3);
    for (size_t count = 3; count <= sizeof bytes; count++)
        assert_false(is_run(bytes, count));
}

static void
integers_of_runs_have_their_signs(void **state)
{
    (void)state;
    static const char bytes[] =
        "J\xff\xff\xff\xffK\xff\x8a\2\0\x80\x8a\2\xff\0M\xff\xff\x8a\0";
    static const int64_t values[] = {-1, 255, -32768, 255, 65535, 0};
    struct dryi_opcode_run run;
    struct dryi_opcode_piece piece;
    dryi_opcode_run_init(&run, bytes, sizeof bytes - 1);
    for (size_t i = 0; i < 6; i++) {
        assert_true(dryi_opcode_run_next(&run, &piece));
        assert_true((int64_t)piece.bits == values[i]);
        assert_int_equal(piece.is_wide, values[i] < 0);
    }
    assert_false(dryi_opcode_run_next(&run, &piece));
    assert_false(run.is_bad);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpp_names_of_public_namespaces_are_public),
        cmocka_unit_test(one_foreign_name_hides_the_whole),
        cmocka_unit_test(only_an_installed_torch_is_public),
        cmocka_unit_test(settings_are_public_word_by_word),
        cmocka_unit_test(annotations_of_torch_are_public),
        cmocka_unit_test(words_are_found_everywhere),
        cmocka_unit_test(only_whole_pairs_are_a_run),
        cmocka_unit_test(unknown_opcodes_end_a_run),
        cmocka_unit_test(integers_of_runs_have_their_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
