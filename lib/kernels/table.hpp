// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernels.hpp"

namespace tutti {

/// The kernels of one level. nullptr: the next lower level has it.
struct FoldTable {
  FoldFunction fold[kDTypeCount][kOpCount];
};

extern const FoldTable kScalarFolds;  // complete
#ifdef TUTTI_KERNELS_X86
extern const FoldTable kSse4Folds;
extern const FoldTable kAvx2Folds;
#endif

/// The one NaN that folds produce, as bits of each type. A fold whose result is NaN gives this one, positive and quiet, without
/// payload. Which NaN survives an addition otherwise depends on the instruction set and on the compiler's choice of operand
/// order; with one canonical NaN all levels, algorithms and ranks agree in every bit. A copy (one source) changes no bit.
inline constexpr uint16_t kNanF16 = 0x7e00;
inline constexpr uint16_t kNanBf16 = 0x7fc0;
inline constexpr uint32_t kNanF32 = 0x7fc00000;
inline constexpr uint64_t kNanF64 = 0x7ff8000000000000;

}  // namespace tutti
