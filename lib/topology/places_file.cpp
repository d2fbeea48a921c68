// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/places_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"
#include "topology_json.hpp"

namespace tutti {
namespace {

void read_part(JsonFields& entry, const char* field, int& part) {
  uint32_t number = 0;
  if (!entry.has(field)) return;
  entry.whole(field, number);
  if (number > INT32_MAX) entry.complaint().say(entry.path_of(field), "too large");
  part = static_cast<int>(number);
}

struct Entry {
  CpuList ranks;
  Place place;
};

Entry read_entry(JsonFields& fields) {
  Entry entry;
  entry.ranks = read_cpus(fields, "ranks");
  if (entry.ranks.empty()) fields.complaint().say(fields.path_of("ranks"), "which ranks? Write as \"0-3,8\"");
  fields.text("host", entry.place.host);
  if (entry.place.host.empty()) fields.complaint().say(fields.path_of("host"), "which host? Ranks with the same text are on one node");
  fields.text("host_name", entry.place.host_name);
  fields.text("machine", entry.place.machine);
  read_part(fields, "package", entry.place.package);
  read_part(fields, "numa", entry.place.numa);
  read_part(fields, "l3", entry.place.l3);
  entry.place.cpus = read_cpus(fields, "cpus");
  return entry;
}

/// By rank; each once, none left out.
std::vector<Place> in_order(const std::vector<Entry>& entries, FileComplaint& complaint) {
  int last = -1;
  for (const Entry& entry : entries) last = std::max(last, entry.ranks.empty() ? -1 : entry.ranks.back());
  std::vector<Place> places(static_cast<size_t>(last + 1));
  std::vector<bool> given(places.size());
  for (size_t n = 0; n < entries.size(); ++n) {
    for (const int rank : entries[n].ranks) {
      const auto at = static_cast<size_t>(rank);
      if (given[at]) complaint.say(fmt::format("places[{}].ranks", n), fmt::format("rank {} has a place already", rank));
      given[at] = true;
      places[at] = entries[n].place;
    }
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end())
    complaint.say("places", fmt::format("rank {} has no place; give one to each of 0 to {}", missing - given.begin(), last));
  return places;
}

}  // namespace

Result<std::vector<Place>> parse_places(std::string_view text, std::string_view source) {
  const Result<nlohmann::json> parsed = parse_json(text, source);
  if (!parsed) return parsed.status();
  FileComplaint complaint(source);
  JsonFields file(*parsed, "", complaint);
  check_topology_version(file);
  if (file.has("machine") && complaint.status().ok())
    complaint.say("machine", "describes one machine, no job; `tuttirun ... tutti-info topology --job --json` writes a job's");
  std::vector<Entry> entries;
  file.objects("places", [&](JsonFields& fields) { entries.push_back(read_entry(fields)); });
  file.finish();
  std::vector<Place> places = in_order(entries, complaint);
  if (places.empty()) complaint.say("places", "gives no rank a place; write as {\"ranks\": \"0-3\", \"host\": \"a\"}");
  if (!complaint.status().ok()) return complaint.status();
  return places;
}

Result<std::vector<Place>> load_places(const std::string& path, uint32_t size) {
  const Result<std::string> text = read_text_file(path, kMostTopologyFileBytes);
  if (!text) return text.status();
  Result<std::vector<Place>> places = parse_places(*text, path);
  if (places && places->size() != size)
    return error(TUTTI_ERR_CONFIG, "{}: places: {} ranks have one, but the job has {}; give one to each of 0 to {}", path,
                 places->size(), size, size - 1);
  return places;
}

std::string format_places(const std::vector<Place>& places) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t first = 0, last = 0; first < places.size(); first = last + 1) {
    for (last = first; last + 1 < places.size() && places[last + 1] == places[first];) ++last;
    const Place& place = places[first];
    nlohmann::ordered_json entry;
    entry["ranks"] = first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    entry["host"] = place.host;
    if (!place.host_name.empty()) entry["host_name"] = place.host_name;
    if (!place.machine.empty()) entry["machine"] = place.machine;
    if (place.package != kSpread) entry["package"] = place.package;
    if (place.numa != kSpread) entry["numa"] = place.numa;
    if (place.l3 != kSpread) entry["l3"] = place.l3;
    if (!place.cpus.empty()) entry["cpus"] = format_cpu_list(place.cpus);
    list.push_back(std::move(entry));
  }
  nlohmann::ordered_json file;
  file[kVersionField] = kTopologyFileVersion;
  file["places"] = std::move(list);
  return dump(file);
}

}  // namespace tutti
