// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include "framing.hpp"
#include "host.hpp"

namespace tutti::tcp {

/// First-in first-out bytes in memory that grows by doubling and is kept: once large enough it allocates no more.
class ByteRing {
 public:
  explicit ByteRing(Host& host) : host_(&host) {}
  ByteRing(const ByteRing&) = delete;
  ByteRing& operator=(const ByteRing&) = delete;
  ~ByteRing() { clear(); }

  std::uint64_t size() const { return size_; }

  /// Room for bytes more; throws std::bad_alloc.
  void reserve(std::uint64_t bytes) {
    if (size_ + bytes <= capacity_) return;
    std::uint64_t capacity = std::max<std::uint64_t>(capacity_, 1024);
    while (capacity < size_ + bytes) capacity *= 2;
    std::uint8_t* data = host_->allocate(capacity);
    const std::uint64_t kept = size_;
    copy_out(data, kept);
    host_->release(data_, capacity_);
    data_ = data;
    capacity_ = capacity;
    begin_ = 0;
    size_ = kept;
  }
  /// The next contiguous free piece; never empty after reserve().
  Target space() const {
    const std::uint64_t end = (begin_ + size_) & (capacity_ - 1);
    return {data_ + end, std::min(capacity_ - size_, capacity_ - end)};
  }
  void wrote(std::uint64_t bytes) { size_ += bytes; }
  void read(std::uint8_t* out, std::uint64_t bytes) {
    copy_out(out, bytes);
    drop(bytes);
  }
  void drop(std::uint64_t bytes) {
    if (bytes == 0) return;
    begin_ = (begin_ + bytes) & (capacity_ - 1);
    size_ -= bytes;
  }
  void drop_newest(std::uint64_t bytes) { size_ -= bytes; }
  void clear() {
    host_->release(data_, capacity_);
    data_ = nullptr;
    capacity_ = begin_ = size_ = 0;
  }

 private:
  void copy_out(std::uint8_t* out, std::uint64_t bytes) const {
    const std::uint64_t first = std::min(bytes, capacity_ - begin_);
    if (first > 0) std::memcpy(out, data_ + begin_, first);
    if (bytes > first) std::memcpy(out + first, data_, bytes - first);
  }

  Host* host_;
  std::uint8_t* data_ = nullptr;
  std::uint64_t capacity_ = 0;  ///< 0 or a power of two
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

/// First-in first-out values of a trivial type; memory as in ByteRing.
template <class T>
class ValueRing {
 public:
  explicit ValueRing(Host& host) : host_(&host) {}
  ValueRing(const ValueRing&) = delete;
  ValueRing& operator=(const ValueRing&) = delete;
  ~ValueRing() { clear(); }

  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }
  T& operator[](std::uint64_t index) { return data_[(begin_ + index) & (capacity_ - 1)]; }
  T& front() { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  void push_back(const T& value) {
    if (size_ == capacity_) grow();
    ++size_;
    back() = value;
  }
  void pop_front() {
    begin_ = (begin_ + 1) & (capacity_ - 1);
    --size_;
  }
  void pop_back() { --size_; }
  void clear() {
    host_->release(data_, capacity_ * sizeof(T));
    data_ = nullptr;
    capacity_ = begin_ = size_ = 0;
  }

 private:
  void grow() {
    const std::uint64_t capacity = std::max<std::uint64_t>(capacity_ * 2, 4);
    auto* data = reinterpret_cast<T*>(host_->allocate(capacity * sizeof(T)));
    for (std::uint64_t i = 0; i < size_; ++i) data[i] = (*this)[i];
    host_->release(data_, capacity_ * sizeof(T));
    data_ = data;
    capacity_ = capacity;
    begin_ = 0;
  }

  Host* host_;
  T* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace tutti::tcp
