// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "sysfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace tutti {

std::string read_line(const std::string& path) {
  // Not a stream: a start reads a handful of these, and a stream costs as much as the file.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  char piece[512];
  for (ssize_t got = 0; (got = ::read(file, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(got));
  ::close(file);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::optional<long long> read_number(const std::string& path) {
  const std::string text = read_line(path);
  const bool hexadecimal = text.starts_with("0x");
  long long number = 0;
  const auto [end, failure] =
      std::from_chars(text.data() + (hexadecimal ? 2 : 0), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return names;
  while (const dirent* const entry = ::readdir(open)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tutti
