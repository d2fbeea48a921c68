// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "comm/call_group.hpp"
#include "schedule/algorithm.hpp"

namespace tutti {
namespace {

CpuLevel cpu_level(const Config& config) {
  const std::string& wish = config.choice(Setting::cpu);
  const CpuLevel detected = detected_cpu_level();
  if (wish == "scalar") return CpuLevel::scalar;
  if (wish == "sse4") return std::min(detected, CpuLevel::sse4);
  return detected;
}

/// Ids of a context's communicators differ with overwhelming probability (48 bits), and all members compute the same one.
uint64_t child_id(uint64_t parent, uint64_t split, uint32_t color) {
  uint64_t x = parent ^ (split * 0x9e3779b97f4a7c15u) ^ (uint64_t{color} << 1 | 1);
  for (int round = 0; round < 2; ++round) {  // finaliser of MurmurHash3
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    x ^= x >> 33;
  }
  return x << 16;
}

/// Ranks that chose differently would run programs that do not fit together.
uint32_t hash_of(const Choice& choice, const Shape& shape) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (const char letter : choice.algorithm->name) add(static_cast<uint8_t>(letter));
  for (const uint64_t parameter : choice.parameters) add(parameter);
  add(shape.size);
  for (const std::vector<uint32_t>& level : shape.group_of) {
    for (const uint32_t group : level) add(group);
  }
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

class BusyFlag {
 public:
  explicit BusyFlag(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~BusyFlag() {
    if (mine_) flag_.store(false, std::memory_order_release);
  }
  bool mine() const noexcept { return mine_; }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

}  // namespace

Communicator::Communicator(std::shared_ptr<Context> context, uint64_t id, uint32_t rank, std::vector<uint32_t> world_ranks,
                           uint64_t timeout_ns)
    : context_(std::move(context)),
      rank_(rank),
      world_ranks_(std::move(world_ranks)),
      timeout_ns_(timeout_ns),
      group_(context_->fabric(), id, rank, world_ranks_),
      cpu_level_(cpu_level(context_->config())),
      plans_(context_->config().count(Setting::schedule_cache)),
      deterministic_(context_->agreed(Setting::deterministic) == "on"),
      checks_(context_->agreed(Setting::check) == "full") {
  call_.remember_last();
}

Result<std::unique_ptr<Communicator>> Communicator::world(std::shared_ptr<Context> context, uint64_t timeout_ns) {
  std::vector<uint32_t> everybody(context->size());
  for (uint32_t r = 0; r < context->size(); ++r) everybody[r] = r;
  if (timeout_ns == 0) timeout_ns = context->config().duration_ns(Setting::timeout);
  const uint64_t id = context->world_id();
  const uint32_t rank = context->rank();
  std::unique_ptr<Communicator> result(new Communicator(std::move(context), id, rank, std::move(everybody), timeout_ns));
  TUTTI_TRY(result->prepare());
  TUTTI_TRY(result->agree_on_tuning());
  return result;
}

Communicator::~Communicator() { context_->engine().remove(group_); }

Status Communicator::prepare() {
  const Topology& topology = context_->topology();
  const auto here = [&](uint32_t world_rank) { return topology.node(world_rank) == topology.node(world_ranks_[rank_]); };
  local_size_ = static_cast<uint32_t>(std::count_if(world_ranks_.begin(), world_ranks_.end(), here));
  local_rank_ = static_cast<uint32_t>(std::count_if(world_ranks_.begin(), world_ranks_.begin() + rank_, here));
  std::map<uint32_t, uint32_t> nodes;  // number in the topology -> one from 0, in order of the lowest rank
  std::vector<uint32_t> node_of;
  for (const uint32_t world_rank : world_ranks_) {
    node_of.push_back(nodes.emplace(topology.node(world_rank), static_cast<uint32_t>(nodes.size())).first->second);
  }
  node_count_ = static_cast<uint32_t>(nodes.size());
  Shape shape = Shape::flat(size());
  for (NestingLevel& level : nesting_of(topology, world_ranks_)) {
    context_->log().debug("{} ranks in {} groups by {}", size(), level.group_count(), level.name);
    shape.group_of.push_back(std::move(level.group_of));
  }
  Selector::Overrides overrides;
  for (uint32_t c = 0; c < kCollectiveCount; ++c) overrides[c] = context_->agreed(kAlgorithmSettings[c]);
  const CostModel model = cost_model(node_of, context_->node_slots(), cpus_per_rank(context_->found_topology(), world_ranks_));
  selector_ = std::make_unique<Selector>(std::move(shape), model, std::move(overrides));
  TUTTI_TRY(selector_->check());
  use_tuning();
  capabilities_.max_segment_bytes = context_->max_segment_bytes();
  for (const uint32_t world_rank : world_ranks_) capabilities_.carrier.push_back(context_->fabric().route(world_rank).carrier);
  context_->engine().add(group_);
  return Status();
}

Result<const SelectionRow*> Communicator::row_for(const CollectiveArguments& arguments, CountRange* range) {
  const bool prefix = arguments.collective == Collective::scan || arguments.collective == Collective::exscan;
  const bool deterministic = deterministic_ && folds_inexactly(arguments);
  // A prefix has no association that all algorithms share: in deterministic mode one of them serves all sizes.
  const bool by_user = arguments.user_fold.function != nullptr;
  const Requirements required{arguments.uneven, arguments.ordered, deterministic && !prefix,
                              by_user ? TypeClass::user : type_class(arguments.dtype)};
  const Result<std::span<const SelectionRow>> table = selector_->table(arguments.collective, required);
  if (!table) return table.status();
  const SelectionRow& row = select(*table, deterministic && prefix ? 0 : vector_bytes(arguments, size()));
  if (range != nullptr) {
    const uint64_t unit = arguments.element_bytes * (has_blocks(arguments.collective) ? uint64_t{size()} : 1);
    const uint64_t below = &row == table->data() ? 0 : (&row)[-1].up_to_bytes / unit + 1;
    *range = deterministic && prefix ? CountRange{0, UINT64_MAX} : CountRange{below, row.up_to_bytes / unit};
  }
  return &row;
}

Result<std::string> Communicator::algorithm_for(const CollectiveArguments& arguments) {
  Result<std::string> text = std::string();
  context_->engine().exclusively([&] {
    const Result<const SelectionRow*> row = row_for(arguments);
    text = row ? describe(*(*row)->choice.algorithm, (*row)->choice.parameters) : Result<std::string>(row.status());
  });
  return text;
}

Result<const std::shared_ptr<Plan>*> Communicator::plan_for(const CollectiveArguments& arguments, bool in_place,
                                                            CountRange* range) {
  const Result<const SelectionRow*> found = row_for(arguments, range);
  if (!found) return found.status();
  const SelectionRow& row = **found;
  const PlanCache::Key key{arguments.collective, in_place, row.number, arguments.root};
  if (const std::shared_ptr<Plan>* known = plans_.find(key)) return known;
  PlanRequest request;
  request.shape = selector_->shape();
  request.rank = rank_;
  request.root = arguments.root;
  request.in_place = in_place;
  request.parameters = row.choice.parameters;
  context_->log().debug("{} of {} bytes: {}", name(arguments.collective), vector_bytes(arguments, size()),
                         row.choice.reason);
  Result<std::unique_ptr<Plan>> plan = Plan::create(lower(row.choice.algorithm->build(request), capabilities_), group_.channels(),
                                                    hash_of(row.choice, request.shape));
  if (!plan) return plan.status();
  return plans_.insert(key, std::move(*plan));
}

Bindings Communicator::bindings(const CollectiveArguments& arguments) const {
  Bindings result;
  result.input = arguments.input;
  result.output = arguments.output;
  result.lengths = lengths_of(arguments, size());
  if (arguments.input_places != nullptr) result.input_places = {arguments.input_places, size()};
  if (arguments.output_places != nullptr) result.output_places = {arguments.output_places, size()};
  result.element_bytes = arguments.element_bytes;
  if (arguments.user_fold.function != nullptr) {
    result.fold = &UserFold::fold;
    result.fold_context = &arguments.user_fold;
  } else if (reduces(arguments.collective)) {
    result.fold = fold_function(arguments.dtype, arguments.op, cpu_level_);
    if (arguments.op == Op::avg) result.divisor = size();
  }
  return result;
}

// ---- calls ------------------------------------------------------------------------------------------------------------

Status Communicator::run(const CollectiveArguments& arguments) {
  if (group_.failed()) return group_.failure();
  const BusyFlag flag(calling_);
  if (!flag.mine())
    return error(TUTTI_ERR_CONCURRENT,
                 "another thread is in a collective call of this communicator; order the calls or use one communicator each");
  CollectiveCall& call = checks_ ? checked_call_ : call_;
  call.prepare(*this, arguments, deadline());
  context_->engine().run(group_, call);
  return copy_of(call.result());
}

Result<Request*> Communicator::prepare(const CollectiveArguments& arguments, bool persistent) {
  if (group_.failed()) return group_.failure();
  Request* request = context_->requests().take(context_);
  request->is_persistent = persistent;
  request->become_collective(checks_);
  request->call().keep_plan(persistent);
  request->call().prepare(*this, arguments, deadline());
  return request;
}

Result<Request*> Communicator::launch(const std::shared_ptr<CallGroup>& group) {
  if (group_.failed()) return group_.failure();
  Request* request = context_->requests().take(context_);
  try {
    group->prepare(*request, deadline());
  } catch (...) {
    request->release();
    throw;
  }
  request->become_group(group);
  return request;
}

Status Communicator::run(MessageOperation& message) {
  message.reset(deadline());
  context_->engine().run(group_, message);
  return copy_of(message.result());
}

Status Communicator::run_both(MessageOperation& first, MessageOperation& second) {
  first.reset(deadline());
  second.reset(deadline());
  context_->engine().run_both(group_, first, second);
  return copy_of(first.result().ok() ? second.result() : first.result());
}

// Everybody learns everybody's colour and key through one small allreduce: each contributes its own two numbers and zeros.
Result<std::unique_ptr<Communicator>> Communicator::split(int32_t color, int32_t key) {
  std::vector<int32_t> all(size_t{2} * size(), 0);
  std::vector<std::tuple<int32_t, uint32_t>> members;  // key, old rank
  std::vector<uint32_t> world_ranks;
  members.reserve(size());  // once all have met, nothing may fail that others do not hear of
  world_ranks.reserve(size());
  all[size_t{2} * rank_] = color;
  all[size_t{2} * rank_ + 1] = key;
  CollectiveArguments arguments;
  arguments.collective = Collective::allreduce;
  arguments.input = all.data();
  arguments.output = all.data();
  arguments.in_place = true;
  arguments.count = all.size();
  arguments.dtype = DType::i32;
  arguments.element_bytes = sizeof(int32_t);
  Status met = run(arguments);
  if (met.code() == TUTTI_ERR_CONCURRENT) return met;
  const uint64_t split = ++split_count_;
  if (!met.ok()) {
    // Others may have had success, and wait in the new communicator for this rank.
    if (color >= 0) context_->engine().never_made(child_id(group_.id(), split, static_cast<uint32_t>(color)), world_ranks_);
    return met;
  }
  if (color < 0) return std::unique_ptr<Communicator>();
  for (uint32_t r = 0; r < size(); ++r)
    if (all[size_t{2} * r] == color) members.emplace_back(all[size_t{2} * r + 1], r);
  std::sort(members.begin(), members.end());
  uint32_t rank = 0;
  for (const auto& [member_key, old_rank] : members) {
    if (old_rank == rank_) rank = static_cast<uint32_t>(world_ranks.size());
    world_ranks.push_back(world_ranks_[old_rank]);
  }
  return make_part(child_id(group_.id(), split, static_cast<uint32_t>(color)), rank, world_ranks);
}

/// What others of the same colour make as well.
Result<std::unique_ptr<Communicator>> Communicator::make_part(uint64_t id, uint32_t rank,
                                                              const std::vector<uint32_t>& world_ranks) {
  try {
    std::unique_ptr<Communicator> part(new Communicator(context_, id, rank, world_ranks, timeout_ns_));
    const Status prepared = part->prepare();
    if (prepared.ok()) return part;
    context_->engine().failed_to_make(id, world_ranks, prepared.code());
    return prepared;
  } catch (const std::bad_alloc&) {
    context_->engine().failed_to_make(id, world_ranks, TUTTI_ERR_MEMORY);
    throw;
  }
}

}  // namespace tutti
