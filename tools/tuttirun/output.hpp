// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "loop.hpp"

namespace tutti::launch {

/// One destination of output: a queue before a descriptor that may be slow. Never blocks the loop on a pipe or a
/// terminal.
class Sink {
 public:
  Sink(Loop& loop, int fd, std::string name);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// `source` tells who writes: when another one left a line unfinished, it is finished first, so that lines of two
  /// sources never mix.
  void write(std::string_view bytes, int source);
  /// Whether the last bytes came from `source` and were not a full line.
  bool continues(int source) const { return !line_done_ && source_ == source; }
  size_t pending() const { return queue_.size() - sent_; }
  /// errno of the first failed write, or 0; after it everything is dropped.
  int failure() const { return failure_; }
  const std::string& name() const { return name_; }
  std::function<void()> on_change;  // after some of the queue was written, or writing failed

 private:
  void pump();
  bool ready() const;

  Loop& loop_;
  int fd_;
  std::string name_;
  std::string queue_;
  size_t sent_ = 0;
  int failure_ = 0;
  int source_ = -1;
  bool line_done_ = true;
  bool waits_ = true;  // epoll can watch it
  bool watched_ = false;
};

/// Where the output of the ranks and our own words go: the launcher's stdout and stderr, or a file per rank and stream.
class Output {
 public:
  static constexpr int kLauncher = -2;  // source number of tuttirun's own lines
  static constexpr size_t kHighWater = 4u << 20;
  struct Options {
    bool tag = false;
    std::string directory;  // "": no files
  };
  Output(Loop& loop, Options options);

  /// Makes the directory and opens the files of `ranks` ranks.
  Status open_files(uint32_t ranks);
  void write_rank(uint32_t rank, int stream, std::string_view bytes);
  /// One line of tuttirun itself, to stderr; "tuttirun: " is put before it.
  void say(std::string_view line);
  /// Bytes as they are, to stderr.
  void say_raw(std::string_view text) { err().write(text, kLauncher); }
  /// Lines that ssh or a remote shell printed, without the last newline; the host is put before each.
  void say_from(std::string_view host, std::string_view lines);

  size_t pending() const;
  /// Bytes that wait for the launcher's stdout or stderr are too many: stop taking more from the ranks.
  bool congested() const { return pending() > kHighWater; }
  /// EPIPE on the launcher's stdout: whoever wanted the output is gone.
  bool reader_gone() const;
  /// "name: reason" of the first destination that could not be written, or "".
  std::string failure() const;
  std::string file_of(uint32_t rank, int stream) const;
  bool to_files() const { return !options_.directory.empty(); }
  std::function<void()> on_change;

 private:
  Sink& err() { return err_ ? *err_ : *out_; }

  Loop& loop_;
  Options options_;
  std::unique_ptr<Sink> out_;
  std::unique_ptr<Sink> err_;  // null: the same file as stdout, so one queue keeps the lines whole
  std::map<std::pair<uint32_t, int>, Fd> file_fds_;
  std::map<std::pair<uint32_t, int>, std::unique_ptr<Sink>> files_;
};

}  // namespace tutti::launch
