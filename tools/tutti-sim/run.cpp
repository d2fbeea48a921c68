// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "predict.hpp"

namespace tutti::simulator {
namespace {

constexpr size_t kMaxStepsShown = 24;

/// The one that ends last; of several the lowest.
const RankUse& slowest(const Prediction& prediction) {
  return *std::max_element(prediction.ranks.begin(), prediction.ranks.end(),
                           [](const RankUse& a, const RankUse& b) { return a.end_ns < b.end_ns; });
}

std::string peers(const std::vector<Operand>& operands) {
  std::string list;
  for (const Operand& operand : operands) {
    if (operand.kind == Operand::Kind::message) list += fmt::format(" {}", operand.peer);
  }
  return list;
}

/// "from 3, fold, to 5"
std::string step_text(const Step& step) {
  const std::string from = peers(step.sources);
  const std::string to = peers(step.destinations);
  std::vector<std::string> parts;
  if (!from.empty()) parts.push_back("from" + from);
  if (step.sources.size() > 1) parts.push_back("fold");
  if (!to.empty()) parts.push_back("to" + to);
  return parts.empty() ? "copy" : fmt::format("{}", fmt::join(parts, ", "));
}

/// In the order of StepUse.
std::vector<std::string> step_texts(const Network& network, const Question& question, const Choice& choice, uint32_t rank) {
  PlanRequest plan;
  plan.shape = network.shape();
  plan.rank = rank;
  plan.root = question.root;
  plan.parameters = choice.parameters;
  std::vector<std::string> texts;
  const Schedule schedule = choice.algorithm->build(plan);
  for (const Lane& lane : schedule.lanes) {
    for (const Step& step : lane.steps) texts.push_back(step_text(step));
  }
  return texts;
}

std::string rank_line(const char* label, const RankUse& rank) {
  const double share = rank.end_ns > 0 ? 100 * rank.busy_ns / rank.end_ns : 0;
  return fmt::format("  {:<8} {:>7} {:>7} {:>10} {:>6.0f} % {:>10} {:>14}\n", label, rank.rank, rank.members,
                     format_time(rank.end_ns), share, rank.sent_messages, format_size(rank.sent_bytes));
}

std::string ranks_text(const Prediction& prediction) {
  std::vector<RankUse> ranks = prediction.ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankUse& a, const RankUse& b) { return a.end_ns < b.end_ns; });
  std::string text = fmt::format("  {:<8} {:>7} {:>7} {:>10} {:>8} {:>10} {:>14}\n", "", "rank", "alike", "ends at", "busy",
                                 "messages", "bytes sent");
  text += rank_line("first", ranks.front());
  text += rank_line("middle", ranks[ranks.size() / 2]);
  return text + rank_line("last", slowest(prediction));
}

std::string steps_text(const Prediction& prediction, const std::vector<std::string>& texts, uint32_t rank) {
  std::vector<size_t> order(prediction.steps.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::string title = fmt::format("Steps of rank {}", rank);
  if (order.size() > kMaxStepsShown) {
    const auto waited_longer = [&](size_t a, size_t b) { return prediction.steps[a].waited_ns > prediction.steps[b].waited_ns; };
    std::stable_sort(order.begin(), order.end(), waited_longer);
    title += fmt::format(": the {} that waited longest, of {}", kMaxStepsShown, order.size());
    order.resize(kMaxStepsShown);
    std::sort(order.begin(), order.end());
  }
  std::string text = fmt::format("{}\n  {:>4} {:>6} {:>7} {:>10} {:>10} {:>10}  {}\n", title, "lane", "step", "chunks", "starts",
                                 "ends", "waited", "what");
  for (const size_t n : order) {
    const StepUse& step = prediction.steps[n];
    text += fmt::format("  {:>4} {:>6} {:>7} {:>10} {:>10} {:>10}  {}\n", step.lane, step.step, step.chunks,
                        format_time(step.first_start_ns), format_time(step.last_end_ns), format_time(step.waited_ns), texts[n]);
  }
  return text;
}

nlohmann::ordered_json details(const Prediction& prediction, const std::vector<std::string>& texts) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankUse& rank : prediction.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"members", rank.members},
                     {"end_ns", rank.end_ns},
                     {"busy_ns", rank.busy_ns},
                     {"messages", rank.sent_messages},
                     {"bytes", rank.sent_bytes}});
  }
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (size_t n = 0; n < prediction.steps.size(); ++n) {
    const StepUse& step = prediction.steps[n];
    steps.push_back({{"lane", step.lane},
                     {"step", step.step},
                     {"chunks", step.chunks},
                     {"start_ns", step.first_start_ns},
                     {"end_ns", step.last_end_ns},
                     {"waited_ns", step.waited_ns},
                     {"what", texts[n]}});
  }
  return {{"ranks", std::move(ranks)}, {"steps", std::move(steps)}};
}

}  // namespace

Result<std::string> run_page(const Question& question) {
  const Result<Network> network = Network::make(question.network, question.ranks);
  if (!network.ok()) return network.status();
  const std::string wanted = question.algorithms.empty() ? "" : question.algorithms.front();
  const auto choices = selection_table(question.collective, network->shape(), wanted, network->cost_model());
  if (!choices.ok()) return choices.status();
  const Choice choice = select(*choices, question.bytes).choice;
  Row row = predict(*network, question, choice);
  if (!row.failure.empty()) return error(TUTTI_ERR_INTERNAL, "{}", row.failure);
  std::vector<std::string> texts;
  uint32_t rank = 0;
  if (!row.prediction.ranks.empty()) {
    // Only now is it known who ends last.
    rank = slowest(row.prediction).rank;
    row = predict(*network, question, choice, rank);
    texts = step_texts(*network, question, choice, rank);
  }
  const Prediction& seen = row.prediction;
  if (question.json) {
    nlohmann::ordered_json page = to_json(question);
    page["prediction"] = to_json(row);
    page["slowest_rank"] = rank;
    page.update(details(seen, texts));
    return page.dump(2) + "\n";
  }
  std::string text = fmt::format("{} of {} on {} ranks, {}\n{}\n", name(question.collective), format_size(question.bytes),
                                 question.ranks, question.network.name, describe(*choice.algorithm, choice.parameters));
  text += fmt::format("  predicted     {} ({})\n", format_time(seen.time_ns), method_text(seen));
  if (!seen.note.empty()) text += fmt::format("  note          {}\n", seen.note);
  if (seen.ranks.empty()) return text;
  text +=
      fmt::format("  rounds        {}\n  messages      {}\n  busiest link  {}\n", seen.rounds, seen.messages, busiest_text(seen));
  return text + "Ranks\n" + ranks_text(seen) + steps_text(seen, texts, rank);
}

}  // namespace tutti::simulator
