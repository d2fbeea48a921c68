// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_cases.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace tutti::test {
namespace {

/// Waits, when a case ends early: its buffers are used until then.
struct Request {
  tutti_request_t handle = nullptr;
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (handle == nullptr) return;
    tutti_wait(&handle);
    if (handle != nullptr) tutti_request_free(&handle);
  }
};

#define TRY(call)                                                             \
  do {                                                                        \
    if (const tutti_status_t tried = (call); tried != TUTTI_OK) return tried; \
  } while (false)

template <class... Args>
using Call = tutti_status_t (*)(tutti_comm_t, Args...);

template <class... Args>
tutti_status_t in_form(Form form, Rank& rank, Call<Args...> run, std::type_identity_t<Call<Args..., tutti_request_t*>> start,
                       std::type_identity_t<Call<Args..., tutti_request_t*>> init, std::type_identity_t<Args>... args) {
  if (form == Form::blocking) return again([&] { return run(rank.comm, args...); });
  Request request;
  if (form == Form::started) {
    TRY(again([&] { return start(rank.comm, args..., &request.handle); }));
    return tutti_wait(&request.handle);
  }
  TRY(again([&] { return init(rank.comm, args..., &request.handle); }));
  for (int round = 0; round < 2; ++round) {
    rank.fill();
    TRY(again([&] { return tutti_start(request.handle); }));
    for (int done = 0; round == 0 && !done;) TRY(tutti_test(&request.handle, &done));
    TRY(tutti_wait(&request.handle));
  }
  return tutti_request_free(&request.handle);
}
#define CALL(name, ...) in_form(form, rank, tutti_##name, tutti_i##name, tutti_##name##_init __VA_OPT__(, ) __VA_ARGS__)

bool anything(const Rank&) { return true; }

const Case kCollectives[] = {
    {"allreduce", [](Rank& rank, Form form) { return CALL(allreduce, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.sums(3); }},
    {"allreduce in place",
     [](Rank& rank, Form form) { return CALL(allreduce, TUTTI_IN_PLACE, rank.out, 3, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.sums(3); }},
    {"allreduce, an operation of the caller's on a type of the caller's",
     [](Rank& rank, Form form) { return CALL(allreduce, rank.in, rank.out, 2, rank.wide, rank.add); },
     [](const Rank& rank) { return rank.sums(4); }},
    {"allreduce, a scaled sum",
     [](Rank& rank, Form form) { return CALL(allreduce, rank.reals_in, rank.reals_out, 3, TUTTI_FLOAT64, rank.halves); },
     [](const Rank& rank) { return rank.reals_out[2] == static_cast<double>(rank.sum(2, rank.size)) / 2; }},
    {"reduce", [](Rank& rank, Form form) { return CALL(reduce, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM, rank.last()); },
     [](const Rank& rank) { return rank.number != rank.last() || rank.sums(3); }},
    {"broadcast", [](Rank& rank, Form form) { return CALL(broadcast, rank.out, 3, TUTTI_INT64, 0); },
     [](const Rank& rank) { return rank.holds(0, 0, 0, 3); }},
    {"broadcast of the last", [](Rank& rank, Form form) { return CALL(broadcast, rank.out, 3, TUTTI_INT64, rank.last()); },
     [](const Rank& rank) { return rank.holds(0, rank.last(), 0, 3); }},
    {"allgather", [](Rank& rank, Form form) { return CALL(allgather, rank.in, rank.out, 2, TUTTI_INT64); },
     [](const Rank& rank) { return rank.holds(0, 0, 0, 2) && rank.holds(2, 1, 0, 2); }},
    {"allgatherv",
     [](Rank& rank, Form form) { return CALL(allgatherv, rank.in, rank.out, rank.counts, rank.places, TUTTI_INT64); },
     [](const Rank& rank) { return rank.holds(rank.places[0], 0, 0, 1) && rank.holds(rank.places[1], 1, 0, 2); }},
    {"gather", [](Rank& rank, Form form) { return CALL(gather, rank.in, rank.out, 2, TUTTI_INT64, 0); },
     [](const Rank& rank) { return rank.number != 0 || (rank.holds(0, 0, 0, 2) && rank.holds(2, 1, 0, 2)); }},
    {"gatherv",
     [](Rank& rank, Form form) {
       return CALL(gatherv, rank.in, rank.counts[rank.number], rank.out, rank.counts, rank.places, TUTTI_INT64, 0);
     },
     [](const Rank& rank) { return rank.number != 0 || rank.holds(rank.places[1], 1, 0, 2); }},
    {"scatter", [](Rank& rank, Form form) { return CALL(scatter, rank.in, rank.out, 2, TUTTI_INT64, 0); },
     [](const Rank& rank) { return rank.holds(0, 0, 2 * static_cast<size_t>(rank.number), 2); }},
    {"scatterv",
     [](Rank& rank, Form form) {
       return CALL(scatterv, rank.in, rank.counts, rank.places, rank.out, rank.counts[rank.number], TUTTI_INT64, rank.last());
     },
     [](const Rank& rank) { return rank.holds(0, rank.last(), rank.places[rank.number], rank.counts[rank.number]); }},
    {"reduce_scatter", [](Rank& rank, Form form) { return CALL(reduce_scatter, rank.in, rank.out, 2, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.sums(2, 2 * static_cast<size_t>(rank.number)); }},
    {"reduce_scatterv",
     [](Rank& rank, Form form) { return CALL(reduce_scatterv, rank.in, rank.out, rank.counts, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.number != 1 || rank.sums(2, 1); }},
    {"alltoall", [](Rank& rank, Form form) { return CALL(alltoall, rank.in, rank.out, 1, TUTTI_INT64); },
     [](const Rank& rank) { return rank.holds(1, 1, static_cast<size_t>(rank.number), 1); }},
    {"alltoall in place", [](Rank& rank, Form form) { return CALL(alltoall, TUTTI_IN_PLACE, rank.out, 1, TUTTI_INT64); },
     [](const Rank& rank) { return rank.holds(1, 1, static_cast<size_t>(rank.number), 1); }},
    {"alltoallv",
     [](Rank& rank, Form form) {
       return CALL(alltoallv, rank.in, rank.pair_counts, rank.pair_places, rank.out, rank.pair_counts, rank.pair_places,
                   TUTTI_INT64);
     },
     [](const Rank& rank) { return rank.holds(8, 1, 8 * static_cast<size_t>(rank.number), rank.pair_counts[1]); }},
    {"alltoallw",
     [](Rank& rank, Form form) {
       return CALL(alltoallw, rank.in, rank.pair_counts, rank.pair_places_bytes, rank.types, rank.out, rank.pair_counts,
                   rank.pair_places_bytes, rank.types);
     },
     [](const Rank& rank) { return rank.holds(8, 1, 8 * static_cast<size_t>(rank.number), rank.pair_counts[1]); }},
    {"scan", [](Rank& rank, Form form) { return CALL(scan, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.sums_of(rank.number + 1, 3); }},
    {"exscan", [](Rank& rank, Form form) { return CALL(exscan, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM); },
     [](const Rank& rank) { return rank.number == 0 || rank.sums_of(rank.number, 3); }},
    {"barrier", [](Rank& rank, Form form) { return CALL(barrier); }, anything},
};

// ---- messages, round in a ring ---------------------------------------------------------------------------------------------

bool has_come(const Rank& rank) { return rank.holds(0, rank.previous(), 0, 3); }
bool long_has_come(const Rank& rank) {
  return rank.long_in.front() == rank.previous() + 1 && rank.long_in.back() == rank.previous() + 1;
}

tutti_status_t exchange(Rank& rank, Form) {
  return again([&] {
    return tutti_sendrecv(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, rank.out, 3, TUTTI_INT64, rank.previous(), 1,
                          nullptr);
  });
}

tutti_status_t exchange_in_place(Rank& rank, Form) {
  return again([&] {
    return tutti_sendrecv(rank.comm, TUTTI_IN_PLACE, kLongBytes, TUTTI_BYTE, rank.next(), 1, rank.long_out.data(), kLongBytes,
                          TUTTI_BYTE, rank.previous(), 1, nullptr);
  });
}

tutti_status_t start_messages(Rank& rank, Form) {
  Request receive;
  Request send;
  TRY(again([&] { return tutti_irecv(rank.comm, rank.out, 3, TUTTI_INT64, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &receive.handle); }));
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  tutti_message_t message;
  tutti_message_init(&message);
  TRY(tutti_request_get_message(receive.handle, &message));
  tutti_request_t both[] = {receive.handle, send.handle};
  receive.handle = send.handle = nullptr;
  return tutti_wait_all(2, both, nullptr);
}

tutti_status_t persistent_messages(Rank& rank, Form) {
  Request receive;
  Request send;
  TRY(again([&] { return tutti_recv_init(rank.comm, rank.out, 3, TUTTI_INT64, rank.previous(), 1, &receive.handle); }));
  TRY(again([&] { return tutti_send_init(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  const tutti_request_t both[] = {receive.handle, send.handle};
  TRY(tutti_start_all(2, both));
  TRY(tutti_wait(&receive.handle));
  TRY(tutti_wait(&send.handle));
  TRY(tutti_request_free(&send.handle));
  return tutti_request_free(&receive.handle);
}

/// A short one that comes first is set aside for it, and so is a long one for that in the end.
tutti_status_t long_messages(Rank& rank, Form) {
  Request sends[3];
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &sends[0].handle); }));
  TRY(again(
      [&] { return tutti_isend(rank.comm, rank.long_out.data(), kLongBytes, TUTTI_BYTE, rank.next(), 2, &sends[1].handle); }));
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 1, TUTTI_INT64, rank.next(), 3, &sends[2].handle); }));
  TRY(again([&] { return tutti_recv(rank.comm, rank.out + 8, 1, TUTTI_INT64, rank.previous(), 3, nullptr); }));
  TRY(again([&] { return tutti_recv(rank.comm, rank.long_in.data(), kLongBytes, TUTTI_BYTE, rank.previous(), 2, nullptr); }));
  TRY(again([&] { return tutti_recv(rank.comm, rank.out, 3, TUTTI_INT64, TUTTI_ANY_SOURCE, 1, nullptr); }));
  for (Request& send : sends) TRY(tutti_wait(&send.handle));
  return TUTTI_OK;
}

tutti_status_t look_for_messages(Rank& rank, Form) {
  Request send;
  tutti_message_t message;
  tutti_message_init(&message);
  int found = 0;
  TRY(again([&] { return tutti_iprobe(rank.comm, rank.previous(), 7, &found, &message); }));
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  TRY(again([&] { return tutti_probe(rank.comm, TUTTI_ANY_SOURCE, 1, &message); }));
  TRY(again([&] { return tutti_recv(rank.comm, rank.out, 3, TUTTI_INT64, message.source, 1, &message); }));
  return tutti_wait(&send.handle);
}

tutti_status_t claim_messages(Rank& rank, Form) {
  Request sends[2];
  Request receive;
  for (Request& send : sends)
    TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  tutti_matched_t matched = nullptr;
  TRY(again([&] { return tutti_mprobe(rank.comm, rank.previous(), 1, &matched, nullptr); }));
  TRY(again([&] { return tutti_imrecv(&matched, rank.out, 3, TUTTI_INT64, &receive.handle); }));
  TRY(tutti_wait(&receive.handle));
  for (int found = 0; !found;)
    TRY(again([&] { return tutti_improbe(rank.comm, TUTTI_ANY_SOURCE, 1, &found, &matched, nullptr); }));
  TRY(again([&] { return tutti_mrecv(&matched, rank.out, 3, TUTTI_INT64, nullptr); }));
  for (Request& send : sends) TRY(tutti_wait(&send.handle));
  return TUTTI_OK;
}

tutti_status_t talk_to_oneself(Rank& rank, Form) {
  Request send;
  TRY(again([&] { return tutti_isend(rank.comm, rank.long_out.data(), kLongBytes, TUTTI_BYTE, rank.number, 1, &send.handle); }));
  TRY(again([&] { return tutti_recv(rank.comm, rank.long_in.data(), kLongBytes, TUTTI_BYTE, rank.number, 1, nullptr); }));
  return tutti_wait(&send.handle);
}

tutti_status_t cancel_a_receive(Rank& rank, Form) {
  Request receive;
  TRY(again([&] { return tutti_irecv(rank.comm, rank.out, 3, TUTTI_INT64, TUTTI_ANY_SOURCE, 7, &receive.handle); }));
  TRY(again([&] { return tutti_cancel(receive.handle); }));
  const tutti_status_t ended = tutti_wait(&receive.handle);
  return ended == TUTTI_ERR_CANCELLED ? TUTTI_OK : ended;
}

/// What went wrong is told, whatever there is no memory for.
tutti_status_t truncate_messages(Rank& rank, Form) {
  Request send;
  Request receive;
  tutti_message_t message;
  tutti_message_init(&message);
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  tutti_status_t ended = tutti_recv(rank.comm, rank.out, 1, TUTTI_INT64, rank.previous(), 1, &message);
  if (ended != TUTTI_ERR_TRUNCATED) return ended;
  if (message.size_bytes != 3 * sizeof(int64_t)) return TUTTI_ERR_INTERNAL;
  TRY(tutti_wait(&send.handle));
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  TRY(again([&] { return tutti_irecv(rank.comm, rank.out, 1, TUTTI_INT64, rank.previous(), 1, &receive.handle); }));
  tutti_request_t both[] = {receive.handle, send.handle};
  receive.handle = send.handle = nullptr;
  tutti_status_t statuses[2];
  ended = tutti_wait_all(2, both, statuses);
  if (both[0] != nullptr || both[1] != nullptr) return TUTTI_ERR_INTERNAL;
  return ended == TUTTI_ERR_TRUNCATED && statuses[0] == ended && statuses[1] == TUTTI_OK ? TUTTI_OK : ended;
}

tutti_status_t call_on_an_aborted_one(Rank& rank, Form) {
  Request call;  // none, if the other has aborted already
  again([&] { return tutti_allreduce_init(rank.comm, rank.in, rank.out, 1, TUTTI_INT64, TUTTI_SUM, &call.handle); });
  TRY(tutti_comm_abort(rank.comm));
  const tutti_status_t ends[] = {tutti_barrier(rank.comm), call.handle == nullptr ? TUTTI_ERR_ABORTED : tutti_start(call.handle),
                                 tutti_recv(rank.comm, rank.out, 1, TUTTI_INT64, TUTTI_ANY_SOURCE, 1, nullptr)};
  TRY(tutti_comm_destroy(rank.comm));
  rank.comm = nullptr;
  const auto as_it_should = [](tutti_status_t end) { return end == TUTTI_ERR_ABORTED; };
  return std::all_of(std::begin(ends), std::end(ends), as_it_should) ? TUTTI_OK : TUTTI_ERR_INTERNAL;
}

tutti_status_t give_up_requests(Rank& rank, Form) {
  Request receive;
  Request send;
  Request idle;
  TRY(again([&] { return tutti_irecv(rank.comm, rank.out, 3, TUTTI_INT64, rank.previous(), 1, &receive.handle); }));
  TRY(again([&] { return tutti_isend(rank.comm, rank.in, 3, TUTTI_INT64, rank.next(), 1, &send.handle); }));
  TRY(again([&] { return tutti_allreduce_init(rank.comm, rank.in, rank.in, 1, TUTTI_INT64, TUTTI_SUM, &idle.handle); }));
  TRY(tutti_request_free(&send.handle));
  TRY(tutti_request_free(&idle.handle));
  return tutti_wait(&receive.handle);
}

const Case kMessages[] = {
    {"sendrecv", exchange, has_come},
    {"sendrecv in place", exchange_in_place,
     [](const Rank& rank) {
       return rank.long_out.front() == rank.previous() + 1 && rank.long_out.back() == rank.previous() + 1;
     }},
    {"isend and irecv", start_messages, has_come},
    {"send_init and recv_init", persistent_messages, has_come},
    {"long messages", long_messages, [](const Rank& rank) { return has_come(rank) && long_has_come(rank); }},
    {"probe", look_for_messages, has_come},
    {"mprobe", claim_messages, has_come},
    {"to oneself", talk_to_oneself, [](const Rank& rank) { return rank.long_in.back() == rank.number + 1; }},
    {"cancel", cancel_a_receive, anything},
    {"truncation", truncate_messages, anything},
    {"abort", call_on_an_aborted_one, anything},
    {"request_free", give_up_requests, has_come},
};

// ---- groups, operations, communicators -------------------------------------------------------------------------------------

tutti_status_t launch_a_group(Rank& rank, Form) {
  struct Group {
    tutti_group_t handle = nullptr;
    ~Group() {
      if (handle != nullptr) tutti_group_free(&handle);
    }
  } group;
  TRY(again([&] { return tutti_group_begin(rank.comm, &group.handle); }));
  for (int i = 0; i < 4; ++i) {
    Request call;
    TRY(again([&] {
      return i == 2 ? tutti_broadcast_init(rank.comm, rank.out + 8, 2, TUTTI_INT64, 0, &call.handle)
                    : tutti_allreduce_init(rank.comm, rank.in + i, rank.out + i, 1, TUTTI_INT64, TUTTI_SUM, &call.handle);
    }));
    TRY(again([&] { return tutti_group_add(group.handle, call.handle); }));
    TRY(tutti_request_free(&call.handle));
  }
  for (int round = 0; round < 2; ++round) {
    Request request;
    TRY(again([&] { return tutti_group_launch(group.handle, &request.handle); }));
    TRY(tutti_wait(&request.handle));
  }
  return tutti_group_free(&group.handle);
}

tutti_status_t make_types_and_operations(Rank& rank, Form) {
  static uint64_t words = 1;
  tutti_dtype_t type = 0;
  tutti_op_t op = 0;
  tutti_op_t scaled = 0;
  TRY(again([&] { return tutti_type_create(sizeof(int64_t), &type); }));
  TRY(again([&] { return tutti_op_create(add_words, 1, &words, &op); }));
  TRY(again([&] { return tutti_op_create_scaled_sum(0.5, &scaled); }));
  const tutti_status_t summed = again([&] { return tutti_allreduce(rank.comm, rank.in, rank.out, 3, type, op); });
  TRY(tutti_op_destroy(scaled));
  TRY(tutti_op_destroy(op));
  TRY(tutti_type_destroy(type));
  return summed;
}

/// A rank that could not make its part fails the others' new communicator; then all try once more.
tutti_status_t split(Rank& rank, Form) {
  for (int attempt = 0;; ++attempt) {
    tutti_comm_t half = nullptr;
    TRY(again([&] { return tutti_comm_split(rank.comm, 0, -rank.number, &half); }));
    const tutti_status_t used = again([&] { return tutti_allreduce(half, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM); });
    TRY(tutti_comm_destroy(half));
    // Others have a new communicator without us, and know only by its failing; that it fails where it is used is one of
    // `kCollectives`.
    if (used == TUTTI_OK || attempt == 1) return used;
  }
}

tutti_status_t force_an_algorithm(Rank& rank, Form) {
  TRY(again([&] { return tutti_comm_set_algorithm(rank.comm, "allreduce", "ring:segment_bytes=64K"); }));
  return again([&] { return tutti_allreduce(rank.comm, rank.in, rank.out, 3, TUTTI_INT64, TUTTI_SUM); });
}

/// What is under way ends, whatever fails.
tutti_status_t destroy_with_calls_outstanding(Rank& rank, Form) {
  Request receive;
  Request barrier;
  const tutti_status_t receives =
      again([&] { return tutti_irecv(rank.comm, rank.out, 3, TUTTI_INT64, TUTTI_ANY_SOURCE, 7, &receive.handle); });
  if (receives == TUTTI_OK && rank.number == 0) again([&] { return tutti_ibarrier(rank.comm, &barrier.handle); });
  TRY(tutti_comm_destroy(rank.comm));
  rank.comm = nullptr;
  const tutti_status_t ended = receives == TUTTI_OK ? tutti_wait(&receive.handle) : receives;
  const bool expected = ended == TUTTI_ERR_ABORTED || ended == TUTTI_ERR_PEER_FAILED || ended == TUTTI_ERR_MEMORY;
  return expected ? TUTTI_OK : ended;
}

const Case kOthers[] = {
    {"group", launch_a_group,
     [](const Rank& rank) { return rank.sums(2) && rank.out[3] == rank.sum(3, rank.size) && rank.holds(8, 0, 8, 2); }},
    {"types and operations", make_types_and_operations, [](const Rank& rank) { return rank.sums(3); }},
    {"split", split, [](const Rank& rank) { return rank.sums(3); }},
    {"set_algorithm", force_an_algorithm, [](const Rank& rank) { return rank.sums(3); }},
    {"destroy", destroy_with_calls_outstanding, anything},
};

}  // namespace

std::span<const Case> collective_cases() { return kCollectives; }
std::span<const Case> message_cases() { return kMessages; }
std::span<const Case> other_cases() { return kOthers; }

}  // namespace tutti::test
