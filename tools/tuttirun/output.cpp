// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lines.hpp"

namespace tutti::launch {

namespace {
/// A pipe that poll(2) calls writable takes this much without blocking. The descriptor is shared with whoever started
/// us, so it is not ours to make non-blocking.
constexpr size_t kSafeBytes = 4096;

bool same_file(int some, int other) {
  struct stat a {};
  struct stat b {};
  return fstat(some, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Status make_directories(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      return error(TUTTI_ERR_ARGUMENT, "--output-dir: cannot make '{}': {}", part, strerror(errno));
    }
    if (at == std::string::npos) return Status();
  }
}
}  // namespace

Sink::Sink(Loop& loop, int fd, std::string name) : loop_(loop), fd_(fd), name_(std::move(name)) {
  struct stat info {};
  waits_ = fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || S_ISCHR(info.st_mode));
}

Sink::~Sink() {
  if (watched_) loop_.forget(fd_);
}

void Sink::write(std::string_view bytes, int source) {
  if (failure_ != 0 || bytes.empty()) return;
  if (!line_done_ && source != source_) queue_.push_back('\n');
  source_ = source;
  line_done_ = bytes.back() == '\n';
  queue_.append(bytes);
  if (!watched_) pump();
}

bool Sink::ready() const {
  pollfd entry{fd_, POLLOUT, 0};
  return poll(&entry, 1, 0) > 0;
}

void Sink::pump() {
  const size_t before = pending();
  while (pending() > 0 && (!waits_ || ready())) {
    const size_t bytes = waits_ ? std::min(pending(), kSafeBytes) : pending();
    const ssize_t count = ::write(fd_, queue_.data() + sent_, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      failure_ = errno;
      queue_.clear();
      sent_ = 0;
      break;
    }
    sent_ += static_cast<size_t>(count);
  }
  if (pending() == 0 || sent_ > (1u << 20)) {
    queue_.erase(0, sent_);
    sent_ = 0;
  }
  const bool want = pending() > 0;
  if (want && !watched_) {
    watched_ = loop_.watch(fd_, EPOLLOUT, [this](uint32_t) { pump(); });
    if (!watched_) waits_ = false;  // epoll refuses it (/dev/null): always ready
  }
  if (!want && watched_) {
    loop_.forget(fd_);
    watched_ = false;
  }
  if (on_change && (pending() != before || failure_ != 0)) loop_.defer([this] { on_change(); });
  if (want && !watched_) pump();
}

Output::Output(Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {
  out_ = std::make_unique<Sink>(loop, STDOUT_FILENO, "standard output");
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) err_ = std::make_unique<Sink>(loop, STDERR_FILENO, "standard error");
  const auto changed = [this] {
    if (on_change) on_change();
  };
  out_->on_change = changed;
  if (err_) err_->on_change = changed;
}

std::string Output::file_of(uint32_t rank, int stream) const {
  return fmt::format("{}/rank-{}.{}", options_.directory, rank, stream == 1 ? "out" : "err");
}

Status Output::open_files(uint32_t ranks) {
  TUTTI_TRY(make_directories(options_.directory));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const int stream : {1, 2}) {
      const std::string path = file_of(rank, stream);
      Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!fd.valid()) return error(TUTTI_ERR_ARGUMENT, "--output-dir: cannot open '{}': {}", path, strerror(errno));
      files_[{rank, stream}] = std::make_unique<Sink>(loop_, fd.get(), path);
      file_fds_[{rank, stream}] = std::move(fd);
    }
  }
  return Status();
}

void Output::write_rank(uint32_t rank, int stream, std::string_view bytes) {
  const int source = static_cast<int>(rank * 2) + stream;
  if (to_files()) {
    if (const auto found = files_.find({rank, stream}); found != files_.end()) found->second->write(bytes, source);
    return;
  }
  Sink& sink = stream == 1 ? *out_ : err();
  if (!options_.tag) return sink.write(bytes, source);
  sink.write(tag_lines(bytes, fmt::format("[{}] ", rank), sink.continues(source)), source);
}

void Output::say(std::string_view line) { err().write(fmt::format("tuttirun: {}\n", line), kLauncher); }

void Output::say_from(std::string_view host, std::string_view lines) {
  err().write(tag_lines(fmt::format("{}\n", lines), fmt::format("[{}] ", host), false), kLauncher);
}

size_t Output::pending() const { return out_->pending() + (err_ ? err_->pending() : 0); }

bool Output::reader_gone() const { return out_->failure() == EPIPE; }

std::string Output::failure() const {
  const auto text = [](const Sink& sink) {
    return fmt::format("cannot write {}: {}", sink.name(), strerror(sink.failure()));
  };
  if (out_->failure() != 0) return text(*out_);
  if (err_ && err_->failure() != 0) return text(*err_);
  for (const auto& [key, sink] : files_) {
    if (sink->failure() != 0) return text(*sink);
  }
  return "";
}

}  // namespace tutti::launch
