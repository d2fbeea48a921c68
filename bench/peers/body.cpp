// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The program around a Binding. Commands, a line each, the same to all ranks:
//
//   COLLECTIVE BYTES ITERATIONS REPEATS   times it; the answer has the nanoseconds of a call in each repeat
//   check COLLECTIVE BYTES                one call with each root, checked; the answer has the number of wrong elements
//
// Every rank answers every command with a line of JSON; the end of the commands ends the program. With "start" as its last
// argument it joins the job, meets the others in one barrier, and ends: what that takes is the library's start-up.
#include "body.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "channel.hpp"
#include "check.hpp"

namespace peers {
namespace {

constexpr std::array<std::string_view, 9> names = {"allreduce", "reduce",         "broadcast", "allgather", "gather",
                                                   "scatter",   "reduce_scatter", "alltoall",  "barrier"};
constexpr size_t page_bytes = 4096;
constexpr unsigned max_repeats = 64;  // as many as fit in an answer

Collective collective_of(const std::string& word) {
  const auto* const found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) throw std::runtime_error("unknown collective '" + word + "'");
  return static_cast<Collective>(found - names.begin());
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<float, Free>;

// Ordinary memory, as a program has it, from the start of a page.
Buffer allocate(size_t floats) {
  const size_t pages = floats * sizeof(float) / page_bytes + 1;
  void* const memory = std::aligned_alloc(page_bytes, pages * page_bytes);
  if (memory == nullptr) throw std::runtime_error("no memory for " + std::to_string(pages * page_bytes) + " bytes");
  Buffer buffer(static_cast<float*>(memory));
  std::fill_n(buffer.get(), pages * page_bytes / sizeof(float), 0.0F);
  return buffer;
}

struct Lacking : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Body {
 public:
  explicit Body(Binding& binding) : binding_(binding) {}

  // Makes `task_` what the words say, if it is not already.
  void take(const std::string& word, size_t bytes) {
    const Collective collective = collective_of(word);
    if (!binding_.has(collective)) throw Lacking("this library has no " + word);
    const size_t ranks = static_cast<size_t>(binding_.ranks());
    const size_t floats = bytes / sizeof(float);
    const bool blocks = buffer_floats(collective, 1, binding_.ranks()) != 1;
    const size_t count = blocks ? (floats + ranks - 1) / ranks : floats;  // bytes are of the whole; blocks are alike
    if (task_.collective == collective && task_.count == count && task_.send != nullptr) return;
    const size_t needed = std::max<size_t>(buffer_floats(collective, count, binding_.ranks()), 1);
    if (needed > floats_) {
      send_ = allocate(needed);
      recv_ = allocate(needed);
      floats_ = needed;
    }
    task_ = {collective, count, send_.get(), recv_.get()};
    binding_.prepare(task_);
  }

  uint64_t check() {
    uint64_t wrong = 0;
    const int roots = is_rooted(task_.collective) ? binding_.ranks() : 1;
    for (int root = 0; root < roots; ++root) {
      fill(task_, binding_.rank(), binding_.ranks(), root);
      binding_.call(task_, root);
      wrong += wrong_elements(task_, binding_.rank(), binding_.ranks(), root);
    }
    binding_.barrier();
    return wrong;
  }

  std::vector<double> time(Channel& channel, uint64_t iterations, unsigned repeats) {
    std::vector<double> ns;
    run(iterations / 8 + 1);
    for (unsigned repeat = 0; repeat < std::min(repeats, max_repeats); ++repeat) {
      // The library's own barrier first: it may still have to move what a call that has returned left behind.
      binding_.barrier();
      channel.meet();
      const auto start = std::chrono::steady_clock::now();
      run(iterations);
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
      ns.push_back(took.count() / static_cast<double>(iterations));
    }
    binding_.barrier();
    channel.meet();
    return ns;
  }

 private:
  // The root moves with each call: else the root would run ahead of the others, and throughput be measured.
  void run(uint64_t iterations) {
    const int ranks = binding_.ranks();
    int root = 0;
    for (uint64_t iteration = 0; iteration < iterations; ++iteration) {
      binding_.call(task_, root);
      root = root + 1 == ranks ? 0 : root + 1;
    }
  }

  Binding& binding_;
  size_t floats_ = 0;
  Buffer send_;
  Buffer recv_;
  Task task_;
};

std::string answer_to(const std::string& line, Body& body, Channel& channel) {
  std::istringstream words(line);
  std::ostringstream answer;
  std::string word;
  size_t bytes = 0;
  words >> word;
  if (word == "check") {
    words >> word >> bytes;
    if (!words) throw std::runtime_error("bad command '" + line + "'");
    body.take(word, bytes);
    answer << "\"wrong\":" << body.check();
    return answer.str();
  }
  uint64_t iterations = 0;
  unsigned repeats = 0;
  words >> bytes >> iterations >> repeats;
  if (!words || iterations == 0 || repeats == 0) throw std::runtime_error("bad command '" + line + "'");
  body.take(word, bytes);
  answer << "\"ns\":[";
  answer.precision(1);
  answer << std::fixed;
  const char* separator = "";
  for (const double ns : body.time(channel, iterations, repeats)) {
    answer << separator << ns;
    separator = ",";
  }
  answer << ']';
  return answer.str();
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return result + '"';
}

// The launcher's number of this process, before the library says it: binding comes before the library looks where it runs.
int launched_rank() {
  for (const char* const name : {"TUTTI_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_RANK", "PEERS_RANK"}) {
    if (const char* const value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  throw std::runtime_error("no launcher's variable says which rank this is");
}

// All of a job that any program has: a start, everybody here, an end.
int start_and_end(int argc, char** argv) {
  const std::unique_ptr<Binding> binding = make_binding(argc, argv);
  binding->barrier();
  return 0;
}

int serve(int argc, char** argv) {
  const std::string folder = channel_folder();
  const std::vector<int> cpus = bound_cpus();
  if (!cpus.empty()) bind_to(cpus[static_cast<size_t>(launched_rank()) % cpus.size()]);
  const std::unique_ptr<Binding> binding = make_binding(argc, argv);
  Channel channel(folder, binding->rank(), binding->ranks());
  const std::string start = "{\"rank\":" + std::to_string(binding->rank()) + ',';
  channel.answer(start + "\"ranks\":" + std::to_string(binding->ranks()) + ",\"version\":" + quoted(binding->version()) + '}');
  Body body(*binding);
  while (const std::optional<std::string> line = channel.command()) {
    try {
      channel.answer(start + answer_to(*line, body, channel) + '}');
    } catch (const Lacking& failure) {
      channel.answer(start + "\"lacks\":" + quoted(failure.what()) + '}');
    } catch (const std::exception& failure) {
      channel.answer(start + "\"error\":" + quoted(failure.what()) + '}');
    }
  }
  return 0;
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string_view(argv[argc - 1]) == "start") return peers::start_and_end(argc - 1, argv);
    return peers::serve(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}
