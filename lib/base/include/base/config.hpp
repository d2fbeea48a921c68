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
  std::string_view name;         // "tcp_window_bytes"
  std::string_view environment;  // "TUTTI_TCP_WINDOW_BYTES"
  SettingType type;
  std::string_view default_text;
  std::string_view doc;
  std::string_view choices;  // "auto|scalar|avx2" for choice, else ""
};
std::span<const SettingInfo> all_settings() noexcept;

/// TUTTI_ variables that are not settings: what tuttirun tells its processes beside the settings above, and what the build
/// and tests use. They are no error in an environment; everything else with the prefix must be a setting.
inline constexpr std::string_view kLauncherVariables[] = {
    "TUTTI_LAUNCHER",  "TUTTI_LAUNCHER_FD", "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_SIZE",
    "TUTTI_NODE_RANK", "TUTTI_NODE_COUNT",  "TUTTI_RSH",
};
inline constexpr std::string_view kTestVariablePrefix = "TUTTI_TEST_";

/// Values of all settings. A value type: copied into each context. Precedence: API, environment, default.
class Config {
 public:
  Config();  // defaults only; reads no environment

  /// Takes every TUTTI_ variable of `environment` (as environ: "NAME=value"). Unknown TUTTI_ names and bad values are
  /// collected into one TUTTI_ERR_CONFIG that names each and the nearest known name; good ones are taken all the same.
  /// Names in kLauncherVariables (set by tuttirun for other purposes) are ignored. With `unknown`, unknown names go there, as text
  /// for a warning, and are no error: a job of mixed versions still starts.
  Status load_environment(const char* const* environment, std::string* unknown = nullptr);

  Status set(std::string_view name, std::string_view value, SettingSource source = SettingSource::api);

  /// Typed access; asking with the wrong type is a programming error (asserts).
  const std::string& text(Setting setting) const;
  bool flag(Setting setting) const;
  uint64_t count(Setting setting) const;
  uint64_t bytes(Setting setting) const;
  uint64_t duration_ns(Setting setting) const;
  const std::string& choice(Setting setting) const;

  /// The value in the plugin ABI's spelling, by name: bytes as a plain number, durations in nanoseconds, flags 0 or 1.
  /// nullopt: no such setting.
  std::optional<std::string> lookup(std::string_view name) const;
  /// The value as its source wrote it ("256K"), for people.
  const std::string& as_written(Setting setting) const;
  SettingSource source(Setting setting) const;

 private:
  struct Value {
    std::string text;
    uint64_t number = 0;
    SettingSource source = SettingSource::built_in;
  };
  std::vector<Value> values_;
};

/// The known name nearest to `name` by edit distance, else one that `name` begins or lengthens, or "" when none is near.
std::string_view nearest_setting(std::string_view name);

}  // namespace tutti
