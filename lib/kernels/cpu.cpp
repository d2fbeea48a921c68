// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.hpp"

#ifdef TUTTI_KERNELS_X86
#include <cpuid.h>
#endif

namespace tutti {
namespace {

CpuLevel detect() noexcept {
#ifdef TUTTI_KERNELS_X86
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  // "avx2" includes that the system saves the wide registers; clang's builtin knows no "f16c".
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  if (__builtin_cpu_supports("avx2") && has_f16c) return CpuLevel::avx2;
  if (__builtin_cpu_supports("sse4.1")) return CpuLevel::sse4;
#endif
#ifdef TUTTI_KERNELS_ARM
  return CpuLevel::neon;  // part of every AArch64
#endif
  return CpuLevel::scalar;
}

}  // namespace

CpuLevel detected_cpu_level() noexcept {
  static const CpuLevel level = detect();
  return level;
}

}  // namespace tutti
