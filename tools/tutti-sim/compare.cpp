// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict.hpp"

namespace tutti::simulator {
namespace {

struct Field {
  std::vector<Choice> choices;
  std::vector<std::string> unfit;  ///< why, for people
};

Result<Field> candidates(const Network& network, const Question& question) {
  const auto choose = [&](std::string_view text) {
    return selection_table(question.collective, network.shape(), text, network.cost_model());
  };
  Field field;
  for (const std::string& text : question.algorithms) {
    const auto table = choose(text);
    if (!table.ok()) return table.status();
    field.choices.push_back(table->front().choice);
  }
  if (!question.algorithms.empty()) return field;
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    if (algorithm->collective != question.collective) continue;
    const auto table = choose(algorithm->name);
    if (table.ok()) {
      field.choices.push_back(table->front().choice);
    } else {
      field.unfit.emplace_back(table.status().message());
    }
  }
  if (field.choices.empty()) {
    return error(TUTTI_ERR_UNSUPPORTED, "there is no {} algorithm for {} ranks", name(question.collective), question.ranks);
  }
  return field;
}

/// What the winner has before the next.
std::string why(const Row& winner, const Row& next) {
  const Prediction& a = winner.prediction;
  const Prediction& b = next.prediction;
  const double factor = a.time_ns > 0 ? b.time_ns / a.time_ns : 1;
  std::string text =
      fmt::format("{} before {} by a factor of {:.2f}", winner.choice.algorithm->name, next.choice.algorithm->name, factor);
  if (a.method == WalkMethod::formula || b.method == WalkMethod::formula) return text + ", by a cost formula";
  std::string reasons;
  const auto add = [&](const std::string& reason) { reasons.append(reasons.empty() ? ": " : ", ").append(reason); };
  constexpr double kClear = 0.95;  // of the other's
  const auto less = [](auto x, auto y) { return static_cast<double>(x) < kClear * static_cast<double>(y); };
  if (less(a.rounds, b.rounds)) add(fmt::format("fewer rounds ({} against {})", a.rounds, b.rounds));
  if (less(a.max_sent_bytes, b.max_sent_bytes)) {
    add(fmt::format("fewer bytes sent by a rank ({} against {})", format_size(a.max_sent_bytes), format_size(b.max_sent_bytes)));
  }
  if (a.busiest && b.busiest && less(a.busiest->busy_ns, b.busiest->busy_ns)) {
    add(fmt::format("its busiest link works for a shorter time ({} against {})", format_time(a.busiest->busy_ns),
                    format_time(b.busiest->busy_ns)));
  }
  const auto most_busy = [](const Prediction& prediction) {
    double most = 0;
    for (const RankUse& rank : prediction.ranks) most = std::max(most, rank.busy_ns);
    return most;
  };
  if (less(most_busy(a), most_busy(b))) {
    add(fmt::format("less work for a processor ({} against {})", format_time(most_busy(a)), format_time(most_busy(b))));
  }
  return text + (reasons.empty() ? ": its steps wait less for each other" : reasons);
}

std::string table(const std::vector<Row>& rows) {
  std::string text = fmt::format("  {:<24} {:>10} {:>8} {:>14}  {:<14} {}\n", "algorithm", "predicted", "rounds",
                                 "sent by a rank", "walked", "busiest link");
  std::string notes;
  for (const Row& row : rows) {
    const std::string algorithm(row.choice.algorithm->name);
    if (!row.failure.empty()) {
      text += fmt::format("  {:<24} {:>10}  {}\n", algorithm, "-", row.failure);
      continue;
    }
    const Prediction& seen = row.prediction;
    const bool walked = seen.method != WalkMethod::formula;
    text += fmt::format("  {:<24} {:>10} {:>8} {:>14}  {:<14} {}\n", algorithm, format_time(seen.time_ns),
                        walked ? fmt::format("{}", seen.rounds) : "-", walked ? format_size(seen.max_sent_bytes) : "-",
                        method_text(seen), busiest_text(seen));
    if (!seen.note.empty()) notes += fmt::format("  {}: {}\n", algorithm, seen.note);
  }
  return notes.empty() ? text : text + "Notes\n" + notes;
}

}  // namespace

Result<std::string> compare_page(const Question& question, const Progress& progress) {
  const Result<Network> network = Network::make(question.network, question.ranks);
  if (!network.ok()) return network.status();
  Result<Field> field = candidates(*network, question);
  if (!field.ok()) return field.status();
  std::vector<Row> rows;
  for (Choice& choice : field->choices) {
    progress(fmt::format("{} {}", name(question.collective), choice.algorithm->name));
    rows.push_back(predict(*network, question, std::move(choice)));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    return a.prediction.time_ns < b.prediction.time_ns;
  });
  if (!rows.front().failure.empty()) return error(TUTTI_ERR_INTERNAL, "{}", rows.front().failure);
  const std::string verdict = rows.size() > 1 && rows[1].failure.empty()
                                  ? why(rows[0], rows[1])
                                  : fmt::format("{}: the only one that fits", rows[0].choice.algorithm->name);
  if (question.json) {
    nlohmann::ordered_json page = to_json(question);
    page["algorithms"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) page["algorithms"].push_back(to_json(row));
    page["unfit"] = field->unfit;
    page["why"] = verdict;
    return page.dump(2) + "\n";
  }
  std::string text = fmt::format("{} of {} on {} ranks, {}\n", name(question.collective), format_size(question.bytes),
                                 question.ranks, question.network.name);
  text += table(rows) + "Why: " + verdict + "\n";
  for (const std::string& reason : field->unfit) text += fmt::format("Not compared: {}\n", reason);
  return text;
}

}  // namespace tutti::simulator
