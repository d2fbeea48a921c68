// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "dtypes.hpp"

namespace tutti_perf {
namespace {

uint64_t mix(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t random_bits(uint32_t rank, uint64_t index) { return mix(mix(rank) + index); }

/// In [0, 1), of 53 bits.
double fraction_of(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// ---- how elements are stored, and the type in which they are judged

struct F16 {
  using Stored = uint16_t;
  using Exact = double;
  static Exact widen(Stored bits) { return widen_f16(bits); }
  static Stored narrow(Exact value) { return narrow_f16(static_cast<float>(value)); }
};
struct Bf16 {
  using Stored = uint16_t;
  using Exact = double;
  static Exact widen(Stored bits) { return widen_bf16(bits); }
  static Stored narrow(Exact value) { return narrow_bf16(static_cast<float>(value)); }
};
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
auto bits_of(Stored value) {
  if constexpr (sizeof(Stored) == 8) {
    return std::bit_cast<uint64_t>(value);
  } else if constexpr (sizeof(Stored) == 4) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (sizeof(Stored) == 2) {
    return std::bit_cast<uint16_t>(value);
  } else {
    return std::bit_cast<uint8_t>(value);
  }
}

template <class Stored>
Stored stored_at(const void* buffer, uint64_t index) {
  Stored value;
  std::memcpy(&value, static_cast<const std::byte*>(buffer) + index * sizeof(Stored), sizeof value);
  return value;
}

template <class Stored>
void store_at(void* buffer, uint64_t index, Stored value) {
  std::memcpy(static_cast<std::byte*>(buffer) + index * sizeof(Stored), &value, sizeof value);
}

template <class Stored>
Stored random_stored(uint32_t rank, uint64_t index) {
  const auto bits = static_cast<decltype(bits_of(Stored{}))>(random_bits(rank, index));
  return std::bit_cast<Stored>(bits);
}

uint32_t table_length(const CheckCase& check_case) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(check_case.longest, 1, kPeriod));
}

/// Filling is the same for all: the table of one period, again and again.
template <class Stored>
class TableData : public TestData {
 public:
  void fill(void* buffer, uint64_t count) const override {
    for (uint64_t at = 0; at < count; at += input_.size()) {
      const auto length = static_cast<size_t>(std::min<uint64_t>(input_.size(), count - at));
      std::memcpy(static_cast<std::byte*>(buffer) + at * sizeof(Stored), input_.data(), length * sizeof(Stored));
    }
  }
  void poison(void* buffer, uint64_t count) const override {
    if (count != 0) std::memset(buffer, 0xd5, static_cast<size_t>(count * sizeof(Stored)));
  }

 protected:
  std::vector<Stored> input_;
};

// ---- where every bit counts

template <class Stored>
class ExactData final : public TableData<Stored> {
 public:
  ExactData(std::vector<Stored> input, std::vector<Stored> expected) : expected_(std::move(expected)) {
    this->input_ = std::move(input);
  }

  Verdict judge(const void* buffer, uint64_t count) const override {
    Verdict verdict;
    for (uint64_t at = 0; at < count; at += expected_.size()) {
      const auto length = static_cast<size_t>(std::min<uint64_t>(expected_.size(), count - at));
      const auto* got = static_cast<const std::byte*>(buffer) + at * sizeof(Stored);
      if (std::memcmp(got, expected_.data(), length * sizeof(Stored)) == 0) continue;
      for (size_t i = 0; i < length; ++i) {
        const auto is = bits_of(stored_at<Stored>(got, i));
        const auto should_be = bits_of(expected_[i]);
        if (is == should_be) continue;
        if (verdict.wrong++ == 0) {
          verdict.first_wrong = at + i;
          verdict.explanation = fmt::format("got {} (bits {:#x}), expected {} (bits {:#x}) exactly", stored_at<Stored>(got, i),
                                            is, expected_[i], should_be);
        }
      }
    }
    return verdict;
  }

  void inject(Injection injection, void* buffer, uint64_t count) const override {
    if (injection != Injection::percent || count == 0) return;
    auto bits = bits_of(stored_at<Stored>(buffer, count / 2));
    bits = static_cast<decltype(bits)>(bits + bits / 100 + 1);
    store_at(buffer, count / 2, bits);
  }

  double relative_bound() const override { return 0; }

 private:
  std::vector<Stored> expected_;
};

template <class T>
T combine_integers(tutti_op_t op, T a, T b) {
  switch (op) {
    case TUTTI_PROD:
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case TUTTI_MIN:
      return std::min(a, b);
    case TUTTI_MAX:
      return std::max(a, b);
    default:
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}

/// Any bits; for products odd ones, of which none is zero however many there are.
template <class T>
T integer_input(tutti_op_t op, uint32_t rank, uint64_t index) {
  const T value = random_stored<T>(rank, index);
  return op == TUTTI_PROD ? static_cast<T>(value | 1) : value;
}

template <class T>
std::unique_ptr<TestData> make_integer_reduction(const CheckCase& check_case) {
  std::vector<T> input(table_length(check_case));
  std::vector<T> expected(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = integer_input<T>(check_case.op, check_case.rank, i);
    T value = integer_input<T>(check_case.op, 0, i);
    for (uint32_t rank = 1; rank < check_case.rank_count; ++rank) {
      value = combine_integers(check_case.op, value, integer_input<T>(check_case.op, rank, i));
    }
    if (check_case.op == TUTTI_AVG) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(check_case.rank_count));
    }
    expected[i] = value;
  }
  return std::make_unique<ExactData<T>>(std::move(input), std::move(expected));
}

template <class Type>
std::unique_ptr<TestData> make_float_extreme(const CheckCase& check_case) {
  using Stored = typename Type::Stored;
  const auto value_of = [](uint32_t rank, uint64_t index) {
    return Type::narrow((fraction_of(random_bits(rank, index)) - 0.5) * 1000);
  };
  std::vector<Stored> input(table_length(check_case));
  std::vector<Stored> expected(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = value_of(check_case.rank, i);
    auto extreme = Type::widen(value_of(0, i));
    for (uint32_t rank = 1; rank < check_case.rank_count; ++rank) {
      const auto value = Type::widen(value_of(rank, i));
      extreme = check_case.op == TUTTI_MIN ? std::min(extreme, value) : std::max(extreme, value);
    }
    expected[i] = Type::narrow(extreme);
  }
  return std::make_unique<ExactData<Stored>>(std::move(input), std::move(expected));
}

template <class Stored>
std::unique_ptr<TestData> make_copy(const CheckCase& check_case) {
  std::vector<Stored> input(table_length(check_case));
  std::vector<Stored> expected(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = random_stored<Stored>(check_case.rank, i);
    expected[i] = random_stored<Stored>(check_case.source, i);
  }
  return std::make_unique<ExactData<Stored>>(std::move(input), std::move(expected));
}

// ---- where results are rounded

template <class Type>
class RoundedData final : public TableData<typename Type::Stored> {
  using Stored = typename Type::Stored;
  using Exact = typename Type::Exact;

 public:
  RoundedData(std::vector<Stored> input, std::vector<Exact> expected, double bound)
      : expected_(std::move(expected)), bound_(bound) {
    this->input_ = std::move(input);
  }

  Verdict judge(const void* buffer, uint64_t count) const override {
    Verdict verdict;
    for (uint64_t at = 0; at < count; at += expected_.size()) {
      const auto length = static_cast<size_t>(std::min<uint64_t>(expected_.size(), count - at));
      const auto* got = static_cast<const std::byte*>(buffer) + at * sizeof(Stored);
      for (size_t i = 0; i < length; ++i) {
        const Exact is = Type::widen(stored_at<Stored>(got, i));
        const Exact allowed = expected_[i] * static_cast<Exact>(bound_);  // all results are positive
        if (std::fabs(is - expected_[i]) <= allowed) continue;            // false for NaN
        if (verdict.wrong++ == 0) {
          verdict.first_wrong = at + i;
          verdict.explanation = fmt::format("got {:.17g}, expected {:.17g} +- {:.3g}", static_cast<double>(is),
                                            static_cast<double>(expected_[i]), static_cast<double>(allowed));
        }
      }
    }
    return verdict;
  }

  void inject(Injection injection, void* buffer, uint64_t count) const override {
    if (injection == Injection::none || count == 0) return;
    const auto before = stored_at<Stored>(buffer, count / 2);
    // Positive floats follow each other as their bits do.
    auto bits = bits_of(before);
    if (injection == Injection::ulp) {
      ++bits;
    } else {
      const Exact target = Type::widen(before) * static_cast<Exact>(1.01);
      bits = bits_of(Type::narrow(target));
      if (Type::widen(std::bit_cast<Stored>(bits)) < target) ++bits;
    }
    store_at(buffer, count / 2, bits);
  }

  double relative_bound() const override { return bound_; }

 private:
  std::vector<Exact> expected_;
  double bound_;
};

/// The contribution of a rank. Positive, so that no sum loses its leading digits. See check.hpp for the 16-bit types.
template <class Type>
typename Type::Stored rounded_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  using Exact = typename Type::Exact;
  const uint64_t bits = random_bits(rank, index);
  const uint32_t ranks = check_case.rank_count;
  const bool product = check_case.op == TUTTI_PROD;
  if constexpr (sizeof(typename Type::Stored) == 2) {
    // So many ranks contribute to one element that all partial results are exact; the others give 0 (a product's 1).
    const uint32_t limit = product ? 12 : 1u << info(check_case.dtype).significand_bits;
    const uint32_t stride = (ranks + limit - 1) / limit;
    const bool active = (rank + index) % stride == 0;
    if (product) return Type::narrow(!active ? 1.0 : (bits & 1) != 0 ? 2.0 : 0.5);
    const uint32_t largest = std::clamp<uint32_t>(limit / ranks, 1, 8);
    return Type::narrow(active ? static_cast<double>(1 + bits % largest) : 0.0);
  } else {
    const auto fraction = static_cast<Exact>(fraction_of(bits));
    if (!product) return Type::narrow(1 + fraction);
    return Type::narrow(1 + (fraction - static_cast<Exact>(0.5)) / static_cast<Exact>(ranks));
  }
}

/// Of 16-bit floats the sum is exact, so that the one rounding of the quotient, which tutti.h describes, is known as well.
template <class Type>
typename Type::Exact average(typename Type::Exact sum, uint32_t rank_count) {
  if constexpr (sizeof(typename Type::Stored) == 2) {
    return Type::widen(Type::narrow(static_cast<float>(sum) / static_cast<float>(rank_count)));
  } else {
    return sum / static_cast<typename Type::Exact>(rank_count);
  }
}

template <class Type>
std::unique_ptr<TestData> make_float_reduction(const CheckCase& check_case) {
  using Stored = typename Type::Stored;
  using Exact = typename Type::Exact;
  if (check_case.op == TUTTI_MIN || check_case.op == TUTTI_MAX) return make_float_extreme<Type>(check_case);
  std::vector<Stored> input(table_length(check_case));
  std::vector<Exact> expected(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    input[i] = rounded_input<Type>(check_case, check_case.rank, i);
    Exact value = Type::widen(rounded_input<Type>(check_case, 0, i));
    for (uint32_t rank = 1; rank < check_case.rank_count; ++rank) {
      const Exact term = Type::widen(rounded_input<Type>(check_case, rank, i));
      value = check_case.op == TUTTI_PROD ? value * term : value + term;
    }
    if (check_case.op == TUTTI_AVG) value = average<Type>(value, check_case.rank_count);
    expected[i] = value;
  }
  const double bound = relative_bound(Pattern::reduce, check_case.dtype, check_case.op, check_case.rank_count);
  return std::make_unique<RoundedData<Type>>(std::move(input), std::move(expected), bound);
}

template <class Type>
std::unique_ptr<TestData> make_for_float(const CheckCase& check_case) {
  if (check_case.pattern == Pattern::copy) return make_copy<typename Type::Stored>(check_case);
  return make_float_reduction<Type>(check_case);
}

template <class T>
std::unique_ptr<TestData> make_for_integer(const CheckCase& check_case) {
  if (check_case.pattern == Pattern::copy) return make_copy<T>(check_case);
  return make_integer_reduction<T>(check_case);
}

}  // namespace

double relative_bound(Pattern pattern, tutti_dtype_t dtype, tutti_op_t op, uint32_t rank_count) {
  const DTypeInfo& type = info(dtype);
  if (pattern == Pattern::copy || !type.is_float || op == TUTTI_MIN || op == TUTTI_MAX) return 0;
  const double unit_roundoff = std::ldexp(1.0, -static_cast<int>(type.significand_bits));
  double roundings = 0;
  if (type.size_bytes > 2) roundings = rank_count - 1.0 + (op == TUTTI_AVG ? 1 : 0);
  return (roundings + 2) * unit_roundoff;
}

std::unique_ptr<TestData> make_test_data(const CheckCase& check_case) {
  switch (check_case.dtype) {
    case TUTTI_INT8:
      return make_for_integer<int8_t>(check_case);
    case TUTTI_UINT8:
      return make_for_integer<uint8_t>(check_case);
    case TUTTI_INT16:
      return make_for_integer<int16_t>(check_case);
    case TUTTI_UINT16:
      return make_for_integer<uint16_t>(check_case);
    case TUTTI_INT32:
      return make_for_integer<int32_t>(check_case);
    case TUTTI_UINT32:
      return make_for_integer<uint32_t>(check_case);
    case TUTTI_INT64:
      return make_for_integer<int64_t>(check_case);
    case TUTTI_UINT64:
      return make_for_integer<uint64_t>(check_case);
    case TUTTI_FLOAT16:
      return make_for_float<F16>(check_case);
    case TUTTI_BFLOAT16:
      return make_for_float<Bf16>(check_case);
    case TUTTI_FLOAT32:
      return make_for_float<F32>(check_case);
    default:
      return make_for_float<F64>(check_case);
  }
}

}  // namespace tutti_perf
