// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "collective_arguments.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "arguments.hpp"
#include "call.hpp"
#include "user_types.hpp"

namespace tutti {
namespace {

/// A buffer, as far as it is looked at: bytes [memory, memory + bytes).
struct Buffer {
  const char* name;
  const void* memory;
  uint64_t bytes;
};

Status check_buffer(const Buffer& buffer) {
  if (buffer.bytes == 0) return Status();
  if (!buffer.memory) return null_argument(buffer.name);
  if (buffer.memory != TUTTI_IN_PLACE) return Status();
  return error(TUTTI_ERR_ARGUMENT, "TUTTI_IN_PLACE cannot be {} here", buffer.name);
}

Status check_buffers(const Buffer& a, const Buffer& b) {
  TUTTI_TRY(check_buffer(a));
  TUTTI_TRY(check_buffer(b));
  if (!overlap(a.memory, a.bytes, b.memory, b.bytes)) return Status();
  return error(TUTTI_ERR_ARGUMENT, "{} ({} bytes at {}) and {} ({} bytes at {}) overlap; for in place see tutti.h", a.name,
               a.bytes, a.memory, b.name, b.bytes, b.memory);
}

/// bytes: of `vectors` times so many elements.
Status take_count(uint64_t count, uint64_t vectors, CollectiveArguments* arguments, uint64_t* bytes) {
  arguments->count = count;
  if (!__builtin_mul_overflow(count, arguments->element_bytes * vectors, bytes) && *bytes >> 63 == 0) return Status();
  return error(TUTTI_ERR_SIZE, "{} elements of {} bytes, {} times, do not fit into 63 bits", count, arguments->element_bytes,
               vectors);
}

/// The bytes from the first element of a buffer to the last, over all its blocks.
Status take_counts(const char* name, const uint64_t* counts, const uint64_t* displacements, uint32_t size,
                   const CollectiveArguments& arguments, uint64_t* bytes) {
  if (!counts) return null_argument(name);
  uint64_t end = 0;
  uint64_t next = 0;
  for (uint32_t block = 0; block < size; ++block) {
    const uint64_t first = displacements ? displacements[block] : next;
    // Each is checked for itself, so that no sum of two can wrap.
    const Result<uint64_t> length = checked_bytes(counts[block], arguments.element_bytes);
    const Result<uint64_t> before = checked_bytes(first, arguments.element_bytes);
    if (!length || !before) {
      return error(TUTTI_ERR_SIZE, "{}[{}] is {}, {} elements from the start: more than 63 bits of bytes", name, block,
                   counts[block], first);
    }
    if (counts[block] > 0) end = std::max(end, *before + *length);
    next = first + counts[block];
  }
  *bytes = end;
  return checked_bytes(end, 1).status();
}

const void* at(const void* memory, uint64_t elements, const CollectiveArguments& arguments) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(memory) + elements * arguments.element_bytes);
}
Status no_average(const CollectiveArguments& arguments) {
  if (arguments.op != Op::avg) return Status();
  return error(TUTTI_ERR_OP, "{} has no average: each rank folds another number of contributions", name(arguments.collective));
}

/// send and recv hold a vector each, or recv both.
Status check_vectors(const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op, bool receives,
                     CollectiveArguments* arguments) {
  TUTTI_TRY(take_type(dtype, arguments));
  TUTTI_TRY(take_operation(op, dtype, arguments));
  uint64_t bytes = 0;
  TUTTI_TRY(take_count(count, 1, arguments, &bytes));
  if (count == 0) return Status();
  arguments->in_place = receives && (send == TUTTI_IN_PLACE || send == recv);
  arguments->input = arguments->in_place ? recv : send;
  arguments->output = receives ? recv : nullptr;
  if (arguments->in_place) return check_buffer({"recv", recv, bytes});
  return check_buffers({"send", send, bytes}, {"recv", recv, receives ? bytes : 0});
}

/// Where rank `own` of `size` has its block in a buffer of all blocks.
uint64_t place_of(uint32_t own, const uint64_t* counts, const uint64_t* displacements, uint64_t count) {
  if (displacements) return displacements[own];
  if (!counts) return own * count;
  uint64_t place = 0;
  for (uint32_t block = 0; block < own; ++block) place += counts[block];
  return place;
}

/// One buffer holds all blocks, the other the own one; or the first holds both.
struct Blocks {
  Buffer all;
  Buffer own;
  uint64_t own_place = 0;  ///< elements before the own block in `all`
};

/// In place if `own` is TUTTI_IN_PLACE, or lies where the block does.
Status check_blocks(Blocks& blocks, CollectiveArguments* arguments) {
  const void* place = at(blocks.all.memory, blocks.own_place, *arguments);
  arguments->in_place = blocks.own.memory == TUTTI_IN_PLACE || (blocks.own.bytes > 0 && blocks.own.memory == place);
  if (!arguments->in_place) return check_buffers(blocks.all, blocks.own);
  blocks.own.memory = place;
  return check_buffer(blocks.all);
}

/// Of calls that gather or scatter blocks which are all as long as the own one.
Status take_equal_blocks(const Communicator& communicator, uint64_t count, bool has_all, Blocks& blocks,
                         CollectiveArguments* arguments) {
  TUTTI_TRY(take_count(count, communicator.size(), arguments, &blocks.all.bytes));
  blocks.own.bytes = blocks.all.bytes / communicator.size();
  blocks.own_place = place_of(communicator.rank(), nullptr, nullptr, count);
  return has_all ? check_blocks(blocks, arguments) : check_buffer(blocks.own);
}

/// Of those with a count for each; where a rank does not have them all, it knows its own only. own_name: of own_count.
Status take_uneven_blocks(const Communicator& communicator, const char* own_name, uint64_t own_count, const uint64_t* counts,
                          const uint64_t* displacements, bool has_all, Blocks& blocks, CollectiveArguments* arguments) {
  arguments->uneven = true;
  if (!has_all) {
    TUTTI_TRY(take_count(own_count, 1, arguments, &blocks.own.bytes));
    return check_buffer(blocks.own);
  }
  const uint32_t own = communicator.rank();
  TUTTI_TRY(take_counts("counts", counts, displacements, communicator.size(), *arguments, &blocks.all.bytes));
  if (blocks.own.memory != TUTTI_IN_PLACE && own_count != counts[own]) {
    return error(TUTTI_ERR_ARGUMENT, "{} is {}, but counts[{}] of this rank {}", own_name, own_count, own, counts[own]);
  }
  arguments->count = counts[own];
  arguments->counts = counts;
  blocks.own.bytes = counts[own] * arguments->element_bytes;
  blocks.own_place = place_of(own, counts, displacements, 0);
  return check_blocks(blocks, arguments);
}

/// The root, and whether this rank is it.
Status take_root(const Communicator& communicator, int root, CollectiveArguments* arguments, bool* here) {
  TUTTI_TRY(check_rank(communicator, root, "root"));
  arguments->root = static_cast<uint32_t>(root);
  *here = arguments->root == communicator.rank();
  return Status();
}

void* writable(const Buffer& buffer) { return const_cast<void*>(buffer.memory); }

}  // namespace

// ---- vectors ----------------------------------------------------------------------------------------------------------

Status check_allreduce(const Communicator&, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op,
                       CollectiveArguments* arguments) {
  arguments->collective = Collective::allreduce;
  return check_vectors(send, recv, count, dtype, op, true, arguments);
}

Status check_reduce(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                    tutti_op_t op, int root, CollectiveArguments* arguments) {
  arguments->collective = Collective::reduce;
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  return check_vectors(send, recv, count, dtype, op, here, arguments);
}

Status check_scan(const Communicator&, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op,
                  CollectiveArguments* arguments) {
  arguments->collective = Collective::scan;
  TUTTI_TRY(check_vectors(send, recv, count, dtype, op, true, arguments));
  return no_average(*arguments);
}

Status check_exscan(const Communicator&, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, tutti_op_t op,
                    CollectiveArguments* arguments) {
  arguments->collective = Collective::exscan;
  TUTTI_TRY(check_vectors(send, recv, count, dtype, op, true, arguments));
  return no_average(*arguments);
}

Status check_broadcast(const Communicator& communicator, void* buffer, uint64_t count, tutti_dtype_t dtype, int root,
                       CollectiveArguments* arguments) {
  arguments->collective = Collective::broadcast;
  TUTTI_TRY(take_type(dtype, arguments));
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  uint64_t bytes = 0;
  TUTTI_TRY(take_count(count, 1, arguments, &bytes));
  arguments->output = buffer;
  return check_buffer({"buffer", buffer, bytes});
}

Status check_barrier(const Communicator&, CollectiveArguments*) { return Status(); }

// ---- blocks -----------------------------------------------------------------------------------------------------------

Status check_allgather(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                       CollectiveArguments* arguments) {
  arguments->collective = Collective::allgather;
  TUTTI_TRY(take_type(dtype, arguments));
  Blocks blocks{{"recv", recv, 0}, {"send", send, 0}};
  TUTTI_TRY(take_equal_blocks(communicator, count, true, blocks, arguments));
  arguments->input = blocks.own.memory;
  arguments->output = recv;
  return Status();
}

Status check_allgatherv(const Communicator& communicator, const void* send, void* recv, const uint64_t* counts,
                        const uint64_t* displacements, tutti_dtype_t dtype, CollectiveArguments* arguments) {
  arguments->collective = Collective::allgather;
  TUTTI_TRY(take_type(dtype, arguments));
  if (!counts) return null_argument("counts");
  Blocks blocks{{"recv", recv, 0}, {"send", send, 0}};
  const uint64_t own_count = counts[communicator.rank()];
  TUTTI_TRY(take_uneven_blocks(communicator, "counts", own_count, counts, displacements, true, blocks, arguments));
  arguments->output_places = displacements;
  arguments->input = blocks.own.memory;
  arguments->output = recv;
  return Status();
}

Status check_gather(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype, int root,
                    CollectiveArguments* arguments) {
  arguments->collective = Collective::gather;
  TUTTI_TRY(take_type(dtype, arguments));
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  Blocks blocks{{"recv", recv, 0}, {"send", send, 0}};
  TUTTI_TRY(take_equal_blocks(communicator, count, here, blocks, arguments));
  arguments->input = blocks.own.memory;
  arguments->output = here ? recv : nullptr;
  return Status();
}

Status check_gatherv(const Communicator& communicator, const void* send, uint64_t send_count, void* recv, const uint64_t* counts,
                     const uint64_t* displacements, tutti_dtype_t dtype, int root, CollectiveArguments* arguments) {
  arguments->collective = Collective::gather;
  TUTTI_TRY(take_type(dtype, arguments));
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  Blocks blocks{{"recv", recv, 0}, {"send", send, 0}};
  TUTTI_TRY(take_uneven_blocks(communicator, "send_count", send_count, counts, displacements, here, blocks, arguments));
  arguments->input = blocks.own.memory;
  arguments->output = here ? recv : nullptr;
  arguments->output_places = here ? displacements : nullptr;
  return Status();
}

Status check_scatter(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                     int root, CollectiveArguments* arguments) {
  arguments->collective = Collective::scatter;
  TUTTI_TRY(take_type(dtype, arguments));
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  Blocks blocks{{"send", send, 0}, {"recv", recv, 0}};
  TUTTI_TRY(take_equal_blocks(communicator, count, here, blocks, arguments));
  arguments->input = here ? send : nullptr;
  arguments->output = writable(blocks.own);
  return Status();
}

Status check_scatterv(const Communicator& communicator, const void* send, const uint64_t* counts, const uint64_t* displacements,
                      void* recv, uint64_t recv_count, tutti_dtype_t dtype, int root, CollectiveArguments* arguments) {
  arguments->collective = Collective::scatter;
  TUTTI_TRY(take_type(dtype, arguments));
  bool here = false;
  TUTTI_TRY(take_root(communicator, root, arguments, &here));
  Blocks blocks{{"send", send, 0}, {"recv", recv, 0}};
  TUTTI_TRY(take_uneven_blocks(communicator, "recv_count", recv_count, counts, displacements, here, blocks, arguments));
  arguments->input = here ? send : nullptr;
  arguments->input_places = here ? displacements : nullptr;
  arguments->output = writable(blocks.own);
  return Status();
}

namespace {

/// send holds all blocks and recv the own one; in place recv holds all.
Blocks reduced_blocks(const void* send, void* recv) {
  if (send == TUTTI_IN_PLACE) return {{"recv", recv, 0}, {"send", TUTTI_IN_PLACE, 0}};
  return {{"send", send, 0}, {"recv", recv, 0}};
}

}  // namespace

Status check_reduce_scatter(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                            tutti_op_t op, CollectiveArguments* arguments) {
  arguments->collective = Collective::reduce_scatter;
  TUTTI_TRY(take_type(dtype, arguments));
  TUTTI_TRY(take_operation(op, dtype, arguments));
  Blocks blocks = reduced_blocks(send, recv);
  TUTTI_TRY(take_equal_blocks(communicator, count, true, blocks, arguments));
  arguments->input = blocks.all.memory;
  arguments->output = writable(blocks.own);
  return Status();
}

Status check_reduce_scatterv(const Communicator& communicator, const void* send, void* recv, const uint64_t* counts,
                             tutti_dtype_t dtype, tutti_op_t op, CollectiveArguments* arguments) {
  arguments->collective = Collective::reduce_scatter;
  TUTTI_TRY(take_type(dtype, arguments));
  TUTTI_TRY(take_operation(op, dtype, arguments));
  if (!counts) return null_argument("counts");
  Blocks blocks = reduced_blocks(send, recv);
  const uint64_t own_count = counts[communicator.rank()];
  TUTTI_TRY(take_uneven_blocks(communicator, "counts", own_count, counts, nullptr, true, blocks, arguments));
  arguments->input = blocks.all.memory;
  arguments->output = writable(blocks.own);
  return Status();
}

Status check_alltoall(const Communicator& communicator, const void* send, void* recv, uint64_t count, tutti_dtype_t dtype,
                      CollectiveArguments* arguments) {
  arguments->collective = Collective::alltoall;
  TUTTI_TRY(take_type(dtype, arguments));
  uint64_t bytes = 0;
  TUTTI_TRY(take_count(count, communicator.size(), arguments, &bytes));
  arguments->in_place = send == TUTTI_IN_PLACE || (count > 0 && send == recv);
  arguments->input = arguments->in_place ? recv : send;
  arguments->output = recv;
  if (arguments->in_place) return check_buffer({"recv", recv, bytes});
  return check_buffers({"send", send, bytes}, {"recv", recv, bytes});
}

Status check_alltoallv(const Communicator& communicator, const void* send, const uint64_t* send_counts,
                       const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                       const uint64_t* recv_displacements, tutti_dtype_t dtype, CollectiveArguments* arguments) {
  arguments->collective = Collective::alltoall;
  arguments->uneven = true;
  TUTTI_TRY(take_type(dtype, arguments));
  const uint32_t size = communicator.size();
  const uint32_t own = communicator.rank();
  uint64_t recv_bytes = 0;
  TUTTI_TRY(take_counts("recv_counts", recv_counts, recv_displacements, size, *arguments, &recv_bytes));
  arguments->received_counts = recv_counts;
  arguments->output_places = recv_displacements;
  arguments->output = recv;
  arguments->in_place = send == TUTTI_IN_PLACE;
  if (arguments->in_place) {  // what is sent lies where what is received will
    arguments->counts = recv_counts;
    arguments->input_places = recv_displacements;
    arguments->input = recv;
    return check_buffer({"recv", recv, recv_bytes});
  }
  uint64_t send_bytes = 0;
  TUTTI_TRY(take_counts("send_counts", send_counts, send_displacements, size, *arguments, &send_bytes));
  if (send_counts[own] != recv_counts[own]) {
    return error(TUTTI_ERR_ARGUMENT, "send_counts[{}] is {}, but recv_counts[{}] {}: what this rank sends itself", own,
                 send_counts[own], own, recv_counts[own]);
  }
  arguments->counts = send_counts;
  arguments->input_places = send_displacements;
  arguments->input = send;
  return check_buffers({"send", send, send_bytes}, {"recv", recv, recv_bytes});
}

namespace {

/// Counts of blocks with types of their own, and their displacements, all in bytes: appended to `arrays`.
Status append_bytes(const char* name, const uint64_t* counts, const uint64_t* displacements_bytes, const tutti_dtype_t* types,
                    uint32_t size, std::vector<uint64_t>& arrays) {
  if (!counts) return null_argument(name);
  if (!types) return error(TUTTI_ERR_ARGUMENT, "the types that go with {} are NULL", name);
  uint64_t next = 0;
  const size_t first = arrays.size();
  arrays.resize(first + size_t{2} * size);
  for (uint32_t block = 0; block < size; ++block) {
    // The type of what does not exist is not looked at.
    if (counts[block] > 0) {
      const Result<ElementType> type = find_type(types[block]);
      if (!type) return type.status().with_context(fmt::format("block {}", block));
      const Result<uint64_t> bytes = checked_bytes(counts[block], type->bytes);
      if (!bytes) return bytes.status();
      arrays[first + block] = *bytes;
    }
    arrays[first + size + block] = displacements_bytes ? displacements_bytes[block] : next;
    next = arrays[first + size + block] + arrays[first + block];
  }
  return Status();
}

}  // namespace

Status check_alltoallw(const Communicator& communicator, const void* send, const uint64_t* send_counts,
                       const uint64_t* send_displacements_bytes, const tutti_dtype_t* send_types, void* recv,
                       const uint64_t* recv_counts, const uint64_t* recv_displacements_bytes, const tutti_dtype_t* recv_types,
                       CollectiveArguments* arguments) {
  const uint32_t size = communicator.size();
  const auto arrays = std::make_shared<std::vector<uint64_t>>();
  TUTTI_TRY(append_bytes("recv_counts", recv_counts, recv_displacements_bytes, recv_types, size, *arrays));
  const bool in_place = send == TUTTI_IN_PLACE;
  if (!in_place) TUTTI_TRY(append_bytes("send_counts", send_counts, send_displacements_bytes, send_types, size, *arrays));
  const uint64_t* received = arrays->data();
  const uint64_t* sent = in_place ? received : received + size_t{2} * size;
  TUTTI_TRY(check_alltoallv(communicator, send, sent, sent + size, recv, received, received + size, TUTTI_BYTE, arguments));
  arguments->own_arrays = arrays;
  return Status();
}

// ---- here -------------------------------------------------------------------------------------------------------------

Status reduce_here(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t dtype, tutti_op_t op) {
  CollectiveArguments arguments;
  arguments.collective = Collective::reduce;
  TUTTI_TRY(take_type(dtype, &arguments));
  TUTTI_TRY(take_operation(op, dtype, &arguments));
  if (arguments.op == Op::avg || arguments.scaled) {
    return error(TUTTI_ERR_OP, "{} needs the ranks of a communicator", arguments.op == Op::avg ? "an average" : "a scaled sum");
  }
  uint64_t bytes = 0;
  TUTTI_TRY(take_count(count, 1, &arguments, &bytes));
  TUTTI_TRY(check_buffers({"left", left, bytes}, {"right_and_result", right_and_result, bytes}));
  if (count == 0) return Status();
  const void* const sources[] = {left, right_and_result};
  const bool user = arguments.user_fold.function != nullptr;
  const FoldFunction fold = user ? &UserFold::fold : fold_function(arguments.dtype, arguments.op, detected_cpu_level());
  fold({&right_and_result, sources, 1, 2, count, 1, &arguments.user_fold});
  return Status();
}

}  // namespace tutti

extern "C" tutti_status_t tutti_reduce_local(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t dtype,
                                             tutti_op_t op) {
  return tutti::entry("tutti_reduce_local", [&] { return tutti::reduce_here(left, right_and_result, count, dtype, op); });
}
