// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "loop.hpp"

namespace tutti::launch {

using Say = std::function<void(std::string_view line)>;

/// The job's store, served by the launcher for as long as the ranks run. Knows lib/bootstrap; nothing else here does.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// tcp://address:port
  virtual std::string url() const = 0;

  /// Listens on `address` only, on a port that the kernel chooses. Warnings (strangers, garbage) go to `say`.
  static Result<std::unique_ptr<Rendezvous>> start(Loop& loop, const std::string& address, const std::string& secret,
                                                   const std::string& job_id, Say say);
};

/// 256 unpredictable bits as text.
std::string make_secret();
std::string make_job_id();

}  // namespace tutti::launch
