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
  static int32_t others[10];
  tutti_group_t group = make_group(comm, values, others);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) call_all(comm, values, counts[i]);
    launch(group);
  }
  const long before = atomic_load(&allocations);
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) call_all(comm, values, counts[i]);
    launch(group);
  }
  const long made = atomic_load(&allocations) - before;
  printf("allocations %ld\n", made);
  must(tutti_group_free(&group), "group_free");
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}
