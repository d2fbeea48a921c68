// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/environment.hpp"
#include "bootstrap/net.hpp"

namespace tutti {

/// Where rank 0 leaves its invitation (as hex) and the others find it. Nothing here blocks but wait().
class Board {
 public:
  virtual ~Board() = default;
  /// Rank 0. true: it is there for all to see.
  virtual Result<bool> post(std::string_view text) = 0;
  /// The others. true: *text is what is there now, possibly from an earlier job that used the same place.
  virtual Result<bool> look(std::string* text) = 0;
  /// Until there may be something new, or the deadline; a deadline a few milliseconds away is the rule.
  virtual void wait(Deadline deadline) = 0;
  /// Takes the invitation away, unless somebody has put another one there since.
  virtual void retract() noexcept {}
  /// wait() returns when there is news, not at the deadline only.
  virtual bool wakes() const noexcept { return false; }
  /// The ranks have met by this invitation: for boards that can be used once only, and a program that starts again.
  virtual void keep(std::string_view text) noexcept { (void)text; }
  /// post() and look() succeed when all ranks have come, and not before; nobody learns who is missing.
  virtual bool is_barrier() const noexcept { return false; }
  /// Where, for messages.
  virtual std::string place() const = 0;
  /// Ranks of the job, where only the board knows it; 0: not (yet) known.
  virtual int size() const noexcept { return 0; }
};

/// A file on a file system that all ranks share, private to this user.
std::unique_ptr<Board> make_file_board(std::string path, Poller& sleeper, Random& random);
/// The caller's own key-value store.
std::unique_ptr<Board> make_store_board(const tutti_store_t& store, Poller& sleeper, const Clock& clock);
/// The key space of a process manager that speaks PMI-1.
std::unique_ptr<Board> make_pmi_board(const LaunchInfo& launch, Network& network, std::unique_ptr<Poller> poller);
/// The key space of a PMIx server.
std::unique_ptr<Board> make_pmix_board(const LaunchInfo& launch, Poller& sleeper);

/// Process managers serve one start of a process: after finalize they speak to it no more, or only of what was. What a second
/// start of the same process needs lies in a file of memory, found by its name among the descriptors of this process, and gone
/// with it.
void keep_invitation(std::string_view text) noexcept;
std::string kept_invitation();  // "": none

}  // namespace tutti
