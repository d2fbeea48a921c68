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

static void call_all(tutti_comm_t comm, float* values, size_t count) {
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM), "allreduce");
  must(tutti_broadcast(comm, values, count, TUTTI_FLOAT32, 0), "broadcast");
  must(tutti_barrier(comm), "barrier");
  tutti_request_t request = NULL;
  must(tutti_iallreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_MAX, &request), "iallreduce");
  must(tutti_wait(&request), "wait");
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
  static const size_t counts[] = {2, 100, 3000, 50000, 200000};
  for (int round = 0; round < 20; ++round)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) call_all(comm, values, counts[i]);
  const long before = atomic_load(&allocations);
  for (int round = 0; round < 50; ++round)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) call_all(comm, values, counts[i]);
  const long made = atomic_load(&allocations) - before;
  printf("allocations %ld\n", made);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}
