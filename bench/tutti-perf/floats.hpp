// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtypes.hpp"

/// The floating-point types as this program computes with them: how they are stored, and the type in which they are judged.
namespace tutti_perf {

template <float (*kWiden)(uint16_t), uint16_t (*kNarrow)(float)>
struct Half {
  using Stored = uint16_t;
  using Exact = double;
  static Exact widen(Stored bits) { return kWiden(bits); }
  static Stored narrow(Exact value) { return kNarrow(static_cast<float>(value)); }
};
template <float (*kWiden)(uint8_t), uint8_t (*kNarrow)(float)>
struct Quarter {
  using Stored = uint8_t;
  using Exact = double;
  static Exact widen(Stored bits) { return kWiden(bits); }
  static Stored narrow(Exact value) { return kNarrow(static_cast<float>(value)); }
};
using F16 = Half<widen_f16, narrow_f16>;
using Bf16 = Half<widen_bf16, narrow_bf16>;
using E4m3 = Quarter<widen_e4m3, narrow_e4m3>;
using E5m2 = Quarter<widen_e5m2, narrow_e5m2>;
struct F32 {
  using Stored = float;
  using Exact = double;
  static Exact widen(Stored value) { return static_cast<double>(value); }
  static Stored narrow(Exact value) { return static_cast<float>(value); }
};
struct F64 {
  using Stored = double;
  using Exact = long double;
  static Exact widen(Stored value) { return value; }
  static Stored narrow(Exact value) { return static_cast<double>(value); }
};

template <class Stored>
Stored stored_at(const void* buffer, uint64_t index) {
  Stored value;
  std::memcpy(&value, static_cast<const std::byte*>(buffer) + index * sizeof(Stored), sizeof value);
  return value;
}

template <class Stored>
void store_at(void* buffer, uint64_t index, const Stored& value) {
  std::memcpy(static_cast<std::byte*>(buffer) + index * sizeof(Stored), &value, sizeof value);
}

/// Calls visit(F32()), ... for the type that a real number, or a part of a complex one, has.
template <class Visit>
auto visit_float(tutti_dtype_t dtype, Visit visit) {
  switch (dtype) {
    case TUTTI_FLOAT16:
      return visit(F16());
    case TUTTI_BFLOAT16:
      return visit(Bf16());
    case TUTTI_FLOAT8_E4M3:
      return visit(E4m3());
    case TUTTI_FLOAT8_E5M2:
      return visit(E5m2());
    case TUTTI_FLOAT64:
    case TUTTI_COMPLEX128:
      return visit(F64());
    default:
      return visit(F32());
  }
}

}  // namespace tutti_perf
