// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "pages.hpp"
#include "schedule/collective.hpp"
#include "schedule/verify.hpp"
#include "select/select.hpp"

namespace tutti::simulator {
namespace {

struct Tally {
  const AlgorithmInfo* algorithm;
  std::vector<uint32_t> ranks;
  uint64_t calls = 0;
};

bool fits(const AlgorithmInfo& algorithm, uint32_t ranks) {
  return ranks >= algorithm.min_ranks && ranks <= algorithm.max_ranks &&
         (!algorithm.has(kPowerOfTwoRanks) || std::has_single_bit(ranks));
}

std::set<uint64_t> counts_for(const AlgorithmInfo& algorithm, uint32_t ranks) {
  if (algorithm.collective == Collective::barrier) return {0};
  if (has_blocks(algorithm.collective)) return {0, 1, 3};
  return {0, 1, ranks - 1u, ranks, ranks + 1u, 2 * ranks + 3u};
}

std::set<uint32_t> roots_for(const AlgorithmInfo& algorithm, uint32_t ranks) {
  if (!has_root(algorithm.collective)) return {0};
  return {0, ranks / 2, ranks - 1};
}

/// Flat; and for algorithms that look at it, two and three ranks a node.
std::vector<Shape> shapes_for(const AlgorithmInfo& algorithm, uint32_t ranks) {
  std::vector<Shape> shapes = {Shape::flat(ranks)};
  for (const uint32_t node_size : {2u, 3u}) {
    if (!algorithm.has(kNested) || ranks <= node_size) continue;
    std::vector<uint32_t> node_of(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) node_of[rank] = rank / node_size;
    shapes.push_back({ranks, {std::move(node_of)}});
  }
  const auto unfit = [&](const Shape& shape) { return algorithm.fits != nullptr && !algorithm.fits(shape); };
  shapes.erase(std::remove_if(shapes.begin(), shapes.end(), unfit), shapes.end());
  return shapes;
}

/// Short chunks, so that a few elements already fill a pipeline; all else at its default.
Parameters parameters_for(const AlgorithmInfo& algorithm) {
  Parameters parameters;
  for (const ParameterInfo& info : algorithm.parameters) {
    parameters.push_back(info.bytes ? std::max<uint64_t>(info.min, 8) : info.default_value);
  }
  return parameters;
}

/// All lengths that one job is judged with.
Status verify_job(Tally& tally, PlanRequest plan) {
  const AlgorithmInfo& algorithm = *tally.algorithm;
  const uint32_t ranks = plan.shape.size;
  std::vector<Schedule> job;
  for (plan.rank = 0; plan.rank < ranks; ++plan.rank) job.push_back(algorithm.build(plan));
  for (const uint64_t count : counts_for(algorithm, ranks)) {
    Call call;
    call.count = count;
    call.root = plan.root;
    call.in_place = plan.in_place;
    call.rank_ordered = algorithm.has(kRankOrdered);
    call.canonical = algorithm.has(kCanonical);
    const Status verdict = verify(job, call);
    if (!verdict.ok()) {
      return verdict.with_context(fmt::format("{} {}, {} ranks{}, root {}, {} elements{}", name(algorithm.collective),
                                              algorithm.name, ranks, plan.shape.group_of.empty() ? "" : " on nodes of 3",
                                              plan.root, count, plan.in_place ? ", in place" : ""));
    }
    ++tally.calls;
  }
  return Status();
}

Status verify_ranks(Tally& tally, uint32_t ranks) {
  const AlgorithmInfo& algorithm = *tally.algorithm;
  PlanRequest plan;
  plan.parameters = parameters_for(algorithm);
  for (const Shape& shape : shapes_for(algorithm, ranks)) {
    for (const uint32_t root : roots_for(algorithm, ranks)) {
      for (const bool in_place : {false, true}) {
        if (in_place && !may_alias(algorithm.collective)) continue;
        plan.shape = shape;
        plan.root = root;
        plan.in_place = in_place;
        TUTTI_TRY(verify_job(tally, plan));
      }
    }
  }
  tally.ranks.push_back(ranks);
  return Status();
}

std::string report(const std::vector<Tally>& tallies, bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const Tally& tally : tallies) {
    const std::string collective(name(tally.algorithm->collective));
    const std::string algorithm(tally.algorithm->name);
    list.push_back({{"collective", collective}, {"algorithm", algorithm}, {"ranks", tally.ranks}, {"calls", tally.calls}});
    text += fmt::format("{:<14} {:<24} right: {} calls of {} numbers of ranks, {} to {}\n", collective, algorithm, tally.calls,
                        tally.ranks.size(), tally.ranks.front(), tally.ranks.back());
  }
  return json ? list.dump(2) + "\n" : text;
}

}  // namespace

Result<std::string> verify_page(const VerifyQuestion& question, const Progress& progress) {
  std::vector<Tally> tallies;
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    const std::vector<Collective>& wanted = question.collectives;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), algorithm->collective) == wanted.end()) continue;
    if (!question.algorithm.empty() && algorithm->name != question.algorithm) continue;
    Tally tally{algorithm, {}};
    for (const uint32_t ranks : question.ranks) {
      if (!fits(*algorithm, ranks)) continue;
      progress(fmt::format("{} {}, {} ranks", name(algorithm->collective), algorithm->name, ranks));
      TUTTI_TRY(verify_ranks(tally, ranks));
    }
    if (!tally.ranks.empty()) tallies.push_back(std::move(tally));
  }
  if (tallies.empty()) return error(TUTTI_ERR_ARGUMENT, "no algorithm fits that question: see tutti-info algorithms");
  return report(tallies, question.json);
}

}  // namespace tutti::simulator
