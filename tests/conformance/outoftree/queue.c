/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static struct pipe* pipes;

void queue_push(struct ops* list, tutti_tp_op_t* op) {
  op->plugin[0] = NULL;
  if (list->first == NULL) {
    list->first = op;
  } else {
    list->last->plugin[0] = op;
  }
  list->last = op;
}

tutti_tp_op_t* queue_pop(struct ops* list) {
  tutti_tp_op_t* op = list->first;
  if (op != NULL) list->first = op->plugin[0];
  return op;
}

uint32_t queue_finish(struct tutti_tp_endpoint* endpoint) {
  uint32_t count = 0;
  for (tutti_tp_op_t* op = queue_pop(&endpoint->finished); op != NULL; op = queue_pop(&endpoint->finished)) {
    op->done = 1;
    ++count;
  }
  return count;
}

/* An operation of another endpoint than the caller's is marked done by that endpoint's own next call. */
static void complete(struct tutti_tp_channel* channel, tutti_tp_op_t* op, tutti_status_t status,
                     const struct tutti_tp_endpoint* caller) {
  op->status = status;
  if (channel->endpoint == caller) {
    op->done = 1;
    return;
  }
  queue_push(&channel->endpoint->finished, op);
  queue_wake(channel->endpoint);
}

static void receive(struct tutti_tp_channel* receiver, tutti_tp_op_t* op, const void* data, uint64_t bytes, uint32_t mark,
                    const struct tutti_tp_endpoint* caller) {
  const uint64_t capacity = (uint64_t)(uintptr_t)op->plugin[2];
  const uint64_t count = bytes < capacity ? bytes : capacity;
  if (count > 0) memcpy(op->plugin[1], data, count);
  op->bytes = bytes;
  op->mark = mark;
  complete(receiver, op, bytes > capacity ? TUTTI_ERR_TRUNCATED : TUTTI_OK, caller);
}

void queue_match(struct pipe* pipe, struct tutti_tp_endpoint* caller) {
  struct tutti_tp_channel* sender = pipe->end[TUTTI_TP_SEND];
  struct tutti_tp_channel* receiver = pipe->end[TUTTI_TP_RECV];
  if (pipe->closed[TUTTI_TP_RECV]) { /* nobody will ever want it */
    while (sender != NULL && sender->posted.first != NULL) complete(sender, queue_pop(&sender->posted), TUTTI_OK, caller);
    queue_drop_left(pipe);
    return;
  }
  if (receiver == NULL) return;
  while (receiver->posted.first != NULL && pipe->first_left != NULL) {
    struct leftover* left = pipe->first_left;
    receive(receiver, queue_pop(&receiver->posted), left->data, left->bytes, left->mark, caller);
    pipe->first_left = left->next;
    if (left->next == NULL) pipe->last_left = &pipe->first_left;
    free(left);
  }
  while (receiver->posted.first != NULL && sender != NULL && sender->posted.first != NULL) {
    tutti_tp_op_t* op = queue_pop(&sender->posted);
    ++sender->endpoint->messages;
    receive(receiver, queue_pop(&receiver->posted), op->plugin[1], op->bytes, op->mark, caller);
    complete(sender, op, TUTTI_OK, caller);
  }
}

/* ---- ends ---- */

void queue_end_ops(struct tutti_tp_channel* channel, tutti_status_t status) {
  queue_finish(channel->endpoint);
  while (channel->posted.first != NULL) complete(channel, queue_pop(&channel->posted), status, channel->endpoint);
}

void queue_drop_left(struct pipe* pipe) {
  while (pipe->first_left != NULL) {
    struct leftover* left = pipe->first_left;
    pipe->first_left = left->next;
    free(left);
  }
  pipe->last_left = &pipe->first_left;
}

/* The endpoint closes: what it has posted is copied for the receiver. */
void queue_leave_behind(struct tutti_tp_channel* channel) {
  for (tutti_tp_op_t* op = queue_pop(&channel->posted); op != NULL; op = queue_pop(&channel->posted)) {
    struct leftover* left = malloc(sizeof *left + op->bytes);
    if (left == NULL) {
      complete(channel, op, TUTTI_ERR_MEMORY, channel->endpoint);
      continue;
    }
    left->next = NULL;
    left->bytes = op->bytes;
    left->mark = op->mark;
    if (op->bytes > 0) memcpy(left->data, op->plugin[1], op->bytes);
    *channel->pipe->last_left = left;
    channel->pipe->last_left = &left->next;
    complete(channel, op, TUTTI_OK, channel->endpoint);
  }
}

static void free_pipe(struct pipe* pipe) {
  struct pipe** at = &pipes;
  while (*at != pipe) at = &(*at)->next;
  *at = pipe->next;
  queue_drop_left(pipe);
  free(pipe);
}

/* The endpoint is going. Pipes that it fed stay while somebody may still read them. */
void queue_drop_pipes(struct tutti_tp_endpoint* endpoint) {
  struct pipe* next = NULL;
  for (struct pipe* pipe = pipes; pipe != NULL; pipe = next) {
    next = pipe->next;
    const bool fed = pipe->from == endpoint->number;
    if (!fed && pipe->to != endpoint->number) continue;
    struct tutti_tp_endpoint* other = queue_endpoint(fed ? pipe->to : pipe->from);
    const bool in_use = other != NULL && (pipe->end[fed ? TUTTI_TP_RECV : TUTTI_TP_SEND] != NULL || fed);
    if (!in_use) free_pipe(pipe);
  }
}

/* The oldest use of the id that this end has not opened yet, or a new one. NULL: this end is open. */
static struct pipe* find_pipe(uint64_t from, uint64_t to, uint64_t id, int direction, tutti_status_t* status) {
  struct pipe** at = &pipes;
  for (; *at != NULL; at = &(*at)->next) {
    struct pipe* pipe = *at;
    if (pipe->from != from || pipe->to != to || pipe->id != id) continue;
    if (!pipe->opened[direction]) return pipe;
    if (!pipe->closed[direction]) {
      *status = TUTTI_ERR_ARGUMENT;
      return NULL;
    }
  }
  struct pipe* pipe = calloc(1, sizeof *pipe);
  if (pipe == NULL) {
    *status = TUTTI_ERR_MEMORY;
    return NULL;
  }
  pipe->from = from;
  pipe->to = to;
  pipe->id = id;
  pipe->last_left = &pipe->first_left;
  *at = pipe;
  return pipe;
}

static tutti_status_t open_channel(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction,
                                   tutti_tp_channel_t** channel) {
  if (endpoint->peers[peer].state == LINK_FAILED) return TUTTI_ERR_PEER_FAILED;
  const uint64_t other = endpoint->peers[peer].number;
  const bool sends = direction == TUTTI_TP_SEND;
  tutti_tp_channel_t* made = endpoint->host->alloc(endpoint->host->host, sizeof *made, 16);
  if (made == NULL) return TUTTI_ERR_MEMORY;
  tutti_status_t status = TUTTI_OK;
  struct pipe* pipe =
      find_pipe(sends ? endpoint->number : other, sends ? other : endpoint->number, id, direction, &status);
  if (pipe == NULL) {
    endpoint->host->free(endpoint->host->host, made);
    return status;
  }
  memset(made, 0, sizeof *made);
  made->endpoint = endpoint;
  made->pipe = pipe;
  made->peer = peer;
  made->direction = direction;
  made->next = endpoint->channels;
  endpoint->channels = made;
  endpoint->memory_bytes += sizeof *made;
  pipe->opened[direction] = true;
  pipe->end[direction] = made;
  *channel = made;
  return TUTTI_OK;
}

tutti_status_t queue_channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel) {
  if (slots != 0) return TUTTI_ERR_UNSUPPORTED;
  if (direction != TUTTI_TP_SEND && direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  if (peer >= endpoint->size || peer == endpoint->rank || endpoint->peers[peer].number == 0) return TUTTI_ERR_RANK;
  pthread_mutex_lock(&queue_mutex);
  const tutti_status_t status = open_channel(endpoint, peer, id, direction, channel);
  pthread_mutex_unlock(&queue_mutex);
  return status;
}

void queue_channel_close(tutti_tp_channel_t* channel) {
  struct tutti_tp_endpoint* endpoint = channel->endpoint;
  struct pipe* pipe = channel->pipe;
  pthread_mutex_lock(&queue_mutex);
  queue_end_ops(channel, TUTTI_ERR_ABORTED);
  pipe->closed[channel->direction] = true;
  pipe->end[channel->direction] = NULL;
  queue_match(pipe, endpoint);
  if (pipe->closed[0] && pipe->closed[1]) free_pipe(pipe);
  struct tutti_tp_channel** at = &endpoint->channels;
  while (*at != channel) at = &(*at)->next;
  *at = channel->next;
  endpoint->memory_bytes -= sizeof *channel;
  pthread_mutex_unlock(&queue_mutex);
  endpoint->host->free(endpoint->host->host, channel);
}

/* ---- posts ---- */

tutti_status_t queue_post_send(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark,
                               tutti_tp_op_t* op) {
  if (channel->direction != TUTTI_TP_SEND) return TUTTI_ERR_ARGUMENT;
  pthread_mutex_lock(&queue_mutex);
  const bool open = channel->endpoint->peers[channel->peer].state == LINK_OPEN;
  if (open) {
    memset(op, 0, sizeof *op);
    op->bytes = bytes;
    op->mark = mark;
    op->plugin[1] = (void*)(uintptr_t)data;
    queue_push(&channel->posted, op);
    queue_match(channel->pipe, channel->endpoint);
  }
  pthread_mutex_unlock(&queue_mutex);
  return open ? TUTTI_OK : TUTTI_ERR_PEER_FAILED;
}

tutti_status_t queue_post_recv(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op) {
  if (channel->direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  pthread_mutex_lock(&queue_mutex);
  const bool open = channel->endpoint->peers[channel->peer].state == LINK_OPEN || channel->pipe->first_left != NULL;
  if (open) {
    memset(op, 0, sizeof *op);
    op->plugin[1] = data;
    op->plugin[2] = (void*)(uintptr_t)capacity;
    queue_push(&channel->posted, op);
    queue_match(channel->pipe, channel->endpoint);
  }
  pthread_mutex_unlock(&queue_mutex);
  return open ? TUTTI_OK : TUTTI_ERR_PEER_FAILED;
}
