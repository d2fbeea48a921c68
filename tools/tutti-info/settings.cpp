// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/types.hpp"
#include "pages.hpp"

namespace tutti::info {
namespace {

std::string_view type_name(SettingType type) {
  switch (type) {
    case SettingType::text:
      return "text";
    case SettingType::flag:
      return "on/off";
    case SettingType::count:
      return "count";
    case SettingType::bytes:
      return "bytes";
    case SettingType::duration:
      return "duration";
    case SettingType::choice:
      return "choice";
  }
  return "";
}

std::string_view source_name(SettingSource source) {
  switch (source) {
    case SettingSource::built_in:
      return "default";
    case SettingSource::environment:
      return "environment";
    case SettingSource::api:
      return "program";
  }
  return "";
}

/// A secret stays one.
std::string shown(const Config& config, Setting setting) {
  const std::string& value = config.as_written(setting);
  if (setting == Setting::secret && !value.empty()) return "(hidden)";
  return value;
}

Setting setting_at(size_t index) { return static_cast<Setting>(index); }

std::string as_code(std::string_view text) { return text.empty() ? "empty" : fmt::format("`{}`", std::string(text)); }

std::string or_empty(std::string_view text) { return text.empty() ? "(empty)" : std::string(text); }

/// Choices as a cell of a table: a bar would end the cell.
std::string choices_text(std::string_view choices) {
  std::string text;
  std::istringstream words{std::string(choices)};
  for (std::string word; std::getline(words, word, '|');) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", word);
  return text;
}

std::string markdown() {
  std::string text =
      "# Settings\n\n"
      "This page is made by `tutti-info config --markdown` from `lib/base/include/base/settings.def`; a test keeps it up to "
      "date.\n\n"
      "Each setting has one name. A program sets it with `tutti_config_set(config, \"name\", \"value\")`, a person with the\n"
      "environment variable. What the program sets comes before the environment, and that before the default. An unknown\n"
      "variable that begins with `TUTTI_`, or a value that does not fit its type, is reported with the nearest name.\n\n"
      "| type | is written as |\n|---|---|\n"
      "| text | any text |\n"
      "| on/off | `on`, `true`, `yes`, `1`; `off`, `false`, `no`, `0` |\n"
      "| count | a whole number |\n"
      "| bytes | `4096`, `64K`, `1M`, `2GiB`: powers of 1024 |\n"
      "| duration | `500us`, `20ms`, `60s`, `2m`, or seconds (`1.5`) |\n"
      "| choice | one of the words that are listed |\n\n"
      "| name | environment variable | type | default | meaning |\n|---|---|---|---|---|\n";
  for (const SettingInfo& setting : all_settings()) {
    std::string doc(setting.doc);
    if (setting.type == SettingType::choice) doc = fmt::format("{}: {}", choices_text(setting.choices), doc);
    text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", std::string(setting.name), std::string(setting.environment),
                        std::string(type_name(setting.type)), as_code(setting.default_text), doc);
  }
  return text;
}

std::string json(const Config& config) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::array();
  const auto infos = all_settings();
  for (size_t i = 0; i < infos.size(); ++i) {
    nlohmann::ordered_json one = {{"name", infos[i].name},
                                  {"environment", infos[i].environment},
                                  {"type", type_name(infos[i].type)},
                                  {"default", infos[i].default_text},
                                  {"value", shown(config, setting_at(i))},
                                  {"source", source_name(config.source(setting_at(i)))},
                                  {"doc", infos[i].doc}};
    if (infos[i].type == SettingType::choice) one["choices"] = infos[i].choices;
    settings.push_back(std::move(one));
  }
  return settings.dump(2) + "\n";
}

/// The highest instruction set of the reduction kernels that this machine has, as the kernel of the system tells it.
std::string cpu_level() {
#ifdef __aarch64__
  return "neon";  // part of every one
#endif
  std::ifstream file("/proc/cpuinfo");
  bool avx2 = false;
  bool f16c = false;
  bool sse4 = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      avx2 = avx2 || word == "avx2";
      f16c = f16c || word == "f16c";
      sse4 = sse4 || word == "sse4_1";
    }
    break;
  }
  return avx2 && f16c ? "avx2" : sse4 ? "sse4" : "scalar";
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Which launcher's variables are here. The order is that in which the library looks.
std::string rank_text() {
  struct Launcher {
    const char* name;
    const char* rank;
    const char* size;
  };
  constexpr Launcher kLaunchers[] = {
      {"tuttirun, or set by hand", "TUTTI_RANK", "TUTTI_SIZE"},
      {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI", "PMI_RANK", "PMI_SIZE"},
      {"srun", "SLURM_PROCID", "SLURM_NTASKS"},
      {"torchrun", "RANK", "WORLD_SIZE"},
  };
  for (const Launcher& launcher : kLaunchers) {
    const std::string rank = variable(launcher.rank);
    if (!rank.empty()) return fmt::format("rank {} of {} ({})", rank, variable(launcher.size), launcher.name);
  }
  return "no launcher's variables here: a job of one rank";
}

}  // namespace

std::string overview(const Config& config, const std::string& library_version) {
  std::string transports;
#ifdef TUTTI_HAVE_SHM
  transports += "shm ";
#endif
#ifdef TUTTI_HAVE_TCP
  transports += "tcp ";
#endif
  if (!transports.empty()) transports.pop_back();
  std::string text = fmt::format("Tutti {} (binary interface {})\n", library_version, TUTTI_ABI_VERSION);
  text += fmt::format("kernels      {} (setting cpu: {})\n", cpu_level(), config.choice(Setting::cpu));
  text += fmt::format("transports   {}\n", transports.empty() ? "none built in" : transports);
  if (!config.text(Setting::transports).empty()) text += fmt::format("  allowed    {}\n", config.text(Setting::transports));
  text += fmt::format("algorithms   {}\n", all_algorithms().size());
  text += fmt::format("environment  {}\n", rank_text());
  size_t changed = 0;
  for (size_t i = 0; i < all_settings().size(); ++i) {
    if (config.source(setting_at(i)) == SettingSource::built_in) continue;
    if (changed++ == 0) text += "settings that are not at their defaults:\n";
    text += fmt::format("  {} = {}\n", std::string(all_settings()[i].name), shown(config, setting_at(i)));
  }
  return text + "More: tutti-info --help\n";
}

std::string config_page(const Config& config, Format format) {
  if (format == Format::markdown) return markdown();
  if (format == Format::json) return json(config);
  std::string text;
  const auto infos = all_settings();
  for (size_t i = 0; i < infos.size(); ++i) {
    const Setting setting = setting_at(i);
    text += fmt::format("{} = {}    ({})\n", std::string(infos[i].name), or_empty(shown(config, setting)),
                        std::string(source_name(config.source(setting))));
    text += fmt::format("    {}, {}, default {}\n", std::string(infos[i].environment), std::string(type_name(infos[i].type)),
                        or_empty(infos[i].default_text));
    if (infos[i].type == SettingType::choice) text += fmt::format("    one of {}\n", std::string(infos[i].choices));
    text += fmt::format("    {}\n", std::string(infos[i].doc));
  }
  return text;
}

}  // namespace tutti::info
