// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <array>
#include <cstdlib>

#include "base/config.hpp"
#include "base/log.hpp"
#include "bootstrap/secret.hpp"
#include "bootstrap/store_server.hpp"
#include "spawn.hpp"

namespace tutti::launch {

namespace {
class SaySink final : public LogSink {
 public:
  explicit SaySink(Say say) : say_(std::move(say)) {}
  void write(LogLevel, std::string_view line) noexcept override { say_(line); }

 private:
  Say say_;
};

std::string random_hex(size_t bytes) {
  SystemRandom random;
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    std::array<std::byte, 1> byte{};
    random.fill(byte);
    text += fmt::format("{:02x}", static_cast<unsigned>(byte[0]));
  }
  return text;
}

/// The server in the launcher's own event loop.
class LoopRendezvous final : public Rendezvous {
 public:
  LoopRendezvous(Loop& loop, Say say)
      : loop_(loop), network_(make_system_network()), log_(std::make_shared<SaySink>(std::move(say)), LogLevel::warn) {}
  ~LoopRendezvous() override {
    loop_.cancel(timer_);
    if (server_) loop_.forget(server_->fd());
  }

  Status open(const std::string& address, const Secret& secret, const std::string& job_id) {
    StoreServerOptions options;
    options.network = network_.get();
    options.random = &random_;
    options.log = &log_;
    options.secret = secret;
    options.job_id = job_id;
    options.addresses = {Endpoint{address, 0}};
    // The ranks get it through their environment; a firewall makes no difference between them and us.
    if (const char* range = std::getenv("TUTTI_PORT_RANGE"); range != nullptr) {
      Result<PortRange> ports = PortRange::parse(range);
      TUTTI_TRY(ports.status());
      options.ports = *ports;
    }
    Result<std::unique_ptr<StoreServer>> server = StoreServer::open(options);
    TUTTI_TRY(server.status());
    server_ = std::move(server).value();
    loop_.watch(server_->fd(), EPOLLIN, [this](uint32_t) { step(); });
    step();
    return Status();
  }

  std::string url() const override { return "tcp://" + server_->endpoints().front().text(); }

 private:
  void step() {
    server_->step();
    loop_.cancel(timer_);
    timer_ = 0;
    const uint64_t next = server_->next_ns();
    if (next == Deadline::kNever) return;
    const uint64_t now = loop_.now_ns();
    timer_ = loop_.after(next > now ? next - now : 0, [this] { step(); });
  }

  Loop& loop_;
  std::unique_ptr<Network> network_;
  SystemRandom random_;
  Log log_;
  std::unique_ptr<StoreServer> server_;
  Loop::TimerId timer_ = 0;
};
}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::start(Loop& loop, const std::string& address, const std::string& secret,
                                                      const std::string& job_id, Say say) {
  // Read through a descriptor as the ranks read it, so that both sides make the same of these bytes.
  Result<Fd> file = make_secret_file(secret);
  TUTTI_TRY(file.status());
  Config config;
  TUTTI_TRY(config.set("secret_fd", fmt::format("{}", file->get())));
  Result<Secret> loaded = load_secret(config);
  TUTTI_TRY(loaded.status());
  auto rendezvous = std::make_unique<LoopRendezvous>(loop, std::move(say));
  TUTTI_TRY(rendezvous->open(address, loaded.value(), job_id).with_context("cannot serve the rendezvous"));
  return std::unique_ptr<Rendezvous>(std::move(rendezvous));
}

std::string make_secret() { return random_hex(Secret::kBytes); }

std::string make_job_id() { return random_hex(8); }

}  // namespace tutti::launch
