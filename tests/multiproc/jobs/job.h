/* SPDX-FileCopyrightText: The Tutti authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TUTTI_TESTS_JOB_H
#define TUTTI_TESTS_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

double now_s(void);
double cpu_s(void);
void sleep_s(double seconds);
/* Keeps the core busy, without a call into Tutti. */
void compute_s(double seconds);
void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the process with a line when the status is an error. */
void must(tutti_status_t status, const char* what);
/* From the environment, or the end of the process. */
tutti_comm_t create(void);
int rank_of(tutti_comm_t comm);
int size_of(tutti_comm_t comm);

int run_loop(int argc, char** argv);
int run_barriers(int argc, char** argv);
int run_idle(int argc, char** argv);
int run_victim(int argc, char** argv);
int run_late(int argc, char** argv);
int run_counts(int argc, char** argv);
int run_allocations(int argc, char** argv);
int run_forever(int argc, char** argv);
int run_fork(int argc, char** argv);
int run_quiet(int argc, char** argv);
int run_large(int argc, char** argv);
int run_cycles(int argc, char** argv);
int run_overlap(int argc, char** argv);
int run_missing(int argc, char** argv);
int run_destroyed(int argc, char** argv);
int run_memory(int argc, char** argv);
int run_footprint(int argc, char** argv);
int run_create(int argc, char** argv);
int run_flood(int argc, char** argv);
int run_exchange(int argc, char** argv);
int run_ranks(int argc, char** argv);
int run_worlds(int argc, char** argv);
int run_straggler(int argc, char** argv);
int run_groups(int argc, char** argv);
int run_mismatch(int argc, char** argv);

#endif
