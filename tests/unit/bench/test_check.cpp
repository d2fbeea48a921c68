// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The judgement of results: what it must let pass and what it must find.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "check.hpp"
#include "dtypes.hpp"
#include "kernels/kernels.hpp"
#include "streams.hpp"

using namespace tutti_perf;

namespace {

constexpr uint64_t kCount = 3 * kPeriod + 17;

/// Contributions of all ranks, added up as a library might: in the order given, each partial result rounded to the type.
class Reduction {
 public:
  Reduction(tutti_dtype_t dtype, tutti_op_t op, uint32_t rank_count, uint64_t longest = kCount)
      : dtype_(dtype), op_(op), rank_count_(rank_count) {
    for (uint32_t rank = 0; rank < rank_count; ++rank) {
      CheckCase one;
      one.dtype = dtype;
      one.op = op;
      one.rank_count = rank_count;
      one.rank = rank;
      one.longest = longest;
      data_.push_back(make_test_data(one));
    }
  }

  const TestData& data() const { return *data_.back(); }

  std::vector<std::byte> result(const std::vector<uint32_t>& order, uint64_t count) const {
    std::vector<std::vector<std::byte>> inputs;
    for (const auto& data : data_) {
      inputs.emplace_back(count * info(dtype_).size_bytes);
      data->fill(inputs.back().data(), count);
    }
    std::vector<std::byte> result(count * info(dtype_).size_bytes);
    for (uint64_t i = 0; i < count; ++i) {
      switch (dtype_) {
        case TUTTI_INT8:
          reduce_integer<int8_t>(inputs, order, i, result);
          break;
        case TUTTI_UINT64:
          reduce_integer<uint64_t>(inputs, order, i, result);
          break;
        case TUTTI_INT32:
          reduce_integer<int32_t>(inputs, order, i, result);
          break;
        case TUTTI_FLOAT16:
          reduce_half(inputs, order, i, result, widen_f16, narrow_f16);
          break;
        case TUTTI_BFLOAT16:
          reduce_half(inputs, order, i, result, widen_bf16, narrow_bf16);
          break;
        case TUTTI_FLOAT32:
          reduce_float<float>(inputs, order, i, result);
          break;
        default:
          reduce_float<double>(inputs, order, i, result);
          break;
      }
    }
    return result;
  }

 private:
  using Inputs = std::vector<std::vector<std::byte>>;

  template <class T>
  static T at(const std::vector<std::byte>& buffer, uint64_t index) {
    T value;
    std::memcpy(&value, buffer.data() + index * sizeof value, sizeof value);
    return value;
  }
  template <class T>
  static void put(std::vector<std::byte>& buffer, uint64_t index, T value) {
    std::memcpy(buffer.data() + index * sizeof value, &value, sizeof value);
  }

  template <class T>
  T combine(T a, T b) const {
    if (op_ == TUTTI_MIN) return a < b ? a : b;
    if (op_ == TUTTI_MAX) return a > b ? a : b;
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<uint64_t>(a);
      const auto y = static_cast<uint64_t>(b);
      return static_cast<T>(op_ == TUTTI_PROD ? x * y : x + y);
    } else {
      return op_ == TUTTI_PROD ? a * b : a + b;
    }
  }

  template <class T>
  void reduce_integer(const Inputs& inputs, const std::vector<uint32_t>& order, uint64_t i,
                      std::vector<std::byte>& result) const {
    T value = at<T>(inputs[order[0]], i);
    for (size_t k = 1; k < order.size(); ++k) value = combine(value, at<T>(inputs[order[k]], i));
    if (op_ == TUTTI_AVG) {
      if constexpr (std::is_signed_v<T>) {
        value = static_cast<T>(value / static_cast<int64_t>(rank_count_));
      } else {
        value = static_cast<T>(value / rank_count_);
      }
    }
    put(result, i, value);
  }

  template <class T>
  void reduce_float(const Inputs& inputs, const std::vector<uint32_t>& order, uint64_t i, std::vector<std::byte>& result) const {
    T value = at<T>(inputs[order[0]], i);
    for (size_t k = 1; k < order.size(); ++k) value = combine(value, at<T>(inputs[order[k]], i));
    if (op_ == TUTTI_AVG) value /= static_cast<T>(rank_count_);
    put(result, i, value);
  }

  template <class Widen, class Narrow>
  void reduce_half(const Inputs& inputs, const std::vector<uint32_t>& order, uint64_t i, std::vector<std::byte>& result,
                   Widen widen, Narrow narrow) const {
    float value = widen(at<uint16_t>(inputs[order[0]], i));
    for (size_t k = 1; k < order.size(); ++k) {
      const float next = combine(value, widen(at<uint16_t>(inputs[order[k]], i)));
      // The last step keeps f32 for the division; all before it travel as 16 bits.
      value = k + 1 < order.size() ? widen(narrow(next)) : next;
    }
    if (op_ == TUTTI_AVG) value /= static_cast<float>(rank_count_);
    put(result, i, narrow(value));
  }

  tutti_dtype_t dtype_;
  tutti_op_t op_;
  uint32_t rank_count_;
  std::vector<std::unique_ptr<TestData>> data_;
};

std::vector<uint32_t> shuffled(uint32_t rank_count, std::mt19937& random) {
  std::vector<uint32_t> order(rank_count);
  for (uint32_t rank = 0; rank < rank_count; ++rank) order[rank] = rank;
  for (uint32_t rank = rank_count; rank > 1; --rank) std::swap(order[rank - 1], order[random() % rank]);
  return order;
}

constexpr tutti_dtype_t kSampleTypes[] = {TUTTI_INT8,     TUTTI_INT32,   TUTTI_UINT64, TUTTI_FLOAT16,
                                          TUTTI_BFLOAT16, TUTTI_FLOAT32, TUTTI_FLOAT64};
constexpr tutti_op_t kOps[] = {TUTTI_SUM, TUTTI_PROD, TUTTI_MIN, TUTTI_MAX, TUTTI_AVG};

}  // namespace

TEST_CASE("right results pass in any order of the ranks, with one ulp of noise too; one percent never does") {
  std::mt19937 random(1);
  for (const tutti_dtype_t dtype : kSampleTypes) {
    for (const tutti_op_t op : kOps) {
      for (const uint32_t ranks : {1u, 2u, 3u, 4u, 7u, 17u, 64u}) {
        CAPTURE(info(dtype).name, op_name(op), ranks);
        const uint64_t count = ranks > 8 ? 101 : 2001;
        const Reduction reduction(dtype, op, ranks, count);
        const auto right = reduction.result(shuffled(ranks, random), count);
        const Verdict verdict = reduction.data().judge(right.data(), count);
        CAPTURE(verdict.explanation, verdict.first_wrong);
        CHECK(verdict.wrong == 0);
        auto noisy = right;
        reduction.data().inject(Injection::ulp, noisy.data(), count);
        CHECK(reduction.data().judge(noisy.data(), count).wrong == 0);
        auto corrupt = right;
        reduction.data().inject(Injection::percent, corrupt.data(), count);
        const Verdict found = reduction.data().judge(corrupt.data(), count);
        CHECK(found.wrong == 1);
        CHECK(found.first_wrong == count / 2);
        CHECK_THAT(found.explanation, Catch::Contains("expected"));
      }
    }
  }
}

TEST_CASE("one percent is found at every position of the data, and noise passes there") {
  for (const tutti_dtype_t dtype : {TUTTI_FLOAT16, TUTTI_BFLOAT16, TUTTI_FLOAT32, TUTTI_FLOAT64}) {
    for (const tutti_op_t op : {TUTTI_SUM, TUTTI_PROD, TUTTI_AVG}) {
      for (const uint32_t ranks : {3u, 300u}) {
        CAPTURE(info(dtype).name, op_name(op), ranks);
        const uint64_t longest = ranks > 8 ? 40 : 400;
        const Reduction reduction(dtype, op, ranks, longest);
        std::mt19937 random(2);
        const auto right = reduction.result(shuffled(ranks, random), longest);
        uint64_t missed = 0;
        uint64_t accused = 0;
        for (uint64_t count = 1; count <= longest; ++count) {
          auto corrupt = right;
          reduction.data().inject(Injection::percent, corrupt.data(), count);
          if (reduction.data().judge(corrupt.data(), count).wrong != 1) ++missed;
          auto noisy = right;
          reduction.data().inject(Injection::ulp, noisy.data(), count);
          if (reduction.data().judge(noisy.data(), count).wrong != 0) ++accused;
        }
        CHECK(missed == 0);
        CHECK(accused == 0);
      }
    }
  }
}

TEST_CASE("what usually goes wrong is found") {
  const uint32_t ranks = 4;
  for (const tutti_dtype_t dtype : kSampleTypes) {
    for (const tutti_op_t op : kOps) {
      CAPTURE(info(dtype).name, op_name(op));
      const Reduction reduction(dtype, op, ranks);
      const TestData& data = reduction.data();
      const uint64_t bytes = kCount * info(dtype).size_bytes;
      const auto right = reduction.result({0, 1, 2, 3}, kCount);
      CHECK(data.judge(right.data(), kCount).wrong == 0);
      SECTION("nothing was written") {
        auto buffer = right;
        data.poison(buffer.data(), kCount);
        CHECK(data.judge(buffer.data(), kCount).wrong > kCount / 2);
      }
      SECTION("the last element was not written") {
        auto buffer = right;
        std::vector<std::byte> poisoned(bytes);
        data.poison(poisoned.data(), kCount);
        const size_t last = bytes - info(dtype).size_bytes;
        std::memcpy(buffer.data() + last, poisoned.data() + last, info(dtype).size_bytes);
        if (std::memcmp(buffer.data(), right.data(), bytes) != 0) {
          CHECK(data.judge(buffer.data(), kCount).wrong == 1);
          CHECK(data.judge(buffer.data(), kCount).first_wrong == kCount - 1);
        }
      }
      SECTION("the input was left in place") {
        auto buffer = right;
        data.fill(buffer.data(), kCount);
        CHECK(data.judge(buffer.data(), kCount).wrong > 100);
      }
      SECTION("a block stands where the next should be") {
        for (const size_t block : {size_t{256}, size_t{4096}, size_t{65536}}) {
          if (2 * block > bytes) continue;
          auto buffer = right;
          std::memcpy(buffer.data(), right.data() + block, block);
          CHECK(data.judge(buffer.data(), kCount).wrong > 0);
        }
      }
    }
  }
}

TEST_CASE("one rank's contribution missing or doubled is found") {
  for (const tutti_dtype_t dtype : {TUTTI_INT32, TUTTI_FLOAT16, TUTTI_BFLOAT16, TUTTI_FLOAT32, TUTTI_FLOAT64}) {
    for (const uint32_t ranks : {2u, 16u}) {
      CAPTURE(info(dtype).name, ranks);
      const Reduction reduction(dtype, TUTTI_SUM, ranks, 1000);
      std::vector<uint32_t> order(ranks);
      for (uint32_t rank = 0; rank < ranks; ++rank) order[rank] = rank;
      auto missing = order;
      missing.pop_back();
      CHECK(reduction.data().judge(reduction.result(missing, 1000).data(), 1000).wrong > 900);
      auto doubled = order;
      doubled.push_back(0);
      CHECK(reduction.data().judge(reduction.result(doubled, 1000).data(), 1000).wrong > 900);
    }
  }
}

TEST_CASE("NaN and infinity in a result are wrong") {
  const Reduction reduction(TUTTI_FLOAT32, TUTTI_SUM, 2);
  std::vector<float> buffer(10);
  const auto right = reduction.result({0, 1}, 10);
  std::memcpy(buffer.data(), right.data(), right.size());
  buffer[3] = NAN;
  buffer[4] = INFINITY;
  buffer[5] = -buffer[5];
  const Verdict verdict = reduction.data().judge(buffer.data(), 10);
  CHECK(verdict.wrong == 3);
  CHECK(verdict.first_wrong == 3);
}

TEST_CASE("copies: every bit counts, and the source is what matters") {
  for (const DTypeInfo& type : all_dtypes()) {
    CAPTURE(type.name);
    CheckCase as_source;
    as_source.pattern = Pattern::copy;
    as_source.dtype = type.dtype;
    as_source.rank_count = 3;
    as_source.rank = 2;
    as_source.longest = kCount;
    CheckCase as_other = as_source;
    as_other.rank = 0;
    const auto source = make_test_data(as_source);
    const auto other = make_test_data(as_other);
    std::vector<std::byte> buffer(kCount * type.size_bytes);
    source->fill(buffer.data(), kCount);
    CHECK(other->judge(buffer.data(), kCount, {2, 0}).wrong == 0);
    buffer[kCount / 3] ^= std::byte{1};
    CHECK(other->judge(buffer.data(), kCount, {2, 0}).wrong == 1);
    other->fill(buffer.data(), kCount);
    CHECK(other->judge(buffer.data(), kCount, {2, 0}).wrong > kCount / 2);
    source->fill(buffer.data(), 100, kPeriod - 50);
    CHECK(other->judge(buffer.data(), 100, {2, kPeriod - 50}).wrong == 0);
    CHECK(other->judge(buffer.data(), 100, {2, kPeriod - 49}).wrong > 50);
    CHECK(other->relative_bound() == 0);
  }
}

TEST_CASE("no elements: nothing to fill, nothing wrong") {
  CheckCase empty;
  empty.longest = 0;
  const auto data = make_test_data(empty);
  data->fill(nullptr, 0);
  data->poison(nullptr, 0);
  data->inject(Injection::percent, nullptr, 0);
  CHECK(data->judge(nullptr, 0).wrong == 0);
}

TEST_CASE("the bounds") {
  CHECK(relative_bound(Pattern::reduce, TUTTI_INT32, TUTTI_SUM, 4) == 0);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT32, TUTTI_MAX, 4) == 0);
  CHECK(relative_bound(Pattern::copy, TUTTI_FLOAT32, TUTTI_SUM, 4) == 0);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT32, TUTTI_SUM, 4) == 5 * 0x1p-24);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT32, TUTTI_AVG, 4) == 6 * 0x1p-24);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT64, TUTTI_PROD, 4) == 5 * 0x1p-53);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT16, TUTTI_SUM, 100) == 2 * 0x1p-11);
  CHECK(relative_bound(Pattern::reduce, TUTTI_BFLOAT16, TUTTI_AVG, 100) == 2 * 0x1p-8);
  CHECK(relative_bound(Pattern::reduce, TUTTI_FLOAT32, TUTTI_SUM, 160000) < 0.01);
}

namespace {

/// What the library's own reference makes of the contributions of ranks 0 to contributors - 1.
std::vector<std::byte> fold_by_reference(const CheckCase& check_case, uint64_t count) {
  const auto dtype = static_cast<tutti::DType>(check_case.dtype);
  const uint64_t bytes = count * tutti::size_bytes(dtype);
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> sources;
  const uint32_t contributors = check_case.contributors == 0 ? check_case.rank_count : check_case.contributors;
  for (uint32_t rank = 0; rank < contributors; ++rank) {
    inputs.push_back(make_stream(check_case, rank, 0, count));
    if (check_case.op == kScaledSum) {
      tutti::scale(dtype, inputs.back().data(), inputs.back().data(), count, scale_factor(rank), tutti::CpuLevel::scalar);
    }
  }
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<std::byte> result(bytes);
  void* to = result.data();
  const auto op = check_case.op == kScaledSum ? tutti::Op::sum : static_cast<tutti::Op>(check_case.op);
  tutti::fold_function(dtype, op, tutti::CpuLevel::scalar)(
      {&to, sources.data(), 1, static_cast<uint32_t>(sources.size()), count, check_case.rank_count});
  return result;
}

}  // namespace

TEST_CASE("every type and operation: what the reference kernels give is right, and one percent of error is found") {
  for (const DTypeInfo& type : all_dtypes()) {
    for (const OpInfo& op : all_ops()) {
      if (op.op != kScaledSum) {
        CHECK(defined(type.dtype, op.op) == tutti::defined(static_cast<tutti::DType>(type.dtype), static_cast<tutti::Op>(op.op)));
      }
      if (!defined(type.dtype, op.op)) continue;
      for (const uint32_t ranks : {1u, 2u, 3u, 17u, 130u}) {
        for (const uint32_t contributors : {ranks, (ranks + 1) / 2}) {
          if (op.op == TUTTI_AVG && contributors != ranks) continue;
          CAPTURE(type.name, op.name, ranks, contributors);
          CheckCase one;
          one.dtype = type.dtype;
          one.op = op.op;
          one.rank_count = ranks;
          one.contributors = contributors;
          one.longest = 60;
          const auto data = make_test_data(one);
          auto result = fold_by_reference(one, 60);
          const Verdict verdict = data->judge(result.data(), 60);
          CAPTURE(verdict.first_wrong, verdict.explanation);
          CHECK(verdict.wrong == 0);
          CHECK(data->judge(result.data() + type.size_bytes, 59, {0, 1}).wrong == 0);
          data->inject(Injection::ulp, result.data(), 60);
          CHECK(data->judge(result.data(), 60).wrong == 0);
          data->inject(Injection::percent, result.data(), 60);
          CHECK(data->judge(result.data(), 60).wrong == 1);
        }
      }
    }
  }
}

TEST_CASE("8-bit floats: all values survive, and halves round to even") {
  for (uint32_t code = 0; code < 256; ++code) {
    const auto bits = static_cast<uint8_t>(code);
    if (!std::isnan(widen_e4m3(bits)) && narrow_e4m3(widen_e4m3(bits)) != bits) FAIL("e4m3 " << code);
    if (!std::isnan(widen_e5m2(bits)) && narrow_e5m2(widen_e5m2(bits)) != bits) FAIL("e5m2 " << code);
  }
  CHECK(widen_e4m3(0x7e) == 448.0f);
  CHECK(widen_e4m3(0x01) == 0x1p-9f);
  CHECK(std::isnan(widen_e4m3(0xff)));
  CHECK(narrow_e4m3(464.0f) == 0x7e);
  CHECK(narrow_e4m3(465.0f) == 0x7f);
  CHECK(widen_e5m2(0x7b) == 57344.0f);
  CHECK(widen_e5m2(0xfc) == -INFINITY);
  CHECK(narrow_e5m2(61440.0f) == 0x7c);
  CHECK(narrow_e5m2(1.125f) == 0x3c);
}

TEST_CASE("16-bit floats: all values survive, and halves round to even") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!std::isnan(widen_f16(half)) && narrow_f16(widen_f16(half)) != half) FAIL("float16 " << bits);
    if (!std::isnan(widen_bf16(half)) && narrow_bf16(widen_bf16(half)) != half) FAIL("bfloat16 " << bits);
  }
  CHECK(widen_f16(0x3c00) == 1.0f);
  CHECK(widen_f16(0x0001) == 0x1p-24f);
  CHECK(widen_f16(0xfbff) == -65504.0f);
  CHECK(narrow_f16(2049.0f) == 0x6800);
  CHECK(narrow_f16(2051.0f) == 0x6802);
  CHECK(narrow_f16(65519.0f) == 0x7bff);
  CHECK(narrow_f16(65520.0f) == 0x7c00);
  CHECK(narrow_f16(0x1p-25f) == 0);
  CHECK(widen_bf16(0x3f80) == 1.0f);
  CHECK(narrow_bf16(257.0f) == 0x4380);
}
