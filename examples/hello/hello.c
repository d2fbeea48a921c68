/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tutti/tutti.h>

static int failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, tutti_last_error());
  return 1;
}

int main(void) {
  tutti_comm_t comm;
  int rank, size;
  if (tutti_comm_create(NULL, &comm) != TUTTI_OK) return failed("create");
  if (tutti_comm_rank(comm, &rank) != TUTTI_OK || tutti_comm_size(comm, &size) != TUTTI_OK) return failed("rank");

  float value = (float)(rank + 1), sum = 0;
  if (tutti_allreduce(comm, &value, &sum, 1, TUTTI_FLOAT32, TUTTI_SUM) != TUTTI_OK) return failed("allreduce");
  printf("rank %d of %d: the sum is %g\n", rank, size, (double)sum);

  return tutti_comm_destroy(comm) == TUTTI_OK ? 0 : failed("destroy");
}
