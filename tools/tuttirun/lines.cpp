// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

namespace tutti::launch {

void LineSplitter::feed(std::string_view bytes, const Emit& emit) {
  const size_t last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    held_.append(bytes);
  } else if (held_.empty()) {
    emit(bytes.substr(0, last + 1));
    held_.assign(bytes.substr(last + 1));
  } else {
    held_.append(bytes.substr(0, last + 1));
    emit(held_);
    held_.assign(bytes.substr(last + 1));
  }
  if (held_.size() >= kMaxLineBytes) finish(emit);
}

void LineSplitter::finish(const Emit& emit) {
  if (!held_.empty()) emit(held_);
  held_.clear();
}

std::string tag_lines(std::string_view chunk, std::string_view tag, bool continues) {
  std::string tagged;
  while (!chunk.empty()) {
    if (!continues) tagged.append(tag);
    continues = false;
    const size_t end = chunk.find('\n');
    const size_t bytes = end == std::string_view::npos ? chunk.size() : end + 1;
    tagged.append(chunk.substr(0, bytes));
    chunk.remove_prefix(bytes);
  }
  return tagged;
}

}  // namespace tutti::launch
