// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernels.hpp"

namespace tutti {

/// The kernels of one level.
struct KernelTable {
  FoldFunction fold[kDTypeCount][kOpCount];
  // nullptr: the type is not one of those.
  void (*widen[kDTypeCount])(float* to, const void* from, uint64_t count) noexcept;
  void (*narrow[kDTypeCount])(void* to, const float* from, uint64_t count) noexcept;
  void (*scale[kDTypeCount])(void* to, const void* from, uint64_t count, double factor) noexcept;
};

extern const KernelTable kScalarKernels;
#ifdef TUTTI_KERNELS_X86
extern const KernelTable kSse4Kernels;
extern const KernelTable kAvx2Kernels;
#endif
#ifdef TUTTI_KERNELS_ARM
extern const KernelTable kNeonKernels;
#endif

}  // namespace tutti
