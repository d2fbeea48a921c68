/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counts all allocations of the process, Tutti's included: the functions here take the place of the C library's everywhere. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

static atomic_long allocations;

void* malloc(size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;
}

/* One that is all there is to a group: joined calls, and one by itself. */
static tutti_group_t make_group(tutti_comm_t comm, float* values, int32_t* others) {
  tutti_group_t group = NULL;
  must(tutti_group_begin(comm, &group), "group_begin");
  for (int n = 0; n < 5; ++n) {
    tutti_request_t call = NULL;
    if (n < 4)
      must(tutti_allreduce_init(comm, TUTTI_IN_PLACE, values + 100 * n, 100, TUTTI_FLOAT32, TUTTI_MAX, &call), "allreduce_init");
    else
      must(tutti_broadcast_init(comm, others, 10, TUTTI_INT32, 0, &call), "broadcast_init");
    must(tutti_group_add(group, call), "group_add");
    must(tutti_request_free(&call), "request_free");
  }
  return group;
}

static void launch(tutti_group_t group) {
  tutti_request_t request = NULL;
  must(tutti_group_launch(group, &request), "group_launch");
  must(tutti_wait(&request), "wait");
}

static void call_all(tutti_comm_t comm, float* values, size_t count) {
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM), "allreduce");
  must(tutti_broadcast(comm, values, count, TUTTI_FLOAT32, 0), "broadcast");
  must(tutti_barrier(comm), "barrier");
  tutti_request_t request = NULL;
  must(tutti_iallreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_MAX, &request), "iallreduce");
  must(tutti_wait(&request), "wait");
}

enum { SEND, RECV, REQUESTS };

/* A persistent pair for each length. */
static void make_pair(tutti_comm_t comm, const float* out, float* in, size_t count, tutti_request_t* pair) {
  int rank = 0;
  must(tutti_comm_rank(comm, &rank), "rank");
  must(tutti_send_init(comm, out, count, TUTTI_FLOAT32, 1 - rank, 9, &pair[SEND]), "send_init");
  must(tutti_recv_init(comm, in, count, TUTTI_FLOAT32, TUTTI_ANY_SOURCE, 9, &pair[RECV]), "recv_init");
}

/* One message from rank 0 to rank 1 and one back, in every form of sends and receives. */
static void exchange_all(tutti_comm_t comm, float* out, float* in, size_t count, tutti_request_t* pair) {
  int rank = 0;
  must(tutti_comm_rank(comm, &rank), "rank");
  const int peer = 1 - rank;
  tutti_message_t message;
  must(tutti_message_init(&message), "message_init");
  if (rank == 0) must(tutti_send(comm, out, count, TUTTI_FLOAT32, peer, 1), "send");
  must(tutti_recv(comm, in, count, TUTTI_FLOAT32, peer, 1, &message), "recv");
  if (rank == 1) must(tutti_send(comm, out, count, TUTTI_FLOAT32, peer, 1), "send");
  tutti_request_t requests[REQUESTS];
  must(tutti_irecv(comm, in, count, TUTTI_FLOAT32, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &requests[RECV]), "irecv");
  must(tutti_isend(comm, out, count, TUTTI_FLOAT32, peer, 2, &requests[SEND]), "isend");
  must(tutti_wait_all(REQUESTS, requests, NULL), "wait_all");
  must(tutti_sendrecv(comm, out, count, TUTTI_FLOAT32, peer, 3, in, count, TUTTI_FLOAT32, peer, 3, &message), "sendrecv");
  must(tutti_sendrecv(comm, TUTTI_IN_PLACE, count, TUTTI_FLOAT32, peer, 4, in, count, TUTTI_FLOAT32, peer, 4, NULL), "in place");
  must(tutti_start_all(REQUESTS, pair), "start_all");
  must(tutti_wait_all(REQUESTS, pair, NULL), "wait_all");
  must(tutti_isend(comm, out, count, TUTTI_FLOAT32, peer, 5, &requests[SEND]), "isend");
  must(tutti_probe(comm, TUTTI_ANY_SOURCE, 5, &message), "probe");
  int found = 0;
  while (!found) must(tutti_iprobe(comm, peer, TUTTI_ANY_TAG, &found, &message), "iprobe");
  must(tutti_recv(comm, in, count, TUTTI_FLOAT32, peer, 5, NULL), "recv");
  must(tutti_wait(&requests[SEND]), "wait");
  tutti_matched_t matched = NULL;
  must(tutti_isend(comm, out, count, TUTTI_FLOAT32, peer, 6, &requests[SEND]), "isend");
  must(tutti_mprobe(comm, peer, 6, &matched, &message), "mprobe");
  must(tutti_mrecv(&matched, in, count, TUTTI_FLOAT32, NULL), "mrecv");
  must(tutti_wait(&requests[SEND]), "wait");
  must(tutti_isend(comm, out, count, TUTTI_FLOAT32, peer, 7, &requests[SEND]), "isend");
  for (found = 0; !found;) must(tutti_improbe(comm, peer, 7, &found, &matched, &message), "improbe");
  must(tutti_imrecv(&matched, in, count, TUTTI_FLOAT32, &requests[RECV]), "imrecv");
  must(tutti_wait_all(REQUESTS, requests, NULL), "wait_all");
  if (count > 100) return;
  /* One that is set aside, since another is received first; one to oneself. */
  must(tutti_isend(comm, out, count, TUTTI_FLOAT32, peer, 8, &requests[SEND]), "isend");
  must(tutti_sendrecv(comm, out, count, TUTTI_FLOAT32, peer, 10, in, count, TUTTI_FLOAT32, peer, 10, NULL), "sendrecv");
  must(tutti_recv(comm, in, count, TUTTI_FLOAT32, peer, 8, NULL), "recv");
  must(tutti_wait(&requests[SEND]), "wait");
  must(tutti_send(comm, out, count, TUTTI_FLOAT32, rank, 11), "send");
  must(tutti_recv(comm, in, count, TUTTI_FLOAT32, rank, 11, NULL), "recv");
}

/* allocations: after warm-up no call allocates, whatever its size among those that were warmed up. */
int run_allocations(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  void* volatile probe = malloc(1); /* volatile: or the compiler leaves the pair out */
  free(probe);
  if (atomic_load(&allocations) == 0) fail("allocations are not counted");
  tutti_comm_t comm = create();
  static float values[200000];
  static float received[200000];
  static const size_t counts[] = {2, 100, 3000, 50000, 200000};
  static int32_t others[10];
  enum { COUNTS = sizeof counts / sizeof counts[0] };
  tutti_request_t pairs[COUNTS][REQUESTS];
  for (size_t i = 0; i < COUNTS; ++i) make_pair(comm, values, received, counts[i], pairs[i]);
  tutti_group_t group = make_group(comm, values, others);
  long made[3] = {0, 0, 0}; /* by collectives, groups, messages */
  for (int round = 0; round < 70; ++round) {
    if (round == 20) memset(made, 0, sizeof made);
    const long before = atomic_load(&allocations);
    for (size_t i = 0; i < COUNTS; ++i) call_all(comm, values, counts[i]);
    const long after_collectives = atomic_load(&allocations);
    launch(group);
    const long after_groups = atomic_load(&allocations);
    for (size_t i = 0; i < COUNTS; ++i) exchange_all(comm, values, received, counts[i], pairs[i]);
    made[0] += after_collectives - before;
    made[1] += after_groups - after_collectives;
    made[2] += atomic_load(&allocations) - after_groups;
  }
  printf("allocations %ld %ld %ld\n", made[0], made[1], made[2]);
  for (size_t i = 0; i < COUNTS; ++i) {
    for (size_t k = 0; k < REQUESTS; ++k) must(tutti_request_free(&pairs[i][k]), "request_free");
  }
  must(tutti_group_free(&group), "group_free");
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}
