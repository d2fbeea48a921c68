// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

using namespace tutti;

namespace {

/// Of a completed request: its result. The handle is gone afterwards, unless the request is persistent.
Status release(tutti_request_t* handle, Request& request, const Operation& operation) {
  Status result = copy_of(operation.result());
  if (request.is_persistent) {
    request.is_active = false;
    return result;
  }
  handles().remove(HandleKind::request, *handle);
  *handle = nullptr;
  request.release();
  return result;
}

bool runs(const Request& request) { return !request.is_persistent || request.is_active; }

[[gnu::noinline]] Status wait_in_full(tutti_request_t* handle, Request* request) {
  if (!request) return find_request(*handle).status();
  if (!runs(*request)) return Status();
  Operation& operation = request->operation();
  if (!operation.done()) request->context->engine().wait(operation);
  return release(handle, *request, operation);
}

Status wait_one(tutti_request_t* handle) {
  Request* request = live_request(*handle);
  // A persistent call that has ended well, as it mostly has by now: kept apart from all that needs more registers.
  if (request && request->is_active && request->operation().done() && request->operation().result().ok()) {
    request->is_active = false;
    return Status();
  }
  return wait_in_full(handle, request);
}

/// The others are waited for even if there is no memory for what is wrong with this one.
Status wait_for_one_of_several(tutti_request_t* handle) noexcept {
  try {
    return wait_one(handle);
  } catch (const std::bad_alloc&) {
    return Status(TUTTI_ERR_MEMORY);
  }
}

Status of_request(const Status& status, size_t index) noexcept {
  try {
    return status.with_context(fmt::format("request {}", index));
  } catch (const std::bad_alloc&) {
    return Status(status.code());
  }
}

}  // namespace

extern "C" tutti_status_t tutti_test(tutti_request_t* request, int* done) {
  return entry("tutti_test", [&]() -> Status {
    if (!request) return null_argument("request");
    if (!done) return null_argument("done");
    Result<Request*> found = find_request(*request);
    if (!found) return found.status();
    if (!runs(**found)) {
      *done = 1;
      return Status();
    }
    if (!(*found)->operation().done()) (*found)->context->engine().poke();
    *done = (*found)->operation().done() ? 1 : 0;
    return *done ? release(request, **found, (*found)->operation()) : Status();
  });
}

extern "C" tutti_status_t tutti_wait(tutti_request_t* request) {
  return entry("tutti_wait", [&]() -> Status {
    if (!request) return null_argument("request");
    return wait_one(request);
  });
}

extern "C" tutti_status_t tutti_wait_all(size_t request_count, tutti_request_t* requests, tutti_status_t* statuses) {
  return entry("tutti_wait_all", [&]() -> Status {
    if (!requests && request_count > 0) return null_argument("requests");
    Status first;
    for (size_t i = 0; i < request_count; ++i) {
      const Status status = requests[i] ? wait_for_one_of_several(&requests[i]) : Status();
      if (statuses) statuses[i] = status.code();
      if (first.ok() && !status.ok()) first = of_request(status, i);
    }
    return first;
  });
}

extern "C" tutti_status_t tutti_request_free(tutti_request_t* request) {
  return entry("tutti_request_free", [&]() -> Status {
    if (!request) return null_argument("request");
    Result<Request*> found = find_request(*request);
    if (!found) return found.status();
    handles().remove(HandleKind::request, *request);
    *request = nullptr;
    if (!runs(**found) || (*found)->operation().give_up()) (*found)->release();
    return Status();
  });
}

namespace {

[[gnu::noinline]] Status cannot_start(tutti_request_t handle, const Request* request) {
  if (!request) return find_request(handle).status();
  if (!request->is_persistent) {
    return error(TUTTI_ERR_ARGUMENT, "the request runs since it was made; tutti_start is for those of tutti_..._init");
  }
  if (request->is_active) return error(TUTTI_ERR_ARGUMENT, "the request is running; wait for it before it is started again");
  return find_communicator(static_cast<tutti_comm_t>(const_cast<void*>(request->communicator))).status();
}

Status start_one(tutti_request_t handle) {
  Request* request = live_request(handle);
  if (!request || !request->is_persistent || request->is_active) return cannot_start(handle, request);
  // In this process, as the request is: both are of one context.
  auto* communicator = static_cast<Communicator*>(handles().find(HandleKind::communicator, request->communicator));
  if (!communicator) return cannot_start(handle, request);
  if (communicator->failed()) return communicator->failure();
  communicator->start_again(*request);
  request->is_active = true;
  return Status();
}

}  // namespace

extern "C" tutti_status_t tutti_start(tutti_request_t request) {
  return entry("tutti_start", [&] { return start_one(request); });
}

extern "C" tutti_status_t tutti_start_all(size_t request_count, const tutti_request_t* requests) {
  return entry("tutti_start_all", [&]() -> Status {
    if (!requests && request_count > 0) return null_argument("requests");
    for (size_t i = 0; i < request_count; ++i) {
      const Status started = start_one(requests[i]);
      if (!started.ok()) return of_request(started, i);
    }
    return Status();
  });
}
