// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "tutti/tutti.h"

namespace tutti {

/// "TUTTI_ERR_RANK"; "unknown status" for an unknown number.
const char* status_name(tutti_status_t status) noexcept;

/// Outcome of a call: a code of tutti.h and, for errors, a message (what was wrong, with what value, what to do).
/// One word plus one pointer; success allocates nothing. Made where an error is first seen; layers above add nothing
/// but context they alone know (with_context).
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  /// For when there may be no memory for a message.
  explicit Status(tutti_status_t code) noexcept : code_(code) {}
  Status(tutti_status_t code, std::string message) : code_(code), message_(std::make_unique<std::string>(std::move(message))) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) : code_(other.code_), message_(other.copy_message()) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }

  bool ok() const noexcept { return code_ == TUTTI_OK; }
  explicit operator bool() const noexcept { return ok(); }
  tutti_status_t code() const noexcept { return code_; }
  std::string_view message() const noexcept {
    if (message_) return *message_;
    return ok() ? std::string_view() : std::string_view(status_name(code_));
  }
  Status with_context(std::string_view prefix) const {
    return ok() ? Status() : Status(code_, fmt::format("{}: {}", prefix, message()));
  }

 private:
  std::unique_ptr<std::string> copy_message() const { return message_ ? std::make_unique<std::string>(*message_) : nullptr; }
  tutti_status_t code_ = TUTTI_OK;
  std::unique_ptr<std::string> message_;
};

template <class... Args>
Status error(tutti_status_t code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// TUTTI_ERR_SYSTEM (or RESOURCE / MEMORY where errno says so) with the call's name and strerror(error_number).
Status system_error(std::string_view call, int error_number);

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace tutti

/// Returns from the enclosing function when the Status expression is an error.
#define TUTTI_TRY(expression)                                                           \
  do {                                                                                  \
    if (::tutti::Status tutti_try_ = (expression); !tutti_try_.ok()) return tutti_try_; \
  } while (false)
