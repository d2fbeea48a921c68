// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/types.hpp"

#ifndef TUTTI_PROJECT_VERSION
#error "meson.build defines TUTTI_PROJECT_VERSION"
#endif

namespace tutti::launch {

namespace {
constexpr const char* kDefaultRsh = "ssh -x -oBatchMode=yes -oServerAliveInterval=15 -oServerAliveCountMax=4";
constexpr uint32_t kMaxRanks = 1u << 20;

constexpr const char* kFooter = R"(Examples:
  tuttirun -np 4 ./train --epochs 3              four ranks on this host
  tuttirun -np 8 -H node1:4,node2:4 ./train      eight ranks on two hosts, over ssh
  tuttirun --hostfile hosts -x OMP_NUM_THREADS=1 ./train
  tuttirun -np 4 --tag-output --timeout 10m ./train
  tuttirun -np 2 -H a,b --rsh 'ip netns exec' --interface 10.0.0.0/24 ./train

A host file has one host a line: 'host', 'host:4' or 'host slots=4'; '#' starts a comment.

Exit codes:
  0      every rank ended with 0
  N      the code of the first rank that failed; 128+S if signal S ended it, or ended tuttirun itself
  2      the command line is wrong
  124    --timeout passed
  125    tuttirun itself failed: a host could not be reached, or was lost
  126    the command cannot be run
  127    the command was not found
)";

struct RawOptions {
  std::string ranks, hosts, host_file, bind = "auto", grace = "3s", timeout = "0", launch_timeout = "30s", rsh;
  std::vector<std::string> environment;
  bool oversubscribe = false, agent = false;
};

void declare(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("-n,--np", raw.ranks, "Number of ranks (-np N works too); default: all slots of the hosts")
      ->type_name("N");
  app.add_option("-H,--host", raw.hosts, "Hosts with their slots: a:4,b:4; default: this host")
      ->type_name("HOST[:SLOTS],...");
  app.add_option("--hostfile", raw.host_file, "File with hosts and slots")->type_name("FILE");
  app.add_flag("--oversubscribe", raw.oversubscribe, "More ranks than slots are fine");
  app.add_option("-x,--env", raw.environment, "Set a variable for the ranks, over those of this environment")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--chdir", options.directory, "Working directory of the ranks; default: this one")->type_name("DIR");
  app.add_option("--bind", raw.bind, "core, numa, none or auto: pin each rank; auto is core while they last")
      ->type_name("WHAT");
  app.add_flag("--tag-output", options.tag_output, "Put [RANK] before every line");
  app.add_option("--output-dir", options.output_directory, "Write output to DIR/rank-N.out and .err instead")
      ->type_name("DIR");
  app.add_option("--timeout", raw.timeout, "End the job after this time (90, 10m, 500ms; 0: never)")->type_name("TIME");
  app.add_option("--grace", raw.grace, "Time between the signals that end a job (default 3s)")->type_name("TIME");
  app.add_flag("--keep-going", options.keep_going, "Do not end the other ranks when one has failed");
  app.add_option("--rsh", raw.rsh,
                 "Command that runs a command on a host ({host}, or appended); default: TUTTI_RSH, or ssh")
      ->type_name("COMMAND");
  app.add_option("--agent-path", options.agent_path, "Path of tuttirun on the other hosts; default: the same as here")
      ->type_name("PATH");
  app.add_option("--launch-timeout", raw.launch_timeout, "How long a host may take to answer (default 30s)")
      ->type_name("TIME");
  app.add_option("--interface", options.interface, "Where other hosts reach this one: interface name, address or CIDR")
      ->type_name("WHICH");
  app.add_flag("-v,--verbose", options.verbose, "Say what is being done");
  app.add_flag("--agent", raw.agent)->group("");
}

Result<uint64_t> parse_time(std::string_view option, const std::string& text) {
  const Result<uint64_t> parsed = parse_duration_ns(text);
  if (!parsed.ok()) return error(TUTTI_ERR_ARGUMENT, "{}: '{}' is not a time (30, 1.5, 500ms, 10m)", option, text);
  return parsed;
}

Status parse_times(const RawOptions& raw, Options& options) {
  const std::tuple<const char*, const std::string&, uint64_t&> times[] = {
      {"--timeout", raw.timeout, options.timeout_ns},
      {"--grace", raw.grace, options.grace_ns},
      {"--launch-timeout", raw.launch_timeout, options.launch_timeout_ns}};
  for (const auto& [name, text, target] : times) {
    const Result<uint64_t> parsed = parse_time(name, text);
    TUTTI_TRY(parsed.status());
    target = parsed.value();
  }
  if (options.launch_timeout_ns == 0) return error(TUTTI_ERR_ARGUMENT, "--launch-timeout: 0 leaves no time to start");
  return Status();
}

Result<HostList> read_hosts(const RawOptions& raw) {
  if (!raw.hosts.empty() && !raw.host_file.empty())
    return error(TUTTI_ERR_ARGUMENT, "-H and --hostfile: give one of them");
  if (!raw.hosts.empty()) return parse_host_list(raw.hosts);
  if (raw.host_file.empty()) return HostList{{"localhost", 0}};
  std::ifstream file(raw.host_file);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) return error(TUTTI_ERR_ARGUMENT, "--hostfile: cannot read '{}': {}", raw.host_file, strerror(errno));
  return parse_host_file(text.str(), raw.host_file);
}

Status place(const RawOptions& raw, Options& options) {
  uint32_t ranks = 0;
  if (!raw.ranks.empty()) {
    const char* const end = raw.ranks.data() + raw.ranks.size();
    const auto parsed = std::from_chars(raw.ranks.data(), end, ranks);
    if (parsed.ec != std::errc() || parsed.ptr != end || ranks == 0 || ranks > kMaxRanks) {
      return error(TUTTI_ERR_ARGUMENT, "-np: '{}' is not a number of ranks (1 to {})", raw.ranks, kMaxRanks);
    }
  }
  const Result<HostList> hosts = read_hosts(raw);
  TUTTI_TRY(hosts.status());
  Result<std::vector<HostRanks>> placed = place_ranks(hosts.value(), ranks, raw.oversubscribe);
  TUTTI_TRY(placed.status());
  options.hosts = std::move(placed).value();
  for (const HostRanks& host : options.hosts) options.ranks += static_cast<uint32_t>(host.ranks.size());
  return Status();
}

Status add_environment(const RawOptions& raw, const std::function<const char*(const char*)>& get, Options& options) {
  for (const std::string& entry : raw.environment) {
    const size_t equals = entry.find('=');
    if (equals == 0 || entry.empty())
      return error(TUTTI_ERR_ARGUMENT, "-x: '{}' has no name; say -x NAME=VALUE", entry);
    if (equals != std::string::npos) {
      options.environment.push_back(entry);
      continue;
    }
    const char* const value = get(entry.c_str());
    if (value == nullptr) return error(TUTTI_ERR_ARGUMENT, "-x: '{}' is not set here; say -x {}=VALUE", entry, entry);
    options.environment.push_back(entry + "=" + value);
  }
  return Status();
}

Status parse_rsh(const RawOptions& raw, const std::function<const char*(const char*)>& get, Options& options) {
  const char* const variable = get("TUTTI_RSH");
  std::string text = raw.rsh;
  if (text.empty()) text = variable != nullptr && *variable != '\0' ? variable : kDefaultRsh;
  Result<std::vector<std::string>> words = split_words(text);
  if (!words.ok()) return words.status().with_context("--rsh");
  if (words->empty()) return error(TUTTI_ERR_ARGUMENT, "--rsh: '{}' has no command", text);
  options.rsh = std::move(words).value();
  return Status();
}

std::string help_text(const CLI::App& app) {
  std::string text = app.help();
  if (const size_t usage = text.find("Usage: "); usage != std::string::npos) {
    text.replace(usage, text.find('\n', usage) - usage,
                 "Usage: tuttirun -np N [-H HOST:SLOTS,...] [OPTIONS] COMMAND [ARGUMENTS]");
  }
  return text;
}

/// CLI11 stops at the first word that is no option; a mistyped option must not become the command.
Status take_command(const CLI::App& app, const std::vector<std::string>& arguments, Options& options) {
  const std::vector<std::string> rest = app.remaining();
  const size_t first = arguments.size() - rest.size();
  const bool after_dashes = first > 0 && arguments[first - 1] == "--";
  if (!after_dashes && !rest.empty() && rest.front() != "--" && rest.front().substr(0, 1) == "-") {
    return error(TUTTI_ERR_ARGUMENT, "'{}' is not an option of tuttirun; see tuttirun --help", rest.front());
  }
  options.command.assign(arguments.begin() + static_cast<ptrdiff_t>(first), arguments.end());
  if (!options.command.empty() && options.command.front() == "--") options.command.erase(options.command.begin());
  if (options.command.empty())
    return error(TUTTI_ERR_ARGUMENT, "which command? tuttirun -np N [options] command [arguments]");
  return Status();
}
}  // namespace

Result<std::vector<std::string>> split_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word.push_back(text[++i]);
      in_word = true;
    } else if (quote != 0) {
      word.push_back(c);
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (quote != 0) return error(TUTTI_ERR_ARGUMENT, "'{}': a quote is not closed", text);
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<Options> parse_command_line(const std::vector<std::string>& arguments,
                                   const std::function<const char*(const char*)>& get_variable) {
  Options options;
  RawOptions raw;
  CLI::App app("Starts the ranks of a Tutti job, here and on other hosts, and ends them together.", "tuttirun");
  app.footer(kFooter);
  app.set_version_flag("--version", "tuttirun (Tutti) " TUTTI_PROJECT_VERSION);
  app.prefix_command();
  declare(app, raw, options);

  // CLI11 knows no long option with one dash. The command's own words are taken from `arguments` again, unchanged.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  std::replace(reversed.begin(), reversed.end(), std::string("-np"), std::string("--np"));
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    options.action = Options::Action::print;
    options.print_text = help_text(app);
    return options;
  } catch (const CLI::CallForVersion&) {
    options.action = Options::Action::print;
    options.print_text = "tuttirun (Tutti) " TUTTI_PROJECT_VERSION "\n";
    return options;
  } catch (const CLI::ParseError& problem) {
    return error(TUTTI_ERR_ARGUMENT, "{}; see tuttirun --help", problem.what());
  }
  if (raw.agent) {
    options.action = Options::Action::agent;
    return options;
  }
  const Result<BindMode> bind = parse_bind_mode(raw.bind);
  TUTTI_TRY(bind.status());
  options.bind = bind.value();
  TUTTI_TRY(parse_times(raw, options));
  TUTTI_TRY(take_command(app, arguments, options));
  TUTTI_TRY(place(raw, options));
  TUTTI_TRY(add_environment(raw, get_variable, options));
  TUTTI_TRY(parse_rsh(raw, get_variable, options));
  return options;
}

}  // namespace tutti::launch
