// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "harness.hpp"

namespace tutti::conformance {

/// One rank in a process of its own, started and connected to its parent by a socket. Uses nothing of Catch2.
class ProcessRank {
 public:
  /// The child's whole life: 0, or 1 with the verdict said to the parent.
  static int run(uint32_t rank, uint32_t size, const uint8_t job_id[16], int socket,
                 const std::function<std::string(ProcessRank&)>& body);

  /// Numbered messages both ways on every carrier; "" or what went wrong. Both ranks call it.
  std::string exchange_with(uint32_t peer, uint32_t count);
  tutti_status_t notify(uint32_t peer, const std::string& text);
  /// Drives this endpoint, asleep for moments.
  bool until(const std::function<bool()>& condition, double seconds = 20);
  /// The same, with nothing to wake it but its descriptor.
  bool sleep_until(const std::function<bool()>& condition, double seconds);
  void say(const std::string& word) const;
  /// Waits for a word of the parent, driving the endpoint meanwhile.
  std::string hear();

  Host host{nullptr};
  uint32_t rank = 0;
  uint32_t size = 0;

 private:
  bool wait(const std::function<bool()>& condition, double seconds, int nap_ms);
  std::string start(const uint8_t job_id[16]);
  std::string exchange(uint32_t peer, uint32_t count, bool slots, uint64_t slot_bytes);

  tutti_tp_endpoint_t* endpoint_ = nullptr;
  int socket_ = -1;
};

}  // namespace tutti::conformance
