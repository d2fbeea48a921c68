// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/types.hpp"

/// Elements as bits, in the low bytes of each word.
using Elements = std::vector<uint64_t>;

/// The corners of a type: zeros, ones, extremes, for floats also denormals, infinities and NaN of several payloads.
const Elements& corners(tutti::DType dtype);

/// `count` elements: a third corners, a third any bits, a third values of like size (so that sums round).
Elements random_elements(tutti::DType dtype, size_t count, std::mt19937_64& random);

/// As an array of the type.
std::vector<std::byte> pack(tutti::DType dtype, const Elements& elements);

inline constexpr tutti::DType kAllDTypes[] = {tutti::DType::i8,  tutti::DType::u8,   tutti::DType::i16, tutti::DType::u16,
                                              tutti::DType::i32, tutti::DType::u32,  tutti::DType::i64, tutti::DType::u64,
                                              tutti::DType::f16, tutti::DType::bf16, tutti::DType::f32, tutti::DType::f64};
inline constexpr tutti::Op kAllOps[] = {tutti::Op::sum, tutti::Op::prod, tutti::Op::min, tutti::Op::max, tutti::Op::avg};
