// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "pages.hpp"
#include "select/select.hpp"

/// What compare and run share.
namespace tutti::simulator {

struct Row {
  Choice choice;
  Prediction prediction;
  std::string failure;  ///< for people; then there is no prediction
};

Row predict(const Network& network, const Question& question, Choice choice, std::optional<uint32_t> traced_rank = {});

/// "256 classes", "every event", "formula".
std::string method_text(const Prediction& prediction);
/// "switch 3 of level 0, up: 93 % busy"
std::string busiest_text(const Prediction& prediction);

nlohmann::ordered_json to_json(const Row& row);
nlohmann::ordered_json to_json(const Question& question);

}  // namespace tutti::simulator
