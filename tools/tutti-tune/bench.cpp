// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "errors.hpp"
#include "schedule/collective.hpp"

namespace tutti::tune {

volatile std::sig_atomic_t g_interrupted = 0;

namespace {

tutti_dtype_t dtype_of(TypeClass type) {
  switch (type) {
    case TypeClass::integers:
      return TUTTI_INT32;
    case TypeClass::small_floats:
      return TUTTI_BFLOAT16;
    case TypeClass::floats:
    case TypeClass::user:
      break;
  }
  return TUTTI_FLOAT32;
}

/// As an operation of the caller's, so that its calls are what is measured.
void add_floats(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t, void*) {
  const auto* from = static_cast<const float*>(left);
  auto* to = static_cast<float*>(right_and_result);
  for (uint64_t n = 0; n < count; ++n) to[n] += from[n];
}

}  // namespace

uint32_t element_bytes(TypeClass type) { return static_cast<uint32_t>(tutti_dtype_size_bytes(dtype_of(type))); }

std::vector<Point> points_of(Collective collective, uint32_t ranks, uint32_t element_bytes, const Sizes& sizes) {
  if (collective == Collective::barrier) return {{0, 0}};
  const uint64_t unit = has_blocks(collective) ? uint64_t{ranks} * element_bytes : element_bytes;
  std::vector<Point> points;
  for (uint64_t bytes = sizes.first_bytes; bytes <= sizes.last_bytes; bytes *= sizes.factor) {
    const uint64_t count = std::max<uint64_t>(1, bytes / unit);
    if (points.empty() || points.back().count != count) points.push_back({count * unit, count});
    if (bytes > UINT64_MAX / sizes.factor) break;
  }
  return points;
}

Bench::Bench(const Job& job, Collective collective, TypeClass type, uint64_t max_bytes)
    : job_(job),
      collective_(collective),
      type_(type),
      dtype_(dtype_of(type)),
      element_bytes_(tune::element_bytes(type)),
      // Zeros of all types: no sum grows, no number is a denormal one.
      send_(max_bytes),
      recv_(max_bytes) {
  if (type == TypeClass::user) require(tutti_op_create(add_floats, 1, nullptr, &op_), "an operation");
}

Bench::~Bench() {
  tutti_comm_set_algorithm(job_.measured(), std::string(name(collective_)).c_str(), "");
  if (type_ == TypeClass::user) tutti_op_destroy(op_);
}

bool Bench::force(const std::string& algorithm) {
  const std::string word(name(collective_));
  const tutti_status_t status = tutti_comm_set_algorithm(job_.measured(), word.c_str(), algorithm.c_str());
  if (status == TUTTI_ERR_CONFIG) return false;
  require(status, fmt::format("forcing {} {}", word, algorithm));
  return true;
}

std::string Bench::choice(const Point& point) {
  constexpr size_t kMostCharacters = 256;
  force("");
  std::string text(kMostCharacters, '\0');
  const std::string word(name(collective_));
  require(tutti_comm_get_algorithm(job_.measured(), word.c_str(), point.bytes, dtype_, op_, text.data(), text.size()), word);
  text.resize(text.find('\0'));
  return text;
}

void Bench::warm_up(const Point& point) {
  const uint32_t calls = is_rooted() ? job_.size() : 1;
  for (uint32_t n = 0; n < calls; ++n) call(point);
}

bool Bench::is_rooted() const noexcept {
  return collective_ == Collective::reduce || collective_ == Collective::broadcast || collective_ == Collective::gather ||
         collective_ == Collective::scatter;
}

void Bench::tell_first() {
  const int last = static_cast<int>(job_.size()) - 1;
  uint8_t word = 0;
  if (last == 0) return;
  if (job_.rank() == 0) require(tutti_recv(job_.measured(), &word, 1, TUTTI_UINT8, last, 0, nullptr), "a word of the last rank");
  if (job_.rank() == job_.size() - 1) require(tutti_send(job_.measured(), &word, 1, TUTTI_UINT8, 0, 0), "a word to the first rank");
}

void Bench::call(const Point& point) {
  const tutti_comm_t comm = job_.measured();
  const void* send = send_.data();
  void* recv = recv_.data();
  const uint64_t count = point.count;
  tutti_status_t status = TUTTI_ERR_INTERNAL;
  switch (collective_) {
    case Collective::allreduce:
      status = tutti_allreduce(comm, send, recv, count, dtype_, op_);
      break;
    case Collective::reduce:
      status = tutti_reduce(comm, send, recv, count, dtype_, op_, root_);
      break;
    case Collective::broadcast:
      status = tutti_broadcast(comm, recv, count, dtype_, root_);
      break;
    case Collective::allgather:
      status = tutti_allgather(comm, send, recv, count, dtype_);
      break;
    case Collective::gather:
      status = tutti_gather(comm, send, recv, count, dtype_, root_);
      break;
    case Collective::scatter:
      status = tutti_scatter(comm, send, recv, count, dtype_, root_);
      break;
    case Collective::reduce_scatter:
      status = tutti_reduce_scatter(comm, send, recv, count, dtype_, op_);
      break;
    case Collective::alltoall:
      status = tutti_alltoall(comm, send, recv, count, dtype_);
      break;
    case Collective::scan:
      status = tutti_scan(comm, send, recv, count, dtype_, op_);
      break;
    case Collective::exscan:
      status = tutti_exscan(comm, send, recv, count, dtype_, op_);
      break;
    case Collective::barrier:
      status = tutti_barrier(comm);
      break;
  }
  if (status != TUTTI_OK) require(status, fmt::format("{} of {} elements", name(collective_), count));
  root_ = (root_ + 1) % static_cast<int>(job_.size());
  if (collective_ == Collective::scan || collective_ == Collective::exscan) tell_first();
}

double Bench::time(const Point& point, uint64_t calls) {
  using Clock = std::chrono::steady_clock;
  job_.barrier();
  const Clock::time_point begin = Clock::now();
  for (uint64_t n = 0; n < calls; ++n) call(point);
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  double seen[2] = {ns / static_cast<double>(calls), g_interrupted != 0 ? 1.0 : 0.0};
  job_.largest(seen, 2);
  if (seen[1] != 0) throw Interrupted();
  return seen[0];
}

}  // namespace tutti::tune
