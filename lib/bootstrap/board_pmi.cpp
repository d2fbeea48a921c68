// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The PMI-1 wire protocol, as Hydra (MPICH, Intel MPI, MVAPICH) and Slurm's pmi2 plugin speak it: lines of name=value, one
// answer to each request. All ranks: init, get_maxes, get_my_kvsname; rank 0 puts; all pass the barrier, which is what makes
// values travel between hosts; the others get; all say finalize, without which the process manager takes the end of this
// process for a crash.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "board.hpp"

namespace tutti {
namespace {

constexpr size_t kMostLineBytes = 8192;
constexpr size_t kMostPieces = 64;

/// The value of `name` in a line, "" when it is not there.
std::string_view field(std::string_view line, std::string_view name) {
  for (size_t at = 0; at < line.size();) {
    const size_t space = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, space - at);
    if (word.size() > name.size() && word[name.size()] == '=' && word.substr(0, name.size()) == name) {
      return word.substr(name.size() + 1);
    }
    at = space + 1;
  }
  return {};
}

int number(std::string_view text, int fallback) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() ? value : fallback;
}

class PmiBoard final : public Board {
 public:
  PmiBoard(const LaunchInfo& launch, Network& network, std::unique_ptr<Poller> poller)
      : launch_(launch), network_(network), poller_(std::move(poller)), size_(launch.size) {}

  Result<bool> post(std::string_view text) override {
    value_ = text;
    return drive();
  }
  Result<bool> look(std::string* text) override {
    const Result<bool> done = drive();
    if (done.ok() && *done) *text = value_;
    return done;
  }
  void wait(Deadline deadline) override {
    std::vector<uint64_t> ready;
    poller_->wait(deadline, &ready);
  }
  void keep(std::string_view text) noexcept override { keep_invitation(text); }
  bool wakes() const noexcept override { return true; }
  bool is_barrier() const noexcept override { return true; }
  std::string place() const override { return "the process manager (PMI)"; }
  int size() const noexcept override { return size_; }

 private:
  enum class Step : uint8_t {
    connect,
    initack,
    set_size,
    set_rank,
    set_debug,
    init,
    maxes,
    name,
    put,
    barrier,
    get,
    finalize,
    done
  };

  Result<bool> drive();
  Status open();
  Status take(std::string_view line);
  void request(Step step);
  Status expect(std::string_view line, std::string_view command) const;

  const LaunchInfo launch_;
  Network& network_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<Stream> stream_;
  Step step_ = Step::connect;
  std::string out_;
  std::string in_;
  std::string value_;
  std::string got_;
  std::string space_;         // kvsname
  size_t piece_bytes_ = 256;  // of a value, at a time
  size_t piece_ = 0;
  int size_;
};

Status PmiBoard::open() {
  if (launch_.pmi_fd >= 0) {
    // A copy: the variable goes on naming this number, which must not become somebody else's file.
    const int copy = fcntl(launch_.pmi_fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
      return error(TUTTI_ERR_ENVIRONMENT,
                   "PMI_FD is {}, but this process has no such descriptor; is it the child of a rank, rather than a rank?",
                   launch_.pmi_fd);
    }
    Result<std::unique_ptr<Stream>> adopted = network_.adopt(copy);
    if (!adopted.ok()) close(copy);
    TUTTI_TRY(adopted.status());
    fcntl(launch_.pmi_fd, F_SETFD, FD_CLOEXEC);
    stream_ = std::move(adopted).value();
    request(Step::init);
  } else {
    Result<std::unique_ptr<Stream>> connecting = network_.connect(*launch_.pmi_server);
    TUTTI_TRY(connecting.status());
    stream_ = std::move(connecting).value();
    request(Step::initack);
  }
  return poller_->watch(stream_->fd(), false, 0);
}

Result<bool> PmiBoard::drive() {
  if (step_ == Step::connect) TUTTI_TRY(open());
  while (step_ != Step::done) {
    size_t moved = 0;
    Io io = Io::again;
    if (!out_.empty()) {
      io = stream_->write(std::as_bytes(std::span(out_)), &moved);
      if (io == Io::done) out_.erase(0, moved);
      TUTTI_TRY(poller_->watch(stream_->fd(), !out_.empty(), 0));
    } else {
      std::array<char, 2048> buffer;
      io = stream_->read(std::as_writable_bytes(std::span(buffer)), &moved);
      if (io == Io::done) in_.append(buffer.data(), moved);
    }
    if (io == Io::again) return false;
    if (io != Io::done) {
      return error(TUTTI_ERR_CONNECT, "the process manager (PMI) ended the connection{}{}", io == Io::failed ? ": " : "",
                   io == Io::failed ? stream_->error() : "");
    }
    for (size_t end; step_ != Step::done && (end = in_.find('\n')) != std::string::npos;) {
      const std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      TUTTI_TRY(take(line));
    }
    if (in_.size() > kMostLineBytes) return error(TUTTI_ERR_PROTOCOL, "the process manager (PMI) sent an endless line");
  }
  if (stream_) poller_->forget(stream_->fd());
  stream_.reset();
  return true;
}

Status PmiBoard::expect(std::string_view line, std::string_view command) const {
  const std::string_view code = field(line, "rc");
  if (field(line, "cmd") == command && (code.empty() || code == "0")) return Status();
  return error(TUTTI_ERR_PROTOCOL, "the process manager (PMI) answered '{}', where {} was expected", line, command);
}

Status PmiBoard::take(std::string_view line) {
  switch (step_) {
    case Step::initack:
      TUTTI_TRY(expect(line, "initack"));
      step_ = Step::set_size;
      return Status();
    case Step::set_size:
      TUTTI_TRY(expect(line, "set"));
      size_ = number(field(line, "size"), 0);
      step_ = Step::set_rank;
      return Status();
    case Step::set_rank:
      TUTTI_TRY(expect(line, "set"));
      step_ = Step::set_debug;
      return Status();
    case Step::set_debug:
      TUTTI_TRY(expect(line, "set"));
      request(Step::init);
      return Status();
    case Step::init:
      TUTTI_TRY(expect(line, "response_to_init"));
      request(Step::maxes);
      return Status();
    case Step::maxes:
      TUTTI_TRY(expect(line, "maxes"));
      piece_bytes_ = static_cast<size_t>(std::clamp(number(field(line, "vallen_max"), 256), 16, 1 << 20)) - 1;
      request(Step::name);
      return Status();
    case Step::name:
      TUTTI_TRY(expect(line, "my_kvsname"));
      space_ = field(line, "kvsname");
      request(launch_.rank == 0 ? Step::put : Step::barrier);
      return Status();
    case Step::put:
      TUTTI_TRY(expect(line, "put_result"));
      request(++piece_ * piece_bytes_ < value_.size() ? Step::put : Step::barrier);
      return Status();
    case Step::barrier:
      TUTTI_TRY(expect(line, "barrier_out"));
      piece_ = 0;
      request(launch_.rank == 0 ? Step::finalize : Step::get);
      return Status();
    case Step::get: {
      TUTTI_TRY(expect(line, "get_result"));
      // "<number of pieces>:<hex>"
      const std::string_view value = field(line, "value");
      const size_t colon = std::min(value.find(':'), value.size());
      const auto pieces = static_cast<size_t>(std::clamp(number(value.substr(0, colon), 1), 1, static_cast<int>(kMostPieces)));
      got_.append(value.substr(std::min(colon + 1, value.size())));
      if (++piece_ == pieces) value_ = got_;
      request(piece_ < pieces ? Step::get : Step::finalize);
      return Status();
    }
    case Step::finalize:
      TUTTI_TRY(expect(line, "finalize_ack"));
      step_ = Step::done;
      return Status();
    case Step::connect:
    case Step::done:
      break;
  }
  return Status();
}

void PmiBoard::request(Step step) {
  step_ = step;
  // The number of pieces goes before each, within the length that is allowed.
  constexpr size_t kCountBytes = 4;
  if (step == Step::put && piece_ == 0 && piece_bytes_ > 2 * kCountBytes) piece_bytes_ -= kCountBytes;
  const std::string key = fmt::format("tutti-invitation-{}", piece_);
  switch (step) {
    case Step::initack:
      out_ = fmt::format("cmd=initack pmiid={}\n", launch_.pmi_id);
      return;
    case Step::init:
      out_ = "cmd=init pmi_version=1 pmi_subversion=1\n";
      return;
    case Step::maxes:
      out_ = "cmd=get_maxes\n";
      return;
    case Step::name:
      out_ = "cmd=get_my_kvsname\n";
      return;
    case Step::put:
      out_ = fmt::format("cmd=put kvsname={} key={} value={}:{}\n", space_, key,
                         (value_.size() + piece_bytes_ - 1) / piece_bytes_, value_.substr(piece_ * piece_bytes_, piece_bytes_));
      return;
    case Step::barrier:
      out_ = "cmd=barrier_in\n";
      return;
    case Step::get:
      out_ = fmt::format("cmd=get kvsname={} key={}\n", space_, key);
      return;
    case Step::finalize:
      out_ = "cmd=finalize\n";
      return;
    default:
      out_.clear();
  }
}

}  // namespace

std::unique_ptr<Board> make_pmi_board(const LaunchInfo& launch, Network& network, std::unique_ptr<Poller> poller) {
  return std::make_unique<PmiBoard>(launch, network, std::move(poller));
}

}  // namespace tutti
