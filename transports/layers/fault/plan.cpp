// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "fault/plan.hpp"

#include <utility>

#include "endpoint.hpp"

namespace tutti::fault {
namespace {

constexpr uint64_t kPollIntervalNs = 100'000;

}  // namespace

/// Nobody wakes a host for what is kept back: it must poll.
Plan::Plan(uint64_t seed, const tutti_tp_table_t* inner, void* inner_world, Rules rules)
    : seed_(seed), inner_(inner), inner_world_(inner_world), rules_(std::move(rules)), table_(*inner) {
  table_.caps |= TUTTI_TP_CAP_MUST_POLL;
  table_.poll_interval_ns = kPollIntervalNs;
  fill_endpoint_functions(table_);
  table_.channel_open = channel_open;
  table_.channel_close = channel_close;
  if ((inner->caps & TUTTI_TP_CAP_MESSAGES) != 0) {
    table_.post_send = post_send;
    table_.post_recv = post_recv;
  }
  if ((inner->caps & TUTTI_TP_CAP_SLOTS) != 0) {
    table_.slot_reserve = slot_reserve;
    table_.slot_commit = slot_commit;
    table_.slot_peek = slot_peek;
    table_.slot_release = slot_release;
  }
}

}  // namespace tutti::fault
