// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Every type with every operation, in place and not, at any alignment, against sums made here.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

float half_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float mantissa = static_cast<float>(bits & 1023);
  const float value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0f + mantissa, exponent - 25);
  return bits & 0x8000 ? -value : value;
}
uint16_t float_to_half(float value) {  // exact for the small integers used here
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  const auto mantissa = static_cast<uint16_t>(std::lround(fraction * 2048) - 1024);
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa);
}
float bf16_to_float(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
uint16_t float_to_bf16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  return static_cast<uint16_t>(wide >> 16);
}

/// Small integers, exact in every type; sums and products of up to four ranks as well.
int value_at(int rank, size_t i) { return 1 + static_cast<int>((static_cast<size_t>(rank) * 3 + i) % 3); }

double expected(int size, size_t i, tutti_op_t op) {
  double result = value_at(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double value = value_at(rank, i);
    if (op == TUTTI_SUM || op == TUTTI_AVG) result += value;
    if (op == TUTTI_PROD) result *= value;
    if (op == TUTTI_MIN) result = std::min(result, value);
    if (op == TUTTI_MAX) result = std::max(result, value);
  }
  return op == TUTTI_AVG ? result / size : result;
}

void store(unsigned char* at, tutti_dtype_t dtype, double value) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case TUTTI_INT8: return put(static_cast<int8_t>(value));
    case TUTTI_UINT8: return put(static_cast<uint8_t>(value));
    case TUTTI_INT16: return put(static_cast<int16_t>(value));
    case TUTTI_UINT16: return put(static_cast<uint16_t>(value));
    case TUTTI_INT32: return put(static_cast<int32_t>(value));
    case TUTTI_UINT32: return put(static_cast<uint32_t>(value));
    case TUTTI_INT64: return put(static_cast<int64_t>(value));
    case TUTTI_UINT64: return put(static_cast<uint64_t>(value));
    case TUTTI_FLOAT16: return put(float_to_half(static_cast<float>(value)));
    case TUTTI_BFLOAT16: return put(float_to_bf16(static_cast<float>(value)));
    case TUTTI_FLOAT32: return put(static_cast<float>(value));
    default: return put(value);
  }
}

double load(const unsigned char* at, tutti_dtype_t dtype) {
  const auto get = [at](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return static_cast<double>(typed);
  };
  switch (dtype) {
    case TUTTI_INT8: return get(int8_t{});
    case TUTTI_UINT8: return get(uint8_t{});
    case TUTTI_INT16: return get(int16_t{});
    case TUTTI_UINT16: return get(uint16_t{});
    case TUTTI_INT32: return get(int32_t{});
    case TUTTI_UINT32: return get(uint32_t{});
    case TUTTI_INT64: return get(int64_t{});
    case TUTTI_UINT64: return get(uint64_t{});
    case TUTTI_FLOAT32: return get(float{});
    case TUTTI_FLOAT64: return get(double{});
    default: break;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == TUTTI_FLOAT16 ? half_to_float(bits) : bf16_to_float(bits);
}

bool right(double got, double wanted, tutti_dtype_t dtype) {
  if (dtype < TUTTI_FLOAT16) return got == std::trunc(wanted);
  const double unit = dtype == TUTTI_BFLOAT16 ? 1.0 / 128 : dtype == TUTTI_FLOAT16 ? 1.0 / 1024 : 1e-6;
  return std::fabs(got - wanted) <= std::fabs(wanted) * unit;
}

void check_cell(tutti_comm_t comm, int rank, int size, tutti_dtype_t dtype, tutti_op_t op, size_t count, Complaints& c) {
  const size_t width = tutti_dtype_size_bytes(dtype);
  // Off by one byte: any alignment is fine.
  std::vector<unsigned char> in(count * width + 1);
  std::vector<unsigned char> out(count * width + 1);
  for (size_t i = 0; i < count; ++i) store(&in[1 + i * width], dtype, value_at(rank, i));
  const std::string cell = std::string(tutti_dtype_name(dtype)) + " " + tutti_op_name(op) + " x " + std::to_string(count);
  c.expect_status(tutti_allreduce(comm, &in[1], &out[1], count, dtype, op), TUTTI_OK, cell);
  c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &in[1], count, dtype, op), TUTTI_OK, cell + " in place");
  for (size_t i = 0; i < count; ++i) {
    const double wanted = expected(size, i, op);
    if (!right(load(&out[1 + i * width], dtype), wanted, dtype) || std::memcmp(&out[1 + i * width], &in[1 + i * width], width) != 0) {
      c.expect(false, cell + ": element " + std::to_string(i) + " is " + std::to_string(load(&out[1 + i * width], dtype)) +
                          " and in place " + std::to_string(load(&in[1 + i * width], dtype)) + ", expected " +
                          std::to_string(wanted));
      return;
    }
  }
}

}  // namespace

TEST_CASE("allreduce: every type with every operation") {
  const char* transports = GENERATE("shm", "tcp");
  for (const int size : {1, 2, 3, 4}) {
    const std::string complaints = run_ranks(size, {{"transports", transports}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      for (tutti_dtype_t dtype = TUTTI_INT8; dtype <= TUTTI_FLOAT64; ++dtype)
        for (tutti_op_t op = TUTTI_SUM; op <= TUTTI_AVG; ++op)
          for (const size_t count : {size_t{1}, size_t{3}, size_t{1000}}) check_cell(comm, rank, size, dtype, op, count, c);
    });
    CHECK(complaints == "");
  }
}

TEST_CASE("allreduce: every algorithm at and around the sizes where the choice changes, all ranks with the same bits") {
  for (const char* algorithm : {"", "ring", "ring:segment_bytes=4K,channels=2", "recursive_doubling", "tree"}) {
    const std::string complaints = run_ranks(3, {{"allreduce", algorithm}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      for (const size_t count : {size_t{1}, size_t{127}, size_t{2048}, size_t{16385}, size_t{100003}, size_t{700001}}) {
        std::vector<float> values(count);
        // Sums that depend on the order in the last bits.
        for (size_t i = 0; i < count; ++i) values[i] = (rank == 0 ? 1e8f : rank == 1 ? 1.0f : -1e8f) + static_cast<float>(i % 7);
        c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, values.data(), count, TUTTI_FLOAT32, TUTTI_SUM), TUTTI_OK, algorithm);
        uint64_t hash = 1469598103934665603u;
        for (const float value : values) {
          uint32_t bits;
          std::memcpy(&bits, &value, sizeof bits);
          hash = (hash ^ bits) * 1099511628211u;
        }
        uint64_t lowest = hash;
        uint64_t highest = hash;
        c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &lowest, 1, TUTTI_UINT64, TUTTI_MIN), TUTTI_OK, "min of hashes");
        c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &highest, 1, TUTTI_UINT64, TUTTI_MAX), TUTTI_OK, "max of hashes");
        c.expect(lowest == highest, std::string("ranks differ: ") + algorithm + " x " + std::to_string(count));
      }
    });
    CHECK(complaints == "");
  }
}

TEST_CASE("broadcast: every root, type and many sizes") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(4, {{"transports", transports}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    for (int root = 0; root < 4; ++root)
      for (const size_t count : {size_t{1}, size_t{5}, size_t{4099}, size_t{300000}}) {
        std::vector<uint16_t> values(count);
        for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint16_t>(rank == root ? i * 7 + static_cast<size_t>(root) : 0xdead);
        c.expect_status(tutti_broadcast(comm, values.data(), count, TUTTI_FLOAT16, root), TUTTI_OK, "broadcast");
        bool same = true;
        for (size_t i = 0; i < count; ++i) same = same && values[i] == static_cast<uint16_t>(i * 7 + static_cast<size_t>(root));
        c.expect(same, "root " + std::to_string(root) + " x " + std::to_string(count));
      }
  });
  CHECK(complaints == "");
}
