// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives and messages: arguments are checked here, before anything is sent.
#include "base/types.hpp"
#include "call.hpp"

using namespace tutti;

namespace {

bool overlap(const void* a, const void* b, uint64_t bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y ? y - x < bytes : x - y < bytes;
}

Status check_type(uint64_t count, tutti_dtype_t dtype, DType* type, uint64_t* bytes) {
  Result<DType> known = to_dtype(dtype);
  if (!known) return known.status();
  *type = *known;
  Result<uint64_t> size = checked_bytes(count, size_bytes(*known));
  if (!size) return size.status();
  *bytes = *size;
  return Status();
}

Status check_rank(const Communicator& communicator, int rank, const char* name) {
  if (rank < 0 || static_cast<uint32_t>(rank) >= communicator.size())
    return error(TUTTI_ERR_RANK, "{} is {}, outside [0, {})", name, rank, communicator.size());
  return Status();
}

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
  if (arguments->input != arguments->output && overlap(arguments->input, arguments->output, bytes))
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

Status check_message(const Communicator& communicator, const void* buffer, uint64_t count, tutti_dtype_t dtype, int peer,
                     const char* peer_name, int tag, uint64_t* bytes) {
  DType type{};
  TUTTI_TRY(check_type(count, dtype, &type, bytes));
  TUTTI_TRY(check_rank(communicator, peer, peer_name));
  if (tag < 0) return error(TUTTI_ERR_ARGUMENT, "tag is {}; tags are 0 or more", tag);
  if (count > 0 && (!buffer || buffer == TUTTI_IN_PLACE)) return null_argument("buffer");
  return Status();
}

/// Gives a call its handle and starts it, in this order: afterwards nothing can fail.
Status start(Communicator& communicator, Result<Request*> prepared, tutti_request_t* request) {
  if (!prepared) return prepared.status();
  void* handle = nullptr;
  try {
    handle = handles().insert(HandleKind::request, *prepared);
  } catch (...) {
    (*prepared)->release();
    throw;
  }
  communicator.start(**prepared);
  *request = static_cast<tutti_request_t>(handle);
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

tutti_status_t start_message(const char* function, tutti_comm_t comm, bool sending, void* buffer, uint64_t count,
                             tutti_dtype_t dtype, int peer, int tag, tutti_request_t* request) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    uint64_t bytes = 0;
    TUTTI_TRY(check_message(**found, buffer, count, dtype, peer, sending ? "dest" : "source", tag, &bytes));
    return start(**found,
                 (*found)->prepare_message(sending, buffer, bytes, size_bytes(static_cast<DType>(dtype)),
                                           static_cast<uint32_t>(peer), tag),
                 request);
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

extern "C" tutti_status_t tutti_send(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                     int tag) {
  return entry("tutti_send", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    uint64_t bytes = 0;
    TUTTI_TRY(check_message(**found, buffer, count, dtype, dest, "dest", tag, &bytes));
    return (*found)->send(buffer, bytes, static_cast<uint32_t>(dest), tag);
  });
}

extern "C" tutti_status_t tutti_recv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source, int tag,
                                     uint64_t* received_count) {
  return entry("tutti_recv", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    uint64_t bytes = 0;
    TUTTI_TRY(check_message(**found, buffer, count, dtype, source, "source", tag, &bytes));
    uint64_t received_bytes = 0;
    TUTTI_TRY((*found)->recv(buffer, bytes, static_cast<uint32_t>(source), tag, &received_bytes));
    if (received_count) *received_count = received_bytes / size_bytes(static_cast<DType>(dtype));
    return Status();
  });
}

extern "C" tutti_status_t tutti_isend(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                      int tag, tutti_request_t* request) {
  return start_message("tutti_isend", comm, true, const_cast<void*>(buffer), count, dtype, dest, tag, request);
}

extern "C" tutti_status_t tutti_irecv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source, int tag,
                                      tutti_request_t* request) {
  return start_message("tutti_irecv", comm, false, buffer, count, dtype, source, tag, request);
}
