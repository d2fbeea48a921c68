// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <fmt/format.h>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

/// To the next rank and from the one before, at the same time.
tutti_status_t send_and_receive(const Member& member, const Call& call, const void* send, void* recv, uint64_t count) {
  const auto next = static_cast<int>((member.rank + 1) % member.size);
  const auto previous = static_cast<int>((member.rank + member.size - 1) % member.size);
  tutti_request_t request = nullptr;
  const tutti_status_t posted = tutti_irecv(member.comm, recv, count, call.dtype, previous, 0, &request);
  if (posted != TUTTI_OK) return posted;
  const tutti_status_t sent = tutti_send(member.comm, send, count, call.dtype, next, 0);
  if (sent != TUTTI_OK) {
    const std::string message = tutti_last_error();
    tutti_comm_abort(member.comm);  // else the receive, which has our buffer, might wait for ever
    tutti_wait(&request);
    throw RunError(fmt::format("{}: {}: {}", describe(call, count), tutti_status_string(sent), message));
  }
  return tutti_wait(&request);
}

}  // namespace

std::string describe(const Call& call, uint64_t count) {
  switch (call.collective) {
    case Collective::allreduce:
      return fmt::format("allreduce of {} {}, {}", count, info(call.dtype).name, op_name(call.op));
    case Collective::barrier:
      return "barrier";
    default:
      return fmt::format("{} of {} {}", name(call.collective), count, info(call.dtype).name);
  }
}

void make_call(const Member& member, const Call& call, void* send, void* recv, uint64_t offset, uint64_t count) {
  const uint64_t offset_bytes = offset * call.element_bytes;
  auto* const from = static_cast<std::byte*>(send) + offset_bytes;
  auto* const to = static_cast<std::byte*>(recv) + offset_bytes;
  tutti_status_t status = TUTTI_OK;
  switch (call.collective) {
    case Collective::allreduce:
      status = tutti_allreduce(member.comm, from, to, count, call.dtype, call.op);
      break;
    case Collective::broadcast:
      status = tutti_broadcast(member.comm, to, count, call.dtype, static_cast<int>(call.root));
      break;
    case Collective::barrier:
      status = tutti_barrier(member.comm);
      break;
    case Collective::sendrecv:
      status = send_and_receive(member, call, from, to, count);
      break;
  }
  if (status != TUTTI_OK) require(status, describe(call, count));
}

}  // namespace tutti_perf
