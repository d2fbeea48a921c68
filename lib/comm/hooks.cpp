// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/hooks.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "engine/control.hpp"

namespace tutti {

void* Hooks::allocate(size_t bytes, size_t alignment) const noexcept {
  if (hooks_.alloc) return hooks_.alloc(hooks_.user, bytes, alignment);
  void* memory = nullptr;
  return ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void Hooks::release(void* memory) const noexcept {
  if (hooks_.alloc && hooks_.free)
    hooks_.free(hooks_.user, memory);
  else if (!hooks_.alloc)
    std::free(memory);
}

std::function<void()> Hooks::start_thread(std::function<void()> body) const {
  if (!hooks_.thread_start) return start_system_thread(std::move(body));
  auto owned = std::make_shared<std::function<void()>>(std::move(body));
  void* token = hooks_.thread_start(
      hooks_.user, [](void* arg) { (*static_cast<std::function<void()>*>(arg))(); }, owned.get());
  if (!token) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread_start hook");
  return [owned, token, hooks = hooks_] {
    if (hooks.thread_join) hooks.thread_join(hooks.user, token);
  };
}

}  // namespace tutti
