// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// What lies behind a collective: the algorithms, the choice among them, and the schedule that comes out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/types.hpp"
#include "pages.hpp"
#include "schedule/print.hpp"
#include "schedule/verify.hpp"
#include "select/select.hpp"

namespace tutti::info {
namespace {

constexpr uint32_t kMaxRanks = 100'000;
constexpr uint32_t kMaxRanksPrinted = 16;   // without --rank
constexpr uint32_t kMaxRanksVerified = 64;  // the verifier's work grows with the square
constexpr uint64_t kSlotBytes = 65536;      // the default of the setting shm_slot_bytes

CostModel prices_for(const SelectRequest& request) {
  std::vector<uint32_t> node_of(request.rank_count, 0);
  if (!request.one_node) std::iota(node_of.begin(), node_of.end(), 0u);
  const double ranks = request.one_node ? request.rank_count : 1;
  return cost_model(node_of, request.one_node, request.cpu_count == 0 ? INFINITY : request.cpu_count / ranks);
}

Result<std::vector<SelectionRow>> table_for(const SelectRequest& request) {
  if (request.rank_count == 0 || request.rank_count > kMaxRanks) {
    return error(TUTTI_ERR_ARGUMENT, "--ranks: {} is not from 1 to {}", request.rank_count, kMaxRanks);
  }
  return selection_table(request.collective, Shape::flat(request.rank_count), request.algorithm, prices_for(request));
}

std::string network_text(const SelectRequest& request) { return request.one_node ? "all ranks on one node" : "one rank a node"; }

struct Job {
  const AlgorithmInfo* algorithm;
  Parameters parameters;
  std::vector<Schedule> schedules;  // of the ranks wanted
};

Schedule build_one(const Job& job, const ScheduleRequest& request, uint32_t rank) {
  PlanRequest plan;
  plan.shape = Shape::flat(request.select.rank_count);
  plan.rank = rank;
  plan.root = request.root;
  plan.in_place = request.in_place;
  plan.parameters = job.parameters;
  return job.algorithm->build(plan);
}

void build_all(Job& job, const ScheduleRequest& request) {
  for (uint32_t rank = 0; rank < request.select.rank_count; ++rank) job.schedules.push_back(build_one(job, request, rank));
}

Status check_request(const ScheduleRequest& request) {
  const uint32_t ranks = request.select.rank_count;
  if (request.root >= ranks) return error(TUTTI_ERR_RANK, "--root: there are ranks 0 to {}", ranks - 1);
  if (request.rank && *request.rank >= ranks) return error(TUTTI_ERR_RANK, "--rank: there are ranks 0 to {}", ranks - 1);
  if (request.dot && request.lowering != Lowering::none)
    return error(TUTTI_ERR_ARGUMENT, "--dot shows schedules: drop --lowered");
  if (request.dot && request.rank) return error(TUTTI_ERR_ARGUMENT, "--dot shows all ranks: drop --rank");
  if (request.verify && ranks > kMaxRanksVerified) {
    return error(TUTTI_ERR_ARGUMENT, "--verify: at most {} ranks, not {}", kMaxRanksVerified, ranks);
  }
  if ((request.dot || !request.rank) && ranks > kMaxRanksPrinted) {
    return error(TUTTI_ERR_ARGUMENT, "{} ranks are too many to print at once (at most {}): choose one with --rank", ranks,
                 kMaxRanksPrinted);
  }
  return Status();
}

std::string print_rank(const ScheduleRequest& request, const Schedule& schedule) {
  if (request.lowering == Lowering::none) return print_text(schedule);
  const Carrier carrier = request.lowering == Lowering::slots ? Carrier::slots : Carrier::messages;
  return print_text(lower(schedule, uniform_pairs(schedule.size, carrier, kSlotBytes, 1)[schedule.rank]));
}

Result<std::string> verdict_of(const ScheduleRequest& request, const Job& job) {
  Call call;
  call.element_bytes = 4;
  // A few elements a rank: the verifier follows each one. More of them would only repeat what these do.
  call.count = std::min<uint64_t>(request.bytes / call.element_bytes, uint64_t{request.select.rank_count} * 3 + 1);
  call.root = request.root;
  call.in_place = request.in_place;
  call.rank_ordered = job.algorithm->has(kRankOrdered);
  if (const Status verdict = verify(job.schedules, call); !verdict.ok()) return verdict;
  return fmt::format("verified: right for {} elements, lowered to messages, slots and mixed pairs\n", call.count);
}

}  // namespace

Result<std::string> select_page(const SelectRequest& request) {
  const auto table = table_for(request);
  if (!table.ok()) return table.status();
  std::string text =
      fmt::format("{}, {} ranks, {}\n", std::string(name(request.collective)), request.rank_count, network_text(request));
  for (const SelectionRow& row : *table) {
    const std::string limit = row.up_to_bytes == UINT64_MAX ? "any size" : "up to " + format_bytes(row.up_to_bytes);
    const Choice& choice = row.choice;
    text += fmt::format("  {:<14} {}\n      {}\n", limit, describe(*choice.algorithm, choice.parameters), choice.reason);
  }
  return text;
}

Result<std::string> schedule_page(const ScheduleRequest& request) {
  const auto table = table_for(request.select);
  if (!table.ok()) return table.status();
  TUTTI_TRY(check_request(request));
  const Choice& choice = select(*table, request.bytes).choice;
  Job job{choice.algorithm, choice.parameters, {}};
  if (request.verify || request.dot || !request.rank) {
    build_all(job, request);
  }
  if (request.dot) return print_dot(job.schedules);
  const CostModel model = prices_for(request.select);
  const double cost_ns =
      choice.algorithm->cost_ns(Shape::flat(request.select.rank_count), request.bytes, choice.parameters, model);
  std::string text =
      fmt::format("{} of {} on {} ranks: {}\n  why: {}\n  predicted, {}: {}\n", std::string(name(request.select.collective)),
                  format_bytes(request.bytes), request.select.rank_count, describe(*choice.algorithm, choice.parameters),
                  choice.reason, network_text(request.select), fmt::format("{:.1f} us", cost_ns / 1000));
  if (request.verify) {
    Result<std::string> verdict = verdict_of(request, job);
    if (!verdict.ok()) return verdict.status();
    text += *verdict;
  }
  if (request.rank) return text + print_rank(request, build_one(job, request, *request.rank));
  for (const Schedule& schedule : job.schedules) text += print_rank(request, schedule);
  return text;
}

}  // namespace tutti::info
