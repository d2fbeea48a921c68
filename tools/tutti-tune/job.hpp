// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "schedule/shape.hpp"
#include "tutti/tutti.h"

namespace tutti::tune {

/// Throws RunError "what: TUTTI_ERR_...: the library's message" unless status is TUTTI_OK.
void require(tutti_status_t status, const std::string& what);

/// This process's place in the job, and two communicators of all ranks: one to measure, one to talk about it.
class Job {
 public:
  /// Collective. Throws UsageError for a bad setting, RunError.
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return shape_.size; }
  uint32_t nodes() const noexcept { return nodes_; }
  const Shape& shape() const noexcept { return shape_; }
  /// TuningKey::links of all.
  const std::string& links() const noexcept { return links_; }
  tutti_comm_t measured() const noexcept { return measured_; }

  /// The largest over all ranks, of each. Collective, as all below.
  void largest(double* values, uint64_t count) const;
  void barrier() const;
  /// Everybody gets rank 0's.
  void share(std::string& text) const;
  void abort() const noexcept;

 private:
  void find_shape();
  void find_links();

  tutti_comm_t measured_ = nullptr;
  tutti_comm_t talk_ = nullptr;
  uint32_t rank_ = 0;
  uint32_t nodes_ = 1;
  Shape shape_;
  std::string links_;
};

}  // namespace tutti::tune
