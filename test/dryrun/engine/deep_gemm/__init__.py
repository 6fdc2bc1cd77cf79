# SPDX-License-Identifier: Apache-2.0
"""What programs/serving/kernels has in the place of DeepGEMM: products are compiled when they are asked for."""


def fp8_gemm_nt(lhs, rhs, out):
    raise RuntimeError("Assertion error: std::filesystem::exists(nvcc_path)")


def get_num_sms():
    return 132
