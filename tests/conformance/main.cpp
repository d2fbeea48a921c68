// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// conformance --transport NAME [--plugins DIRECTORY] [--faults] [Catch2's options]: the suite on one transport.

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <iostream>

#include "built_in.hpp"
#include "subject.hpp"
#include "transport/loader.hpp"

namespace tutti::conformance {

Subject subject;

namespace {

Status choose(const std::string& name, const std::string& plugins, bool faults) {
  Config config;
  TUTTI_TRY(config.set("transports", name));
  TUTTI_TRY(config.set("transport_path", plugins));
  const Log log(make_stderr_sink(), LogLevel::warn);
  const std::vector<tutti_transport_entry_t> entries = built_in_entries();
  const auto loaded = load_transports(config, log, entries);
  if (!loaded.ok()) return loaded.status();
  const LoadedTransport& transport = loaded.value().front();
  if (!plugins.empty() && transport.origin == "built in") return error(TUTTI_ERR_CONFIG, "no plugin {} in {}", name, plugins);
  subject.table = transport.table;
  subject.make_world = world_of(transport.table);
  if (faults) subject = with_faults(subject);
  if (subject.table == nullptr) return error(TUTTI_ERR_CONFIG, "this suite was built without the layer of faults");
  return Status();
}

}  // namespace
}  // namespace tutti::conformance

int main(int argc, char** argv) {
  Catch::Session session;
  std::string transport;
  std::string plugins;
  bool faults = false;
  using Catch::clara::Opt;
  session.cli(session.cli() | Opt(transport, "name")["--transport"]("the transport under test") |
              Opt(plugins, "directory")["--plugins"]("take it from a plugin there") |
              Opt(faults)["--faults"]("with a layer of faults on top"));
  if (const int failed = session.applyCommandLine(argc, argv); failed != 0) return failed;
  if (transport.empty() && !session.configData().showHelp && !session.configData().listTests) {
    std::cerr << "conformance: --transport says which transport to test\n";
    return 2;
  }
  if (!transport.empty()) {
    const tutti::Status chosen = tutti::conformance::choose(transport, plugins, faults);
    if (!chosen.ok()) {
      std::cerr << "conformance: " << chosen.message() << "\n";
      return 2;
    }
  }
  return session.run();
}
