// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/auth.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/secret.hpp"
#include "bootstrap/store.hpp"

namespace tutti {

struct StoreClientOptions {
  Network* network = nullptr;
  Random* random = nullptr;
  const Log* log = nullptr;
  Secret secret;
  std::string job_id;
  uint32_t version = kProtocolVersion;
  std::vector<Endpoint> servers;           // tried in turn
  Deadline deadline;                       // after which calls return the error that says why the server is not there
  uint64_t attempt_ns = 5'000'000'000;     // one connection with its handshake
  uint64_t auth_grace_ns = 3'000'000'000;  // how long a wrong secret is put down to a server of an earlier job
};

/// Client of a StoreServer. Connects with retry and jitter until the deadline, again after a reset, and repeats what was
/// not answered, so that nobody sees a connection that breaks. One thread.
class StoreClient final : public Store {
 public:
  static Result<std::unique_ptr<StoreClient>> open(const StoreClientOptions& options);
  ~StoreClient() override;

  bool connected() const noexcept;  // authenticated
  /// The last attempt was refused for its secret.
  bool refused() const noexcept;
  /// Numeric address of this end and of the server, once connected.
  Status set(std::string_view key, std::string_view value) override;
  Result<bool> get(std::string_view key, std::string* value) override;
  Result<bool> claim(std::string_view key, std::string_view value, std::string* holder) override;
  Result<bool> find_absent(std::string_view prefix, uint32_t count, RankSet* absent) override;
  Status erase(std::string_view prefix) override;
  Result<bool> flushed() override;
  Status wait(Deadline deadline) override;
  int fd() const noexcept override;
  uint64_t next_ns() const noexcept override;
  uint32_t incarnation() const noexcept override;
  std::string trouble() const override;

 private:
  struct State;
  explicit StoreClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tutti
