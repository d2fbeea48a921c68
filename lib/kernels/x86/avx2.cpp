// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 32;
}

#define TUTTI_KERNELS_X86 1
#include "fold_vector.hpp"

namespace tutti {
namespace {

/// F16C. The rounding is part of the instruction, so that a caller's rounding mode changes nothing here.
struct Float16Conversion {
  using Stored = __m128i;
  static Vector<float> widen(Stored stored) noexcept { return _mm256_cvtph_ps(stored); }
  static Stored narrow(Vector<float> finished) noexcept {
    return _mm256_cvtps_ph(finished, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

}  // namespace

const FoldTable kAvx2Folds = TUTTI_VECTOR_FOLDS(Float16Conversion);

}  // namespace tutti
