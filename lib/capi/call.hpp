// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "base/config.hpp"
#include "base/status.hpp"
#include "comm/call_group.hpp"
#include "comm/communicator.hpp"
#include "comm/request.hpp"
#include "handles.hpp"

namespace tutti {

/// Keeps the message for tutti_last_error of this thread; returns the code.
tutti_status_t report(const char* function, tutti_status_t code, std::string_view message) noexcept;

/// The body of every entry: nothing is thrown across the C ABI.
template <class Body>
tutti_status_t entry(const char* function, Body&& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? TUTTI_OK : report(function, status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return report(function, TUTTI_ERR_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return report(function, TUTTI_ERR_INTERNAL, e.what());
  } catch (...) {
    return report(function, TUTTI_ERR_INTERNAL, "an exception of unknown type");
  }
}

/// Settings, and the process that made them.
struct ConfigObject {
  Config config;
  int process_id;
};

/// A group, and the communicator that it was begun for.
struct GroupObject {
  std::shared_ptr<CallGroup> calls;
  tutti_comm_t communicator;
  std::shared_ptr<Context> context;
};

Result<ConfigObject*> find_config(tutti_config_t handle);
Result<Communicator*> find_communicator(tutti_comm_t handle);
Result<Request*> find_request(tutti_request_t handle);
Result<Context*> find_context(tutti_context_t handle);
Result<GroupObject*> find_group(tutti_group_t handle);

/// The usual case of find_communicator and find_request, in few instructions; nullptr: they say what is wrong.
inline Communicator* live_communicator(const void* handle) noexcept {
  auto* communicator = static_cast<Communicator*>(handles().find(HandleKind::communicator, handle));
  return communicator && !communicator->context()->in_forked_child() ? communicator : nullptr;
}
inline Request* live_request(const void* handle) noexcept {
  auto* request = static_cast<Request*>(handles().find(HandleKind::request, handle));
  return request && !request->context->in_forked_child() ? request : nullptr;
}

Status null_argument(const char* name);

/// Gives a call its handle.
Status give_handle(Result<Request*> prepared, tutti_request_t* request);
/// Gives a call its handle and starts it, in this order: afterwards nothing can fail.
Status start(Communicator& communicator, Result<Request*> prepared, tutti_request_t* request);

}  // namespace tutti
