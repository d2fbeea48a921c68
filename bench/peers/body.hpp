// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// One benchmark for every library that is compared: the same buffers, patterns, checks, warm-up and timing. A library comes in as
// a Binding; tools/compare-peers starts a program for each library and rotates short slices among the living programs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace peers {

enum class Collective { allreduce, reduce, broadcast, allgather, gather, scatter, reduce_scatter, alltoall, barrier };

// What is called again and again. `count` is in floats: of the whole buffer for allreduce, reduce and broadcast (which works on
// `recv` alone), of the block of one rank for the others. The buffers stay the same until the next Binding::prepare().
struct Task {
  Collective collective = Collective::barrier;
  size_t count = 0;
  float* send = nullptr;
  float* recv = nullptr;
};

// A library, joined to a job of it. One thread calls. Errors are std::runtime_error with the library's own words.
class Binding {
 public:
  virtual ~Binding() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Name and version of what runs, not of what it was compiled with.
  virtual std::string version() const = 0;
  virtual bool has(Collective collective) const = 0;
  // Before the first call of another task; local. What a user would set up once and use often belongs here.
  virtual void prepare(const Task& task) { (void)task; }
  // Blocking. `root` counts where the collective has one. A float sum where it reduces.
  virtual void call(const Task& task, int root) = 0;
  virtual void barrier() = 0;
};

// Made after the process has been bound to its CPU. The arguments are main's.
std::unique_ptr<Binding> make_binding(int argc, char** argv);

}  // namespace peers
