/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

/* embed: Tutti inside a program that has a poll loop, a log and an allocator of its own.
 *
 * No thread of Tutti's runs (setting control_thread = off). The loop waits on the context's descriptor beside its own one,
 * and calls tutti_context_progress when it is readable. Run it by `tuttirun -np 3 embed`, or alone as a job of one rank. */

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
#include <unistd.h>

#define COUNT 1000
#define ROUNDS 20

/* What the program keeps itself. Hooks may be called from any thread of a program that has several; this one has one. */
struct application {
  int log_lines;
  int64_t blocks_in_use;
  int64_t blocks_ever;
  int wake_pipe[2]; /* stands for the program's other work: a socket, a terminal, ... */
  int wakes;
};

static void log_line(void* user, int level, const char* line) {
  struct application* app = user;
  ++app->log_lines;
  if (level <= TUTTI_LOG_WARN) fprintf(stderr, "embed: %s\n", line);
}

static void* allocate(void* user, size_t bytes, size_t alignment) {
  struct application* app = user;
  void* memory = NULL;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (posix_memalign(&memory, alignment, bytes) != 0) return NULL;
  ++app->blocks_in_use;
  ++app->blocks_ever;
  return memory;
}

static void release(void* user, void* memory) {
  struct application* app = user;
  if (memory != NULL) --app->blocks_in_use;
  free(memory);
}

static void check(tutti_status_t status, const char* what) {
  if (status == TUTTI_OK) return;
  fprintf(stderr, "embed: %s: %s (%s)\n", what, tutti_last_error(), tutti_status_string(status));
  exit(1);
}

static tutti_comm_t create(struct application* app) {
  tutti_config_t config;
  tutti_hooks_t hooks;
  tutti_comm_options_t options;
  tutti_comm_t comm;
  check(tutti_config_create(&config), "config");
  check(tutti_config_set(config, "control_thread", "off"), "control_thread");
  check(tutti_config_set(config, "log_level", "info"), "log_level");
  check(tutti_hooks_init(&hooks), "hooks");
  hooks.user = app;
  hooks.log = log_line;
  hooks.alloc = allocate;
  hooks.free = release;
  check(tutti_comm_options_init(&options), "options");
  options.config = config;
  options.hooks = &hooks;
  check(tutti_comm_create(&options, &comm), "create");
  check(tutti_config_destroy(config), "config"); /* it was copied */
  return comm;
}

/* The program's loop until the request has completed. */
static void run_loop(struct application* app, tutti_context_t context, tutti_request_t* request) {
  struct pollfd watched[2];
  int done = 0;
  check(tutti_context_get_fd(context, &watched[0].fd), "descriptor");
  watched[0].events = POLLIN;
  watched[1].fd = app->wake_pipe[0];
  watched[1].events = POLLIN;
  for (;;) {
    /* Progress first: it re-arms the descriptor, so that nothing is missed between looking and sleeping. */
    check(tutti_context_progress(context), "progress");
    check(tutti_test(request, &done), "allreduce");
    if (done) return;
    if (poll(watched, 2, 10000) <= 0) {
      fprintf(stderr, "embed: nothing happened for 10 seconds\n");
      exit(1);
    }
    if (watched[1].revents & POLLIN) {
      char byte;
      if (read(app->wake_pipe[0], &byte, 1) == 1) ++app->wakes;
    }
  }
}

static void print_counters(tutti_context_t context) {
  const char* name;
  uint64_t value;
  size_t i;
  for (i = 0; tutti_context_get_counter(context, i, &name, &value) == TUTTI_OK; ++i) {
    if (value != 0) printf("embed: counter %s %" PRIu64 "\n", name, value);
  }
}

int main(void) {
  static double numbers[COUNT];
  struct application app;
  tutti_comm_t comm;
  tutti_context_t context;
  int rank, size, round, i;
  memset(&app, 0, sizeof app);
  if (pipe(app.wake_pipe) != 0) return 1;
  comm = create(&app);
  check(tutti_comm_rank(comm, &rank), "rank");
  check(tutti_comm_size(comm, &size), "size");
  check(tutti_comm_get_context(comm, &context), "context");
  for (round = 0; round < ROUNDS; ++round) {
    tutti_request_t request;
    for (i = 0; i < COUNT; ++i) numbers[i] = rank + i;
    check(tutti_iallreduce(comm, TUTTI_IN_PLACE, numbers, COUNT, TUTTI_FLOAT64, TUTTI_SUM, &request), "iallreduce");
    if (write(app.wake_pipe[1], "w", 1) != 1) return 1;
    run_loop(&app, context, &request);
    for (i = 0; i < COUNT; ++i) {
      const double expected = (double)size * i + (double)size * (size - 1) / 2;
      if (numbers[i] != expected) {
        fprintf(stderr, "embed: element %d of round %d is %g, not %g\n", i, round, numbers[i], expected);
        return 1;
      }
    }
  }
  if (rank == 0) print_counters(context);
  check(tutti_comm_destroy(comm), "destroy");
  if (app.blocks_in_use != 0) {
    fprintf(stderr, "embed: %" PRId64 " blocks were not given back\n", app.blocks_in_use);
    return 1;
  }
  printf("embed: rank %d of %d: %d sums right, %d lines logged, %" PRId64 " blocks allocated and freed\n", rank, size, ROUNDS,
         app.log_lines, app.blocks_ever);
  return 0;
}
