// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <algorithm>

namespace peers {
namespace {

float value(int rank, size_t index) { return static_cast<float>((index * 7 + static_cast<size_t>(rank) * 13) % 31); }

float sum(size_t index, int ranks) {
  float total = 0;
  for (int rank = 0; rank < ranks; ++rank) total += value(rank, index);
  return total;
}

bool cut_in_blocks(Collective collective) {
  return collective == Collective::allgather || collective == Collective::gather || collective == Collective::scatter ||
         collective == Collective::reduce_scatter || collective == Collective::alltoall;
}

// Compares `count` floats from `have` with what `want(index)` says.
template <typename Want>
uint64_t differing(const float* have, size_t count, Want want) {
  uint64_t wrong = 0;
  for (size_t index = 0; index < count; ++index) wrong += have[index] == want(index) ? 0 : 1;
  return wrong;
}

}  // namespace

bool is_rooted(Collective collective) {
  return collective == Collective::reduce || collective == Collective::broadcast || collective == Collective::gather ||
         collective == Collective::scatter;
}

size_t buffer_floats(Collective collective, size_t count, int ranks) {
  return cut_in_blocks(collective) ? count * static_cast<size_t>(ranks) : count;
}

void fill(const Task& task, int rank, int ranks, int root) {
  const size_t floats = buffer_floats(task.collective, task.count, ranks);
  for (size_t index = 0; index < floats; ++index) task.send[index] = value(rank, index);
  std::fill_n(task.recv, floats, -1.0F);
  if (task.collective == Collective::broadcast && rank == root) std::copy_n(task.send, floats, task.recv);
}

uint64_t wrong_elements(const Task& task, int rank, int ranks, int root) {
  const size_t count = task.count;
  const size_t own = static_cast<size_t>(rank) * count;
  const auto total = [&](size_t index) { return sum(index, ranks); };
  const auto of_root = [&](size_t index) { return value(root, index); };
  uint64_t wrong = 0;
  switch (task.collective) {
    case Collective::allreduce:
      return differing(task.recv, count, total);
    case Collective::reduce:
      return rank == root ? differing(task.recv, count, total) : 0;
    case Collective::broadcast:
      return differing(task.recv, count, of_root);
    case Collective::reduce_scatter:
      return differing(task.recv, count, [&](size_t index) { return sum(own + index, ranks); });
    case Collective::scatter:
      return differing(task.recv, count, [&](size_t index) { return value(root, own + index); });
    case Collective::gather:
      if (rank != root) return 0;
      [[fallthrough]];
    case Collective::allgather:
      for (int from = 0; from < ranks; ++from) {
        wrong +=
            differing(task.recv + static_cast<size_t>(from) * count, count, [&](size_t index) { return value(from, index); });
      }
      return wrong;
    case Collective::alltoall:
      for (int from = 0; from < ranks; ++from) {
        wrong += differing(task.recv + static_cast<size_t>(from) * count, count,
                           [&](size_t index) { return value(from, own + index); });
      }
      return wrong;
    case Collective::barrier:
      return 0;
  }
  return wrong;
}

}  // namespace peers
