// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/request.hpp"

#include "comm/communicator.hpp"
#include "comm/context.hpp"

namespace tutti {
namespace {

CallSignature signature_of(const CollectiveArguments& arguments, const Plan& plan) {
  CallSignature call;
  call.count = arguments.count;
  call.root = arguments.root;
  call.choice = plan.choice();
  call.collective = arguments.collective;
  call.dtype = arguments.dtype;
  call.op = arguments.op;
  if (arguments.input == arguments.output) call.flags = CallSignature::kInPlace;
  return call;
}

}  // namespace

Status CollectiveCall::begin(CallRecord& record) {
  Result<Plan*> plan = communicator_->plan_for(arguments_);
  if (!plan) return plan.status();
  bind(**plan, communicator_->bindings(arguments_), signature_of(arguments_, **plan));
  return CollectiveOperation::begin(record);
}

Result<CallSignature> CollectiveCall::signature() {
  Result<Plan*> plan = communicator_->plan_for(arguments_);
  if (!plan) return plan.status();
  return signature_of(arguments_, **plan);
}

void CollectiveCall::recycle() noexcept {
  if (owner_) owner_->release();
}

void MessageCall::recycle() noexcept {
  if (owner_) owner_->release();
}

void Request::release() noexcept {
  // The context may end with this reference, and the pool with it: nothing is touched afterwards.
  const std::shared_ptr<Context> last = std::move(context);
  pool_.give_back(this);
}

Request* RequestPool::take(std::shared_ptr<Context> context) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Request>(*this));
    free_.reserve(all_.size());  // so that giving back never allocates
    free_.push_back(all_.back().get());
  }
  Request* request = free_.back();
  free_.pop_back();
  request->context = std::move(context);
  return request;
}

void RequestPool::give_back(Request* request) noexcept {
  const std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(request);
}

}  // namespace tutti
