// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/names.hpp"

#include "base/nearest.hpp"

namespace tutti {

std::string_view name(Collective collective) noexcept {
  switch (collective) {
    case Collective::allreduce:
      return "allreduce";
    case Collective::reduce:
      return "reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::allgather:
      return "allgather";
    case Collective::gather:
      return "gather";
    case Collective::scatter:
      return "scatter";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::alltoall:
      return "alltoall";
    case Collective::scan:
      return "scan";
    case Collective::exscan:
      return "exscan";
    case Collective::barrier:
      return "barrier";
  }
  return "unknown";
}

Result<Collective> parse_collective(std::string_view text) {
  std::vector<std::string_view> known;
  for (uint32_t c = 0; c < kCollectiveCount; ++c) {
    known.push_back(name(static_cast<Collective>(c)));
    if (known.back() == text) return static_cast<Collective>(c);
  }
  return error(TUTTI_ERR_ARGUMENT, "there is no collective '{}'; {}", text, hint(text, known));
}

std::string_view name(BufferId buffer) noexcept {
  switch (buffer) {
    case BufferId::input:
      return "input";
    case BufferId::output:
      return "output";
    case BufferId::scratch:
      return "scratch";
    case BufferId::scratch_b:
      return "scratch_b";
    case BufferId::scratch_c:
      return "scratch_c";
  }
  return "unknown";
}

std::string_view name(Carrier carrier) noexcept { return carrier == Carrier::slots ? "slots" : "messages"; }

std::string_view name(Verb verb) noexcept {
  switch (verb) {
    case Verb::fold:
      return "fold";
    case Verb::post_send:
      return "post_send";
    case Verb::await_sent:
      return "await_sent";
    case Verb::post_recv:
      return "post_recv";
    case Verb::await_received:
      return "await_received";
    case Verb::drain_sent:
      return "drain_sent";
  }
  return "unknown";
}

}  // namespace tutti
