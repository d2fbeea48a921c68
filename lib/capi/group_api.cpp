// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

using namespace tutti;

namespace {

Status not_while_it_runs(const GroupObject& group) {
  if (!group.calls->runs()) return Status();
  return error(TUTTI_ERR_ARGUMENT, "the group is running; wait for the request of its launch first");
}

}  // namespace

extern "C" tutti_status_t tutti_group_begin(tutti_comm_t comm, tutti_group_t* group) {
  return entry("tutti_group_begin", [&]() -> Status {
    const Result<Communicator*> found = find_communicator(comm);
    if (!found) return found.status();
    if (!group) return null_argument("group");
    auto made = std::make_unique<GroupObject>();
    made->calls = std::make_shared<CallGroup>(**found);
    made->communicator = comm;
    made->context = (*found)->context();
    *group = static_cast<tutti_group_t>(handles().insert(HandleKind::group, made.get()));
    made.release();
    return Status();
  });
}

extern "C" tutti_status_t tutti_group_add(tutti_group_t group, tutti_request_t call) {
  return entry("tutti_group_add", [&]() -> Status {
    const Result<GroupObject*> found = find_group(group);
    if (!found) return found.status();
    const Result<Request*> request = find_request(call);
    if (!request) return request.status();
    if (!(*request)->is_persistent || (*request)->is_message) {
      return error(TUTTI_ERR_ARGUMENT, "call is {}; a group takes persistent collectives, those of tutti_..._init",
                   (*request)->is_message ? "a message" : "not persistent");
    }
    if ((*request)->communicator != (*found)->communicator) {
      return error(TUTTI_ERR_ARGUMENT, "call is of another communicator than the group");
    }
    TUTTI_TRY(not_while_it_runs(**found));
    (*found)->calls->add((*request)->arguments());
    return Status();
  });
}

extern "C" tutti_status_t tutti_group_launch(tutti_group_t group, tutti_request_t* request) {
  return entry("tutti_group_launch", [&]() -> Status {
    const Result<GroupObject*> found = find_group(group);
    if (!found) return found.status();
    if (!request) return null_argument("request");
    const Result<Communicator*> communicator = find_communicator((*found)->communicator);
    if (!communicator) return communicator.status();
    TUTTI_TRY(not_while_it_runs(**found));
    return start(**communicator, (*communicator)->launch((*found)->calls), request);
  });
}

extern "C" tutti_status_t tutti_group_free(tutti_group_t* group) {
  return entry("tutti_group_free", [&]() -> Status {
    if (!group) return null_argument("group");
    const Result<GroupObject*> found = find_group(*group);
    if (!found) return found.status();
    handles().remove(HandleKind::group, *group);
    *group = nullptr;
    delete *found;
    return Status();
  });
}
