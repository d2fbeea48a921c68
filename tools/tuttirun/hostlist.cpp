// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "hostlist.hpp"

#include <algorithm>
#include <charconv>

namespace tutti::launch {

namespace {
constexpr uint32_t kMaxSlots = 1u << 20;
constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Result<uint32_t> parse_slots(std::string_view text, std::string_view entry) {
  uint32_t slots = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (failure != std::errc() || end != text.data() + text.size() || slots == 0 || slots > kMaxSlots) {
    return error(TUTTI_ERR_ARGUMENT, "'{}': '{}' is not a number of slots (1 to {})", entry, text, kMaxSlots);
  }
  return slots;
}

/// A name starting with '-' would be an option of ssh.
Status check_name(std::string_view name, std::string_view entry) {
  if (name.empty()) return error(TUTTI_ERR_ARGUMENT, "'{}': a host name is missing", entry);
  if (name.front() == '-' || name.find_first_of(" \t'\"\\;&|<>$`()*?") != std::string_view::npos) {
    return error(TUTTI_ERR_ARGUMENT, "'{}' is not a host name", name);
  }
  return Status();
}

/// host, host:N, [address]:N, or a bare IPv6 address.
Result<Host> parse_host(std::string_view entry) {
  std::string_view name = entry;
  std::string_view slots;
  if (!entry.empty() && entry.front() == '[') {
    const size_t close = entry.find(']');
    if (close == std::string_view::npos) return error(TUTTI_ERR_ARGUMENT, "'{}': ']' is missing", entry);
    name = entry.substr(1, close - 1);
    const std::string_view rest = entry.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return error(TUTTI_ERR_ARGUMENT, "'{}': expected [address]:slots", entry);
    if (!rest.empty()) slots = rest.substr(1);
    if (!rest.empty() && slots.empty()) return error(TUTTI_ERR_ARGUMENT, "'{}': the number of slots is missing", entry);
  } else if (std::count(entry.begin(), entry.end(), ':') == 1) {
    name = entry.substr(0, entry.find(':'));
    slots = entry.substr(entry.find(':') + 1);
    if (slots.empty()) return error(TUTTI_ERR_ARGUMENT, "'{}': the number of slots is missing", entry);
  }
  TUTTI_TRY(check_name(name, entry));
  Host host{std::string(name), 0};
  if (!slots.empty()) {
    const Result<uint32_t> count = parse_slots(slots, entry);
    if (!count.ok()) return count.status();
    host.slots = count.value();
  }
  return host;
}

void add_host(HostList& hosts, Host host) {
  const auto same = [&host](const Host& other) { return other.name == host.name; };
  const auto found = std::find_if(hosts.begin(), hosts.end(), same);
  if (found == hosts.end()) {
    hosts.push_back(std::move(host));
  } else {
    // "a,a" is two slots on a; "a:2,a" is three.
    found->slots = std::max(found->slots, 1u) + std::max(host.slots, 1u);
  }
}

Result<Host> parse_line(std::string_view line) {
  const size_t blank = line.find_first_of(kBlanks);
  Result<Host> host = parse_host(line.substr(0, blank));
  if (!host.ok() || blank == std::string_view::npos) return host;
  const std::string_view rest = trim(line.substr(blank));
  constexpr std::string_view kSlots = "slots=";
  if (rest.substr(0, kSlots.size()) != kSlots) {
    return error(TUTTI_ERR_ARGUMENT, "'{}' is not understood; a line is 'host', 'host:N' or 'host slots=N'", rest);
  }
  const Result<uint32_t> slots = parse_slots(rest.substr(kSlots.size()), line);
  if (!slots.ok()) return slots.status();
  host->slots = slots.value();
  return host;
}
}  // namespace

Result<HostList> parse_host_list(std::string_view text) {
  HostList hosts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    Result<Host> host = parse_host(trim(text.substr(at, comma - at)));
    if (!host.ok()) return host.status().with_context("-H");
    add_host(hosts, std::move(host).value());
    at = comma + 1;
  }
  return hosts;
}

Result<HostList> parse_host_file(std::string_view text, std::string_view origin) {
  HostList hosts;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Result<Host> host = parse_line(line);
    if (!host.ok()) return host.status().with_context(fmt::format("{} line {}", origin, number));
    add_host(hosts, std::move(host).value());
  }
  if (hosts.empty()) return error(TUTTI_ERR_ARGUMENT, "{} names no host", origin);
  return hosts;
}

Result<std::vector<HostRanks>> place_ranks(const HostList& hosts, uint32_t ranks, bool oversubscribe) {
  uint64_t fixed = 0;
  uint32_t open_hosts = 0;
  for (const Host& host : hosts) {
    fixed += host.slots;
    if (host.slots == 0) ++open_hosts;
  }
  if (ranks == 0 && open_hosts > 0)
    return error(TUTTI_ERR_ARGUMENT, "how many ranks? say -np N, or give every host its slots (host:N)");
  if (ranks == 0) ranks = static_cast<uint32_t>(std::min<uint64_t>(fixed, UINT32_MAX));
  if (ranks > fixed && open_hosts == 0 && !oversubscribe) {
    return error(TUTTI_ERR_ARGUMENT, "-np {}: the hosts have {} slots; give them more (host:N), or say --oversubscribe",
                 ranks, fixed);
  }
  const uint64_t shared = ranks > fixed ? ranks - fixed : 0;
  std::vector<HostRanks> placed;
  std::vector<uint64_t> shares;
  uint32_t open_seen = 0;
  for (const Host& host : hosts) {
    placed.push_back({host.name, {}});
    uint64_t share = host.slots;
    if (host.slots == 0) {
      share = shared * (open_seen + 1) / open_hosts - shared * open_seen / open_hosts;
      ++open_seen;
    }
    shares.push_back(share);
  }
  for (uint32_t rank = 0; rank < ranks;) {
    for (size_t i = 0; i < placed.size(); ++i) {
      for (uint64_t k = 0; k < shares[i] && rank < ranks; ++k) placed[i].ranks.push_back(rank++);
    }
  }
  placed.erase(std::remove_if(placed.begin(), placed.end(), [](const HostRanks& host) { return host.ranks.empty(); }),
               placed.end());
  return placed;
}

}  // namespace tutti::launch
