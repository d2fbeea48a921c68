// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Judges every registered algorithm for every small number of ranks, every root, counts about the borders, in place and not, and
// what it is lowered to for every mix of capabilities; then some jobs of up to 300 ranks, drawn from a seed. `--long` takes more
// of everything, `--sample` fewer ranks: enough for a build with sanitizers, which looks for faults of the verifier itself.
// `--only allreduce:ring` takes one algorithm, `--only allreduce` those of one collective.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <random>
#include <string_view>

#include "cases.hpp"
#include "schedule/names.hpp"

namespace tutti {
namespace {

struct Extent {
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> element_bytes;
  std::vector<uint64_t> segment_elements;  ///< of a transport's slot
  uint16_t max_prefetch;
  /// From this many ranks on, and for nested ones, a job is lowered for one length of segments and one prefetch, another one each
  /// time.
  uint32_t thin_from;
  uint32_t large_jobs;  ///< drawn for each algorithm
};

class Run {
 public:
  Run(const Extent& extent, std::string_view only) : extent_(extent), only_(only) {}

  bool all() {
    for (const AlgorithmInfo* algorithm : all_algorithms()) {
      if (!is_wanted(*algorithm)) continue;
      const uint64_t before = verified_;
      for (const uint32_t ranks : extent_.ranks) {
        if (!cases::fits(*algorithm, ranks)) continue;
        const uint32_t roots = has_root(algorithm->collective) ? ranks : 1;
        for (const Shape& shape : cases::shapes(*algorithm, ranks)) {
          // All roots of flat jobs; of nested ones the first, the last and one between them.
          const uint32_t stride = shape.group_of.empty() ? 1 : std::max(1u, (roots - 1) / 2);
          for (uint32_t root = 0; root < roots; root += stride) one_root(*algorithm, shape, root);
        }
      }
      for (uint32_t draw = 0; draw < extent_.large_jobs; ++draw) large_job(*algorithm, draw);
      fmt::print("  {} {}: {}\n", name(algorithm->collective), algorithm->name, verified_ - before);
    }
    fmt::print(
        "{} schedules verified (one: all ranks of an algorithm, with parameters and root, lowered for a mix, under a call)\n",
        verified_);
    if (failed_ > 0) fmt::print("{} FAILED\n", failed_);
    return failed_ == 0 && verified_ > 0;
  }

 private:
  bool is_wanted(const AlgorithmInfo& algorithm) const {
    const std::string collective(name(algorithm.collective));
    return only_.empty() || only_ == collective || only_ == fmt::format("{}:{}", collective, algorithm.name);
  }

  /// One size, nesting, root, parameters, mix of capabilities and call, as the dice fall; but the first two have 257 and 300
  /// ranks.
  void large_job(const AlgorithmInfo& algorithm, uint32_t draw) {
    constexpr uint32_t kSizes[] = {257, 300};
    const auto below = [&](size_t limit) { return static_cast<uint32_t>(dice_() % limit); };
    uint32_t ranks = draw < std::size(kSizes) ? kSizes[draw] : 18 + below(283);
    if (algorithm.has(kPowerOfTwoRanks)) ranks = std::bit_floor(ranks);
    if (!cases::fits(algorithm, ranks)) return;
    const auto shapes = cases::shapes(algorithm, ranks);
    const Shape& shape = shapes[below(shapes.size())];
    const uint32_t root = has_root(algorithm.collective) ? below(ranks) : 0;
    const std::vector<Parameters> variants = cases::parameter_variants(algorithm, kElementBytes);
    const Parameters& parameters = variants[below(variants.size())];
    const bool in_place = below(2) == 1;
    describe(algorithm, shape, root, parameters, kElementBytes);
    std::vector<Call> calls = calls_of(algorithm, ranks, cases::call_for(algorithm, kElementBytes, root));
    std::swap(calls[0], calls[below(calls.size())]);
    calls.resize(1);
    const std::vector<cases::Mix> mixes =
        cases::mixes(ranks, (1 + below(20)) * uint64_t{kElementBytes}, static_cast<uint16_t>(below(3)), ++seed_);
    const cases::Mix& mix = mixes[below(mixes.size())];
    judge(lower_job(cases::job(algorithm, shape, root, parameters, in_place), mix.pairs), calls, {in_place},
          [&](const Call& call) { return details(call, mix.name); });
  }

  void describe(const AlgorithmInfo& algorithm, const Shape& shape, uint32_t root, const Parameters& parameters,
                uint32_t element_bytes) {
    where_ = fmt::format("{} {} of {} ranks ({}), root {}, parameters {}, elements of {} bytes", name(algorithm.collective),
                         algorithm.name, shape.size, cases::text(shape), root, cases::text(parameters), element_bytes);
  }

  void one_root(const AlgorithmInfo& algorithm, const Shape& shape, uint32_t root) {
    nested_ = !shape.group_of.empty();
    for (const uint32_t element_bytes : extent_.element_bytes) {
      for (const Parameters& parameters : cases::parameter_variants(algorithm, element_bytes)) {
        const std::vector<Schedule> job = cases::job(algorithm, shape, root, parameters, false);
        const std::vector<Schedule> job_in_place = cases::job(algorithm, shape, root, parameters, true);
        describe(algorithm, shape, root, parameters, element_bytes);
        for (const Schedule& schedule : job) expect(check(schedule), "");
        for (const Schedule& schedule : job_in_place) expect(check(schedule), "");
        const Call call = cases::call_for(algorithm, element_bytes, root);
        const std::vector<Call> calls = calls_of(algorithm, shape.size, call);
        one_job(job, calls, false, job != job_in_place);
        if (job != job_in_place) one_job(job_in_place, calls, true, true);
      }
    }
  }

  /// Equal blocks, or a vector, of several lengths; then blocks of different ones.
  std::vector<Call> calls_of(const AlgorithmInfo& algorithm, uint32_t ranks, Call call) {
    std::vector<Call> calls;
    for (const uint64_t count : cases::counts(algorithm, ranks)) {
      call.count = count;
      calls.push_back(call);
    }
    for (std::vector<uint64_t>& counts : cases::uneven_counts(algorithm, ranks, ++seed_)) {
      call.counts = std::move(counts);
      calls.push_back(call);
    }
    return calls;
  }

  /// Out of place and in place, but for `only` the one.
  void one_job(const std::vector<Schedule>& job, const std::vector<Call>& calls, bool in_place, bool only) {
    const auto ranks = static_cast<uint32_t>(job.size());
    const uint32_t element_bytes = calls.front().element_bytes;
    const uint64_t all = extent_.segment_elements.size() * (extent_.max_prefetch + 1u);
    const uint64_t turn = ++turn_ % all;
    uint64_t number = 0;
    for (const uint64_t elements : extent_.segment_elements) {
      for (uint16_t prefetch = 0; prefetch <= extent_.max_prefetch; ++prefetch) {
        if (number++ != turn && (nested_ || ranks >= extent_.thin_from)) continue;
        for (const cases::Mix& mix : cases::mixes(ranks, elements * element_bytes, prefetch, ++seed_)) {
          const std::vector<bool> places = only ? std::vector<bool>{in_place} : std::vector<bool>{false, true};
          judge(lower_job(job, mix.pairs), calls, places, [&](const Call& call) {
            return details(call, fmt::format("{}, segments of {} elements, prefetch {}", mix.name, elements, prefetch));
          });
        }
      }
    }
  }

  template <class Details>
  void judge(const std::vector<Program>& programs, const std::vector<Call>& calls, const std::vector<bool>& places,
             Details details) {
    Verifier verifier(programs);
    for (Call call : calls) {
      for (const bool in_place : places) {
        call.in_place = in_place;
        ++verified_;
        const Status status = verifier.judge(call);
        if (!status.ok()) expect(status, details(call));
      }
    }
  }

  static std::string details(const Call& call, std::string_view mix) {
    std::string text = fmt::format("; {}, count {}", mix, call.count);
    for (const uint64_t count : call.counts) text += fmt::format(" {}", count);
    return call.in_place ? text + ", in place" : text;
  }

  void expect(const Status& status, std::string_view details) {
    constexpr uint64_t kShown = 20;
    if (status.ok() || ++failed_ > kShown) return;
    fmt::print("FAILED {}{}: {}\n", where_, details, status.message());
  }

  static constexpr uint32_t kElementBytes = 4;  ///< of large jobs

  const Extent& extent_;
  const std::string_view only_;
  std::mt19937_64 dice_{20};
  std::string where_;
  bool nested_ = false;
  uint64_t turn_ = 0;
  uint64_t seed_ = 0;
  uint64_t verified_ = 0;
  uint64_t failed_ = 0;
};

std::vector<uint32_t> ranks_to(uint32_t last, std::vector<uint32_t> more) {
  std::vector<uint32_t> ranks;
  for (uint32_t n = 1; n <= last; ++n) ranks.push_back(n);
  ranks.insert(ranks.end(), more.begin(), more.end());
  return ranks;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  using tutti::ranks_to;
  std::string_view extent;
  std::string_view only;
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    if (argument == "--long" || argument == "--sample") {
      extent = argument;
    } else if (argument == "--only" && n + 1 < argc) {
      only = argv[++n];
    } else {
      fmt::print(stderr, "usage: {} [--long|--sample] [--only COLLECTIVE[:ALGORITHM]]\n", argv[0]);
      return 2;
    }
  }
  const tutti::Extent brief = {ranks_to(17, {}), {4}, {2, 1000}, 2, 7, 3};
  const tutti::Extent full = {ranks_to(20, {31, 32, 33, 63, 64, 65}), {1, 2, 4, 8}, {1, 2, 3, 1000}, 3, UINT32_MAX, 60};
  const tutti::Extent sample = {ranks_to(5, {}), {4}, {2, 1000}, 2, 3, 0};
  return tutti::Run(extent == "--long" ? full : extent == "--sample" ? sample : brief, only).all() ? 0 : 1;
}
