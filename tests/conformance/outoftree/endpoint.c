/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "queue.h"

pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tutti_tp_endpoint* endpoints;
static uint64_t last_number;

struct tutti_tp_endpoint* queue_endpoint(uint64_t number) {
  struct tutti_tp_endpoint* endpoint = endpoints;
  while (endpoint != NULL && endpoint->number != number) endpoint = endpoint->next;
  return endpoint;
}

void queue_wake(struct tutti_tp_endpoint* endpoint) {
  const uint64_t one = 1;
  endpoint->has_news = true;
  if (!endpoint->armed || endpoint->rung) return;
  endpoint->rung = write(endpoint->fd, &one, sizeof one) == sizeof one;
}

/* ---- set-up ---- */

struct address {
  char mark[8];
  uint64_t number;
};

static tutti_status_t do_open(const tutti_tp_open_t* args, tutti_tp_endpoint_t** endpoint) {
  const tutti_tp_host_t* host = args->host;
  if (args->rank >= args->size) return TUTTI_ERR_ARGUMENT;
  struct tutti_tp_endpoint* made = host->alloc(host->host, sizeof *made, 16);
  if (made == NULL) return TUTTI_ERR_MEMORY;
  memset(made, 0, sizeof *made);
  made->peers = host->alloc(host->host, args->size * sizeof *made->peers, 16);
  made->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made->peers == NULL || made->fd < 0) {
    host->log(host->host, TUTTI_LOG_INFO, "queue: no memory or no descriptor");
    if (made->fd >= 0) close(made->fd);
    host->free(host->host, made->peers);
    host->free(host->host, made);
    return TUTTI_ERR_RESOURCE;
  }
  memset(made->peers, 0, args->size * sizeof *made->peers);
  made->host = host;
  made->rank = args->rank;
  made->size = args->size;
  made->memory_bytes = sizeof *made + args->size * sizeof *made->peers;
  host->mac(host->host, args->job_id, sizeof args->job_id, made->proof);
  pthread_mutex_lock(&queue_mutex);
  made->number = ++last_number;
  made->next = endpoints;
  endpoints = made;
  pthread_mutex_unlock(&queue_mutex);
  *endpoint = made;
  return TUTTI_OK;
}

static tutti_status_t do_address(tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes) {
  struct address own;
  if (capacity < sizeof own) return TUTTI_ERR_ARGUMENT;
  memcpy(own.mark, "in queue", sizeof own.mark);
  own.number = endpoint->number;
  memcpy(buffer, &own, sizeof own);
  *bytes = sizeof own;
  return TUTTI_OK;
}

static tutti_status_t do_set_peer(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes) {
  struct address theirs;
  if (peer >= endpoint->size) return TUTTI_ERR_RANK;
  if (bytes != sizeof theirs) return TUTTI_ERR_PROTOCOL;
  memcpy(&theirs, address, sizeof theirs);
  if (memcmp(theirs.mark, "in queue", sizeof theirs.mark) != 0 || theirs.number == 0) return TUTTI_ERR_PROTOCOL;
  pthread_mutex_lock(&queue_mutex);
  const struct tutti_tp_endpoint* other = queue_endpoint(theirs.number);
  const bool ours = other != NULL && other->rank == peer && memcmp(other->proof, endpoint->proof, sizeof other->proof) == 0;
  if (ours) endpoint->peers[peer].number = theirs.number;
  pthread_mutex_unlock(&queue_mutex);
  return ours ? TUTTI_OK : TUTTI_ERR_AUTH;
}

static tutti_status_t do_start(tutti_tp_endpoint_t* endpoint) {
  pthread_mutex_lock(&queue_mutex);
  endpoint->started = true;
  pthread_mutex_unlock(&queue_mutex);
  return TUTTI_OK;
}

static bool reachable(const tutti_tp_endpoint_t* endpoint, uint32_t peer) {
  return peer < endpoint->size && peer != endpoint->rank && endpoint->peers[peer].number != 0;
}

static tutti_status_t do_link(tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link) {
  if (peer >= endpoint->size) return TUTTI_ERR_RANK;
  if (!reachable(endpoint, peer)) return TUTTI_ERR_UNSUPPORTED;
  link->caps = TUTTI_TP_CAP_MESSAGES;
  link->slot_bytes = UINT64_MAX;
  link->latency_ns = 500;
  link->bandwidth_mbps = 5000;
  return TUTTI_OK;
}

static tutti_status_t do_connect(tutti_tp_endpoint_t* endpoint, uint32_t peer) {
  if (!reachable(endpoint, peer)) return TUTTI_ERR_RANK;
  pthread_mutex_lock(&queue_mutex);
  const struct tutti_tp_endpoint* other = queue_endpoint(endpoint->peers[peer].number);
  const bool gone = endpoint->peers[peer].state != LINK_OPEN;
  const bool up = other != NULL && other->started;
  pthread_mutex_unlock(&queue_mutex);
  return gone ? TUTTI_ERR_PEER_FAILED : up ? TUTTI_OK : TUTTI_TP_AGAIN;
}

/* ---- the end ---- */

static void tell_gone(struct tutti_tp_endpoint* whom, const struct tutti_tp_endpoint* about, int cause) {
  if (about->rank >= whom->size) return;
  struct peer* peer = &whom->peers[about->rank];
  if (peer->number != about->number || peer->state == LINK_FAILED || peer->news != 0) return;
  peer->news = cause + 1;
  queue_wake(whom);
}

static void end_link(struct tutti_tp_endpoint* endpoint, uint32_t peer, int cause) {
  endpoint->peers[peer].state = cause == TUTTI_TP_GONE_LEFT ? LINK_LEFT : LINK_FAILED;
  for (struct tutti_tp_channel* channel = endpoint->channels; channel != NULL; channel = channel->next) {
    if (channel->peer != peer) continue;
    if (cause == TUTTI_TP_GONE_LEFT) {
      queue_match(channel->pipe, endpoint);
    } else if (channel->direction == TUTTI_TP_RECV) {
      queue_drop_left(channel->pipe);
    }
    queue_end_ops(channel, TUTTI_ERR_PEER_FAILED);
  }
}

static void do_close(tutti_tp_endpoint_t* endpoint) {
  const tutti_tp_host_t* host = endpoint->host;
  pthread_mutex_lock(&queue_mutex);
  for (struct tutti_tp_channel* channel = endpoint->channels; channel != NULL; channel = channel->next) {
    if (channel->direction == TUTTI_TP_SEND) queue_leave_behind(channel);
  }
  pthread_mutex_unlock(&queue_mutex);
  while (endpoint->channels != NULL) queue_channel_close(endpoint->channels);
  pthread_mutex_lock(&queue_mutex);
  struct tutti_tp_endpoint** at = &endpoints;
  while (*at != endpoint) at = &(*at)->next;
  *at = endpoint->next;
  for (struct tutti_tp_endpoint* other = endpoints; other != NULL; other = other->next) {
    tell_gone(other, endpoint, TUTTI_TP_GONE_LEFT);
  }
  queue_drop_pipes(endpoint);
  pthread_mutex_unlock(&queue_mutex);
  close(endpoint->fd);
  host->free(host->host, endpoint->peers);
  host->free(host->host, endpoint);
}

static void do_cut(tutti_tp_endpoint_t* endpoint, uint32_t peer) {
  if (!reachable(endpoint, peer)) return;
  pthread_mutex_lock(&queue_mutex);
  if (endpoint->peers[peer].state != LINK_FAILED) {
    end_link(endpoint, peer, TUTTI_TP_GONE_FAILED);
    endpoint->peers[peer].news = 0;
    struct tutti_tp_endpoint* other = queue_endpoint(endpoint->peers[peer].number);
    if (other != NULL) tell_gone(other, endpoint, TUTTI_TP_GONE_FAILED);
  }
  pthread_mutex_unlock(&queue_mutex);
}

/* ---- notices, progress, waiting ---- */

static tutti_status_t do_notify(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* data, size_t bytes) {
  if (bytes > TUTTI_TP_NOTICE_MAX_BYTES) return TUTTI_ERR_ARGUMENT;
  if (!reachable(endpoint, peer)) return TUTTI_ERR_RANK;
  tutti_status_t status = TUTTI_TP_AGAIN;
  pthread_mutex_lock(&queue_mutex);
  struct tutti_tp_endpoint* other = queue_endpoint(endpoint->peers[peer].number);
  if (endpoint->peers[peer].state != LINK_OPEN) {
    status = TUTTI_ERR_PEER_FAILED;
  } else if (other != NULL && other->notice_count == NOTICES) {
    endpoint->wants_room = true;
  } else if (other != NULL && other->started) {
    struct notice* notice = &other->notices[(other->notice_first + other->notice_count++) % NOTICES];
    notice->peer = endpoint->rank;
    notice->bytes = (uint32_t)bytes;
    if (bytes > 0) memcpy(notice->data, data, bytes);
    queue_wake(other);
    status = TUTTI_OK;
  }
  pthread_mutex_unlock(&queue_mutex);
  return status;
}

static bool take_notice(struct tutti_tp_endpoint* endpoint, struct notice* notice) {
  if (endpoint->notice_count == 0) return false;
  *notice = endpoint->notices[endpoint->notice_first];
  endpoint->notice_first = (endpoint->notice_first + 1) % NOTICES;
  --endpoint->notice_count;
  for (struct tutti_tp_endpoint* other = endpoints; other != NULL; other = other->next) {
    if (other->wants_room) queue_wake(other);
    other->wants_room = false;
  }
  return true;
}

/* What is next to be told to the host; callbacks are made without the mutex. Notices first: they were sent before. */
static bool tell_next(struct tutti_tp_endpoint* endpoint) {
  struct notice notice;
  uint32_t peer = 0;
  pthread_mutex_lock(&queue_mutex);
  const bool noticed = take_notice(endpoint, &notice);
  while (!noticed && peer < endpoint->size && endpoint->peers[peer].news == 0) ++peer;
  int cause = -1;
  if (!noticed && peer < endpoint->size) {
    cause = endpoint->peers[peer].news - 1;
    endpoint->peers[peer].news = 0;
    end_link(endpoint, peer, cause);
  }
  if (!noticed && cause < 0) endpoint->has_news = false;
  pthread_mutex_unlock(&queue_mutex);
  if (noticed) endpoint->host->notified(endpoint->host->host, notice.peer, notice.data, notice.bytes);
  if (cause >= 0) {
    char text[80];
    snprintf(text, sizeof text, "rank %u %s", peer, cause == TUTTI_TP_GONE_LEFT ? "left" : "cut the link");
    endpoint->host->peer_gone(endpoint->host->host, peer, cause, text);
  }
  return noticed || cause >= 0;
}

static uint32_t do_progress(tutti_tp_endpoint_t* endpoint) {
  uint64_t count = 0;
  pthread_mutex_lock(&queue_mutex);
  if (endpoint->rung && read(endpoint->fd, &count, sizeof count) == sizeof count) endpoint->rung = false;
  uint32_t events = queue_finish(endpoint);
  const bool more = endpoint->has_news;
  pthread_mutex_unlock(&queue_mutex);
  while (more && tell_next(endpoint)) ++events;
  return events;
}

static int do_fd(tutti_tp_endpoint_t* endpoint) { return endpoint->fd; }

static void do_arm(tutti_tp_endpoint_t* endpoint) {
  pthread_mutex_lock(&queue_mutex);
  endpoint->armed = true;
  if (endpoint->has_news) queue_wake(endpoint);
  pthread_mutex_unlock(&queue_mutex);
}

static void do_disarm(tutti_tp_endpoint_t* endpoint) {
  pthread_mutex_lock(&queue_mutex);
  endpoint->armed = false;
  pthread_mutex_unlock(&queue_mutex);
}

static tutti_status_t do_counter(tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value) {
  if (index > 1) return TUTTI_ERR_ARGUMENT;
  pthread_mutex_lock(&queue_mutex);
  *name = index == 0 ? "memory_bytes" : "messages_sent";
  *value = index == 0 ? endpoint->memory_bytes : endpoint->messages;
  pthread_mutex_unlock(&queue_mutex);
  return TUTTI_OK;
}

static const tutti_tp_table_t table = {
    .struct_size = sizeof(tutti_tp_table_t),
    .abi_version = TUTTI_TP_ABI_VERSION,
    .name = "queue",
    .description = "copies within one process",
    .caps = TUTTI_TP_CAP_MESSAGES,
    .open = do_open,
    .address = do_address,
    .set_peer = do_set_peer,
    .start = do_start,
    .link = do_link,
    .connect = do_connect,
    .close = do_close,
    .cut = do_cut,
    .channel_open = queue_channel_open,
    .channel_close = queue_channel_close,
    .post_send = queue_post_send,
    .post_recv = queue_post_recv,
    .notify = do_notify,
    .progress = do_progress,
    .fd = do_fd,
    .arm = do_arm,
    .disarm = do_disarm,
    .counter = do_counter,
};

__attribute__((visibility("default"))) const tutti_tp_table_t* tutti_transport_entry(uint32_t host_abi_version);

const tutti_tp_table_t* tutti_transport_entry(uint32_t host_abi_version) {
  return host_abi_version == TUTTI_TP_ABI_VERSION ? &table : NULL;
}
