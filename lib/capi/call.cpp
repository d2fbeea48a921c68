// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tutti {
namespace {

/// Plain storage: a thread may end after the library was unloaded.
thread_local char last_error[1024];

Status forked() {
  return error(TUTTI_ERR_FORKED,
               "this is a forked child; the handle belongs to its parent. Create one here, after exec or from another id");
}

Status bad_handle(const char* kind, const void* handle) {
  if (!handle) return error(TUTTI_ERR_HANDLE, "the {} handle is NULL", kind);
  return error(TUTTI_ERR_HANDLE, "{} is not a live {} handle: destroyed already, or of another kind", handle, kind);
}

}  // namespace

tutti_status_t report(const char* function, tutti_status_t code, std::string_view message) noexcept {
  const std::string_view name(function);
  size_t at = 0;
  const auto append = [&](std::string_view text) {
    const size_t fits = std::min(text.size(), sizeof last_error - 1 - at);
    std::memcpy(last_error + at, text.data(), fits);
    at += fits;
  };
  append(name);
  append(": ");
  append(message);
  last_error[at] = '\0';
  return code;
}

Result<ConfigObject*> find_config(tutti_config_t handle) {
  auto* config = static_cast<ConfigObject*>(handles().find(HandleKind::config, handle));
  if (!config) return bad_handle("configuration", handle);
  if (config->process_id != ::getpid()) return forked();
  return config;
}

Result<Communicator*> find_communicator(tutti_comm_t handle) {
  if (Communicator* communicator = live_communicator(handle)) return communicator;
  return handles().find(HandleKind::communicator, handle) == nullptr ? bad_handle("communicator", handle) : forked();
}

Result<Request*> find_request(tutti_request_t handle) {
  if (Request* request = live_request(handle)) return request;
  return handles().find(HandleKind::request, handle) == nullptr ? bad_handle("request", handle) : forked();
}

Result<Context*> find_context(tutti_context_t handle) {
  auto* context = static_cast<Context*>(handles().find(HandleKind::context, handle));
  if (!context) return bad_handle("context", handle);
  if (context->in_forked_child()) return forked();
  return context;
}

Result<GroupObject*> find_group(tutti_group_t handle) {
  auto* group = static_cast<GroupObject*>(handles().find(HandleKind::group, handle));
  if (!group) return bad_handle("group", handle);
  if (group->context->in_forked_child()) return forked();
  return group;
}

Status null_argument(const char* name) { return error(TUTTI_ERR_ARGUMENT, "{} is NULL", name); }

Status give_handle(Result<Request*> prepared, tutti_request_t* request) {
  if (!prepared) return prepared.status();
  try {
    *request = static_cast<tutti_request_t>(handles().insert(HandleKind::request, *prepared));
  } catch (...) {
    (*prepared)->release();
    throw;
  }
  return Status();
}

Status start(Communicator& communicator, Result<Request*> prepared, tutti_request_t* request) {
  Request* started = prepared ? *prepared : nullptr;
  tutti_request_t handle = nullptr;
  TUTTI_TRY(give_handle(std::move(prepared), &handle));
  communicator.start(*started);
  *request = handle;
  return Status();
}

}  // namespace tutti

extern "C" const char* tutti_last_error(void) { return tutti::last_error; }
