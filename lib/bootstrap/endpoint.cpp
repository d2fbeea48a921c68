// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "bootstrap/net.hpp"

namespace tutti {
namespace {

constexpr size_t kMostNameBytes = 107;  // of an abstract Unix socket: sockaddr_un less its leading zero
constexpr size_t kMostHostBytes = 255;

/// 0: no port number.
uint16_t parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  return failure == std::errc() && end == text.data() + text.size() ? port : uint16_t{0};
}

}  // namespace

bool Endpoint::on_this_machine() const {
  if (is_unix() || host == "localhost" || host == "::1") return true;
  // 127.0.0.0/8, but not a name that happens to begin so.
  return host.rfind("127.", 0) == 0 && host.find_first_not_of("0123456789.") == std::string::npos;
}

std::string Endpoint::text() const {
  if (is_unix()) return host;
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  if (!text.empty() && text.front() == '@') {
    if (text.size() < 2 || text.size() > kMostNameBytes + 1) {
      return error(TUTTI_ERR_ENVIRONMENT, "'{}' is no name of a local socket: @ and 1 to {} characters", text, kMostNameBytes);
    }
    return Endpoint{std::string(text), 0};
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error(TUTTI_ERR_ENVIRONMENT, "'{}' has no port; write host:port", text);
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return error(TUTTI_ERR_ENVIRONMENT, "'{}': an IPv6 address goes into brackets, as [fd00::5]:4711", text);
  }
  if (host.empty() || host.size() > kMostHostBytes || host.front() == '@') {
    return error(TUTTI_ERR_ENVIRONMENT, "'{}' has no host; write host:port", text);
  }
  const uint16_t port = parse_port(text.substr(colon + 1));
  if (port == 0) {
    return error(TUTTI_ERR_ENVIRONMENT, "'{}': port '{}' is not a number from 1 to 65535", text, text.substr(colon + 1));
  }
  return Endpoint{std::string(host), port};
}

Result<std::vector<Endpoint>> parse_endpoints(std::string_view text) {
  std::vector<Endpoint> endpoints;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    Result<Endpoint> endpoint = Endpoint::parse(text.substr(at, comma - at));
    TUTTI_TRY(endpoint.status());
    endpoints.push_back(std::move(endpoint).value());
    at = comma + 1;
  }
  return endpoints;
}

std::string endpoints_text(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) text.append(text.empty() ? "" : ",").append(endpoint.text());
  return text;
}

Result<PortRange> PortRange::parse(std::string_view text) {
  if (text.empty()) return PortRange{};
  const size_t dash = text.find('-');
  PortRange range;
  range.first = parse_port(text.substr(0, dash));
  range.last = dash == std::string_view::npos ? range.first : parse_port(text.substr(dash + 1));
  if (range.first == 0 || range.last < range.first) {
    return error(TUTTI_ERR_CONFIG, "port_range is '{}'; write first-last, as 7000-7010, with numbers from 1 to 65535", text);
  }
  return range;
}

}  // namespace tutti
