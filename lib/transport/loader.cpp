// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "transport/loader.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "check.hpp"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// A plugin that could not be used, by the name that its file has.
struct Skipped {
  std::string name;
  std::string why;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// "shm" of libtutti_shm.so and tutti_shm.so; "": not a plugin's file name.
std::string name_in_file(std::string_view file) {
  constexpr std::string_view kEnd = ".so";
  if (file.size() <= kEnd.size() || file.substr(file.size() - kEnd.size()) != kEnd) return {};
  file.remove_suffix(kEnd.size());
  for (const std::string_view begin : {"libtutti_", "tutti_"}) {
    if (file.substr(0, begin.size()) == begin) return std::string(file.substr(begin.size()));
  }
  return {};
}

/// Asks for the table. An exception stops here: the C ABI has none, but a plugin may be wrong.
std::string ask(tutti_transport_entry_t entry, const tutti_tp_table_t** table) noexcept {
  try {
    *table = entry(TUTTI_TP_ABI_VERSION);
    return fault_of_table(*table);
  } catch (const std::exception& thrown) {
    return fmt::format("its entry threw an exception: {}", thrown.what());
  } catch (...) {
    return "its entry threw an exception";
  }
}

class Loading {
 public:
  explicit Loading(const Log& log) : log_(log) {}

  void add_directory(const std::string& directory) {
    std::error_code error;
    std::vector<std::string> files;
    fs::directory_iterator entry(directory, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (!name_in_file(entry->path().filename().string()).empty()) files.push_back(entry->path().string());
    }
    if (error) log_.warn("transport_path: cannot read the directory '{}': {}", directory, error.message());
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) add_plugin(file);
  }

  void add_built_in(tutti_transport_entry_t entry) {
    const tutti_tp_table_t* table = nullptr;
    const std::string fault = ask(entry, &table);
    if (!fault.empty()) return log_.warn("a built-in transport is skipped: {}", fault);
    if (const LoadedTransport* other = find(table->name)) {
      return log_.info("transport {} comes from {} instead of the built-in one", table->name, other->origin);
    }
    found_.push_back({table, "built in"});
  }

  Result<std::vector<LoadedTransport>> choose(const std::string& allowed) {
    if (allowed.find_first_not_of(' ') == std::string::npos) return std::move(found_);
    std::vector<LoadedTransport> chosen;
    for (const std::string& name : split(allowed, ',')) {
      const LoadedTransport* transport = find(name);
      if (transport == nullptr) return unknown(name);
      for (const LoadedTransport& earlier : chosen) {
        if (earlier.table == transport->table) {
          return error(TUTTI_ERR_CONFIG, "transports: '{}' is named twice in '{}'", name, allowed);
        }
      }
      chosen.push_back(*transport);
    }
    if (chosen.empty()) return error(TUTTI_ERR_CONFIG, "transports: '{}' names none; there is: {}", allowed, names());
    return chosen;
  }

 private:
  /// RTLD_LOCAL: plugins need nothing of the host but its function table, and shall not meet each other's symbols. Never
  /// unloaded: tables, threads' destructors and vtables of a plugin may be referred to until the process ends.
  void add_plugin(const std::string& file) {
    const std::string name = name_in_file(fs::path(file).filename().string());
    ::dlerror();
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return skip(file, name, last_dl_error());
    void* symbol = ::dlsym(library, TUTTI_TP_ENTRY_NAME);
    if (symbol == nullptr) return skip(file, name, "it exports no " TUTTI_TP_ENTRY_NAME);
    const tutti_tp_table_t* table = nullptr;
    const std::string fault = ask(reinterpret_cast<tutti_transport_entry_t>(symbol), &table);
    if (!fault.empty()) return skip(file, name, fault);
    if (const LoadedTransport* other = find(table->name)) {
      return log_.warn("transport plugin {} is skipped: {} has the same name '{}' and comes first", file, other->origin,
                       table->name);
    }
    log_.info("transport {} comes from {}", table->name, file);
    found_.push_back({table, file});
  }

  static std::string last_dl_error() {
    const char* text = ::dlerror();
    return text == nullptr ? "it cannot be loaded" : text;
  }

  void skip(const std::string& file, const std::string& name, const std::string& why) {
    log_.warn("transport plugin {} is skipped: {}", file, why);
    skipped_.push_back({name, fmt::format("{}: {}", file, why)});
  }

  const LoadedTransport* find(std::string_view name) const {
    for (const LoadedTransport& transport : found_) {
      if (name == transport.table->name) return &transport;
    }
    return nullptr;
  }

  std::string names() const {
    std::string list;
    for (const LoadedTransport& transport : found_) {
      if (!list.empty()) list += ", ";
      list += transport.table->name;
    }
    return list.empty() ? "none" : list;
  }

  Status unknown(const std::string& name) const {
    for (const Skipped& plugin : skipped_) {
      if (plugin.name != name) continue;
      return error(TUTTI_ERR_CONFIG, "transports: '{}' cannot be used, its plugin was skipped ({}); there is: {}", name,
                   plugin.why, names());
    }
    return error(TUTTI_ERR_CONFIG, "transports: there is no transport '{}'; there is: {}", name, names());
  }

  const Log& log_;
  std::vector<LoadedTransport> found_;
  std::vector<Skipped> skipped_;
};

}  // namespace

Result<std::vector<LoadedTransport>> load_transports(const Config& config, const Log& log,
                                                     std::span<const tutti_transport_entry_t> built_in) {
  Loading loading(log);
  for (const std::string& directory : split(config.text(Setting::transport_path), ':')) loading.add_directory(directory);
  for (const tutti_transport_entry_t entry : built_in) loading.add_built_in(entry);
  return loading.choose(config.text(Setting::transports));
}

}  // namespace tutti
