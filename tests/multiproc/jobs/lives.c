/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Modes about many communicators: one after the other, and all at once. */
#include <stdio.h>
#include <stdlib.h>

#include "job.h"

static void check_sum(tutti_comm_t comm, long turn) {
  const int size = size_of(comm);
  int64_t sum = rank_of(comm) + turn;
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, &sum, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
  const int64_t wanted = (int64_t)size * (size - 1) / 2 + size * turn;
  if (sum != wanted) fail("turn %ld: %lld instead of %lld", turn, (long long)sum, (long long)wanted);
}

/* worlds COUNT LONGEST_MS: the job meets, works and leaves that often; each rank tarries before it leaves and before it comes
 * again, for random times of its own. */
int run_worlds(int argc, char** argv) {
  if (argc != 2) return 2;
  const double longest_s = atof(argv[1]) / 1000;
  const char* number = getenv("TUTTI_RANK");
  uint64_t state = 77 + (uint64_t)(number ? atoi(number) : 0);
  for (long turn = 0; turn < atol(argv[0]); ++turn) {
    tutti_comm_t comm = create();
    check_sum(comm, turn);
    for (int half = 0; half < 2; ++half) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if (longest_s > 0) sleep_s(longest_s * (double)(state >> 40) / (double)(1u << 24));
      if (half == 0) must(tutti_comm_destroy(comm), "destroy");
    }
  }
  printf("done\n");
  return 0;
}

/* straggler COUNT MS: the last rank keeps its communicator for that long while the others, theirs destroyed, create the next. */
int run_straggler(int argc, char** argv) {
  if (argc != 2) return 2;
  for (long turn = 0; turn < atol(argv[0]); ++turn) {
    tutti_comm_t comm = create();
    check_sum(comm, turn);
    if (rank_of(comm) == size_of(comm) - 1) sleep_s(atof(argv[1]) / 1000);
    must(tutti_comm_destroy(comm), "destroy");
  }
  printf("done\n");
  return 0;
}

/* groups COUNT: so many communicators live at once. */
int run_groups(int argc, char** argv) {
  if (argc != 1) return 2;
  const long count = atol(argv[0]);
  tutti_comm_t world = create();
  tutti_comm_t* groups = calloc((size_t)count, sizeof *groups);
  if (!groups) fail("no memory");
  for (long i = 0; i < count; ++i) {
    must(tutti_comm_split(world, (int)(i % 2), -rank_of(world), &groups[i]), "split");
    check_sum(groups[i], i);
  }
  for (long i = count; i-- > 0;) check_sum(groups[i], 2 * i);
  for (long i = 0; i < count; i += 2) must(tutti_comm_destroy(groups[i]), "destroy");
  for (long i = 1; i < count; i += 2) {
    check_sum(groups[i], 3 * i);
    must(tutti_comm_destroy(groups[i]), "destroy");
  }
  free(groups);
  must(tutti_comm_destroy(world), "destroy the first");
  printf("done\n");
  return 0;
}
