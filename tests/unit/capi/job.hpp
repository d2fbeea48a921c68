// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::test {

/// What a rank of a ThreadJob found wrong: Catch2's macros are for the main thread, so ranks collect lines.
class Complaints {
 public:
  void expect(bool holds, const std::string& what) {
    if (!holds) lines_.push_back(what);
  }
  void expect_status(tutti_status_t got, tutti_status_t wanted, const std::string& what) {
    if (got != wanted)
      lines_.push_back(what + ": " + tutti_status_string(got) + " instead of " + tutti_status_string(wanted) + " (" +
                       tutti_last_error() + ")");
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

using SettingsOf = std::function<Settings(int rank)>;

/// Runs `body` on `size` threads, each a rank of one job with a communicator of all; returns everybody's complaints, joined.
std::string run_ranks(int size, const Settings& settings, const std::function<void(tutti_comm_t, int, Complaints&)>& body,
                      int64_t timeout_ms = 30000);
/// Likewise, with settings of each rank's own. hooks: of all of them; may be null.
std::string run_ranks_with(int size, const SettingsOf& settings, const std::function<void(tutti_comm_t, int, Complaints&)>& body,
                           int64_t timeout_ms = 30000, const tutti_hooks_t* hooks = nullptr);

}  // namespace tutti::test
