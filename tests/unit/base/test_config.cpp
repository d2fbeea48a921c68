// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"

using tutti::Config;
using tutti::Setting;
using tutti::SettingSource;
using tutti::SettingType;
using tutti::Status;

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Status load(Config& config, std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return config.load_environment(environment.data());
}

/// A value that the type accepts and that is not a default.
std::string good_value(const tutti::SettingInfo& info) {
  switch (info.type) {
    case SettingType::text:
      return "some text, = and spaces";
    case SettingType::flag:
      return info.default_text == "on" ? "off" : "on";
    case SettingType::count:
      return "77";
    case SettingType::bytes:
      return "3M";
    case SettingType::duration:
      return "77ms";
    case SettingType::choice:
      return std::string(info.choices.substr(info.choices.rfind('|') + 1));
  }
  return "";
}

}  // namespace

TEST_CASE("every setting has a distinct name, an environment variable made from it, a sentence, and a valid default") {
  std::set<std::string_view> names;
  for (const tutti::SettingInfo& info : tutti::all_settings()) {
    INFO(info.name);
    CHECK(names.insert(info.name).second);
    CHECK(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos);
    std::string upper(info.name);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
    CHECK(info.environment == "TUTTI_" + upper);
    REQUIRE_FALSE(info.doc.empty());
    CHECK(info.doc.back() == '.');
    CHECK((info.type == SettingType::choice) == !info.choices.empty());
    Config config;
    CHECK(config.source(static_cast<Setting>(&info - tutti::all_settings().data())) == SettingSource::built_in);
    const Status valid = config.set(info.name, info.default_text);
    CHECK(valid.message() == "");
  }
}

TEST_CASE("every setting can be given through its environment variable and through the API") {
  for (const tutti::SettingInfo& info : tutti::all_settings()) {
    INFO(info.name);
    const auto setting = static_cast<Setting>(&info - tutti::all_settings().data());
    const std::string value = good_value(info);
    const std::string entry = std::string(info.environment) + "=" + value;
    Config from_environment;
    CHECK(load(from_environment, {entry.c_str()}).message() == "");
    CHECK(from_environment.as_written(setting) == value);
    CHECK(from_environment.source(setting) == SettingSource::environment);
    Config from_api;
    CHECK(from_api.set(info.name, value).ok());
    CHECK(from_api.as_written(setting) == value);
    CHECK(from_api.source(setting) == SettingSource::api);
    CHECK(from_api.lookup(info.name) == from_environment.lookup(info.name));
  }
}

TEST_CASE("what the API gave outranks the environment, in whatever order they come") {
  Config config;
  REQUIRE(load(config, {"TUTTI_SHM_SLOTS=16"}).ok());
  REQUIRE(config.set("shm_slots", "32").ok());
  CHECK(config.count(Setting::shm_slots) == 32);
  REQUIRE(load(config, {"TUTTI_SHM_SLOTS=64"}).ok());
  CHECK(config.count(Setting::shm_slots) == 32);
  CHECK(config.source(Setting::shm_slots) == SettingSource::api);
}

TEST_CASE("an unknown variable names itself and the nearest setting; the good ones are taken all the same") {
  Config config;
  const Status status = load(config, {"PATH=/bin", "TUTTI_LOG_LEVLE=debug", "TUTTI_SHM_SLOTS=16", "TUTTI_ZZZZZZZZZZ=1",
                                      "TUTTI_SPIN=fast", "TUTTICONFIG=x"});
  CHECK(status.code() == TUTTI_ERR_CONFIG);
  CHECK(contains(status.message(), "TUTTI_LOG_LEVLE; did you mean TUTTI_LOG_LEVEL?"));
  CHECK(contains(status.message(), "unknown environment variable TUTTI_ZZZZZZZZZZ"));
  CHECK(contains(status.message(), "TUTTI_SPIN: 'fast' is not a duration"));
  CHECK_FALSE(contains(status.message(), "PATH"));
  CHECK_FALSE(contains(status.message(), "TUTTICONFIG"));
  CHECK(config.count(Setting::shm_slots) == 16);
  CHECK(config.choice(Setting::log_level) == "warn");
  CHECK(config.duration_ns(Setting::spin) == 50'000);
}

TEST_CASE("unknown variables may be a warning: their text comes apart, bad values stay an error") {
  Config config;
  std::string unknown;
  const std::vector<const char*> only_unknown{"TUTTI_LOG_LEVLE=debug", "TUTTI_FROM_NEXT_YEAR=1", "TUTTI_SHM_SLOTS=16", nullptr};
  CHECK(config.load_environment(only_unknown.data(), &unknown).ok());
  CHECK(contains(unknown, "TUTTI_LOG_LEVLE; did you mean TUTTI_LOG_LEVEL?; unknown environment variable TUTTI_FROM_NEXT_YEAR"));
  CHECK(config.count(Setting::shm_slots) == 16);
  unknown.clear();
  const std::vector<const char*> bad_value{"TUTTI_SHM_SLOTS=many", nullptr};
  CHECK(config.load_environment(bad_value.data(), &unknown).code() == TUTTI_ERR_CONFIG);
  CHECK(unknown.empty());
}

TEST_CASE("a variable in the wrong case is unknown, and the right one is offered") {
  Config config;
  const Status status = load(config, {"TUTTI_Rank=3"});
  CHECK(status.code() == TUTTI_ERR_CONFIG);
  CHECK(contains(status.message(), "did you mean TUTTI_RANK?"));
  CHECK(config.text(Setting::rank).empty());
}

TEST_CASE("the launcher's own variables and those of tests are no error") {
  std::vector<std::string> entries{"TUTTI_TEST_ANYTHING=1"};
  for (const std::string_view name : tutti::kLauncherVariables) entries.push_back(std::string(name) + "=x");
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  Config config;
  CHECK(load(config, environment).message() == "");
}

TEST_CASE("an empty variable leaves the default, an environment may be missing altogether") {
  Config config;
  CHECK(load(config, {"TUTTI_SPIN=", "TUTTI_TIMEOUT", "=TUTTI_X=1", ""}).message() == "");
  CHECK(config.duration_ns(Setting::spin) == 50'000);
  CHECK(config.source(Setting::spin) == SettingSource::built_in);
  CHECK(config.load_environment(nullptr).ok());
}

TEST_CASE("the last of two equal variables wins, and values keep their '='") {
  Config config;
  REQUIRE(load(config, {"TUTTI_ALLREDUCE=tree", "TUTTI_ALLREDUCE=ring:segment_bytes=256K,channels=2"}).ok());
  CHECK(config.text(Setting::allreduce) == "ring:segment_bytes=256K,channels=2");
}

TEST_CASE("bad values by type leave the setting as it was and say what is allowed") {
  struct Case {
    const char* name;
    const char* value;
    const char* says;
  };
  for (const Case& bad : std::vector<Case>{{"insecure", "maybe", "neither on nor off"},
                                           {"insecure", "", "neither on nor off"},
                                           {"shm_slots", "8x", "not a whole number"},
                                           {"shm_slots", "-8", "not a whole number"},
                                           {"shm_slots", "99999999999999999999", "not a whole number"},
                                           {"tcp_window_bytes", "64Q", "is not a size"},
                                           {"timeout", "10 parsecs", "is not a duration"},
                                           {"log_level", "loud", "'loud' is not one of error|warn|info|debug|trace"},
                                           {"log_level", "warn|info", "is not one of"},
                                           {"log_level", "", "is not one of"}}) {
    INFO(bad.name << "=" << bad.value);
    Config config;
    const std::optional<std::string> before = config.lookup(bad.name);
    const Status status = config.set(bad.name, bad.value);
    CHECK(status.code() == TUTTI_ERR_CONFIG);
    CHECK(contains(status.message(), bad.name));
    CHECK(contains(status.message(), bad.says));
    CHECK(config.lookup(bad.name) == before);
  }
}

TEST_CASE("the plugin ABI's spelling: plain numbers, nanoseconds, 0 or 1") {
  Config config;
  REQUIRE(config.set("tcp_window_bytes", "64K").ok());
  REQUIRE(config.set("timeout", "1.5s").ok());
  REQUIRE(config.set("insecure", "yes").ok());
  REQUIRE(config.set("interface", "eth0,10.0.0.0/8").ok());
  CHECK(config.lookup("tcp_window_bytes") == "65536");
  CHECK(config.lookup("timeout") == "1500000000");
  CHECK(config.lookup("insecure") == "1");
  CHECK(config.lookup("control_thread") == "1");
  CHECK(config.lookup("interface") == "eth0,10.0.0.0/8");
  CHECK(config.lookup("log_level") == "warn");
  CHECK_FALSE(config.lookup("TCP_WINDOW_BYTES").has_value());
  CHECK_FALSE(config.lookup("").has_value());
}

TEST_CASE("an unknown key of the API names the nearest, or says where all are listed") {
  Config config;
  const Status near = config.set("tcp_window", "1");
  CHECK(near.code() == TUTTI_ERR_CONFIG);
  CHECK(contains(near.message(), "did you mean 'tcp_window_bytes'"));
  const Status far = config.set("colour_of_the_sky", "blue");
  CHECK(contains(far.message(), "tutti-info config"));
}

TEST_CASE("nearest by edit distance: each single slip finds its setting, nonsense finds none") {
  for (const tutti::SettingInfo& info : tutti::all_settings()) {
    // A slip in four letters may be as near to another name; and "escan" is as near to "scan".
    if (info.name.size() < 5 || info.name == "exscan") continue;
    INFO(info.name);
    for (size_t i = 1; i < info.name.size(); ++i) {
      std::string dropped(info.name);
      dropped.erase(i, 1);
      CHECK(tutti::nearest_setting(dropped) == info.name);
      std::string doubled(info.name);
      doubled.insert(i, 1, doubled[i]);
      CHECK(tutti::nearest_setting(doubled) == info.name);
    }
  }
  CHECK(tutti::nearest_setting("zzzzzzzzzzzz").empty());
  CHECK(tutti::nearest_setting(std::string(10'000, 'q')).empty());
}

TEST_CASE("a configuration is a value: a copy does not follow its original") {
  Config original;
  REQUIRE(original.set("shm_slots", "16").ok());
  const Config copy = original;
  REQUIRE(original.set("shm_slots", "32").ok());
  CHECK(copy.count(Setting::shm_slots) == 16);
}
