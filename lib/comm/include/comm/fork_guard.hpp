// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>

namespace tutti {

/// Tells a forked child from its parent at the price of one load: a page that the kernel hands to children empty.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  bool in_child() const noexcept { return page_ ? *page_ == 0 : ::getpid() != owner_; }

 private:
  volatile uint64_t* page_ = nullptr;  // null: compare process ids instead
  int owner_;
};

}  // namespace tutti
