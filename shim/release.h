// SPDX-License-Identifier: Apache-2.0
// The release of PyTorch that the shim is compiled for, and what moved between releases.
//
// The build defines DRY_TORCH: 208 for 2.8, 215 for 2.15. A virtual function that a release lacks
// is a plain function there, so that one source serves all releases. So such functions are not
// marked `override`, and both signatures are declared where one changed.
#pragma once

#ifndef DRY_TORCH
#error "DRY_TORCH is the release: 208 for 2.8, 215 for 2.15"
#endif
#if DRY_TORCH < 208
#error "releases before 2.8 have another interface"
#endif

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace shim
{

namespace torch_cuda = c10::cuda::CUDACachingAllocator;

using c10::DeviceIndex;
using c10::cuda::MempoolId_t;
using Gathered = std::shared_ptr<c10::GatheredContext>;
using torch_cuda::BlockInfo;
using torch_cuda::RecordContext;
using torch_cuda::SegmentInfo;
using torch_cuda::SnapshotInfo;
using torch_cuda::TraceEntry;
using Annotations = decltype(SnapshotInfo::external_annotations);
using RejectionObserver = std::function<void(int64_t, size_t, size_t, size_t)>;
using Filter = std::function<bool(cudaStream_t)>;
using Stats = c10::CachingDeviceAllocator::DeviceStats;

#if DRY_TORCH >= 211
using Custom = std::shared_ptr<torch_cuda::CUDAAllocator>;
#else
using Custom = torch_cuda::CUDAAllocator *;
#endif

} // namespace shim
