// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Any MPI: compiled once for each that is found, since their handles differ.
#include <mpi.h>

#include <stdexcept>

#include "body.hpp"

namespace peers {
namespace {

void require(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(text);
}

class Mpi final : public Binding {
 public:
  Mpi(int argc, char** argv) {
    require(MPI_Init(&argc, &argv));
    require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    require(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    require(MPI_Comm_size(MPI_COMM_WORLD, &ranks_));
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    require(MPI_Get_library_version(text, &length));
    const std::string whole(text);
    return whole.substr(0, whole.find_first_of(",\n"));
  }
  bool has(Collective) const override { return true; }
  void barrier() override { require(MPI_Barrier(MPI_COMM_WORLD)); }

  void call(const Task& task, int root) override {
    const int count = static_cast<int>(task.count);
    float* const send = task.send;
    float* const recv = task.recv;
    MPI_Comm const comm = MPI_COMM_WORLD;
    switch (task.collective) {
      case Collective::allreduce:
        return require(MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, comm));
      case Collective::reduce:
        return require(MPI_Reduce(send, recv, count, MPI_FLOAT, MPI_SUM, root, comm));
      case Collective::broadcast:
        return require(MPI_Bcast(recv, count, MPI_FLOAT, root, comm));
      case Collective::allgather:
        return require(MPI_Allgather(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, comm));
      case Collective::gather:
        return require(MPI_Gather(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, root, comm));
      case Collective::scatter:
        return require(MPI_Scatter(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, root, comm));
      case Collective::reduce_scatter:
        return require(MPI_Reduce_scatter_block(send, recv, count, MPI_FLOAT, MPI_SUM, comm));
      case Collective::alltoall:
        return require(MPI_Alltoall(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, comm));
      case Collective::barrier:
        return barrier();
    }
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
};

}  // namespace

std::unique_ptr<Binding> make_binding(int argc, char** argv) { return std::make_unique<Mpi>(argc, argv); }

}  // namespace peers
