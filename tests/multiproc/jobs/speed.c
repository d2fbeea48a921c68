/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Modes about time: loops with more ranks than cores, idleness, overlap. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* loop COUNT BYTES: so many allreduces; rank 0 prints the seconds. */
int run_loop(int argc, char** argv) {
  if (argc != 2) return 2;
  const long count = atol(argv[0]);
  const size_t elements = (size_t)atol(argv[1]) / sizeof(float);
  tutti_comm_t comm = create();
  const int rank = rank_of(comm);
  const int size = size_of(comm);
  float* values = malloc(elements * sizeof(float));
  must(tutti_barrier(comm), "barrier");
  const double start = now_s();
  for (long i = 0; i < count; ++i) {
    for (size_t e = 0; e < elements; ++e) values[e] = (float)(rank + (int)(i % 3));
    must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, elements, TUTTI_FLOAT32, TUTTI_SUM), "allreduce");
    const float wanted = (float)(size * (size - 1) / 2 + size * (int)(i % 3));
    if (values[0] != wanted || values[elements - 1] != wanted) fail("call %ld: %g instead of %g", i, (double)values[0], (double)wanted);
  }
  const double seconds = now_s() - start;
  if (rank == 0) printf("seconds %.3f\n", seconds);
  free(values);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* barriers COUNT */
int run_barriers(int argc, char** argv) {
  if (argc != 1) return 2;
  tutti_comm_t comm = create();
  for (long i = atol(argv[0]); i > 0; --i) must(tutti_barrier(comm), "barrier");
  if (rank_of(comm) == 0) printf("done\n");
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* idle SECONDS: rank 0 comes late; the others print the CPU time of their wait. */
int run_idle(int argc, char** argv) {
  if (argc != 1) return 2;
  tutti_comm_t comm = create();
  int64_t one = 1;
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "first allreduce");
  if (rank_of(comm) == 0) sleep_s(atof(argv[0]));
  const double before = cpu_s();
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
  const double used = cpu_s() - before;
  if (rank_of(comm) != 0) printf("cpu %.4f\n", used);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* late SECONDS: rank 1 computes without a call; rank 0 broadcasts to it, and rank 2 sends it a message over a connection that was
 * never used. Both print how long that took. */
int run_late(int argc, char** argv) {
  if (argc != 1) return 2;
  tutti_comm_t comm = create();
  const int rank = rank_of(comm);
  int32_t word = rank == 0 ? 42 : 0;
  /* All start together, but over connections that are not the ones used below: everybody with rank 3. */
  if (rank == 3) {
    for (int peer = 0; peer < 3; ++peer) must(tutti_send(comm, &word, 1, TUTTI_INT32, peer, 1), "go");
  } else {
    must(tutti_recv(comm, &word, 1, TUTTI_INT32, 3, 1, NULL), "go");
    word = rank == 0 ? 42 : 0;
  }
  if (rank == 1) {
    compute_s(atof(argv[0]));
    int32_t message = 0;
    must(tutti_broadcast(comm, &word, 1, TUTTI_INT32, 0), "broadcast");
    must(tutti_recv(comm, &message, 1, TUTTI_INT32, 2, 7, NULL), "recv");
    if (word != 42 || message != 43) fail("got %d and %d", word, message);
  } else {
    sleep_s(0.5); /* rank 1 is computing by now */
    const double start = now_s();
    if (rank == 2) {
      const int32_t message = 43;
      must(tutti_send(comm, &message, 1, TUTTI_INT32, 1, 7), "send");
      printf("send %.4f\n", now_s() - start);
    }
    if (rank == 0) {
      must(tutti_broadcast(comm, &word, 1, TUTTI_INT32, 0), "broadcast");
      printf("broadcast %.4f\n", now_s() - start);
    } else {
      must(tutti_broadcast(comm, &word, 1, TUTTI_INT32, 0), "broadcast");
    }
  }
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

static int compare_counts(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a;
  const uint32_t y = *(const uint32_t*)b;
  return x < y ? -1 : x > y;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double time_counts(tutti_comm_t comm, const uint32_t* counts, size_t calls, float* values) {
  must(tutti_barrier(comm), "barrier");
  const double start = now_s();
  for (size_t i = 0; i < calls; ++i)
    must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, counts[i], TUTTI_FLOAT32, TUTTI_MAX), "allreduce");
  return now_s() - start;
}

/* counts CALLS: allreduces of random counts 1..512 and of the same counts sorted, many times in turn. Rank 0 prints the
 * median of the turns' ratios: the machine's pace changes, but seldom within a turn. */
int run_counts(int argc, char** argv) {
  if (argc != 1) return 2;
  const size_t calls = (size_t)atol(argv[0]);
  tutti_comm_t comm = create();
  uint32_t* random_counts = malloc(calls * sizeof(uint32_t));
  uint32_t* sorted_counts = malloc(calls * sizeof(uint32_t));
  static float values[512];
  uint64_t state = 12345;
  for (size_t i = 0; i < calls; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    random_counts[i] = 1 + (uint32_t)((state >> 33) % 512);
  }
  memcpy(sorted_counts, random_counts, calls * sizeof(uint32_t));
  qsort(sorted_counts, calls, sizeof(uint32_t), compare_counts);
  enum { turns = 61 };
  double ratios[turns];
  for (int turn = 0; turn < turns; ++turn) {
    const double mixed = time_counts(comm, random_counts, calls, values);
    ratios[turn] = mixed / time_counts(comm, sorted_counts, calls, values);
  }
  qsort(ratios, turns, sizeof ratios[0], compare_doubles);
  if (rank_of(comm) == 0) printf("ratio %.3f quarters %.3f %.3f\n", ratios[turns / 2], ratios[turns / 4], ratios[3 * turns / 4]);
  free(random_counts);
  free(sorted_counts);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* overlap: a large allreduce advances while the program computes. Rank 0 prints the blocking time and the rest after computing. */
int run_overlap(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  const size_t count = 4u << 20;
  float* values = calloc(count, sizeof(float));
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM), "warm-up");
  must(tutti_barrier(comm), "barrier");
  double start = now_s();
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM), "allreduce");
  const double blocking = now_s() - start;
  must(tutti_barrier(comm), "barrier");
  tutti_request_t request = NULL;
  must(tutti_iallreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM, &request), "iallreduce");
  sleep_s(0.5); /* away from the library; the cores are free for the control threads */
  start = now_s();
  must(tutti_wait(&request), "wait");
  if (rank_of(comm) == 0) printf("blocking %.5f rest %.5f\n", blocking, now_s() - start);
  free(values);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* cycles COUNT: a communicator comes and goes. Rank 0 prints descriptors and threads after the first and the last time. */
int run_cycles(int argc, char** argv) {
  if (argc != 1) return 2;
  const long cycles = atol(argv[0]);
  tutti_comm_t world = create();
  for (long i = 0; i < cycles; ++i) {
    tutti_comm_t child = NULL;
    must(tutti_comm_split(world, 0, 0, &child), "split");
    int64_t one = 1;
    must(tutti_allreduce(child, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
    if (one != size_of(world)) fail("cycle %ld: %lld", i, (long long)one);
    must(tutti_comm_destroy(child), "destroy");
  }
  must(tutti_comm_destroy(world), "destroy");
  printf("done\n");
  return 0;
}
