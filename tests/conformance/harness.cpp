// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace tutti::conformance {
namespace {

/// Marks the time in which the transport may call back.
class Call {
 public:
  explicit Call(Host& host) : host_(host), before_(std::exchange(host.in_call, true)) {}
  ~Call() { host_.in_call = before_; }

 private:
  Host& host_;
  bool before_;
};

constexpr size_t kMostPending = 64;

}  // namespace

const char* name(Carrier carrier) { return carrier == Carrier::messages ? "messages" : "slots"; }

void fill_job_id(uint8_t id[16]) {
  static std::atomic<uint32_t> next{1};
  const uint32_t number = next.fetch_add(1);
  const pid_t process = ::getpid();
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::memcpy(id, &number, 4);
  std::memcpy(id + 4, &process, 4);
  std::memcpy(id + 8, &now, 8);
}

Bytes pattern(size_t bytes, uint32_t seed) {
  Bytes data(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

uint32_t mark_of(const Bytes& data) {
  uint32_t mark = 2166136261u;
  for (const uint8_t byte : data) mark = (mark ^ byte) * 16777619u;
  return mark;
}

// ---- Job ----

Job::Job(Options options) : alone_(options.ranks) {
  if (subject.make_world) world_ = subject.make_world(options.ranks);
  tutti_tp_open_t arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.size = options.ranks;
  fill_job_id(arguments.job_id);
  arguments.host_identity = "one machine";
  arguments.bind_addresses = "127.0.0.1";
  arguments.world = world_ == nullptr ? nullptr : world_->pointer();
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    hosts_.push_back(std::make_unique<Host>(world_.get()));
    hosts_.back()->settings = options.settings;
    arguments.rank = rank;
    arguments.host = &hosts_.back()->table;
    tutti_tp_endpoint_t* endpoint = nullptr;
    const Call call(*hosts_.back());
    if (tp().open(&arguments, &endpoint) != TUTTI_OK) throw std::runtime_error("open: " + hosts_.back()->last_log());
    endpoints_.push_back(endpoint);
  }
  if (options.introduce) introduce();
}

Job::~Job() {
  for (uint32_t rank = 0; rank < size(); ++rank) close(rank);
}

std::string Job::address(uint32_t rank) {
  char buffer[TUTTI_TP_ADDRESS_MAX_BYTES];
  size_t bytes = 0;
  const Call call(host(rank));
  if (tp().address(endpoints_[rank], buffer, sizeof buffer, &bytes) != TUTTI_OK) throw std::runtime_error("address");
  return std::string(buffer, bytes);
}

void Job::introduce() {
  for (uint32_t rank = 0; rank < size(); ++rank) {
    for (uint32_t peer = 0; peer < size(); ++peer) {
      const std::string theirs = address(peer);
      const Call call(host(rank));
      if (tp().set_peer(endpoints_[rank], peer, theirs.data(), theirs.size()) != TUTTI_OK) {
        throw std::runtime_error("set_peer: " + host(rank).last_log());
      }
    }
  }
  std::vector<bool> started(size());
  const bool all = until([&] {
    for (uint32_t rank = 0; rank < size(); ++rank) {
      if (started[rank]) continue;
      const Call call(host(rank));
      const tutti_status_t status = tp().start(endpoints_[rank]);
      if (status < 0) throw std::runtime_error("start: " + host(rank).last_log());
      started[rank] = status == TUTTI_OK;
    }
    return std::find(started.begin(), started.end(), false) == started.end();
  });
  if (!all) throw std::runtime_error("start says AGAIN for ever");
}

bool Job::connect(uint32_t a, uint32_t b) {
  const auto connected = [&](uint32_t rank, uint32_t peer) {
    const Call call(host(rank));
    return tp().connect(endpoints_[rank], peer) == TUTTI_OK;
  };
  return until([&] {
    const bool here = connected(a, b);
    return connected(b, a) && here;
  });
}

void Job::close(uint32_t rank) {
  if (endpoints_[rank] == nullptr) return;
  const Call call(host(rank));
  tp().close(std::exchange(endpoints_[rank], nullptr));
}

uint32_t Job::progress(uint32_t rank) {
  const Call call(host(rank));
  return tp().progress(endpoints_[rank]);
}

void Job::progress() {
  if (world_ != nullptr) world_->step();
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (endpoints_[rank] != nullptr && !alone_[rank]) progress(rank);
  }
}

void Job::progress_times(int times) {
  for (int i = 0; i < times; ++i) progress();
}

bool Job::until(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    progress();
  }
  return true;
}

bool Job::sleep(uint32_t rank, const std::function<bool()>& finished, int timeout_ms) {
  const int fd = tp().fd(endpoints_[rank]);
  if (fd < 0) {
    if (world_ != nullptr) world_->step();
    progress(rank);
    std::this_thread::yield();  // threads that all step one world
    return true;
  }
  const Call call(host(rank));
  tp().arm(endpoints_[rank]);
  bool woken = true;
  if (tp().progress(endpoints_[rank]) == 0 && !finished()) {
    pollfd one = {fd, POLLIN, 0};
    woken = ::poll(&one, 1, timeout_ms) == 1;
  }
  tp().disarm(endpoints_[rank]);
  tp().progress(endpoints_[rank]);
  return woken;
}

tutti_tp_link_t Job::link(uint32_t rank, uint32_t peer) {
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  const Call call(host(rank));
  if (tp().link(endpoints_[rank], peer, &link) != TUTTI_OK) throw std::runtime_error("link");
  return link;
}

std::vector<Carrier> Job::carriers(uint32_t a, uint32_t b) {
  const tutti_tp_link_t found = link(a, b);
  std::vector<Carrier> carriers;
  if ((found.caps & TUTTI_TP_CAP_MESSAGES) != 0) carriers.push_back(Carrier::messages);
  if ((found.caps & TUTTI_TP_CAP_SLOTS) != 0) carriers.push_back(Carrier::slots);
  return carriers;
}

tutti_tp_channel_t* Job::channel(uint32_t rank, uint32_t peer, uint64_t id, int direction, Carrier carrier) {
  tutti_tp_channel_t* channel = nullptr;
  const Call call(host(rank));
  const int slots = carrier == Carrier::slots ? 1 : 0;
  const tutti_status_t status = tp().channel_open(endpoints_[rank], peer, id, direction, slots, &channel);
  if (status != TUTTI_OK) throw std::runtime_error("channel_open: " + std::to_string(status));
  return channel;
}

uint64_t Job::counter(uint32_t rank, const std::string& wanted) {
  if (tp().counter == nullptr) return UINT64_MAX;
  const char* found = nullptr;
  uint64_t value = 0;
  for (uint32_t i = 0; tp().counter(endpoints_[rank], i, &found, &value) == TUTTI_OK; ++i) {
    if (wanted == found) return value;
  }
  return UINT64_MAX;
}

// ---- Lane ----

Lane::Lane(Job& job, uint32_t from, uint32_t to, uint64_t id, Carrier carrier)
    : job_(job), from_(from), to_(to), id_(id), carrier_(carrier) {
  if (carrier == Carrier::slots) largest_ = job.link(from, to).slot_bytes;
  open_sender();
  open_receiver();
}

Lane::~Lane() {
  close_sender();
  close_receiver();
}

void Lane::open_sender() { sender_ = job_.channel(from_, to_, id_, TUTTI_TP_SEND, carrier_); }
void Lane::open_receiver() { receiver_ = job_.channel(to_, from_, id_, TUTTI_TP_RECV, carrier_); }

/// An endpoint's close has freed its channels.
void Lane::close_sender() {
  if (sender_ != nullptr && job_[from_] != nullptr) {
    const Call call(job_.host(from_));
    tp().channel_close(sender_);
  }
  sender_ = nullptr;
  sends_.clear();
}

void Lane::close_receiver() {
  if (receiver_ != nullptr && job_[to_] != nullptr) {
    const Call call(job_.host(to_));
    tp().channel_close(receiver_);
  }
  receiver_ = nullptr;
  receive_.reset();
}

size_t Lane::pending() {
  while (!sends_.empty() && sends_.front()->op.done != 0) sends_.pop_front();
  return sends_.size();
}

tutti_status_t Lane::send_message(const Bytes& data, uint32_t mark) {
  if (pending() >= kMostPending) return TUTTI_TP_AGAIN;
  auto send = std::make_unique<Send>();
  send->data = data;
  const tutti_status_t status = tp().post_send(sender_, send->data.data(), data.size(), mark, &send->op);
  if (status == TUTTI_OK) sends_.push_back(std::move(send));
  return status;
}

tutti_status_t Lane::try_send(const Bytes& data, uint32_t mark) {
  const Call call(job_.host(from_));
  if (carrier_ == Carrier::messages) return send_message(data, mark);
  void* slot = nullptr;
  const tutti_status_t status = tp().slot_reserve(sender_, data.size(), &slot);
  if (status != TUTTI_OK) return status;
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
  return tp().slot_commit(sender_, data.size(), mark);
}

tutti_status_t Lane::receive_message(Bytes* data, uint32_t* mark) {
  if (receive_ == nullptr) {
    landing_.resize(largest_);
    auto op = std::make_unique<tutti_tp_op_t>();
    const tutti_status_t status = tp().post_recv(receiver_, landing_.data(), landing_.size(), op.get());
    if (status != TUTTI_OK) return status;
    receive_ = std::move(op);
  }
  if (receive_->done == 0) return TUTTI_TP_AGAIN;
  const tutti_status_t status = receive_->status;
  const auto begin = landing_.begin();
  if (status == TUTTI_OK) data->assign(begin, begin + static_cast<std::ptrdiff_t>(receive_->bytes));
  *mark = receive_->mark;
  receive_.reset();
  return status;
}

tutti_status_t Lane::try_receive(Bytes* data) {
  uint32_t mark = 0;
  const tutti_status_t status = try_receive(data, &mark);
  return status == TUTTI_OK && mark != mark_of(*data) ? TUTTI_ERR_MISMATCH : status;
}

tutti_status_t Lane::try_receive(Bytes* data, uint32_t* mark) {
  const Call call(job_.host(to_));
  if (carrier_ == Carrier::messages) return receive_message(data, mark);
  const void* slot = nullptr;
  uint64_t bytes = 0;
  const tutti_status_t status = tp().slot_peek(receiver_, &slot, &bytes, mark);
  if (status != TUTTI_OK) return status;
  const auto* begin = static_cast<const uint8_t*>(slot);
  data->clear();
  if (bytes > 0) data->assign(begin, begin + bytes);
  return tp().slot_release(receiver_);
}

bool Lane::send(const Bytes& data) {
  tutti_status_t status = TUTTI_TP_AGAIN;
  return job_.until([&] { return (status = try_send(data)) != TUTTI_TP_AGAIN; }) && status == TUTTI_OK;
}

bool Lane::receive(Bytes* data) {
  tutti_status_t status = TUTTI_TP_AGAIN;
  return job_.until([&] { return (status = try_receive(data)) != TUTTI_TP_AGAIN; }) && status == TUTTI_OK;
}

bool Lane::deliver(const Bytes& data) {
  Bytes got;
  return send(data) && receive(&got) && got == data;
}

}  // namespace tutti::conformance
