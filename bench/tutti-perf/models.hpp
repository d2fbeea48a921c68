// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tutti_perf {

struct Tensor {
  std::string_view name;
  uint64_t element_count;
};

/// The parameters of a network, in the order of its definition (bench/models/*.def).
struct Model {
  std::string_view name;
  std::vector<Tensor> tensors;
  uint64_t element_count() const;
};

const std::vector<Model>& all_models();
/// Throws UsageError, which lists the models.
const Model& find_model(std::string_view name);

}  // namespace tutti_perf
