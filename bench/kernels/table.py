#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""table.py < RESULTS.json: a table of bench_kernels' results for one instruction set, as multiples of memcpy in the same run.

RESULTS.json comes from bench_kernels --benchmark_format=json. Of repetitions the one with the least time of the processor counts:
what else runs on the machine can only add to it. A row has the first operation of its type that was measured.
"""
import json
import sys

TYPES = ("i8 u8 i16 u16 i32 u32 i64 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64 c64 c128 bool byte "
         "i16_i32 i32_i32 i64_i32 f32_i32 f64_i32").split()
SIZES = {8 << 10: "8 KiB (L1)", 256 << 10: "256 KiB (L2)", 64 << 20: "64 MiB (memory)"}


def read(results):
    """name without size -> size -> bytes a second"""
    speeds = {}
    for one in results["benchmarks"]:
        if one.get("run_type") == "aggregate":
            continue
        name, size = one["run_name"].rsplit("/", 1)
        unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[one["time_unit"]]
        speed = int(size) / (one["cpu_time"] * unit)
        sizes = speeds.setdefault(name, {})
        sizes[int(size)] = max(sizes.get(int(size), 0), speed)
    return speeds


def main():
    speeds = read(json.load(sys.stdin))
    memcpy = speeds.pop("memcpy")
    folds = sorted((name.split("/") for name in speeds if name.startswith("fold/")), key=lambda words: TYPES.index(words[1]))
    level = sys.argv[1] if len(sys.argv) > 1 else folds[-1][3]
    columns = [(form, size) for form in ("sources", "in_place") for size in SIZES]
    words = {"sources": "two sources", "in_place": "in place"}
    print("| type, operation | " + " | ".join(f"{words[form]}, {SIZES[size]}" for form, size in columns) + " |")
    print("|---|" + "---|" * len(columns))
    print("| memcpy, GB/s | " + " | ".join(f"{memcpy[size] / 1e9:.1f}" for _, size in columns) + " |")
    seen = set()
    for _, dtype, op, at, form in folds:
        if at != level or dtype in seen or not form.startswith("2_"):
            continue
        seen.add(dtype)
        cells = [speeds[f"fold/{dtype}/{op}/{level}/2_{form}"][size] / memcpy[size] for form, size in columns]
        print(f"| {dtype} {op} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")


main()
