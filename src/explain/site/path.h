/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PATH_H
#define DRYI_PATH_H

/*
 * The file of a frame: the author of its code, and the tail of its path that is the
 * same on every machine.
 *
 *     /home/ada/proj/train.py                            user       proj/train.py
 *     C:\Users\ada\proj\train.py                         user       proj/train.py
 *     .../lib/python3.12/site-packages/einops/einops.py  package    einops/einops.py
 *     .../site-packages/torch/nn/functional.py           torch      torch/nn/functional.py
 *     /usr/lib/python3.12/copy.py                        library    copy.py
 *     /tmp/torchinductor_ada/ab/cabxyz....py             generated  inductor
 *     RegisterCUDA_0.cpp, ??                             native
 *
 * Sources for the folders of CPython and its environments: PEP 370, PEP 405, docs of `site`;
 * conda's envs/NAME; setuptools' NAME-VERSION.egg; PyTorch's
 * torch/_inductor/runtime/cache_dir_utils for torchinductor_USER/xx/cxx....py; ipykernel's compiler
 * for ipykernel_PID/NUMBER.py.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/site/label.h"

/* The author of a frame's code. Higher values are preferred as owner. */
enum dryi_code {
    DRYI_CODE_MACHINERY, /* C++: the allocator, the dispatcher, CPython, libc */
    DRYI_CODE_OPERATION, /* C++: an operation, as at::_ops::relu::call */
    DRYI_CODE_NATIVE,    /* other C++ code */
    DRYI_CODE_AUTOGRAD,  /* C++: a node of the backward graph, DivBackward0 */
    DRYI_CODE_LIBRARY,   /* Python's standard library */
    DRYI_CODE_TORCH,     /* PyTorch's Python files */
    DRYI_CODE_GENERATED, /* by torch.compile, or by exec() of a library */
    DRYI_CODE_PACKAGE,   /* another installed package */
    DRYI_CODE_USER,
};

enum dryi_path_form {
    DRYI_PATH_FILE,
    DRYI_PATH_INDUCTOR, /* file named by a hash of its contents */
    DRYI_PATH_NOTEBOOK, /* a cell, identified by a number */
    DRYI_PATH_OURS,     /* no file: a name that the library assigned */
};

struct dryi_path {
    const char *bytes; /* owned by the trace */
    uint32_t length;
    uint32_t tail;           /* offset of the tail that is the same on every machine */
    uint8_t code;            /* enum dryi_code; NATIVE means only "not Python" */
    uint8_t form;            /* enum dryi_path_form */
    uint8_t has_backslashes; /* backslashes separate components */
    uint8_t is_unknown;      /* file unknown: "", "??" */
    uint8_t has_extension;   /* .py, .cpp ...; without an extension `code` is a guess */
    uint8_t part_count;      /* components of the tail, at least 1; saturates at 255 */
    uint8_t shown_parts;     /* last components to show, so that the path is unique */
};

/* Read a path. It refers to `bytes`, which must outlive it. Cost: O(length). */
void dryi_path_read(struct dryi_path *path, const char *bytes, size_t length);

/* Make a path that is one word instead of a file. */
void dryi_path_set_word(struct dryi_path *path, const char *word, enum dryi_code code);

/* Append the last `parts` components, joined by '/'. */
void dryi_path_write(const struct dryi_path *path, unsigned parts,
                     struct dryi_label *label);

/* Append the path for comparisons with other files: without hashes and numbers of cells. */
void dryi_path_write_key(const struct dryi_path *path, unsigned parts,
                         struct dryi_label *label);

/* Return the file name without extension, as "linear" of ".../linear.py". Points into the path. */
const char *dryi_path_stem(const struct dryi_path *path, size_t *length);

#endif
