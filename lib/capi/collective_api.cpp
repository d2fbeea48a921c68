// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives, each in three forms. What they were given is checked in collective_arguments.cpp, before anything is sent.
#include "call.hpp"
#include "collective_arguments.hpp"

using namespace tutti;

namespace {

template <class Check>
tutti_status_t run_collective(const char* function, tutti_comm_t comm, Check&& check) noexcept {
  return entry(function, [&]() -> Status {
    Communicator* communicator = live_communicator(comm);
    if (!communicator) return find_communicator(comm).status();
    CollectiveArguments arguments;
    TUTTI_TRY(check(*communicator, &arguments));
    return communicator->run(arguments);
  });
}

template <class Check>
tutti_status_t start_collective(const char* function, tutti_comm_t comm, tutti_request_t* request, Check&& check) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    CollectiveArguments arguments;
    TUTTI_TRY(check(**found, &arguments));
    return start(**found, (*found)->prepare(arguments), request);
  });
}

template <class Check>
tutti_status_t init_collective(const char* function, tutti_comm_t comm, tutti_request_t* request, Check&& check) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    CollectiveArguments arguments;
    TUTTI_TRY(check(**found, &arguments));
    Result<Request*> prepared = (*found)->prepare(arguments, true);
    if (prepared) (*prepared)->communicator = comm;
    return give_handle(std::move(prepared), request);
  });
}

}  // namespace

/// The three forms of one collective: check is called with (const Communicator&, the call's own arguments ..., result).
#define TUTTI_UNPACKED(...) __VA_ARGS__
#define TUTTI_COLLECTIVE(name, check, parameters, values)                                                                 \
  extern "C" tutti_status_t tutti_##name(tutti_comm_t comm TUTTI_UNPACKED parameters) {                                   \
    return run_collective("tutti_" #name, comm, [&](const Communicator& communicator, CollectiveArguments* arguments) {   \
      return check(communicator TUTTI_UNPACKED values, arguments);                                                        \
    });                                                                                                                   \
  }                                                                                                                       \
  extern "C" tutti_status_t tutti_i##name(tutti_comm_t comm TUTTI_UNPACKED parameters, tutti_request_t* request) {        \
    return start_collective("tutti_i" #name, comm, request,                                                               \
                            [&](const Communicator& communicator, CollectiveArguments* arguments) {                       \
                              return check(communicator TUTTI_UNPACKED values, arguments);                                \
                            });                                                                                           \
  }                                                                                                                       \
  extern "C" tutti_status_t tutti_##name##_init(tutti_comm_t comm TUTTI_UNPACKED parameters, tutti_request_t* request) {  \
    return init_collective("tutti_" #name "_init", comm, request,                                                         \
                           [&](const Communicator& communicator, CollectiveArguments* arguments) {                        \
                             return check(communicator TUTTI_UNPACKED values, arguments);                                 \
                           });                                                                                            \
  }

TUTTI_COLLECTIVE(allreduce, check_allreduce,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op),
                 (, send, recv, count, dtype, op))
TUTTI_COLLECTIVE(reduce, check_reduce,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op, int root),
                 (, send, recv, count, dtype, op, root))
TUTTI_COLLECTIVE(broadcast, check_broadcast,
                 (, void* buffer, uint64_t count, tutti_dtype_t dtype, int root),
                 (, buffer, count, dtype, root))
TUTTI_COLLECTIVE(allgather, check_allgather,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype),
                 (, send, recv, count, dtype))
TUTTI_COLLECTIVE(allgatherv, check_allgatherv,
                 (, const void* send, void* recv, const uint64_t* counts, const uint64_t* displacements, tutti_dtype_t dtype),
                 (, send, recv, counts, displacements, dtype))
TUTTI_COLLECTIVE(gather, check_gather,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, int root),
                 (, send, recv, count, dtype, root))
TUTTI_COLLECTIVE(gatherv, check_gatherv,
                 (, const void* send, uint64_t send_count, void* recv, const uint64_t* counts, const uint64_t* displacements,
                  tutti_dtype_t dtype, int root),
                 (, send, send_count, recv, counts, displacements, dtype, root))
TUTTI_COLLECTIVE(scatter, check_scatter,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, int root),
                 (, send, recv, count, dtype, root))
TUTTI_COLLECTIVE(scatterv, check_scatterv,
                 (, const void* send, const uint64_t* counts, const uint64_t* displacements, void* recv, uint64_t recv_count,
                  tutti_dtype_t dtype, int root),
                 (, send, counts, displacements, recv, recv_count, dtype, root))
TUTTI_COLLECTIVE(reduce_scatter, check_reduce_scatter,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op),
                 (, send, recv, count, dtype, op))
TUTTI_COLLECTIVE(reduce_scatterv, check_reduce_scatterv,
                 (, const void* send, void* recv, const uint64_t* counts, tutti_dtype_t dtype, tutti_op_t op),
                 (, send, recv, counts, dtype, op))
TUTTI_COLLECTIVE(alltoall, check_alltoall,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype),
                 (, send, recv, count, dtype))
TUTTI_COLLECTIVE(alltoallv, check_alltoallv,
                 (, const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                  const uint64_t* recv_counts, const uint64_t* recv_displacements, tutti_dtype_t dtype),
                 (, send, send_counts, send_displacements, recv, recv_counts, recv_displacements, dtype))
TUTTI_COLLECTIVE(alltoallw, check_alltoallw,
                 (, const void* send, const uint64_t* send_counts, const uint64_t* send_displacements_bytes,
                  const tutti_dtype_t* send_types, void* recv, const uint64_t* recv_counts,
                  const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types),
                 (, send, send_counts, send_displacements_bytes, send_types, recv, recv_counts, recv_displacements_bytes,
                  recv_types))
TUTTI_COLLECTIVE(scan, check_scan,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op),
                 (, send, recv, count, dtype, op))
TUTTI_COLLECTIVE(exscan, check_exscan,
                 (, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op),
                 (, send, recv, count, dtype, op))
TUTTI_COLLECTIVE(barrier, check_barrier, (), ())
