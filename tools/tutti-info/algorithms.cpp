// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// All algorithms, for people and as the reference page docs/algorithms.md.
#include <fmt/format.h>

#include "base/types.hpp"
#include "pages.hpp"
#include "schedule/algorithm.hpp"

namespace tutti::info {
namespace {

std::string restrictions(const AlgorithmInfo& algorithm) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ", ") + one; };
  if (algorithm.min_ranks > 1) add(fmt::format("at least {} ranks", algorithm.min_ranks));
  if (algorithm.max_ranks != UINT32_MAX) add(fmt::format("at most {} ranks", algorithm.max_ranks));
  if (algorithm.has(kPowerOfTwoRanks)) add("powers of two only");
  if (algorithm.has(kEqualBlocks)) add("equal blocks only");
  if (algorithm.has(kNested)) add("for nested ranks");
  if (algorithm.has(kRankOrdered)) add("folds in rank order");
  if (algorithm.has(kCanonical)) add("deterministic");
  return text;
}

std::string parameter_text(const ParameterInfo& parameter) {
  const auto value = [&](uint64_t number) { return parameter.bytes ? format_bytes(number) : fmt::format("{}", number); };
  return fmt::format("{} (default {}, {} to {}): {}", std::string(parameter.name), value(parameter.default_value),
                     value(parameter.min), parameter.max == UINT64_MAX ? "any" : value(parameter.max),
                     std::string(parameter.doc));
}

std::string algorithms_text() {
  std::string text;
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    text += fmt::format("{} {}\n    {}\n", std::string(name(algorithm->collective)), std::string(algorithm->name),
                        std::string(algorithm->summary));
    if (const std::string limits = restrictions(*algorithm); !limits.empty()) text += fmt::format("    {}\n", limits);
    for (const ParameterInfo& parameter : algorithm->parameters) text += fmt::format("    {}\n", parameter_text(parameter));
    text += fmt::format("    Source: {}\n", std::string(algorithm->source));
  }
  return text + "To force one: the setting of the collective's name, as TUTTI_ALLREDUCE=ring:segment_bytes=256K\n";
}

/// A bar would end the cell of a table.
std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string parameters_cell(const AlgorithmInfo& algorithm) {
  std::string text;
  for (const ParameterInfo& parameter : algorithm.parameters) {
    text += fmt::format("{}{}", text.empty() ? "" : "<br>", parameter_text(parameter));
  }
  return text.empty() ? "none" : text;
}

std::string algorithms_markdown() {
  std::string text =
      "# Algorithms\n\n"
      "Made by `tutti-info algorithms --markdown`; a test keeps it up to date. `tutti-info choose` says which one a call uses "
      "and\n"
      "why; a setting of the collective's name forces one, as `TUTTI_ALLREDUCE=ring:segment_bytes=256K`. Each is one file,\n"
      "`algorithms/<collective>/<name>.cpp`, and is proved by the verifier.\n";
  const AlgorithmInfo* before = nullptr;
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    if (before == nullptr || before->collective != algorithm->collective) {
      text += fmt::format(
          "\n## {}\n\n| algorithm | what it does | restrictions and properties | parameters | source |\n|---|---|---|---|---|\n",
          name(algorithm->collective));
    }
    before = algorithm;
    const std::string limits = restrictions(*algorithm);
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", algorithm->name, cell(std::string(algorithm->summary)),
                        limits.empty() ? "none" : cell(limits), cell(parameters_cell(*algorithm)),
                        cell(std::string(algorithm->source)));
  }
  return text;
}

}  // namespace

std::string algorithms_page(Format format) { return format == Format::markdown ? algorithms_markdown() : algorithms_text(); }

}  // namespace tutti::info
