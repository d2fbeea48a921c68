// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Gloo over TCP. It has no launcher: PEERS_RANK and PEERS_RANKS say who this is, and the ranks meet in the channel's
// folder. The first argument is the algorithm of allreduce: ring, bcube, or hd (halving and doubling, Gloo's older interface).
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <vector>

#include "body.hpp"
#include "channel.hpp"

namespace peers {
namespace {

using Sum = void (*)(void*, const void*, const void*, size_t);
const Sum sum = &gloo::sum<float>;

int number(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) throw std::runtime_error(std::string(variable) + " is not set");
  return std::atoi(value);
}

class Gloo final : public Binding {
 public:
  explicit Gloo(std::string algorithm)
      : algorithm_(std::move(algorithm)),
        context_(std::make_shared<gloo::rendezvous::Context>(number("PEERS_RANK"), number("PEERS_RANKS"))) {
    if (algorithm_ != "ring" && algorithm_ != "bcube" && algorithm_ != "hd") {
      throw std::runtime_error("unknown algorithm '" + algorithm_ + "': ring, bcube or hd");
    }
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(channel_folder());
    context_->connectFullMesh(store, device);
  }

  int rank() const override { return context_->rank; }
  int ranks() const override { return context_->size; }
  std::string version() const override { return "Gloo"; }
  // Its older interface has a reduce_scatter in place; the others are not there twice.
  bool has(Collective collective) const override {
    return algorithm_ == "ring"
               ? collective != Collective::reduce_scatter
               : collective == Collective::allreduce || (algorithm_ == "hd" && collective == Collective::reduce_scatter);
  }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void call(const Task&, int root) override { calls_[calls_.size() == 1 ? 0 : static_cast<size_t>(root)](); }

  void prepare(const Task& task) override {
    calls_.clear();
    switch (task.collective) {
      case Collective::allreduce:
        return prepare_allreduce(task);
      case Collective::reduce_scatter:
        return prepare_reduce_scatter(task);
      case Collective::allgather:
        return prepare_allgather(task);
      case Collective::alltoall:
        return prepare_alltoall(task);
      case Collective::barrier:
        calls_.emplace_back([this] { barrier(); });
        return;
      default:
        for (int root = 0; root < ranks(); ++root) prepare_rooted(task, root);
    }
  }

 private:
  template <typename Options>
  std::shared_ptr<Options> options() {
    auto made = std::make_shared<Options>(context_);
    made->setTag(++tag_);
    return made;
  }

  void prepare_allreduce(const Task& task) {
    if (algorithm_ == "hd") {  // works in place: the copy makes it the operation of the others
      auto work = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context_, std::vector<float*>{task.recv},
                                                                          static_cast<int>(task.count));
      calls_.emplace_back([work, task] {
        std::copy_n(task.send, task.count, task.recv);
        work->run();
      });
      return;
    }
    auto made = options<gloo::AllreduceOptions>();
    made->setInput(task.send, task.count);
    made->setOutput(task.recv, task.count);
    made->setReduceFunction(sum);
    made->setAlgorithm(algorithm_ == "ring" ? gloo::AllreduceOptions::Algorithm::RING : gloo::AllreduceOptions::Algorithm::BCUBE);
    calls_.emplace_back([made] { gloo::allreduce(*made); });
  }

  void prepare_reduce_scatter(const Task& task) {
    const size_t all = task.count * static_cast<size_t>(ranks());
    auto work = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{task.recv}, static_cast<int>(all),
        std::vector<int>(static_cast<size_t>(ranks()), static_cast<int>(task.count)));
    calls_.emplace_back([work, task, all] {
      std::copy_n(task.send, all, task.recv);
      work->run();
    });
  }

  void prepare_allgather(const Task& task) {
    auto made = options<gloo::AllgatherOptions>();
    made->setInput(task.send, task.count);
    made->setOutput(task.recv, task.count * static_cast<size_t>(ranks()));
    calls_.emplace_back([made] { gloo::allgather(*made); });
  }

  void prepare_alltoall(const Task& task) {
    auto made = options<gloo::AlltoallOptions>();
    made->setInput(task.send, task.count * static_cast<size_t>(ranks()));
    made->setOutput(task.recv, task.count * static_cast<size_t>(ranks()));
    calls_.emplace_back([made] { gloo::alltoall(*made); });
  }

  void prepare_rooted(const Task& task, int root) {
    const size_t all = task.count * static_cast<size_t>(ranks());
    if (task.collective == Collective::broadcast) {
      auto made = options<gloo::BroadcastOptions>();
      made->setOutput(task.recv, task.count);
      made->setRoot(root);
      calls_.emplace_back([made] { gloo::broadcast(*made); });
    } else if (task.collective == Collective::reduce) {
      auto made = options<gloo::ReduceOptions>();
      made->setInput(task.send, task.count);
      made->setOutput(task.recv, task.count);
      made->setReduceFunction(sum);
      made->setRoot(root);
      calls_.emplace_back([made] { gloo::reduce(*made); });
    } else if (task.collective == Collective::gather) {
      auto made = options<gloo::GatherOptions>();
      made->setInput(task.send, task.count);
      if (rank() == root) made->setOutput(task.recv, all);
      made->setRoot(root);
      calls_.emplace_back([made] { gloo::gather(*made); });
    } else {
      auto made = options<gloo::ScatterOptions>();
      std::vector<float*> blocks;
      for (size_t to = 0; to < static_cast<size_t>(ranks()); ++to) blocks.push_back(task.send + to * task.count);
      if (rank() == root) made->setInputs(blocks, task.count);
      made->setOutput(task.recv, task.count);
      made->setRoot(root);
      calls_.emplace_back([made] { gloo::scatter(*made); });
    }
  }

  std::string algorithm_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  uint32_t tag_ = 100;
  std::vector<std::function<void()>> calls_;  // one, or one for each root
};

}  // namespace

std::unique_ptr<Binding> make_binding(int argc, char** argv) { return std::make_unique<Gloo>(argc > 1 ? argv[1] : "ring"); }

}  // namespace peers
