// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout.hpp"
#include "options.hpp"
#include "ranks.hpp"

namespace tutti_perf {

/// What all calls of a series have in common.
struct Call {
  Collective collective = Collective::allreduce;
  tutti_dtype_t dtype = TUTTI_FLOAT32;
  tutti_op_t op = TUTTI_SUM;          // or kScaledSum
  tutti_op_t library_op = TUTTI_SUM;  // as the library knows it
  uint32_t element_bytes = 4;
  uint32_t rank_count = 1;
  uint32_t rank = 0;
  Mode mode = Mode::blocking;
  uint64_t window = 1;  // of message_rate: messages in a row
};

/// "allreduce of 16 float32, sum"
std::string describe(const Call& call, uint64_t count);

/// One call on one communicator, with its buffers. Made once; the timed loop issues it again and again.
class Step {
 public:
  struct Target {
    tutti_comm_t comm = nullptr;
    uint32_t root = 0;
    bool in_place = false;
    void* send = nullptr;
    void* recv = nullptr;
  };
  /// `layout` stays where it is. Throws RunError.
  Step(const Call& call, const Layout& layout, const Target& target);
  const Target& target() const { return target_; }

  /// Blocking calls are done on return. Non-blocking ones leave requests, requests_of(call) of them (NULL: none), which are
  /// complete when those are. pingpong and message_rate are done on return in both modes.
  tutti_status_t issue(tutti_request_t* requests);
  /// A persistent request for this call.
  tutti_status_t create(tutti_request_t* request);

 private:
  tutti_status_t form(Mode mode, tutti_request_t* request);
  tutti_status_t vector_form(Mode mode, tutti_request_t* request);
  tutti_status_t alltoall_form(Mode mode, tutti_request_t* request);
  tutti_status_t message(tutti_request_t* requests);
  tutti_status_t pingpong();
  tutti_status_t message_rate();
  tutti_status_t transfer(bool sends);

  Call call_;
  const Layout* layout_;
  Target target_;
  const void* from_;  // the arguments send and recv
  void* to_;
  // Of alltoallw: places in bytes, types.
  std::vector<uint64_t> send_places_bytes_;
  std::vector<uint64_t> recv_places_bytes_;
  std::vector<tutti_dtype_t> types_;
  std::vector<tutti_request_t> window_;
};

/// How many requests a non-blocking step leaves.
uint32_t requests_of(const Call& call);

}  // namespace tutti_perf
