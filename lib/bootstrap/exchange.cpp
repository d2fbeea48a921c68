// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/exchange.hpp"

#include <array>
#include <charconv>
#include <optional>

#include "bootstrap/unique_id.hpp"
#include "exchange_keys.hpp"
#include "store_wire.hpp"

namespace tutti {
namespace {

constexpr size_t kMostCardBytes = 64 * 1024;
constexpr uint64_t kLastWordsNs = 2'000'000'000;  // for the store to take the outcome in

std::string prefix_of(std::string_view room, uint32_t generation) { return fmt::format("x/{}/{}/", room, generation); }

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What all ranks must agree on, as the first one to come has noted it.
struct JobNote {
  uint32_t size = 0;
  uint32_t version = 0;
  uint32_t rank = 0;  // who noted it

  std::string text() const { return fmt::format("{} {} {}", size, version, rank); }
  static std::optional<JobNote> parse(std::string_view text) {
    JobNote note;
    for (uint32_t* field : {&note.size, &note.version, &note.rank}) {
      const size_t space = std::min(text.find(' '), text.size());
      const std::optional<uint32_t> number = parse_number(text.substr(0, space));
      if (!number) return std::nullopt;
      *field = *number;
      text.remove_prefix(std::min(space + 1, text.size()));
    }
    return note;
  }
};

void append_card(std::string* bundle, uint32_t rank, std::string_view card) {
  put_u32(bundle, rank);
  put_u32(bundle, static_cast<uint32_t>(card.size()));
  bundle->append(card);
}

}  // namespace

std::string exchange_done_prefix(std::string_view room) { return fmt::format("done/{}/", room); }

std::string exchange_job_key(std::string_view room, uint32_t generation) { return prefix_of(room, generation) + "job"; }

uint32_t exchange_job_size(std::string_view value) {
  const std::optional<JobNote> note = JobNote::parse(value);
  return note ? note->size : 0;
}

struct Exchange::State {
  enum class Phase : uint8_t { ask_generation, join, gather, await_table, leave, done, name_missing, tell, failed };

  explicit State(ExchangeOptions given) : options(std::move(given)) {
    std::array<std::byte, 16> bytes{};
    options.random->fill(bytes);
    token = to_hex(bytes);
    incarnation = options.store != nullptr ? options.store->incarnation() : 0;
  }

  ExchangeOptions options;
  std::string token;  // tells this process from another one that says it is the same rank
  uint32_t incarnation = 0;
  Phase phase = Phase::ask_generation;
  uint32_t generation = 0;
  std::string prefix;
  bool have_who = false;
  bool have_job = false;
  std::string bundle;              // own card and those of the ranks below
  std::vector<uint32_t> children;  // not heard yet
  std::vector<std::string> cards;
  Status verdict;
  Deadline last_words;

  uint32_t size() const { return static_cast<uint32_t>(options.size); }
  uint32_t rank() const { return static_cast<uint32_t>(options.rank); }
  Store& store() const { return *options.store; }

  Status check_arguments() const;
  void restart();
  Result<bool> advance();  // true: something was done, call again
  Result<bool> ask_generation();
  Result<bool> join();
  Status check_note(std::string_view noted) const;
  Result<bool> gather();
  Status merge(uint32_t child, std::string_view from);
  Result<bool> await_table();
  Result<bool> publish();
  Status read_table(std::string_view table);
  Result<bool> leave();
  Result<bool> name_missing();
  Result<bool> tell();
  Status look_for_errors();
  void tell_all(Status why);
  bool waits_for_others() const { return phase < Phase::leave; }
};

Status Exchange::State::check_arguments() const {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return error(TUTTI_ERR_RANK, "rank {} is outside the job of {} ranks", options.rank, options.size);
  }
  if (options.store == nullptr && options.size > 1) {
    return error(TUTTI_ERR_ARGUMENT, "{} ranks cannot exchange their cards without a store", options.size);
  }
  if (options.card.size() > kMostCardBytes) {
    return error(TUTTI_ERR_ARGUMENT, "a card of {} bytes; at most {} are exchanged", options.card.size(), kMostCardBytes);
  }
  return Status();
}

void Exchange::State::restart() {
  incarnation = store().incarnation();
  phase = Phase::ask_generation;
  have_who = have_job = false;
  children.clear();
  bundle.clear();
}

Result<bool> Exchange::State::advance() {
  switch (phase) {
    case Phase::ask_generation:
      return ask_generation();
    case Phase::join:
      return join();
    case Phase::gather:
      return gather();
    case Phase::await_table:
      return await_table();
    case Phase::leave:
      return leave();
    case Phase::name_missing:
      return name_missing();
    case Phase::tell:
      return tell();
    case Phase::done:
    case Phase::failed:
      return false;
  }
  return false;
}

Result<bool> Exchange::State::ask_generation() {
  std::string had;
  const Result<bool> known = store().claim(fmt::format("{}{}", exchange_done_prefix(options.room), rank()), "0", &had);
  if (!known.ok() || !*known) return known;
  const std::optional<uint32_t> count = parse_number(had);
  if (!count) return error(TUTTI_ERR_PROTOCOL, "the store's note about rank {} cannot be read", rank());
  generation = *count + 1;
  prefix = prefix_of(options.room, generation);
  phase = Phase::join;
  return true;
}

Result<bool> Exchange::State::join() {
  if (!have_who) {
    std::string holder;
    const Result<bool> known = store().claim(fmt::format("{}who/{}", prefix, rank()), token, &holder);
    TUTTI_TRY(known.status());
    have_who = *known;
    if (have_who && holder != token) {
      tell_all(error(TUTTI_ERR_ENVIRONMENT,
                     "two processes say that they are rank {} of this job; give every process its own rank", rank()));
      return true;
    }
  }
  if (!have_job) {
    std::string noted;
    const Result<bool> known =
        store().claim(exchange_job_key(options.room, generation), JobNote{size(), options.version, rank()}.text(), &noted);
    TUTTI_TRY(known.status());
    have_job = *known;
    if (have_job) {
      if (Status why = check_note(noted); !why.ok()) {
        tell_all(std::move(why));
        return true;
      }
    }
  }
  if (!have_who || !have_job) return false;
  append_card(&bundle, rank(), options.card);
  for (uint64_t i = 1; i <= options.arity; ++i) {
    const uint64_t child = uint64_t{rank()} * options.arity + i;
    if (child < size()) children.push_back(static_cast<uint32_t>(child));
  }
  phase = Phase::gather;
  return true;
}

Status Exchange::State::check_note(std::string_view noted) const {
  const std::optional<JobNote> first = JobNote::parse(noted);
  if (!first) return error(TUTTI_ERR_PROTOCOL, "the store's note about the job cannot be read");
  if (first->version != options.version) {
    return error(TUTTI_ERR_VERSION,
                 "rank {} speaks version {} of Tutti's protocol, rank {} version {}: install the same release everywhere",
                 first->rank, first->version, rank(), options.version);
  }
  if (first->size != size()) {
    return error(TUTTI_ERR_MISMATCH, "rank {} was started as one of {} ranks, rank {} as one of {}", first->rank, first->size,
                 rank(), size());
  }
  return Status();
}

Result<bool> Exchange::State::gather() {
  for (size_t i = 0; i < children.size();) {
    const std::string key = fmt::format("{}up/{}.", prefix, children[i]);
    std::string from;
    const Result<bool> known = store().get(key, &from);
    TUTTI_TRY(known.status());
    if (!*known) {
      ++i;
      continue;
    }
    TUTTI_TRY(merge(children[i], from));
    TUTTI_TRY(store().erase(key));  // nobody else reads it, and the store holds every card once per level otherwise
    children.erase(children.begin() + static_cast<ptrdiff_t>(i));
  }
  if (!children.empty()) return false;
  if (rank() == 0) return publish();
  TUTTI_TRY(store().set(fmt::format("{}up/{}.", prefix, rank()), bundle));
  phase = Phase::await_table;
  return true;
}

Status Exchange::State::merge(uint32_t child, std::string_view from) {
  for (std::string_view rest = from; !rest.empty();) {
    const std::optional<uint32_t> who = take_u32(&rest);
    const std::optional<uint32_t> bytes = take_u32(&rest);
    if (!who || !bytes || *who >= size() || *bytes > rest.size()) {
      return error(TUTTI_ERR_PROTOCOL, "what rank {} has put into the store cannot be read", child);
    }
    rest.remove_prefix(*bytes);
  }
  bundle.append(from);
  return Status();
}

Result<bool> Exchange::State::publish() {
  std::vector<std::optional<std::string_view>> found(size());
  std::string_view rest = bundle;
  while (!rest.empty()) {
    const uint32_t who = take_u32(&rest).value_or(0);
    const uint32_t bytes = take_u32(&rest).value_or(0);
    found[who] = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
  }
  std::string table;
  put_u32(&table, size());
  for (uint32_t i = 0; i < size(); ++i) {
    if (!found[i]) return error(TUTTI_ERR_PROTOCOL, "the card of rank {} got lost on its way through the store", i);
    put_u32(&table, static_cast<uint32_t>(found[i]->size()));
    table.append(*found[i]);
  }
  TUTTI_TRY(read_table(table));
  // All ranks are in this exchange, so none is left in the one before.
  if (generation > 1) TUTTI_TRY(store().erase(prefix_of(options.room, generation - 1)));
  TUTTI_TRY(store().set(prefix + "table", table));
  return true;
}

Result<bool> Exchange::State::await_table() {
  std::string table;
  const Result<bool> known = store().get(prefix + "table", &table);
  if (!known.ok() || !*known) return known;
  TUTTI_TRY(read_table(table));
  return true;
}

Status Exchange::State::read_table(std::string_view table) {
  std::vector<std::string> read;
  const std::optional<uint32_t> count = take_u32(&table);
  bool good = count && *count == size();
  while (good && read.size() < size()) {
    const std::optional<uint32_t> bytes = take_u32(&table);
    good = bytes && *bytes <= table.size();
    if (!good) break;
    read.emplace_back(table.substr(0, *bytes));
    table.remove_prefix(*bytes);
  }
  if (!good || !table.empty()) return error(TUTTI_ERR_PROTOCOL, "the table of all ranks in the store cannot be read");
  cards = std::move(read);
  bundle.clear();
  TUTTI_TRY(store().set(fmt::format("{}{}", exchange_done_prefix(options.room), rank()), fmt::format("{}", generation)));
  last_words = Deadline::after(*options.clock, kLastWordsNs);
  phase = Phase::leave;
  return Status();
}

Result<bool> Exchange::State::leave() {
  // The table is here: whatever happens to the store now is no failure of this rank's.
  const Result<bool> flushed = store().flushed();
  if (flushed.ok() && !*flushed && !last_words.passed(*options.clock)) return false;
  phase = Phase::done;
  return true;
}

Status Exchange::State::look_for_errors() {
  std::string text;
  for (const std::string& key : {std::string(kServerErrorKey), prefix + "error"}) {
    if (key == "error") continue;  // no generation yet
    const Result<bool> known = store().get(key, &text);
    TUTTI_TRY(known.status());
    if (*known) return decode_status(text);
  }
  return Status();
}

Result<bool> Exchange::State::name_missing() {
  RankSet missing;
  const Result<bool> known = store().find_absent(prefix + "who/", size(), &missing);
  if (known.ok() && !*known && !last_words.passed(*options.clock)) return false;
  if (!known.ok() || !*known) {
    const std::string trouble = known.ok() ? store().trouble() : std::string(known.status().message());
    verdict =
        error(TUTTI_ERR_MISSING_RANK, "not all of the {} ranks arrived in time, and the store does not say who is missing{}{}",
              size(), trouble.empty() ? "" : ": ", trouble);
    phase = Phase::failed;
    return true;
  }
  if (missing.count == 0) {
    tell_all(error(TUTTI_ERR_TIMEOUT, "all {} ranks arrived, but the exchange of addresses did not end in time", size()));
  } else {
    tell_all(error(TUTTI_ERR_MISSING_RANK, "{} of {} ranks did not arrive in time (setting bootstrap_timeout): missing rank{} {}",
                   missing.count, size(), missing.count == 1 ? "" : "s", missing.text()));
  }
  return true;
}

void Exchange::State::tell_all(Status why) {
  verdict = std::move(why);
  last_words = Deadline::after(*options.clock, kLastWordsNs);
  phase = Phase::tell;
}

Result<bool> Exchange::State::tell() {
  std::string holder;
  const Result<bool> known = store().claim(prefix + "error", encode_status(verdict), &holder);
  if (known.ok() && !*known && !last_words.passed(*options.clock)) return false;
  // Whoever was first has said what all ranks say.
  if (known.ok() && *known) verdict = decode_status(holder);
  phase = Phase::failed;
  return true;
}

Exchange::Exchange(ExchangeOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Exchange::~Exchange() = default;

Result<bool> Exchange::step() {
  State& state = *state_;
  if (state.phase == State::Phase::ask_generation) TUTTI_TRY(state.check_arguments());
  if (state.options.store == nullptr && state.options.size == 1) {  // nobody to exchange with
    if (state.phase != State::Phase::done) state.cards = {state.options.card};
    state.phase = State::Phase::done;
  }
  while (state.phase != State::Phase::done && state.phase != State::Phase::failed) {
    if (state.waits_for_others()) {
      if (state.store().incarnation() != state.incarnation) state.restart();
      if (const Status seen = state.look_for_errors(); !seen.ok()) {
        state.verdict = seen;
        state.phase = State::Phase::failed;
        break;
      }
      if (state.options.deadline.passed(*state.options.clock)) {
        state.last_words = Deadline::after(*state.options.clock, kLastWordsNs);
        state.phase = state.phase == State::Phase::ask_generation ? State::Phase::failed : State::Phase::name_missing;
        const std::string trouble = state.store().trouble();
        state.verdict =
            error(TUTTI_ERR_CONNECT, "the rendezvous did not answer in time{}{}", trouble.empty() ? "" : ": ", trouble);
        continue;
      }
    }
    const Result<bool> moved = state.advance();
    if (!moved.ok()) {
      state.verdict = moved.status();
      state.phase = State::Phase::failed;
    } else if (!*moved) {
      return false;
    }
  }
  if (state.phase == State::Phase::failed) return state.verdict;
  return true;
}

const std::vector<std::string>& Exchange::cards() const noexcept { return state_->cards; }
std::vector<std::string> Exchange::take_cards() { return std::move(state_->cards); }
uint32_t Exchange::generation() const noexcept { return state_->generation; }

}  // namespace tutti
