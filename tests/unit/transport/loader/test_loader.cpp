// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "transport/loader.hpp"

extern "C" const tutti_tp_table_t* tutti_tcp_transport_entry(uint32_t host_abi_version);

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct RecordingSink final : LogSink {
  void write(LogLevel level, std::string_view line) noexcept override {
    if (level == LogLevel::warn) warnings.emplace_back(line);
    if (level == LogLevel::info) infos.emplace_back(line);
  }
  std::vector<std::string> warnings;
  std::vector<std::string> infos;
};

/// A directory with some of the plugins that were built for this test.
struct PluginDirectory {
  explicit PluginDirectory(const std::vector<std::string>& plugins) {
    char pattern[] = "/tmp/tutti-loader-XXXXXX";
    path = ::mkdtemp(pattern);
    for (const std::string& plugin : plugins) add(plugin, "tutti_" + plugin + ".so");
  }
  ~PluginDirectory() { fs::remove_all(path); }
  PluginDirectory(const PluginDirectory&) = delete;
  PluginDirectory& operator=(const PluginDirectory&) = delete;
  void add(const std::string& plugin, const std::string& file) const {
    fs::create_symlink(fs::path(PLUGIN_BUILD_DIR) / ("libtutti_" + plugin + ".so"), fs::path(path) / file);
  }
  std::string path;
};

const tutti_tp_table_t* double_table(const char* name) {
  static tutti_tp_table_t tables[2];
  tutti_tp_table_t& table = tables[std::string_view(name) == "first"];
  table = *tutti_tcp_transport_entry(TUTTI_TP_ABI_VERSION);
  table.name = name;
  return &table;
}
const tutti_tp_table_t* first_entry(uint32_t) { return double_table("first"); }
const tutti_tp_table_t* good_entry(uint32_t) { return double_table("good"); }
const tutti_tp_table_t* null_entry(uint32_t) { return nullptr; }

struct Loaded {
  explicit Loaded(const std::string& path, const std::string& allowed = "",
                  std::vector<tutti_transport_entry_t> built_in = {tutti_tcp_transport_entry})
      : log(sink, LogLevel::info), result(Status()) {
    Config config;
    REQUIRE(config.set("transport_path", path).ok());
    REQUIRE(config.set("transports", allowed).ok());
    result = load_transports(config, log, built_in);
  }
  std::string names() const {
    REQUIRE(result.ok());
    std::string list;
    for (const LoadedTransport& transport : result.value()) list += std::string(transport.table->name) + " ";
    return list;
  }
  std::string error() const {
    CHECK(result.status().code() == TUTTI_ERR_CONFIG);
    return std::string(result.status().message());
  }
  std::shared_ptr<RecordingSink> sink = std::make_shared<RecordingSink>();
  Log log;
  Result<std::vector<LoadedTransport>> result;
};

}  // namespace

TEST_CASE("without plugins there are the built-in transports, in their order", "[loader]") {
  const Loaded loaded("", "", {first_entry, tutti_tcp_transport_entry});
  CHECK(loaded.names() == "first tcp ");
  CHECK(loaded.result.value()[0].origin == "built in");
  CHECK(loaded.sink->warnings.empty());
}

TEST_CASE("plugins come before built-in transports and replace those of their name", "[loader]") {
  const PluginDirectory directory({"good"});
  const Loaded loaded(directory.path, "", {first_entry, good_entry});
  CHECK(loaded.names() == "good first ");
  CHECK(loaded.result.value()[0].origin == directory.path + "/tutti_good.so");
  CHECK(loaded.sink->warnings.empty());
}

TEST_CASE("a plugin's file may be called libtutti_<name>.so; other files are left alone", "[loader]") {
  const PluginDirectory directory({});
  directory.add("good", "libtutti_good.so");
  directory.add("throwing", "other_throwing.so");
  directory.add("throwing", "tutti_.so");
  directory.add("throwing", "tutti_throwing.so.1");
  const Loaded loaded(directory.path);
  CHECK(loaded.names() == "good tcp ");
  CHECK(loaded.sink->warnings.empty());
}

TEST_CASE("of two plugins with one name the first directory's counts", "[loader]") {
  const PluginDirectory first({"good"});
  const PluginDirectory second({"good", "other"});
  const Loaded loaded("  :" + first.path + "::" + second.path);
  CHECK(loaded.names() == "good other tcp ");
  CHECK(loaded.result.value()[0].origin == first.path + "/tutti_good.so");
  REQUIRE(loaded.sink->warnings.size() == 1);
  CHECK_THAT(loaded.sink->warnings[0], Catch::Contains(second.path + "/tutti_good.so") && Catch::Contains("comes first"));
}

TEST_CASE("a bad plugin is skipped with one line that says why, and the next transport is used", "[loader]") {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"newer", "ABI version 1"},
      {"older", "ABI version 4294967295"},
      {"small", "built against another transport.h"},
      {"large", "built against another transport.h"},
      {"nosymbol", "exports no tutti_transport_entry"},
      {"undefined", "tutti_symbol_of_nobody"},
      {"nofunction", "function post_recv is missing"},
      {"noslots", "function slot_reserve is missing"},
      {"nocarrier", "neither messages nor slots"},
      {"nointerval", "how often"},
      {"badname", "its name is not"},
      {"null", "no table for ABI version"},
      {"throwing", "threw an exception: no such device"},
  };
  for (const auto& [plugin, why] : faults) {
    INFO(plugin);
    const PluginDirectory directory({plugin});
    const Loaded loaded(directory.path);
    CHECK(loaded.names() == "tcp ");
    REQUIRE(loaded.sink->warnings.size() == 1);
    CHECK_THAT(loaded.sink->warnings[0], Catch::Contains("/tutti_" + plugin + ".so is skipped") && Catch::Contains(why));
    CHECK(loaded.sink->warnings[0].find('\n') == std::string::npos);
    const Loaded named(directory.path, "tcp," + plugin);
    CHECK_THAT(named.error(), Catch::Contains("'" + plugin + "' cannot be used, its plugin was skipped") &&
                                  Catch::Contains(why) && Catch::Contains("there is: tcp"));
  }
}

TEST_CASE("what is no shared object at all is skipped", "[loader]") {
  const PluginDirectory directory({"good"});
  std::ofstream(directory.path + "/tutti_text.so") << "no ELF file\n";
  std::ofstream(directory.path + "/tutti_empty.so").flush();
  fs::create_directory(directory.path + "/tutti_folder.so");
  fs::create_symlink("nowhere", directory.path + "/tutti_dangling.so");
  const Loaded loaded(directory.path);
  CHECK(loaded.names() == "good tcp ");
  CHECK(loaded.sink->warnings.size() == 4);
}

TEST_CASE("a directory that is not there is reported", "[loader]") {
  const Loaded loaded("/nonexistent/plugins");
  CHECK(loaded.names() == "tcp ");
  REQUIRE(loaded.sink->warnings.size() == 1);
  CHECK_THAT(loaded.sink->warnings[0], Catch::Contains("'/nonexistent/plugins'") && Catch::Contains("No such file"));
}

TEST_CASE("the setting names the allowed set and its order", "[loader]") {
  const PluginDirectory directory({"good", "other"});
  CHECK(Loaded(directory.path, "tcp, other").names() == "tcp other ");
  CHECK(Loaded(directory.path, "good").names() == "good ");
  CHECK(Loaded(directory.path, " ").names() == "good other tcp ");
}

TEST_CASE("a name in the setting that there is not is an error that says what there is", "[loader]") {
  const PluginDirectory directory({"good"});
  CHECK_THAT(Loaded(directory.path, "tcp,rdma").error(), Catch::Contains("'rdma'; there is: good, tcp"));
  CHECK_THAT(Loaded(directory.path, "tcp,tcp").error(), Catch::Contains("'tcp' is named twice"));
  CHECK_THAT(Loaded(directory.path, ",").error(), Catch::Contains("names none"));
  CHECK_THAT(Loaded("", "tcp", {}).error(), Catch::Contains("there is: none"));
}

TEST_CASE("a built-in transport that cannot be used is skipped too", "[loader]") {
  const Loaded loaded("", "", {null_entry, tutti_tcp_transport_entry});
  CHECK(loaded.names() == "tcp ");
  CHECK(loaded.sink->warnings.size() == 1);
}

#ifdef SHIPPED_PLUGINS
TEST_CASE("the transports that are shipped load as plugins, with local symbols only", "[loader]") {
  const PluginDirectory directory({});
  std::string expected;
  for (const std::string file : {SHIPPED_PLUGINS}) {
    fs::create_symlink(file, fs::path(directory.path) / fs::path(file).filename());
    expected += fs::path(file).stem().string().substr(std::string("libtutti_").size()) + " ";
  }
  REQUIRE_FALSE(expected.empty());
  const Loaded loaded(directory.path, "", {});
  CHECK(loaded.names() == expected);
  CHECK(loaded.sink->warnings.empty());
}
#endif

}  // namespace tutti
