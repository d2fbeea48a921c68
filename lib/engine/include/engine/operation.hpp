// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "engine/execution.hpp"

namespace tutti {

/// One call in progress. Created by the caller of Engine, kept in place until done() is true. All but done() belongs to the driver
/// from submission to completion.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Called once, when it is its turn. Touches no peer.
  virtual Status begin() { return Status(); }
  /// As far as possible without blocking.
  virtual Execution::Outcome advance(bool& moved) = 0;
  virtual Status failure() const = 0;
  /// World ranks that it waits for.
  virtual std::vector<uint32_t> waiting_for() const = 0;
  /// The group's channels were closed under it.
  virtual void abandon() noexcept = 0;

  bool done() const noexcept { return done_.load(std::memory_order_seq_cst); }
  /// Valid once done.
  const Status& result() const noexcept { return result_; }
  void reset(Deadline deadline) {
    done_.store(false, std::memory_order_relaxed);
    result_ = Status();
    deadline_ = deadline;
    begun_ = false;
    next_ = nullptr;
  }

 private:
  friend class Engine;
  friend class Group;
  friend class PointToPoint;
  std::atomic<bool> done_{false};
  bool begun_ = false;
  Status result_;
  Deadline deadline_;
  Operation* next_ = nullptr;
};

/// A collective: one execution of a plan.
class CollectiveOperation final : public Operation {
 public:
  void bind(Plan& plan, const Bindings& bindings) {
    plan_ = &plan;
    bindings_ = bindings;
  }
  Status begin() override { return execution_.start(*plan_, bindings_); }
  Execution::Outcome advance(bool& moved) override { return execution_.advance(moved); }
  Status failure() const override { return execution_.status(); }
  std::vector<uint32_t> waiting_for() const override { return execution_.waiting_for(); }
  void abandon() noexcept override { execution_.abandon(); }

 private:
  Plan* plan_ = nullptr;
  Bindings bindings_;
  Execution execution_;
};

}  // namespace tutti
