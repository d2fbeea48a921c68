// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Letters to insert, delete or replace between the two.
size_t edit_distance(std::string_view a, std::string_view b);

/// The one of `known` that a slip of the pen may have made `name` from; "" when none is near.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

/// For the end of a complaint: "did you mean 'ring'?", or "there are: ring, tree".
std::string hint(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace tutti
