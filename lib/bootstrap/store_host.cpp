// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <system_error>

#include "bootstrap/exchange.hpp"
#include "bootstrap/store_server.hpp"
#include "exchange_keys.hpp"

namespace tutti {
namespace {

/// A library's thread must not take the signals that are meant for the program.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error&) {  // out of threads: the caller sees that there is none
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::function<void()> start_plain_thread(std::function<void()> body) {
  auto thread = std::make_shared<std::thread>(start_without_signals(std::move(body)));
  if (!thread->joinable()) return {};
  return [thread] { thread->join(); };
}

}  // namespace

StoreHost::StoreHost(std::unique_ptr<StoreServer> server, uint32_t size, const Clock& clock)
    : server_(std::move(server)), endpoints_(server_->endpoints()), clock_(clock), size_(size) {}

Result<std::unique_ptr<StoreHost>> StoreHost::open(const StoreServerOptions& options, uint32_t size, bool threaded,
                                                   ThreadStarter start_thread) {
  Result<std::unique_ptr<StoreServer>> server = StoreServer::open(options);
  TUTTI_TRY(server.status());
  std::unique_ptr<StoreHost> host(new StoreHost(std::move(server).value(), size, options.network->clock()));
  if (threaded) {
    StoreHost* const raw = host.get();
    host->join_ = (start_thread ? start_thread : start_plain_thread)([raw] { raw->serve(); });
    if (!host->join_) return error(TUTTI_ERR_RESOURCE, "cannot start a thread for the store");
  }
  return host;
}

StoreHost::~StoreHost() {
  if (!join_) return;
  stop_.store(true);
  server_->poller().wake();
  join_();
}

bool StoreHost::done() {
  if (finished_.load()) return true;
  uint32_t size = size_;
  if (size == 0) {
    std::string job;
    if (!server_->get(exchange_job_key({}, 1), &job)) return false;
    size = exchange_job_size(job);
    if (size == 0) return false;
  }
  return server_->finished(size);
}

void StoreHost::step() {
  if (join_ || finished_.load()) return;
  server_->step();
  if (!done()) return;
  server_->close();
  finished_.store(true);
}

void StoreHost::serve() {
  std::vector<uint64_t> ready;
  bool all_met = false;
  while (!stop_.load()) {
    server_->step();
    all_met = done();
    if (all_met) break;
    const bool empty = leave_when_empty_.load() && server_->client_count() == 0 && server_->pending_count() == 0;
    const Deadline stay{stay_until_ns_.load()};
    if (empty && stay.passed(clock_)) break;
    const Deadline deadline{deadline_ns_.load()};
    if (deadline.passed(clock_)) break;
    ready.clear();
    server_->poller().wait(Deadline{std::min({deadline.at_ns, server_->next_ns(), empty ? stay.at_ns : Deadline::kNever})}, &ready);
  }
  server_->close();
  if (all_met) finished_.store(true);
}

int StoreHost::fd() const noexcept { return server_->fd(); }
uint64_t StoreHost::next_ns() const noexcept { return join_ ? Deadline::kNever : server_->next_ns(); }

void StoreHost::linger(Deadline deadline, Deadline stay) {
  deadline_ns_.store(deadline.at_ns);
  stay_until_ns_.store(stay.at_ns);
  leave_when_empty_.store(true);
  if (!join_) {
    if (!finished_.load()) serve();
    return;
  }
  server_->poller().wake();
  join_();
  join_ = nullptr;
}

void StoreHost::release(std::unique_ptr<StoreHost> host, Deadline deadline) {
  host->deadline_ns_.store(deadline.at_ns);
  host->server_->poller().wake();
  // Nobody is left to wait for the host's thread but another thread. Both end with the meeting or at the deadline.
  StoreHost* const raw = host.get();
  std::thread reaper = start_without_signals([raw] {
    const std::unique_ptr<StoreHost> owned(raw);
    owned->join_();
    owned->join_ = nullptr;
  });
  if (!reaper.joinable()) return;  // then the store ends here, and those who come find nobody
  (void)host.release();
  reaper.detach();
}

}  // namespace tutti
