// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#include <array>

namespace tutti {
namespace {

constexpr auto kAlgorithms = std::to_array<const AlgorithmInfo*>({
    &kAllreduceRecursiveDoubling,
    &kAllreduceRing,
    &kAllreduceTree,
    &kAllreduceBidirectionalRing,
    &kAllreduceDirect,
    &kAllreduceDoubleTree,
    &kAllreduceFlat,
    &kAllreduceHalving,
    &kAllreduceHierarchical,
    &kAllreduceHierarchicalAligned,
    &kAllreduceRecursiveMultiplying,
    &kAllreduceSwing,
    &kBroadcastBinomial,
    &kBroadcastChain,
    &kBroadcastHierarchical,
    &kBroadcastKnomial,
    &kBroadcastScatterAllgather,
    &kAllgatherBruck,
    &kAllgatherHierarchical,
    &kAllgatherLinear,
    &kAllgatherRecursiveDoubling,
    &kAllgatherRing,
    &kGatherBinomial,
    &kGatherLinear,
    &kScatterBinomial,
    &kScatterLinear,
    &kAlltoallBruck,
    &kAlltoallPairwise,
    &kAlltoallSpreadOut,
    &kBarrierDissemination,
    &kBarrierHierarchical,
    &kReduceBinomial,
    &kReduceTree,
    &kReduceHalving,
    &kReduceHierarchical,
    &kReduceHierarchicalAligned,
    &kReduceScatterRing,
    &kReduceScatterHalving,
    &kReduceScatterHalvingOrdered,
    &kReduceScatterPairwise,
    &kReduceScatterDirect,
    &kScanRecursiveDoubling,
    &kScanChain,
    &kExscanRecursiveDoubling,
    &kExscanChain,
});

}  // namespace

std::span<const AlgorithmInfo* const> all_algorithms() noexcept { return kAlgorithms; }

const AlgorithmInfo* find_algorithm(Collective collective, std::string_view name) noexcept {
  for (const AlgorithmInfo* info : kAlgorithms) {
    if (info->collective == collective && info->name == name) return info;
  }
  return nullptr;
}

}  // namespace tutti
