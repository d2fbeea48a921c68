// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "kernels/kernels.hpp"

namespace tutti::test {

SimRank::SimRank(sim::World& in, uint32_t own_rank, uint32_t size, const tutti_tp_table_t* table)
    : world(in), rank(own_rank), fabric(own_rank, size), table_(table), clock_(in), log_(make_stderr_sink(), LogLevel::error) {
  host_.struct_size = sizeof host_;
  host_.abi_version = TUTTI_TP_ABI_VERSION;
  host_.host = this;
  host_.log = [](void*, int, const char*) {};
  host_.alloc = [](void*, size_t bytes, size_t alignment) { return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment); };
  host_.free = [](void*, void* memory) { std::free(memory); };
  host_.clock_ns = [](void* host) { return static_cast<SimRank*>(host)->world.now_ns(); };
  host_.random = [](void* host, void* bytes, size_t count) { static_cast<SimRank*>(host)->world.random(bytes, count); };
  host_.mac = [](void*, const void*, size_t, uint8_t mac[32]) { std::memset(mac, 7, 32); };
  host_.setting = [](void*, const char*) -> const char* { return nullptr; };
  host_.peer_gone = [](void* host, uint32_t peer, int cause, const char* text) {
    auto* self = static_cast<SimRank*>(host);
    if (self->engine) self->engine->on_peer_gone(peer, cause, text);
  };
  host_.notified = [](void* host, uint32_t peer, const void* notice, size_t bytes) {
    auto* self = static_cast<SimRank*>(host);
    if (self->engine) self->engine->on_notice(peer, notice, bytes);
  };
  tutti_tp_open_t args{};
  args.struct_size = sizeof args;
  args.rank = rank;
  args.size = size;
  args.host_identity = "sim";
  args.bind_addresses = "";
  args.host = &host_;
  args.world = &world;
  if (table->open(&args, &endpoint) != TUTTI_OK) throw std::runtime_error("sim endpoint");
  address.resize(TUTTI_TP_ADDRESS_MAX_BYTES);
  size_t bytes = 0;
  table->address(endpoint, address.data(), address.size(), &bytes);
  address.resize(bytes);
  fabric.add_transport({table, endpoint});
  renew_engine(clock_);
}

void SimRank::renew_engine(const Clock& clock) {
  EngineOptions options;
  options.clock = &clock;
  options.log = &log_;
  engine = std::make_unique<Engine>(fabric, options);
  if (!engine->open().ok()) throw std::runtime_error("engine");
}

SimRank::~SimRank() {
  if (endpoint) table_->close(endpoint);
}

void SimRank::set_peers(const std::vector<std::string>& addresses) {
  for (uint32_t r = 0; r < addresses.size(); ++r) table_->set_peer(endpoint, r, addresses[r].data(), addresses[r].size());
}

void SimRank::choose_routes() {
  for (uint32_t r = 0; r < fabric.size(); ++r) {
    tutti_tp_link_t link{};
    link.struct_size = sizeof link;
    if (r == rank || table_->link(endpoint, r, &link) != TUTTI_OK) continue;
    PeerRoute route;
    route.transport = 0;
    route.carrier = link.caps & TUTTI_TP_CAP_SLOTS ? Carrier::slots : Carrier::messages;
    route.slot_bytes = link.slot_bytes;
    fabric.set_route(r, route);
  }
}

SimJob::SimJob(uint64_t seed, sim::Options options, const tutti_tp_table_t* table) : world(seed, options), table_(table) {
  std::vector<std::string> addresses;
  for (uint32_t r = 0; r < options.size; ++r) {
    ranks.push_back(std::make_unique<SimRank>(world, r, options.size, table_));
    addresses.push_back(ranks.back()->address);
  }
  for (auto& rank : ranks) rank->set_peers(addresses);
  for (auto& rank : ranks)
    for (int tries = 0; table_->start(rank->endpoint) == TUTTI_TP_AGAIN; ++tries) {
      if (tries > 1000) throw std::runtime_error("sim start");
      table_->progress(rank->endpoint);
      world.step();
    }
  for (auto& rank : ranks) rank->choose_routes();
}

SimJob::~SimJob() = default;

Capabilities SimJob::capabilities(uint32_t rank) const {
  Capabilities result;
  result.max_segment_bytes = 4096;
  for (uint32_t r = 0; r < size(); ++r) result.carrier.push_back(ranks[rank]->fabric.route(r).carrier);
  return result;
}

void SimJob::poke(SimRank& rank) {
  if (rank.dead) return;
  around_engine(true);
  const std::optional<uint64_t> next = rank.engine->progress_and_arm();
  around_engine(false);
  if (!next || *next == Deadline::kNever) return;
  // The engine's timer; one that is set already and comes earlier sets the next one.
  const uint64_t at = std::max(*next, world.now_ns() + 1);
  if (rank.timer_ns <= at && rank.timer_ns > world.now_ns()) return;
  rank.timer_ns = at;
  world.call_at(at, [this, self = &rank] { poke(*self); });
}

bool SimJob::drive(const std::function<bool()>& done, uint64_t limit_ns) {
  const uint64_t limit = world.now_ns() + limit_ns;
  for (auto& rank : ranks) poke(*rank);
  while (!done()) {
    if (world.now_ns() > limit || !world.step()) return done();
    for (auto& rank : ranks)
      if (!rank->dead && world.take_awake(rank->rank)) poke(*rank);
  }
  return true;
}

void SimJob::crash(uint32_t rank) {
  ranks[rank]->dead = true;
  world.crash(rank);
}

void SimJob::leave(uint32_t rank) {
  ranks[rank]->dead = true;
  table_->close(ranks[rank]->endpoint);
  ranks[rank]->endpoint = nullptr;
}

SimComm::SimComm(SimJob& job, uint64_t id, std::vector<uint32_t> members)
    : job_(job), members_(std::move(members)), plans_(members_.size()) {
  for (uint32_t r = 0; r < size(); ++r) {
    groups_.push_back(std::make_unique<Group>(job.ranks[members_[r]]->fabric, id << 16, r, members_));
    engine(r).add(*groups_.back());
  }
}

SimComm::~SimComm() {
  for (uint32_t r = 0; r < size(); ++r) leave(r);
}

void SimComm::leave(uint32_t rank) {
  if (!groups_[rank]) return;
  if (job_.ranks[members_[rank]]->endpoint) engine(rank).remove(*groups_[rank]);
  groups_[rank].reset();
}

Plan& SimComm::plan(uint32_t rank, const CallSignature& call, const char* algorithm) {
  std::unique_ptr<Plan>& known = plans_[rank][{call.collective, call.root, algorithm}];
  if (known) return *known;
  const AlgorithmInfo* info = find_algorithm(call.collective, algorithm);
  if (!info) throw std::runtime_error("no such algorithm");
  PlanRequest request;
  request.shape = Shape::flat(size());
  request.rank = rank;
  request.root = call.root;
  request.in_place = true;
  for (const ParameterInfo& parameter : info->parameters) request.parameters.push_back(parameter.default_value);
  const Capabilities all = job_.capabilities(members_[rank]);
  Capabilities own;
  own.max_segment_bytes = all.max_segment_bytes;
  for (const uint32_t member : members_) own.carrier.push_back(all.carrier[member]);
  Result<std::unique_ptr<Plan>> made = Plan::create(lower(info->build(request), own), groups_[rank]->channels());
  if (!made) throw std::runtime_error(std::string(made.status().message()));
  known = std::move(*made);
  return *known;
}

void SimComm::prepare_allreduce(uint32_t rank, std::vector<int64_t>& values, const char* algorithm,
                                CollectiveOperation& operation, Deadline deadline) {
  CallSignature call;
  call.collective = Collective::allreduce;
  call.dtype = DType::i64;
  call.count = values.size();
  prepare(rank, call, values.data(), algorithm, operation, deadline);
}

void SimComm::prepare(uint32_t rank, const CallSignature& call, void* data, const char* algorithm,
                      CollectiveOperation& operation, Deadline deadline) {
  Bindings bindings;
  bindings.input = bindings.output = data;
  bindings.lengths.count = call.count;
  bindings.element_bytes = static_cast<uint32_t>(size_bytes(call.dtype));
  bindings.fold = fold_function(call.dtype, call.op, CpuLevel::scalar);
  operation.reset(deadline);
  operation.bind(plan(rank, call, algorithm), bindings, call);
}

void SimComm::send(uint32_t rank, const void* data, uint64_t bytes, uint32_t peer, int32_t tag, MessageOperation& operation,
                   Deadline deadline) {
  operation.reset(deadline);
  operation.bind_send(data, bytes, peer, tag);
  engine(rank).submit(*groups_[rank], operation);
}

void SimComm::recv(uint32_t rank, void* data, uint64_t bytes, uint32_t peer, int32_t tag, MessageOperation& operation,
                   Deadline deadline) {
  operation.reset(deadline);
  operation.bind_recv(data, bytes, peer, tag);
  engine(rank).submit(*groups_[rank], operation);
}

}  // namespace tutti::test
