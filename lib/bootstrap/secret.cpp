// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/secret.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace tutti {
namespace {

constexpr size_t kMostSecretTextBytes = 64 * 1024;

static_assert(crypto_generichash_BYTES == Secret::kBytes);

void absorb(crypto_generichash_state& state, std::string_view text) {
  // Length first, so that no two lists of parts give the same stream.
  std::array<unsigned char, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<unsigned char>(uint64_t{text.size()} >> (8 * i));
  crypto_generichash_update(&state, length.data(), length.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

/// A descriptor that closes itself unless it belongs to somebody else.
struct Source {
  int fd = -1;
  bool owned = false;
  ~Source() {
    if (owned && fd >= 0) close(fd);
  }
};

Result<std::string> read_all(int fd) {
  std::string text;
  std::array<char, 512> piece{};
  bool positioned = true;  // until the descriptor says that it is a stream
  while (text.size() <= kMostSecretTextBytes) {
    const ssize_t got = positioned ? pread(fd, piece.data(), piece.size(), static_cast<off_t>(text.size()))
                                   : read(fd, piece.data(), piece.size());
    if (got < 0 && errno == ESPIPE && positioned) {
      positioned = false;
    } else if (got < 0 && errno != EINTR) {
      return system_error("read", errno);
    } else if (got == 0) {
      break;
    } else if (got > 0) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
  }
  sodium_memzero(piece.data(), piece.size());
  if (text.size() > kMostSecretTextBytes) return error(TUTTI_ERR_CONFIG, "longer than {} bytes", kMostSecretTextBytes);
  // A file written by an editor or by echo ends with a newline that the same secret in a variable does not have.
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return error(TUTTI_ERR_CONFIG, "holds no secret: it is empty");
  return text;
}

Result<Secret> secret_of(int fd, std::string_view what) {
  Result<std::string> text = read_all(fd);
  if (!text.ok()) return text.status().with_context(what);
  Secret secret = Secret::from_text(*text);
  sodium_memzero(text->data(), text->size());
  return secret;
}

Result<Secret> secret_from_descriptor(const std::string& text) {
  int fd = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (failure != std::errc() || end != text.data() + text.size() || fd < 0) {
    return error(TUTTI_ERR_CONFIG, "secret_fd is '{}', which is no number of a descriptor", text);
  }
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0) {
    return error(TUTTI_ERR_CONFIG,
                 "secret_fd is {}, but this process has no such descriptor; was it closed, or the variable inherited by a "
                 "process that is not a rank?",
                 fd);
  }
  fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  return secret_of(fd, fmt::format("secret_fd {}", fd));
}

Result<Secret> secret_from_file(const std::string& path) {
  Source file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), true};
  if (file.fd < 0) {
    return error(TUTTI_ERR_CONFIG, "secret_file '{}' cannot be read: {}", path, system_error("open", errno).message());
  }
  struct stat about {};
  if (fstat(file.fd, &about) != 0) return system_error("fstat", errno).with_context(path);
  if (!S_ISREG(about.st_mode)) return error(TUTTI_ERR_CONFIG, "secret_file '{}' is not a regular file", path);
  if (about.st_uid != geteuid()) {
    return error(TUTTI_ERR_CONFIG, "secret_file '{}' belongs to user {}, not to user {} who runs this process", path,
                 about.st_uid, geteuid());
  }
  if ((about.st_mode & 07177) != 0) {
    return error(TUTTI_ERR_CONFIG, "secret_file '{}' has mode {:04o}: others may use it; run chmod 600 on it", path,
                 about.st_mode & 07777);
  }
  return secret_of(file.fd, fmt::format("secret_file '{}'", path));
}

}  // namespace

Secret Secret::generate(Random& random) {
  Secret secret;
  random.fill(secret.bytes_);
  secret.present_ = true;
  return secret;
}

Secret Secret::from_bytes(std::span<const std::byte, kBytes> bytes) noexcept {
  Secret secret;
  std::copy(bytes.begin(), bytes.end(), secret.bytes_.begin());
  secret.present_ = true;
  return secret;
}

Secret Secret::from_text(std::string_view text) {
  Secret secret;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, kBytes);
  absorb(state, "tutti secret");
  absorb(state, text);
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(secret.bytes_.data()), kBytes);
  secret.present_ = true;
  return secret;
}

void Secret::wipe() noexcept {
  sodium_memzero(bytes_.data(), bytes_.size());
  present_ = false;
}

bool operator==(const Secret& a, const Secret& b) noexcept {
  return a.present_ == b.present_ && sodium_memcmp(a.bytes_.data(), b.bytes_.data(), Secret::kBytes) == 0;
}

Mac keyed_mac(const Secret& secret, std::string_view purpose, std::span<const std::byte> message) {
  Mac mac{};
  crypto_generichash_state state;
  // Without a secret the key is all zero: the same bytes on both sides, and no protection, as it says in the interface.
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(secret.bytes().data()), Secret::kBytes, mac.size());
  absorb(state, purpose);
  absorb(state, std::string_view(reinterpret_cast<const char*>(message.data()), message.size()));
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(mac.data()), mac.size());
  sodium_memzero(&state, sizeof state);
  return mac;
}

bool equal_macs(const Mac& a, const Mac& b) noexcept { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

Result<Secret> load_secret(const Config& config) {
  if (const std::string& fd = config.text(Setting::secret_fd); !fd.empty()) return secret_from_descriptor(fd);
  if (const std::string& path = config.text(Setting::secret_file); !path.empty()) return secret_from_file(path);
  if (const std::string& text = config.text(Setting::secret); !text.empty()) return Secret::from_text(text);
  return Secret();
}

}  // namespace tutti
