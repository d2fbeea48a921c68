// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the verifier. Random mutants of every algorithm's schedules and programs: the verifier must reject each; one that it
// passes must give the right result in random interleavings, every time, and is then counted as equivalent.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "../cases.hpp"
#include "interpreter.hpp"
#include "mutate.hpp"
#include "schedule/names.hpp"
#include "schedule/print.hpp"

namespace tutti::mutants {
namespace {

constexpr uint64_t kMutants = 21600;
constexpr uint64_t kSample = 1200;
constexpr uint32_t kElementBytes = 4;
constexpr uint64_t kSeed = 20240601;

struct Tally {
  uint64_t caught = 0;
  uint64_t equivalent = 0;
};

/// What a mutant is made from.
struct Original {
  const AlgorithmInfo* algorithm = nullptr;
  uint32_t ranks = 1;
  Call call;
  bool uneven = false;  ///< blocks of different lengths
  std::vector<Capabilities> pairs;
  std::vector<Schedule> schedules;
  std::string text;
};

template <class T>
const T& one_of(const std::vector<T>& choices, std::mt19937_64& random) {
  return choices[random() % choices.size()];
}

Original draw(const AlgorithmInfo& algorithm, std::mt19937_64& random) {
  Original original;
  original.algorithm = &algorithm;
  original.ranks = static_cast<uint32_t>(random() % 20 == 0 ? 1 : random() % 6 + 2);
  while (!cases::fits(algorithm, original.ranks)) original.ranks = static_cast<uint32_t>(random() % 6 + 2);
  const auto root = static_cast<uint32_t>(has_root(algorithm.collective) ? random() % original.ranks : 0);
  original.call = cases::call_for(algorithm, kElementBytes, root);
  original.call.in_place = random() % 2 == 0;
  original.uneven = cases::takes_uneven(algorithm) && random() % 2 == 0;
  const Parameters parameters = one_of(cases::parameter_variants(algorithm, kElementBytes), random);
  const uint64_t segment_bytes = random() % 3 == 0 ? 65536 : 2 * kElementBytes;
  const auto prefetch = static_cast<uint16_t>(random() % 3);
  const cases::Mix mix = one_of(cases::mixes(original.ranks, segment_bytes, prefetch, random()), random);
  original.pairs = mix.pairs;
  const Shape shape = one_of(cases::shapes(algorithm, original.ranks), random);
  original.schedules = cases::job(algorithm, shape, original.call.root, parameters, original.call.in_place);
  original.text =
      fmt::format("{} {}, {} ranks, root {}, parameters {}, {}, segments of {} bytes, prefetch {}{}", name(algorithm.collective),
                  algorithm.name, original.ranks, original.call.root, cases::text(parameters), mix.name, segment_bytes, prefetch,
                  original.call.in_place ? ", in place" : "");
  return original;
}

struct Trial {
  uint64_t count;
  uint32_t interleavings;
};
/// One chunk, some uneven parts, several chunks; 100 interleavings in all.
std::array<Trial, 3> trials(const Original& original) {
  if (has_blocks(original.algorithm->collective)) return {{{1, 20}, {3, 30}, {11, 50}}};
  const uint64_t ranks = original.ranks;
  return {{{1, 20}, {ranks + 1, 30}, {10 * ranks + ranks / 2 + 1, 50}}};
}

Call call_of(const Original& original, const Trial& trial) {
  Call call = original.call;
  call.count = trial.count;
  if (original.uneven) call.counts = cases::random_counts(*original.algorithm, original.ranks, trial.count, kSeed);
  return call;
}

class Run {
 public:
  bool all(uint64_t mutants) {
    for (uint64_t number = 0; number < mutants;) number += one(number);
    report();
    return failed_ == 0 && caught_ + equivalent_ == mutants;
  }

 private:
  /// 1 if there was a mutant.
  uint64_t one(uint64_t number) {
    const auto algorithms = all_algorithms();
    const Original original = draw(*algorithms[number % algorithms.size()], random_);
    const bool of_program = number / algorithms.size() % 2 == 1;
    const auto rank = static_cast<size_t>(random_() % original.ranks);
    std::vector<Schedule> schedules = original.schedules;
    std::string_view what = of_program ? "a program" : mutate(schedules[rank], random_);
    if (what.empty()) return 0;
    if (!check(schedules[rank]).ok()) return count(what, true);
    std::vector<Program> programs = lower_job(schedules, original.pairs);
    if (of_program) {
      what = mutate(programs[rank], random_);
      if (what.empty()) return 0;
    }
    Verifier verifier(programs);
    for (const Trial& trial : trials(original)) {
      if (!verifier.judge(call_of(original, trial)).ok()) return count(what, true);
    }
    for (const Trial& trial : trials(original)) {
      const Call call = call_of(original, trial);
      for (uint32_t n = 0; n < trial.interleavings; ++n) {
        const uint64_t seed = number * trial.interleavings + n;
        const std::string why = Interpreter(programs, call, seed).run();
        if (why.empty()) continue;
        escaped(original, what, rank, programs[rank], fmt::format("{} elements, seed {}: {}", trial.count, seed, why));
        return 1;
      }
    }
    return count(what, false);
  }

  uint64_t count(std::string_view what, bool caught) {
    ++(caught ? caught_ : equivalent_);
    Tally& tally = tallies_[what];
    ++(caught ? tally.caught : tally.equivalent);
    return 1;
  }

  void escaped(const Original& original, std::string_view what, size_t rank, const Program& program, std::string_view why) {
    constexpr uint64_t kShown = 5;
    if (++failed_ > kShown) return;
    fmt::print("FAILED: the verifier passes a mutant that is wrong: {} of rank {} of {}; {}\n{}\n", what, rank, original.text,
               why, print_text(program));
  }

  void report() const {
    for (const auto& [what, tally] : tallies_)
      fmt::print("  {}: {} caught, {} equivalent\n", what, tally.caught, tally.equivalent);
    fmt::print("{} mutants: {} caught, {} equivalent\n", caught_ + equivalent_ + failed_, caught_, equivalent_);
    if (failed_ > 0) fmt::print("{} ESCAPED\n", failed_);
  }

  std::mt19937_64 random_{kSeed};
  std::map<std::string_view, Tally> tallies_;
  uint64_t caught_ = 0;
  uint64_t equivalent_ = 0;
  uint64_t failed_ = 0;
};

/// The interpreter itself: unchanged programs give the right result, whatever the order.
bool originals_are_right() {
  std::mt19937_64 random(kSeed);
  for (int n = 0; n < 600; ++n) {
    const auto algorithms = all_algorithms();
    const Original original = draw(*algorithms[static_cast<size_t>(n) % algorithms.size()], random);
    const std::vector<Program> programs = lower_job(original.schedules, original.pairs);
    for (const Trial& trial : trials(original)) {
      const std::string why = Interpreter(programs, call_of(original, trial), random()).run();
      if (why.empty()) continue;
      fmt::print("FAILED: an original is wrong: {}, {} elements: {}\n", original.text, trial.count, why);
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace tutti::mutants

// --sample: fewer, for a build with sanitizers, which looks for faults of the verifier itself.
int main(int argc, char** argv) {
  const bool sample = argc == 2 && std::string_view(argv[1]) == "--sample";
  if (argc > 1 && !sample) {
    fmt::print(stderr, "usage: {} [--sample]\n", argv[0]);
    return 2;
  }
  if (!tutti::mutants::originals_are_right()) return EXIT_FAILURE;
  const uint64_t mutants = sample ? tutti::mutants::kSample : tutti::mutants::kMutants;
  return tutti::mutants::Run().all(mutants) ? EXIT_SUCCESS : EXIT_FAILURE;
}
