// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

/// The three forms of a collective, which differ in their last argument alone.
template <class... Arguments>
tutti_status_t in_form(Mode mode, tutti_comm_t comm, tutti_request_t* request,
                       tutti_status_t (*blocking)(tutti_comm_t, Arguments...),
                       std::type_identity_t<tutti_status_t (*)(tutti_comm_t, Arguments..., tutti_request_t*)> nonblocking,
                       std::type_identity_t<tutti_status_t (*)(tutti_comm_t, Arguments..., tutti_request_t*)> persistent,
                       std::type_identity_t<Arguments>... arguments) {
  switch (mode) {
    case Mode::nonblocking:
      return nonblocking(comm, arguments..., request);
    case Mode::persistent:
    case Mode::group:  // is made of persistent calls
      return persistent(comm, arguments..., request);
    case Mode::blocking:
      break;
  }
  return blocking(comm, arguments...);
}

/// A function's three forms as arguments.
#define TUTTI_FORMS(name) tutti_##name, tutti_i##name, tutti_##name##_init

bool is_scatter(Collective collective) { return collective == Collective::scatter || collective == Collective::scatterv; }

constexpr int kTag = 0;

}  // namespace

std::string describe(const Call& call, uint64_t count) {
  if (call.collective == Collective::barrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", name(call.collective), count, info(call.dtype).name);
  if (traits(call.collective).reduces) text += fmt::format(", {}", op_name(call.op));
  return text;
}

uint32_t requests_of(const Call& call) { return call.collective == Collective::sendrecv ? 2 : 1; }

Step::Step(const Call& call, const Layout& layout, const Target& target)
    : call_(call), layout_(&layout), target_(target), from_(target.send), to_(target.recv) {
  const bool here = !traits(call.collective).rooted || call.rank == target.root;
  if (target.in_place && here) {
    if (is_scatter(call.collective)) {
      to_ = TUTTI_IN_PLACE;
    } else {
      from_ = TUTTI_IN_PLACE;
    }
  }
  if (call.collective == Collective::alltoallw) {
    types_.assign(call.rank_count, call.dtype);
    for (const uint64_t place : layout.send.places) send_places_bytes_.push_back(place * call.element_bytes);
    for (const uint64_t place : layout.recv.places) recv_places_bytes_.push_back(place * call.element_bytes);
  }
  if (call.collective == Collective::message_rate) window_.resize(call.window);
}

tutti_status_t Step::issue(tutti_request_t* requests) {
  if (traits(call_.collective).message) return message(requests);
  return form(call_.mode, requests);
}

tutti_status_t Step::create(tutti_request_t* request) { return form(Mode::persistent, request); }

tutti_status_t Step::form(Mode mode, tutti_request_t* request) {
  const tutti_comm_t comm = target_.comm;
  const int root = static_cast<int>(target_.root);
  const uint64_t count = layout_->count;
  const tutti_dtype_t type = call_.dtype;
  const tutti_op_t op = call_.library_op;
  switch (call_.collective) {
    case Collective::allreduce:
      return in_form(mode, comm, request, TUTTI_FORMS(allreduce), from_, to_, count, type, op);
    case Collective::reduce:
      return in_form(mode, comm, request, TUTTI_FORMS(reduce), from_, to_, count, type, op, root);
    case Collective::broadcast:
      return in_form(mode, comm, request, TUTTI_FORMS(broadcast), to_, count, type, root);
    case Collective::allgather:
      return in_form(mode, comm, request, TUTTI_FORMS(allgather), from_, to_, count, type);
    case Collective::gather:
      return in_form(mode, comm, request, TUTTI_FORMS(gather), from_, to_, count, type, root);
    case Collective::scatter:
      return in_form(mode, comm, request, TUTTI_FORMS(scatter), from_, to_, count, type, root);
    case Collective::reduce_scatter:
      return in_form(mode, comm, request, TUTTI_FORMS(reduce_scatter), from_, to_, count, type, op);
    case Collective::scan:
      return in_form(mode, comm, request, TUTTI_FORMS(scan), from_, to_, count, type, op);
    case Collective::exscan:
      return in_form(mode, comm, request, TUTTI_FORMS(exscan), from_, to_, count, type, op);
    case Collective::barrier:
      return in_form(mode, comm, request, TUTTI_FORMS(barrier));
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return alltoall_form(mode, request);
    default:
      return vector_form(mode, request);
  }
}

tutti_status_t Step::vector_form(Mode mode, tutti_request_t* request) {
  const tutti_comm_t comm = target_.comm;
  const int root = static_cast<int>(target_.root);
  const uint64_t* const counts = layout_->recv.counts.data();
  const uint64_t* const places = layout_->recv.places.data();
  const uint64_t own = counts[call_.rank];
  const tutti_dtype_t type = call_.dtype;
  switch (call_.collective) {
    case Collective::allgatherv:
      return in_form(mode, comm, request, TUTTI_FORMS(allgatherv), from_, to_, counts, places, type);
    case Collective::gatherv:
      return in_form(mode, comm, request, TUTTI_FORMS(gatherv), from_, own, to_, counts, places, type, root);
    case Collective::scatterv:
      return in_form(mode, comm, request, TUTTI_FORMS(scatterv), from_, counts, places, to_, own, type, root);
    default:
      return in_form(mode, comm, request, TUTTI_FORMS(reduce_scatterv), from_, to_, counts, type, call_.library_op);
  }
}

tutti_status_t Step::alltoall_form(Mode mode, tutti_request_t* request) {
  const tutti_comm_t comm = target_.comm;
  const Blocks& send = layout_->send;
  const Blocks& recv = layout_->recv;
  switch (call_.collective) {
    case Collective::alltoall:
      return in_form(mode, comm, request, TUTTI_FORMS(alltoall), from_, to_, layout_->count, call_.dtype);
    case Collective::alltoallv:
      return in_form(mode, comm, request, TUTTI_FORMS(alltoallv), from_, send.counts.data(), send.places.data(), to_,
                     recv.counts.data(), recv.places.data(), call_.dtype);
    default:
      return in_form(mode, comm, request, TUTTI_FORMS(alltoallw), from_, send.counts.data(), send_places_bytes_.data(),
                     types_.data(), to_, recv.counts.data(), recv_places_bytes_.data(), types_.data());
  }
}

// ---- messages

tutti_status_t Step::message(tutti_request_t* requests) {
  if (call_.collective == Collective::pingpong) return pingpong();
  if (call_.collective == Collective::message_rate) return message_rate();
  const auto next = static_cast<int>((call_.rank + 1) % call_.rank_count);
  const auto previous = static_cast<int>((call_.rank + call_.rank_count - 1) % call_.rank_count);
  const uint64_t count = layout_->count;
  if (call_.mode == Mode::blocking) {
    return tutti_sendrecv(target_.comm, from_, count, call_.dtype, next, kTag, to_, count, call_.dtype, previous, kTag, nullptr);
  }
  const tutti_status_t posted = tutti_irecv(target_.comm, to_, count, call_.dtype, previous, kTag, &requests[0]);
  if (posted != TUTTI_OK) return posted;
  return tutti_isend(target_.comm, from_, count, call_.dtype, next, kTag, &requests[1]);
}

/// One message in the form of the mode, to its end.
tutti_status_t Step::transfer(bool sends) {
  const auto partner = static_cast<int>(partner_of(call_.rank, call_.rank_count));
  const uint64_t count = layout_->count;
  if (call_.mode == Mode::blocking) {
    if (sends) return tutti_send(target_.comm, from_, count, call_.dtype, partner, kTag);
    return tutti_recv(target_.comm, to_, count, call_.dtype, partner, kTag, nullptr);
  }
  tutti_request_t request = nullptr;
  const tutti_status_t posted = sends ? tutti_isend(target_.comm, from_, count, call_.dtype, partner, kTag, &request)
                                      : tutti_irecv(target_.comm, to_, count, call_.dtype, partner, kTag, &request);
  return posted == TUTTI_OK ? tutti_wait(&request) : posted;
}

tutti_status_t Step::pingpong() {
  const uint32_t partner = partner_of(call_.rank, call_.rank_count);
  if (partner == call_.rank) return TUTTI_OK;
  const bool first = call_.rank < partner;
  const tutti_status_t status = transfer(first);
  return status == TUTTI_OK ? transfer(!first) : status;
}

/// The lower half sends a window of messages, and gets an empty one back when all have come.
tutti_status_t Step::message_rate() {
  const uint32_t partner = partner_of(call_.rank, call_.rank_count);
  if (partner == call_.rank) return TUTTI_OK;
  const bool sends = call_.rank < partner;
  const auto peer = static_cast<int>(partner);
  const uint64_t count = layout_->count;
  tutti_status_t status = TUTTI_OK;
  if (call_.mode == Mode::blocking) {
    for (uint64_t i = 0; i < call_.window && status == TUTTI_OK; ++i) status = transfer(sends);
  } else {
    for (uint64_t i = 0; i < call_.window && status == TUTTI_OK; ++i) {
      // Each message of a window has a place of its own to come to.
      void* const to = static_cast<std::byte*>(to_) + i * count * call_.element_bytes;
      status = sends ? tutti_isend(target_.comm, from_, count, call_.dtype, peer, kTag, &window_[i])
                     : tutti_irecv(target_.comm, to, count, call_.dtype, peer, kTag, &window_[i]);
    }
    if (status != TUTTI_OK) {  // those that are under way might wait for ever
      const std::string message = tutti_last_error();
      tutti_comm_abort(target_.comm);
      (void)tutti_wait_all(window_.size(), window_.data(), nullptr);
      throw RunError(fmt::format("{}: {}: {}", describe(call_, count), tutti_status_string(status), message));
    }
    status = tutti_wait_all(window_.size(), window_.data(), nullptr);
  }
  if (status != TUTTI_OK) return status;
  if (sends) return tutti_recv(target_.comm, nullptr, 0, call_.dtype, peer, kTag, nullptr);
  return tutti_send(target_.comm, nullptr, 0, call_.dtype, peer, kTag);
}

}  // namespace tutti_perf
