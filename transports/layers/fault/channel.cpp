// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "endpoint.hpp"

namespace tutti::fault {
namespace {

bool again(Channel& channel) { return channel.endpoint->chance(channel.endpoint->plan.rules().again_percent); }

}  // namespace

tutti_status_t channel_open(tutti_tp_endpoint_t* handle, uint32_t peer, uint64_t id, int direction, int slots,
                            tutti_tp_channel_t** channel) {
  Endpoint* endpoint = of(handle);
  auto made = std::make_unique<Channel>();
  made->endpoint = endpoint;
  made->peer = peer;
  const tutti_status_t status = endpoint->under().channel_open(endpoint->inner, peer, id, direction, slots, &made->inner);
  if (status != TUTTI_OK) return status;
  endpoint->channels.push_back(made.get());
  *channel = reinterpret_cast<tutti_tp_channel_t*>(made.release());
  return TUTTI_OK;
}

void channel_close(tutti_tp_channel_t* handle) {
  Channel* channel = of(handle);
  Endpoint& endpoint = *channel->endpoint;
  endpoint.end_held(*channel, TUTTI_ERR_ABORTED);
  endpoint.under().channel_close(channel->inner);
  endpoint.channels.erase(std::find(endpoint.channels.begin(), endpoint.channels.end(), channel));
  delete channel;
}

tutti_status_t post_send(tutti_tp_channel_t* handle, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op) {
  Channel* channel = of(handle);
  Endpoint& endpoint = *channel->endpoint;
  if (!endpoint.gone[channel->peer] && again(*channel)) return TUTTI_TP_AGAIN;
  const uint64_t now_ns = endpoint.now_ns();
  const uint64_t due_ns = endpoint.due_ns();
  if (channel->held.empty() && (due_ns <= now_ns || endpoint.gone[channel->peer])) {
    const tutti_status_t status = endpoint.under().post_send(channel->inner, data, bytes, mark, op);
    if (status == TUTTI_OK) endpoint.count(channel->peer);
    return status;
  }
  *op = tutti_tp_op_t{};
  channel->held.push_back({op, data, bytes, mark, due_ns});
  return TUTTI_OK;
}

tutti_status_t post_recv(tutti_tp_channel_t* handle, void* data, uint64_t capacity, tutti_tp_op_t* op) {
  Channel* channel = of(handle);
  if (again(*channel)) return TUTTI_TP_AGAIN;
  return channel->endpoint->under().post_recv(channel->inner, data, capacity, op);
}

tutti_status_t slot_reserve(tutti_tp_channel_t* handle, uint64_t bytes, void** slot) {
  Channel* channel = of(handle);
  if (!channel->reserved && again(*channel)) return TUTTI_TP_AGAIN;
  const tutti_status_t status = channel->endpoint->under().slot_reserve(channel->inner, bytes, slot);
  if (status == TUTTI_OK) channel->reserved = true;
  return status;
}

tutti_status_t slot_commit(tutti_tp_channel_t* handle, uint64_t bytes, uint32_t mark) {
  Channel* channel = of(handle);
  const tutti_status_t status = channel->endpoint->under().slot_commit(channel->inner, bytes, mark);
  if (status != TUTTI_OK) return status;
  channel->reserved = false;
  channel->endpoint->count(channel->peer);
  return TUTTI_OK;
}

tutti_status_t slot_peek(tutti_tp_channel_t* handle, const void** slot, uint64_t* bytes, uint32_t* mark) {
  Channel* channel = of(handle);
  Endpoint& endpoint = *channel->endpoint;
  const void* found = nullptr;
  uint64_t length = 0;
  uint32_t found_mark = 0;
  const tutti_status_t status = endpoint.under().slot_peek(channel->inner, &found, &length, &found_mark);
  if (status != TUTTI_OK) return status;
  if (!channel->seen) {
    channel->seen = true;
    channel->due_ns = endpoint.due_ns();
  }
  if (channel->due_ns > endpoint.now_ns()) return TUTTI_TP_AGAIN;
  *slot = found;
  *bytes = length;
  *mark = found_mark;
  return TUTTI_OK;
}

tutti_status_t slot_release(tutti_tp_channel_t* handle) {
  Channel* channel = of(handle);
  const tutti_status_t status = channel->endpoint->under().slot_release(channel->inner);
  if (status == TUTTI_OK) channel->seen = false;
  return status;
}

}  // namespace tutti::fault
