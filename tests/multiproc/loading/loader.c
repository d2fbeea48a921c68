/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program that is not linked with libtutti: it opens the library as Python does, RTLD_LOCAL, uses it and closes it again.
 *   loader LIBRARY MODE [ARGUMENT...]
 * Exits 1 with a line when something is wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti/tutti.h"

static void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "loader: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(1);
}

/* ---- the library, by name ---- */

#define ENTRIES(X)                                                                                                       \
  X(status_string)                                                                                                       \
  X(last_error) X(config_create) X(config_set) X(config_destroy) X(comm_options_init) X(comm_create) X(unique_id_create) \
      X(comm_create_from_id) X(comm_destroy) X(comm_rank) X(allreduce) X(barrier)

struct library {
  void* handle;
#define MEMBER(name) __typeof__(tutti_##name)* name;
  ENTRIES(MEMBER)
#undef MEMBER
};

static void load(struct library* library, const char* path) {
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) fail("dlopen: %s", dlerror());
#define FIND(name)                                                  \
  *(void**)&library->name = dlsym(library->handle, "tutti_" #name); \
  if (!library->name) fail("dlsym: %s", dlerror());
  ENTRIES(FIND)
#undef FIND
}

static void unload(struct library* library) {
  if (dlclose(library->handle) != 0) fail("dlclose: %s", dlerror());
  memset(library, 0, sizeof *library);
}

static void must(const struct library* library, tutti_status_t status, const char* what) {
  if (status != TUTTI_OK) fail("%s: %s: %s", what, library->status_string(status), library->last_error());
}

/* ---- what the process has ---- */

static int entries(const char* folder) {
  DIR* directory = opendir(folder);
  if (!directory) fail("no %s", folder);
  int count = 0;
  for (const struct dirent* entry = readdir(directory); entry; entry = readdir(directory)) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static int descriptors(void) { return entries("/proc/self/fd"); }
static int threads(void) { return entries("/proc/self/task"); }

static int mapped(const char* name) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (!maps) fail("no maps");
  char line[1024];
  int found = 0;
  while (fgets(line, sizeof line, maps)) found += strstr(line, name) != NULL;
  fclose(maps);
  return found;
}

/* A thread that was joined may still stand in /proc for a moment: the count is awaited, and a leak is never away. */
static void back_to(int wanted_threads, int wanted_descriptors, const char* when) {
  for (int turn = 0; turn < 2000 && threads() != wanted_threads; ++turn) {
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
  if (threads() != wanted_threads) fail("%s: %d threads, %d at first", when, threads(), wanted_threads);
  if (descriptors() != wanted_descriptors) fail("%s: %d descriptors, %d at first", when, descriptors(), wanted_descriptors);
}

/* ---- communicators ---- */

static void use(const struct library* library, tutti_comm_t comm, int size) {
  int64_t one = 1;
  must(library, library->allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), "allreduce");
  if (one != size) fail("%lld instead of %d", (long long)one, size);
  must(library, library->barrier(comm), "barrier");
}

static void one_rank(const struct library* library) {
  tutti_comm_t comm = NULL;
  must(library, library->comm_create(NULL, &comm), "create");
  use(library, comm, 1);
  must(library, library->comm_destroy(comm), "destroy");
}

struct rank {
  const struct library* library;
  const tutti_unique_id_t* id;
  const tutti_comm_options_t* options;
  int number;
};

static void* run_rank(void* arg) {
  const struct rank* rank = arg;
  tutti_comm_t comm = NULL;
  must(rank->library, rank->library->comm_create_from_id(rank->id, 2, rank->number, rank->options, &comm), "create from id");
  use(rank->library, comm, 2);
  must(rank->library, rank->library->comm_destroy(comm), "destroy");
  return NULL;
}

static void two_ranks(const struct library* library, const char* transports, const char* path) {
  tutti_comm_options_t options;
  must(library, library->comm_options_init(&options), "options");
  must(library, library->config_create(&options.config), "config");
  if (transports) must(library, library->config_set(options.config, "transports", transports), "transports");
  if (path) must(library, library->config_set(options.config, "transport_path", path), "transport_path");
  /* Both on this machine: no need for a network. */
  must(library, library->config_set(options.config, "interface", "127.0.0.1"), "interface");
  tutti_unique_id_t id;
  must(library, library->unique_id_create(&options, &id), "unique id");
  struct rank ranks[2];
  pthread_t thread[2];
  for (int i = 0; i < 2; ++i) {
    ranks[i] = (struct rank){library, &id, &options, i};
    if (pthread_create(&thread[i], NULL, run_rank, &ranks[i]) != 0) fail("no thread");
  }
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  must(library, library->config_destroy(options.config), "config");
}

/* ---- modes ---- */

/* cycles COUNT: opened, used and closed that often. */
static void run_cycles(const char* path, int argc, char** argv) {
  if (argc != 1) fail("cycles COUNT");
  struct library library;
  const int start_threads = threads();
  const int start_descriptors = descriptors();
  for (int i = 0; i < atoi(argv[0]); ++i) {
    load(&library, path);
    one_rank(&library);
    two_ranks(&library, NULL, NULL);
    unload(&library);
    if (mapped("libtutti.so")) fail("cycle %d: still mapped after dlclose", i);
    back_to(start_threads, start_descriptors, "after a cycle");
  }
}

/* transports LIST [PATH]: a job of two ranks over these, from the library itself or from plugins. */
static void run_transports(const char* path, int argc, char** argv) {
  if (argc < 1 || argc > 2) fail("transports LIST [PATH]");
  struct library library;
  load(&library, path);
  two_ranks(&library, argv[0], argc == 2 ? argv[1] : NULL);
  unload(&library);
}

/* again COUNT: communicators come and go in one process, the library stays. */
static void run_again(const char* path, int argc, char** argv) {
  if (argc != 2) fail("again COUNT TRANSPORTS");
  struct library library;
  load(&library, path);
  const int start_threads = threads();
  const int start_descriptors = descriptors();
  for (int i = 0; i < atoi(argv[0]); ++i) {
    one_rank(&library);
    two_ranks(&library, argv[1], NULL);
    back_to(start_threads, start_descriptors, "after destroy");
  }
  unload(&library);
}

/* handles: destroyed twice, used after it, NULL; the next one is none the worse. */
static void run_handles(const char* path, int argc, char** argv) {
  (void)argv;
  if (argc != 0) fail("handles");
  struct library library;
  load(&library, path);
  for (int round = 0; round < 3; ++round) {
    tutti_comm_t comm = NULL;
    tutti_comm_t other = NULL;
    int rank = -1;
    int64_t one = 1;
    must(&library, library.comm_create(NULL, &comm), "create");
    must(&library, library.comm_create(NULL, &other), "create a second one");
    must(&library, library.comm_destroy(comm), "destroy");
    if (library.comm_destroy(comm) != TUTTI_ERR_HANDLE || !strstr(library.last_error(), "destroyed already"))
      fail("destroyed twice");
    if (library.allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM) != TUTTI_ERR_HANDLE) fail("used after destroy");
    if (library.comm_rank(comm, &rank) != TUTTI_ERR_HANDLE || rank != -1) fail("asked after destroy");
    if (library.comm_destroy(NULL) != TUTTI_ERR_HANDLE) fail("NULL destroyed");
    use(&library, other, 1);
    must(&library, library.comm_destroy(other), "destroy the second");
  }
  unload(&library);
}

/* plugin PATH COUNT: somebody's plugin that uses libtutti runs in a thread, is closed by it, and the thread ends after that. */
static void* run_plugin_thread(void* arg) {
  void* plugin = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) fail("dlopen: %s", dlerror());
  int (*work)(void) = NULL;
  *(void**)&work = dlsym(plugin, "plugin_work");
  if (!work) fail("dlsym: %s", dlerror());
  const int result = work();
  if (result != 0) fail("the plugin returned %d", result);
  if (dlclose(plugin) != 0) fail("dlclose: %s", dlerror());
  return NULL;
}

static void run_plugin(const char* path, int argc, char** argv) {
  (void)path;
  if (argc != 2) fail("plugin PATH COUNT");
  const int start_threads = threads();
  const int start_descriptors = descriptors();
  for (int i = 0; i < atoi(argv[1]); ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_plugin_thread, argv[0]) != 0) fail("no thread");
    pthread_join(thread, NULL);
    if (mapped("libtutti.so") || mapped("user_plugin")) fail("still mapped after dlclose");
    back_to(start_threads, start_descriptors, "after a plugin");
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(const char* path, int argc, char** argv);
  } modes[] = {{"cycles", run_cycles},
               {"transports", run_transports},
               {"again", run_again},
               {"handles", run_handles},
               {"plugin", run_plugin}};
  for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof modes[0]; ++i) {
    if (strcmp(argv[2], modes[i].name) != 0) continue;
    modes[i].run(argv[1], argc - 3, argv + 3);
    printf("done\n");
    return 0;
  }
  fprintf(stderr, "usage: loader LIBRARY MODE [ARGUMENT...]\n");
  return 2;
}
