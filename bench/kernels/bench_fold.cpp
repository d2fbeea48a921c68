// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0

// Bytes a second of the reduction kernels, by type, operation, instruction set and size. The size decides where the buffers are:
// 64 KiB in the second-level cache, 1 MiB in the second or third, 16 MiB in the third or in memory. The bytes are those of one
// operand.
#include <benchmark/benchmark.h>

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
  for (size_t i = 0; i < bytes; ++i) buffer[i] = static_cast<std::byte>(one[i % one.size()]);
  return buffer;
}

/// destination = source 0 op ... op source n-1, the first being the destination itself, as a ring does it.
void fold(benchmark::State& state, DType dtype, Op op, CpuLevel level, size_t source_count) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<std::vector<std::byte>> buffers;
  for (size_t s = 0; s < source_count; ++s) buffers.push_back(ones(dtype, bytes));
  std::vector<const void*> sources;
  for (const auto& buffer : buffers) sources.push_back(buffer.data());
  void* destination = buffers[0].data();
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

void register_fold(DType dtype, Op op, CpuLevel level, const char* level_name, size_t source_count) {
  const std::string name = "fold/" + std::string(tutti::name(dtype)) + "/" + std::string(tutti::name(op)) + "/" + level_name +
                           "/" + std::to_string(source_count) + "_sources";
  benchmark::RegisterBenchmark(name.c_str(), fold, dtype, op, level, source_count)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [level, level_name] : kLevels) {
    if (level > tutti::detected_cpu_level()) continue;
    for (size_t type = 0; type < tutti::kDTypeCount; ++type) {
      for (size_t op = 0; op < tutti::kOpCount; ++op) {
        if (!tutti::defined(static_cast<DType>(type), static_cast<Op>(op))) continue;
        register_fold(static_cast<DType>(type), static_cast<Op>(op), level, level_name, 2);
      }
    }
    register_fold(DType::f32, Op::sum, level, level_name, 4);
  }
  for (const uint32_t destination_count : {1u, 2u, 4u}) {
    const std::string name = "copy/" + std::to_string(destination_count) + "_destinations";
    benchmark::RegisterBenchmark(name.c_str(), copy, destination_count)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
