// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "override.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "base/types.hpp"

namespace tutti {
namespace {

std::string names_of(Collective collective) {
  std::string names;
  for (const AlgorithmInfo* info : all_algorithms()) {
    if (info->collective == collective) names.append(names.empty() ? "" : ", ").append(info->name);
  }
  return names;
}

std::string shown(const ParameterInfo& info, uint64_t value) {
  return info.bytes ? format_bytes(value) : fmt::format("{}", value);
}

std::string parameters_of(const AlgorithmInfo& algorithm) {
  if (algorithm.parameters.empty()) return "it has none";
  std::string text = "it has ";
  for (const ParameterInfo& info : algorithm.parameters) {
    if (&info != algorithm.parameters.data()) text += ", ";
    text += fmt::format("{} ({}..{}, default {})", info.name, shown(info, info.min), shown(info, info.max),
                        shown(info, info.default_value));
  }
  return text;
}

Result<uint64_t> parse_value(const ParameterInfo& info, std::string_view text) {
  if (info.bytes) return parse_bytes(text);
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) {
    return error(TUTTI_ERR_CONFIG, "'{}' is not a whole number", text);
  }
  return value;
}

/// "name=value" into its place in `parameters`.
Status take_parameter(const AlgorithmInfo& algorithm, std::string_view text, Parameters& parameters, std::vector<bool>& given) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  for (size_t n = 0; n < algorithm.parameters.size(); ++n) {
    const ParameterInfo& info = algorithm.parameters[n];
    if (info.name != key) continue;
    if (equals == std::string_view::npos) {
      return error(TUTTI_ERR_CONFIG, "parameter {} of algorithm {} lacks a value; write {}=VALUE", key, algorithm.name, key);
    }
    if (given[n]) return error(TUTTI_ERR_CONFIG, "parameter {} of algorithm {} is given twice", key, algorithm.name);
    given[n] = true;
    const Result<uint64_t> value = parse_value(info, text.substr(equals + 1));
    if (!value) return value.status().with_context(fmt::format("parameter {} of algorithm {}", key, algorithm.name));
    // The default may lie outside the range: 0 says "as long as the transport allows".
    if (*value != info.default_value && (*value < info.min || *value > info.max)) {
      return error(TUTTI_ERR_CONFIG, "parameter {}={} of algorithm {} is out of range; {}..{} are allowed, default {}", key,
                   text.substr(equals + 1), algorithm.name, shown(info, info.min), shown(info, info.max),
                   shown(info, info.default_value));
    }
    parameters[n] = *value;
    return Status();
  }
  return error(TUTTI_ERR_CONFIG, "algorithm {} has no parameter '{}'; {}", algorithm.name, key, parameters_of(algorithm));
}

}  // namespace

Parameters default_parameters(const AlgorithmInfo& algorithm) {
  Parameters parameters;
  for (const ParameterInfo& info : algorithm.parameters) parameters.push_back(info.default_value);
  return parameters;
}

const char* lacks(const AlgorithmInfo& algorithm, const Requirements& required) {
  if (required.uneven && algorithm.has(kEqualBlocks)) return "its blocks are as long as each other";
  if (required.canonical && !algorithm.has(kCanonical)) return "it is not deterministic";
  if (required.ordered && !algorithm.has(kRankOrdered)) return "it does not fold in rank order";
  return nullptr;
}

const char* unfit_for(const AlgorithmInfo& algorithm, const Shape& shape) {
  if (shape.size < algorithm.min_ranks) return "it needs more ranks";
  if (shape.size > algorithm.max_ranks) return "it is for fewer ranks";
  if (algorithm.has(kPowerOfTwoRanks) && !std::has_single_bit(shape.size)) return "it needs a power of two ranks";
  if (algorithm.fits != nullptr && !algorithm.fits(shape)) return "it does not do for how they nest in groups";
  return nullptr;
}

Result<Choice> parse_algorithm(Collective collective, std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view wanted = text.substr(0, colon);
  Choice choice;
  choice.algorithm = find_algorithm(collective, wanted);
  if (choice.algorithm == nullptr) {
    return error(TUTTI_ERR_CONFIG, "there is no {} algorithm '{}'; there are: {}", name(collective), wanted,
                 names_of(collective));
  }
  const AlgorithmInfo& algorithm = *choice.algorithm;
  choice.parameters = default_parameters(algorithm);
  std::vector<bool> given(choice.parameters.size());
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  bool more = colon != std::string_view::npos;
  while (more) {
    const size_t comma = rest.find(',');
    TUTTI_TRY(take_parameter(algorithm, rest.substr(0, comma), choice.parameters, given));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return choice;
}

Result<Choice> parse_override(Collective collective, const Shape& shape, std::string_view text) {
  Result<Choice> choice = parse_algorithm(collective, text);
  if (!choice.ok()) return choice;
  const AlgorithmInfo& algorithm = *choice->algorithm;
  if (const char* why = unfit_for(algorithm, shape)) {
    return error(TUTTI_ERR_CONFIG, "{} algorithm {} cannot be used on {} ranks: {}", name(collective), algorithm.name, shape.size,
                 why);
  }
  choice->reason = fmt::format("{}: forced by the setting {}", describe(algorithm, choice->parameters), name(collective));
  return choice;
}

std::string describe(const AlgorithmInfo& algorithm, const Parameters& parameters) {
  std::string text(algorithm.name);
  for (size_t n = 0; n < algorithm.parameters.size() && n < parameters.size(); ++n) {
    const ParameterInfo& info = algorithm.parameters[n];
    text += fmt::format("{}{}={}", n == 0 ? ':' : ',', info.name, shown(info, parameters[n]));
  }
  return text;
}

}  // namespace tutti
