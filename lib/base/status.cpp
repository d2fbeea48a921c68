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

}  // namespace tutti
