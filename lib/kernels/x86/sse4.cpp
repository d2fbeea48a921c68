// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 16;
}

#include "../vector/fold.hpp"

namespace tutti {
namespace {

using Float16 = Widened<SmallConversion<uint16_t, kFloat16>>;
using Float8E4m3 = Widened<SmallConversion<uint8_t, kFloat8E4m3>>;
using Float8E5m2 = Widened<SmallConversion<uint8_t, kFloat8E5m2>>;
constexpr bool kHasWidePairs = false;  // one of 16 bytes fills a vector: slower than the scalar code

}  // namespace
}  // namespace tutti

#include "../rows.hpp"

namespace tutti {

constinit const KernelTable kSse4Kernels = make_table();

}  // namespace tutti
