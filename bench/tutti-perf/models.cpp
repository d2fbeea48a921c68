// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include <fmt/format.h>

#include <initializer_list>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

uint64_t product(std::initializer_list<uint64_t> dimensions) {
  uint64_t count = 1;
  for (const uint64_t dimension : dimensions) count *= dimension;
  return count;
}

#define TUTTI_TENSOR(name, ...) {name, product({__VA_ARGS__})},
std::vector<Model> make_models() {
  return {
      {"resnet50",
       {
#include "resnet50.def"
       }},
      {"resnet101",
       {
#include "resnet101.def"
       }},
      {"vgg16",
       {
#include "vgg16.def"
       }},
      {"bert-base",
       {
#include "bert-base.def"
       }},
      {"bert-large",
       {
#include "bert-large.def"
       }},
      {"gpt2",
       {
#include "gpt2.def"
       }},
      {"gpt2-xl",
       {
#include "gpt2-xl.def"
       }},
  };
}
#undef TUTTI_TENSOR

}  // namespace

uint64_t Model::element_count() const {
  uint64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.element_count;
  return sum;
}

const std::vector<Model>& all_models() {
  static const std::vector<Model> models = make_models();
  return models;
}

const Model& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model& model : all_models()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw UsageError(fmt::format("--sizes-from: '{}' is unknown; known are {}", name, join(names)));
}

}  // namespace tutti_perf
