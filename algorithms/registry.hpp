// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/algorithm.hpp"

/// Every algorithm's descriptor, each defined in the algorithm's own file.
namespace tutti {

extern const AlgorithmInfo kAllreduceRecursiveDoubling;
extern const AlgorithmInfo kAllreduceRing;
extern const AlgorithmInfo kAllreduceTree;
extern const AlgorithmInfo kAllreduceBidirectionalRing;
extern const AlgorithmInfo kAllreduceDirect;
extern const AlgorithmInfo kAllreduceDoubleTree;
extern const AlgorithmInfo kAllreduceFlat;
extern const AlgorithmInfo kAllreduceHalving;
extern const AlgorithmInfo kAllreduceHierarchical;
extern const AlgorithmInfo kAllreduceHierarchicalAligned;
extern const AlgorithmInfo kAllreduceRecursiveMultiplying;
extern const AlgorithmInfo kAllreduceSwing;
extern const AlgorithmInfo kBroadcastBinomial;
extern const AlgorithmInfo kBroadcastChain;
extern const AlgorithmInfo kBroadcastHierarchical;
extern const AlgorithmInfo kBroadcastKnomial;
extern const AlgorithmInfo kBroadcastScatterAllgather;
extern const AlgorithmInfo kAllgatherBruck;
extern const AlgorithmInfo kAllgatherHierarchical;
extern const AlgorithmInfo kAllgatherLinear;
extern const AlgorithmInfo kAllgatherRecursiveDoubling;
extern const AlgorithmInfo kAllgatherRing;
extern const AlgorithmInfo kGatherBinomial;
extern const AlgorithmInfo kGatherLinear;
extern const AlgorithmInfo kScatterBinomial;
extern const AlgorithmInfo kScatterLinear;
extern const AlgorithmInfo kAlltoallBruck;
extern const AlgorithmInfo kAlltoallPairwise;
extern const AlgorithmInfo kAlltoallSpreadOut;
extern const AlgorithmInfo kBarrierDissemination;
extern const AlgorithmInfo kReduceBinomial;
extern const AlgorithmInfo kReduceTree;
extern const AlgorithmInfo kReduceHalving;
extern const AlgorithmInfo kReduceHierarchical;
extern const AlgorithmInfo kReduceHierarchicalAligned;
extern const AlgorithmInfo kReduceScatterRing;
extern const AlgorithmInfo kReduceScatterHalving;
extern const AlgorithmInfo kReduceScatterHalvingOrdered;
extern const AlgorithmInfo kReduceScatterPairwise;
extern const AlgorithmInfo kReduceScatterDirect;
extern const AlgorithmInfo kScanRecursiveDoubling;
extern const AlgorithmInfo kScanChain;
extern const AlgorithmInfo kExscanRecursiveDoubling;
extern const AlgorithmInfo kExscanChain;
extern const AlgorithmInfo kBarrierHierarchical;

}  // namespace tutti
