/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Modes about what must not happen, and about what must when a rank goes. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

extern char** environ;

/* victim RANK: that rank kills itself in the middle of large allreduces, after it has printed the time. The others print the
 * error and when it came, on the same clock. */
int run_victim(int argc, char** argv) {
  if (argc != 1) return 2;
  const int victim = atoi(argv[0]);
  tutti_comm_t comm = create();
  const int rank = rank_of(comm);
  const size_t count = 1u << 18;
  float* values = calloc(count, sizeof(float));
  for (int i = 0;; ++i) {
    if (rank == victim && i == 20) {
      printf("died %.6f\n", now_s());
      fflush(stdout);
      raise(SIGKILL);
    }
    const tutti_status_t status = tutti_allreduce(comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT32, TUTTI_SUM);
    if (status == TUTTI_OK) continue;
    printf("failed %.6f %s %s\n", now_s(), tutti_status_string(status), tutti_last_error());
    fflush(stdout);
    /* The next call fails at once as well, and the communicator can be destroyed. */
    if (tutti_barrier(comm) != status) fail("the communicator forgot its failure");
    must(tutti_comm_destroy(comm), "destroy");
    free(values);
    /* Stays until the test has seen everybody: a rank that exits would be one more failure. */
    sleep_s(1.5);
    return 0;
  }
}

/* forever: allreduces until killed; rank 0 says when all are in it. */
int run_forever(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  static float values[100000];
  for (int i = 0;; ++i) {
    if (tutti_allreduce(comm, TUTTI_IN_PLACE, values, 100000, TUTTI_FLOAT32, TUTTI_SUM) != TUTTI_OK) return 3;
    if (i == 10 && rank_of(comm) == 0) {
      printf("running\n");
      fflush(stdout);
    }
  }
}

static void check_child(pid_t child, const char* what) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail("%s: the child ended with %d", what, status);
}

static int rank_of_environment(void) {
  const char* text = getenv("TUTTI_RANK");
  return text ? atoi(text) : 0;
}

/* fork: children exec, exit and misuse the handle while the parent goes on. */
int run_fork(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  int64_t one = 1;
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
  const int size = size_of(comm);
  for (int round = 0; round < 5; ++round) {
    pid_t children[3];
    for (int kind = 0; kind < 3; ++kind) {
      fflush(NULL);
      children[kind] = fork();
      if (children[kind] < 0) fail("fork: %s", strerror(errno));
      if (children[kind] > 0) continue;
      if (kind == 0) execlp("true", "true", (char*)NULL);
      if (kind == 1) { /* memory, and exit handlers */
        free(malloc(100000));
        exit(0);
      }
      int64_t word = 1;
      int rank = 0;
      tutti_comm_t again = comm;
      const int wrong = tutti_allreduce(comm, TUTTI_IN_PLACE, &word, 1, TUTTI_INT64, TUTTI_SUM) != TUTTI_ERR_FORKED ||
                        tutti_comm_rank(comm, &rank) != TUTTI_ERR_FORKED || tutti_barrier(comm) != TUTTI_ERR_FORKED ||
                        tutti_comm_split(comm, 0, 0, &again) != TUTTI_ERR_FORKED || tutti_comm_abort(comm) != TUTTI_ERR_FORKED ||
                        tutti_comm_destroy(comm) != TUTTI_ERR_FORKED;
      exit(wrong);
    }
    for (int i = 0; i < 200; ++i) {
      one = 1;
      must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce beside children");
      if (one != size) fail("sum is %lld", (long long)one);
    }
    check_child(children[0], "exec");
    check_child(children[1], "exit");
    check_child(children[2], "misuse");
  }
  must(tutti_comm_destroy(comm), "destroy");
  if (rank_of_environment() == 0) printf("done\n");
  return 0;
}

/* A picture of what a library must leave alone. */
struct picture {
  struct sigaction actions[65];
  char environment[65536];
};

static void take_picture(struct picture* picture) {
  memset(picture, 0, sizeof *picture);
  for (int signal_number = 1; signal_number < 65; ++signal_number)
    (void)sigaction(signal_number, NULL, &picture->actions[signal_number]);
  size_t at = 0;
  for (char** entry = environ; *entry; ++entry) {
    const size_t length = strlen(*entry) + 1;
    if (at + length >= sizeof picture->environment) break;
    memcpy(picture->environment + at, *entry, length);
    at += length;
  }
}

/* quiet: no signal handler, no environment variable, no SIGPIPE when peers leave. */
int run_quiet(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  static struct picture before;
  static struct picture after;
  /* SIGPIPE would end the process: its default action is in place. */
  take_picture(&before);
  tutti_comm_t comm = create();
  const int rank = rank_of(comm);
  int64_t one = 1;
  must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
  /* All have their sum before rank 0 leaves: the failure of one rank's call below ends everybody's. */
  int32_t word = 1;
  if (rank == 0) {
    for (int peer = 1; peer < size_of(comm); ++peer) must(tutti_recv(comm, &word, 1, TUTTI_INT32, peer, 2, NULL), "recv");
    must(tutti_comm_destroy(comm), "destroy");
  } else {
    must(tutti_send(comm, &word, 1, TUTTI_INT32, 0, 2), "send");
    /* Rank 0 has left or is about to: all that is sent to it now meets a closed end. */
    static double big[200000];
    tutti_status_t status = TUTTI_OK;
    const double limit = now_s() + 10;
    while (status == TUTTI_OK && now_s() < limit) status = tutti_send(comm, big, 200000, TUTTI_FLOAT64, 0, 1);
    if (status == TUTTI_OK) fail("sends to a rank that left succeed for ever");
    must(tutti_comm_destroy(comm), "destroy");
  }
  take_picture(&after);
  for (int number = 1; number < 65; ++number)
    if (before.actions[number].sa_handler != after.actions[number].sa_handler ||
        before.actions[number].sa_flags != after.actions[number].sa_flags)
      fail("the action of signal %d differs", number);
  if (memcmp(before.environment, after.environment, sizeof before.environment) != 0) fail("the environment differs");
  printf("done\n");
  return 0;
}

/* large: more than 2^31 elements, in memory that is reserved but hardly touched: all pages of the input are the zero page. */
int run_large(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  const uint64_t count = (1ull << 31) + 5;
  char* buffer = mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (buffer == MAP_FAILED) fail("mmap: %s", strerror(errno));
  if (rank_of(comm) == 0) {
    buffer[0] = 1;
    buffer[1ull << 31] = 2;
    buffer[count - 1] = 3;
  }
  must(tutti_broadcast(comm, buffer, count, TUTTI_INT8, 0), "broadcast");
  if (buffer[0] != 1 || buffer[1ull << 31] != 2 || buffer[count - 1] != 3 || buffer[count - 2] != 0) fail("wrong data");
  if (rank_of(comm) == 0) printf("done\n");
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* missing: creation with a short timeout; prints the error. */
int run_missing(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  const double start = now_s();
  tutti_comm_t comm = NULL;
  const tutti_status_t status = tutti_comm_create(NULL, &comm);
  printf("%s %.2f %s\n", tutti_status_string(status), now_s() - start, tutti_last_error());
  if (comm) must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* create: the shortest job. */
int run_create(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  must(tutti_barrier(comm), "barrier");
  if (rank_of(comm) == 0) printf("done\n");
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* ranks: each says who it is. */
int run_ranks(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t comm = create();
  printf("rank %d of %d\n", rank_of(comm), size_of(comm));
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* destroyed: rank 1 of a chain destroys its communicator and lives on; 0 and 2 wait for it. */
int run_destroyed(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return 2;
  tutti_comm_t world = create();
  const int rank = rank_of(world);
  tutti_comm_t comm = NULL;
  must(tutti_comm_split(world, 0, rank, &comm), "split");
  static double big[1000000];
  const double start = now_s();
  if (rank == 1) {
    must(tutti_comm_destroy(comm), "destroy");
  } else {
    const tutti_status_t status = rank == 0 ? tutti_send(comm, big, 1000000, TUTTI_FLOAT64, 1, 1)
                                            : tutti_recv(comm, big, 1000000, TUTTI_FLOAT64, 1, 1, NULL);
    printf("%s %.2f %s\n", tutti_status_string(status), now_s() - start, tutti_last_error());
    must(tutti_comm_destroy(comm), "destroy");
  }
  must(tutti_barrier(world), "barrier of the other communicator");
  must(tutti_comm_destroy(world), "destroy");
  return 0;
}

/* memory COUNT: resident memory does not grow with the number of calls. */
int run_memory(int argc, char** argv) {
  if (argc != 1) return 2;
  const long count = atol(argv[0]);
  tutti_comm_t comm = create();
  struct rusage usage;
  long first_kib = 0;
  for (long i = 0; i < count; ++i) {
    int64_t one = 1;
    tutti_request_t request = NULL;
    must(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
    must(tutti_iallreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM, &request), "iallreduce");
    must(tutti_wait(&request), "wait");
    if (i == count / 4) {
      getrusage(RUSAGE_SELF, &usage);
      first_kib = usage.ru_maxrss;
    }
  }
  getrusage(RUSAGE_SELF, &usage);
  printf("growth_kib %ld\n", usage.ru_maxrss - first_kib);
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}

/* Memory of this process but for programs and libraries: its own, and its part of what it shares with others. */
static long data_kib(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (!file) fail("smaps_rollup: %s", strerror(errno));
  char line[256];
  long kib = 0;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, "Pss_Anon:", 9) == 0 || strncmp(line, "Pss_Shmem:", 10) == 0) kib += atol(strchr(line, ':') + 1);
  fclose(file);
  if (kib == 0) fail("smaps_rollup has no Pss_Anon");
  return kib;
}

/* footprint: after every rank has sent to every other, in pieces of 4 KiB, what data a rank has in memory. */
int run_footprint(int argc, char** argv) {
  (void)argc, (void)argv;
  tutti_comm_t comm = create();
  const size_t count = 1024, all = count * (size_t)size_of(comm);
  float* from = calloc(all, sizeof(float));
  float* to = calloc(all, sizeof(float));
  if (!from || !to) fail("no memory");
  must(tutti_alltoall(comm, from, to, count, TUTTI_FLOAT32), "alltoall");
  must(tutti_allreduce(comm, from, to, all, TUTTI_FLOAT32, TUTTI_SUM), "allreduce");
  must(tutti_barrier(comm), "barrier");
  free(from);
  free(to);
  printf("kib %ld\n", data_kib());
  must(tutti_barrier(comm), "barrier"); /* nobody's share grows by another's end */
  must(tutti_comm_destroy(comm), "destroy");
  return 0;
}
