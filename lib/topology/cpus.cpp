// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>

namespace tutti {
namespace {

constexpr int kMaxCpus = 1 << 16;

/// Appends to `cpus`; gives what could not be read.
std::string_view scan(std::string_view text, CpuList& cpus) {
  while (!text.empty()) {
    const char* const end = text.data() + text.size();
    int first = 0;
    auto [after, failure] = std::from_chars(text.data(), end, first);
    if (failure != std::errc() || first < 0 || first >= kMaxCpus) break;
    int last = first;
    if (after < end && *after == '-') {
      const auto range = std::from_chars(after + 1, end, last);
      if (range.ec != std::errc() || last < first || last >= kMaxCpus) break;
      after = range.ptr;
    }
    if (cpus.size() > kMaxCpus) break;  // the same ones again and again
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    text.remove_prefix(static_cast<size_t>(after - text.data()));
    if (text.size() < 2 || text.front() != ',') break;
    text.remove_prefix(1);
  }
  return text;
}

void tidy(CpuList& cpus) {
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
}

}  // namespace

CpuList parse_cpu_list(std::string_view text) {
  CpuList cpus;
  scan(text, cpus);
  tidy(cpus);
  return cpus;
}

Result<CpuList> check_cpu_list(std::string_view text) {
  CpuList cpus;
  if (!scan(text, cpus).empty())
    return error(TUTTI_ERR_ARGUMENT, "'{}' is no list of numbers below {}; write as 0-3,8", text.substr(0, 100), kMaxCpus);
  tidy(cpus);
  return cpus;
}

std::string format_cpu_list(const CpuList& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t j = i;
    while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
    if (!text.empty()) text += ',';
    text += i == j ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[j]);
    i = j + 1;
  }
  return text;
}

bool is_within(const CpuList& some, const CpuList& all) { return std::includes(all.begin(), all.end(), some.begin(), some.end()); }

CpuList allowed_cpus() {
  CpuList cpus;
  for (int limit = CPU_SETSIZE; limit <= kMaxCpus; limit *= 2) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<size_t>(limit));
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(limit));
    if (set == nullptr) break;
    const bool got = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; got && cpu < limit; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (got) break;
  }
  return cpus;
}

}  // namespace tutti
