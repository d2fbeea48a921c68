// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

bool exists(Collective collective, tutti_dtype_t dtype, tutti_op_t op) {
  const bool prefix = collective == Collective::scan || collective == Collective::exscan;
  return defined(dtype, op) && !(prefix && op == TUTTI_AVG);
}

std::string operations_of(Collective collective, tutti_dtype_t dtype) {
  std::vector<std::string_view> names;
  for (const OpInfo& op : all_ops()) {
    if (exists(collective, dtype, op.op)) names.push_back(op.name);
  }
  return join(names);
}

/// One for each root, where there are roots.
void add_roots(const Options& options, uint32_t rank_count, Series series, std::vector<Series>& all) {
  const bool rooted = traits(series.collective).rooted;
  series.rotate = rooted && options.roots == Roots::rotate;
  series.root = rooted && options.roots == Roots::one ? options.root : 0;
  const uint32_t roots = rooted && options.roots == Roots::each ? rank_count : 1;
  for (uint32_t more = 0; more < roots; ++more, ++series.root) all.push_back(series);
}

}  // namespace

std::string obstacle(const Options& options, Collective collective) {
  const Traits& what = traits(collective);
  if (what.message && options.mode == Mode::persistent) return "--mode persistent is for collectives";
  if (what.message && options.mode == Mode::group) return "groups are of collectives";
  if (what.message && options.overlap) return "--overlap is for collectives";
  const bool is_rate = collective == Collective::message_rate;
  if (options.outstanding > 1 && !is_rate) {
    if (collective == Collective::pingpong) return "--outstanding: a pingpong has one message at a time";
    if (options.mode == Mode::blocking) return "--outstanding needs --mode nonblocking, persistent or group";
  }
  if (options.counts.spread != Spread::even && !what.varying) {
    return "--counts is for allgatherv, gatherv, scatterv, reduce_scatterv, alltoallv and alltoallw";
  }
  return "";
}

std::vector<Series> series_of(const Options& options, Collective collective, uint32_t rank_count) {
  if (collective == Collective::barrier) return {{collective, TUTTI_UINT8, TUTTI_SUM, 0, false}};
  std::vector<Series> all;
  if (!traits(collective).reduces) {
    for (const tutti_dtype_t dtype : options.dtypes)
      add_roots(options, rank_count, {collective, dtype, TUTTI_SUM, 0, false}, all);
    return all;
  }
  const bool may_leave_out = options.every_dtype || options.every_op || options.summary;
  for (const tutti_dtype_t dtype : options.dtypes) {
    for (const tutti_op_t op : options.ops) {
      if (exists(collective, dtype, op)) {
        add_roots(options, rank_count, {collective, dtype, op, 0, false}, all);
      } else if (!may_leave_out) {
        throw UsageError(fmt::format("{}: {} is not defined for {}; defined are {}", name(collective), op_name(op),
                                     info(dtype).name, operations_of(collective, dtype)));
      }
    }
  }
  return all;
}

std::vector<Workload> work_of(const Options& options, const Series& series, uint32_t rank_count, uint64_t* left_out) {
  *left_out = 0;
  const Traits& what = traits(series.collective);
  if (series.collective == Collective::barrier) return {{{0}, 1, false}};
  const uint32_t element_bytes = info(series.dtype).size_bytes;
  const uint32_t multiple = what.blocks ? rank_count : 1;
  if (options.model == nullptr) return workloads_of_sweep(options.sweep, element_bytes, multiple);
  const uint64_t max_bytes = options.end_given ? options.sweep.end_bytes : UINT64_MAX;
  std::vector<Workload> work = workloads_of_model(*options.model, element_bytes, max_bytes, left_out);
  // All tensors in a row pass through one vector; blocks, and messages to and fro, do not.
  const bool in_a_row = !what.blocks && (!what.message || series.collective == Collective::sendrecv);
  if (!work.empty() && !in_a_row) work.pop_back();
  for (Workload& one : work) {
    for (uint64_t& count : one.counts) count = (count + multiple - 1) / multiple * multiple;
  }
  return work;
}

uint32_t batch_of(const Options& options, Collective collective) {
  return collective == Collective::message_rate ? 1 : std::max(options.outstanding, 1u);
}

uint64_t cycle_of(const Options& options, const Series& series, uint64_t calls_of_iteration, uint32_t rank_count) {
  constexpr uint64_t kMost = 1 << 16;
  const uint64_t roots = series.rotate ? rank_count : 1;
  // The calls of a group are of one communicator.
  const uint64_t cycle = options.mode == Mode::group
                             ? std::lcm(calls_of_iteration * options.communicators, roots)
                             : std::lcm(std::lcm(calls_of_iteration, uint64_t{options.communicators}), roots);
  if (cycle <= kMost) return cycle;
  throw UsageError(
      fmt::format("{}: {} calls of an iteration, {} communicators and {} roots make {} different calls; {} are the "
                  "most: make one of them smaller, or a divisor of another",
                  name(series.collective), calls_of_iteration, options.communicators, roots, cycle, kMost));
}

uint64_t window_of(const Options& options, uint64_t message_bytes) {
  if (options.outstanding != 0) return options.outstanding;
  return std::clamp<uint64_t>(kWindowBytes / std::max<uint64_t>(message_bytes, 1), 1, kDefaultWindow);
}

}  // namespace tutti_perf
