// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "predict.hpp"

#include <fmt/format.h>

namespace tutti::simulator {
namespace {

std::string_view method_name(WalkMethod method) {
  switch (method) {
    case WalkMethod::automatic:
      return "automatic";
    case WalkMethod::every_event:
      return "every_event";
    case WalkMethod::classes:
      return "classes";
    case WalkMethod::formula:
      return "formula";
  }
  return "";
}

double busy_share(const Prediction& prediction) {
  return prediction.time_ns > 0 && prediction.busiest ? prediction.busiest->busy_ns / prediction.time_ns : 0;
}

}  // namespace

Row predict(const Network& network, const Question& question, Choice choice, std::optional<uint32_t> traced_rank) {
  SimulationRequest request;
  request.algorithm = choice.algorithm;
  request.parameters = choice.parameters;
  request.bytes = question.bytes;
  request.element_bytes = question.element_bytes;
  request.root = question.root;
  request.method = question.method;
  request.traced_rank = traced_rank;
  if (question.max_steps > 0) request.max_steps_walked = question.max_steps;
  Row row;
  row.choice = std::move(choice);
  Result<Prediction> prediction = simulate(network, request);
  if (prediction.ok()) {
    row.prediction = std::move(*prediction);
  } else {
    row.failure = std::string(prediction.status().message());
  }
  return row;
}

std::string method_text(const Prediction& prediction) {
  if (prediction.method == WalkMethod::classes) return fmt::format("{} class{}", prediction.class_count, prediction.class_count == 1 ? "" : "es");
  return prediction.method == WalkMethod::formula ? "formula" : "every event";
}

std::string busiest_text(const Prediction& prediction) {
  if (!prediction.busiest) return "-";
  return fmt::format("{}: {:.0f} % busy", prediction.busiest->name, 100 * busy_share(prediction));
}

nlohmann::ordered_json to_json(const Row& row) {
  nlohmann::ordered_json one = {{"algorithm", row.choice.algorithm->name},
                                {"text", describe(*row.choice.algorithm, row.choice.parameters)}};
  if (!row.failure.empty()) {
    one["error"] = row.failure;
    return one;
  }
  const Prediction& prediction = row.prediction;
  one["time_ns"] = prediction.time_ns;
  one["method"] = method_name(prediction.method);
  one["note"] = prediction.note;
  if (prediction.method == WalkMethod::formula) return one;
  one["classes"] = prediction.class_count;
  one["walked_bytes"] = prediction.walked_bytes;
  one["walked_steps"] = prediction.walked_steps;
  one["rounds"] = prediction.rounds;
  one["messages"] = prediction.messages;
  one["max_sent_bytes"] = prediction.max_sent_bytes;
  if (prediction.busiest) {
    one["busiest_link"] = {{"name", prediction.busiest->name},
                           {"busy_ns", prediction.busiest->busy_ns},
                           {"busy_share", busy_share(prediction)},
                           {"bytes", prediction.busiest->bytes}};
  }
  return one;
}

nlohmann::ordered_json to_json(const Question& question) {
  return {{"collective", name(question.collective)},
          {"ranks", question.ranks},
          {"bytes", question.bytes},
          {"root", question.root},
          {"topology", question.network.name}};
}

}  // namespace tutti::simulator
