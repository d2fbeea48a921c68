// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

using namespace tutti;

namespace {

/// Of a completed request: its result. The handle is gone afterwards.
Status release(tutti_request_t* handle, Request& request) {
  Status result = request.operation().result();
  handles().remove(HandleKind::request, *handle);
  *handle = nullptr;
  request.release();
  return result;
}

Status wait_one(tutti_request_t* handle) {
  Result<Request*> found = find_request(*handle);
  if (!found) return found.status();
  (*found)->context->engine().wait((*found)->operation());
  return release(handle, **found);
}

}  // namespace

extern "C" tutti_status_t tutti_test(tutti_request_t* request, int* done) {
  return entry("tutti_test", [&]() -> Status {
    if (!request) return null_argument("request");
    if (!done) return null_argument("done");
    Result<Request*> found = find_request(*request);
    if (!found) return found.status();
    if (!(*found)->operation().done()) (*found)->context->engine().poke();
    *done = (*found)->operation().done() ? 1 : 0;
    return *done ? release(request, **found) : Status();
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
      Status status = requests[i] ? wait_one(&requests[i]) : Status();
      if (statuses) statuses[i] = status.code();
      if (first.ok() && !status.ok()) first = status.with_context(fmt::format("request {}", i));
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
    if ((*found)->operation().give_up()) (*found)->release();
    return Status();
  });
}
