// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "binding.hpp"

namespace tutti::launch {

/// What an agent writes before its first frame, so that banners that a remote shell prints first can be told apart.
inline constexpr std::string_view kAgentMagic = "\n#tuttirun-agent-1#\n";

/// Largest frame that either side accepts; a longer one is a broken peer, not a reason to allocate.
inline constexpr uint32_t kMaxFrameBytes = 64u << 20;

enum class FrameType : uint8_t {
  // launcher to agent
  job = 1,     // JobDescription
  stdin_data,  // bytes for rank 0
  stdin_end,
  signal,   // u32 signal: passed to every rank's process group
  end,      // u32 first signal: end the ranks in order
  kill,     // KILL for everything, at once
  guard,    // u32 process group that must not outlive the launcher, u64 grace in nanoseconds
  unguard,  // u32 process group
  bye,      // nothing more to do: exit
  // agent to launcher
  hello = 64,    // Hello
  started,       // u32 rank, u32 pid
  output,        // u32 rank, u8 stream (1, 2), bytes
  exited,        // ExitReport
  stdin_credit,  // u32 bytes of standard input that were passed on
  failed,        // text: the agent could not do its work
  note,          // text: a remark for the person
  done,          // all ranks reaped, all output sent
};

struct Frame {
  FrameType type = FrameType::bye;
  std::string payload;
};

/// Appends numbers (little endian) and length-prefixed strings to a string.
class Packer {
 public:
  Packer& u8(uint8_t value);
  Packer& u32(uint32_t value);
  Packer& u64(uint64_t value);
  Packer& text(std::string_view value);
  Packer& texts(const std::vector<std::string>& values);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what Packer wrote. After a short read everything is zero or empty and ok() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  uint8_t u8();
  uint32_t u32();
  uint64_t u64();
  std::string text();
  std::vector<std::string> texts();
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view take(size_t bytes);
  std::string_view rest_;
  bool ok_ = true;
};

/// Everything that one host needs to run its ranks. Travels over a pipe or ssh's standard input, so that neither the
/// environment's odd characters nor the secret meet a command line.
struct JobDescription {
  std::string job_id;
  std::string secret;
  std::string rendezvous;
  std::string directory;
  uint32_t size = 0;
  std::vector<uint32_t> ranks;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value
  uint64_t grace_ns = 0;
  BindMode bind = BindMode::automatic;
  bool verbose = false;
};
std::string pack(const JobDescription& job);
Result<JobDescription> unpack_job(std::string_view bytes);

struct Hello {
  uint32_t pid = 0;
  std::string host_name;
  std::string launcher_address;  // the launcher's address as sshd saw it, or ""
};
std::string pack(const Hello& hello);
Result<Hello> unpack_hello(std::string_view bytes);

/// How a rank ended: as wait(2) tells it, or why it could not be started.
struct ExitReport {
  uint32_t rank = 0;
  int wait_status = 0;
  int start_errno = 0;  // not 0: the program never ran
  std::string start_step;
};
std::string pack(const ExitReport& report);
Result<ExitReport> unpack_exit(std::string_view bytes);

/// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  /// With `expect_magic` everything up to kAgentMagic is kept apart as the banner.
  explicit FrameReader(bool expect_magic) : in_banner_(expect_magic) {}
  void feed(std::string_view bytes);
  /// The next complete frame; nullopt: more bytes are needed; an error: the stream is not ours.
  Result<std::optional<Frame>> next();
  const std::string& banner() const { return banner_; }

 private:
  bool in_banner_;
  std::string banner_;
  std::string buffer_;
  size_t offset_ = 0;
};
std::string encode(FrameType type, std::string_view payload);

}  // namespace tutti::launch
