// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What a communicator is, and its context for embedders.
#include <cstring>

#include "call.hpp"
#include "user_types.hpp"

using namespace tutti;

namespace {

tutti_status_t query(const char* function, tutti_comm_t comm, int* result, const char* name,
                     uint32_t (Communicator::*what)() const noexcept) {
  return entry(function, [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!result) return null_argument(name);
    *result = static_cast<int>(((*found)->*what)());
    return Status();
  });
}

/// A context's handle; goes when the context goes.
struct ContextHandle {
  explicit ContextHandle(Context* context) : handle(handles().insert(HandleKind::context, context)) {}
  ~ContextHandle() { handles().remove(HandleKind::context, handle); }
  void* handle;
};

}  // namespace

extern "C" tutti_status_t tutti_comm_rank(tutti_comm_t comm, int* rank) {
  return query("tutti_comm_rank", comm, rank, "rank", &Communicator::rank);
}

extern "C" tutti_status_t tutti_comm_size(tutti_comm_t comm, int* size) {
  return query("tutti_comm_size", comm, size, "size", &Communicator::size);
}

extern "C" tutti_status_t tutti_comm_local_rank(tutti_comm_t comm, int* local_rank) {
  return query("tutti_comm_local_rank", comm, local_rank, "local_rank", &Communicator::local_rank);
}

extern "C" tutti_status_t tutti_comm_local_size(tutti_comm_t comm, int* local_size) {
  return query("tutti_comm_local_size", comm, local_size, "local_size", &Communicator::local_size);
}

extern "C" tutti_status_t tutti_comm_get_algorithm(tutti_comm_t comm, const char* collective, uint64_t bytes, tutti_dtype_t dtype,
                                                   tutti_op_t op, char* algorithm, size_t capacity_bytes) {
  return entry("tutti_comm_get_algorithm", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!collective) return null_argument("collective");
    if (!algorithm) return null_argument("algorithm");
    const Result<Collective> which = parse_collective(collective);
    if (!which) return which.status();
    CollectiveArguments arguments;
    arguments.collective = *which;
    TUTTI_TRY(take_type(dtype, &arguments));
    if (reduces(*which)) TUTTI_TRY(take_operation(op, dtype, &arguments));
    arguments.count = bytes / (uint64_t{arguments.element_bytes} * (has_blocks(*which) ? (*found)->size() : 1));
    const Result<std::string> text = (*found)->algorithm_for(arguments);
    if (!text) return text.status();
    if (text->size() >= capacity_bytes)
      return error(TUTTI_ERR_TRUNCATED, "capacity_bytes is {}; '{}' has {} characters and a zero", capacity_bytes, *text,
                   text->size());
    std::memcpy(algorithm, text->c_str(), text->size() + 1);
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_get_context(tutti_comm_t comm, tutti_context_t* context) {
  return entry("tutti_comm_get_context", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!context) return null_argument("context");
    Context* owner = (*found)->context().get();
    const std::shared_ptr<void>& attached = owner->attachment([owner] { return std::make_shared<ContextHandle>(owner); });
    *context = static_cast<tutti_context_t>(static_cast<ContextHandle*>(attached.get())->handle);
    return Status();
  });
}

extern "C" tutti_status_t tutti_context_get_fd(tutti_context_t context, int* fd) {
  return entry("tutti_context_get_fd", [&]() -> Status {
    Result<Context*> found = find_context(context);
    if (!found) return found.status();
    if (!fd) return null_argument("fd");
    if ((*found)->config().flag(Setting::control_thread))
      return error(TUTTI_ERR_UNSUPPORTED,
                   "the control thread sleeps on the descriptor; create the communicator with the setting control_thread=off");
    *fd = (*found)->engine().fd();
    return Status();
  });
}

extern "C" tutti_status_t tutti_context_progress(tutti_context_t context) {
  return entry("tutti_context_progress", [&]() -> Status {
    Result<Context*> found = find_context(context);
    if (!found) return found.status();
    (*found)->engine().progress_and_arm();
    return Status();
  });
}

extern "C" tutti_status_t tutti_context_get_counter(tutti_context_t context, size_t index, const char** name, uint64_t* value) {
  return entry("tutti_context_get_counter", [&]() -> Status {
    Result<Context*> found = find_context(context);
    if (!found) return found.status();
    if (!name) return null_argument("name");
    if (!value) return null_argument("value");
    uint64_t number = 0;
    const char* text = (*found)->counter(index, &number);
    if (!text) return error(TUTTI_ERR_ARGUMENT, "there is no counter {}", index);
    *name = text;
    *value = number;
    return Status();
  });
}
