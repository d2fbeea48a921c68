// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "board.hpp"
#include "bootstrap/unique_id.hpp"

namespace tutti {
namespace {

class FileBoard final : public Board {
 public:
  FileBoard(std::string path, Poller& sleeper, Random& random) : path_(std::move(path)), sleeper_(sleeper), random_(random) {}

  Result<bool> post(std::string_view text) override {
    std::array<std::byte, 8> unique{};
    random_.fill(unique);
    // Written apart and renamed: others see all of it or nothing. O_EXCL and 0600, as it holds the secret.
    const std::string draft = fmt::format("{}.{}", path_, to_hex(unique));
    const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return failed("create", draft);
    const bool written = write_all(fd, text) && fsync(fd) == 0;
    const int why = errno;
    close(fd);
    if (!written || rename(draft.c_str(), path_.c_str()) != 0) {
      errno = written ? errno : why;
      const Status status = failed("write", path_);
      unlink(draft.c_str());
      return status;
    }
    posted_ = text;
    return true;
  }

  Result<bool> look(std::string* text) override {
    const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
      // A shared file system may show the file late, or an old one half gone.
      if (errno == ENOENT || errno == ESTALE || errno == ENOTDIR) return false;
      return failed("open", path_);
    }
    struct stat about {};
    std::array<char, 4096> buffer{};
    const bool known = fstat(fd, &about) == 0;
    const ssize_t got = known && S_ISREG(about.st_mode) ? read(fd, buffer.data(), buffer.size()) : -1;
    close(fd);
    if (known && (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & 077) != 0)) {
      return error(TUTTI_ERR_ENVIRONMENT,
                   "the rendezvous file {} is not a file that only this user can use (owner {}, mode {:04o}): remove it", path_,
                   about.st_uid, about.st_mode & 07777);
    }
    if (got <= 0) return false;
    text->assign(buffer.data(), static_cast<size_t>(got));
    return true;
  }

  void wait(Deadline deadline) override {
    std::vector<uint64_t> ready;
    sleeper_.wait(deadline, &ready);
  }

  void retract() noexcept override {
    try {
      std::string now;
      const Result<bool> there = look(&now);
      if (there.ok() && *there && now == posted_) unlink(path_.c_str());
    } catch (...) {  // out of memory: the file stays, and the next job puts its own in its place
    }
  }
  std::string place() const override { return "the file " + path_; }

 private:
  static bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t put = write(fd, text.data(), text.size());
      if (put < 0 && errno != EINTR) return false;
      if (put > 0) text.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }
  Status failed(std::string_view what, const std::string& path) const {
    return error(TUTTI_ERR_ENVIRONMENT, "TUTTI_RENDEZVOUS: cannot {} {}: {}", what, path, system_error("", errno).message());
  }

  std::string path_;
  Poller& sleeper_;
  Random& random_;
  std::string posted_;
};

}  // namespace

std::unique_ptr<Board> make_file_board(std::string path, Poller& sleeper, Random& random) {
  return std::make_unique<FileBoard>(std::move(path), sleeper, random);
}

}  // namespace tutti
