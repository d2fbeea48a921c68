// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/communicator.hpp"
#include "tutti/tutti.h"

namespace tutti {

// For each collective of tutti.h: checks its arguments, and brings them into the form that the communicator takes.

Status check_allreduce(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                       tutti_op_t op, CollectiveArguments* arguments);
Status check_reduce(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                    tutti_op_t op, int root, CollectiveArguments* arguments);
Status check_broadcast(const Communicator& communicator, void* buffer, uint64_t count, tutti_dtype_t dtype, int root,
                       CollectiveArguments* arguments);
Status check_allgather(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                       CollectiveArguments* arguments);
Status check_allgatherv(const Communicator& communicator, const void* send, void* recv, const uint64_t* counts,
                        const uint64_t* displacements, tutti_dtype_t dtype, CollectiveArguments* arguments);
Status check_gather(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                    int root, CollectiveArguments* arguments);
Status check_gatherv(const Communicator& communicator, const void* send, uint64_t send_count, void* recv,
                     const uint64_t* counts, const uint64_t* displacements, tutti_dtype_t dtype, int root,
                     CollectiveArguments* arguments);
Status check_scatter(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                     int root, CollectiveArguments* arguments);
Status check_scatterv(const Communicator& communicator, const void* send, const uint64_t* counts,
                      const uint64_t* displacements, void* recv, uint64_t recv_count, tutti_dtype_t dtype, int root,
                      CollectiveArguments* arguments);
Status check_reduce_scatter(const Communicator& communicator, const void* send, void* recv, uint64_t count,
                            tutti_dtype_t dtype, tutti_op_t op, CollectiveArguments* arguments);
Status check_reduce_scatterv(const Communicator& communicator, const void* send, void* recv, const uint64_t* counts,
                             tutti_dtype_t dtype, tutti_op_t op, CollectiveArguments* arguments);
Status check_alltoall(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                      CollectiveArguments* arguments);
Status check_alltoallv(const Communicator& communicator, const void* send, const uint64_t* send_counts,
                       const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                       const uint64_t* recv_displacements, tutti_dtype_t dtype, CollectiveArguments* arguments);
Status check_alltoallw(const Communicator& communicator, const void* send, const uint64_t* send_counts,
                       const uint64_t* send_displacements_bytes, const tutti_dtype_t* send_types, void* recv,
                       const uint64_t* recv_counts, const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types,
                       CollectiveArguments* arguments);
Status check_scan(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                  tutti_op_t op, CollectiveArguments* arguments);
Status check_exscan(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                    tutti_op_t op, CollectiveArguments* arguments);
Status check_barrier(const Communicator& communicator, CollectiveArguments* arguments);

/// Of tutti_reduce_local.
Status reduce_here(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t dtype, tutti_op_t op);

}  // namespace tutti
