// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages: arguments are checked here, before anything is sent.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include "arguments.hpp"
#include "call.hpp"
#include "messages.hpp"

using namespace tutti;

namespace {

Status check_buffer(const void* buffer, const char* name, uint64_t count, tutti_dtype_t dtype, uint64_t* bytes) {
  DType type{};
  TUTTI_TRY(check_type(count, dtype, &type, bytes));
  if (count > 0 && (!buffer || buffer == TUTTI_IN_PLACE)) return null_argument(name);
  return Status();
}

Status check_destination(const Communicator& communicator, int dest, int tag) {
  TUTTI_TRY(check_rank(communicator, dest, "dest"));
  if (tag < 0) return error(TUTTI_ERR_ARGUMENT, "tag is {}; tags are 0 or more", tag);
  return Status();
}

Status check_origin(const Communicator& communicator, int source, int tag) {
  if (source != TUTTI_ANY_SOURCE) TUTTI_TRY(check_rank(communicator, source, "source"));
  if (tag < 0 && tag != TUTTI_ANY_TAG) return error(TUTTI_ERR_ARGUMENT, "tag is {}; tags are 0 or more, or TUTTI_ANY_TAG", tag);
  return Status();
}

uint32_t origin(int source) { return source == TUTTI_ANY_SOURCE ? kAnySource : static_cast<uint32_t>(source); }
static_assert(TUTTI_ANY_TAG == kAnyTag);

Status check_output(const tutti_message_t* message) {
  if (message && (message->struct_size < sizeof(size_t) || message->struct_size > 4096))
    return error(TUTTI_ERR_ARGUMENT, "message.struct_size is {}: fill the structure with tutti_message_init first",
                 message->struct_size);
  return Status();
}

/// As much as the caller's version of the structure has.
void tell(const Envelope& envelope, tutti_message_t* message) {
  if (!message) return;
  tutti_message_t all{};
  all.struct_size = message->struct_size;
  all.source = static_cast<int>(envelope.source);
  all.tag = envelope.tag;
  all.size_bytes = envelope.bytes;
  std::memcpy(message, &all, std::min(message->struct_size, sizeof all));
}

Status tell_result(const MessageOperation& receive, Status status, tutti_message_t* message) {
  const tutti_status_t own = receive.result().code();
  if (own == TUTTI_OK || own == TUTTI_ERR_TRUNCATED) tell(receive.envelope(), message);
  return status;
}

tutti_comm_t communicator_of(const ClaimedMessage& claimed) {
  return static_cast<tutti_comm_t>(const_cast<void*>(claimed.communicator));
}

Result<ClaimedMessage*> find_matched(const tutti_matched_t* matched, Result<Communicator*>* communicator) {
  if (!matched) return null_argument("matched");
  auto* found = static_cast<ClaimedMessage*>(handles().find(HandleKind::message, *matched));
  if (!found)
    return error(TUTTI_ERR_HANDLE, "{} is not a live message handle: received already, released with its communicator, or NULL",
                 static_cast<const void*>(*matched));
  *communicator = find_communicator(communicator_of(*found));
  if (!*communicator) return communicator->status();
  return found;
}

void release(Communicator& communicator, tutti_matched_t* matched) {
  auto* claimed = static_cast<ClaimedMessage*>(handles().remove(HandleKind::message, *matched));
  communicator.claimed_messages().give_back(std::unique_ptr<ClaimedMessage>(claimed));
  *matched = nullptr;
}

enum class Form : uint8_t { started, persistent };

/// check: of what a buffer is not; bind(message, bytes).
template <class Check, class Bind>
tutti_status_t make_request(const char* function, tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype,
                            Form form, tutti_request_t* request, Check&& check, Bind&& bind) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    uint64_t bytes = 0;
    TUTTI_TRY(check_buffer(buffer, "buffer", count, dtype, &bytes));
    TUTTI_TRY(check(**found));
    const auto bind_bytes = [&](MessageOperation& message) { bind(message, bytes); };
    Result<Request*> prepared = (*found)->prepare_message(bind_bytes, form == Form::persistent);
    if (form == Form::started) return start(**found, std::move(prepared), request);
    if (prepared) (*prepared)->communicator = comm;
    return give_handle(std::move(prepared), request);
  });
}

tutti_status_t make_send(const char* function, tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype,
                         int dest, int tag, Form form, tutti_request_t* request) noexcept {
  return make_request(
      function, comm, buffer, count, dtype, form, request,
      [&](const Communicator& communicator) { return check_destination(communicator, dest, tag); },
      [&](MessageOperation& send, uint64_t bytes) { send.bind_send(buffer, bytes, static_cast<uint32_t>(dest), tag); });
}

tutti_status_t make_recv(const char* function, tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source,
                         int tag, Form form, tutti_request_t* request) noexcept {
  return make_request(
      function, comm, buffer, count, dtype, form, request,
      [&](const Communicator& communicator) { return check_origin(communicator, source, tag); },
      [&](MessageOperation& receive, uint64_t bytes) { receive.bind_recv(buffer, bytes, origin(source), tag); });
}

enum class Look : uint8_t { wait, once };

/// found may be null when the look waits, matched when it is a probe.
tutti_status_t look_for(const char* function, tutti_comm_t comm, int source, int tag, Look how, bool claim, int* found,
                        tutti_matched_t* matched, tutti_message_t* message) noexcept {
  return entry(function, [&]() -> Status {
    Result<Communicator*> communicator = find_communicator(comm);
    if (!communicator) return communicator.status();
    if (how == Look::once && !found) return null_argument("found");
    if (claim && !matched) return null_argument("matched");
    TUTTI_TRY(check_origin(**communicator, source, tag));
    TUTTI_TRY(check_output(message));
    // What may fail comes first: a claimed message must not be lost.
    std::unique_ptr<ClaimedMessage> result;
    void* handle = nullptr;
    if (claim) {
      result = (*communicator)->claimed_messages().take();
      result->communicator = comm;
      handle = handles().insert(HandleKind::message, result.get());
    }
    MessageOperation look;
    look.bind_look(origin(source), tag, how == Look::once, claim);
    const Status status = (*communicator)->run(look);
    if (!status.ok() || !look.found()) {
      if (claim) {
        handles().remove(HandleKind::message, handle);
        (*communicator)->claimed_messages().give_back(std::move(result));
      }
      if (status.ok()) *found = 0;
      return status;
    }
    if (claim) {
      result.release()->message = look.claimed();
      *matched = static_cast<tutti_matched_t>(handle);
    }
    if (found) *found = 1;
    tell(look.envelope(), message);
    return Status();
  });
}

/// What is to be sent while the place where it lies is received into.
class Copy {
 public:
  Copy(ScratchPool& pool, const void* data, uint64_t bytes) : pool_(pool) {
    if (bytes > near_.size()) far_ = pool.take(bytes);
    if (bytes > 0) std::memcpy(data_(), data, bytes);
  }
  ~Copy() {
    if (far_.data) pool_.give_back(std::move(far_));
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  const void* data() { return data_(); }

 private:
  std::byte* data_() { return far_.data ? far_.data.get() : near_.data(); }
  ScratchPool& pool_;
  std::array<std::byte, 1024> near_;
  ScratchPool::Piece far_;
};

}  // namespace

void tutti::release_messages(tutti_comm_t comm) {
  const auto of_it = [comm](const void* object) { return static_cast<const ClaimedMessage*>(object)->communicator == comm; };
  while (void* object = handles().remove_if(HandleKind::message, of_it)) delete static_cast<ClaimedMessage*>(object);
}

extern "C" tutti_status_t tutti_message_init(tutti_message_t* message) {
  return entry("tutti_message_init", [&]() -> Status {
    if (!message) return null_argument("message");
    *message = tutti_message_t{};
    message->struct_size = sizeof *message;
    return Status();
  });
}

// ---- sending and receiving ------------------------------------------------------------------------------------------------

extern "C" tutti_status_t tutti_send(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                     int tag) {
  return entry("tutti_send", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    uint64_t bytes = 0;
    TUTTI_TRY(check_buffer(buffer, "buffer", count, dtype, &bytes));
    TUTTI_TRY(check_destination(**found, dest, tag));
    MessageOperation send;
    send.bind_send(buffer, bytes, static_cast<uint32_t>(dest), tag);
    return (*found)->run(send);
  });
}

extern "C" tutti_status_t tutti_recv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source, int tag,
                                     tutti_message_t* message) {
  return entry("tutti_recv", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    uint64_t bytes = 0;
    TUTTI_TRY(check_buffer(buffer, "buffer", count, dtype, &bytes));
    TUTTI_TRY(check_origin(**found, source, tag));
    TUTTI_TRY(check_output(message));
    MessageOperation receive;
    receive.bind_recv(buffer, bytes, origin(source), tag);
    return tell_result(receive, (*found)->run(receive), message);
  });
}

extern "C" tutti_status_t tutti_sendrecv(tutti_comm_t comm, const void* send, uint64_t send_count, tutti_dtype_t send_dtype,
                                         int dest, int send_tag, void* recv, uint64_t recv_count, tutti_dtype_t recv_dtype,
                                         int source, int recv_tag, tutti_message_t* message) {
  return entry("tutti_sendrecv", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    const void* data = send == TUTTI_IN_PLACE ? recv : send;
    uint64_t send_bytes = 0;
    uint64_t recv_bytes = 0;
    TUTTI_TRY(check_buffer(data, "send", send_count, send_dtype, &send_bytes));
    TUTTI_TRY(check_buffer(recv, "recv", recv_count, recv_dtype, &recv_bytes));
    TUTTI_TRY(check_destination(**found, dest, send_tag));
    TUTTI_TRY(check_origin(**found, source, recv_tag));
    TUTTI_TRY(check_output(message));
    const bool in_place = data == recv && send_bytes > 0 && recv_bytes > 0;
    if (!in_place && overlap(data, send_bytes, recv, recv_bytes))
      return error(TUTTI_ERR_ARGUMENT, "send {} ({} bytes) and recv {} ({} bytes) overlap; pass the same pointer for in place",
                   data, send_bytes, static_cast<const void*>(recv), recv_bytes);
    Copy copy((*found)->scratch(), data, in_place ? send_bytes : 0);
    MessageOperation receive;
    MessageOperation sending;
    receive.bind_recv(recv, recv_bytes, origin(source), recv_tag);
    sending.bind_send(in_place ? copy.data() : data, send_bytes, static_cast<uint32_t>(dest), send_tag);
    return tell_result(receive, (*found)->run_both(receive, sending), message);
  });
}

extern "C" tutti_status_t tutti_isend(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                      int tag, tutti_request_t* request) {
  return make_send("tutti_isend", comm, buffer, count, dtype, dest, tag, Form::started, request);
}

extern "C" tutti_status_t tutti_irecv(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source, int tag,
                                      tutti_request_t* request) {
  return make_recv("tutti_irecv", comm, buffer, count, dtype, source, tag, Form::started, request);
}

extern "C" tutti_status_t tutti_send_init(tutti_comm_t comm, const void* buffer, uint64_t count, tutti_dtype_t dtype, int dest,
                                          int tag, tutti_request_t* request) {
  return make_send("tutti_send_init", comm, buffer, count, dtype, dest, tag, Form::persistent, request);
}

extern "C" tutti_status_t tutti_recv_init(tutti_comm_t comm, void* buffer, uint64_t count, tutti_dtype_t dtype, int source,
                                          int tag, tutti_request_t* request) {
  return make_recv("tutti_recv_init", comm, buffer, count, dtype, source, tag, Form::persistent, request);
}

extern "C" tutti_status_t tutti_request_get_message(tutti_request_t request, tutti_message_t* message) {
  return entry("tutti_request_get_message", [&]() -> Status {
    Result<Request*> found = find_request(request);
    if (!found) return found.status();
    if (!message) return null_argument("message");
    TUTTI_TRY(check_output(message));
    if (!(*found)->is_message || !(*found)->message.receives()) return error(TUTTI_ERR_ARGUMENT, "the request is not a receive");
    const MessageOperation& receive = (*found)->message;
    if ((*found)->is_persistent && !(*found)->is_active && !receive.done())
      return error(TUTTI_ERR_ARGUMENT, "the receive has never been started");
    (*found)->context->engine().wait((*found)->operation());
    return tell_result(receive, copy_of(receive.result()), message);
  });
}

extern "C" tutti_status_t tutti_cancel(tutti_request_t request) {
  return entry("tutti_cancel", [&]() -> Status {
    const Result<Request*> found = find_request(request);
    if (!found) return found.status();
    if (!(*found)->is_message || !(*found)->message.receives())
      return error(TUTTI_ERR_ARGUMENT, "the request is a {}; only receives can be cancelled",
                   (*found)->is_message ? "send" : "collective");
    if (!(*found)->is_persistent || (*found)->is_active) (*found)->context->engine().cancel((*found)->message);
    return Status();
  });
}

// ---- looking for messages -------------------------------------------------------------------------------------------------

extern "C" tutti_status_t tutti_probe(tutti_comm_t comm, int source, int tag, tutti_message_t* message) {
  return look_for("tutti_probe", comm, source, tag, Look::wait, false, nullptr, nullptr, message);
}

extern "C" tutti_status_t tutti_iprobe(tutti_comm_t comm, int source, int tag, int* found, tutti_message_t* message) {
  return look_for("tutti_iprobe", comm, source, tag, Look::once, false, found, nullptr, message);
}

extern "C" tutti_status_t tutti_mprobe(tutti_comm_t comm, int source, int tag, tutti_matched_t* matched,
                                       tutti_message_t* message) {
  return look_for("tutti_mprobe", comm, source, tag, Look::wait, true, nullptr, matched, message);
}

extern "C" tutti_status_t tutti_improbe(tutti_comm_t comm, int source, int tag, int* found, tutti_matched_t* matched,
                                        tutti_message_t* message) {
  return look_for("tutti_improbe", comm, source, tag, Look::once, true, found, matched, message);
}

extern "C" tutti_status_t tutti_mrecv(tutti_matched_t* matched, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                      tutti_message_t* message) {
  return entry("tutti_mrecv", [&]() -> Status {
    Result<Communicator*> communicator(nullptr);
    Result<ClaimedMessage*> found = find_matched(matched, &communicator);
    if (!found) return found.status();
    uint64_t bytes = 0;
    TUTTI_TRY(check_buffer(buffer, "buffer", count, dtype, &bytes));
    TUTTI_TRY(check_output(message));
    MessageOperation receive;
    receive.bind_recv(buffer, bytes, *(*found)->message);
    release(**communicator, matched);
    return tell_result(receive, (*communicator)->run(receive), message);
  });
}

extern "C" tutti_status_t tutti_imrecv(tutti_matched_t* matched, void* buffer, uint64_t count, tutti_dtype_t dtype,
                                       tutti_request_t* request) {
  return entry("tutti_imrecv", [&]() -> Status {
    Result<Communicator*> communicator(nullptr);
    Result<ClaimedMessage*> found = find_matched(matched, &communicator);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    uint64_t bytes = 0;
    TUTTI_TRY(check_buffer(buffer, "buffer", count, dtype, &bytes));
    const auto bind = [&](MessageOperation& receive) { receive.bind_recv(buffer, bytes, *(*found)->message); };
    TUTTI_TRY(start(**communicator, (*communicator)->prepare_message(bind), request));
    release(**communicator, matched);
    return Status();
  });
}
