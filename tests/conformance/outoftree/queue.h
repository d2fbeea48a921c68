/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* A transport between endpoints of one process: messages are copied from the sender's memory to the receiver's when both
 * are posted. Written against the installed header alone, by somebody who does not know Tutti otherwise. */
#ifndef QUEUE_H
#define QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include <tutti/transport.h>

enum { NOTICES = 32 };

/* Operations chained through their plugin words: 0 next, 1 memory, 2 its bytes. */
struct ops {
  tutti_tp_op_t* first;
  tutti_tp_op_t* last;
};

/* What a sender that closed left behind. */
struct leftover {
  struct leftover* next;
  uint64_t bytes;
  uint32_t mark;
  unsigned char data[];
};

/* One use of a channel id. Its two ends come and go on their own. */
struct pipe {
  struct pipe* next;
  uint64_t from, to, id; /* endpoints by number */
  bool opened[2], closed[2]; /* by direction */
  struct tutti_tp_channel* end[2];
  struct leftover* first_left;
  struct leftover** last_left;
};

struct tutti_tp_channel {
  struct tutti_tp_channel* next; /* of the endpoint */
  struct tutti_tp_endpoint* endpoint;
  struct pipe* pipe;
  uint32_t peer;
  int direction;
  struct ops posted;
};

enum link_state { LINK_OPEN, LINK_LEFT, LINK_FAILED };

struct peer {
  uint64_t number; /* of its endpoint; 0: not known */
  enum link_state state;
  int news; /* a cause + 1, to be told to the host */
};

struct notice {
  uint32_t peer;
  uint32_t bytes;
  unsigned char data[TUTTI_TP_NOTICE_MAX_BYTES];
};

struct tutti_tp_endpoint {
  struct tutti_tp_endpoint* next; /* of the process */
  const tutti_tp_host_t* host;
  uint64_t number;
  uint32_t rank, size;
  uint8_t proof[32];
  bool started, armed, rung, wants_room, has_news;
  int fd;
  struct peer* peers;
  struct tutti_tp_channel* channels;
  struct ops finished; /* to be marked done by the next call that may */
  struct notice notices[NOTICES];
  uint32_t notice_first, notice_count;
  uint64_t messages, memory_bytes;
};

/* queue.c; all under the mutex */
extern pthread_mutex_t queue_mutex;
struct tutti_tp_endpoint* queue_endpoint(uint64_t number);
void queue_wake(struct tutti_tp_endpoint* endpoint);
void queue_push(struct ops* list, tutti_tp_op_t* op);
tutti_tp_op_t* queue_pop(struct ops* list);
uint32_t queue_finish(struct tutti_tp_endpoint* endpoint);
void queue_match(struct pipe* pipe, struct tutti_tp_endpoint* caller);
void queue_end_ops(struct tutti_tp_channel* channel, tutti_status_t status);
tutti_status_t queue_channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel);
void queue_channel_close(tutti_tp_channel_t* channel);
void queue_leave_behind(struct tutti_tp_channel* channel);
void queue_drop_left(struct pipe* pipe);
void queue_drop_pipes(struct tutti_tp_endpoint* endpoint);
tutti_status_t queue_post_send(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark,
                               tutti_tp_op_t* op);
tutti_status_t queue_post_recv(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op);

#endif
