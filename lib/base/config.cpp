// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/config.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <iterator>

#include "base/nearest.hpp"
#include "base/types.hpp"

namespace tutti {
namespace {

constexpr std::string_view kPrefix = "TUTTI_";

constexpr std::string_view choices_of(SettingType type, std::string_view doc) {
  return type == SettingType::choice ? doc.substr(0, doc.find(": ")) : std::string_view();
}
constexpr std::string_view words_of(SettingType type, std::string_view doc) {
  return type == SettingType::choice ? doc.substr(doc.find(": ") + 2) : doc;
}

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// "TUTTI_NAME" for a name, made at compile time so that SettingInfo can hold views for ever.
template <size_t Size>
constexpr std::array<char, Size + kPrefix.size() - 1> environment_name(const char (&name)[Size]) {
  std::array<char, Size + kPrefix.size() - 1> text{};
  for (size_t i = 0; i < kPrefix.size(); ++i) text[i] = kPrefix[i];
  for (size_t i = 0; i + 1 < Size; ++i) text[kPrefix.size() + i] = upper(name[i]);
  return text;
}

namespace environment_names {
#define TUTTI_SETTING(name, type, default_text, doc) constexpr auto name = environment_name(#name);
#include "base/settings.def"
#undef TUTTI_SETTING
}  // namespace environment_names

constexpr SettingInfo kSettings[] = {
#define TUTTI_SETTING(name, type, default_text, doc)                 \
  {#name,                                                            \
   {environment_names::name.data(), environment_names::name.size()}, \
   SettingType::type,                                                \
   default_text,                                                     \
   words_of(SettingType::type, doc),                                 \
   choices_of(SettingType::type, doc)},
#include "base/settings.def"
#undef TUTTI_SETTING
};

size_t index_of(Setting setting) { return static_cast<size_t>(setting); }

const SettingInfo* find(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kSettings), std::end(kSettings), [&](const SettingInfo& info) { return info.name == name; });
  return found == std::end(kSettings) ? nullptr : found;
}

bool is_choice(std::string_view choices, std::string_view word) {
  while (!choices.empty()) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == word) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
  return false;
}

Result<uint64_t> parse_flag(std::string_view text) {
  for (const std::string_view word : {"on", "true", "yes", "1"}) {
    if (text == word) return uint64_t{1};
  }
  for (const std::string_view word : {"off", "false", "no", "0"}) {
    if (text == word) return uint64_t{0};
  }
  return error(TUTTI_ERR_CONFIG, "'{}' is neither on nor off", text);
}

Result<uint64_t> parse_count(std::string_view text) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) {
    return error(TUTTI_ERR_CONFIG, "'{}' is not a whole number", text);
  }
  return number;
}

/// The number behind a text of the setting's type; 0 for text and choice.
Result<uint64_t> parse_value(const SettingInfo& info, std::string_view text) {
  switch (info.type) {
    case SettingType::text:
      return uint64_t{0};
    case SettingType::flag:
      return parse_flag(text);
    case SettingType::count:
      return parse_count(text);
    case SettingType::bytes:
      return parse_bytes(text);
    case SettingType::duration:
      return parse_duration_ns(text);
    case SettingType::choice:
      if (is_choice(info.choices, text)) return uint64_t{0};
      return error(TUTTI_ERR_CONFIG, "'{}' is not one of {}", text, info.choices);
  }
  return error(TUTTI_ERR_INTERNAL, "setting {} has no type", info.name);
}

bool is_launcher_variable(std::string_view variable) {
  if (variable.substr(0, kTestVariablePrefix.size()) == kTestVariablePrefix) return true;
  return std::find(std::begin(kLauncherVariables), std::end(kLauncherVariables), variable) != std::end(kLauncherVariables);
}

Status unknown_variable(std::string_view variable, std::string_view lower_name) {
  const std::string_view near = nearest_setting(lower_name);
  if (near.empty()) return error(TUTTI_ERR_CONFIG, "unknown environment variable {}", variable);
  return error(TUTTI_ERR_CONFIG, "unknown environment variable {}; did you mean {}?", variable, find(near)->environment);
}

}  // namespace

std::span<const SettingInfo> all_settings() noexcept { return kSettings; }

std::string_view nearest_setting(std::string_view name) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const SettingInfo& info : kSettings) {
    const size_t distance = edit_distance(name, info.name);
    if (distance < best_distance) {
      best_distance = distance;
      best = info.name;
    }
  }
  // A forgotten or an invented last word is many letters away, but plain to a reader.
  for (const SettingInfo& info : kSettings) {
    if (best.empty() && name.size() >= 4 && (info.name.starts_with(name) || name.starts_with(info.name))) best = info.name;
  }
  return best;
}

Config::Config() : values_(std::size(kSettings)) {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Result<uint64_t> number = parse_value(kSettings[i], kSettings[i].default_text);
    assert(number.ok());
    values_[i] = {std::string(kSettings[i].default_text), number.ok() ? number.value() : 0, SettingSource::built_in};
  }
}

Status Config::set(std::string_view name, std::string_view value, SettingSource source) {
  const SettingInfo* info = find(name);
  if (info == nullptr) {
    const std::string_view near = nearest_setting(name);
    if (near.empty()) return error(TUTTI_ERR_CONFIG, "unknown setting '{}'; `tutti-info config` lists all", name);
    return error(TUTTI_ERR_CONFIG, "unknown setting '{}'; did you mean '{}'?", name, near);
  }
  Value& slot = values_[static_cast<size_t>(info - kSettings)];
  const Result<uint64_t> number = parse_value(*info, value);
  if (!number) {
    const std::string_view shown = source == SettingSource::environment ? info->environment : info->name;
    return number.status().with_context(shown);
  }
  if (source < slot.source) return Status();  // what the API gave outranks the environment, in whatever order they come
  slot = {std::string(value), number.value(), source};
  return Status();
}

Status Config::load_environment(const char* const* environment, std::string* unknown) {
  std::string problems;
  const auto note = [&](const Status& status) {
    if (!status.ok()) problems.append(problems.empty() ? "" : "; ").append(status.message());
  };
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    const std::string_view variable = entry.substr(0, equals);
    if (variable.substr(0, kPrefix.size()) != kPrefix || equals == std::string_view::npos) continue;
    if (is_launcher_variable(variable)) continue;
    const std::string_view value = entry.substr(equals + 1);
    std::string name(variable.substr(kPrefix.size()));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const SettingInfo* info = find(name);
    if (info == nullptr || info->environment != variable) {
      const Status status = unknown_variable(variable, name);
      if (unknown)
        unknown->append(unknown->empty() ? "" : "; ").append(status.message());
      else
        note(status);
    } else if (!value.empty()) {  // set to nothing is how shells unset: the default holds
      note(set(name, value, SettingSource::environment));
    }
  }
  return problems.empty() ? Status() : Status(TUTTI_ERR_CONFIG, std::move(problems));
}

const std::string& Config::text(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::text);
  return values_[index_of(setting)].text;
}
bool Config::flag(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::flag);
  return values_[index_of(setting)].number != 0;
}
uint64_t Config::count(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::count);
  return values_[index_of(setting)].number;
}
uint64_t Config::bytes(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::bytes);
  return values_[index_of(setting)].number;
}
uint64_t Config::duration_ns(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::duration);
  return values_[index_of(setting)].number;
}
const std::string& Config::choice(Setting setting) const {
  assert(kSettings[index_of(setting)].type == SettingType::choice);
  return values_[index_of(setting)].text;
}

std::optional<std::string> Config::lookup(std::string_view name) const {
  const SettingInfo* info = find(name);
  if (info == nullptr) return std::nullopt;
  const Value& value = values_[static_cast<size_t>(info - kSettings)];
  // The plugin ABI's spelling: plain numbers, whatever unit the user wrote.
  const bool numeric = info->type != SettingType::text && info->type != SettingType::choice;
  return numeric ? fmt::format("{}", value.number) : value.text;
}

const std::string& Config::as_written(Setting setting) const { return values_[index_of(setting)].text; }

SettingSource Config::source(Setting setting) const { return values_[index_of(setting)].source; }

}  // namespace tutti
