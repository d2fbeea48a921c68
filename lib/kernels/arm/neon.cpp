// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 16;
}

#include "../vector/fold.hpp"

namespace tutti {
namespace {

/// Part of every AArch64; only arithmetic in binary16 is not.
struct Float16Conversion {
  static constexpr size_t kBytes = 2;
  static constexpr bool kLong = false;
  static Vector<float> load(const std::byte* from) noexcept {
    return reinterpret_cast<Vector<float>>(vcvt_f32_f16(load_vector<float16x4_t>(from)));
  }
  static void store(std::byte* to, Vector<float> finished) noexcept {
    store_vector(to, vcvt_f16_f32(reinterpret_cast<float32x4_t>(finished)));
  }
};

using Float16 = Widened<Float16Conversion>;
using Float8E4m3 = Widened<SmallConversion<uint8_t, kFloat8E4m3>>;
using Float8E5m2 = Widened<SmallConversion<uint8_t, kFloat8E5m2>>;
constexpr bool kHasWidePairs = true;

}  // namespace
}  // namespace tutti

#include "../rows.hpp"

namespace tutti {

constinit const KernelTable kNeonKernels = make_table();

}  // namespace tutti
