// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Every collective with every type and operation, in place and not, with every root, against what is made here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

using Bytes = std::vector<unsigned char>;
using Counts = std::vector<uint64_t>;

constexpr tutti_dtype_t kLastType = TUTTI_INT64_INT32;
constexpr tutti_op_t kLastOp = TUTTI_MAXLOC;

/// What rank `rank` sends to rank `to` (0 where it sends one thing to all).
unsigned char byte_of(int rank, int to, uint64_t n) {
  return static_cast<unsigned char>(1 + static_cast<uint64_t>(rank) * 59 + static_cast<uint64_t>(to) * 17 + n * 7 + (n >> 8));
}

Bytes pattern(int rank, int to, uint64_t bytes) {
  Bytes data(bytes);
  for (uint64_t n = 0; n < bytes; ++n) data[n] = byte_of(rank, to, n);
  return data;
}

/// Blocks of a buffer: where each begins, with gaps between them and in reverse order, or one after another.
Counts places(const Counts& counts, bool scattered) {
  Counts first(counts.size());
  uint64_t next = scattered ? 2 : 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    const size_t block = scattered ? counts.size() - 1 - n : n;
    first[block] = next;
    next += counts[block] + (scattered ? 3 : 0);
  }
  return first;
}

uint64_t extent(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), 2 + 3 * counts.size()); }

/// A count for each rank: empty ones, short ones, one that takes several segments.
Counts uneven(int size, uint64_t longest) {
  Counts counts;
  for (int r = 0; r < size; ++r) counts.push_back(r % 3 == 1 ? 0 : r % 3 == 2 ? longest : static_cast<uint64_t>(r) + 3);
  return counts;
}

struct Rank {
  tutti_comm_t comm;
  int rank;
  int size;
  tutti_dtype_t dtype;
  uint64_t width;
  Complaints& complaints;
  std::string what;

  void ok(tutti_status_t status, const std::string& call) const { complaints.expect_status(status, TUTTI_OK, what + call); }
  void same(const unsigned char* got, const Bytes& wanted, const std::string& call) const {
    if (wanted.empty() || std::memcmp(got, wanted.data(), wanted.size()) == 0) return;
    complaints.expect(false, what + call + ": wrong data");
  }
};

// ---- data movement

void put(Bytes& buffer, uint64_t at, const Bytes& block) {
  if (!block.empty()) std::memcpy(&buffer[at], block.data(), block.size());
}

void broadcasts(const Rank& r, uint64_t count) {
  for (int root = 0; root < r.size; ++root) {
    Bytes data = pattern(r.rank, 0, count * r.width);
    r.ok(tutti_broadcast(r.comm, data.data(), count, r.dtype, root), "broadcast");
    r.same(data.data(), pattern(root, 0, count * r.width), "broadcast");
  }
}

void gathers(const Rank& r, uint64_t count, bool in_place) {
  const uint64_t block = count * r.width;
  const Bytes own = pattern(r.rank, 0, block);
  const auto own_place = static_cast<uint64_t>(r.rank) * block;
  Bytes all(block * static_cast<uint64_t>(r.size));
  if (in_place) put(all, own_place, own);
  r.ok(tutti_allgather(r.comm, in_place ? TUTTI_IN_PLACE : own.data(), all.data(), count, r.dtype), "allgather");
  for (int from = 0; from < r.size; ++from) {
    r.same(all.data() + static_cast<uint64_t>(from) * block, pattern(from, 0, block), "allgather");
  }
  for (int root = 0; root < r.size; ++root) {
    const bool here = root == r.rank;
    std::fill(all.begin(), all.end(), static_cast<unsigned char>(0));
    if (in_place && here) put(all, own_place, own);
    const void* send = in_place && here ? TUTTI_IN_PLACE : own.data();
    r.ok(tutti_gather(r.comm, send, here ? all.data() : nullptr, count, r.dtype, root), "gather");
    for (int from = 0; here && from < r.size; ++from) {
      r.same(all.data() + static_cast<uint64_t>(from) * block, pattern(from, 0, block), "gather");
    }
    Bytes back(block);
    void* recv = in_place && here ? TUTTI_IN_PLACE : back.data();
    r.ok(tutti_scatter(r.comm, here ? all.data() : nullptr, recv, count, r.dtype, root), "scatter");
    if (recv != TUTTI_IN_PLACE) r.same(back.data(), own, "scatter");
  }
}

void uneven_gathers(const Rank& r, const Counts& counts, bool scattered, bool in_place) {
  const Counts first = places(counts, scattered);
  const uint64_t* displacements = scattered ? first.data() : nullptr;
  const auto self = static_cast<size_t>(r.rank);
  const Bytes own = pattern(r.rank, 0, counts[self] * r.width);
  Bytes all(extent(counts) * r.width);
  const auto right = [&](const std::string& call) {
    for (int from = 0; from < r.size; ++from) {
      const auto f = static_cast<size_t>(from);
      r.same(all.data() + first[f] * r.width, pattern(from, 0, counts[f] * r.width), call);
    }
  };
  if (in_place) put(all, first[self] * r.width, own);
  const void* send = in_place ? TUTTI_IN_PLACE : own.data();
  r.ok(tutti_allgatherv(r.comm, send, all.data(), counts.data(), displacements, r.dtype), "allgatherv");
  right("allgatherv");
  for (int root = 0; root < r.size; ++root) {
    const bool here = root == r.rank;
    std::fill(all.begin(), all.end(), static_cast<unsigned char>(0));
    if (in_place && here) put(all, first[self] * r.width, own);
    r.ok(tutti_gatherv(r.comm, in_place && here ? TUTTI_IN_PLACE : own.data(), counts[self], here ? all.data() : nullptr,
                       here ? counts.data() : nullptr, here ? displacements : nullptr, r.dtype, root),
         "gatherv");
    if (here) right("gatherv");
    Bytes back(own.size());
    void* recv = in_place && here ? TUTTI_IN_PLACE : back.data();
    r.ok(tutti_scatterv(r.comm, here ? all.data() : nullptr, here ? counts.data() : nullptr, here ? displacements : nullptr, recv,
                        counts[self], r.dtype, root),
         "scatterv");
    if (recv != TUTTI_IN_PLACE) r.same(back.data(), own, "scatterv");
  }
}

void exchanges(const Rank& r, uint64_t count, bool in_place) {
  const uint64_t block = count * r.width;
  Bytes out(block * static_cast<uint64_t>(r.size));
  for (int to = 0; to < r.size; ++to) put(out, static_cast<uint64_t>(to) * block, pattern(r.rank, to, block));
  Bytes in = in_place ? out : Bytes(out.size());
  r.ok(tutti_alltoall(r.comm, in_place ? TUTTI_IN_PLACE : out.data(), in.data(), count, r.dtype), "alltoall");
  for (int from = 0; from < r.size; ++from) {
    r.same(in.data() + static_cast<uint64_t>(from) * block, pattern(from, r.rank, block), "alltoall");
  }
}

/// What `from` sends to `to`: nothing to many.
uint64_t exchanged(int from, int to, uint64_t longest) {
  const int kind = (from * 5 + to * 3) % 4;
  return kind == 0 ? 0 : kind == 3 ? longest : static_cast<uint64_t>(kind + to);
}

void uneven_exchanges(const Rank& r, uint64_t longest, bool scattered, bool with_types) {
  Counts sent;
  Counts received;
  for (int other = 0; other < r.size; ++other) {
    sent.push_back(exchanged(r.rank, other, longest));
    received.push_back(exchanged(other, r.rank, longest));
  }
  Counts send_places = places(sent, scattered);
  Counts recv_places = places(received, scattered);
  Bytes out(extent(sent) * r.width);
  Bytes in(extent(received) * r.width);
  for (int to = 0; to < r.size; ++to) {
    const auto t = static_cast<size_t>(to);
    put(out, send_places[t] * r.width, pattern(r.rank, to, sent[t] * r.width));
  }
  std::string call = "alltoallv";
  if (with_types) {
    call = "alltoallw";
    const std::vector<tutti_dtype_t> types(static_cast<size_t>(r.size), r.dtype);
    Counts send_bytes = send_places;
    Counts recv_bytes = recv_places;
    for (uint64_t& place : send_bytes) place *= r.width;
    for (uint64_t& place : recv_bytes) place *= r.width;
    r.ok(tutti_alltoallw(r.comm, out.data(), sent.data(), send_bytes.data(), types.data(), in.data(), received.data(),
                         recv_bytes.data(), types.data()),
         call);
  } else {
    r.ok(tutti_alltoallv(r.comm, out.data(), sent.data(), scattered ? send_places.data() : nullptr, in.data(), received.data(),
                         scattered ? recv_places.data() : nullptr, r.dtype),
         call);
  }
  for (int from = 0; from < r.size; ++from) {
    const auto f = static_cast<size_t>(from);
    r.same(in.data() + recv_places[f] * r.width, pattern(from, r.rank, received[f] * r.width), call);
  }
}

void move_everything(const Rank& r) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1000}}) {
    broadcasts(r, count);
    for (const bool in_place : {false, true}) {
      gathers(r, count, in_place);
      exchanges(r, count, in_place);
    }
  }
  for (const bool one : {false, true}) {
    for (const bool other : {false, true}) {
      uneven_gathers(r, uneven(r.size, 9000), one, other);
      uneven_exchanges(r, 9000, one, other);
    }
  }
}

// ---- reductions

/// Small enough that results are exact in every type, whatever the order.
Bytes contribution(int rank, uint64_t count, tutti_dtype_t dtype) {
  const uint64_t width = tutti_dtype_size_bytes(dtype);
  Bytes data(count * width);
  const auto set = [&](uint64_t i, auto value, uint64_t offset = 0) {
    std::memcpy(&data[i * width + offset], &value, sizeof value);
  };
  for (uint64_t i = 0; i < count; ++i) {
    const auto small = static_cast<int>(1 + (static_cast<uint64_t>(rank) + i) % 2);
    const auto index = static_cast<int32_t>(rank);
    switch (dtype) {
      case TUTTI_FLOAT16:
        set(i, static_cast<uint16_t>(small == 1 ? 0x3c00 : 0x4000));
        break;
      case TUTTI_BFLOAT16:
        set(i, static_cast<uint16_t>(small == 1 ? 0x3f80 : 0x4000));
        break;
      case TUTTI_FLOAT32:
        set(i, static_cast<float>(small));
        break;
      case TUTTI_FLOAT64:
        set(i, static_cast<double>(small));
        break;
      case TUTTI_FLOAT8_E4M3:
        set(i, static_cast<uint8_t>(small == 1 ? 0x38 : 0x40));
        break;
      case TUTTI_FLOAT8_E5M2:
        set(i, static_cast<uint8_t>(small == 1 ? 0x3c : 0x40));
        break;
      case TUTTI_COMPLEX64:
        set(i, static_cast<float>(small)), set(i, 1.0f, 4);
        break;
      case TUTTI_COMPLEX128:
        set(i, static_cast<double>(small)), set(i, 1.0, 8);
        break;
      case TUTTI_FLOAT32_INT32:
        set(i, static_cast<float>(small)), set(i, index, 4);
        break;
      case TUTTI_FLOAT64_INT32:
        set(i, static_cast<double>(small)), set(i, index, 8);
        break;
      case TUTTI_INT16_INT32:
        set(i, static_cast<int16_t>(small)), set(i, index, 4);
        break;
      case TUTTI_INT32_INT32:
        set(i, small), set(i, index, 4);
        break;
      case TUTTI_INT64_INT32:
        set(i, static_cast<int64_t>(small)), set(i, index, 8);
        break;
      default:
        data[i * width] = static_cast<unsigned char>(dtype == TUTTI_BOOL ? small - 1 : small);
    }
  }
  return data;
}

/// Of ranks [0, last), folded here.
Bytes folded(int last, uint64_t count, tutti_dtype_t dtype, tutti_op_t op) {
  Bytes result = contribution(last - 1, count, dtype);
  for (int rank = last - 2; rank >= 0; --rank) {
    tutti_reduce_local(contribution(rank, count, dtype).data(), result.data(), count, dtype, op);
  }
  return result;
}

/// Of an average, which only a communicator can make, nothing but that all collectives give the same.
Bytes reduced(const Rank& r, uint64_t count, tutti_op_t op) {
  const Bytes own = contribution(r.rank, count, r.dtype);
  Bytes all(own.size());
  r.ok(tutti_allreduce(r.comm, own.data(), all.data(), count, r.dtype, op), "allreduce");
  if (op != TUTTI_AVG && r.size > 1) r.same(all.data(), folded(r.size, count, r.dtype, op), "allreduce");
  return all;
}

void reduce_vectors(const Rank& r, uint64_t count, tutti_op_t op, bool in_place) {
  const Bytes own = contribution(r.rank, count, r.dtype);
  const Bytes wanted = reduced(r, count, op);
  Bytes got = own;
  if (in_place) r.ok(tutti_allreduce(r.comm, TUTTI_IN_PLACE, got.data(), count, r.dtype, op), "allreduce in place");
  if (in_place) r.same(got.data(), wanted, "allreduce in place");
  for (int root = 0; root < r.size; ++root) {
    const bool here = root == r.rank;
    got = own;
    r.ok(tutti_reduce(r.comm, in_place && here ? TUTTI_IN_PLACE : own.data(), here ? got.data() : nullptr, count, r.dtype, op,
                      root),
         "reduce");
    if (here) r.same(got.data(), wanted, "reduce");
  }
  if (op == TUTTI_AVG) return;
  got = own;
  r.ok(tutti_scan(r.comm, in_place ? TUTTI_IN_PLACE : own.data(), got.data(), count, r.dtype, op), "scan");
  if (r.rank > 0) r.same(got.data(), folded(r.rank + 1, count, r.dtype, op), "scan");
  got = own;
  r.ok(tutti_exscan(r.comm, in_place ? TUTTI_IN_PLACE : own.data(), got.data(), count, r.dtype, op), "exscan");
  r.same(got.data(),
         r.rank == 0   ? own
         : r.rank == 1 ? contribution(0, count, r.dtype)
                       : folded(r.rank, count, r.dtype, op),
         "exscan");
}

void reduce_blocks(const Rank& r, const Counts& counts, tutti_op_t op, bool in_place, bool alike) {
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const auto self = static_cast<size_t>(r.rank);
  const uint64_t before = std::accumulate(counts.begin(), counts.begin() + r.rank, uint64_t{0});
  const Bytes vector = reduced(r, all, op);
  const Bytes wanted(vector.begin() + static_cast<std::ptrdiff_t>(before * r.width),
                     vector.begin() + static_cast<std::ptrdiff_t>((before + counts[self]) * r.width));
  Bytes own = contribution(r.rank, all, r.dtype);
  Bytes got(wanted.size());
  const void* send = in_place ? TUTTI_IN_PLACE : own.data();
  void* recv = in_place ? own.data() : got.data();
  r.ok(alike ? tutti_reduce_scatter(r.comm, send, recv, counts[0], r.dtype, op)
             : tutti_reduce_scatterv(r.comm, send, recv, counts.data(), r.dtype, op),
       "reduce_scatter");
  r.same(in_place ? own.data() + before * r.width : got.data(), wanted, "reduce_scatter");
}

void reduce_everything(const Rank& r, tutti_op_t op) {
  for (const bool in_place : {false, true}) {
    for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{67}}) {
      reduce_vectors(r, count, op, in_place);
      reduce_blocks(r, Counts(static_cast<size_t>(r.size), count), op, in_place, true);
    }
    reduce_blocks(r, uneven(r.size, 70), op, in_place, false);
  }
}

}  // namespace

TEST_CASE("data movement: every collective, type, root, in place and not, blocks of any length and place") {
  const char* transports = GENERATE("shm", "tcp");
  for (const int size : {1, 2, 3, 5}) {
    const std::string complaints = run_ranks(size, {{"transports", transports}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      tutti_dtype_t odd = 0;
      c.expect_status(tutti_type_create(7, &odd), TUTTI_OK, "type of 7 bytes");
      for (const tutti_dtype_t dtype :
           std::initializer_list<tutti_dtype_t>{TUTTI_BYTE, TUTTI_BFLOAT16, TUTTI_FLOAT32, TUTTI_COMPLEX128, odd}) {
        const uint64_t width = dtype == odd ? 7 : tutti_dtype_size_bytes(dtype);
        move_everything({comm, rank, size, dtype, width, c, "type " + std::to_string(dtype) + ": "});
      }
      c.expect_status(tutti_type_destroy(odd), TUTTI_OK, "type_destroy");
    });
    CHECK(complaints == "");
  }
}

TEST_CASE("reductions: every collective with every type and operation, right or refused before anything is sent") {
  const char* transports = GENERATE("shm", "tcp");
  for (const int size : {1, 2, 3, 4}) {
    const std::string complaints = run_ranks(size, {{"transports", transports}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      for (tutti_dtype_t dtype = TUTTI_INT8; dtype <= kLastType; ++dtype) {
        for (tutti_op_t op = TUTTI_SUM; op <= kLastOp; ++op) {
          const Rank r{comm,
                       rank,
                       size,
                       dtype,
                       tutti_dtype_size_bytes(dtype),
                       c,
                       std::string(tutti_dtype_name(dtype)) + " " + tutti_op_name(op) + ": "};
          Bytes one = contribution(rank, 1, dtype);
          const tutti_status_t known = tutti_allreduce(comm, TUTTI_IN_PLACE, one.data(), 1, dtype, op);
          if (known == TUTTI_OK) {
            reduce_everything(r, op);
            continue;
          }
          c.expect_status(known, TUTTI_ERR_OP, r.what + "allreduce");
          c.expect_status(tutti_reduce(comm, TUTTI_IN_PLACE, one.data(), 1, dtype, op, 0), TUTTI_ERR_OP, r.what + "reduce");
          c.expect_status(tutti_scan(comm, TUTTI_IN_PLACE, one.data(), 1, dtype, op), TUTTI_ERR_OP, r.what + "scan");
        }
      }
    });
    CHECK(complaints == "");
  }
}
