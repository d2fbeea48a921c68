// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "base/status.hpp"

using tutti::Result;
using tutti::Status;

namespace {

Status first_failing(int fails_at, int& calls) {
  TUTTI_TRY((++calls, fails_at == 1 ? tutti::error(TUTTI_ERR_RANK, "first {}", 1) : Status()));
  TUTTI_TRY((++calls, fails_at == 2 ? tutti::error(TUTTI_ERR_TYPE, "second {}", 2) : Status()));
  return Status();
}

}  // namespace

TEST_CASE("success carries nothing; an error carries its code and its words") {
  const Status fine;
  CHECK(fine.ok());
  CHECK(fine.code() == TUTTI_OK);
  CHECK(fine.message().empty());
  const Status bad = tutti::error(TUTTI_ERR_RANK, "rank {} is outside 0..{}", 9, 7);
  CHECK_FALSE(bad.ok());
  CHECK_FALSE(static_cast<bool>(bad));
  CHECK(bad.code() == TUTTI_ERR_RANK);
  CHECK(bad.message() == "rank 9 is outside 0..7");
  CHECK(sizeof(Status) <= 2 * sizeof(void*));
}

TEST_CASE("a status is copied in depth and survives assignment to itself") {
  Status first = tutti::error(TUTTI_ERR_SIZE, "too large");
  Status copy = first;
  first = Status();
  CHECK(copy.message() == "too large");
  Status& alias = copy;
  copy = alias;
  CHECK(copy.code() == TUTTI_ERR_SIZE);
  CHECK(copy.message() == "too large");
  const Status moved = std::move(copy);
  CHECK(moved.message() == "too large");
}

TEST_CASE("context is put in front of errors only") {
  CHECK(tutti::error(TUTTI_ERR_AUTH, "no secret").with_context("rank 3").message() == "rank 3: no secret");
  CHECK(tutti::error(TUTTI_ERR_AUTH, "no secret").with_context("rank 3").code() == TUTTI_ERR_AUTH);
  CHECK(Status().with_context("rank 3").message().empty());
}

TEST_CASE("TUTTI_TRY returns the first error and evaluates once") {
  int calls = 0;
  CHECK(first_failing(0, calls).ok());
  CHECK(calls == 2);
  calls = 0;
  CHECK(first_failing(1, calls).message() == "first 1");
  CHECK(calls == 1);
  calls = 0;
  CHECK(first_failing(2, calls).code() == TUTTI_ERR_TYPE);
  CHECK(calls == 2);
}

TEST_CASE("errno becomes the group that shows the remedy, and the text names the call") {
  CHECK(tutti::system_error("mmap", ENOMEM).code() == TUTTI_ERR_MEMORY);
  for (const int number : {EMFILE, ENFILE, ENOSPC, ENOBUFS, EADDRINUSE}) {
    CHECK(tutti::system_error("x", number).code() == TUTTI_ERR_RESOURCE);
  }
  CHECK(tutti::system_error("x", EACCES).code() == TUTTI_ERR_SYSTEM);
  CHECK(tutti::system_error("open", ENOENT).message() == "open: No such file or directory (errno 2)");
  CHECK(std::string(tutti::system_error("x", 99999).message()).find("errno 99999") != std::string::npos);
}

TEST_CASE("a result holds a value or the reason why there is none; move-only values too") {
  Result<std::unique_ptr<int>> good = std::make_unique<int>(7);
  REQUIRE(good.ok());
  CHECK(**good == 7);
  CHECK(good.status().ok());
  const std::unique_ptr<int> taken = *std::move(good);
  CHECK(*taken == 7);
  const Result<std::string> bad = tutti::error(TUTTI_ERR_CONFIG, "no");
  CHECK_FALSE(bad.ok());
  CHECK(bad.status().code() == TUTTI_ERR_CONFIG);
  CHECK(bad.status().message() == "no");
  Result<std::string> text = std::string("abc");
  CHECK(text->size() == 3);
}
