// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernels.hpp"

namespace tutti {

/// The kernels of one level. nullptr: the next lower level has it.
struct FoldTable {
  FoldFunction fold[kDTypeCount][kOpCount];
};

extern const FoldTable kScalarFolds;  // has all that is defined
#ifdef TUTTI_KERNELS_X86
extern const FoldTable kSse4Folds;
extern const FoldTable kAvx2Folds;
#endif

}  // namespace tutti
