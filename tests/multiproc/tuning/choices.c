/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One rank of the jobs that test_tuning.py starts. `choices` runs collectives of several sizes on all ranks and on halves of them
 * and looks at every element; odd ranks first bind themselves to one core. `choices fails` says why there is no communicator. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { most = 60000 };
static int32_t send_buffer[most], recv_buffer[most];

static void must(tutti_status_t status, const char* what) {
  if (status == TUTTI_OK) return;
  fprintf(stderr, "choices: %s: %s: %s\n", what, tutti_status_string(status), tutti_last_error());
  exit(1);
}

static void expect(int32_t got, int32_t wanted, const char* what, uint64_t element) {
  if (got == wanted) return;
  fprintf(stderr, "choices: %s: element %lu is %d, not %d\n", what, (unsigned long)element, got, wanted);
  exit(1);
}

static int32_t value(int rank, uint64_t element) { return (int32_t)(element % 1000) * (rank + 1); }

static void fill(int rank) {
  for (uint64_t n = 0; n < most; ++n) {
    send_buffer[n] = value(rank, n);
    recv_buffer[n] = -1;
  }
}

/* The sum of 1 to n. */
static int32_t triangle(int n) { return n * (n + 1) / 2; }

static void run_size(tutti_comm_t comm, int rank, int size, uint64_t count) {
  fill(rank);
  must(tutti_allreduce(comm, send_buffer, recv_buffer, count, TUTTI_INT32, TUTTI_SUM), "allreduce");
  for (uint64_t n = 0; n < count; ++n) expect(recv_buffer[n], value(0, n) * triangle(size), "allreduce", n);
  fill(rank);
  must(tutti_broadcast(comm, send_buffer, count, TUTTI_INT32, size - 1), "broadcast");
  for (uint64_t n = 0; n < count; ++n) expect(send_buffer[n], value(size - 1, n), "broadcast", n);
  fill(rank);
  must(tutti_scan(comm, send_buffer, recv_buffer, count, TUTTI_INT32, TUTTI_SUM), "scan");
  for (uint64_t n = 0; n < count; ++n) expect(recv_buffer[n], value(0, n) * triangle(rank + 1), "scan", n);
  const uint64_t block = (count + (uint64_t)size - 1) / (uint64_t)size;
  fill(rank);
  must(tutti_allgather(comm, send_buffer, recv_buffer, block, TUTTI_INT32), "allgather");
  for (uint64_t n = 0; n < block * (uint64_t)size; ++n) expect(recv_buffer[n], value((int)(n / block), n % block), "allgather", n);
  fill(rank);
  must(tutti_reduce_scatter(comm, send_buffer, recv_buffer, block, TUTTI_INT32, TUTTI_SUM), "reduce_scatter");
  for (uint64_t n = 0; n < block; ++n)
    expect(recv_buffer[n], value(0, n + block * (uint64_t)rank) * triangle(size), "reduce_scatter", n);
  must(tutti_barrier(comm), "barrier");
}

static void run(tutti_comm_t comm) {
  const uint64_t counts[] = {1, 100, 3000, 50000};
  int rank = 0, size = 0;
  must(tutti_comm_rank(comm, &rank), "rank");
  must(tutti_comm_size(comm, &size), "size");
  for (size_t n = 0; n < sizeof counts / sizeof counts[0]; ++n) run_size(comm, rank, size, counts[n]);
}

int main(int argc, char** argv) {
  const char* place = getenv("TUTTI_RANK");
  if (place != NULL && atoi(place) % 2 == 1) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  tutti_comm_t comm = NULL, half = NULL;
  const tutti_status_t created = tutti_comm_create(NULL, &comm);
  if (argc > 1 && strcmp(argv[1], "fails") == 0) {
    printf("%s %s\n", tutti_status_string(created), tutti_last_error());
    return 0;
  }
  must(created, "create");
  run(comm);
  int rank = 0;
  must(tutti_comm_rank(comm, &rank), "rank");
  must(tutti_comm_split(comm, rank % 2, rank, &half), "split");
  run(half);
  must(tutti_comm_destroy(half), "destroy");
  must(tutti_comm_destroy(comm), "destroy");
  puts("right");
  return 0;
}
