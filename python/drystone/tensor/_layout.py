# SPDX-License-Identifier: Apache-2.0
"""The structs of drystone/tensor.h, pages.h and dtype.h, as ctypes has them."""
from __future__ import annotations

import ctypes

NODES_MAX, ATTEMPTS_MAX, SHARES_MAX = 1024, 16, 64
CPU, CUDA_HOST = 1, 3


class Dtype(ctypes.Structure):
    """struct dry_dtype, DLPack's DLDataType"""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Device(ctypes.Structure):
    """struct dry_dlpack_device"""

    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DlTensor(ctypes.Structure):
    """struct dry_dlpack_tensor"""

    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32),
                ("dtype", Dtype), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class Legacy(ctypes.Structure):
    """struct dry_dlpack_legacy"""

    _fields_ = [("tensor", DlTensor), ("manager_ctx", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """struct dry_dlpack_versioned"""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DlTensor)]


class Form(ctypes.Structure):
    """struct dry_tensor_form"""

    _fields_ = [("dtype", Dtype), ("ndim", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("is_padded", ctypes.c_bool)]


class TensorOptions(ctypes.Structure):
    """struct dry_tensor_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p), ("form", Form),
                ("device", Device), ("pages", ctypes.c_void_p)]


class TensorView(ctypes.Structure):
    """struct dry_tensor_view"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("is_read_only", ctypes.c_bool),
                ("is_part", ctypes.c_bool), ("offset_bytes", ctypes.c_uint64), ("form", Form)]


class TensorInfo(ctypes.Structure):
    """struct dry_tensor_info"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("address", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64), ("element_count", ctypes.c_uint64),
                ("form", Form), ("device", Device), ("pages", ctypes.c_void_p)]


class PagesOptions(ctypes.Structure):
    """struct dry_pages_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64), ("kind", ctypes.c_int),
                ("page_bytes", ctypes.c_uint64), ("where", ctypes.c_int),
                ("node", ctypes.c_int32), ("nodes", ctypes.c_uint64 * (NODES_MAX // 64)),
                ("policy", ctypes.c_int), ("fork", ctypes.c_int),
                ("thread_count", ctypes.c_uint32), ("timeout_ms", ctypes.c_uint32),
                ("keep_free_bytes", ctypes.c_uint64), ("progress", ctypes.c_void_p),
                ("progress_self", ctypes.c_void_p), ("root", ctypes.c_char_p)]


class Attempt(ctypes.Structure):
    """struct dry_pages_attempt"""

    _fields_ = [("kind", ctypes.c_int), ("page_bytes", ctypes.c_uint64),
                ("may_spill", ctypes.c_bool), ("is_granted", ctypes.c_bool),
                ("reason", ctypes.c_int), ("node_reason", ctypes.c_int),
                ("os_errno", ctypes.c_int)]


class Report(ctypes.Structure):
    """struct dry_pages_report"""

    _fields_ = [("count", ctypes.c_size_t), ("attempts", Attempt * ATTEMPTS_MAX)]


class PagesInfo(ctypes.Structure):
    """struct dry_pages_info"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("address", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64), ("requested_bytes", ctypes.c_uint64),
                ("kind", ctypes.c_int), ("page_bytes", ctypes.c_uint64),
                ("base_page_bytes", ctypes.c_uint64), ("where", ctypes.c_int),
                ("fork", ctypes.c_int), ("huge_bytes", ctypes.c_uint64),
                ("elsewhere_bytes", ctypes.c_uint64), ("thread_count", ctypes.c_uint32),
                ("populate_ns", ctypes.c_uint64), ("report", Report)]


class Share(ctypes.Structure):
    """struct dry_pages_share"""

    _fields_ = [("node", ctypes.c_int32), ("bytes", ctypes.c_uint64)]


class Proof(ctypes.Structure):
    """struct dry_pages_proof"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("bytes", ctypes.c_uint64),
                ("populated_bytes", ctypes.c_uint64), ("huge_bytes", ctypes.c_uint64),
                ("knows_nodes", ctypes.c_bool), ("knows_huge", ctypes.c_bool),
                ("share_count", ctypes.c_size_t), ("shares", Share * SHARES_MAX),
                ("elsewhere_bytes", ctypes.c_uint64)]
