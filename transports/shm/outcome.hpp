// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tutti/tutti.h"

namespace tutti::shm {

/// A status and, if it is not TUTTI_OK, why: one line for a person. Used off the data path only.
struct [[nodiscard]] Outcome {
  tutti_status_t status = TUTTI_OK;
  std::string text;

  bool ok() const { return status == TUTTI_OK; }

  static Outcome success() { return {}; }
  static Outcome failure(tutti_status_t code, std::string why) { return {code, std::move(why)}; }
  /// A system call failed; descriptor and memory shortages get the code that names them.
  static Outcome system(const std::string& what, int error) {
    const bool shortage = error == EMFILE || error == ENFILE || error == ENOSPC || error == ENOMEM || error == EDQUOT;
    return {shortage ? TUTTI_ERR_RESOURCE : TUTTI_ERR_SYSTEM, what + ": " + std::strerror(error)};
  }
};

}  // namespace tutti::shm
