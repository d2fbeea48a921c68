// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/json_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/types.hpp"

namespace tutti {

using nlohmann::json;

Result<std::string> read_text_file(const std::string& path, uint64_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return error(TUTTI_ERR_CONFIG, "{}: cannot be read; is it there, and may this user read it?", path);
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof piece), file.gcount() > 0) {
    text.append(piece, static_cast<size_t>(file.gcount()));
    if (text.size() > most_bytes)
      return error(TUTTI_ERR_CONFIG, "{}: is longer than {}; is it the right file?", path, format_bytes(most_bytes));
  }
  if (file.bad() || !file.eof()) return error(TUTTI_ERR_CONFIG, "{}: cannot be read; is it a folder?", path);
  return text;
}

Result<json> parse_json(std::string_view text, std::string_view source) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& problem) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string what = problem.what();
    const size_t begin = what.find("] ");
    return error(TUTTI_ERR_CONFIG, "{}: {}", source, begin == std::string::npos ? what : what.substr(begin + 2));
  }
}

JsonFields::JsonFields(const json& object, std::string path, FileComplaint& complaint)
    : object_(object), path_(std::move(path)), complaint_(complaint) {
  if (!object_.is_object()) complaint_.say(path_, "an object is needed: { ... }");
}

bool JsonFields::has(const char* field) { return find(field) != nullptr; }

void JsonFields::number(const char* field, double& value) {
  const json* const found = find(field);
  if (found == nullptr) return;
  if (!found->is_number() || found->get<double>() < 0) {
    complaint_.say(path_of(field), fmt::format("a number from 0 on is needed, not {}", found->dump()));
    return;
  }
  value = found->get<double>();
}

void JsonFields::whole(const char* field, uint32_t& value) {
  uint64_t wide = value;
  const json* const found = find(field);
  if (found != nullptr && whole(*found, path_of(field), UINT32_MAX, wide)) value = static_cast<uint32_t>(wide);
}

void JsonFields::whole(const char* field, uint64_t& value) {
  if (const json* const found = find(field)) whole(*found, path_of(field), UINT64_MAX, value);
}

void JsonFields::bytes(const char* field, uint64_t& value) {
  const json* const found = find(field);
  if (found == nullptr) return;
  const Result<uint64_t> parsed = parse_bytes(found->is_string() ? found->get<std::string>() : found->dump());
  if (parsed.ok()) {
    value = *parsed;
  } else {
    complaint_.say(path_of(field), parsed.status().message());
  }
}

void JsonFields::flag(const char* field, bool& value) {
  const json* const found = find(field);
  if (found == nullptr) return;
  if (found->is_boolean()) {
    value = found->get<bool>();
  } else {
    complaint_.say(path_of(field), fmt::format("true or false is needed, not {}", found->dump()));
  }
}

void JsonFields::text(const char* field, std::string& value) {
  const json* const found = find(field);
  if (found == nullptr) return;
  if (found->is_string()) {
    value = found->get<std::string>();
  } else {
    complaint_.say(path_of(field), fmt::format("a text is needed, not {}", found->dump()));
  }
}

void JsonFields::texts(const char* field, std::vector<std::string>& values) {
  for (size_t n = 0, count = count_of(field); n < count; ++n) {
    const json& one = element(field, n);
    if (one.is_string()) {
      values.push_back(one.get<std::string>());
    } else {
      complaint_.say(path_of(field, n), fmt::format("a text is needed, not {}", one.dump()));
    }
  }
}

void JsonFields::wholes(const char* field, std::vector<uint32_t>& values) {
  for (size_t n = 0, count = count_of(field); n < count; ++n) {
    uint64_t value = 0;
    whole(element(field, n), path_of(field, n), UINT32_MAX, value);
    values.push_back(static_cast<uint32_t>(value));
  }
}

void JsonFields::finish() {
  if (!object_.is_object()) return;
  for (const auto& entry : object_.items()) {
    if (known_.count(entry.key()) > 0) continue;
    complaint_.say(path_of(entry.key()), fmt::format("there is no such field; known are {}", fmt::join(known_, ", ")));
  }
}

std::string JsonFields::path_of(std::string_view field) const {
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

std::string JsonFields::path_of(std::string_view field, size_t index) const {
  return fmt::format("{}[{}]", path_of(field), index);
}

const json* JsonFields::find(const char* field) {
  known_.insert(field);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(field);
  return found == object_.end() ? nullptr : &*found;
}

size_t JsonFields::count_of(const char* field) {
  const json* const found = find(field);
  if (found == nullptr) return 0;
  if (found->is_array()) return found->size();
  complaint_.say(path_of(field), "a list is needed: [ ... ]");
  return 0;
}

const json& JsonFields::element(const char* field, size_t index) { return object_[field][index]; }

bool JsonFields::whole(const json& element, const std::string& path, uint64_t most, uint64_t& value) {
  if (!element.is_number_unsigned() || element.get<uint64_t>() > most) {
    complaint_.say(path, fmt::format("a whole number is needed, not {}", element.dump()));
    return false;
  }
  value = element.get<uint64_t>();
  return true;
}

}  // namespace tutti
