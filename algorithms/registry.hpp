// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/algorithm.hpp"

/// Every algorithm's descriptor, each defined in the algorithm's own file.
namespace tutti {

extern const AlgorithmInfo kAllreduceRecursiveDoubling;
extern const AlgorithmInfo kAllreduceRing;
extern const AlgorithmInfo kAllreduceTree;
extern const AlgorithmInfo kBroadcastBinomial;
extern const AlgorithmInfo kBroadcastChain;
extern const AlgorithmInfo kAllgatherRing;
extern const AlgorithmInfo kAlltoallPairwise;
extern const AlgorithmInfo kBarrierDissemination;

}  // namespace tutti
