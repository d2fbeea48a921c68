// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/types.hpp"
#include "engine/operation.hpp"
#include "engine/p2p.hpp"
#include "schedule/schedule.hpp"

namespace tutti {

class Communicator;
class Context;
class Request;

/// What one collective call was given, checked.
struct CollectiveArguments {
  Collective collective = Collective::barrier;
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t count = 0;
  DType dtype = DType::u8;
  Op op = Op::sum;
  uint32_t root = 0;
};

/// A collective call as the engine sees it: finds its plan when its turn comes, since plans belong to whoever drives.
class CollectiveCall final : public CollectiveOperation {
 public:
  void prepare(Communicator& communicator, const CollectiveArguments& arguments, Deadline deadline) {
    reset(deadline);
    communicator_ = &communicator;
    arguments_ = arguments;
  }
  Status begin(CallRecord& record) override;
  void recycle() noexcept override;

 private:
  friend class Request;
  Communicator* communicator_ = nullptr;
  CollectiveArguments arguments_;
  Request* owner_ = nullptr;
};

class MessageCall final : public MessageOperation {
 public:
  void recycle() noexcept override;

 private:
  friend class Request;
  Request* owner_ = nullptr;
};

class RequestPool;

/// A non-blocking call. Lives in its context's pool; in use it keeps the context alive.
class Request {
 public:
  explicit Request(RequestPool& pool) : pool_(pool) {
    collective.owner_ = this;
    message.owner_ = this;
  }
  Operation& operation() noexcept { return is_message ? static_cast<Operation&>(message) : collective; }
  /// Back into the pool. May end the context, if the caller holds no communicator of it.
  void release() noexcept;

  CollectiveCall collective;
  MessageCall message;
  bool is_message = false;
  uint64_t element_bytes = 1;
  std::shared_ptr<Context> context;

 private:
  RequestPool& pool_;
};

/// Requests are made once and used again, so that a steady state allocates nothing.
class RequestPool {
 public:
  Request* take(std::shared_ptr<Context> context);
  void give_back(Request* request) noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> all_;
  std::vector<Request*> free_;
};

}  // namespace tutti
