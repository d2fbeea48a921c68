// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages from outside: receives that name a source or a tag or neither, looks, both directions at once.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

tutti_message_t empty_message() {
  tutti_message_t message;
  tutti_message_init(&message);
  return message;
}

bool is(const tutti_message_t& message, int source, int tag, uint64_t size_bytes) {
  return message.source == source && message.tag == tag && message.size_bytes == size_bytes;
}

}  // namespace

TEST_CASE("messages: tags, lengths, truncation, oneself") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    const int next = (rank + 1) % 3;
    const int previous = (rank + 2) % 3;
    for (const size_t count : {size_t{1}, size_t{126}, size_t{127}, size_t{5000}, size_t{300000}}) {
      std::vector<double> out(count);
      std::iota(out.begin(), out.end(), rank * 1000.0);
      std::vector<double> in(count + 2, -1);
      tutti_request_t send = nullptr;
      tutti_request_t receive = nullptr;
      c.expect_status(tutti_isend(comm, out.data(), count, TUTTI_FLOAT64, next, 7, &send), TUTTI_OK, "isend");
      c.expect_status(tutti_irecv(comm, in.data(), count + 2, TUTTI_FLOAT64, previous, 7, &receive), TUTTI_OK, "irecv");
      tutti_message_t message = empty_message();
      c.expect_status(tutti_request_get_message(receive, &message), TUTTI_OK, "get_message");
      c.expect(is(message, previous, 7, count * sizeof(double)), "message of " + std::to_string(message.size_bytes));
      c.expect_status(tutti_wait(&receive), TUTTI_OK, "wait");
      c.expect_status(tutti_wait(&send), TUTTI_OK, "wait");
      c.expect(
          in[0] == previous * 1000.0 && in[count - 1] == previous * 1000.0 + static_cast<double>(count - 1) && in[count] == -1,
          "data of " + std::to_string(count));
    }
    const int32_t two[2] = {5, 6};
    int32_t got[2] = {0, 0};
    tutti_message_t message = empty_message();
    c.expect_status(tutti_send(comm, two, 2, TUTTI_INT32, rank, 1), TUTTI_OK, "to oneself");
    c.expect_status(tutti_recv(comm, got, 2, TUTTI_INT32, rank, 1, &message), TUTTI_OK, "from oneself");
    c.expect(is(message, rank, 1, 8) && got[1] == 6, "oneself");
    c.expect_status(tutti_send(comm, two, 2, TUTTI_INT32, next, 2), TUTTI_OK, "send");
    c.expect_status(tutti_recv(comm, got, 1, TUTTI_INT32, previous, 2, &message), TUTTI_ERR_TRUNCATED, "truncated");
    c.expect(is(message, previous, 2, 8) && got[0] == 5, "its length as it was sent, and the beginning of it");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the communicator lives on");
  });
  CHECK(complaints == "");
}

TEST_CASE("messages of several threads on one communicator") {
  const std::string complaints = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr int kThreads = 3;
    constexpr int kRounds = 200;
    std::vector<std::thread> threads;
    std::vector<Complaints> found(kThreads);
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i) {
          const int64_t out = t * 1000 + i;
          int64_t in = -1;
          tutti_request_t request = nullptr;
          found[static_cast<size_t>(t)].expect_status(tutti_isend(comm, &out, 1, TUTTI_INT64, 1 - rank, t, &request), TUTTI_OK,
                                                      "isend");
          found[static_cast<size_t>(t)].expect_status(tutti_recv(comm, &in, 1, TUTTI_INT64, 1 - rank, t, nullptr), TUTTI_OK,
                                                      "recv");
          found[static_cast<size_t>(t)].expect_status(tutti_wait(&request), TUTTI_OK, "wait");
          found[static_cast<size_t>(t)].expect(in == out, "in order within its tag");
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const Complaints& one : found)
      for (const std::string& line : one.lines()) c.expect(false, line);
  });
  CHECK(complaints == "");
}

TEST_CASE("a receive from any source with any tag says whose message it got") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(4, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr int kRounds = 50;
    std::vector<int32_t> values(600);  // some go with their head, some have a body
    if (rank != 0) {
      for (int i = 0; i < kRounds; ++i) {
        values.assign(values.size(), rank * 1000 + i);
        c.expect_status(tutti_send(comm, values.data(), static_cast<uint64_t>(i * 12), TUTTI_INT32, 0, i), TUTTI_OK, "send");
      }
      return;
    }
    std::vector<int> next(4, 0);
    for (int i = 0; i < 3 * kRounds; ++i) {
      tutti_message_t message = empty_message();
      c.expect_status(tutti_recv(comm, values.data(), values.size(), TUTTI_INT32, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &message),
                      TUTTI_OK, "recv");
      if (message.source < 1 || message.source > 3) return c.expect(false, "source " + std::to_string(message.source));
      const int expected = next[static_cast<size_t>(message.source)]++;
      c.expect(is(message, message.source, expected, static_cast<uint64_t>(expected * 48)), "in the order of its sender");
      if (expected > 0) c.expect(values[static_cast<size_t>(expected * 12 - 1)] == message.source * 1000 + expected, "its data");
    }
  });
  CHECK(complaints == "");
}

TEST_CASE("looks for messages: one that waits, one that does not, and one that keeps what it finds") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    std::vector<int64_t> values(1000, rank);
    tutti_message_t message = empty_message();
    int found = 7;
    if (rank == 0) {
      c.expect_status(tutti_iprobe(comm, TUTTI_ANY_SOURCE, 5, &found, &message), TUTTI_OK, "iprobe");
      c.expect(found == 0, "nothing has been sent");
    }
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "barrier");
    if (rank != 0) {
      c.expect_status(tutti_send(comm, values.data(), 1000, TUTTI_INT64, 0, rank), TUTTI_OK, "send");
      c.expect_status(tutti_send(comm, values.data(), 1, TUTTI_INT64, 0, 9), TUTTI_OK, "send");
      return;
    }
    c.expect_status(tutti_probe(comm, TUTTI_ANY_SOURCE, 2, &message), TUTTI_OK, "probe");
    c.expect(is(message, 2, 2, 8000), "the message of rank 2");
    tutti_matched_t kept = nullptr;
    c.expect_status(tutti_mprobe(comm, 2, TUTTI_ANY_TAG, &kept, &message), TUTTI_OK, "mprobe");
    c.expect(kept && is(message, 2, 2, 8000), "the same");
    // It is out of the way of others.
    c.expect_status(tutti_recv(comm, values.data(), 1000, TUTTI_INT64, 2, TUTTI_ANY_TAG, &message), TUTTI_OK, "recv");
    c.expect(is(message, 2, 9, 8), "the one behind it");
    values.assign(1000, -1);
    c.expect_status(tutti_mrecv(&kept, values.data(), 1000, TUTTI_INT64, &message), TUTTI_OK, "mrecv");
    c.expect(!kept && is(message, 2, 2, 8000) && values[999] == 2, "received");
    while (found != 1) c.expect_status(tutti_improbe(comm, 1, 1, &found, &kept, nullptr), TUTTI_OK, "improbe");
    tutti_request_t request = nullptr;
    const tutti_matched_t copy = kept;
    c.expect_status(tutti_imrecv(&kept, values.data(), 10, TUTTI_INT64, &request), TUTTI_OK, "imrecv");
    c.expect_status(tutti_request_get_message(request, &message), TUTTI_ERR_TRUNCATED, "too long for the buffer");
    c.expect(!kept && is(message, 1, 1, 8000) && values[9] == 1 && values[10] == 2, "the beginning");
    c.expect_status(tutti_wait(&request), TUTTI_ERR_TRUNCATED, "wait");
    kept = copy;
    c.expect_status(tutti_mrecv(&kept, values.data(), 10, TUTTI_INT64, nullptr), TUTTI_ERR_HANDLE, "a handle that was used");
    // One that nobody receives goes with the communicator.
    c.expect_status(tutti_mprobe(comm, 1, 9, &kept, nullptr), TUTTI_OK, "mprobe");
  });
  CHECK(complaints == "");
}

TEST_CASE("send and receive at once: in a ring, with oneself, in place, of different lengths") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    const int next = (rank + 1) % 3;
    const int previous = (rank + 2) % 3;
    for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{300000}}) {
      std::vector<int32_t> out(count + 1, rank);
      std::vector<int32_t> in(count + 5, -1);
      tutti_message_t message = empty_message();
      c.expect_status(tutti_sendrecv(comm, out.data(), count, TUTTI_INT32, next, 3, in.data(), count + 5, TUTTI_INT32,
                                     TUTTI_ANY_SOURCE, 3, &message),
                      TUTTI_OK, "ring");
      c.expect(is(message, previous, 3, count * 4) && in[count] == -1 && (count == 0 || in[count - 1] == previous), "ring data");
      c.expect_status(
          tutti_sendrecv(comm, TUTTI_IN_PLACE, count, TUTTI_INT32, next, 4, out.data(), count, TUTTI_INT32, previous, 4, nullptr),
          TUTTI_OK, "in place");
      c.expect(out[count] == rank && (count == 0 || (out[0] == previous && out[count - 1] == previous)), "in place data");
      c.expect_status(
          tutti_sendrecv(comm, out.data(), count, TUTTI_INT32, rank, 5, in.data(), count, TUTTI_INT32, rank, 5, nullptr),
          TUTTI_OK, "oneself");
      c.expect(std::memcmp(in.data(), out.data(), count * 4) == 0, "what was sent to oneself");
    }
    int32_t two[2] = {rank, rank};
    int32_t one = -1;
    c.expect_status(tutti_sendrecv(comm, two, 2, TUTTI_INT32, next, 6, &one, 1, TUTTI_INT32, previous, 6, nullptr),
                    TUTTI_ERR_TRUNCATED, "too long");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the communicator lives on");
  });
  CHECK(complaints == "");
}

TEST_CASE("persistent messages: each start is one more, with the data of its moment, beside messages of the other forms") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    const int next = (rank + 1) % 3;
    const int previous = (rank + 2) % 3;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{5000}, size_t{300000}}) {
      std::vector<int32_t> out(count + 1);
      std::vector<int32_t> in(count + 1);
      tutti_request_t both[2] = {};
      c.expect_status(tutti_recv_init(comm, in.data(), count, TUTTI_INT32, previous, 7, &both[0]), TUTTI_OK, "recv_init");
      c.expect_status(tutti_send_init(comm, out.data(), count, TUTTI_INT32, next, 7, &both[1]), TUTTI_OK, "send_init");
      for (int round = 0; round < 6; ++round) {
        out.assign(count + 1, 100 * rank + round);
        in.assign(count + 1, -1);
        if (round == 3) {  // the plain forms, in the same sequence
          c.expect_status(
              tutti_sendrecv(comm, out.data(), count, TUTTI_INT32, next, 7, in.data(), count, TUTTI_INT32, previous, 7, nullptr),
              TUTTI_OK, "sendrecv");
        } else {
          c.expect_status(tutti_start_all(2, both), TUTTI_OK, "start_all");
          c.expect_status(tutti_wait_all(2, both, nullptr), TUTTI_OK, "wait_all");
          tutti_message_t message = empty_message();
          c.expect_status(tutti_request_get_message(both[0], &message), TUTTI_OK, "of the run that is over");
          c.expect(is(message, previous, 7, count * 4), "its message");
        }
        c.expect(in[count] == -1 && (count == 0 || (in[0] == 100 * previous + round && in[count - 1] == in[0])),
                 "data of round " + std::to_string(round));
      }
      for (tutti_request_t& one : both) c.expect_status(tutti_request_free(&one), TUTTI_OK, "free");
    }
  });
  CHECK(complaints == "");
}

TEST_CASE("a persistent receive from any source says anew each time whose message it got, and what did not fit") {
  const std::string complaints = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr int kRounds = 30;
    const int32_t values[3] = {rank, rank, rank};
    if (rank != 0) {
      tutti_request_t send = nullptr;
      c.expect_status(tutti_send_init(comm, values, 3, TUTTI_INT32, 0, rank, &send), TUTTI_OK, "send_init");
      for (int i = 0; i < kRounds; ++i) {
        c.expect_status(tutti_start(send), TUTTI_OK, "start");
        int done = 0;
        while (done == 0) c.expect_status(tutti_test(&send, &done), TUTTI_OK, "test");
      }
      c.expect_status(tutti_start(send), TUTTI_OK, "start");
      c.expect_status(tutti_request_free(&send), TUTTI_OK, "free what runs: it goes on");
    } else {
      int32_t got[2] = {};
      tutti_request_t receive = nullptr;
      c.expect_status(tutti_recv_init(comm, got, 2, TUTTI_INT32, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &receive), TUTTI_OK,
                      "recv_init");
      int counts[3] = {};
      for (int i = 0; i < 2 * kRounds + 2; ++i) {
        tutti_message_t message = empty_message();
        c.expect_status(tutti_start(receive), TUTTI_OK, "start");
        c.expect_status(tutti_wait(&receive), TUTTI_ERR_TRUNCATED, "three into two");
        c.expect_status(tutti_request_get_message(receive, &message), TUTTI_ERR_TRUNCATED, "of the last run");
        if (message.source < 1 || message.source > 2) return c.expect(false, "source " + std::to_string(message.source));
        c.expect(is(message, message.source, message.source, 12) && got[1] == message.source, "message");
        ++counts[message.source];
      }
      c.expect(counts[1] == kRounds + 1 && counts[2] == kRounds + 1, "all of each");
      c.expect_status(tutti_request_free(&receive), TUTTI_OK, "free");
    }
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the communicator lives on");
  });
  CHECK(complaints == "");
}

TEST_CASE("what cannot be done with a persistent message") {
  const std::string complaints = run_ranks(1, {}, [](tutti_comm_t comm, int, Complaints& c) {
    int32_t word = 5;
    int32_t got = 0;
    tutti_message_t message = empty_message();
    tutti_request_t send = nullptr;
    tutti_request_t receive = nullptr;
    c.expect_status(tutti_send_init(comm, &word, 1, TUTTI_INT32, 1, 0, &send), TUTTI_ERR_RANK, "dest");
    c.expect_status(tutti_send_init(comm, &word, 1, TUTTI_INT32, 0, TUTTI_ANY_TAG, &send), TUTTI_ERR_ARGUMENT, "tag");
    c.expect_status(tutti_send_init(comm, &word, 1, TUTTI_INT32, 0, 0, nullptr), TUTTI_ERR_ARGUMENT, "no place for the request");
    c.expect_status(tutti_recv_init(comm, nullptr, 1, TUTTI_INT32, 0, 0, &receive), TUTTI_ERR_ARGUMENT, "no buffer");
    c.expect_status(tutti_recv_init(comm, &got, 1, 1000, 0, 0, &receive), TUTTI_ERR_TYPE, "type");
    c.expect(!send && !receive, "nothing was made");

    c.expect_status(tutti_recv_init(comm, &got, 1, TUTTI_INT32, 0, 0, &receive), TUTTI_OK, "recv_init");
    c.expect_status(tutti_send_init(comm, &word, 1, TUTTI_INT32, 0, 0, &send), TUTTI_OK, "send_init");
    c.expect_status(tutti_request_get_message(receive, &message), TUTTI_ERR_ARGUMENT, "it has got nothing");
    c.expect_status(tutti_request_get_message(send, &message), TUTTI_ERR_ARGUMENT, "not a receive");
    c.expect_status(tutti_wait(&receive), TUTTI_OK, "it does not run");
    c.expect_status(tutti_start(receive), TUTTI_OK, "start");
    c.expect_status(tutti_start(receive), TUTTI_ERR_ARGUMENT, "it runs");
    c.expect(std::string(tutti_last_error()).find("running") != std::string::npos, tutti_last_error());
    c.expect_status(tutti_start(send), TUTTI_OK, "start");
    c.expect_status(tutti_wait(&receive), TUTTI_OK, "wait");
    c.expect_status(tutti_wait(&send), TUTTI_OK, "wait");
    c.expect(got == 5, "what was sent");
    tutti_request_t plain = nullptr;
    c.expect_status(tutti_irecv(comm, &got, 1, TUTTI_INT32, 0, 1, &plain), TUTTI_OK, "irecv");
    c.expect_status(tutti_start(plain), TUTTI_ERR_ARGUMENT, "it is not persistent");
    c.expect_status(tutti_send(comm, &word, 1, TUTTI_INT32, 0, 1), TUTTI_OK, "send");
    c.expect_status(tutti_wait(&plain), TUTTI_OK, "wait");
    tutti_comm_t child = nullptr;
    tutti_request_t orphan = nullptr;
    c.expect_status(tutti_comm_split(comm, 0, 0, &child), TUTTI_OK, "split");
    c.expect_status(tutti_recv_init(child, &got, 1, TUTTI_INT32, 0, 0, &orphan), TUTTI_OK, "recv_init");
    c.expect_status(tutti_comm_destroy(child), TUTTI_OK, "destroy");
    c.expect_status(tutti_start(orphan), TUTTI_ERR_HANDLE, "its communicator is gone");
    for (tutti_request_t* one : {&send, &receive, &orphan}) c.expect_status(tutti_request_free(one), TUTTI_OK, "free");
  });
  CHECK(complaints == "");
}

TEST_CASE("a cancelled receive ends without a message, which goes to the next; what cannot be cancelled says so") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(2, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t got = -1;
    int32_t word = rank;
    for (const int source : {1 - rank, rank, TUTTI_ANY_SOURCE}) {
      tutti_request_t request = nullptr;
      c.expect_status(tutti_irecv(comm, &got, 1, TUTTI_INT32, source, 3, &request), TUTTI_OK, "irecv");
      c.expect_status(tutti_cancel(request), TUTTI_OK, "cancel");
      c.expect_status(tutti_cancel(request), TUTTI_OK, "cancel again");
      tutti_message_t message = empty_message();
      c.expect_status(tutti_request_get_message(request, &message), TUTTI_ERR_CANCELLED, "no message");
      int done = 0;
      c.expect_status(tutti_test(&request, &done), TUTTI_ERR_CANCELLED, "test");
      c.expect(done == 1 && request == nullptr && got == -1, "released, the buffer as it was");
    }
    tutti_request_t persistent = nullptr;
    c.expect_status(tutti_recv_init(comm, &got, 1, TUTTI_INT32, 1 - rank, 3, &persistent), TUTTI_OK, "recv_init");
    c.expect_status(tutti_cancel(persistent), TUTTI_OK, "it does not run");
    c.expect_status(tutti_wait(&persistent), TUTTI_OK, "it does not run");
    c.expect_status(tutti_start(persistent), TUTTI_OK, "start");
    c.expect_status(tutti_cancel(persistent), TUTTI_OK, "cancel");
    c.expect_status(tutti_wait(&persistent), TUTTI_ERR_CANCELLED, "wait");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "barrier");
    c.expect_status(tutti_start(persistent), TUTTI_OK, "start again");
    c.expect_status(tutti_send(comm, &word, 1, TUTTI_INT32, 1 - rank, 3), TUTTI_OK, "send");
    c.expect_status(tutti_wait(&persistent), TUTTI_OK, "wait");
    c.expect(got == 1 - rank, "the message that the cancelled ones did not get");
    c.expect_status(tutti_cancel(persistent), TUTTI_OK, "after its end");
    c.expect_status(tutti_request_free(&persistent), TUTTI_OK, "free");

    tutti_request_t request = nullptr;
    c.expect_status(tutti_irecv(comm, &got, 1, TUTTI_INT32, rank, 4, &request), TUTTI_OK, "irecv");
    c.expect_status(tutti_send(comm, &word, 1, TUTTI_INT32, rank, 4), TUTTI_OK, "it has its message");
    c.expect_status(tutti_cancel(request), TUTTI_OK, "too late");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(got == rank, "its message");
    c.expect_status(tutti_isend(comm, &word, 1, TUTTI_INT32, rank, 4, &request), TUTTI_OK, "isend");
    c.expect_status(tutti_cancel(request), TUTTI_ERR_ARGUMENT, "a send");
    c.expect_status(tutti_recv(comm, &got, 1, TUTTI_INT32, rank, 4, nullptr), TUTTI_OK, "recv");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect_status(tutti_cancel(request), TUTTI_ERR_HANDLE, "nothing");
    c.expect_status(tutti_ibarrier(comm, &request), TUTTI_OK, "ibarrier");
    c.expect_status(tutti_cancel(request), TUTTI_ERR_ARGUMENT, "a collective");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
  });
  CHECK(complaints == "");
}

TEST_CASE("cancelling while messages come and another thread drives: each message is received once, by one or the other") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(2, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr int kRounds = 400;
    std::vector<int32_t> values(3000, 0);
    if (rank == 1) {
      for (int i = 0; i < kRounds; ++i) {
        values.assign(values.size(), i);
        c.expect_status(tutti_send(comm, values.data(), i % 3 == 0 ? 3000 : 1, TUTTI_INT32, 0, 1), TUTTI_OK, "send");
      }
      c.expect_status(tutti_send(comm, values.data(), 1, TUTTI_INT32, 0, 2), TUTTI_OK, "send");
      return;
    }
    Complaints found;
    std::thread driver([&] {
      int32_t last = -1;
      found.expect_status(tutti_recv(comm, &last, 1, TUTTI_INT32, 1, 2, nullptr), TUTTI_OK, "recv");
    });
    for (int next = 0; next < kRounds;) {
      values.assign(values.size(), -1);
      tutti_request_t request = nullptr;
      c.expect_status(tutti_irecv(comm, values.data(), values.size(), TUTTI_INT32, TUTTI_ANY_SOURCE, 1, &request), TUTTI_OK,
                      "irecv");
      c.expect_status(tutti_cancel(request), TUTTI_OK, "cancel");
      const tutti_status_t status = tutti_wait(&request);
      if (status == TUTTI_ERR_CANCELLED) {
        c.expect(values[0] == -1 && values[2999] == -1, "nothing was written");
        continue;
      }
      c.expect_status(status, TUTTI_OK, "wait");
      const bool right = values[0] == next && values[2999] == (next % 3 == 0 ? next : -1);
      if (!right) return c.expect(false, "message " + std::to_string(next) + ": " + std::to_string(values[0]));
      ++next;
    }
    driver.join();
    for (const std::string& line : found.lines()) c.expect(false, line);
  });
  CHECK(complaints == "");
}

TEST_CASE("threads that receive from any source share what comes; each message is somebody's once") {
  constexpr int kThreads = 3;
  constexpr int kMessages = 300;
  const std::string complaints = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    if (rank != 0) {
      for (int i = 0; i < kMessages; ++i) c.expect_status(tutti_send(comm, &i, 1, TUTTI_INT32, 0, i % 2), TUTTI_OK, "send");
      return;
    }
    std::atomic<int64_t> sum{0};
    std::vector<Complaints> found(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        Complaints& own = found[static_cast<size_t>(t)];
        for (int i = 0; i < 2 * kMessages / kThreads; ++i) {
          int32_t value = 0;
          if (t > 0) {
            own.expect_status(tutti_recv(comm, &value, 1, TUTTI_INT32, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, nullptr), TUTTI_OK,
                              "recv");
          } else {
            tutti_matched_t matched = nullptr;
            own.expect_status(tutti_mprobe(comm, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, &matched, nullptr), TUTTI_OK, "mprobe");
            own.expect_status(tutti_mrecv(&matched, &value, 1, TUTTI_INT32, nullptr), TUTTI_OK, "mrecv");
          }
          sum += value;
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const Complaints& one : found)
      for (const std::string& line : one.lines()) c.expect(false, line);
    c.expect(sum == 2 * kMessages * (kMessages - 1) / 2, "the sum of all");
  });
  CHECK(complaints == "");
}

TEST_CASE("a receive from any source goes on while ranks leave, and fails when none is left") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_comm_t child = nullptr;
    c.expect_status(tutti_comm_split(comm, 0, rank, &child), TUTTI_OK, "split");
    int32_t word = rank;
    if (rank == 0) {
      tutti_message_t message = empty_message();
      // Rank 2 sends when rank 1 has left and the receive has been waiting for a while.
      c.expect_status(tutti_recv(child, &word, 1, TUTTI_INT32, TUTTI_ANY_SOURCE, 1, &message), TUTTI_OK, "recv");
      c.expect(is(message, 2, 1, 4) && word == 2, "of rank 2");
      c.expect_status(tutti_recv(child, &word, 1, TUTTI_INT32, TUTTI_ANY_SOURCE, 1, &message), TUTTI_ERR_PEER_FAILED, "nobody");
    } else if (rank == 2) {
      c.expect_status(tutti_recv(comm, &word, 1, TUTTI_INT32, 1, 1, nullptr), TUTTI_OK, "rank 1 has left");
      std::this_thread::sleep_for(std::chrono::milliseconds(400));  // longer than a wait that asks its peers
      word = 2;
      c.expect_status(tutti_send(child, &word, 1, TUTTI_INT32, 0, 1), TUTTI_OK, "send");
    }
    c.expect_status(tutti_comm_destroy(child), TUTTI_OK, "destroy");
    if (rank == 1) c.expect_status(tutti_send(comm, &word, 1, TUTTI_INT32, 2, 1), TUTTI_OK, "tell");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the other communicator lives on");
  });
  CHECK(complaints == "");
}

TEST_CASE("a receive from any source goes on when a rank ended before there was a connection to it") {
  struct AtThreadEnd {  // when the rank's communicator is gone as well
    std::latch* ended = nullptr;
    ~AtThreadEnd() {
      if (ended) ended->count_down();
    }
  };
  constexpr int kRanks = 8;
  std::latch ended(kRanks - 2);
  // Ranks 0 and 7 have met nowhere: what ranks agree on at the start goes along a tree.
  const std::string complaints = run_ranks(kRanks, {{"transports", "tcp"}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t word = rank;
    thread_local AtThreadEnd at_thread_end;
    if (rank > 1) at_thread_end.ended = &ended;
    if (rank == 1) c.expect_status(tutti_send(comm, &word, 1, TUTTI_INT32, 0, 1), TUTTI_OK, "send");
    if (rank != 0) return;
    ended.wait();
    tutti_message_t message = empty_message();
    c.expect_status(tutti_recv(comm, &word, 1, TUTTI_INT32, TUTTI_ANY_SOURCE, 1, &message), TUTTI_OK, "recv");
    c.expect(is(message, 1, 1, 4), "of the one that was left");
    // It ends when no rank is left, and not when one turns out to be out of reach.
    c.expect_status(tutti_recv(comm, &word, 1, TUTTI_INT32, TUTTI_ANY_SOURCE, 1, nullptr), TUTTI_ERR_PEER_FAILED, "nobody");
  });
  CHECK(complaints == "");
}
