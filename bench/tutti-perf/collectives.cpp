// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

constexpr bool kReduces = true, kRooted = true, kInPlace = true, kBlocks = true, kVarying = true, kMessage = true, kNo = false;

std::string_view load_text(BusLoad load) {
  switch (load) {
    case BusLoad::twice_less_own:
      return "2(p-1)/p";
    case BusLoad::less_own:
      return "(p-1)/p";
    case BusLoad::once:
      return "1";
    case BusLoad::none:
      break;
  }
  return "-";
}

}  // namespace

const std::vector<Traits>& all_collectives() {
  using C = Collective;
  static const std::vector<Traits> table = {
      {C::allreduce, "allreduce", "the vector", BusLoad::twice_less_own, kReduces, kNo, kInPlace, kNo, kNo, kNo},
      {C::reduce, "reduce", "the vector", BusLoad::once, kReduces, kRooted, kInPlace, kNo, kNo, kNo},
      {C::broadcast, "broadcast", "the vector", BusLoad::once, kNo, kRooted, kNo, kNo, kNo, kNo},
      {C::allgather, "allgather", "all blocks", BusLoad::less_own, kNo, kNo, kInPlace, kBlocks, kNo, kNo},
      {C::allgatherv, "allgatherv", "all blocks", BusLoad::less_own, kNo, kNo, kInPlace, kBlocks, kVarying, kNo},
      {C::gather, "gather", "all blocks", BusLoad::less_own, kNo, kRooted, kInPlace, kBlocks, kNo, kNo},
      {C::gatherv, "gatherv", "all blocks", BusLoad::less_own, kNo, kRooted, kInPlace, kBlocks, kVarying, kNo},
      {C::scatter, "scatter", "all blocks", BusLoad::less_own, kNo, kRooted, kInPlace, kBlocks, kNo, kNo},
      {C::scatterv, "scatterv", "all blocks", BusLoad::less_own, kNo, kRooted, kInPlace, kBlocks, kVarying, kNo},
      {C::reduce_scatter, "reduce_scatter", "all blocks", BusLoad::less_own, kReduces, kNo, kInPlace, kBlocks, kNo, kNo},
      {C::reduce_scatterv, "reduce_scatterv", "all blocks", BusLoad::less_own, kReduces, kNo, kInPlace, kBlocks, kVarying, kNo},
      {C::alltoall, "alltoall", "all blocks of a rank", BusLoad::less_own, kNo, kNo, kInPlace, kBlocks, kNo, kNo},
      {C::alltoallv, "alltoallv", "all blocks of a rank", BusLoad::less_own, kNo, kNo, kInPlace, kBlocks, kVarying, kNo},
      {C::alltoallw, "alltoallw", "all blocks of a rank", BusLoad::less_own, kNo, kNo, kInPlace, kBlocks, kVarying, kNo},
      {C::scan, "scan", "the vector", BusLoad::once, kReduces, kNo, kInPlace, kNo, kNo, kNo},
      {C::exscan, "exscan", "the vector", BusLoad::once, kReduces, kNo, kInPlace, kNo, kNo, kNo},
      {C::barrier, "barrier", "-", BusLoad::none, kNo, kNo, kNo, kNo, kNo, kNo},
      {C::sendrecv, "sendrecv", "a message", BusLoad::once, kNo, kNo, kNo, kNo, kNo, kMessage},
      {C::pingpong, "pingpong", "a message", BusLoad::once, kNo, kNo, kNo, kNo, kNo, kMessage},
      {C::message_rate, "message_rate", "a message", BusLoad::once, kNo, kNo, kNo, kNo, kNo, kMessage},
  };
  return table;
}

const Traits& traits(Collective collective) { return all_collectives().at(static_cast<size_t>(collective)); }

std::string_view name(Collective collective) { return traits(collective).name; }

std::vector<Collective> parse_collectives(const std::vector<std::string>& words) {
  std::vector<std::string_view> known;
  for (const Traits& one : all_collectives()) known.push_back(one.name);
  std::vector<Collective> collectives;
  for (const std::string& word : words) {
    if (word == "all") {
      if (words.size() != 1) throw UsageError("all stands for every collective: name no other beside it");
      for (const Traits& one : all_collectives()) collectives.push_back(one.collective);
      return collectives;
    }
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end()) throw UsageError(fmt::format("'{}' is no collective; known are {}, all", word, join(known)));
    collectives.push_back(all_collectives()[static_cast<size_t>(found - known.begin())].collective);
  }
  if (collectives.empty()) throw UsageError(fmt::format("name a collective: {}, or all", join(known)));
  return collectives;
}

std::string list_collectives() {
  std::string text = fmt::format("{:<16} {:<21} {:<9} {:<10} {:<5} {:<9} {}\n", "collective", "size is that of", "busbw/",
                                 "operation", "root", "in place", "--counts");
  text += fmt::format("{:<16} {:<21} {:<9}\n", "", "", "algbw");
  const auto word = [](bool value) { return value ? "yes" : "-"; };
  for (const Traits& one : all_collectives()) {
    text += fmt::format("{:<16} {:<21} {:<9} {:<10} {:<5} {:<9} {}\n", one.name, one.size_is, load_text(one.load),
                        word(one.reduces), word(one.rooted), word(one.in_place), word(one.varying));
  }
  return text;
}

double bus_factor(Collective collective, uint32_t rank_count) {
  const double others = (rank_count - 1.0) / rank_count;
  switch (traits(collective).load) {
    case BusLoad::twice_less_own:
      return 2 * others;
    case BusLoad::less_own:
      return others;
    case BusLoad::once:
      return 1;
    case BusLoad::none:
      break;
  }
  return 0;
}

}  // namespace tutti_perf
