/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded: name resolution as behind a dead VPN. Every question takes ten seconds, and has no answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static void wait_long(void) {
  const struct timespec pause = {10, 0};
  nanosleep(&pause, NULL);
}

EXPORT int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints, struct addrinfo** result);
int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints, struct addrinfo** result) {
  (void)node;
  (void)service;
  (void)hints;
  (void)result;
  wait_long();
  return EAI_AGAIN;
}

EXPORT struct hostent* gethostbyname(const char* name);
struct hostent* gethostbyname(const char* name) {
  (void)name;
  wait_long();
  return NULL;
}

EXPORT int gethostbyname_r(const char* name, struct hostent* host, char* buffer, size_t bytes, struct hostent** result,
                           int* error);
int gethostbyname_r(const char* name, struct hostent* host, char* buffer, size_t bytes, struct hostent** result, int* error) {
  (void)name;
  (void)host;
  (void)buffer;
  (void)bytes;
  wait_long();
  *result = NULL;
  *error = TRY_AGAIN;
  return EAGAIN;
}
