// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/cost_model.hpp"

namespace tutti {

CostModel::CostModel(std::span<const uint32_t> node_of, const Price& near, const Price& far, double step_ns, const Crowd& crowd)
    : near_(near), far_(far), step_ns_(step_ns), switch_ns_(crowd.switch_ns), node_of_(node_of.begin(), node_of.end()) {
  const size_t size = node_of_.size();
  for (const uint32_t node : node_of_) node_count_ = std::max(node_count_, node + 1);
  std::vector<uint32_t> count(node_count_, 0);
  for (const uint32_t node : node_of_) ranks_per_node_ = std::max(ranks_per_node_, ++count[node]);
  for (size_t distance = 1; distance < size; distance *= 2) {
    std::fill(count.begin(), count.end(), 0);
    uint32_t most = 0;
    for (size_t rank = 0; rank < size; ++rank) {
      const uint32_t node = node_of_[rank];
      if (node_of_[(rank + distance) % size] != node) most = std::max(most, ++count[node]);
    }
    crossings_.push_back(most);
  }
  processors_ = crowd.cpus_per_rank * ranks_per_node_;
  if (crowd.cpus_per_rank >= 1) return;
  near_.latency_ns += crowd.wake_ns;
  far_.latency_ns += crowd.wake_ns;
}

CostModel CostModel::uniform(uint32_t size, const Price& price, double step_ns) {
  return {std::vector<uint32_t>(size, 0), price, price, step_ns};
}

// The one rank is busy with each message all the time, the others in turn.
double CostModel::star_ns(double bytes) const noexcept {
  const auto size = static_cast<double>(node_of_.size());
  const double beside = ranks_per_node_;
  return load(2) * (beside - 1) * (near_.message_ns + bytes * near_.ns_per_byte) +
         (size - beside) * (far_.message_ns + bytes * far_.ns_per_byte);
}

double CostModel::all_pairs_ns(double bytes) const noexcept {
  const auto size = static_cast<double>(node_of_.size());
  const double beside = ranks_per_node_;
  const double crowded = load(beside);
  const double passes_ns = std::max(beside * bytes * far_.ns_per_byte, crowded * bytes * near_.ns_per_byte);
  return crowded * (beside - 1) * near_.each_exchange_ns(bytes) + (size - beside) * (2 * crowded * far_.message_ns + passes_ns);
}

double CostModel::all_folds_ns(double bytes) const noexcept { return load(ranks_per_node_) * near_.fold_ns(bytes); }

}  // namespace tutti
