// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "dtypes.hpp"
#include "floats.hpp"
#include "streams.hpp"

namespace tutti_perf {
namespace {

/// Pieces of [0, count) that lie in one run of a table of `length` elements in which element `first` is where it begins:
/// visit(index, place in the table, elements).
template <class Visit>
void for_runs(uint64_t count, uint64_t first, uint64_t length, Visit visit) {
  uint64_t place = length == 0 ? 0 : first % length;
  for (uint64_t at = 0; at < count;) {
    const uint64_t run = std::min(count - at, length - place);
    visit(at, place, run);
    at += run;
    place = 0;
  }
}

size_t table_length(const CheckCase& check_case) {
  return static_cast<size_t>(std::clamp<uint64_t>(check_case.longest, 1, kPeriod));
}

std::string hex_of(const std::byte* bytes, size_t count) {
  std::string text = "0x";
  while (count > 0) text += fmt::format("{:02x}", static_cast<unsigned>(bytes[--count]));  // the highest first
  return text;
}

// ---- where every bit counts

class ExactData final : public TestData {
 public:
  explicit ExactData(const CheckCase& check_case)
      : TestData(make_stream(check_case, check_case.rank, 0, table_length(check_case)), info(check_case.dtype).size_bytes),
        check_case_(check_case) {
    if (check_case.pattern == Pattern::reduce) reduced_ = make_exact_reduction(check_case, table_length(check_case));
  }

  Verdict judge(const void* buffer, uint64_t count, Origin origin) const override {
    if (check_case_.pattern == Pattern::reduce) return compare(buffer, count, reduced_, origin.first);
    const auto length = static_cast<size_t>(std::min(count, kPeriod));
    return compare(buffer, count, make_stream(check_case_, origin.source, origin.first, length), 0);
  }

  void inject(Injection injection, void* buffer, uint64_t count) const override {
    if (injection != Injection::percent || count == 0) return;
    std::byte* const element = static_cast<std::byte*>(buffer) + count / 2 * element_bytes();
    uint64_t bits = 0;
    std::memcpy(&bits, element, std::min(sizeof bits, element_bytes()));
    bits += bits / 100 + 1;
    std::memcpy(element, &bits, std::min(sizeof bits, element_bytes()));
  }

  double relative_bound() const override { return 0; }

 private:
  Verdict compare(const void* buffer, uint64_t count, const std::vector<std::byte>& expected, uint64_t first) const {
    Verdict verdict;
    const size_t width = element_bytes();
    for_runs(count, first, expected.size() / width, [&](uint64_t at, uint64_t place, uint64_t run) {
      const std::byte* const got = static_cast<const std::byte*>(buffer) + at * width;
      const std::byte* const wanted = expected.data() + place * width;
      if (std::memcmp(got, wanted, static_cast<size_t>(run * width)) == 0) return;
      for (uint64_t i = 0; i < run; ++i) {
        if (std::memcmp(got + i * width, wanted + i * width, width) == 0) continue;
        if (verdict.wrong++ != 0) continue;
        verdict.first_wrong = at + i;
        verdict.explanation =
            fmt::format("got bits {}, expected {} exactly", hex_of(got + i * width, width), hex_of(wanted + i * width, width));
      }
    });
    return verdict;
  }

  CheckCase check_case_;
  std::vector<std::byte> reduced_;
};

// ---- where results are rounded

/// Of real numbers, or of complex ones as two each.
template <class Type>
class RoundedData final : public TestData {
  using Stored = typename Type::Stored;
  using Exact = typename Type::Exact;
  using Bits = std::conditional_t<sizeof(Stored) == 8, uint64_t, std::conditional_t<sizeof(Stored) == 4, uint32_t, uint16_t>>;

 public:
  explicit RoundedData(const CheckCase& check_case)
      : TestData(make_stream(check_case, check_case.rank, 0, table_length(check_case)), info(check_case.dtype).size_bytes),
        parts_(info(check_case.dtype).kind == Kind::complex ? 2 : 1),
        bound_(tutti_perf::relative_bound(Pattern::reduce, check_case.dtype, check_case.op, check_case.rank_count)) {
    const auto exact = make_rounded_reduction(check_case, table_length(check_case));
    expected_.assign(exact.begin(), exact.end());
  }

  Verdict judge(const void* buffer, uint64_t count, Origin origin) const override {
    Verdict verdict;
    uint64_t last_wrong = UINT64_MAX;
    for_runs(count * parts_, origin.first * parts_, expected_.size(), [&](uint64_t at, uint64_t place, uint64_t run) {
      for (uint64_t i = 0; i < run; ++i) {
        const Exact is = Type::widen(stored_at<Stored>(buffer, at + i));
        const Exact should_be = expected_[place + i];
        const Exact allowed = std::fabs(should_be) * static_cast<Exact>(bound_);
        if (std::fabs(is - should_be) <= allowed) continue;  // false for NaN
        const uint64_t element = (at + i) / parts_;
        if (element == last_wrong) continue;  // the other part has been counted
        last_wrong = element;
        if (verdict.wrong++ != 0) continue;
        verdict.first_wrong = element;
        verdict.explanation = fmt::format("got {:.17g}, expected {:.17g} +- {:.3g}", static_cast<double>(is),
                                          static_cast<double>(should_be), static_cast<double>(allowed));
      }
    });
    return verdict;
  }

  void inject(Injection injection, void* buffer, uint64_t count) const override {
    if (injection == Injection::none || (injection == Injection::ulp && bound_ == 0) || count == 0) return;
    const uint64_t at = count / 2 * parts_;
    const auto before = stored_at<Stored>(buffer, at);
    // Floats of one sign follow each other as their bits do; after zero comes the smallest denormal number.
    auto bits = std::bit_cast<Bits>(before);
    if (injection == Injection::ulp) {
      if (Type::widen(before) != 0) ++bits;
    } else {
      const Exact target = Type::widen(before) * static_cast<Exact>(1.01);
      bits = std::bit_cast<Bits>(Type::narrow(target));
      if (std::fabs(Type::widen(std::bit_cast<Stored>(bits))) < std::fabs(target) || target == 0) ++bits;
    }
    store_at(buffer, at, std::bit_cast<Stored>(bits));
  }

  double relative_bound() const override { return bound_; }

 private:
  uint64_t parts_;
  double bound_;
  std::vector<Exact> expected_;
};

}  // namespace

void TestData::fill(void* buffer, uint64_t count, uint64_t first) const {
  for_runs(count, first, stream_.size() / element_bytes_, [&](uint64_t at, uint64_t place, uint64_t run) {
    std::memcpy(static_cast<std::byte*>(buffer) + at * element_bytes_, stream_.data() + place * element_bytes_,
                static_cast<size_t>(run) * element_bytes_);
  });
}

void TestData::poison(void* buffer, uint64_t count) const {
  if (count != 0) std::memset(buffer, 0xd5, static_cast<size_t>(count) * element_bytes_);
}

double relative_bound(Pattern pattern, tutti_dtype_t dtype, tutti_op_t op, uint32_t rank_count) {
  const DTypeInfo& type = info(dtype);
  if (pattern == Pattern::copy || is_exact(dtype, op) || (type.kind == Kind::complex && op == TUTTI_PROD)) return 0;
  const double unit_roundoff = std::ldexp(1.0, -static_cast<int>(type.significand_bits));
  double roundings = 0;
  if (type.size_bytes > 2) roundings = rank_count - 1.0 + (op == TUTTI_AVG ? 1 : 0);
  return (roundings + 2) * unit_roundoff;
}

std::unique_ptr<TestData> make_test_data(const CheckCase& check_case) {
  if (check_case.pattern == Pattern::copy || is_exact(check_case.dtype, check_case.op)) {
    return std::make_unique<ExactData>(check_case);
  }
  return visit_float(check_case.dtype, [&](auto type) -> std::unique_ptr<TestData> {
    using Type = decltype(type);
    if constexpr (sizeof(typename Type::Stored) == 1) {
      return nullptr;  // these are exact
    } else {
      return std::make_unique<RoundedData<Type>>(check_case);
    }
  });
}

}  // namespace tutti_perf
