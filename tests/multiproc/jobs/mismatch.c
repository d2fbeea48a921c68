/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that call what does not go together. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "job.h"

static float values[64];

/* What the odd rank calls, and what the others call. */
static tutti_status_t call(const char* kind, int odd, tutti_comm_t comm) {
  if (strcmp(kind, "count") == 0)
    return tutti_allreduce(comm, TUTTI_IN_PLACE, values, odd ? 13 : 12, TUTTI_FLOAT32, TUTTI_SUM);
  if (strcmp(kind, "type") == 0)
    return tutti_allreduce(comm, TUTTI_IN_PLACE, values, 12, odd ? TUTTI_INT32 : TUTTI_FLOAT32, TUTTI_SUM);
  if (strcmp(kind, "operation") == 0)
    return tutti_allreduce(comm, TUTTI_IN_PLACE, values, 12, TUTTI_FLOAT32, odd ? TUTTI_MAX : TUTTI_SUM);
  if (strcmp(kind, "root") == 0) return tutti_broadcast(comm, values, 12, TUTTI_FLOAT32, odd ? 1 : 0);
  if (strcmp(kind, "collective") == 0)
    return odd ? tutti_barrier(comm) : tutti_allreduce(comm, TUTTI_IN_PLACE, values, 12, TUTTI_FLOAT32, TUTTI_SUM);
  fail("no kind %s", kind);
}

/* mismatch KIND: the last rank calls something else than the others, on a communicator of its own; then the world still works.
 * Prints what each rank was told. With check=full every rank must be told by the very call, else by the barrier after it. */
int run_mismatch(int argc, char** argv) {
  if (argc != 1) return 2;
  tutti_comm_t world = create();
  const int rank = rank_of(world);
  const int size = size_of(world);
  tutti_comm_t comm = NULL;
  must(tutti_comm_split(world, 0, rank, &comm), "split");
  must(tutti_barrier(comm), "a matched call");
  tutti_status_t status = call(argv[0], rank == size - 1, comm);
  const int at_once = status != TUTTI_OK;
  if (!at_once) status = tutti_barrier(comm);
  printf("rank %d %s %s: %s\n", rank, at_once ? "at once" : "later", tutti_status_string(status), tutti_last_error());
  int64_t one = 1;
  must(tutti_allreduce(world, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "another communicator");
  if (one != size) fail("sum is %lld", (long long)one);
  must(tutti_comm_destroy(comm), "destroy");
  must(tutti_comm_destroy(world), "destroy");
  return 0;
}
