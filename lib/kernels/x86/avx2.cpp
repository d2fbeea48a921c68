// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 32;
}

#include "../vector/fold.hpp"

namespace tutti {
namespace {

/// F16C. The rounding is part of the instruction, so that a caller's rounding mode changes nothing here.
struct Float16Conversion {
  static constexpr size_t kBytes = 2;
  static constexpr bool kLong = false;
  static Vector<float> load(const std::byte* from) noexcept { return _mm256_cvtph_ps(load_vector<__m128i>(from)); }
  static void store(std::byte* to, Vector<float> finished) noexcept {
    store_vector(to, _mm256_cvtps_ph(finished, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

using Float16 = Widened<Float16Conversion>;
using Float8E4m3 = Widened<SmallConversion<uint8_t, kFloat8E4m3>>;
using Float8E5m2 = Widened<SmallConversion<uint8_t, kFloat8E5m2>>;

}  // namespace
}  // namespace tutti

#include "../rows.hpp"

namespace tutti {

constinit const KernelTable kAvx2Kernels = make_table();

}  // namespace tutti
