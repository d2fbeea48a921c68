// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Communicators come and go.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "builtin.hpp"
#include "call.hpp"
#include "messages.hpp"

using namespace tutti;

namespace {

/// Copies a caller's structure of an older or newer version: what it has and we know; the rest is zero.
template <class Struct>
Status copy_struct(const Struct* from, Struct* to, const char* name) {
  *to = Struct{};
  if (!from) return Status();
  if (from->struct_size < sizeof(size_t) || from->struct_size > 4096)
    return error(TUTTI_ERR_ARGUMENT, "{}.struct_size is {}: fill the structure with its _init function first", name,
                 from->struct_size);
  std::memcpy(to, from, std::min(from->struct_size, sizeof(Struct)));
  to->struct_size = sizeof(Struct);
  return Status();
}

struct Prepared {
  ContextOptions context;
  uint64_t timeout_ns = 0;
};

Status prepare(const tutti_comm_options_t* options, Prepared* result) {
  tutti_comm_options_t copy;
  TUTTI_TRY(copy_struct(options, &copy, "options"));
  if (copy.timeout_ms < 0) return error(TUTTI_ERR_ARGUMENT, "timeout_ms is {}; give 0 (the setting) or more", copy.timeout_ms);
  constexpr uint64_t kMsNs = 1'000'000;
  const auto timeout_ms = static_cast<uint64_t>(copy.timeout_ms);
  result->timeout_ns = timeout_ms > UINT64_MAX / kMsNs ? UINT64_MAX : timeout_ms * kMsNs;
  if (copy.config) {
    Result<ConfigObject*> config = find_config(copy.config);
    if (!config) return config.status().with_context("options.config");
    result->context.config = (*config)->config;
  }
  TUTTI_TRY(result->context.config.load_environment(environ, &result->context.warning));
  tutti_hooks_t hooks;
  TUTTI_TRY(copy_struct(copy.hooks, &hooks, "hooks"));
  if ((hooks.alloc == nullptr) != (hooks.free == nullptr))
    return error(TUTTI_ERR_ARGUMENT, "the hooks alloc and free come together or not at all");
  if ((hooks.thread_start == nullptr) != (hooks.thread_join == nullptr))
    return error(TUTTI_ERR_ARGUMENT, "the hooks thread_start and thread_join come together or not at all");
  result->context.hooks = Hooks(hooks);
  result->context.built_in = built_in_transports();
  return Status();
}

Status check_place(int size, int rank) {
  if (size < 1) return error(TUTTI_ERR_ARGUMENT, "size is {}; a communicator has at least one rank", size);
  if (rank < 0 || rank >= size) return error(TUTTI_ERR_RANK, "rank is {}, outside [0, {})", rank, size);
  return Status();
}

Status create(Prepared prepared, tutti_comm_t* comm) {
  Result<std::shared_ptr<Context>> context = Context::create(std::move(prepared.context));
  if (!context) return context.status();
  Result<std::unique_ptr<Communicator>> communicator = Communicator::world(std::move(*context), prepared.timeout_ns);
  if (!communicator) return communicator.status();
  *comm = static_cast<tutti_comm_t>(handles().insert(HandleKind::communicator, communicator->get()));
  communicator->release();
  return Status();
}

// ---- unique ids ---------------------------------------------------------------------------------------------------------

/// Serves a unique id's rendezvous, with all that it needs. In the handle table until a communicator of this process adopts it.
struct IdServer {
  Config config;
  Hooks hooks;
  Log log{make_stderr_sink(), LogLevel::warn, "tutti id"};
  SystemRandom random;
  std::unique_ptr<Network> network = make_system_network();
  SystemClock clock;
  UniqueIdHost served;
  int process_id = ::getpid();

  ~IdServer() {
    if (!served.host || process_id != ::getpid()) return;
    if (!served.host->finished())
      served.host->linger(Deadline::after(clock, config.duration_ns(Setting::bootstrap_timeout)));
  }
};

/// The server of this id, if this process made it and nobody adopted it yet; drops those whose job has met.
std::shared_ptr<void> adopt_server(const tutti_unique_id_t* id) {
  const auto wanted = [&](const IdServer& server) { return id && std::memcmp(&server.served.id, id, sizeof *id) == 0; };
  // Under the table's lock, since another thread may be about to take and to delete the same.
  const auto ripe = [&](const void* object) {
    const auto& server = *static_cast<const IdServer*>(object);
    return server.process_id == ::getpid() && (wanted(server) || server.served.host->finished());
  };
  std::shared_ptr<void> adopted;
  while (void* object = handles().remove_if(HandleKind::unique_id, ripe)) {
    std::shared_ptr<IdServer> owned(static_cast<IdServer*>(object));
    if (wanted(*owned)) adopted = std::move(owned);
  }
  return adopted;
}

}  // namespace

extern "C" tutti_status_t tutti_hooks_init(tutti_hooks_t* hooks) {
  return entry("tutti_hooks_init", [&]() -> Status {
    if (!hooks) return null_argument("hooks");
    *hooks = tutti_hooks_t{};
    hooks->struct_size = sizeof *hooks;
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_options_init(tutti_comm_options_t* options) {
  return entry("tutti_comm_options_init", [&]() -> Status {
    if (!options) return null_argument("options");
    *options = tutti_comm_options_t{};
    options->struct_size = sizeof *options;
    return Status();
  });
}

extern "C" tutti_status_t tutti_store_init(tutti_store_t* store) {
  return entry("tutti_store_init", [&]() -> Status {
    if (!store) return null_argument("store");
    *store = tutti_store_t{};
    store->struct_size = sizeof *store;
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_create(const tutti_comm_options_t* options, tutti_comm_t* comm) {
  return entry("tutti_comm_create", [&]() -> Status {
    if (!comm) return null_argument("comm");
    Prepared prepared;
    TUTTI_TRY(prepare(options, &prepared));
    return create(std::move(prepared), comm);
  });
}

extern "C" tutti_status_t tutti_unique_id_create(const tutti_comm_options_t* options, tutti_unique_id_t* id) {
  return entry("tutti_unique_id_create", [&]() -> Status {
    if (!id) return null_argument("id");
    adopt_server(nullptr);
    Prepared prepared;
    TUTTI_TRY(prepare(options, &prepared));
    auto server = std::make_unique<IdServer>();
    server->config = prepared.context.config;
    server->hooks = prepared.context.hooks;
    if (server->hooks.has_log()) server->log = Log(server->hooks.log_sink(), LogLevel::warn, "tutti id");
    BootstrapOptions bootstrap;
    bootstrap.config = &server->config;
    bootstrap.log = &server->log;
    bootstrap.random = &server->random;
    bootstrap.network = server->network.get();
    bootstrap.environment = process_environment();
    bootstrap.start_thread = [hooks = &server->hooks](std::function<void()> body) { return hooks->start_thread(std::move(body)); };
    Result<UniqueIdHost> served = create_unique_id(bootstrap);
    if (!served) return served.status();
    server->served = std::move(*served);
    const tutti_unique_id_t made = server->served.id;
    handles().insert(HandleKind::unique_id, server.get());
    server.release();
    *id = made;
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_create_from_id(const tutti_unique_id_t* id, int size, int rank,
                                                    const tutti_comm_options_t* options, tutti_comm_t* comm) {
  return entry("tutti_comm_create_from_id", [&]() -> Status {
    if (!comm) return null_argument("comm");
    if (!id) return null_argument("id");
    TUTTI_TRY(check_place(size, rank));
    Prepared prepared;
    TUTTI_TRY(prepare(options, &prepared));
    prepared.context.unique_id = id;
    prepared.context.size = size;
    prepared.context.rank = rank;
    prepared.context.keep_alive = adopt_server(id);
    return create(std::move(prepared), comm);
  });
}

extern "C" tutti_status_t tutti_comm_create_from_store(const tutti_store_t* store, int size, int rank,
                                                       const tutti_comm_options_t* options, tutti_comm_t* comm) {
  return entry("tutti_comm_create_from_store", [&]() -> Status {
    if (!comm) return null_argument("comm");
    if (!store) return null_argument("store");
    TUTTI_TRY(check_place(size, rank));
    tutti_store_t copy;
    TUTTI_TRY(copy_struct(store, &copy, "store"));
    if (!copy.set || !copy.get || !copy.wait) return null_argument("store.set, store.get or store.wait");
    Prepared prepared;
    TUTTI_TRY(prepare(options, &prepared));
    prepared.context.store = &copy;
    prepared.context.size = size;
    prepared.context.rank = rank;
    return create(std::move(prepared), comm);
  });
}

extern "C" tutti_status_t tutti_comm_split(tutti_comm_t comm, int color, int key, tutti_comm_t* new_comm) {
  return entry("tutti_comm_split", [&]() -> Status {
    if (!new_comm) return null_argument("new_comm");
    Result<Communicator*> parent = find_communicator(comm);
    if (!parent) return parent.status();
    if (color < TUTTI_COLOR_NONE)
      return error(TUTTI_ERR_ARGUMENT, "color is {}; give 0 or more, or TUTTI_COLOR_NONE", color);
    Result<std::unique_ptr<Communicator>> child = (*parent)->split(color, key);
    if (!child) return child.status();
    if (!*child) {
      *new_comm = nullptr;
      return Status();
    }
    *new_comm = static_cast<tutti_comm_t>(handles().insert(HandleKind::communicator, child->get()));
    child->release();
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_set_algorithm(tutti_comm_t comm, const char* collective, const char* algorithm) {
  return entry("tutti_comm_set_algorithm", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!collective) return null_argument("collective");
    if (!algorithm) return null_argument("algorithm");
    const Result<Collective> which = parse_collective(collective);
    return which ? (*found)->set_algorithm(*which, algorithm) : which.status();
  });
}

extern "C" tutti_status_t tutti_comm_destroy(tutti_comm_t comm) {
  return entry("tutti_comm_destroy", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    release_messages(comm);
    delete static_cast<Communicator*>(handles().remove(HandleKind::communicator, comm));
    return Status();
  });
}

extern "C" tutti_status_t tutti_comm_abort(tutti_comm_t comm) {
  return entry("tutti_comm_abort", [&]() -> Status {
    Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    (*found)->abort();
    return Status();
  });
}
