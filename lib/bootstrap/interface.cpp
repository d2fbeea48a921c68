// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/interface.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <tuple>

#include "topology/place.hpp"

namespace tutti {
namespace {

/// An address as bits, IPv4 or IPv6.
struct Bits {
  std::array<unsigned char, 16> bytes{};
  unsigned count = 0;  // 32 or 128

  static std::optional<Bits> parse(std::string_view text) {
    const std::string address(text.substr(0, text.find('%')));
    Bits bits;
    if (inet_pton(AF_INET, address.c_str(), bits.bytes.data()) == 1) {
      bits.count = 32;
    } else if (inet_pton(AF_INET6, address.c_str(), bits.bytes.data()) == 1) {
      bits.count = 128;
    } else {
      return std::nullopt;
    }
    return bits;
  }
  bool begins_with(const Bits& other, unsigned prefix) const {
    if (count != other.count || prefix > count) return false;
    for (unsigned i = 0; i < prefix; ++i) {
      const unsigned mask = 0x80u >> (i % 8);
      if ((bytes[i / 8] & mask) != (other.bytes[i / 8] & mask)) return false;
    }
    return true;
  }
  bool v4() const { return count == 32; }
  bool link_local() const { return v4() ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  bool loopback() const {
    if (v4()) return bytes[0] == 127;
    return std::all_of(bytes.begin(), bytes.end() - 1, [](unsigned char byte) { return byte == 0; }) && bytes[15] == 1;
  }
};

/// Names under which container and virtualisation software makes its interfaces: mostly the same address on every host.
bool made_by_software(std::string_view name) {
  for (const std::string_view prefix :
       {"docker", "virbr", "veth", "br-",    "cni",   "flannel", "cali",    "podman", "lxc", "lxd", "vnet",
        "tap",    "tun",   "kube", "cilium", "weave", "vmnet",   "vboxnet", "dummy",  "ifb", "sit", "gre"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

/// Smaller is better: kind of interface, family, then the faster one. nullopt: not without being asked for.
using Worth = std::tuple<int, int, int64_t>;

std::optional<Worth> worth_of(const InterfaceAddress& entry, const Bits& bits) {
  if (!entry.up || bits.link_local() || bits.loopback()) return std::nullopt;
  int rank = 1;
  if (entry.loopback) {
    rank = 2;
  } else if (made_by_software(entry.interface) || entry.point_to_point) {
    rank = 3;
  } else if (entry.physical) {
    rank = 0;
  }
  return Worth{rank, bits.v4() ? 0 : 1, -int64_t{entry.speed_mbits}};
}

struct Wish {
  std::string_view text;
  std::optional<Bits> network;
  unsigned prefix_bits = 0;

  bool matches(const InterfaceAddress& entry, const Bits& bits) const {
    if (entry.interface == text || entry.address == text) return true;
    return network && bits.begins_with(*network, prefix_bits);
  }
};

Result<Wish> parse_wish(std::string_view text) {
  Wish wish;
  wish.text = text;
  const size_t slash = text.find('/');
  wish.network = Bits::parse(text.substr(0, slash));
  if (!wish.network) return wish;
  wish.prefix_bits = wish.network->count;
  if (slash == std::string_view::npos) return wish;
  const std::string_view digits = text.substr(slash + 1);
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), wish.prefix_bits);
  if (failure != std::errc() || end != digits.data() + digits.size() || wish.prefix_bits > wish.network->count) {
    return error(TUTTI_ERR_CONFIG, "interface: '{}' is no network; write as 10.1.0.0/16", text);
  }
  return wish;
}

std::string choices_text(const std::vector<InterfaceAddress>& interfaces) {
  std::string text;
  for (const InterfaceAddress& entry : interfaces) {
    text += fmt::format("{}{} {}/{}{}", text.empty() ? "" : ", ", entry.interface, entry.address, entry.prefix_bits,
                        entry.up ? "" : " (down)");
  }
  return text.empty() ? "nothing" : text;
}

void add_once(std::vector<std::string>* list, const std::string& address) {
  if (std::find(list->begin(), list->end(), address) == list->end()) list->push_back(address);
}

Result<std::vector<std::string>> choose_wished(const std::vector<InterfaceAddress>& interfaces, std::string_view wish) {
  std::vector<std::string> chosen;
  while (!wish.empty()) {
    const size_t comma = std::min(wish.find(','), wish.size());
    std::string_view part = wish.substr(0, comma);
    wish.remove_prefix(std::min(comma + 1, wish.size()));
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (part.empty()) continue;
    Result<Wish> parsed = parse_wish(part);
    TUTTI_TRY(parsed.status());
    bool found = false;
    for (const bool v4 : {true, false}) {
      for (const InterfaceAddress& entry : interfaces) {
        const std::optional<Bits> bits = Bits::parse(entry.address);
        if (!bits || bits->v4() != v4 || !entry.up || !parsed->matches(entry, *bits)) continue;
        // A link-local address that nobody has named comes with its interface; others cannot use it without a scope of theirs.
        if (bits->link_local() && entry.interface == part) continue;
        add_once(&chosen, entry.address);
        found = true;
      }
    }
    if (!found) {
      return error(TUTTI_ERR_CONFIG, "interface: '{}' matches nothing here that is up; there is {}", part,
                   choices_text(interfaces));
    }
  }
  if (chosen.empty()) return error(TUTTI_ERR_CONFIG, "interface: names nothing; there is {}", choices_text(interfaces));
  return chosen;
}

std::string link_text(const char* path) {
  std::array<char, 256> target{};
  const ssize_t bytes = readlink(path, target.data(), target.size());
  return bytes > 0 ? std::string(target.data(), static_cast<size_t>(bytes)) : std::string("?");
}

}  // namespace

Result<std::vector<std::string>> choose_addresses(const std::vector<InterfaceAddress>& interfaces, std::string_view wish) {
  if (!wish.empty()) return choose_wished(interfaces, wish);
  std::vector<std::pair<Worth, std::string>> candidates;
  for (const InterfaceAddress& entry : interfaces) {
    const std::optional<Bits> bits = Bits::parse(entry.address);
    if (!bits) continue;
    if (const std::optional<Worth> worth = worth_of(entry, *bits)) candidates.emplace_back(*worth, entry.address);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> chosen;
  for (const auto& [worth, address] : candidates) add_once(&chosen, address);
  if (!chosen.empty()) return chosen;
  for (const InterfaceAddress& entry : interfaces) {
    const std::optional<Bits> bits = Bits::parse(entry.address);
    if (bits && bits->loopback() && entry.up) add_once(&chosen, entry.address);
  }
  if (chosen.empty()) chosen.emplace_back("127.0.0.1");
  return chosen;
}

Result<std::vector<std::string>> choose_local_addresses(const Config& config, bool single_host) {
  const std::string& wish = config.text(Setting::interface);
  if (single_host && wish.empty()) return std::vector<std::string>{"127.0.0.1"};
  Result<std::vector<InterfaceAddress>> interfaces = list_interface_addresses();
  TUTTI_TRY(interfaces.status());
  return choose_addresses(*interfaces, wish);
}

std::string host_identity(const Config& config) {
  if (const std::string& node = config.text(Setting::node_id); !node.empty()) return "node " + node;
  std::string boot = boot_id();
  if (boot.empty()) boot = "?";
  return fmt::format("{} {} {} {} {}", boot, link_text("/proc/self/ns/pid"), link_text("/proc/self/ns/mnt"),
                     link_text("/proc/self/ns/ipc"), link_text("/proc/self/ns/net"));
}

}  // namespace tutti
