// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The folds of lib/kernels/scalar/scalar.cpp, a vector at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elements.hpp"
#include "kernels/kernels.hpp"

namespace tutti {
namespace {

// ---- operations

struct Sum {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::sum(a, b);
  }
};
/// A sum that is divided at the end.
struct Average : Sum {};
struct Prod {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::prod(a, b);
  }
};
template <bool kMin>
struct Extreme {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::template extreme<kMin>(a, b);
  }
};

template <bool kMin>
struct ExtremeLocation {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::template extreme_location<kMin>(a, b);
  }
};

struct BitAnd {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return a & b;
  }
};
struct BitOr {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return a | b;
  }
};
struct BitXor {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return a ^ b;
  }
};

struct LogicalAnd {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::truth(a) & Element::truth(b) & 1;
  }
};
struct LogicalOr {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::truth(a | b) & 1;
  }
};
struct LogicalXor {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return (Element::truth(a) ^ Element::truth(b)) & 1;
  }
};

// ---- the fold

inline const std::byte* source(const FoldCall& call, uint32_t index) noexcept {
  return static_cast<const std::byte*>(call.sources[index]);
}
inline std::byte* destination(const FoldCall& call, uint32_t index) noexcept {
  return static_cast<std::byte*>(call.destinations[index]);
}

/// The hot case: two sources, one destination, which may be one of the sources. Returns the elements done.
template <class Element, class Operation>
uint64_t fold_pair(const FoldCall& call) noexcept {
  const std::byte* a = source(call, 0);
  const std::byte* b = source(call, 1);
  std::byte* to = destination(call, 0);
  constexpr uint64_t kStep = Element::kLanes * Element::kBytes;
  const uint64_t end = call.count / Element::kLanes * kStep;
  const auto step = [&](uint64_t at) {
    const auto value = Operation::template apply<Element>(Element::load(a + at), Element::load(b + at));
    Element::store(to + at, Element::finish(value));
  };
  if constexpr (Element::kLong) {
    for (uint64_t at = 0; at < end; at += kStep) step(at);
  } else {
#pragma GCC unroll 4
    for (uint64_t at = 0; at < end; at += kStep) step(at);
  }
  return call.count / Element::kLanes * Element::kLanes;
}

/// The result of a fold: a sum is divided if it is to be an average.
template <class Element, class Operation>
typename Element::Folded finished(const FoldCall& call, typename Element::Folded value) noexcept {
  if constexpr (std::is_same_v<Operation, Average>) {
    if (call.divisor > 1) value = Element::divide(value, call.divisor);
  }
  return Element::finish(value);
}

template <class Element, class Operation, class Load, class Store>
void fold_one(const FoldCall& call, Load load, Store store) noexcept {
  auto value = load(0);
  for (uint32_t s = 1; s < call.source_count; ++s) value = Operation::template apply<Element>(value, load(s));
  value = finished<Element, Operation>(call, value);
  for (uint32_t d = 0; d < call.destination_count; ++d) store(d, value);
}

/// Any numbers of sources and destinations, kVectors at a time, so that finding a source's place is done once for them. Returns
/// the elements done.
template <class Element, class Operation, size_t kVectors>
uint64_t fold_blocks(const FoldCall& call, uint64_t first) noexcept {
  constexpr uint64_t kStep = Element::kLanes * Element::kBytes;
  for (; call.count - first >= kVectors * Element::kLanes; first += kVectors * Element::kLanes) {
    const uint64_t at = first * Element::kBytes;
    typename Element::Folded values[kVectors];
    const std::byte* from = source(call, 0) + at;
    for (size_t v = 0; v < kVectors; ++v) values[v] = Element::load(from + v * kStep);
    for (uint32_t s = 1; s < call.source_count; ++s) {
      from = source(call, s) + at;
      for (size_t v = 0; v < kVectors; ++v)
        values[v] = Operation::template apply<Element>(values[v], Element::load(from + v * kStep));
    }
    for (size_t v = 0; v < kVectors; ++v) values[v] = finished<Element, Operation>(call, values[v]);
    for (uint32_t d = 0; d < call.destination_count; ++d) {
      std::byte* const to = destination(call, d) + at;
      for (size_t v = 0; v < kVectors; ++v) Element::store(to + v * kStep, values[v]);
    }
  }
  return first;
}

template <class Element, class Operation>
uint64_t fold_whole(const FoldCall& call) noexcept {
  uint64_t done = 0;
  if constexpr (!Element::kLong) done = fold_blocks<Element, Operation, 4>(call, done);
  return fold_blocks<Element, Operation, 1>(call, done);
}

/// Elements first to last, fewer than a vector: through a vector in memory, so that nothing beyond the buffers is touched.
template <class Element, class Operation>
void fold_part(const FoldCall& call, uint64_t first, uint64_t last) noexcept {
  const uint64_t at = first * Element::kBytes;
  const auto bytes = static_cast<size_t>((last - first) * Element::kBytes);
  fold_one<Element, Operation>(
      call,
      [&](uint32_t s) {
        std::byte padded[Element::kLanes * Element::kBytes] = {};
        std::memcpy(padded, source(call, s) + at, bytes);
        return Element::load(padded);
      },
      [&](uint32_t d, typename Element::Folded value) {
        std::byte padded[Element::kLanes * Element::kBytes];
        Element::store(padded, value);
        std::memcpy(destination(call, d) + at, padded, bytes);
      });
}

/// A result that goes past the caches: whole vectors from the first place on that is aligned for it. Returns the elements done,
/// or 0 if there is no such place: the destination is one of the sources, or lies across its elements.
template <class Element, class Operation>
[[gnu::noinline]] uint64_t fold_streaming(const FoldCall& call) noexcept {
  constexpr size_t kStep = Element::kLanes * Element::kBytes;
  std::byte* const to = destination(call, 0);
  const uint64_t head_bytes = -reinterpret_cast<uintptr_t>(to) % kStep;
  if (head_bytes % Element::kBytes != 0) return 0;
  for (uint32_t s = 0; s < call.source_count; ++s) {
    if (source(call, s) == to) return 0;
  }
  uint64_t first = std::min(call.count, head_bytes / Element::kBytes);
  if (first > 0) fold_part<Element, Operation>(call, 0, first);
  for (; call.count - first >= Element::kLanes; first += Element::kLanes) {
    const uint64_t at = first * Element::kBytes;
    const auto load = [&](uint32_t s) { return Element::load(source(call, s) + at); };
    const auto store = [&](uint32_t, typename Element::Folded value) {
      std::byte result[kStep];
      Element::store(result, value);
      stream_bytes<kStep>(to + at, result);
    };
    if (call.source_count == 2 && !std::is_same_v<Operation, Average>) {
      store(0, Element::finish(Operation::template apply<Element>(load(0), load(1))));
    } else {
      fold_one<Element, Operation>(call, load, store);
    }
  }
  end_streaming();
  return first;
}

/// Whether an element's vectors can be streamed, and gain by it: the folds of long ones are slower than memory.
template <class Element>
constexpr bool kStreams = kCanStream && !Element::kLong && Element::kLanes * Element::kBytes % 16 == 0;

template <class Element, class Operation>
void fold(const FoldCall& call) noexcept {
  constexpr bool kDivides = std::is_same_v<Operation, Average>;
  if (call.source_count == 1 && !(kDivides && call.divisor > 1)) {
    copy_bytes(call.destinations, call.destination_count, call.sources[0], call.count * Element::kBytes, 2 * call.streamed_bytes);
    return;
  }
  uint64_t done = 0;
  if constexpr (kStreams<Element>) {
    if (call.count * Element::kBytes >= call.streamed_bytes && call.destination_count == 1) {
      done = fold_streaming<Element, Operation>(call);
    }
  }
  if (done != 0) {
    // Streamed, but for the tail.
  } else if (!kDivides && call.source_count == 2 && call.destination_count == 1) {
    done = fold_pair<Element, Operation>(call);
  } else {
    done = fold_whole<Element, Operation>(call);
  }
  if (done < call.count) fold_part<Element, Operation>(call, done, call.count);
}

// ---- conversions

/// Runs body(from, to) for each whole vector, and for the rest through vectors in memory.
template <size_t kLanes, size_t kFromBytes, size_t kToBytes, class Body>
void for_each_vector(void* to, const void* from, uint64_t count, Body body) noexcept {
  const auto* source = static_cast<const std::byte*>(from);
  auto* destination = static_cast<std::byte*>(to);
  for (; count >= kLanes; count -= kLanes) {
    body(source, destination);
    source += kLanes * kFromBytes;
    destination += kLanes * kToBytes;
  }
  if (count == 0) return;
  std::byte padded_from[kLanes * kFromBytes] = {};
  std::byte padded_to[kLanes * kToBytes];
  std::memcpy(padded_from, source, static_cast<size_t>(count * kFromBytes));
  body(padded_from, padded_to);
  std::memcpy(destination, padded_to, static_cast<size_t>(count * kToBytes));
}

template <class Element>
void widen_elements(float* to, const void* from, uint64_t count) noexcept {
  for_each_vector<Element::kLanes, Element::kBytes, sizeof(float)>(
      to, from, count,
      [](const std::byte* source, std::byte* destination) { store_vector(destination, Element::finish(Element::load(source))); });
}

template <class Element>
void narrow_elements(void* to, const float* from, uint64_t count) noexcept {
  for_each_vector<Element::kLanes, sizeof(float), Element::kBytes>(
      to, from, count, [](const std::byte* source, std::byte* destination) {
        Element::store(destination, Element::finish(load_vector<Vector<float>>(source)));
      });
}

template <class Element>
void scale_elements(void* to, const void* from, uint64_t count, double factor) noexcept {
  for_each_vector<Element::kLanes, Element::kBytes, Element::kBytes>(
      to, from, count, [factor](const std::byte* source, std::byte* destination) {
        Element::store(destination, Element::finish(Element::scale(Element::load(source), factor)));
      });
}

}  // namespace
}  // namespace tutti
