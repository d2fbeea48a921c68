// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

namespace tutti {
namespace {

const KernelTable& kernels(CpuLevel level) noexcept {
#ifdef TUTTI_KERNELS_X86
  if (level >= CpuLevel::avx2) return kAvx2Kernels;
  if (level >= CpuLevel::sse4) return kSse4Kernels;
#endif
#ifdef TUTTI_KERNELS_ARM
  if (level >= CpuLevel::neon) return kNeonKernels;
#endif
  (void)level;
  return kScalarKernels;
}

}  // namespace

FoldFunction fold_function(DType dtype, Op op, CpuLevel level) noexcept {
  const auto type = static_cast<size_t>(dtype);
  const auto operation = static_cast<size_t>(op);
  const FoldFunction own = kernels(level).fold[type][operation];
  return own != nullptr ? own : kScalarKernels.fold[type][operation];
}

void widen_to_f32(DType dtype, float* to, const void* from, uint64_t count, CpuLevel level) noexcept {
  kernels(level).widen[static_cast<size_t>(dtype)](to, from, count);
}

void narrow_from_f32(DType dtype, void* to, const float* from, uint64_t count, CpuLevel level) noexcept {
  kernels(level).narrow[static_cast<size_t>(dtype)](to, from, count);
}

bool can_scale(DType dtype) noexcept { return kScalarKernels.scale[static_cast<size_t>(dtype)] != nullptr; }

void scale(DType dtype, void* to, const void* from, uint64_t count, double factor, CpuLevel level) noexcept {
  kernels(level).scale[static_cast<size_t>(dtype)](to, from, count, factor);
}

}  // namespace tutti
