/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* transport.h - the plugin ABI between Tutti and a transport. Pure C; a transport needs nothing else of Tutti.
 *
 * A transport is a shared object that exports one function, tutti_transport_entry, which returns a table of functions.
 * The same source may be linked statically. Tutti never unloads a plugin.
 *
 * Objects
 *   endpoint  one rank's presence in one job (a context). A process may hold many endpoints: threads may be ranks.
 *   link      an endpoint's connection to one peer; made on demand, shared by everything in the context.
 *   channel   one direction of a FIFO of messages between two endpoints, named by a 64-bit id that both ends know. Channels
 *             are independent: a message that nobody receives on one channel must not hold up another.
 *
 * Rules
 *  1. All calls on one endpoint are made by one thread at a time (not always the same one). Endpoints are independent.
 *  2. No call blocks, start() and close() included (close may linger up to TUTTI_TP_LINGER_NS to deliver what was
 *     accepted). "Not now" is TUTTI_TP_AGAIN, distinct from an error and from "posted".
 *  3. After set-up (first use of a channel) the data path allocates nothing, logs nothing and makes no avoidable system call.
 *  4. Bytes from outside are never trusted: every connection is authenticated with host->mac in both directions before
 *     any other byte of it is interpreted; lengths are checked; a malformed peer is reported by host->peer_gone, never an abort.
 *  5. A transport keeps no reference to caller's memory after the operation on it is done or its channel is closed.
 *  6. Names of settings, limits and costs are numbers and text: the host never compares a transport's name.
 *  7. Callbacks into the host are made only from within calls on the endpoint (progress mostly).
 *
 * Delivery. A transport offers messages, slots, or both (caps).
 *   messages  post_send and post_recv on caller's memory. The n-th send of a channel meets the n-th receive. A send that no
 *             receive awaits may be held back or buffered by at most the transport's own bounded window.
 *   slots     the sender writes into memory of the transport (reserve, fill, commit) and the receiver reads it in place
 *             (peek, read, release): shared memory without an extra copy. At least TUTTI_TP_MIN_SLOTS messages of
 *             link.slot_bytes fit into a channel before reserve says AGAIN.
 * A channel is used in one of the two ways, the same at both ends; both ends derive which from the link's caps.
 *
 * Marks. With every message goes a 32-bit number, its mark, which the sender chooses and the receiver is given together with the
 * length, whatever the length is. The transport attaches no meaning to it. The host compares it with the one it expects, so that
 * two ranks whose calls differ see that at the first message between them. It must cost no message, no packet and no cache line
 * of its own: a slot's descriptor, a frame's header, the immediate data or the tag of an RDMA operation have room for it. */

#ifndef TUTTI_TRANSPORT_H
#define TUTTI_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_TP_ABI_VERSION 0 /* 0: not frozen yet */
#define TUTTI_TP_ADDRESS_MAX_BYTES 512
#define TUTTI_TP_NOTICE_MAX_BYTES 128
#define TUTTI_TP_MIN_SLOTS 2
#define TUTTI_TP_LINGER_NS 2000000000ull

/* Answer beside the status codes of tutti.h: nothing was done, call again after progress. */
#define TUTTI_TP_AGAIN 1

typedef struct tutti_tp_endpoint tutti_tp_endpoint_t; /* the plugin's */
typedef struct tutti_tp_channel tutti_tp_channel_t;   /* the plugin's */

enum {
  TUTTI_TP_CAP_MESSAGES = 1u << 0,
  TUTTI_TP_CAP_SLOTS = 1u << 1,
  TUTTI_TP_CAP_MUST_POLL = 1u << 2 /* fd() gives -1; progress() must be called every table.poll_interval_ns at least */
};

/* Why a peer is gone. */
enum {
  TUTTI_TP_GONE_LEFT = 0,   /* it closed its endpoint in order; what it sent before can still be received */
  TUTTI_TP_GONE_FAILED = 1, /* it died, its link broke, or it misbehaved */
  TUTTI_TP_GONE_UNREACHABLE = 2 /* no connection could be made within the time allowed */
};

/* What the host does for a plugin. `host` is the first argument of each; all but log, random and clock_ns are called only
 * from within calls on the endpoint. */
typedef struct tutti_tp_host {
  uint32_t struct_size;
  uint32_t abi_version;
  void* host;
  void (*log)(void* host, int level, const char* line);
  void* (*alloc)(void* host, size_t bytes, size_t alignment); /* NULL: out of memory */
  void (*free)(void* host, void* memory);
  uint64_t (*clock_ns)(void* host); /* monotone; virtual under simulation */
  void (*random)(void* host, void* bytes, size_t count);
  /* Keyed hash of the message by the job's secret: proof of membership. */
  void (*mac)(void* host, const void* message, size_t bytes, uint8_t mac[32]);
  /* The value of a setting as text ("tcp_window_bytes" -> "262144": bytes and durations come as plain numbers, durations
   * in nanoseconds, flags as 0 or 1), or NULL if there is no such setting. Valid until the endpoint is closed. */
  const char* (*setting)(void* host, const char* name);
  /* The peer is gone. Called once a peer and cause; text is one line for a person. */
  void (*peer_gone)(void* host, uint32_t peer, int cause, const char* text);
  /* A notice of the peer arrived (see notify). */
  void (*notified)(void* host, uint32_t peer, const void* notice, size_t bytes);
} tutti_tp_host_t;

typedef struct tutti_tp_open {
  uint32_t struct_size;
  uint32_t rank;
  uint32_t size;
  uint32_t reserved;
  uint8_t job_id[16];          /* the same for all ranks of a job, different for every job */
  const char* host_identity;   /* equal text on two ranks: the same machine, in the same namespaces */
  const char* bind_addresses;  /* numeric IP addresses that the listener may use, comma-separated, best first; "" if none */
  const tutti_tp_host_t* host; /* outlives the endpoint */
  void* world;                 /* for transports of tests that live in one process, else NULL */
} tutti_tp_open_t;

/* What a link to a peer can do and roughly costs; the host chooses by these numbers. */
typedef struct tutti_tp_link {
  uint32_t struct_size;
  uint32_t caps;           /* TUTTI_TP_CAP_MESSAGES and/or TUTTI_TP_CAP_SLOTS */
  uint64_t slot_bytes;     /* largest message in a slot; UINT64_MAX without slots */
  uint64_t latency_ns;     /* one small message */
  uint64_t bandwidth_mbps; /* 10^6 bytes a second */
} tutti_tp_link_t;

/* One posted send or receive. The host allocates it, zeroed before first use, and keeps it in place until done. */
typedef struct tutti_tp_op {
  uint32_t done;   /* set to 1 by the plugin, from within a call on the endpoint */
  int32_t status;  /* of tutti.h; valid when done */
  uint64_t bytes;  /* receive: the message's length, which on TUTTI_ERR_TRUNCATED exceeds the buffer; valid when done */
  uint32_t mark;   /* receive: the message's mark; valid when done with TUTTI_OK or TUTTI_ERR_TRUNCATED */
  uint32_t reserved;
  void* plugin[5]; /* the plugin's, from post to done; so are, for a send, bytes and mark */
} tutti_tp_op_t;

enum { TUTTI_TP_SEND = 0, TUTTI_TP_RECV = 1 };

/* Every function but those marked optional is mandatory for what caps declares. A plugin of an older ABI has a smaller
 * struct_size: the host reads no further. */
typedef struct tutti_tp_table {
  uint32_t struct_size;
  uint32_t abi_version;
  const char* name;        /* for people: "shm" */
  const char* description; /* one line */
  uint32_t caps;           /* all that links of this transport may have, and MUST_POLL */
  uint32_t reserved;
  uint64_t poll_interval_ns;

  /* ---- set-up. Order: open, address, then set_peer for every rank that has this transport (itself included), start until
   * it is not AGAIN (with progress between), then anything. On error *endpoint is untouched and nothing is left behind;
   * why, is logged by the plugin in one line at level info. */
  tutti_status_t (*open)(const tutti_tp_open_t* args, tutti_tp_endpoint_t** endpoint);
  /* This endpoint's address, opaque to the host, at most TUTTI_TP_ADDRESS_MAX_BYTES. */
  tutti_status_t (*address)(tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes);
  tutti_status_t (*set_peer)(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes);
  tutti_status_t (*start)(tutti_tp_endpoint_t* endpoint);
  /* Whether the peer can be reached, given that it started too. Symmetric: both ends answer alike.
   * TUTTI_ERR_UNSUPPORTED: not by this transport. */
  tutti_status_t (*link)(tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link);
  /* Starts to connect if need be. TUTTI_OK: connected. Channels may be opened and used before: they answer AGAIN. */
  tutti_status_t (*connect)(tutti_tp_endpoint_t* endpoint, uint32_t peer);
  /* Delivers what was accepted, tells the peers (TUTTI_TP_GONE_LEFT), frees everything. */
  void (*close)(tutti_tp_endpoint_t* endpoint);
  /* Cuts the link at once: posted operations of its channels end with TUTTI_ERR_PEER_FAILED, no memory of the caller is
   * touched any more. */
  void (*cut)(tutti_tp_endpoint_t* endpoint, uint32_t peer);

  /* ---- channels. direction: TUTTI_TP_SEND or TUTTI_TP_RECV. slots: 1 = used with slots, 0 = with messages. Closing a
   * receiving channel drops what was not received; a sending one still delivers. Posted operations end with
   * TUTTI_ERR_ABORTED before channel_close returns. An id may be used again by the same pair only after both closed it. */
  tutti_status_t (*channel_open)(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                 tutti_tp_channel_t** channel);
  void (*channel_close)(tutti_tp_channel_t* channel);

  /* ---- messages. TUTTI_OK: posted (op->done may be 1 already). AGAIN: not posted. bytes may be 0. Any number may be posted. */
  tutti_status_t (*post_send)(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark,
                              tutti_tp_op_t* op);
  tutti_status_t (*post_recv)(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op);

  /* ---- slots. reserve gives room for the next message (the same one until commit), commit publishes its first `bytes`
   * bytes with its mark; the payload may be 0 bytes. peek gives the next message (the same until release), its length and its
   * mark. Slot memory is aligned to 64 bytes. */
  tutti_status_t (*slot_reserve)(tutti_tp_channel_t* channel, uint64_t bytes, void** slot);
  tutti_status_t (*slot_commit)(tutti_tp_channel_t* channel, uint64_t bytes, uint32_t mark);
  tutti_status_t (*slot_peek)(tutti_tp_channel_t* channel, const void** slot, uint64_t* bytes, uint32_t* mark);
  tutti_status_t (*slot_release)(tutti_tp_channel_t* channel);

  /* ---- notices: small, rare, reliable and unordered with channels; reach the peer's host->notified even when nothing is
   * posted there. AGAIN: try later. Connects if need be. */
  tutti_status_t (*notify)(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* notice, size_t bytes);

  /* ---- progress and waiting. progress moves everything that can move and returns how many events it handled. The
   * protocol of a sleeping host: arm; look at all it waits for once more; poll on fd; disarm. After arm, whatever happens that
   * could let the host go on makes fd readable; between disarm and arm peers need not pay for it. progress clears fd. */
  uint32_t (*progress)(tutti_tp_endpoint_t* endpoint);
  int (*fd)(tutti_tp_endpoint_t* endpoint);
  void (*arm)(tutti_tp_endpoint_t* endpoint);
  void (*disarm)(tutti_tp_endpoint_t* endpoint);

  /* ---- optional (may be NULL): counter number `index`: name and value; TUTTI_ERR_ARGUMENT past the last.
   * "memory_bytes" (all that the endpoint holds) should be among them. */
  tutti_status_t (*counter)(tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value);
} tutti_tp_table_t;

/* The one exported symbol. host_abi_version is the newest table that the host understands; the plugin returns a table of that
 * version or older, or NULL if it has none. The table is static. */
typedef const tutti_tp_table_t* (*tutti_transport_entry_t)(uint32_t host_abi_version);
#define TUTTI_TP_ENTRY_NAME "tutti_transport_entry"

#ifdef __cplusplus
}
#endif
#endif /* TUTTI_TRANSPORT_H */
