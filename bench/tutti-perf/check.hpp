// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/tutti.h"

/// Test data and the judgement of results.
///
/// Each rank has an endless stream of elements; what a buffer holds is a piece of it. The stream repeats after kPeriod elements,
/// a prime, so that no displacement by a chunk, a block or a power of two goes unseen, and so that the expected result is
/// computed once for all sizes. A result is a piece of the stream of one rank, or of the streams of ranks 0 to n-1 reduced.
///
/// A result is judged by what can happen to it:
///
///   copies; integers, bool, bytes, pairs; min, max; products of complex numbers; 8-bit floats: every bit has to be right.
///   float32, float64, complex: sum, prod, scaled, avg     |result - exact| <= (p + 1) u |exact|, for avg (p + 2) u |exact|
///   float16, bfloat16: the same                           |result - exact| <= 2 u |exact|
///
/// with p ranks and u = 2^-24, 2^-53, 2^-11, 2^-8, the unit roundoff. p terms are combined by p - 1 operations in any order; each
/// adds a relative error of at most u, as all terms are positive; the division of avg adds one more; 2 u, at least one unit in
/// the last place, is what the check allows beside that. With 16-bit floats p - 1 roundings could come to more than 1 %: their
/// test data are small integers (for prod powers of two), whose partial results are exact in every order. So noise of one unit in
/// the last place passes, and an error of 1 % never does while p < 160000. Of 8-bit floats one unit is more than 1 %: their data
/// are as those of 16 bits, and no noise is allowed. The products of complex numbers would lose leading digits: they are of units
/// (1, i, -1, -i) and powers of two.
namespace tutti_perf {

inline constexpr uint64_t kPeriod = 16381;

enum class Pattern : uint8_t { reduce, copy };

struct CheckCase {
  Pattern pattern = Pattern::reduce;
  tutti_dtype_t dtype = TUTTI_FLOAT32;
  tutti_op_t op = TUTTI_SUM;  // reduce
  uint32_t rank_count = 1;
  uint32_t rank = 0;           // whose stream fill() gives
  uint32_t contributors = 0;   // reduce: ranks 0 to this less one; 0: all
  uint64_t longest = kPeriod;  // no stream is asked for beyond; short tables are enough then
};

/// What to do to a result before it is judged, to test the judgement.
enum class Injection : uint8_t { none, ulp, percent };

/// Where a result comes from: `first` is its place in the stream. `source` is of copies alone.
struct Origin {
  uint32_t source = 0;
  uint64_t first = 0;
};

struct Verdict {
  uint64_t wrong = 0;
  uint64_t first_wrong = 0;  // its index
  std::string explanation;   // got, expected, allowed; "" when nothing is wrong
};

class TestData {
 public:
  virtual ~TestData() = default;
  /// This rank's stream from element `first` on.
  void fill(void* buffer, uint64_t count, uint64_t first = 0) const;
  /// Something that is no result.
  void poison(void* buffer, uint64_t count) const;
  virtual Verdict judge(const void* buffer, uint64_t count, Origin origin = {}) const = 0;
  /// Changes the element in the middle. ulp: up by one unit in the last place where the result may be rounded, else nothing.
  /// percent: by at least 1 % and one unit; where every bit counts, of the number that the bits are.
  virtual void inject(Injection injection, void* buffer, uint64_t count) const = 0;
  /// The largest relative error allowed; 0: exact.
  virtual double relative_bound() const = 0;

 protected:
  TestData(std::vector<std::byte> stream, size_t element_bytes) : stream_(std::move(stream)), element_bytes_(element_bytes) {}
  size_t element_bytes() const { return element_bytes_; }

 private:
  std::vector<std::byte> stream_;  // a period, or all that is asked for
  size_t element_bytes_;
};

std::unique_ptr<TestData> make_test_data(const CheckCase& check_case);

/// The bound of the table above.
double relative_bound(Pattern pattern, tutti_dtype_t dtype, tutti_op_t op, uint32_t rank_count);

}  // namespace tutti_perf
