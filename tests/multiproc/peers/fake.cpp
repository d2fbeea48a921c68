// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// A library of one rank for the benchmark of bench/peers: allreduce is right, reduce is wrong in one element, alltoall fails,
// gather ends the process, and there is nothing else.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "body.hpp"

namespace peers {
namespace {

class Fake final : public Binding {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::string version() const override { return "fake \"1\""; }
  bool has(Collective collective) const override { return collective != Collective::broadcast; }
  void barrier() override {}
  void call(const Task& task, int) override {
    if (task.collective == Collective::alltoall) throw std::runtime_error("no route");
    if (task.collective == Collective::gather) std::_Exit(3);
    std::copy_n(task.send, task.count, task.recv);
    if (task.collective == Collective::reduce) task.recv[task.count - 1] += 1.0F;
  }
};

}  // namespace

std::unique_ptr<Binding> make_binding(int, char**) { return std::make_unique<Fake>(); }

}  // namespace peers
