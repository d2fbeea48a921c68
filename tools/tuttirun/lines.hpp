// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tutti::launch {

/// Holds back the unfinished last line of a stream, so that what is passed on ends with a newline. Only a line longer
/// than kMaxLineBytes, and the last one of the stream, are passed on without.
class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 1u << 20;
  using Emit = std::function<void(std::string_view)>;
  void feed(std::string_view bytes, const Emit& emit);
  void finish(const Emit& emit);
  const std::string& held() const { return held_; }

 private:
  std::string held_;
};

/// Puts `tag` before every line of `chunk`; a line that began in an earlier chunk (`continues`) gets none.
std::string tag_lines(std::string_view chunk, std::string_view tag, bool continues);

}  // namespace tutti::launch
