/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PATH_H
#define DRYI_PATH_H

/*
 * The file of a frame: whose code it is, and the part of its path that means the same on
 * every machine.
 *
 *     /home/ada/proj/train.py                            user       proj/train.py
 *     C:\Users\ada\proj\train.py                         user       proj/train.py
 *     .../lib/python3.12/site-packages/einops/einops.py  package    einops/einops.py
 *     .../site-packages/torch/nn/functional.py           torch      torch/nn/functional.py
 *     /usr/lib/python3.12/copy.py                        library    copy.py
 *     /tmp/torchinductor_ada/ab/cabxyz....py             generated  inductor
 *     RegisterCUDA_0.cpp, ??                             native
 *
 * Sources for where CPython and its environments put things: PEP 370, PEP 405, docs of
 * `site`; conda's envs/NAME; setuptools' NAME-VERSION.egg; PyTorch's
 * torch/_inductor/runtime/cache_dir_utils for torchinductor_USER/xx/cxx....py;
 * ipykernel's compiler for ipykernel_PID/NUMBER.py.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/site/label.h"

/* The author of a frame's code. The higher one is the better owner. */
enum dryi_code {
    DRYI_CODE_MACHINERY, /* C++: the allocator, the dispatcher, CPython, libc */
    DRYI_CODE_OPERATION, /* C++: at::_ops::relu::call and the like */
    DRYI_CODE_NATIVE,    /* C++ of somebody else */
    DRYI_CODE_AUTOGRAD,  /* C++: a node of the backward graph, DivBackward0 */
    DRYI_CODE_LIBRARY,   /* Python's own library */
    DRYI_CODE_TORCH,     /* PyTorch's Python files */
    DRYI_CODE_GENERATED, /* by torch.compile, or by exec() of a library */
    DRYI_CODE_PACKAGE,   /* another installed package */
    DRYI_CODE_USER,
};

enum dryi_path_form {
    DRYI_PATH_FILE,
    DRYI_PATH_INDUCTOR, /* named by a hash of its text */
    DRYI_PATH_NOTEBOOK, /* a cell, named by a number */
    DRYI_PATH_OURS,     /* no file: a word of ours */
};

struct dryi_path {
    const char *bytes; /* of the trace */
    uint32_t length;
    uint32_t tail; /* where the part that means the same on every machine begins */
    uint8_t code;  /* enum dryi_code; NATIVE says no more than "not Python" */
    uint8_t form;  /* enum dryi_path_form */
    uint8_t has_backslashes; /* they part it */
    uint8_t is_unknown;      /* "", "??": nobody knows the file */
    uint8_t has_extension;   /* .py, .cpp ...: else `code` is a guess */
    uint8_t part_count;      /* of the tail, at least 1; 255 stands for more */
    uint8_t shown_parts;     /* how many of them, from the end, tell it from the others */
};

/* O(length). `bytes` is kept. */
void dryi_path_read(struct dryi_path *path, const char *bytes, size_t length);

/* A path that is one word. */
void dryi_path_set_word(struct dryi_path *path, const char *word, enum dryi_code code);

/* Append the last `parts` of it, joined by '/'. */
void dryi_path_write(const struct dryi_path *path, unsigned parts,
                     struct dryi_label *label);

/* The same as it is compared with other files: without hashes and numbers of cells. */
void dryi_path_write_key(const struct dryi_path *path, unsigned parts,
                         struct dryi_label *label);

/* "linear" of ".../linear.py": bytes of the path. */
const char *dryi_path_stem(const struct dryi_path *path, size_t *length);

#endif
