// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace tutti {

/// Names of the settings, from settings.def.
enum class Setting : uint16_t {
#define TUTTI_SETTING(name, type, default_text, doc) name,
#include "base/settings.def"
#undef TUTTI_SETTING
};

enum class SettingType : uint8_t { text, flag, count, bytes, duration, choice };
enum class SettingSource : uint8_t { built_in, environment, api };

struct SettingInfo {
  std::string_view name;          // "tcp_window_bytes"
  std::string_view environment;   // "TUTTI_TCP_WINDOW_BYTES"
  SettingType type;
  std::string_view default_text;
  std::string_view doc;
  std::string_view choices;       // "auto|scalar|avx2" for choice, else ""
};
std::span<const SettingInfo> all_settings() noexcept;

/// Values of all settings. A value type: copied into each context. Precedence: API, environment, default.
class Config {
 public:
  Config();  // defaults only; reads no environment

  /// Takes every TUTTI_ variable of `environment` (as environ: "NAME=value"). Unknown TUTTI_ names and bad values are
  /// collected into one TUTTI_ERR_CONFIG that names each and the nearest known name; good ones are taken all the same.
  /// Names in kLauncherVariables (set by tuttirun for other purposes) are ignored.
  Status load_environment(const char* const* environment);

  Status set(std::string_view name, std::string_view value, SettingSource source = SettingSource::api);

  /// Typed access; asking with the wrong type is a programming error (asserts).
  const std::string& text(Setting setting) const;
  bool flag(Setting setting) const;
  uint64_t count(Setting setting) const;
  uint64_t bytes(Setting setting) const;
  uint64_t duration_ns(Setting setting) const;
  const std::string& choice(Setting setting) const;

  /// The value as text, for any type, by name: what plugins and tutti-info see. nullopt: no such setting.
  std::optional<std::string> lookup(std::string_view name) const;
  SettingSource source(Setting setting) const;

 private:
  struct Value {
    std::string text;
    uint64_t number = 0;
    SettingSource source = SettingSource::built_in;
  };
  std::vector<Value> values_;
};

/// The known name nearest to `name` by edit distance, or "" when none is near.
std::string_view nearest_setting(std::string_view name);

}  // namespace tutti
