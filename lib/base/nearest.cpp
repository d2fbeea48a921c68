// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string_view one : known) {
    const size_t distance = edit_distance(name, one);
    if (distance >= best_distance || distance >= one.size()) continue;
    best_distance = distance;
    best = one;
  }
  return best;
}

std::string hint(std::string_view name, const std::vector<std::string_view>& known) {
  if (const std::string_view near = nearest_name(name, known); !near.empty()) return fmt::format("did you mean '{}'?", near);
  return fmt::format("there are: {}", fmt::join(known, ", "));
}

}  // namespace tutti
