// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "select/tuning.hpp"

namespace tutti::tune {
namespace {

constexpr size_t kWordBytes = 64;
using Word = std::array<char, kWordBytes>;

/// The words of all ranks, each '+'-joined, as one.
std::string together(const std::vector<Word>& words, size_t first, size_t step) {
  std::set<std::string> all;
  for (size_t n = first; n < words.size(); n += step) {
    std::string_view rest(words[n].data());
    while (!rest.empty()) {
      const size_t end = rest.find('+');
      all.emplace(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }
  return fmt::format("{}", fmt::join(all, "+"));
}

void add(Word& word, std::string_view name) {
  const std::string text = fmt::format("{}{}{}", word.data(), word[0] == 0 ? "" : "+", name);
  std::memcpy(word.data(), text.c_str(), std::min(text.size() + 1, kWordBytes - 1));
}

}  // namespace

void require(tutti_status_t status, const std::string& what) {
  if (status == TUTTI_OK) return;
  throw RunError(fmt::format("{}: {}: {}", what, tutti_status_string(status), tutti_last_error()));
}

Job::Job() {
  const tutti_status_t status = tutti_comm_create(nullptr, &measured_);
  if (status == TUTTI_ERR_CONFIG) throw UsageError(tutti_last_error());
  require(status, "cannot create the communicator");
  int rank = 0;
  int size = 0;
  require(tutti_comm_rank(measured_, &rank), "rank");
  require(tutti_comm_size(measured_, &size), "size");
  rank_ = static_cast<uint32_t>(rank);
  shape_ = Shape::flat(static_cast<uint32_t>(size));
  require(tutti_comm_split(measured_, 0, rank, &talk_), "a second communicator");
  find_shape();
  find_links();
}

Job::~Job() {
  tutti_comm_destroy(talk_);
  tutti_comm_destroy(measured_);
}

void Job::largest(double* values, uint64_t count) const {
  require(tutti_allreduce(talk_, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT64, TUTTI_MAX), "exchange of times");
}

void Job::barrier() const { require(tutti_barrier(talk_), "barrier"); }

void Job::share(std::string& text) const {
  uint64_t bytes = text.size();
  require(tutti_broadcast(talk_, &bytes, 1, TUTTI_UINT64, 0), "broadcast of a length");
  text.resize(bytes);
  require(tutti_broadcast(talk_, text.data(), bytes, TUTTI_BYTE, 0), "broadcast of a text");
}

void Job::abort() const noexcept {
  tutti_comm_abort(measured_);
  tutti_comm_abort(talk_);
}

// The lowest ranks of the nodes are known by their local rank; who is on which node, by a reduction for each of them.
void Job::find_shape() {
  int local_rank = 0;
  require(tutti_comm_local_rank(measured_, &local_rank), "local rank");
  int local_size = 0;
  require(tutti_comm_local_size(measured_, &local_size), "local size");
  uint32_t nodes = local_rank == 0 ? 1 : 0;
  require(tutti_allreduce(talk_, TUTTI_IN_PLACE, &nodes, 1, TUTTI_UINT32, TUTTI_SUM), "counting the nodes");
  nodes_ = nodes;
  std::vector<uint32_t> places(size_t{2} * size());
  const uint32_t own[2] = {static_cast<uint32_t>(local_rank), static_cast<uint32_t>(local_size)};
  require(tutti_allgather(talk_, own, places.data(), 2, TUTTI_UINT32), "places of the ranks");
  // Ranks of a node follow each other, or are dealt out in turn: both are found by filling the first node that lacks this place.
  std::vector<uint32_t> filled;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> group_of;
  for (uint32_t r = 0; r < size(); ++r) {
    const uint32_t place = places[size_t{2} * r];
    const uint32_t here = places[size_t{2} * r + 1];
    uint32_t node = 0;
    while (node < filled.size() && !(filled[node] == place && sizes[node] == here)) ++node;
    if (node == filled.size()) {
      filled.push_back(0);
      sizes.push_back(here);
    }
    ++filled[node];
    group_of.push_back(node);
  }
  if (nodes_ > 1) shape_.group_of = {std::move(group_of)};
}

void Job::find_links() {
  tutti_context_t context = nullptr;
  require(tutti_comm_get_context(measured_, &context), "context");
  std::array<Word, 2> own{};
  const char* counter = nullptr;
  uint64_t value = 0;
  for (size_t index = 0; tutti_context_get_counter(context, index, &counter, &value) == TUTTI_OK; ++index) {
    const std::string_view name(counter);
    const std::string_view transport = name.substr(0, name.find('.'));
    if (value > 0 && name.ends_with(".node_peers")) add(own[0], transport);
    if (value > 0 && name.ends_with(".remote_peers")) add(own[1], transport);
  }
  std::vector<Word> all(own.size() * size());
  require(tutti_allgather(talk_, own.data(), all.data(), sizeof own, TUTTI_BYTE), "transports of the ranks");
  const std::string within = nodes_ == size() ? "" : together(all, 0, own.size());
  links_ = links_text(within, nodes_ == 1 ? "" : together(all, 1, own.size()));
}

}  // namespace tutti::tune
