// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.hpp"

/// What the ranks contribute and what comes of it, element by element. check.hpp says what the data are like, and why.
namespace tutti_perf {

/// Elements [first, first + count) of the stream of `rank`, as the type stores them.
std::vector<std::byte> make_stream(const CheckCase& check_case, uint32_t rank, uint64_t first, size_t count);

/// Whether every bit of a reduction counts. If not, its values do, within relative_bound.
bool is_exact(tutti_dtype_t dtype, tutti_op_t op);

/// Elements [0, count) of the reduced streams, where is_exact.
std::vector<std::byte> make_exact_reduction(const CheckCase& check_case, size_t count);

/// Likewise where not: their exact values, of complex numbers real and imaginary part in turn.
std::vector<long double> make_rounded_reduction(const CheckCase& check_case, size_t count);

}  // namespace tutti_perf
