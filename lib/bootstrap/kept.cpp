// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

#include "board.hpp"

namespace tutti {
namespace {

constexpr const char* kName = "tutti-kept-invitation";
constexpr off_t kMostBytes = 4096;

/// The descriptor with that memory file in this process, -1 if there is none.
int find_kept() {
  const std::string wanted = fmt::format("/memfd:{}", kName);
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(at->path(), gone).string();
    if (gone || target.compare(0, wanted.size(), wanted) != 0) continue;
    const std::string digits = at->path().filename().string();
    int fd = -1;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), fd).ec == std::errc()) return fd;
  }
  return -1;
}

}  // namespace

void keep_invitation(std::string_view text) noexcept {
  try {
    if (find_kept() >= 0) return;
  } catch (...) {  // out of memory: then a second start fails, and says so
    return;
  }
  const int fd = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return;
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    close(fd);
    return;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

std::string kept_invitation() {
  const int fd = find_kept();
  struct stat about {};
  if (fd < 0 || fstat(fd, &about) != 0 || about.st_size > kMostBytes) return {};
  std::string text(static_cast<size_t>(about.st_size), '\0');
  return pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) ? text : std::string();
}

}  // namespace tutti
