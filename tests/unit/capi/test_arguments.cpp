// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

/// A communicator of one rank: arguments are checked the same way.
struct Alone {
  Alone() { REQUIRE(tutti_comm_create(nullptr, &comm) == TUTTI_OK); }
  ~Alone() {
    if (comm) tutti_comm_destroy(comm);
  }
  tutti_comm_t comm = nullptr;
};

bool last_error_has(const char* text) { return std::strstr(tutti_last_error(), text) != nullptr; }

}  // namespace

TEST_CASE("handles that are null, destroyed, or of another kind are errors, never crashes") {
  tutti_comm_t comm = nullptr;
  int number = 0;
  CHECK(tutti_comm_rank(nullptr, &number) == TUTTI_ERR_HANDLE);
  REQUIRE(tutti_comm_create(nullptr, &comm) == TUTTI_OK);
  CHECK(tutti_comm_rank(comm, &number) == TUTTI_OK);
  CHECK(number == 0);
  CHECK(tutti_comm_size(comm, &number) == TUTTI_OK);
  CHECK(number == 1);
  tutti_config_t config = nullptr;
  REQUIRE(tutti_config_create(&config) == TUTTI_OK);
  CHECK(tutti_barrier(reinterpret_cast<tutti_comm_t>(config)) == TUTTI_ERR_HANDLE);
  CHECK(tutti_config_destroy(reinterpret_cast<tutti_config_t>(comm)) == TUTTI_ERR_HANDLE);
  CHECK(tutti_config_destroy(config) == TUTTI_OK);
  CHECK(tutti_config_destroy(config) == TUTTI_ERR_HANDLE);
  CHECK(tutti_comm_destroy(comm) == TUTTI_OK);
  CHECK(tutti_comm_destroy(comm) == TUTTI_ERR_HANDLE);
  CHECK(tutti_barrier(comm) == TUTTI_ERR_HANDLE);
  CHECK(last_error_has("tutti_barrier"));
  // A handle that takes the place of a destroyed one does not make the old one live again.
  Alone again;
  CHECK(tutti_barrier(comm) == TUTTI_ERR_HANDLE);
  CHECK(tutti_barrier(reinterpret_cast<tutti_comm_t>(uintptr_t{0xdeadbeef})) == TUTTI_ERR_HANDLE);
  tutti_request_t request = nullptr;
  CHECK(tutti_wait(&request) == TUTTI_ERR_HANDLE);
  CHECK(tutti_wait(nullptr) == TUTTI_ERR_ARGUMENT);
}

TEST_CASE("bad arguments are named with their value before anything is sent") {
  Alone alone;
  float in[4] = {1, 2, 3, 4};
  float out[4] = {};
  CHECK(tutti_allreduce(alone.comm, in, out, 4, 99, TUTTI_SUM) == TUTTI_ERR_TYPE);
  CHECK(last_error_has("99"));
  CHECK(tutti_allreduce(alone.comm, in, out, 4, TUTTI_FLOAT32, -1) == TUTTI_ERR_OP);
  CHECK(tutti_allreduce(alone.comm, in, out, 4, TUTTI_FLOAT32, TUTTI_BXOR) == TUTTI_ERR_OP);
  CHECK(last_error_has("bxor"));
  CHECK(last_error_has("float32"));
  CHECK(tutti_allreduce(alone.comm, nullptr, out, 4, TUTTI_FLOAT32, TUTTI_SUM) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_allreduce(alone.comm, in, nullptr, 4, TUTTI_FLOAT32, TUTTI_SUM) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_allreduce(alone.comm, in, in + 1, 3, TUTTI_FLOAT32, TUTTI_SUM) == TUTTI_ERR_ARGUMENT);
  CHECK(last_error_has("overlap"));
  CHECK(tutti_allreduce(alone.comm, in, TUTTI_IN_PLACE, 3, TUTTI_FLOAT32, TUTTI_SUM) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_allreduce(alone.comm, in, out, UINT64_MAX / 2, TUTTI_FLOAT64, TUTTI_SUM) == TUTTI_ERR_SIZE);
  CHECK(tutti_broadcast(alone.comm, in, 4, TUTTI_FLOAT32, 1) == TUTTI_ERR_RANK);
  CHECK(last_error_has("[0, 1)"));
  CHECK(tutti_broadcast(alone.comm, in, 4, TUTTI_FLOAT32, -1) == TUTTI_ERR_RANK);
  CHECK(tutti_broadcast(alone.comm, nullptr, 4, TUTTI_FLOAT32, 0) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_send(alone.comm, in, 4, TUTTI_FLOAT32, 3, 0) == TUTTI_ERR_RANK);
  CHECK(tutti_send(alone.comm, in, 4, TUTTI_FLOAT32, 0, -2) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_send(alone.comm, in, 4, TUTTI_FLOAT32, 0, TUTTI_ANY_TAG) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_send(alone.comm, in, 4, TUTTI_FLOAT32, TUTTI_ANY_SOURCE, 0) == TUTTI_ERR_RANK);
  CHECK(tutti_recv(alone.comm, in, 4, TUTTI_FLOAT32, -2, 0, nullptr) == TUTTI_ERR_RANK);
  CHECK(tutti_recv(alone.comm, in, 4, TUTTI_FLOAT32, 0, -2, nullptr) == TUTTI_ERR_ARGUMENT);
  tutti_message_t message{};
  CHECK(tutti_recv(alone.comm, in, 4, TUTTI_FLOAT32, 0, 0, &message) == TUTTI_ERR_ARGUMENT);
  CHECK(last_error_has("tutti_message_init"));
  CHECK(tutti_probe(alone.comm, 1, 0, nullptr) == TUTTI_ERR_RANK);
  CHECK(tutti_iprobe(alone.comm, 0, 0, nullptr, nullptr) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_mprobe(alone.comm, 0, 0, nullptr, nullptr) == TUTTI_ERR_ARGUMENT);
  tutti_matched_t matched = nullptr;
  CHECK(tutti_mrecv(&matched, in, 4, TUTTI_FLOAT32, nullptr) == TUTTI_ERR_HANDLE);
  CHECK(tutti_mrecv(nullptr, in, 4, TUTTI_FLOAT32, nullptr) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_sendrecv(alone.comm, in, 3, TUTTI_FLOAT32, 0, 0, in + 1, 3, TUTTI_FLOAT32, 0, 0, nullptr) == TUTTI_ERR_ARGUMENT);
  CHECK(last_error_has("overlap"));
  CHECK(tutti_iallreduce(alone.comm, in, out, 4, TUTTI_FLOAT32, TUTTI_SUM, nullptr) == TUTTI_ERR_ARGUMENT);
  tutti_comm_t child = nullptr;
  CHECK(tutti_comm_split(alone.comm, -7, 0, &child) == TUTTI_ERR_ARGUMENT);
  tutti_unique_id_t id{};
  CHECK(tutti_comm_create_from_id(&id, 0, 0, nullptr, &child) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_comm_create_from_id(&id, -3, 0, nullptr, &child) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_comm_create_from_id(&id, 2, 2, nullptr, &child) == TUTTI_ERR_RANK);
  CHECK(tutti_comm_create_from_id(&id, 2, 1, nullptr, &child) == TUTTI_ERR_ARGUMENT);  // not made by Tutti
  tutti_comm_options_t options{};
  CHECK(tutti_comm_create(&options, &child) == TUTTI_ERR_ARGUMENT);
  CHECK(last_error_has("_init"));
  tutti_comm_options_init(&options);
  options.timeout_ms = -1;
  CHECK(tutti_comm_create(&options, &child) == TUTTI_ERR_ARGUMENT);
  // The communicator is as before.
  CHECK(tutti_allreduce(alone.comm, in, out, 4, TUTTI_FLOAT32, TUTTI_AVG) == TUTTI_OK);
  CHECK(std::memcmp(in, out, sizeof in) == 0);
}

TEST_CASE("settings: unknown names have a suggestion, bad values are refused") {
  tutti_config_t config = nullptr;
  REQUIRE(tutti_config_create(&config) == TUTTI_OK);
  CHECK(tutti_config_set(config, "tcp_windw_bytes", "1M") == TUTTI_ERR_CONFIG);
  CHECK(last_error_has("tcp_window_bytes"));
  CHECK(tutti_config_set(config, "tcp_window_bytes", "many") == TUTTI_ERR_CONFIG);
  CHECK(tutti_config_set(config, "tcp_window_bytes", nullptr) == TUTTI_ERR_ARGUMENT);
  CHECK(tutti_config_set(config, "allreduce", "no_such_algorithm") == TUTTI_OK);  // found out where algorithms are known
  tutti_comm_options_t options;
  tutti_comm_options_init(&options);
  options.config = config;
  tutti_comm_t comm = nullptr;
  CHECK(tutti_comm_create(&options, &comm) == TUTTI_ERR_CONFIG);
  CHECK(last_error_has("no_such_algorithm"));
  tutti_config_destroy(config);
}

TEST_CASE("names and versions") {
  int major = -1;
  CHECK(tutti_get_version(&major, nullptr, nullptr) == TUTTI_OK);
  CHECK(major == TUTTI_VERSION_MAJOR);
  CHECK(std::string(tutti_status_string(TUTTI_ERR_RANK)) == "TUTTI_ERR_RANK");
  CHECK(std::string(tutti_status_string(12345)) == "unknown status");
  CHECK(tutti_dtype_size_bytes(TUTTI_BFLOAT16) == 2);
  CHECK(tutti_dtype_size_bytes(-1) == 0);
  CHECK(std::string(tutti_dtype_name(TUTTI_FLOAT64)) == "float64");
  CHECK(std::string(tutti_op_name(17)) == "unknown");
}

TEST_CASE("zero counts with null buffers succeed everywhere and keep the ranks in step") {
  for (const int size : {1, 2, 3, 4}) {
    const std::string complaints = run_ranks(size, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      c.expect_status(tutti_allreduce(comm, nullptr, nullptr, 0, TUTTI_FLOAT64, TUTTI_SUM), TUTTI_OK, "allreduce");
      c.expect_status(tutti_broadcast(comm, nullptr, 0, TUTTI_INT8, size - 1), TUTTI_OK, "broadcast");
      tutti_request_t request = nullptr;
      c.expect_status(tutti_iallreduce(comm, nullptr, nullptr, 0, TUTTI_INT32, TUTTI_MAX, &request), TUTTI_OK, "iallreduce");
      c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
      const int next = (rank + 1) % size;
      const int previous = (rank + size - 1) % size;
      c.expect_status(tutti_isend(comm, nullptr, 0, TUTTI_INT32, next, 3, &request), TUTTI_OK, "isend");
      tutti_message_t message;
      tutti_message_init(&message);
      message.size_bytes = 99;
      c.expect_status(tutti_recv(comm, nullptr, 0, TUTTI_INT32, previous, 3, &message), TUTTI_OK, "recv");
      c.expect(message.size_bytes == 0, "a message of nothing");
      c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
      int64_t one = 1;
      c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), TUTTI_OK, "allreduce of one");
      c.expect(one == size, "the sum of ones");
    });
    CHECK(complaints == "");
  }
}
