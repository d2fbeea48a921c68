/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Modes about messages: many to one, and there and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "job.h"

static long resident_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static void send_many(tutti_comm_t comm, long count, uint64_t bytes) {
  unsigned char* data = calloc(1, bytes);
  if (!data) fail("no memory");
  for (uint32_t i = 0; i < (uint32_t)count; ++i) {
    memcpy(data, &i, sizeof i);
    must(tutti_send(comm, data, bytes, TUTTI_UINT8, 0, (int)(i % 7)), "send");
  }
  free(data);
}

/* flood COUNT BYTES: all send so many messages to rank 0, which takes them from whoever has one. It prints the seconds, and by how
 * much its memory grew. */
int run_flood(int argc, char** argv) {
  if (argc != 2) return 2;
  const long count = atol(argv[0]);
  const uint64_t bytes = (uint64_t)atol(argv[1]);
  tutti_comm_t comm = create();
  const int size = size_of(comm);
  must(tutti_barrier(comm), "barrier");
  if (rank_of(comm) != 0) {
    send_many(comm, count, bytes);
  } else {
    sleep_s(0.3); /* slow: all senders have run ahead as far as they may */
    const double start = now_s();
    const long before_kib = resident_kib();
    uint32_t* next = calloc((size_t)size, sizeof *next);
    unsigned char* data = malloc(bytes);
    if (!next || !data) fail("no memory");
    for (long i = 0; i < count * (size - 1); ++i) {
      tutti_message_t message;
      uint32_t number = 0;
      must(tutti_message_init(&message), "init");
      must(tutti_recv(comm, data, bytes, TUTTI_UINT8, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &message), "recv");
      memcpy(&number, data, sizeof number);
      if (message.source < 1 || message.source >= size || message.size_bytes != bytes) fail("a message of rank %d", message.source);
      if (number != next[message.source]++ || message.tag != (int)(number % 7)) fail("message %u of rank %d", number, message.source);
    }
    printf("seconds %.3f growth_kib %ld\n", now_s() - start, resident_kib() - before_kib);
    free(next);
    free(data);
  }
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* exchange COUNT BYTES: ranks 0 and 1 send and receive at once, that often; rank 0 prints the microseconds of one exchange. */
int run_exchange(int argc, char** argv) {
  if (argc != 2) return 2;
  const long count = atol(argv[0]);
  const uint64_t bytes = (uint64_t)atol(argv[1]);
  tutti_comm_t comm = create();
  const int rank = rank_of(comm);
  unsigned char* out = malloc(bytes);
  unsigned char* in = malloc(bytes);
  if (!out || !in) fail("no memory");
  double start = 0;
  for (long i = -100; i < count; ++i) {
    if (i == 0) start = now_s();
    memset(out, (int)((i + rank) & 127), bytes);
    must(tutti_sendrecv(comm, out, bytes, TUTTI_UINT8, 1 - rank, 1, in, bytes, TUTTI_UINT8, 1 - rank, 1, NULL), "sendrecv");
    if (in[0] != ((i + 1 - rank) & 127) || in[bytes - 1] != in[0]) fail("exchange %ld", i);
  }
  if (rank == 0) printf("us %.3f\n", (now_s() - start) / (double)count * 1e6);
  free(out);
  free(in);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}
