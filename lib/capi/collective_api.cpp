// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives: arguments are checked here, before anything is sent.
#include "arguments.hpp"
#include "call.hpp"

using namespace tutti;

namespace {

Status check_allreduce(const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op,
                       CollectiveArguments* arguments) {
  uint64_t bytes = 0;
  TUTTI_TRY(check_type(count, dtype, &arguments->dtype, &bytes));
  Result<Op> known = to_op(op);
  if (!known) return known.status();
  TUTTI_TRY(check_defined(arguments->dtype, *known));
  arguments->op = *known;
  arguments->collective = Collective::allreduce;
  arguments->count = count;
  arguments->output = recv;
  arguments->input = send == TUTTI_IN_PLACE ? recv : send;
  if (count == 0) {
    arguments->input = arguments->output = nullptr;
    return Status();
  }
  if (!send) return null_argument("send");
  if (!recv) return null_argument("recv");
  if (recv == TUTTI_IN_PLACE) return error(TUTTI_ERR_ARGUMENT, "TUTTI_IN_PLACE is for the send buffer; recv holds the data then");
  if (arguments->input != arguments->output && overlap(arguments->input, bytes, arguments->output, bytes))
    return error(TUTTI_ERR_ARGUMENT, "send {} and recv {} overlap by part of their {} bytes; pass the same pointer for in place",
                 send, static_cast<const void*>(recv), bytes);
  return Status();
}

Status check_broadcast(const Communicator& communicator, void* buffer, uint64_t count, tutti_dtype_t dtype, int root,
                       CollectiveArguments* arguments) {
  uint64_t bytes = 0;
  TUTTI_TRY(check_type(count, dtype, &arguments->dtype, &bytes));
  TUTTI_TRY(check_rank(communicator, root, "root"));
  if (count > 0 && (!buffer || buffer == TUTTI_IN_PLACE)) return null_argument("buffer");
  arguments->collective = Collective::broadcast;
  arguments->count = count;
  arguments->input = arguments->output = buffer;
  arguments->root = static_cast<uint32_t>(root);
  return Status();
}

template <class Check>
tutti_status_t run_collective(const char* function, tutti_comm_t comm, Check&& check) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    CollectiveArguments arguments;
    TUTTI_TRY(check(**found, &arguments));
    return (*found)->run(arguments);
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

}  // namespace

extern "C" tutti_status_t tutti_allreduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                                          tutti_op_t op) {
  return run_collective("tutti_allreduce", comm, [&](const Communicator&, CollectiveArguments* arguments) {
    return check_allreduce(send, recv, count, dtype, op, arguments);
  });
}

extern "C" tutti_status_t tutti_iallreduce(tutti_comm_t comm, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                                           tutti_op_t op, tutti_request_t* request) {
  return start_collective("tutti_iallreduce", comm, request, [&](const Communicator&, CollectiveArguments* arguments) {
    return check_allreduce(send, recv, count, dtype, op, arguments);
  });
}

extern "C" tutti_status_t tutti_broadcast(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int root) {
  return run_collective("tutti_broadcast", comm, [&](const Communicator& communicator, CollectiveArguments* arguments) {
    return check_broadcast(communicator, buffer, count, dtype, root, arguments);
  });
}

extern "C" tutti_status_t tutti_ibroadcast(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int root,
                                           tutti_request_t* request) {
  return start_collective("tutti_ibroadcast", comm, request,
                          [&](const Communicator& communicator, CollectiveArguments* arguments) {
                            return check_broadcast(communicator, buffer, count, dtype, root, arguments);
                          });
}

extern "C" tutti_status_t tutti_barrier(tutti_comm_t comm) {
  return run_collective("tutti_barrier", comm, [](const Communicator&, CollectiveArguments*) { return Status(); });
}

extern "C" tutti_status_t tutti_ibarrier(tutti_comm_t comm, tutti_request_t* request) {
  return start_collective("tutti_ibarrier", comm, request, [](const Communicator&, CollectiveArguments*) { return Status(); });
}
