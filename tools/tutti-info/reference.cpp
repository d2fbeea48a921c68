// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Counters and status codes: what each means, and what to do about it.
#include <fmt/format.h>

#include <iterator>

#include "pages.hpp"

namespace tutti::info {
namespace {

struct CounterText {
  const char* name;
  const char* text;
};

constexpr CounterText kCounters[] = {
#define TUTTI_COUNTER(name, text) {name, text},
#include "counters.def"
#undef TUTTI_COUNTER
};

struct ErrorText {
  tutti_status_t code;
  const char* what;
  const char* remedy;
};

constexpr ErrorText kErrors[] = {
#define TUTTI_ERROR_TEXT(code, what, remedy) {code, what, remedy},
#include "errors.def"
#undef TUTTI_ERROR_TEXT
};

const char* group_text(tutti_status_t code) {
  switch (-code / 100) {
    case 1:
      return "-1xx, the call: nothing was sent; communicator and peers are as before.";
    case 2:
      return "-2xx, the communicator: it cannot be used for further collectives. Destroy it; others are not affected.";
    case 3:
      return "-3xx, a peer or the way to it.";
    default:
      return "-4xx, this process or machine.";
  }
}

}  // namespace

std::string counters_page() {
  std::string text =
      "Counters of a context, as tutti_context_get_counter gives them (tutti-perf --counters prints them).\n"
      "They count from the context's creation, unless the text says \"now\".\n\n";
  for (const CounterText& counter : kCounters) text += fmt::format("{}\n    {}\n", counter.name, counter.text);
  return text;
}

std::string errors_page() {
  std::string text = "Status codes. tutti_last_error() says what was wrong in the case at hand.\n";
  tutti_status_t before = 0;
  for (const ErrorText& one : kErrors) {
    if (one.code / 100 != before / 100) text += fmt::format("\n{}\n", group_text(one.code));
    before = one.code;
    text +=
        fmt::format("  {} ({})\n      {}\n      What to do: {}\n", tutti_status_string(one.code), one.code, one.what, one.remedy);
  }
  return text;
}

}  // namespace tutti::info
