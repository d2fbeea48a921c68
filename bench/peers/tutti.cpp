// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <tutti/tutti.h>

#include <stdexcept>

#include "body.hpp"

namespace peers {
namespace {

void require(tutti_status_t status) {
  if (status != TUTTI_OK) throw std::runtime_error(tutti_last_error());
}

class Tutti final : public Binding {
 public:
  Tutti() {
    require(tutti_comm_create(nullptr, &comm_));
    require(tutti_comm_rank(comm_, &rank_));
    require(tutti_comm_size(comm_, &ranks_));
  }
  ~Tutti() override { tutti_comm_destroy(comm_); }
  Tutti(const Tutti&) = delete;
  Tutti& operator=(const Tutti&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string version() const override {
    int major = 0;
    int minor = 0;
    int patch = 0;
    require(tutti_get_version(&major, &minor, &patch));
    return "Tutti " + std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
  }
  bool has(Collective) const override { return true; }
  void barrier() override { require(tutti_barrier(comm_)); }

  void call(const Task& task, int root) override {
    const auto [collective, count, send, recv] = task;
    switch (collective) {
      case Collective::allreduce:
        return require(tutti_allreduce(comm_, send, recv, count, TUTTI_FLOAT32, TUTTI_SUM));
      case Collective::reduce:
        return require(tutti_reduce(comm_, send, recv, count, TUTTI_FLOAT32, TUTTI_SUM, root));
      case Collective::broadcast:
        return require(tutti_broadcast(comm_, recv, count, TUTTI_FLOAT32, root));
      case Collective::allgather:
        return require(tutti_allgather(comm_, send, recv, count, TUTTI_FLOAT32));
      case Collective::gather:
        return require(tutti_gather(comm_, send, recv, count, TUTTI_FLOAT32, root));
      case Collective::scatter:
        return require(tutti_scatter(comm_, send, recv, count, TUTTI_FLOAT32, root));
      case Collective::reduce_scatter:
        return require(tutti_reduce_scatter(comm_, send, recv, count, TUTTI_FLOAT32, TUTTI_SUM));
      case Collective::alltoall:
        return require(tutti_alltoall(comm_, send, recv, count, TUTTI_FLOAT32));
      case Collective::barrier:
        return barrier();
    }
  }

 private:
  tutti_comm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
};

}  // namespace

std::unique_ptr<Binding> make_binding(int, char**) { return std::make_unique<Tutti>(); }

}  // namespace peers
