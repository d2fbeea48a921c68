// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "sim_network.hpp"

#include <algorithm>

namespace tutti::test {

uint64_t SeededRandom::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void SeededRandom::fill(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(next());
}

class SimStream final : public Stream, public Pollable {
 public:
  SimStream(SimNetwork& network, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : network_(network), in_(std::move(in)), out_(std::move(out)), fd_(network.next_fd_++) {
    network_.pollables_[fd_] = this;
  }
  ~SimStream() override {
    network_.pollables_.erase(fd_);
    if (out_) out_->closed = true;
    if (in_) in_->reset = true;
  }
  Io finish_connect() override { return in_ ? Io::done : Io::failed; }
  Io read(std::span<std::byte> into, size_t* bytes) override {
    if (!in_ || in_->reset) return Io::failed;
    if (in_->bytes.empty()) return in_->closed ? Io::closed : Io::again;
    *bytes = amount(std::min(into.size(), in_->bytes.size()));
    std::copy_n(in_->bytes.begin(), *bytes, into.begin());
    in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<ptrdiff_t>(*bytes));
    return Io::done;
  }
  Io write(std::span<const std::byte> from, size_t* bytes) override {
    if (!out_ || out_->reset) return Io::failed;
    const size_t room = Pipe::kCapacity - out_->bytes.size();
    if (room == 0) return Io::again;
    *bytes = amount(std::min(from.size(), room));
    out_->bytes.insert(out_->bytes.end(), from.begin(), from.begin() + static_cast<ptrdiff_t>(*bytes));
    return Io::done;
  }
  std::string error() const override { return in_ ? "connection reset" : "connection refused"; }
  int fd() const noexcept override { return fd_; }
  std::string peer_text() const override { return "sim"; }
  bool readable() const override { return !in_ || !in_->bytes.empty() || in_->closed || in_->reset; }
  bool writable() const override { return !out_ || out_->reset || out_->bytes.size() < Pipe::kCapacity; }

 private:
  size_t amount(size_t most) {
    return most <= 1 ? most : 1 + network_.random_.next() % std::min(most, network_.most_bytes_a_move);
  }

  SimNetwork& network_;
  std::shared_ptr<Pipe> in_;  // null: refused
  std::shared_ptr<Pipe> out_;
  int fd_;
};

class SimListener final : public Listener, public Pollable {
 public:
  SimListener(SimNetwork& network, Endpoint at, std::shared_ptr<SimNetwork::Port> port)
      : network_(network), at_(std::move(at)), port_(std::move(port)), fd_(network.next_fd_++) {
    network_.pollables_[fd_] = this;
  }
  ~SimListener() override {
    network_.pollables_.erase(fd_);
    network_.ports_.erase(at_.text());
  }
  Io accept(std::unique_ptr<Stream>* stream) override {
    if (port_->waiting.empty()) return Io::again;
    *stream = std::move(port_->waiting.front());
    port_->waiting.pop_front();
    return Io::done;
  }
  std::string error() const override { return ""; }
  Endpoint endpoint() const override { return at_; }
  int fd() const noexcept override { return fd_; }
  bool readable() const override { return !port_->waiting.empty(); }
  bool writable() const override { return false; }

 private:
  SimNetwork& network_;
  Endpoint at_;
  std::shared_ptr<SimNetwork::Port> port_;
  int fd_;
};

class SimPoller final : public Poller {
 public:
  explicit SimPoller(SimNetwork& network) : network_(network), fd_(network.next_fd_++) {}
  Status watch(int fd, bool want_write, uint64_t token) override {
    watched_[fd] = {want_write, token};
    return Status();
  }
  void forget(int fd) override { watched_.erase(fd); }
  void wait(Deadline, std::vector<uint64_t>* ready) override {
    for (auto at = watched_.begin(); at != watched_.end();) {
      const auto found = network_.pollables_.find(at->first);
      if (found == network_.pollables_.end()) {
        at = watched_.erase(at);
        continue;
      }
      if (found->second->readable() || (at->second.want_write && found->second->writable())) ready->push_back(at->second.token);
      ++at;
    }
  }
  void wake() noexcept override {}
  int fd() const noexcept override { return fd_; }

 private:
  struct Watch {
    bool want_write;
    uint64_t token;
  };
  SimNetwork& network_;
  int fd_;
  std::map<int, Watch> watched_;
};

Result<std::unique_ptr<Listener>> SimNetwork::listen(const Endpoint& at, PortRange range) {
  Endpoint real = at;
  if (!real.is_unix() && real.port == 0) real.port = range.first != 0 ? range.first : next_port_++;
  const auto [place, fresh] = ports_.emplace(real.text(), std::make_shared<Port>());
  if (!fresh) return error(TUTTI_ERR_RESOURCE, "cannot listen on {}: address in use", real.text());
  return std::unique_ptr<Listener>(std::make_unique<SimListener>(*this, real, place->second));
}

Result<std::unique_ptr<Stream>> SimNetwork::connect(const Endpoint& to) {
  const auto found = ports_.find(to.text());
  if (found == ports_.end()) return std::unique_ptr<Stream>(std::make_unique<SimStream>(*this, nullptr, nullptr));
  ++connection_count;
  auto there = std::make_shared<Pipe>();
  auto back = std::make_shared<Pipe>();
  pipes_.insert(pipes_.end(), {there, back});
  if (resets > 0) {
    --resets;
    there->reset = back->reset = true;
  }
  found->second->waiting.push_back(std::make_unique<SimStream>(*this, there, back));
  return std::unique_ptr<Stream>(std::make_unique<SimStream>(*this, back, there));
}

void SimNetwork::break_all() {
  for (const std::weak_ptr<Pipe>& each : pipes_) {
    if (const std::shared_ptr<Pipe> pipe = each.lock()) pipe->reset = true;
  }
  pipes_.clear();
}

Result<std::unique_ptr<Stream>> SimNetwork::adopt(int fd) {
  return error(TUTTI_ERR_UNSUPPORTED, "descriptor {} is none of the simulated network's", fd);
}

Result<std::unique_ptr<Poller>> SimNetwork::make_poller() { return std::unique_ptr<Poller>(std::make_unique<SimPoller>(*this)); }

}  // namespace tutti::test
