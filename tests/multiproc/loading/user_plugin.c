/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Somebody's plugin for a program of their own: linked with libtutti, which therefore comes and goes with it. */
#include "tutti/tutti.h"

__attribute__((visibility("default"))) int plugin_work(void);

int plugin_work(void) {
  tutti_comm_t comm = NULL;
  int64_t one = 1;
  /* An error first: its message is kept for the thread. */
  if (tutti_comm_destroy(NULL) != TUTTI_ERR_HANDLE || tutti_last_error()[0] == '\0') return 1;
  if (tutti_comm_create(NULL, &comm) != TUTTI_OK) return 2;
  if (tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM) != TUTTI_OK || one != 1) return 3;
  return tutti_comm_destroy(comm) == TUTTI_OK ? 0 : 4;
}
