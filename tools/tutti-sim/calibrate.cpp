// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_fields.hpp"
#include "fit.hpp"
#include "pages.hpp"
#include "schedule/collective.hpp"
#include "select/tuning.hpp"

namespace tutti::simulator {
namespace {

constexpr uint64_t kMostFileBytes = 64 << 20;
constexpr double kNear = 1.3;  // factors between predicted and measured
constexpr double kFar = 1.6;
constexpr double kApart = 1.25;  // by which the two best must differ for their order to mean anything

struct Verdict {
  size_t points = 0;
  double median = 1;  ///< factor
  double near = 0;    ///< shares
  double far = 0;
  size_t pairs = 0;  ///< sizes at which the best is well ahead
  size_t right = 0;  ///< predicted in that order
};

struct Calibration {
  std::string links;
  NetworkSpec spec;
  std::vector<Point> points;
  std::map<uint32_t, Verdict> verdicts;  ///< by ranks
};

double off_by(const Point& point) { return std::exp(std::abs(std::log(point.predicted_ns / point.measured_ns))); }

/// Of every algorithm's sizes, in order, every other one judges.
std::vector<Point> points_of(const TuningTable& table, const std::string& links, uint64_t max_bytes) {
  std::vector<Point> points;
  for (const TuningSection& section : table.sections()) {
    const bool floats = section.key.type == TypeClass::floats || !reduces(section.key.collective);
    if (section.key.links != links || section.key.nodes != 1 || section.key.ranks < 2 || !floats) continue;
    std::set<uint64_t> sizes;
    for (const TuningTime& time : section.times) {
      if (time.bytes <= max_bytes) sizes.insert(time.bytes);
    }
    for (const TuningTime& time : section.times) {
      const auto place = std::distance(sizes.begin(), sizes.find(time.bytes));
      if (time.bytes > max_bytes || time.bytes == 0) continue;
      points.push_back({section.key.ranks, time.algorithm, time.parameters, time.bytes, time.ns, 0, place % 2 == 1});
    }
  }
  return points;
}

/// Whether the two that were fastest at each judged size are predicted in their order.
void judge_order(const std::vector<Point>& points, std::map<uint32_t, Verdict>& verdicts) {
  std::map<std::tuple<uint32_t, Collective, uint64_t>, std::vector<const Point*>> races;
  for (const Point& point : points) {
    if (point.judges) races[{point.ranks, point.algorithm->collective, point.bytes}].push_back(&point);
  }
  for (auto& [key, race] : races) {
    std::sort(race.begin(), race.end(), [](const Point* a, const Point* b) { return a->measured_ns < b->measured_ns; });
    const auto other = std::find_if(race.begin(), race.end(),
                                    [first = race[0]](const Point* one) { return one->algorithm != first->algorithm; });
    if (other == race.end() || (*other)->measured_ns < kApart * race[0]->measured_ns) continue;
    Verdict& verdict = verdicts[std::get<0>(key)];
    ++verdict.pairs;
    verdict.right += race[0]->predicted_ns < (*other)->predicted_ns;
  }
}

std::map<uint32_t, Verdict> judge(const std::vector<Point>& points) {
  std::map<uint32_t, std::vector<double>> offs;
  for (const Point& point : points) {
    if (point.judges) offs[point.ranks].push_back(off_by(point));
  }
  std::map<uint32_t, Verdict> verdicts;
  for (auto& [ranks, off] : offs) {
    std::sort(off.begin(), off.end());
    const auto share = [&off = off](double limit) {
      return static_cast<double>(std::upper_bound(off.begin(), off.end(), limit) - off.begin()) / static_cast<double>(off.size());
    };
    verdicts[ranks] = {off.size(), off[off.size() / 2], share(kNear), share(kFar), 0, 0};
  }
  judge_order(points, verdicts);
  return verdicts;
}

Result<Calibration> calibrate(const CalibrateQuestion& question, const TuningTable& table, const std::string& links,
                              const Progress& progress) {
  Calibration result{links, question.start, points_of(table, links, question.max_bytes), {}};
  const auto judging = std::count_if(result.points.begin(), result.points.end(), [](const Point& point) { return point.judges; });
  if (judging == 0 || judging == std::ssize(result.points)) {
    return error(TUTTI_ERR_CONFIG, "{}: links {} have no times for two sizes on one node up to {} bytes: run tutti-tune",
                 question.tuning_file, links, question.max_bytes);
  }
  result.spec.cores_per_node = question.cores;
  Result<NetworkSpec> fitted = fit_prices(result.spec, result.points, [&](double factor) {
    progress(fmt::format("{}: {} points, off by {:.2f}x", links, result.points.size() - static_cast<size_t>(judging), factor));
  });
  if (!fitted.ok()) return fitted.status();
  result.spec = std::move(*fitted);
  for (Point& point : result.points) {
    const Result<double> predicted = predict_ns(result.spec, point);
    if (!predicted.ok()) return predicted.status();
    point.predicted_ns = *predicted;
  }
  result.verdicts = judge(result.points);
  return result;
}

nlohmann::ordered_json spec_json(const Calibration& one) {
  const Prices& prices = one.spec.prices;
  return {{"name", fmt::format("measured: one node, {}", one.links)},
          {"ranks_per_node", std::max(one.spec.cores_per_node, one.verdicts.rbegin()->first)},
          {"cores_per_node", one.spec.cores_per_node},
          {"step_ns", prices.step_ns},
          {"switch_ns", prices.switch_ns},
          {"reduce_ns_per_byte", prices.reduce_ns_per_byte},
          {"copy_ns_per_byte", prices.copy_ns_per_byte},
          {"node",
           {{"latency_ns", prices.node.latency_ns},
            {"overhead_ns", prices.node.overhead_ns},
            {"copy_ns_per_byte", prices.node.copy_ns_per_byte},
            {"slots", prices.node.slots}}},
          {"flat", nlohmann::ordered_json::object()}};
}

nlohmann::ordered_json to_json(const Calibration& one) {
  nlohmann::ordered_json page = {{"links", one.links}, {"topology", spec_json(one)}};
  for (const auto& [ranks, verdict] : one.verdicts) {
    page["judged"].push_back({{"ranks", ranks},
                              {"points", verdict.points},
                              {"median_factor", verdict.median},
                              {"within_30_percent", verdict.near},
                              {"within_1_6x", verdict.far},
                              {"orders", verdict.pairs},
                              {"orders_right", verdict.right}});
  }
  return page;
}

std::string to_text(const Calibration& one) {
  const Prices& prices = one.spec.prices;
  std::string text = fmt::format(
      "{} on one node of {} processors\n  a message: latency {:.0f} ns, {:.0f} ns at either end, {:.3f} ns a byte; a step {:.0f} "
      "ns; "
      "fold {:.3f} and copy {:.3f} ns a byte; another rank's turn {:.0f} ns\n",
      one.links, one.spec.cores_per_node, prices.node.latency_ns, prices.node.overhead_ns, prices.node.copy_ns_per_byte,
      prices.step_ns, prices.reduce_ns_per_byte, prices.copy_ns_per_byte, prices.switch_ns);
  text += fmt::format("  {:>5} {:>8} {:>12} {:>12} {:>12} {:>24}\n", "ranks", "judged", "off, median", "within 1.3x",
                      "within 1.6x", "the two best in order");
  for (const auto& [ranks, verdict] : one.verdicts) {
    text += fmt::format("  {:>5} {:>8} {:>11.2f}x {:>10.0f} % {:>10.0f} % {:>18} of {}\n", ranks, verdict.points, verdict.median,
                        100 * verdict.near, 100 * verdict.far, verdict.right, verdict.pairs);
  }
  return text;
}

}  // namespace

Result<std::string> calibrate_page(const CalibrateQuestion& question, const Progress& progress) {
  const Result<std::string> text = read_text_file(question.tuning_file, kMostFileBytes);
  if (!text.ok()) return text.status();
  const Result<TuningTable> table = TuningTable::parse(*text, question.tuning_file);
  if (!table.ok()) return table.status();
  std::set<std::string> all_links;
  for (const TuningSection& section : table->sections()) {
    if (section.key.nodes == 1 && !section.times.empty()) all_links.insert(section.key.links);
  }
  if (all_links.empty()) {
    return error(TUTTI_ERR_CONFIG, "{}: no times of jobs on one node; run tutti-tune on 2 ranks and more", question.tuning_file);
  }
  std::string page;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::string& links : all_links) {
    const Result<Calibration> one = calibrate(question, *table, links, progress);
    if (!one.ok()) return one.status();
    page += to_text(*one);
    json.push_back(to_json(*one));
    if (question.output.empty() || &links != &*all_links.begin()) continue;
    std::ofstream file(question.output);
    file << spec_json(*one).dump(2) << "\n";
    if (!file.flush()) return error(TUTTI_ERR_CONFIG, "{}: cannot be written", question.output);
    page += fmt::format("  as a topology: {}\n", question.output);
  }
  return question.json ? json.dump(2) + "\n" : page;
}

}  // namespace tutti::simulator
