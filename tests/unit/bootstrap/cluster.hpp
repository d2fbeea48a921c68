// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"
#include "sim_network.hpp"

namespace tutti::test {

/// Lines that were logged.
class LineSink final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) noexcept override {
    const std::lock_guard lock(mutex_);
    text_.append(line).append("\n");
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// A store server and its clients on the simulated network, all in this thread.
struct Cluster {
  explicit Cluster(uint64_t seed)
      : network(seed), random(seed + 1), sink(std::make_shared<LineSink>()), log(sink, LogLevel::debug) {}

  StoreServerOptions server_options() {
    StoreServerOptions options;
    options.network = &network;
    options.random = &random;
    options.log = &log;
    options.secret = secret;
    options.job_id = "job";
    options.addresses = {at};
    return options;
  }
  void start_server() {
    auto opened = StoreServer::open(server_options());
    if (opened.ok()) server = std::move(opened).value();
  }
  StoreClientOptions client_options() {
    StoreClientOptions options;
    options.network = &network;
    options.random = &random;
    options.log = &log;
    options.secret = secret;
    options.job_id = "job";
    options.servers = {at};
    options.deadline = Deadline::after(network.time, 60'000'000'000);
    return options;
  }
  std::unique_ptr<StoreClient> client() { return StoreClient::open(client_options()).value(); }

  /// Lets `step_ns` pass between tries until `good` says true; false: never within `limit_ns`.
  bool until(const std::function<bool()>& good, uint64_t limit_ns = 120'000'000'000, uint64_t step_ns = 1'000'000) {
    for (uint64_t passed = 0; passed <= limit_ns; passed += step_ns) {
      if (server) server->step();
      if (good()) return true;
      network.time.advance(step_ns);
    }
    return false;
  }

  SimNetwork network;
  SeededRandom random;
  std::shared_ptr<LineSink> sink;
  Log log;
  Secret secret = Secret::from_text("secret of the tests");
  Endpoint at{"10.0.0.1", 4711};
  std::unique_ptr<StoreServer> server;
};

}  // namespace tutti::test
