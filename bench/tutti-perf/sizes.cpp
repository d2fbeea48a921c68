// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "errors.hpp"

namespace tutti_perf {

uint64_t parse_count(std::string_view option, std::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < min || value > max) {
    throw UsageError(fmt::format("{}: '{}' is not a whole number from {} to {}", option, text, min, max));
  }
  return value;
}

uint64_t parse_bytes(std::string_view option, std::string_view text) {
  const auto complain = [&]() {
    return UsageError(fmt::format("{}: '{}' is not a size below 2^63 bytes (4096, 64K, 1M, 2GiB)", option, text));
  };
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc()) throw complain();
  std::string_view unit(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  unsigned shift = 0;
  if (!unit.empty() && unit != "B") {
    const size_t power = std::string_view("KMGT").find(static_cast<char>(std::toupper(unit[0])));
    unit.remove_prefix(1);
    if (power == std::string_view::npos || !(unit.empty() || unit == "B" || unit == "iB")) throw complain();
    shift = 10 * (static_cast<unsigned>(power) + 1);
  }
  if (value > (uint64_t{1} << 63) - 1 || value > ((uint64_t{1} << 63) - 1) >> shift) throw complain();
  return value << shift;
}

std::vector<uint64_t> sweep_bytes(const Sweep& sweep) {
  std::vector<uint64_t> sizes;
  uint64_t size = sweep.begin_bytes;
  while (size <= sweep.end_bytes) {
    sizes.push_back(size);
    uint64_t next = 0;
    if (sweep.step_bytes != 0) {
      next = size + sweep.step_bytes;
    } else if (size == 0) {
      next = 8;
    } else {
      // A factor near 1 still goes on, and a product beyond the range ends the list.
      const double product = std::floor(static_cast<double>(size) * sweep.factor);
      if (product > static_cast<double>(sweep.end_bytes)) break;
      next = std::max(size + 1, static_cast<uint64_t>(product));
    }
    size = next;
  }
  return sizes;
}

uint64_t Workload::total_count() const {
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return sum;
}

uint64_t Workload::longest_count() const { return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end()); }

std::vector<Workload> workloads_of_sweep(const Sweep& sweep, uint32_t element_bytes, uint32_t multiple) {
  std::vector<Workload> rows;
  for (const uint64_t bytes : sweep_bytes(sweep)) {
    const uint64_t whole = bytes / element_bytes / multiple * multiple;
    const uint64_t count = bytes == 0 ? 0 : std::max<uint64_t>(whole, multiple);
    if (rows.empty() || rows.back().counts[0] != count) rows.push_back({{count}, 1, false});
  }
  return rows;
}

std::vector<Workload> workloads_of_model(const Model& model, uint32_t element_bytes, uint64_t max_bytes, uint64_t* left_out) {
  std::vector<Workload> rows;
  Workload whole{{}, 0, true};
  *left_out = 0;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.element_count > max_bytes / element_bytes) {
      ++*left_out;
      continue;
    }
    whole.counts.push_back(tensor.element_count);
    ++whole.tensor_count;
    const auto same =
        std::find_if(rows.begin(), rows.end(), [&](const Workload& row) { return row.counts[0] == tensor.element_count; });
    if (same == rows.end()) {
      rows.push_back({{tensor.element_count}, 1, false});
    } else {
      ++same->tensor_count;
    }
  }
  if (!whole.counts.empty()) rows.push_back(std::move(whole));
  return rows;
}

}  // namespace tutti_perf
