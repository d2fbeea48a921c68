// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/staging.hpp"

#include <algorithm>
#include <cstring>

namespace tutti {
namespace {

bool folds_in_f32(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
}

bool widens(const CollectiveArguments& arguments, const Staging::Conditions& conditions) noexcept {
  return conditions.canonical && arguments.user_fold.function == nullptr && folds_in_f32(arguments.dtype);
}

void grow(std::vector<std::byte>& memory, uint64_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
}

}  // namespace

bool Staging::is_needed(const CollectiveArguments& arguments, const Conditions& conditions) noexcept {
  const bool in_place_alltoall = arguments.collective == Collective::alltoall && arguments.in_place;
  return in_place_alltoall || arguments.factor != 1 || widens(arguments, conditions);
}

bool Staging::must_join(const Bindings& bindings, const Plan& plan) noexcept {
  return (!bindings.input_places.empty() && plan.joins_blocks(BufferId::input)) ||
         (!bindings.output_places.empty() && plan.joins_blocks(BufferId::output));
}

uint64_t Staging::count_of(Cut cut, uint32_t block) const noexcept {
  const uint64_t* counts = cut == Cut::received ? arguments_.received_counts : arguments_.counts;
  return counts == nullptr ? arguments_.count : counts[block];
}

uint64_t Staging::elements(const Slice& window) const noexcept {
  if (window == kNothing) return 0;
  if (window.cut == Cut::even) return arguments_.count;
  uint64_t sum = 0;
  for (uint32_t block = window.first; block < window.last; ++block) sum += count_of(window.cut, block);
  return sum;
}

/// visit(memory of the caller's, elements before it where blocks follow each other, elements)
template <class Visit>
void Staging::each_block(const Layout& layout, Visit&& visit) const {
  const Slice& window = layout.window;
  if (layout.places == nullptr) {
    visit(layout.memory, uint64_t{0}, elements(window));
    return;
  }
  uint64_t before = 0;
  for (uint32_t block = window.first; block < window.last; ++block) {
    const uint64_t count = count_of(window.cut, block);
    visit(layout.memory + layout.places[block] * arguments_.element_bytes, before, count);
    before += count;
  }
}

void Staging::gather_input(const Layout& layout) {
  const uint64_t element_bytes = widens_ ? sizeof(float) : arguments_.element_bytes;
  grow(input_, elements(layout.window) * element_bytes);
  each_block(layout, [&](const std::byte* from, uint64_t before, uint64_t count) {
    std::byte* to = input_.data() + before * element_bytes;
    if (count == 0) return;
    if (widens_) {
      widen_to_f32(arguments_.dtype, reinterpret_cast<float*>(to), from, count, conditions_.level);
    } else {
      std::memcpy(to, from, count * element_bytes);
    }
  });
  if (arguments_.factor == 1) return;
  const DType type = widens_ ? DType::f32 : arguments_.dtype;
  scale(type, input_.data(), input_.data(), elements(layout.window), arguments_.factor, conditions_.level);
}

void Staging::before(const CollectiveArguments& arguments, const Conditions& conditions, Bindings& bindings) {
  arguments_ = arguments;
  conditions_ = conditions;
  widens_ = widens(arguments, conditions);
  const auto window_of = [&](BufferId buffer) {
    return window(arguments.collective, buffer, conditions.rank, arguments.root, conditions.size);
  };
  const Layout input{static_cast<std::byte*>(const_cast<void*>(arguments.input)), window_of(BufferId::input),
                     arguments.input_places};
  output_layout_ = {static_cast<std::byte*>(arguments.output), window_of(BufferId::output), arguments.output_places};
  const bool as_it_is = !widens_ && arguments.factor == 1 && input.places == nullptr && !arguments.in_place;
  if (input.window != kNothing && !as_it_is) {
    gather_input(input);
    bindings.input = input_.data();
    bindings.input_places = {};
  }
  // What only comes in can come in straight; the rest is brought there afterwards.
  const bool straight = !widens_ && bindings.output_places.empty();
  active_ = !straight && output_layout_.window != kNothing;
  if (active_) {
    grow(output_, elements(output_layout_.window) * (widens_ ? sizeof(float) : arguments.element_bytes));
    bindings.output = output_.data();
    bindings.output_places = {};
  }
  if (widens_) {
    bindings.element_bytes = sizeof(float);
    bindings.fold = fold_function(DType::f32, arguments.op, conditions.level);
  }
}

void Staging::after() noexcept {
  active_ = false;
  if (arguments_.collective == Collective::exscan && conditions_.rank == 0) return;  // it has no result
  each_block(output_layout_, [&](std::byte* to, uint64_t before, uint64_t count) {
    if (count == 0) return;
    if (widens_) {
      narrow_from_f32(arguments_.dtype, to, reinterpret_cast<const float*>(output_.data()) + before, count, conditions_.level);
    } else {
      std::memcpy(to, output_.data() + before * arguments_.element_bytes, count * arguments_.element_bytes);
    }
  });
}

}  // namespace tutti
