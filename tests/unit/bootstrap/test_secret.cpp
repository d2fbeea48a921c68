// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "bootstrap/secret.hpp"
#include "bootstrap/unique_id.hpp"
#include "sim_network.hpp"

using namespace tutti;

namespace {

struct TemporaryFile {
  explicit TemporaryFile(std::string_view text, mode_t mode) {
    const int fd = mkstemp(path.data());
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    REQUIRE(fchmod(fd, mode) == 0);
    close(fd);
  }
  ~TemporaryFile() { unlink(path.c_str()); }
  std::string path = "/tmp/tutti-test-secret-XXXXXX";
};

Config with(std::string_view name, const std::string& value) {
  Config config;
  REQUIRE(config.set(name, value).ok());
  return config;
}

Secret good(const Config& config) {
  const Result<Secret> secret = load_secret(config);
  REQUIRE(secret.ok());
  return *secret;
}

}  // namespace

TEST_CASE("one secret has the same bytes in a variable, a file and a descriptor") {
  const Secret text = good(with("secret", "open sesame"));
  const TemporaryFile file("open sesame\n", 0600);
  CHECK(good(with("secret_file", file.path)) == text);
  const int fd = memfd_create("secret", 0);
  REQUIRE(write(fd, "open sesame", 11) == 11);
  const Config config = with("secret_fd", fmt::format("{}", fd));
  CHECK(good(config) == text);
  CHECK(good(config) == text);  // again: read from its beginning
  CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  close(fd);
  CHECK(!(good(with("secret", "open sesam")) == text));
  CHECK(good(Config()).empty());
}

TEST_CASE("a secret comes through a pipe once") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "words", 5) == 5);
  close(ends[1]);
  CHECK(good(with("secret_fd", fmt::format("{}", ends[0]))) == Secret::from_text("words"));
  close(ends[0]);
}

TEST_CASE("secrets that are not safe or not there are refused with the reason") {
  const TemporaryFile open_to_all("x", 0644);
  const TemporaryFile empty("\n", 0600);
  const std::pair<Config, std::string> cases[] = {
      {with("secret_file", open_to_all.path), "chmod 600"},
      {with("secret_file", empty.path), "empty"},
      {with("secret_file", "/nonexistent/secret"), "cannot be read"},
      {with("secret_file", "/dev/null"), "not a regular file"},
      {with("secret_fd", "eleven"), "eleven"},
      {with("secret_fd", "9999"), "no such descriptor"},
  };
  for (const auto& [config, words] : cases) {
    const Result<Secret> secret = load_secret(config);
    REQUIRE(!secret.ok());
    CHECK(secret.status().code() == TUTTI_ERR_CONFIG);
    INFO(secret.status().message());
    CHECK(secret.status().message().find(words) != std::string_view::npos);
  }
}

TEST_CASE("wiping leaves nothing") {
  Secret secret = Secret::from_text("x");
  secret.wipe();
  CHECK(secret.empty());
  for (const std::byte byte : secret.bytes()) CHECK(byte == std::byte{});
}

TEST_CASE("MACs depend on secret, purpose and message") {
  const Secret secret = Secret::from_text("a");
  const auto mac = [](const Secret& key, std::string_view purpose, std::string_view message) {
    return keyed_mac(key, purpose, std::as_bytes(std::span(message)));
  };
  const Mac base = mac(secret, "p", "m");
  CHECK(equal_macs(base, mac(secret, "p", "m")));
  CHECK(!equal_macs(base, mac(Secret::from_text("b"), "p", "m")));
  CHECK(!equal_macs(base, mac(secret, "q", "m")));
  CHECK(!equal_macs(base, mac(secret, "p", "n")));
  CHECK(!equal_macs(mac(secret, "ab", "c"), mac(secret, "a", "bc")));
}

TEST_CASE("an invitation survives its way, and damage is noticed") {
  test::SeededRandom random(1);
  Invitation invitation;
  invitation.servers = {{"127.0.0.1", 4711}, {"fd00::5", 65535}, {"@name", 0}};
  invitation.secret = Secret::generate(random);
  random.fill(invitation.job);
  invitation.version = 7;
  const auto bytes = invitation.encode();
  REQUIRE(bytes.ok());
  const Result<Invitation> back = Invitation::decode(*bytes);
  REQUIRE(back.ok());
  CHECK(back->servers == invitation.servers);
  CHECK(back->secret == invitation.secret);
  CHECK(back->job == invitation.job);
  CHECK(back->version == 7);
  for (size_t i = 0; i < bytes->size(); ++i) {
    auto damaged = *bytes;
    damaged[i] ^= std::byte{1};
    const Result<Invitation> refused = Invitation::decode(damaged);
    REQUIRE(!refused.ok());
    CHECK(refused.status().code() == TUTTI_ERR_ARGUMENT);
  }
  CHECK(!Invitation::decode(std::span(*bytes).first(255)).ok());
  invitation.servers.resize(60, {"10.11.12.13", 50000});
  CHECK(invitation.encode().status().code() == TUTTI_ERR_INTERNAL);
}

TEST_CASE("hexadecimal text") {
  const Result<std::vector<std::byte>> bytes = from_hex("00fFa5");
  REQUIRE(bytes.ok());
  CHECK(to_hex(*bytes) == "00ffa5");
  CHECK(!from_hex("0").ok());
  CHECK(!from_hex("0g").ok());
}
