// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a choice, made the same on all ranks: rank 0's tuning file, the transports between the ranks, and what is forced
// later.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "comm/communicator.hpp"
#include "comm/context.hpp"

namespace tutti {
namespace {

constexpr size_t kMaxFileBytes = 16 << 20;
constexpr uint64_t kMaxTextBytes = kMaxFileBytes + 64 * 1024;  // with the file's name

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file || file.bad()) return error(TUTTI_ERR_CONFIG, "tuning_file: cannot read {}: {}", path, std::strerror(errno));
  if (text.size() > kMaxFileBytes)
    return error(TUTTI_ERR_CONFIG, "tuning_file: {} has {} bytes; {} are the most", path, text.size(), kMaxFileBytes);
  return text;
}

/// Names of the bits, joined by '+'.
std::string joined(const std::vector<std::string>& names, uint64_t bits) {
  std::string text;
  for (size_t n = 0; n < names.size() && n < 64; ++n) {
    if ((bits >> n & 1) != 0) text += (text.empty() ? "" : "+") + names[n];
  }
  return text;
}

}  // namespace

std::string LinkFacts::text(bool on_one_node, bool rank_a_node) const {
  return links_text(rank_a_node ? "" : joined(names, within_node), on_one_node ? "" : joined(names, between_nodes));
}

// What the others cannot read they are told: that there is something to come, or what is wrong with it.
void Context::read_tuning_file() {
  std::string& told = agreed_[std::string(all_settings()[static_cast<size_t>(Setting::tuning_file)].name)];
  const std::string& path = config_.text(Setting::tuning_file);
  if (rank_ != 0 || path.empty()) return;
  const Result<std::string> text = read_file(path);
  if (!text.ok()) {
    told = text.status().message();
    return;
  }
  const Result<TuningTable> table = TuningTable::parse(*text, path);
  told = table.ok() ? kTuningFollows : table.status().message();
  tuning_text_ = without_evidence(*text);
}

Status Communicator::agree_on_tuning() {
  const std::string& told = context_->agreed(Setting::tuning_file);
  if (told.empty()) return Status();
  if (told != Context::kTuningFollows) return error(TUTTI_ERR_CONFIG, "{}", told);
  LinkFacts links = context_->own_links();
  uint64_t bits[2] = {links.within_node, links.between_nodes};
  CollectiveArguments both;
  both.collective = Collective::allreduce;
  both.input = both.output = bits;
  both.in_place = true;
  both.count = std::size(bits);
  both.dtype = DType::u64;
  both.op = Op::bor;
  both.element_bytes = sizeof bits[0];
  TUTTI_TRY(run(both));
  links.within_node = bits[0];
  links.between_nodes = bits[1];
  std::string text = context_->config().text(Setting::tuning_file) + '\n' + context_->tuning_text();
  TUTTI_TRY(take_from_first(text));
  const size_t name_end = text.find('\n');
  Result<TuningTable> table = TuningTable::parse(std::string_view(text).substr(name_end + 1), text.substr(0, name_end));
  if (!table.ok()) return table.status();
  context_->log().info("tuning file {}: {} tables", table->origin(), table->sections().size());
  context_->share_tuning(std::make_shared<const TuningTable>(std::move(*table)), std::move(links));
  context_->engine().exclusively([this] { use_tuning(); });
  return Status();
}

void Communicator::use_tuning() {
  if (context_->tuning() == nullptr) return;
  selector_->set_tuning(context_->tuning(), node_count_, context_->links().text(node_count_ == 1, node_count_ == size()));
  call_.forget_last();
}

Status Communicator::take_from_first(std::string& text) {
  uint64_t bytes = text.size();
  CollectiveArguments message;
  message.collective = Collective::broadcast;
  message.input = message.output = &bytes;
  message.count = sizeof bytes;
  message.dtype = DType::u8;
  TUTTI_TRY(run(message));
  if (bytes > kMaxTextBytes)
    return error(TUTTI_ERR_PROTOCOL, "rank 0 sends a text of {} bytes; {} are the most", bytes, kMaxTextBytes);
  text.resize(bytes);
  message.input = message.output = text.data();
  message.count = bytes;
  return run(message);
}

Status Communicator::set_algorithm(Collective collective, std::string_view text) {
  std::string agreed = std::string(name(collective)) + '=' + std::string(text);
  const std::string_view own_name = name(collective);
  Status forced;
  try {
    TUTTI_TRY(take_from_first(agreed));
    const std::string_view told = agreed;
    const size_t equals = told.find('=');
    if (told.substr(0, equals) != own_name)
      return error(TUTTI_ERR_ARGUMENT, "rank 0 speaks of another collective, {}", told.substr(0, equals));
    // Calls before this one have ended, those after it have not begun: no rank is between two choices.
    context_->engine().exclusively([&] {
      forced = selector_->force(collective, told.substr(equals + 1));
      call_.forget_last();
    });
  } catch (const std::bad_alloc&) {
    context_->engine().abort(group_);  // others may have made another choice by now
    throw;
  }
  return forced;
}

}  // namespace tutti
