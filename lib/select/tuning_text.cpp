// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The text of a tuning table: read and written.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.hpp"
#include "override.hpp"
#include "schedule/collective.hpp"
#include "select/tuning.hpp"

namespace tutti {
namespace {

constexpr std::string_view kFirstWord = "tutti-tuning";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kSpace = " \t\r";

std::string_view without_comment(std::string_view line) { return line.substr(0, line.find('#')); }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = without_comment(line);
  while (true) {
    const size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = line.find_first_of(kSpace);
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), words.back().size()));
  }
}

Result<TypeClass> parse_type_word(std::string_view word) {
  std::vector<std::string_view> known;
  for (size_t t = 0; t < kTypeClassCount; ++t) {
    known.push_back(name(static_cast<TypeClass>(t)));
    if (known.back() == word) return static_cast<TypeClass>(t);
  }
  return error(TUTTI_ERR_CONFIG, "type={} is no class of types; {}", word, hint(word, known));
}

Status parse_number(std::string_view key, std::string_view text, uint32_t* number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (failure != std::errc() || end != text.data() + text.size() || *number == 0)
    return error(TUTTI_ERR_CONFIG, "{}={} is not a whole number from 1 on", key, text);
  return Status();
}

Result<Choice> parse_algorithm_word(Collective collective, std::string_view word) {
  Result<Choice> choice = parse_algorithm(collective, word);
  if (choice.ok()) return choice;
  std::vector<std::string_view> known;
  for (const AlgorithmInfo* info : all_algorithms()) {
    if (info->collective == collective) known.push_back(info->name);
  }
  const std::string_view near = nearest_name(word.substr(0, word.find(':')), known);
  if (near.empty() || near == word.substr(0, word.find(':'))) return choice;
  return error(TUTTI_ERR_CONFIG, "{}; did you mean '{}'?", choice.status().message(), near);
}

/// What a line says, whichever kind it is.
struct Line {
  TuningKey key;
  bool typed = false;
  std::string_view bytes;  // as written, with what stands before it: "<=64K", "=4K"
  std::vector<std::string_view> rest;
};

Status take_key(std::string_view word, Line& line, std::vector<std::string_view>& seen) {
  const size_t end = word.find_first_of("=<");
  const std::string_view key = word.substr(0, end);
  const std::vector<std::string_view> known = {"ranks", "nodes", "links", "type", "bytes"};
  if (std::find(known.begin(), known.end(), key) == known.end())
    return error(TUTTI_ERR_CONFIG, "there is no key '{}'; {}", key, hint(key, known));
  if (std::find(seen.begin(), seen.end(), key) != seen.end()) return error(TUTTI_ERR_CONFIG, "{} is given twice", key);
  seen.push_back(key);
  if (key == "bytes") {
    line.bytes = word.substr(end);
    return Status();
  }
  if (word[end] != '=') return error(TUTTI_ERR_CONFIG, "'{}': write {}=VALUE", word, key);
  const std::string_view value = word.substr(end + 1);
  if (key == "ranks") return parse_number(key, value, &line.key.ranks);
  if (key == "nodes") return parse_number(key, value, &line.key.nodes);
  if (key == "links") {
    line.key.links = value;
    return Status();
  }
  const Result<TypeClass> type = parse_type_word(value);
  if (!type.ok()) return type.status();
  line.key.type = *type;
  line.typed = true;
  return Status();
}

Result<Line> parse_line(const std::vector<std::string_view>& words) {
  Line line;
  if (words.size() < 2) return error(TUTTI_ERR_CONFIG, "'{}' lacks a collective", words[0]);
  const Result<Collective> collective = parse_collective(words[1]);
  if (!collective.ok()) return error(TUTTI_ERR_CONFIG, "{}", collective.status().message());
  line.key.collective = *collective;
  std::vector<std::string_view> seen;
  size_t at = 2;
  for (; at < words.size() && words[at].find_first_of("=<") < words[at].find(':'); ++at)
    TUTTI_TRY(take_key(words[at], line, seen));
  for (const std::string_view needed : {"ranks", "nodes", "bytes"}) {
    if (std::find(seen.begin(), seen.end(), needed) == seen.end())
      return error(TUTTI_ERR_CONFIG, "'{}' lacks {}=", words[0], needed);
  }
  if (line.key.nodes > line.key.ranks)
    return error(TUTTI_ERR_CONFIG, "nodes={} is more than ranks={}", line.key.nodes, line.key.ranks);
  if (!reduces(line.key.collective)) {
    if (line.typed) return error(TUTTI_ERR_CONFIG, "{} moves data of all types alike: drop type=", name(line.key.collective));
    line.key.type = TypeClass::integers;
  }
  line.rest.assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
  const size_t wanted = words[0] == "use" ? 1 : 2;
  if (line.rest.size() < wanted)
    return error(TUTTI_ERR_CONFIG, "'{}' ends too early: {} is missing", words[0],
                 line.rest.empty() ? "an algorithm" : "a time, as 5.2us");
  if (line.rest.size() > wanted) return error(TUTTI_ERR_CONFIG, "'{}' is too much", line.rest[wanted]);
  return line;
}

Result<uint64_t> parse_limit(std::string_view bytes) {
  if (bytes == "=any") return UINT64_MAX;
  if (!bytes.starts_with("<="))
    return error(TUTTI_ERR_CONFIG, "'bytes{}': write bytes<=SIZE, or bytes=any for all larger ones", bytes);
  return parse_bytes(bytes.substr(2));
}

Status take_use(TuningTable& table, const std::vector<std::string_view>& words, uint32_t number) {
  const Result<Line> line = parse_line(words);
  if (!line.ok()) return line.status();
  const Result<uint64_t> limit = parse_limit(line->bytes);
  if (!limit.ok()) return limit.status();
  const Result<Choice> choice = parse_algorithm_word(line->key.collective, line->rest[0]);
  if (!choice.ok()) return choice.status();
  std::vector<TuningRow>& rows = table.section(line->key).rows;
  const auto at = std::lower_bound(rows.begin(), rows.end(), *limit,
                                   [](const TuningRow& row, uint64_t bytes) { return row.up_to_bytes < bytes; });
  if (at != rows.end() && at->up_to_bytes == *limit)
    return error(TUTTI_ERR_CONFIG, "line {} says already what to use for bytes{}", at->line, line->bytes);
  rows.insert(at, {*limit, choice->algorithm, choice->parameters, number});
  return Status();
}

Status take_time(TuningTable& table, const std::vector<std::string_view>& words) {
  const Result<Line> line = parse_line(words);
  if (!line.ok()) return line.status();
  if (!line->bytes.starts_with('=')) return error(TUTTI_ERR_CONFIG, "'bytes{}': write bytes=SIZE", line->bytes);
  const Result<uint64_t> bytes = parse_bytes(line->bytes.substr(1));
  if (!bytes.ok()) return bytes.status();
  const Result<Choice> choice = parse_algorithm_word(line->key.collective, line->rest[0]);
  if (!choice.ok()) return choice.status();
  double ns = 0;
  const std::string_view text = line->rest[1];
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), ns);
  if (failure != std::errc() || std::string_view(end, static_cast<size_t>(text.data() + text.size() - end)) != "us" || ns < 0)
    return error(TUTTI_ERR_CONFIG, "'{}' is not a time in microseconds, as 5.2us", text);
  table.section(line->key).times.push_back({*bytes, choice->algorithm, choice->parameters, ns * 1000});
  return Status();
}

Status take_line(TuningTable& table, std::string_view line, uint32_t number, bool& begun) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty()) return Status();
  if (!begun) {
    if (words[0] != kFirstWord || words.size() != 2)
      return error(TUTTI_ERR_CONFIG, "a tuning file begins with the line '{} {}', not with '{}'", kFirstWord, kVersion, words[0]);
    if (words[1] != kVersion)
      return error(TUTTI_ERR_CONFIG, "version {} of tuning files is not known here, {} is; measure again with this tutti-tune",
                   words[1], kVersion);
    begun = true;
    return Status();
  }
  if (words[0] == "use") return take_use(table, words, number);
  if (words[0] == "time") return take_time(table, words);
  if (words[0] == "machine") {
    const std::string_view text = without_comment(line);
    const size_t begin = words.size() > 1 ? static_cast<size_t>(words[1].data() - text.data()) : text.size();
    table.add_machine(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
    return Status();
  }
  return error(TUTTI_ERR_CONFIG, "a line cannot begin with '{}'; {}", words[0], hint(words[0], {"use", "time", "machine"}));
}

template <class Take>
Status each_line(std::string_view text, Take&& take) {
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    TUTTI_TRY(take(text.substr(0, end), number));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return Status();
}

}  // namespace

Result<TuningTable> TuningTable::parse(std::string_view text, std::string origin) {
  TuningTable table;
  table.origin_ = std::move(origin);
  bool begun = false;
  TUTTI_TRY(each_line(text, [&](std::string_view line, uint32_t number) {
    const Status taken = take_line(table, line, number, begun);
    return taken.ok() ? Status() : error(TUTTI_ERR_CONFIG, "{}:{}: {}", table.origin_, number, taken.message());
  }));
  if (!begun)
    return error(TUTTI_ERR_CONFIG, "{}:1: a tuning file begins with the line '{} {}'", table.origin_, kFirstWord, kVersion);
  return table;
}

std::string describe(const TuningKey& key) {
  std::string text = fmt::format("{} ranks={} nodes={}", name(key.collective), key.ranks, key.nodes);
  if (!key.links.empty()) text += fmt::format(" links={}", key.links);
  if (reduces(key.collective)) text += fmt::format(" type={}", name(key.type));
  return text;
}

std::string TuningTable::text() const {
  std::string text = fmt::format("{} {}\n", kFirstWord, kVersion);
  for (const std::string& machine : machines_) text += fmt::format("machine {}\n", machine);
  for (const TuningSection& section : sections_) {
    text += '\n';
    const std::string key = describe(section.key);
    for (const TuningRow& row : section.rows) {
      const std::string bytes = row.up_to_bytes == UINT64_MAX ? "=any" : "<=" + format_bytes(row.up_to_bytes);
      text += fmt::format("use {} bytes{} {}\n", key, bytes, describe(*row.algorithm, row.parameters));
    }
    for (const TuningTime& time : section.times) {
      text += fmt::format("time {} bytes={} {} {:.4g}us\n", key, format_bytes(time.bytes),
                          describe(*time.algorithm, time.parameters), time.ns / 1000);
    }
  }
  return text;
}

std::string without_evidence(std::string_view text) {
  std::string result;
  static_cast<void>(each_line(text, [&](std::string_view line, uint32_t) {
    const std::vector<std::string_view> words = words_of(line);
    const bool counts = !words.empty() && words[0] != "time" && words[0] != "machine";
    result += fmt::format("{}\n", counts ? fmt::format("{}", fmt::join(words, " ")) : "");
    return Status();
  }));
  return result;
}

}  // namespace tutti
