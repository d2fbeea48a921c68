// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

/// Files that people write in JSON, read so that each mistake is named by file and field. Whoever includes this depends on
/// nlohmann_json too.
namespace tutti {

/// The whole file; TUTTI_ERR_CONFIG with the path when it cannot be read or is longer than `most_bytes`.
Result<std::string> read_text_file(const std::string& path, uint64_t most_bytes);

/// TUTTI_ERR_CONFIG with `source` (for people: the path), line and column where the text is no JSON.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view source);

/// The first thing that is wrong with a file.
class FileComplaint {
 public:
  explicit FileComplaint(std::string_view source) : source_(source) {}
  /// field: its path in the file, "levels[2].radix"; "": the file as a whole.
  void say(std::string_view field, std::string_view what) {
    if (status_.ok()) status_ = error(TUTTI_ERR_CONFIG, "{}: {}: {}", source_, field.empty() ? "the file" : field, what);
  }
  const Status& status() const noexcept { return status_; }

 private:
  std::string source_;
  Status status_;
};

/// One object of the file. Fields that are not there leave the value as it is; those that nobody asked for are complained of.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string path, FileComplaint& complaint);

  bool has(const char* field);
  void number(const char* field, double& value);
  void whole(const char* field, uint32_t& value);
  void whole(const char* field, uint64_t& value);
  /// A number, or a text like "64K".
  void bytes(const char* field, uint64_t& value);
  void flag(const char* field, bool& value);
  void text(const char* field, std::string& value);
  void texts(const char* field, std::vector<std::string>& values);
  void wholes(const char* field, std::vector<uint32_t>& values);
  /// take(JsonFields&) for the object, if it is there.
  template <class Take>
  bool object(const char* field, Take take) {
    const nlohmann::json* const found = find(field);
    if (found == nullptr) return false;
    take_one(*found, path_of(field), take);
    return true;
  }
  /// Likewise for each object of a list.
  template <class Take>
  void objects(const char* field, Take take) {
    for (size_t n = 0, count = count_of(field); n < count; ++n) take_one(element(field, n), path_of(field, n), take);
  }

  /// After all fields were asked for.
  void finish();

  std::string path_of(std::string_view field) const;
  std::string path_of(std::string_view field, size_t index) const;
  FileComplaint& complaint() noexcept { return complaint_; }

 private:
  template <class Take>
  void take_one(const nlohmann::json& found, std::string path, Take& take) {
    JsonFields inner(found, std::move(path), complaint_);
    take(inner);
    inner.finish();
  }
  const nlohmann::json* find(const char* field);
  size_t count_of(const char* field);
  const nlohmann::json& element(const char* field, size_t index);
  bool whole(const nlohmann::json& element, const std::string& path, uint64_t most, uint64_t& value);

  const nlohmann::json& object_;
  std::string path_;
  FileComplaint& complaint_;
  std::set<std::string> known_;
};

}  // namespace tutti
