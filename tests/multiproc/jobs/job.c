/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One rank of the jobs that test_jobs.py starts: job MODE [ARGUMENT...]. Prints what the test reads; exits 1 when something is
 * wrong, with a line that says what. */
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void sleep_s(double seconds) {
  struct timespec t;
  t.tv_sec = (time_t)seconds;
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

void compute_s(double seconds) {
  const double until = now_s() + seconds;
  volatile double work = 0;
  while (now_s() < until) {
    for (int i = 0; i < 1000; ++i) work += i;
    (void)work;
  }
}

void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "job: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}

void must(tutti_status_t status, const char* what) {
  if (status != TUTTI_OK) fail("%s: %s: %s", what, tutti_status_string(status), tutti_last_error());
}

tutti_comm_t create(void) {
  tutti_comm_t comm = NULL;
  must(tutti_comm_create(NULL, &comm), "create");
  return comm;
}

int rank_of(tutti_comm_t comm) {
  int rank = -1;
  must(tutti_comm_rank(comm, &rank), "rank");
  return rank;
}

int size_of(tutti_comm_t comm) {
  int size = -1;
  must(tutti_comm_size(comm, &size), "size");
  return size;
}

struct mode {
  const char* name;
  int (*run)(int argc, char** argv);
};

static const struct mode modes[] = {
    {"loop", run_loop},
    {"barriers", run_barriers},
    {"idle", run_idle},
    {"victim", run_victim},
    {"late", run_late},
    {"counts", run_counts},
    {"allocations", run_allocations},
    {"forever", run_forever},
    {"fork", run_fork},
    {"quiet", run_quiet},
    {"large", run_large},
    {"cycles", run_cycles},
    {"overlap", run_overlap},
    {"missing", run_missing},
    {"destroyed", run_destroyed},
    {"memory", run_memory},
    {"footprint", run_footprint},
    {"create", run_create},
    {"flood", run_flood},
    {"exchange", run_exchange},
    {"ranks", run_ranks},
    {"worlds", run_worlds},
    {"straggler", run_straggler},
    {"groups", run_groups},
    {"mismatch", run_mismatch},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; ++i)
    if (strcmp(argv[1], modes[i].name) == 0) return modes[i].run(argc - 2, argv + 2);
  fprintf(stderr, "usage: job MODE [ARGUMENT...]\n");
  return 2;
}
