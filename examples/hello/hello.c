/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <tutti/tutti.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, tutti_last_error());
  return 1;
}

int main(void) {
  tutti_comm_t comm;
  int rank = 0, size = 0;
  if (tutti_comm_create(NULL, &comm) != TUTTI_OK) return failed("create");
  tutti_comm_rank(comm, &rank);
  tutti_comm_size(comm, &size);
  double sum = rank + 1;
  if (tutti_allreduce(comm, TUTTI_IN_PLACE, &sum, 1, TUTTI_FLOAT64, TUTTI_SUM) != TUTTI_OK) return failed("allreduce");
  printf("rank %d of %d: the sum of 1..%d is %g\n", rank, size, size, sum);
  tutti_comm_destroy(comm);
  return 0;
}
