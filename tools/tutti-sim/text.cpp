// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pages.hpp"

namespace tutti::simulator {

Result<std::vector<uint32_t>> parse_ranks(std::string_view text) {
  constexpr uint32_t kMost = 300;  // the verifier follows every element of every rank
  const auto number = [](std::string_view digits, uint32_t& value) {
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return failure == std::errc() && end == digits.data() + digits.size() && value > 0 && value <= kMost;
  };
  std::vector<uint32_t> ranks;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t dash = item.find('-');
    uint32_t first = 0;
    uint32_t last = 0;
    const bool good = number(item.substr(0, dash), first) && number(dash == item.npos ? item : item.substr(dash + 1), last);
    if (!good || first > last) {
      return error(TUTTI_ERR_ARGUMENT, "--ranks: '{}' is no number or range from 1 to {}, as in 2,3,8-12", item, kMost);
    }
    for (uint32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string format_time(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.4g} s", ns / 1e9);
}

std::string format_size(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} {}", value, kUnits[unit]);
}

}  // namespace tutti::simulator
