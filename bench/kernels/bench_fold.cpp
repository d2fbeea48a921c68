// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0

// Bytes a second of the reduction kernels, by type, operation, instruction set, form and size, and of memcpy. The size, of one
// operand, decides where the buffers are: 8 KiB in the first-level cache, 256 KiB in the second, 64 MiB in memory. Bytes are
// those of the result. table.py makes a table of the results.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace {

using tutti::CpuLevel;
using tutti::DType;
using tutti::Op;

constexpr std::pair<CpuLevel, const char*> kLevels[] = {
    {CpuLevel::scalar, "scalar"}, {CpuLevel::sse4, "sse4"}, {CpuLevel::avx2, "avx2"}};

/// Ones in the type, so that no result is a denormal number, which would be slow.
std::vector<std::byte> ones(DType dtype, size_t bytes) {
  std::vector<std::byte> buffer(bytes);
  const std::vector<unsigned char> one = [&]() -> std::vector<unsigned char> {
    switch (dtype) {
      case DType::f16:
        return {0x00, 0x3c};
      case DType::bf16:
        return {0x80, 0x3f};
      case DType::f32:
        return {0x00, 0x00, 0x80, 0x3f};
      case DType::f64:
        return {0, 0, 0, 0, 0, 0, 0xf0, 0x3f};
      case DType::f8e4m3:
        return {0x38};
      case DType::f8e5m2:
        return {0x3c};
      case DType::c64:
        return {0, 0, 0x80, 0x3f, 0, 0, 0, 0};
      case DType::c128:
        return {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0};
      default:
        return {1};
    }
  }();
  std::memcpy(buffer.data(), one.data(), std::min(bytes, one.size()));
  for (size_t done = one.size(); done < bytes; done *= 2) {  // sizes are powers of two
    std::memcpy(buffer.data() + done, buffer.data(), std::min(done, bytes - done));
  }
  return buffer;
}

enum class Form { in_place, out_of_place };

/// destination = source 0 op ... op source n-1; in place the destination is the first source, as in a ring.
void fold(benchmark::State& state, DType dtype, Op op, CpuLevel level, size_t source_count, Form form) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<std::vector<std::byte>> buffers;
  for (size_t s = 0; s < source_count + 1; ++s) buffers.push_back(ones(dtype, bytes));
  std::vector<const void*> sources;
  for (size_t s = 0; s < source_count; ++s) sources.push_back(buffers[s].data());
  void* destination = form == Form::in_place ? buffers[0].data() : buffers[source_count].data();
  const auto function = tutti::fold_function(dtype, op, level);
  for (auto _ : state) {
    function({&destination, sources.data(), 1, static_cast<uint32_t>(source_count), bytes / tutti::size_bytes(dtype)});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void copy(benchmark::State& state, uint32_t destination_count) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto source = ones(DType::f32, bytes);
  std::vector<std::vector<std::byte>> buffers(destination_count, std::vector<std::byte>(bytes));
  std::vector<void*> destinations;
  for (auto& buffer : buffers) destinations.push_back(buffer.data());
  for (auto _ : state) {
    tutti::copy_bytes(destinations.data(), destination_count, source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void libc_copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto source = ones(DType::f32, bytes);
  std::vector<std::byte> destination(bytes);
  for (auto _ : state) {
    std::memcpy(destination.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// Out of place past the caches (from 0 bytes on) or not (never): what kStreamedBytes decides.
void fold_past_caches(benchmark::State& state, uint64_t streamed_bytes) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto a = ones(DType::f32, bytes);
  const auto b = ones(DType::f32, bytes);
  std::vector<std::byte> result(bytes);
  const void* const sources[] = {a.data(), b.data()};
  void* destination = result.data();
  const auto function = tutti::fold_function(DType::f32, Op::sum, tutti::detected_cpu_level());
  for (auto _ : state) {
    function({&destination, sources, 1, 2, bytes / sizeof(float), 1, nullptr, streamed_bytes});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void copy_past_caches(benchmark::State& state, uint64_t streamed_bytes) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto source = ones(DType::f32, bytes);
  std::vector<std::byte> result(bytes);
  void* destination = result.data();
  for (auto _ : state) {
    tutti::copy_bytes(&destination, 1, source.data(), bytes, streamed_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void register_streaming() {
  for (const auto& [name, streamed_bytes] : {std::pair<const char*, uint64_t>{"cached", UINT64_MAX}, {"streamed", 0}}) {
    for (auto* const one :
         {benchmark::RegisterBenchmark((std::string("stream/f32_sum/") + name).c_str(), fold_past_caches, streamed_bytes),
          benchmark::RegisterBenchmark((std::string("stream/copy/") + name).c_str(), copy_past_caches, streamed_bytes)}) {
      one->RangeMultiplier(2)->Range(1 << 20, 64 << 20);
    }
  }
}

template <class Benchmark>
void with_sizes(Benchmark* one) {
  one->Arg(8 << 10)->Arg(256 << 10)->Arg(64 << 20);
}

void register_fold(DType dtype, Op op, CpuLevel level, const char* level_name, size_t source_count, Form form) {
  const std::string name = "fold/" + std::string(tutti::name(dtype)) + "/" + std::string(tutti::name(op)) + "/" + level_name +
                           "/" + std::to_string(source_count) + (form == Form::in_place ? "_in_place" : "_sources");
  with_sizes(benchmark::RegisterBenchmark(name.c_str(), fold, dtype, op, level, source_count, form));
}

}  // namespace

int main(int argc, char** argv) {
  with_sizes(benchmark::RegisterBenchmark("memcpy", libc_copy));
  for (const uint32_t destination_count : {1u, 2u, 4u}) {
    const std::string name = "copy/" + std::to_string(destination_count) + "_destinations";
    with_sizes(benchmark::RegisterBenchmark(name.c_str(), copy, destination_count));
  }
  for (const auto& [level, level_name] : kLevels) {
    if (level > tutti::detected_cpu_level()) continue;
    for (size_t type = 0; type < tutti::kDTypeCount; ++type) {
      for (size_t op = 0; op < tutti::kOpCount; ++op) {
        if (!tutti::defined(static_cast<DType>(type), static_cast<Op>(op))) continue;
        for (const Form form : {Form::in_place, Form::out_of_place}) {
          register_fold(static_cast<DType>(type), static_cast<Op>(op), level, level_name, 2, form);
        }
      }
    }
    register_fold(DType::f32, Op::sum, level, level_name, 4, Form::out_of_place);
  }
  register_streaming();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
