/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * calls blocking|changing|persistent COUNT: so many allreduces of 8 bytes in a job of one rank, for a tool that counts
 * instructions. changing: every other one is of 16 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti/tutti.h"

static void must(tutti_status_t status) {
  if (status == TUTTI_OK) return;
  fprintf(stderr, "%s\n", tutti_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long count = atol(argv[2]);
  double in[2] = {1, 1};
  double out[2] = {0, 0};
  tutti_comm_t comm = NULL;
  must(tutti_comm_create(NULL, &comm));
  if (strcmp(argv[1], "persistent") != 0) {
    const uint64_t more = strcmp(argv[1], "changing") == 0;
    for (long i = 0; i < count; ++i) must(tutti_allreduce(comm, in, out, 1 + ((uint64_t)i & more), TUTTI_FLOAT64, TUTTI_SUM));
  } else {
    tutti_request_t request = NULL;
    must(tutti_allreduce_init(comm, in, out, 1, TUTTI_FLOAT64, TUTTI_SUM, &request));
    for (long i = 0; i < count; ++i) {
      must(tutti_start(request));
      must(tutti_wait(&request));
    }
    must(tutti_request_free(&request));
  }
  must(tutti_comm_destroy(comm));
  return out[0] == in[0] ? 0 : 1;
}
