// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole starts over the kernel's sockets: every rank a thread of this process.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "bootstrap/bootstrap.hpp"
#include "cluster.hpp"

using namespace tutti;

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

struct Outcome {
  Status status;
  std::vector<std::string> cards;
  std::array<std::byte, 16> job{};
  Secret secret;
  bool insecure = false;
  std::vector<std::string> served_at;
};

/// What one process brings along.
struct Process {
  explicit Process(const Variables& variables, std::shared_ptr<test::LineSink> sink = std::make_shared<test::LineSink>())
      : network(make_system_network()), log(std::move(sink), LogLevel::warn) {
    for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
    std::vector<const char*> environment;
    for (const std::string& line : lines) environment.push_back(line.c_str());
    environment.push_back(nullptr);
    loaded = config.load_environment(environment.data());
    options.config = &config;
    options.log = &log;
    options.random = &random;
    options.network = network.get();
    options.environment = [variables](std::string_view name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
  }

  Outcome start() {
    Outcome outcome;
    outcome.status = loaded;
    if (!loaded.ok()) return outcome;
    Result<JobInfo> job = find_job(options);
    outcome.status = job.status();
    if (!job.ok()) return outcome;
    Result<std::vector<std::string>> cards = exchange_cards(*job, options, fmt::format("card {}", job->rank));
    outcome.status = cards.status();
    if (cards.ok()) outcome.cards = *cards;
    outcome.job = job->job;
    outcome.secret = job->secret;
    outcome.insecure = job->insecure;
    if (job->host) {
      for (const Endpoint& at : job->host->endpoints()) outcome.served_at.push_back(at.host);
      job->store.reset();
      const Deadline farewell = Deadline::after(network->clock(), 1'000'000'000);
      job->host->linger({std::max(job->deadline.at_ns, farewell.at_ns)}, cards.ok() ? Deadline{0} : farewell);
    }
    return outcome;
  }

  std::vector<std::string> lines;
  std::unique_ptr<Network> network;
  SystemRandom random;
  Log log;
  Config config;
  Status loaded;
  BootstrapOptions options;
};

std::vector<Outcome> run(std::vector<std::unique_ptr<Process>>& processes) {
  std::vector<Outcome> outcomes(processes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processes.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = processes[i]->start(); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Outcome> run_by_hand(const std::string& rendezvous, const std::vector<int>& ranks, int size,
                                 const Variables& more = {}) {
  std::vector<std::unique_ptr<Process>> processes;
  for (const int rank : ranks) {
    Variables variables = more;
    variables["TUTTI_RANK"] = fmt::format("{}", rank);
    variables["TUTTI_SIZE"] = fmt::format("{}", size);
    variables["TUTTI_RENDEZVOUS"] = rendezvous;
    processes.push_back(std::make_unique<Process>(variables));
  }
  return run(processes);
}

void check_all_met(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.status.message());
    REQUIRE(outcome.status.ok());
    REQUIRE(outcome.cards.size() == outcomes.size());
    for (size_t i = 0; i < outcomes.size(); ++i) CHECK(outcome.cards[i] == fmt::format("card {}", i));
    CHECK(outcome.job == outcomes[0].job);
    CHECK(outcome.secret == outcomes[0].secret);
    CHECK(!outcome.secret.empty());
  }
}

void check_all_failed(const std::vector<Outcome>& outcomes, tutti_status_t code, const std::string& words) {
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.status.message());
    CHECK(outcome.status.code() == code);
    CHECK(outcome.status.message().find(words) != std::string_view::npos);
  }
}

uint16_t free_port() { return make_system_network()->listen({"127.0.0.1", 0}, {}).value()->endpoint().port; }
std::string loopback() { return fmt::format("tcp://127.0.0.1:{}", free_port()); }

struct TemporaryFolder {
  TemporaryFolder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~TemporaryFolder() {
    unlink(file().c_str());
    rmdir(path.c_str());
  }
  std::string file() const { return path + "/meet"; }
  std::string path = "/tmp/tutti-test-start-XXXXXX";
};

const Variables kSoon{{"TUTTI_BOOTSTRAP_TIMEOUT", "600ms"}};

}  // namespace

TEST_CASE("a rank alone starts without anything") {
  Process process({});
  const Outcome outcome = process.start();
  REQUIRE(outcome.status.ok());
  CHECK(outcome.cards == std::vector<std::string>{"card 0"});
  CHECK(!outcome.secret.empty());
}

TEST_CASE("by hand at a port of this machine, again and again at the same one") {
  const std::string at = loopback();
  std::array<std::byte, 16> last{};
  for (int i = 0; i < 5; ++i) {
    const std::vector<Outcome> outcomes = run_by_hand(at, {0, 1, 2, 3}, 4);
    check_all_met(outcomes);
    CHECK(outcomes[0].job != last);
    CHECK(outcomes[0].served_at == std::vector<std::string>{"127.0.0.1"});
    last = outcomes[0].job;
  }
}

TEST_CASE("by hand at a local socket: the same user, so not insecure") {
  const std::vector<Outcome> outcomes = run_by_hand(fmt::format("tcp://@tutti-test-start-{}", getpid()), {2, 0, 1}, 3);
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.status.ok());
    CHECK(!outcome.insecure);
    CHECK(outcome.secret == outcomes[0].secret);
  }
}

TEST_CASE("with a secret of one's own") {
  const std::vector<Outcome> outcomes = run_by_hand(loopback(), {0, 1}, 2, {{"TUTTI_SECRET", "words"}});
  check_all_met(outcomes);
  CHECK(outcomes[0].secret == Secret::from_text("words"));
  CHECK(!outcomes[0].insecure);
}

TEST_CASE("several hosts without a secret are refused with the remedy") {
  for (const Outcome& outcome : run_by_hand("tcp://192.0.2.9:7", {0, 1}, 2)) {
    CHECK(outcome.status.code() == TUTTI_ERR_CONFIG);
    CHECK(outcome.status.message().find("TUTTI_SECRET_FILE") != std::string_view::npos);
    CHECK(outcome.status.message().find("TUTTI_INSECURE") != std::string_view::npos);
  }
}

TEST_CASE("insecure jobs say so on every rank") {
  for (const int rank : {0, 1}) {
    const auto sink = std::make_shared<test::LineSink>();
    Process process({{"TUTTI_RANK", fmt::format("{}", rank)},
                     {"TUTTI_SIZE", "2"},
                     {"TUTTI_RENDEZVOUS", "tcp://192.0.2.9:7"},
                     {"TUTTI_INSECURE", "1"},
                     {"TUTTI_BOOTSTRAP_TIMEOUT", "10ms"}},
                    sink);
    CHECK(!process.start().status.ok());
    CHECK(sink->text().find("TUTTI_INSECURE") != std::string::npos);
  }
}

TEST_CASE("a rank that does not come is named by all; rank 0 too") {
  const std::vector<Outcome> outcomes = run_by_hand(loopback(), {0, 2}, 4, kSoon);
  check_all_failed(outcomes, TUTTI_ERR_MISSING_RANK, "missing ranks 1 and 3");
  check_all_failed(run_by_hand(loopback(), {1, 2}, 3, kSoon), TUTTI_ERR_MISSING_RANK, "rank 0");
}

TEST_CASE("two rank 0") {
  check_all_failed(run_by_hand(loopback(), {0, 0, 1}, 3, {{"TUTTI_BOOTSTRAP_TIMEOUT", "20s"}}), TUTTI_ERR_ENVIRONMENT, "rank 0");
}

TEST_CASE("ranks that were given different sizes") {
  const std::string at = loopback();
  std::vector<std::unique_ptr<Process>> processes;
  for (const auto& [rank, size] : {std::pair{"0", "3"}, std::pair{"1", "3"}, std::pair{"2", "4"}}) {
    processes.push_back(std::make_unique<Process>(
        Variables{{"TUTTI_RANK", rank}, {"TUTTI_SIZE", size}, {"TUTTI_RENDEZVOUS", at}, {"TUTTI_BOOTSTRAP_TIMEOUT", "20s"}}));
  }
  check_all_failed(run(processes), TUTTI_ERR_MISMATCH, "one of 4");
}

TEST_CASE("the port belongs to a program that has nothing to do with us") {
  const auto network = make_system_network();
  const auto foreign = network->listen({"127.0.0.1", 0}, {}).value();
  std::atomic<bool> stop{false};
  std::thread server([&] {
    std::vector<std::unique_ptr<Stream>> held;
    const auto poller = network->make_poller().value();
    (void)poller->watch(foreign->fd(), false, 0).ok();
    while (!stop.load()) {
      std::vector<uint64_t> ready;
      poller->wait(Deadline::after(network->clock(), 10'000'000), &ready);
      std::unique_ptr<Stream> stream;
      while (foreign->accept(&stream) == Io::done) {
        size_t moved = 0;
        const std::string_view banner = "220 mail.example ESMTP\r\n";
        (void)stream->write(std::as_bytes(std::span(banner)), &moved);
        held.push_back(std::move(stream));
      }
    }
  });
  const std::vector<Outcome> outcomes = run_by_hand("tcp://" + foreign->endpoint().text(), {0, 1, 2, 3}, 4, kSoon);
  stop.store(true);
  server.join();
  check_all_failed(outcomes, TUTTI_ERR_PROTOCOL, "not a Tutti server");
  CHECK(outcomes[0].status.message().find("rank 0 cannot serve") != std::string_view::npos);
}

TEST_CASE("a rank with another secret, or another version") {
  for (const bool version : {false, true}) {
    const std::string at = loopback();
    std::vector<std::unique_ptr<Process>> processes;
    for (const std::string rank : {"0", "1", "2"}) {
      Variables variables{{"TUTTI_RANK", rank},
                          {"TUTTI_SIZE", "3"},
                          {"TUTTI_RENDEZVOUS", at},
                          {"TUTTI_SECRET", "right"},
                          {"TUTTI_BOOTSTRAP_TIMEOUT", "1s"}};
      if (!version && rank == "1") variables["TUTTI_SECRET"] = "wrong";
      processes.push_back(std::make_unique<Process>(variables));
      if (version && rank == "1") processes.back()->options.version = 99;
    }
    const std::vector<Outcome> outcomes = run(processes);
    if (version) {
      check_all_failed(outcomes, TUTTI_ERR_VERSION, "version 99");
      check_all_failed(outcomes, TUTTI_ERR_VERSION, fmt::format("version {}", kProtocolVersion));
    } else {
      CHECK(outcomes[1].status.code() == TUTTI_ERR_AUTH);
      CHECK(outcomes[0].status.code() == TUTTI_ERR_MISSING_RANK);
      CHECK(outcomes[2].status.code() == TUTTI_ERR_MISSING_RANK);
    }
  }
}

TEST_CASE("a file where an earlier job's invitation still lies") {
  const TemporaryFolder folder;
  // A job whose rank 0 was killed leaves its file; its server is gone.
  Invitation stale;
  test::SeededRandom random(1);
  stale.servers = {{"127.0.0.1", free_port()}};
  stale.secret = Secret::generate(random);
  const std::string text = to_hex(*stale.encode());
  const int fd = open(folder.file().c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  close(fd);
  for (int i = 0; i < 3; ++i) {
    check_all_met(run_by_hand("file://" + folder.file(), {0, 1, 2}, 3));
    CHECK(access(folder.file().c_str(), F_OK) != 0);  // nothing is left
  }
}

TEST_CASE("a rendezvous file that others could have written is not read") {
  const TemporaryFolder folder;
  close(open(folder.file().c_str(), O_WRONLY | O_CREAT, 0600));
  REQUIRE(chmod(folder.file().c_str(), 0666) == 0);
  check_all_failed(run_by_hand("file://" + folder.file(), {1}, 2, kSoon), TUTTI_ERR_ENVIRONMENT, "remove it");
  check_all_failed(run_by_hand("file:///nonexistent-folder/meet", {0}, 2, kSoon), TUTTI_ERR_ENVIRONMENT, "nonexistent-folder");
  // One rank needs no meeting at all.
  CHECK(run_by_hand("file:///nonexistent-folder/meet", {0}, 1)[0].status.ok());
}

TEST_CASE("a unique id is good for one job, in its own process too") {
  Process maker({});
  maker.options.addresses = {"127.0.0.1"};
  UniqueIdHost made = create_unique_id(maker.options).value();
  const tutti_unique_id_t id = made.id;
  StoreHost::release(std::move(made.host), Deadline::after(maker.network->clock(), 20'000'000'000));
  const auto join = [&](const tutti_unique_id_t& with, const Variables& variables) {
    std::vector<std::unique_ptr<Process>> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.push_back(std::make_unique<Process>(variables));
      processes.back()->options.unique_id = &with;
      processes.back()->options.rank = rank;
      processes.back()->options.size = 3;
    }
    return run(processes);
  };
  check_all_met(join(id, {}));
  for (const Outcome& outcome : join(id, kSoon)) CHECK(!outcome.status.ok());
  tutti_unique_id_t damaged = id;
  damaged.bytes[100] ^= 1;
  check_all_failed(join(damaged, {}), TUTTI_ERR_ARGUMENT, "damaged");
}

TEST_CASE("ranks and sizes that the caller gives are checked") {
  Process maker({});
  maker.options.addresses = {"127.0.0.1"};
  const UniqueIdHost made = create_unique_id(maker.options).value();
  Process process({});
  process.options.unique_id = &made.id;
  for (const auto& [rank, size, code] : {std::tuple{0, 0, TUTTI_ERR_ARGUMENT}, std::tuple{0, -1, TUTTI_ERR_ARGUMENT},
                                         std::tuple{2, 2, TUTTI_ERR_RANK}, std::tuple{-1, 2, TUTTI_ERR_RANK}}) {
    process.options.rank = rank;
    process.options.size = size;
    CHECK(process.start().status.code() == code);
  }
}

namespace {

/// A caller's key-value store.
struct Table {
  std::mutex mutex;
  std::map<std::string, std::string> values;
};
int table_set(void* user, const char* key, const void* value, size_t bytes) {
  auto& table = *static_cast<Table*>(user);
  const std::lock_guard lock(table.mutex);
  table.values[key] = std::string(static_cast<const char*>(value), bytes);
  return 0;
}
int table_get(void* user, const char* key, void* value, size_t capacity, size_t* bytes) {
  auto& table = *static_cast<Table*>(user);
  const std::lock_guard lock(table.mutex);
  const auto found = table.values.find(key);
  if (found == table.values.end()) return 1;
  *bytes = std::min(capacity, found->second.size());
  std::copy_n(found->second.data(), *bytes, static_cast<char*>(value));
  return 0;
}

}  // namespace

TEST_CASE("a store of the caller's, used twice") {
  Table table;
  tutti_store_t store{};
  store.struct_size = sizeof store;
  store.user = &table;
  store.prefix = "job7/";
  store.set = table_set;
  store.get = table_get;
  for (int i = 0; i < 2; ++i) {
    std::vector<std::unique_ptr<Process>> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.push_back(std::make_unique<Process>(Variables{}));
      processes.back()->options.store = &store;
      processes.back()->options.rank = rank;
      processes.back()->options.size = 3;
      processes.back()->options.addresses = {"127.0.0.1"};
    }
    check_all_met(run(processes));
  }
  for (const auto& [key, value] : table.values) CHECK(key.rfind("job7/", 0) == 0);
}

TEST_CASE("a start that is aborted ends at once") {
  std::atomic<bool> abort{true};
  Process process({{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_RENDEZVOUS", loopback()}});
  process.options.abort = &abort;
  CHECK(process.start().status.code() == TUTTI_ERR_ABORTED);
}
