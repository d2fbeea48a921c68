// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "schedule/schedule.hpp"
#include "select/tuning.hpp"

namespace tutti::tune {

/// One call that is measured.
struct Point {
  uint64_t bytes = 0;  ///< of the whole vector: what the choice depends on
  uint64_t count = 0;  ///< as the C ABI wants it
};

struct Sizes {
  uint64_t first_bytes = 8;
  uint64_t last_bytes = 64ull << 20;
  uint64_t factor = 4;
};
std::vector<Point> points_of(Collective collective, uint32_t ranks, uint32_t element_bytes, const Sizes& sizes);

/// Set by a signal; all ranks stop at the same block when one of them has got it.
extern volatile std::sig_atomic_t g_interrupted;

/// Thrown on all ranks when one of them was interrupted.
struct Interrupted {};

/// Makes and times calls of one collective with elements of one class.
class Bench {
 public:
  Bench(const Job& job, Collective collective, TypeClass type, uint64_t max_bytes);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const Job& job() const noexcept { return job_; }
  Collective collective() const noexcept { return collective_; }
  TypeClass type() const noexcept { return type_; }
  uint32_t element_bytes() const noexcept { return element_bytes_; }

  /// False, on all ranks: it cannot be used here.
  bool force(const std::string& algorithm);
  /// What Tutti chooses, in the same form; forces nothing any more.
  std::string choice(const Point& point);
  /// As often as it takes for calls to find all that they need.
  void warm_up(const Point& point);
  /// Nanoseconds a call, of the slowest rank. Throws Interrupted. Calls do not overlap as those of a pipeline would, whose time
  /// would not be that of one: each has another root than the one before, and after a scan the last rank tells the first.
  double time(const Point& point, uint64_t calls);

 private:
  void call(const Point& point);
  bool is_rooted() const noexcept;
  void tell_first();

  const Job& job_;
  Collective collective_;
  TypeClass type_;
  tutti_dtype_t dtype_;
  tutti_op_t op_ = TUTTI_SUM;
  uint32_t element_bytes_;
  std::vector<std::byte> send_;
  std::vector<std::byte> recv_;
  int root_ = 0;
};

/// Of the type that stands for its class.
uint32_t element_bytes(TypeClass type);

}  // namespace tutti::tune
