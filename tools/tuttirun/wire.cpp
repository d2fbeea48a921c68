// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <algorithm>

namespace tutti::launch {

namespace {
constexpr size_t kHeaderBytes = 5;
constexpr size_t kMaxBannerBytes = 256 * 1024;

uint32_t read_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

template <class T>
Result<T> checked(const Unpacker& in, T value, std::string_view what) {
  if (in.ok() && in.rest().empty()) return value;
  return error(TUTTI_ERR_PROTOCOL, "malformed {} between tuttirun and its agent; are both of the same version?", what);
}
}  // namespace

Packer& Packer::u8(uint8_t value) {
  bytes_.push_back(static_cast<char>(value));
  return *this;
}

Packer& Packer::u32(uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) u8(static_cast<uint8_t>(value >> (8 * i)));
  return *this;
}

Packer& Packer::u64(uint64_t value) {
  return u32(static_cast<uint32_t>(value)).u32(static_cast<uint32_t>(value >> 32));
}

Packer& Packer::text(std::string_view value) {
  u32(static_cast<uint32_t>(value.size()));
  bytes_.append(value);
  return *this;
}

Packer& Packer::texts(const std::vector<std::string>& values) {
  u32(static_cast<uint32_t>(values.size()));
  for (const std::string& value : values) text(value);
  return *this;
}

std::string_view Unpacker::take(size_t bytes) {
  if (!ok_ || rest_.size() < bytes) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

uint8_t Unpacker::u8() {
  const std::string_view bytes = take(1);
  return bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
}

uint32_t Unpacker::u32() {
  const std::string_view bytes = take(4);
  return bytes.empty() ? 0 : read_u32(bytes);
}

uint64_t Unpacker::u64() {
  const uint64_t low = u32();
  return low | static_cast<uint64_t>(u32()) << 32;
}

std::string Unpacker::text() { return std::string(take(u32())); }

std::vector<std::string> Unpacker::texts() {
  std::vector<std::string> values;
  // The count is only a loop bound: each string needs four bytes that are really there.
  for (uint32_t left = u32(); left > 0 && ok_; --left) values.push_back(text());
  return values;
}

std::string pack(const JobDescription& job) {
  Packer out;
  out.text(job.job_id).text(job.secret).text(job.rendezvous).text(job.directory).u32(job.size);
  out.u32(static_cast<uint32_t>(job.ranks.size()));
  for (const uint32_t rank : job.ranks) out.u32(rank);
  out.texts(job.command).texts(job.environment).u64(job.grace_ns);
  out.u8(static_cast<uint8_t>(job.bind)).u8(job.verbose ? 1 : 0);
  return out.take();
}

Result<JobDescription> unpack_job(std::string_view bytes) {
  Unpacker in(bytes);
  JobDescription job;
  job.job_id = in.text();
  job.secret = in.text();
  job.rendezvous = in.text();
  job.directory = in.text();
  job.size = in.u32();
  for (uint32_t left = in.u32(); left > 0 && in.ok(); --left) job.ranks.push_back(in.u32());
  job.command = in.texts();
  job.environment = in.texts();
  job.grace_ns = in.u64();
  job.bind = static_cast<BindMode>(std::min<uint8_t>(in.u8(), static_cast<uint8_t>(BindMode::none)));
  job.verbose = in.u8() != 0;
  if (in.ok() && job.command.empty()) return error(TUTTI_ERR_PROTOCOL, "job description without a command");
  return checked(in, std::move(job), "job description");
}

std::string pack(const Hello& hello) {
  return Packer().u32(hello.pid).text(hello.host_name).text(hello.launcher_address).take();
}

Result<Hello> unpack_hello(std::string_view bytes) {
  Unpacker in(bytes);
  Hello hello;
  hello.pid = in.u32();
  hello.host_name = in.text();
  hello.launcher_address = in.text();
  return checked(in, std::move(hello), "greeting");
}

std::string pack(const ExitReport& report) {
  return Packer()
      .u32(report.rank)
      .u32(static_cast<uint32_t>(report.wait_status))
      .u32(static_cast<uint32_t>(report.start_errno))
      .text(report.start_step)
      .take();
}

Result<ExitReport> unpack_exit(std::string_view bytes) {
  Unpacker in(bytes);
  ExitReport report;
  report.rank = in.u32();
  report.wait_status = static_cast<int>(in.u32());
  report.start_errno = static_cast<int>(in.u32());
  report.start_step = in.text();
  return checked(in, std::move(report), "exit report");
}

std::string encode(FrameType type, std::string_view payload) {
  std::string bytes = Packer().u32(static_cast<uint32_t>(payload.size())).u8(static_cast<uint8_t>(type)).take();
  bytes.append(payload);
  return bytes;
}

void FrameReader::feed(std::string_view bytes) {
  if (offset_ > 0 && offset_ == buffer_.size()) {
    buffer_.clear();
    offset_ = 0;
  } else if (offset_ > (1u << 20)) {
    buffer_.erase(0, offset_);
    offset_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  if (in_banner_) {
    const size_t at = buffer_.find(kAgentMagic);
    if (at == std::string::npos) {
      banner_ = buffer_.substr(0, kMaxBannerBytes);
      if (buffer_.size() > kMaxBannerBytes)
        return error(TUTTI_ERR_PROTOCOL, "endless output instead of the agent's greeting");
      return std::optional<Frame>();
    }
    banner_ = buffer_.substr(0, at);
    offset_ = at + kAgentMagic.size();
    in_banner_ = false;
  }
  const std::string_view rest = std::string_view(buffer_).substr(offset_);
  if (rest.size() < kHeaderBytes) return std::optional<Frame>();
  const uint32_t bytes = read_u32(rest);
  if (bytes > kMaxFrameBytes)
    return error(TUTTI_ERR_PROTOCOL, "a frame of {} bytes, more than {}", bytes, kMaxFrameBytes);
  if (rest.size() < kHeaderBytes + bytes) return std::optional<Frame>();
  Frame frame{static_cast<FrameType>(rest[4]), std::string(rest.substr(kHeaderBytes, bytes))};
  offset_ += kHeaderBytes + bytes;
  return std::optional<Frame>(std::move(frame));
}

}  // namespace tutti::launch
