/* SPDX-License-Identifier: Apache-2.0 */

/*
 * explain/path, symbol, label and site: whose code a frame is, what of its path means the
 * same elsewhere, which operation it names, and who of a stack is the owner.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "explain/site/site.h"
#include "explain/site/symbol.h"
#include "support/failing_memory.h"
#include "support/program.h"

/* --- paths -------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    enum dryi_code code;
    const char *key; /* all of the tail */
} paths[] = {
    {"train.py", DRYI_CODE_USER, "train.py"},
    {"./train.py", DRYI_CODE_USER, "train.py"},
    {"/home/ada/project/train.py", DRYI_CODE_USER, "project/train.py"},
    {"/home/train.py", DRYI_CODE_USER, "train.py"},
    {"/Users/ada/project/train.py", DRYI_CODE_USER, "project/train.py"},
    {"/root/project/train.py", DRYI_CODE_USER, "project/train.py"},
    {"/data/root/train.py", DRYI_CODE_USER, "data/root/train.py"},
    {"C:\\Users\\ada\\project\\train.py", DRYI_CODE_USER, "project/train.py"},
    {"D:\\work\\train.py", DRYI_CODE_USER, "work/train.py"},
    {"\\\\server\\share\\train.py", DRYI_CODE_USER, "server/share/train.py"},
    {"/home/ada/run/../models/net.py", DRYI_CODE_USER, "models/net.py"},
    {"/opt/miniconda3/envs/ml/project/net.py", DRYI_CODE_USER, "project/net.py"},
    {"/home/ada/envs/cartpole/net.py", DRYI_CODE_USER, "envs/cartpole/net.py"},
    {"/x/app.runfiles/ws/net.py", DRYI_CODE_USER, "ws/net.py"},
    {"/tmp/ray/files/_ray_pkg_0a1b/net.py", DRYI_CODE_USER, "net.py"},
    {"/home/ada/torch/utils.py", DRYI_CODE_USER, "torch/utils.py"},
    {"/home/ada/python3/net.py", DRYI_CODE_USER, "python3/net.py"},
    {"/tmp/ipykernel_71/2233.py", DRYI_CODE_USER, "notebook"},
    {"<ipython-input-3-0a1b2c>", DRYI_CODE_USER, "notebook"},
    {"<stdin>", DRYI_CODE_USER, "<stdin>"},
    {"/home/ada/.venv/lib/python3.12/site-packages/torch/nn/functional.py",
     DRYI_CODE_TORCH, "torch/nn/functional.py"},
    {"/opt/lib/drystone/hook/_drystone_values.py", DRYI_CODE_LIBRARY,
     "opt/lib/drystone/hook/_drystone_values.py"},
    {"C:\\p\\.venv\\lib\\site-packages\\torch\\_tensor.py", DRYI_CODE_TORCH,
     "torch/_tensor.py"},
    {"/src/pytorch/torch/nn/functional.py", DRYI_CODE_TORCH, "torch/nn/functional.py"},
    {"/home/ada/torch/lib/python3.10/site-packages/einx/api.py", DRYI_CODE_PACKAGE,
     "einx/api.py"},
    {"/usr/lib/python3/dist-packages/six.py", DRYI_CODE_PACKAGE, "six.py"},
    {"/v/lib/python3.8/site-packages/apex-0.1-py3.8-linux-x86_64.egg/apex/amp.py",
     DRYI_CODE_PACKAGE, "apex/amp.py"},
    {"/v/site-packages/ipykernel_x/ipykernel_1.py", DRYI_CODE_PACKAGE,
     "ipykernel_x/ipykernel_1.py"},
    {"/usr/lib/python3.12/copy.py", DRYI_CODE_LIBRARY, "copy.py"},
    {"/usr/lib/python3.13t/json/decoder.py", DRYI_CODE_LIBRARY, "json/decoder.py"},
    {"C:\\py\\cpython-3.10-windows\\lib\\copy.py", DRYI_CODE_LIBRARY, "copy.py"},
    {"C:\\ana\\envs\\ml\\Lib\\copy.py", DRYI_CODE_LIBRARY, "copy.py"},
    {"<frozen runpy>", DRYI_CODE_LIBRARY, "<frozen runpy>"},
    {"/tmp/torchinductor_ada/ab/x.py", DRYI_CODE_GENERATED, "inductor"},
    {"/cache/nq/cnqtho2nij4af6swya42kmd2tvb2py3brmcdj3mike6uxkmojqam.py",
     DRYI_CODE_GENERATED, "inductor"},
    {"<eval_with_key>.7", DRYI_CODE_GENERATED, "<eval_with_key>.7"},
    {"<string>", DRYI_CODE_GENERATED, "<string>"},
    {"??", DRYI_CODE_NATIVE, "??"},
    {"", DRYI_CODE_NATIVE, ""},
    {"RegisterCUDA_0.cpp", DRYI_CODE_NATIVE, "RegisterCUDA_0.cpp"},
    {"/usr/local/src/conda/python-3.12.3/Objects/call.c", DRYI_CODE_NATIVE,
     "usr/local/src/conda/python-3.12.3/Objects/call.c"},
    {"/", DRYI_CODE_USER, "/"},
    {"////", DRYI_CODE_USER, "////"},
    {"..", DRYI_CODE_USER, ".."},
};

static void
paths_mean_the_same_on_every_machine(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct dryi_path path;
        struct dryi_label label;
        dryi_path_read(&path, paths[i].path, strlen(paths[i].path));
        dryi_label_init(&label);
        dryi_path_write_key(&path, path.part_count, &label);
        if (path.code != paths[i].code || strcmp(label.bytes, paths[i].key) != 0)
            fail_msg("%s: code %u, %s; expected %u, %s", paths[i].path, path.code,
                     label.bytes, (unsigned)paths[i].code, paths[i].key);
    }
}

static void
check_shown(const char *text, unsigned parts, const char *expected)
{
    struct dryi_path path;
    struct dryi_label label;
    dryi_path_read(&path, text, strlen(text));
    dryi_label_init(&label);
    dryi_path_write(&path, parts, &label);
    assert_string_equal(label.bytes, expected);
}

static void
paths_are_shown_from_their_end(void **state)
{
    (void)state;
    check_shown("/a/b/net.py", 1, "net.py");
    check_shown("/a/b/net.py", 2, "b/net.py");
    check_shown("/a/b/net.py", 9, "a/b/net.py");
    check_shown("E:\\a\\b\\net.py", 2, "b/net.py");
    check_shown("/home/ada/net.py", 3, "net.py");
    check_shown("/c/nq/cnqtho2nij4af6swya42kmd2tvb2py3brmcdj3mike6uxkmojqam.py", 1,
                "inductor/cnqtho2");
    check_shown("/tmp/ipykernel_71/2233.py", 1, "notebook/2233");
    check_shown("<ipython-input-3-0a1b2c>", 1, "notebook/3");
}

/* --- labels ------------------------------------------------------------------------------- */

static void
long_bytes_lose_their_middle(void **state)
{
    (void)state;
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_label_add(&label, "0123456789abcdefghijkl", 22, 19);
    assert_string_equal(label.bytes, "01234567…efghijkl");
    dryi_label_init(&label);
    dryi_label_add(&label, "ääääääääääääääää", 32, 20); /* between characters */
    assert_string_equal(label.bytes, "ääää…ääää");
    char *bytes = malloc(1 << 20);
    memset(bytes, 'x', 1 << 20);
    for (int i = 0; i < 9; i++)
        dryi_label_add(&label, bytes, 1 << 20, 240);
    dryi_label_format(&label, "%d", 12345);
    assert_true(label.length < DRYI_LABEL_BYTES);
    assert_int_equal(strlen(label.bytes), label.length);
    free(bytes);
}

/* --- symbols ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum dryi_code code;
    const char *shown;
    const char *operation;
} symbols[] = {
    {"at::_ops::relu::call(at::Tensor const&)", DRYI_CODE_OPERATION,
     "at::_ops::relu::call", "relu"},
    {"at::_ops::div_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)",
     DRYI_CODE_OPERATION, "at::_ops::div_Tensor::redispatch", "div"},
    {"at::_ops::pow_Tensor_Scalar::call(at::Tensor const&)", DRYI_CODE_OPERATION,
     "at::_ops::pow_Tensor_Scalar::call", "pow"},
    {"at::_ops::to_dtype_layout::call(at::Tensor const&)", DRYI_CODE_OPERATION,
     "at::_ops::to_dtype_layout::call", "to"},
    {"at::_ops::_to_copy::call(at::Tensor const&)", DRYI_CODE_OPERATION,
     "at::_ops::_to_copy::call", "_to_copy"},
    {"at::_ops::empty_memory_format::call(x)", DRYI_CODE_OPERATION,
     "at::_ops::empty_memory_format::call", "empty"},
    {"at::native::einsum(std::basic_string_view<char, std::char_traits<char> >)",
     DRYI_CODE_OPERATION, "at::native::einsum", "einsum"},
    {"torch::autograd::THPVariable_mul(_object*, _object*, _object*)",
     DRYI_CODE_OPERATION, "torch::autograd::THPVariable_mul", "mul"},
    {"torch::autograd::generated::DivBackward0::apply(std::vector<at::Tensor>&&)",
     DRYI_CODE_AUTOGRAD, "DivBackward0", ""},
    {"torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)",
     DRYI_CODE_AUTOGRAD, "AccumulateGrad", ""},
    {"torch::autograd::PyNode::apply(std::vector<at::Tensor>&&)", DRYI_CODE_MACHINERY,
     "torch::autograd::PyNode::apply", ""},
    {"at::cuda::getCurrentCUDABlasHandle()", DRYI_CODE_OPERATION,
     "at::cuda::getCurrentCUDABlasHandle", "getCurrentCUDABlasHandle"},
    {"at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>)",
     DRYI_CODE_MACHINERY, "at::detail::_empty_generic<long>", ""},
    {"at::(anonymous namespace)::create_out(c10::ArrayRef<long>)", DRYI_CODE_MACHINERY,
     "at::(anonymous namespace)::create_out", ""},
    {"_object* torch::autograd::TypeError_<&torch::autograd::THPVariable_mul>(_object*)",
     DRYI_CODE_MACHINERY,
     "torch::autograd::TypeError_<&torch::autograd::THPVariable_mul>", ""},
    {"clone", DRYI_CODE_MACHINERY, "clone", ""},
    {"_PyEval_EvalFrameDefault", DRYI_CODE_MACHINERY, "_PyEval_EvalFrameDefault", ""},
    {"void mine::Model<int>::forward(at::Tensor) const", DRYI_CODE_NATIVE,
     "mine::Model<int>::forward", ""},
    {"mine::F::operator()(int) const", DRYI_CODE_NATIVE, "mine::F::operator()", ""},
    {"", DRYI_CODE_MACHINERY, "", ""},
    {"(", DRYI_CODE_NATIVE, "(", ""},
    {"<<<<", DRYI_CODE_NATIVE, "<<<<", ""},
    {"at::_ops::", DRYI_CODE_MACHINERY, "at::_ops::", ""},
    {"at::_ops::call", DRYI_CODE_OPERATION, "at::_ops::call", "_ops"},
    {"torch::autograd::::apply(", DRYI_CODE_MACHINERY, "torch::autograd::::apply", ""},
    {"a b ", DRYI_CODE_NATIVE, "a b ", ""},
    {"torch::autograd::THPVariable_x::y", DRYI_CODE_MACHINERY,
     "torch::autograd::THPVariable_x::y", ""},
    {"torch::autograd::THPVariable_(", DRYI_CODE_OPERATION,
     "torch::autograd::THPVariable_", ""},
};

static void
symbols_say_what_they_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        struct dryi_symbol s;
        const char *name = symbols[i].name;
        dryi_symbol_read(&s, name, strlen(name));
        assert_true((size_t)s.begin + s.length <= strlen(name));
        assert_true((size_t)s.op_begin + s.op_length <= strlen(name));
        if (s.code != symbols[i].code || s.length != strlen(symbols[i].shown) ||
            memcmp(name + s.begin, symbols[i].shown, s.length) != 0)
            fail_msg("%s: code %u, \"%.*s\"", name, (unsigned)s.code, (int)s.length,
                     name + s.begin);
        if (s.op_length != strlen(symbols[i].operation) ||
            memcmp(name + s.op_begin, symbols[i].operation, s.op_length) != 0)
            fail_msg("%s: operation \"%.*s\"", name, (int)s.op_length, name + s.op_begin);
    }
}

/* --- stacks ------------------------------------------------------------------------------- */

#define SITE "/v/lib/python3.12/site-packages/"
#define OPS                                                                              \
    "??;0;torch::unwind::unwind()\n"                                                     \
    "??;0;at::_ops::empty_memory_format::call(x)\n"                                      \
    "??;0;at::_ops::relu::call(at::Tensor const&)\n"                                     \
    "??;0;torch::autograd::THPVariable_relu(_object*)\n"
#define MODULE SITE "torch/nn/modules/module.py;1790;_call_impl\n"

static const struct {
    const char *frames;
    const char *owner, *outermost, *what;
} stacks[] = {
    {OPS "/p/net.py;7;forward\n" MODULE "/p/main.py;3;<module>", "net.py:7 forward",
     "main.py:3 <module>", "aten::relu"},
    /* inlined Python frames stand behind the bottom of the C++ stack */
    {OPS SITE "torch/functional.py;407;einsum\n??;0;_start\n/p/net.py;7;forward",
     "net.py:7 forward", "net.py:7 forward", "aten::relu"},
    /* Python alone */
    {SITE "torch/functional.py;407;einsum\n" SITE "einops/einops.py;9;einsum\n"
          "/p/net.py;7;forward",
     "net.py:7 forward", "net.py:7 forward", "einsum"},
    {SITE "torch/nn/modules/linear.py;134;forward\n" MODULE "/p/net.py;7;go",
     "net.py:7 go", "net.py:7 go", "linear"},
    {"/p/net.py;7;forward", "net.py:7 forward", "net.py:7 forward", ""},
    {"/tmp/torchinductor_u/ab/cab.py;420;call\n" SITE
     "torch/_inductor/output_code.py;656;__call__\n/p/net.py;7;forward",
     "net.py:7 forward", "net.py:7 forward", "compiled code"},
    /* nobody's own code: the innermost package, not PyTorch */
    {SITE "torch/nn/functional.py;9;linear\n" SITE "vllm/layers.py;5;forward\n" SITE
          "vllm/main.py;6;run\n/usr/lib/python3.12/runpy.py;88;_run_code",
     "vllm/layers.py:5 forward", "vllm/main.py:6 run", "linear"},
    {SITE "torch/nn/functional.py;9;linear\n/usr/lib/python3.12/runpy.py;88;_run_code",
     "torch/nn/functional.py:9 linear", "torch/nn/functional.py:9 linear", ""},
    /* a script without extension, and python -c */
    {"/usr/bin/train;7;main", "train:7 main", "train:7 main", ""},
    {"<string>;1;<module>", "<string>:1 <module>", "<string>:1 <module>", ""},
    /* the backward thread */
    {"??;0;at::_ops::div_Tensor::call(x)\n"
     "??;0;torch::autograd::generated::DivBackward0::apply(x)\n??;0;clone",
     "autograd DivBackward0", "autograd DivBackward0", "aten::div"},
    /* with the frames of the forward pass, which own before all others */
    {"??;0;at::_ops::div_Tensor::call(x)\n??;0;clone\n>" SITE
     "torch/functional.py;407;einsum\n>/p/net.py;7;forward\n>/p/main.py;3;<module>",
     "backward of net.py:7 forward", "backward of main.py:3 <module>", "aten::div"},
    {"/p/op.py;5;backward\n>/p/net.py;7;forward", "backward of net.py:7 forward",
     "backward of net.py:7 forward", ""},
    {">" SITE "torch/functional.py;407;einsum",
     "backward of torch/functional.py:407 einsum",
     "backward of torch/functional.py:407 einsum", ""},
    /* C++ programs */
    {"??;0;at::_ops::relu::call(x)\nnet.cpp;33;mine::forward(at::Tensor)\n??;0;main",
     "net.cpp:33 mine::forward", "native main", "aten::relu"},
    {"??;0;at::_ops::empty::call(x)\n??;0;at::_ops::relu::call(x)\n??;0;_start",
     "libtorch at::_ops::empty::call", "libtorch at::_ops::relu::call", "aten::relu"},
    {"??;0;at::cuda::getCurrentCUDABlasHandle()\n??;0;at::_ops::mm::call(x)\n"
     "/p/net.py;7;forward",
     "net.py:7 forward", "net.py:7 forward", "cuBLAS workspace"},
    {"??;0;clone", "libtorch clone", "libtorch clone", ""},
};

static void
check_line(const struct dryi_sites *sites, uint32_t frame, const char *expected)
{
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_sites_write_line(sites, frame, &label);
    assert_string_equal(label.bytes, expected);
}

static void
owners_are_found_in_stacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        struct program p;
        program_begin(&p, NULL);
        uint32_t stack = program_stack(&p, stacks[i].frames);
        program_alloc(&p, 512, stack);
        program_finish(&p);
        struct dryi_sites sites;
        struct dry_error err;
        assert_int_equal(dryi_sites_init(&sites, p.trace, NULL, &err), DRY_OK);
        const struct dryi_site *site = &sites.stacks[stack];
        check_line(&sites, site->owner, stacks[i].owner);
        check_line(&sites, site->outermost, stacks[i].outermost);
        size_t length;
        assert_string_equal(dryi_sites_what(&sites, site->what, &length), stacks[i].what);
        assert_int_equal(length, strlen(stacks[i].what));
        dryi_sites_finish(&sites);
        program_end(&p);
    }
}

static void
files_of_one_name_show_their_folder(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    uint32_t a = program_stack(&p, "/p/a/net.py;1;f");
    uint32_t b = program_stack(&p, "/p/b/net.py;1;f");
    uint32_t c = program_stack(&p, "/p/x/b/net.py;1;f\n/p/main.py;2;g");
    program_alloc(&p, 512, a);
    program_finish(&p);
    struct dryi_sites sites;
    struct dry_error err;
    assert_int_equal(dryi_sites_init(&sites, p.trace, NULL, &err), DRY_OK);
    check_line(&sites, sites.stacks[a].owner, "a/net.py:1 f");
    check_line(&sites, sites.stacks[b].owner, "p/b/net.py:1 f");
    check_line(&sites, sites.stacks[c].owner, "x/b/net.py:1 f");
    check_line(&sites, sites.stacks[c].outermost, "main.py:2 g");
    dryi_sites_finish(&sites);
    program_end(&p);
}

static void
stacks_of_the_backward_pass_say_so_once(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    uint32_t stack =
        program_stack(&p, "/p/op.py;5;backward\n>/p/net.py;7;f\n>/p/main.py;2;g");
    program_finish(&p);
    struct dryi_sites s;
    struct dry_error err;
    assert_int_equal(dryi_sites_init(&s, p.trace, NULL, &err), DRY_OK);
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_sites_write_stack(&s, stack, &label);
    assert_string_equal(label.bytes, "backward of net.py:7 f < main.py:2 g");
    dryi_sites_finish(&s);
    program_end(&p);
}

static void
frames_of_equal_text_are_one_place(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    uint32_t a = program_stack(&p, "/p/net.py;1;f");
    uint32_t b = program_stack(&p, "/p/net.py;1;f\n/p/main.py;2;g");
    uint32_t c = program_stack(&p, "/p/net.py;2;f");
    program_finish(&p);
    struct dryi_sites s;
    struct dry_error err;
    assert_int_equal(dryi_sites_init(&s, p.trace, NULL, &err), DRY_OK);
    const struct dryi_frame_site *x = &s.frames[s.stacks[a].owner];
    const struct dryi_frame_site *y = &s.frames[s.stacks[b].owner];
    const struct dryi_frame_site *z = &s.frames[s.stacks[c].owner];
    assert_int_equal(x->place, y->place);
    assert_int_not_equal(x->place, z->place);
    assert_int_equal(x->function, z->function);
    dryi_sites_finish(&s);
    program_end(&p);
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    struct program p;
    program_begin(&p, NULL);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        program_stack(&p, stacks[i].frames);
    program_finish(&p);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dryi_sites sites;
        struct dry_error err;
        enum dry_status status = dryi_sites_init(&sites, p.trace, &memory, &err);
        dryi_sites_finish(&sites);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_int_equal(status, DRY_OK);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
    program_end(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_mean_the_same_on_every_machine),
        cmocka_unit_test(paths_are_shown_from_their_end),
        cmocka_unit_test(long_bytes_lose_their_middle),
        cmocka_unit_test(symbols_say_what_they_do),
        cmocka_unit_test(owners_are_found_in_stacks),
        cmocka_unit_test(files_of_one_name_show_their_folder),
        cmocka_unit_test(stacks_of_the_backward_pass_say_so_once),
        cmocka_unit_test(frames_of_equal_text_are_one_place),
        cmocka_unit_test(each_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
