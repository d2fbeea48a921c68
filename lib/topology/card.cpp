// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/card.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "topology/places_file.hpp"

namespace tutti {
namespace {

using nlohmann::json;

struct Card {
  Place place;
  std::string problem;         // of this rank, in words; or ""
  std::vector<Place> instead;  // for all ranks; empty: what they found
};

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// ---- the bytes: msgpack, arrays instead of objects ------------------------------------------------------------------------

json numbers_of(const Place& place) { return json::array({place.package, place.numa, place.l3}); }

/// Ranks after each other in one place are one entry; a job of ten thousand in blocks is small.
json pack_places(const std::vector<Place>& places) {
  json hosts = json::array();
  json runs = json::array();
  std::map<std::string, size_t> known;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    const auto [host, added] = known.emplace(places[rank].host, known.size());
    if (added) hosts.push_back(host->first);
    json entry = json::array({host->second, numbers_of(places[rank])});
    if (!runs.empty() && runs.back()[1] == entry) {
      runs.back()[0] = runs.back()[0].get<uint32_t>() + 1;
    } else {
      runs.push_back(json::array({1, std::move(entry)}));
    }
  }
  return json::array({std::move(hosts), std::move(runs)});
}

int number_at(const json& numbers, size_t index) {
  const auto number = numbers.at(index).get<int64_t>();
  if (number < kSpread || number > INT32_MAX) throw std::out_of_range("a number of a package, NUMA node or cache");
  return static_cast<int>(number);
}

void read_numbers(const json& numbers, Place& place) {
  place.package = number_at(numbers, 0);
  place.numa = number_at(numbers, 1);
  place.l3 = number_at(numbers, 2);
}

std::vector<Place> unpack_places(const json& value, size_t ranks) {
  std::vector<Place> places;
  for (const json& run : value.at(1)) {
    const auto count = run.at(0).get<uint64_t>();
    if (count == 0 || count > ranks - places.size()) throw std::out_of_range("places of other ranks than there are");
    Place place;
    place.host = value.at(0).at(run.at(1).at(0).get<size_t>()).get<std::string>();
    read_numbers(run.at(1).at(1), place);
    places.insert(places.end(), count, place);
  }
  if (!places.empty() && places.size() != ranks) throw std::out_of_range("places of other ranks than there are");
  return places;
}

std::string pack(const Card& card) {
  std::string text;
  json::to_msgpack(json::array({card.place.host, card.place.host_name, card.place.machine, format_cpu_list(card.place.cpus),
                                numbers_of(card.place), card.problem, pack_places(card.instead)}),
                   text);
  return text;
}

Result<Card> unpack(const std::string& text, size_t rank, size_t ranks) {
  const auto bad = [rank](std::string_view what) {
    return error(TUTTI_ERR_PROTOCOL, "the place of rank {} cannot be read ({}): do all ranks run the same version?", rank, what);
  };
  try {
    const json value = json::from_msgpack(text);
    Card card;
    card.place.host = value.at(0).get<std::string>();
    card.place.host_name = value.at(1).get<std::string>();
    card.place.machine = value.at(2).get<std::string>();
    Result<CpuList> cpus = check_cpu_list(value.at(3).get<std::string>());
    if (!cpus) return bad(cpus.status().message());
    card.place.cpus = std::move(*cpus);
    read_numbers(value.at(4), card.place);
    card.problem = value.at(5).get<std::string>();
    card.instead = unpack_places(value.at(6), ranks);
    return card;
  } catch (const std::exception& e) {  // json's, out_of_range
    return bad(e.what());
  }
}

// ---- what goes into them --------------------------------------------------------------------------------------------------

Status simulate_package(const std::string& text, Place& place) {
  if (text.empty()) return Status();
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 0)
    return error(TUTTI_ERR_CONFIG, "setting package_id: '{}' is not a whole number from 0 on", text);
  place.package = number;
  place.numa = kSpread;
  place.l3 = kSpread;
  return Status();
}

}  // namespace

std::string make_topology_card(const Config& config, const std::string& host_identity, uint32_t rank, uint32_t size) {
  Card card;
  card.place = find_place(allowed_cpus());
  card.place.host = host_identity;
  card.place.host_name = host_name();
  card.place.machine = boot_id();
  if (card.place.machine.empty()) card.place.machine = host_identity;
  Status problem = simulate_package(config.text(Setting::package_id), card.place);
  if (const std::string& file = config.text(Setting::topology_file); problem.ok() && rank == 0 && !file.empty()) {
    Result<std::vector<Place>> places = load_places(file, size);
    if (places.ok()) card.instead = std::move(*places);
    problem = places.status().with_context("setting topology_file");
  }
  card.problem = problem.message();
  return pack(card);
}

Result<JobTopology> read_topology_cards(std::span<const std::string> cards) {
  std::vector<Place> found;
  std::vector<Place> instead;
  Status problem;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    Result<Card> card = unpack(cards[rank], rank, cards.size());
    if (!card) return card.status();
    if (problem.ok() && !card->problem.empty()) problem = error(TUTTI_ERR_CONFIG, "rank {}: {}", rank, card->problem);
    found.push_back(std::move(card->place));
    if (rank == 0) instead = std::move(card->instead);
  }
  if (!problem.ok()) return problem;
  // A file says where ranks are, not which CPUs these have: that is known.
  for (size_t rank = 0; rank < instead.size(); ++rank) {
    instead[rank].host_name = instead[rank].host;
    instead[rank].machine = found[rank].machine;
    instead[rank].cpus = found[rank].cpus;
  }
  Topology used(instead.empty() ? found : std::move(instead));
  return JobTopology{Topology(std::move(found)), std::move(used)};
}

}  // namespace tutti
