// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/status.hpp"

#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

// strerror_r has two incompatible forms (GNU returns the text, POSIX a number); overloads take whichever there is.
[[maybe_unused]] const char* text_of(const char* returned, const char*) { return returned; }
[[maybe_unused]] const char* text_of(int failed, const char* buffer) { return failed == 0 ? buffer : "unknown error"; }

tutti_status_t code_for(int error_number) {
  switch (error_number) {
    case ENOMEM:
      return TUTTI_ERR_MEMORY;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case ENOBUFS:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return TUTTI_ERR_RESOURCE;
    default:
      return TUTTI_ERR_SYSTEM;
  }
}

}  // namespace

Status system_error(std::string_view call, int error_number) {
  char buffer[256] = "";
  const char* text = text_of(strerror_r(error_number, buffer, sizeof buffer), buffer);
  return error(code_for(error_number), "{}: {} (errno {})", call, text, error_number);
}

const char* status_name(tutti_status_t status) noexcept {
  switch (status) {
#define TUTTI_NAME(code) \
  case code: return #code;
    TUTTI_NAME(TUTTI_OK)
    TUTTI_NAME(TUTTI_ERR_ARGUMENT)
    TUTTI_NAME(TUTTI_ERR_TYPE)
    TUTTI_NAME(TUTTI_ERR_OP)
    TUTTI_NAME(TUTTI_ERR_RANK)
    TUTTI_NAME(TUTTI_ERR_HANDLE)
    TUTTI_NAME(TUTTI_ERR_UNSUPPORTED)
    TUTTI_NAME(TUTTI_ERR_CONCURRENT)
    TUTTI_NAME(TUTTI_ERR_TRUNCATED)
    TUTTI_NAME(TUTTI_ERR_CONFIG)
    TUTTI_NAME(TUTTI_ERR_SIZE)
    TUTTI_NAME(TUTTI_ERR_CANCELLED)
    TUTTI_NAME(TUTTI_ERR_MISMATCH)
    TUTTI_NAME(TUTTI_ERR_ABORTED)
    TUTTI_NAME(TUTTI_ERR_TIMEOUT)
    TUTTI_NAME(TUTTI_ERR_PEER_FAILED)
    TUTTI_NAME(TUTTI_ERR_CONNECT)
    TUTTI_NAME(TUTTI_ERR_AUTH)
    TUTTI_NAME(TUTTI_ERR_PROTOCOL)
    TUTTI_NAME(TUTTI_ERR_VERSION)
    TUTTI_NAME(TUTTI_ERR_MISSING_RANK)
    TUTTI_NAME(TUTTI_ERR_MEMORY)
    TUTTI_NAME(TUTTI_ERR_RESOURCE)
    TUTTI_NAME(TUTTI_ERR_SYSTEM)
    TUTTI_NAME(TUTTI_ERR_FORKED)
    TUTTI_NAME(TUTTI_ERR_ENVIRONMENT)
    TUTTI_NAME(TUTTI_ERR_INTERNAL)
#undef TUTTI_NAME
    default: return "unknown status";
  }
}

}  // namespace tutti
