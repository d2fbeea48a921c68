// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// PMIx (Open MPI's mpirun, prte, Slurm's pmix plugin) through whatever libpmix.so.2 the launcher's own programs use: it has to
// fit the server, so it is looked for at run time and no header is needed to build. The types below are the part of the
// PMIx ABI that is used here; it is the same in versions 2 to 5.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "board.hpp"

namespace tutti {
namespace {

using PmixStatus = int;
struct PmixProc {
  char nspace[256];
  uint32_t rank;
};
struct PmixValue {
  uint16_t type;
  union {
    char* string;
    uint32_t uint32;
    uint64_t widest[3];  // as long as the longest member, pmix_envar_t
  } data;
};
static_assert(sizeof(PmixProc) == 260 && sizeof(PmixValue) == 32);

constexpr PmixStatus kSuccess = 0;
constexpr uint16_t kString = 3;
constexpr uint16_t kUint32 = 14;
constexpr uint8_t kGlobal = 3;
constexpr uint32_t kWildcard = UINT32_MAX - 1;
constexpr const char* kKey = "tutti-invitation";

using ValueCallback = void (*)(PmixStatus status, PmixValue* value, void* data);
struct Library {
  PmixStatus (*init)(PmixProc*, void*, size_t) = nullptr;
  PmixStatus (*finalize)(const void*, size_t) = nullptr;
  PmixStatus (*put)(uint8_t, const char*, PmixValue*) = nullptr;
  PmixStatus (*commit)() = nullptr;
  PmixStatus (*get)(const PmixProc*, const char*, const void*, size_t, PmixValue**) = nullptr;
  PmixStatus (*get_nb)(const PmixProc*, const char*, const void*, size_t, ValueCallback, void*) = nullptr;
  const char* (*error_string)(PmixStatus) = nullptr;

  Status load();
};

template <class Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Status Library::load() {
  void* library = nullptr;
  for (const char* const file : {"libpmix.so.2", "libpmix.so"}) {
    // Never closed: it leaves threads behind.
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    const char* const why = dlerror();
    return error(TUTTI_ERR_ENVIRONMENT,
                 "the launcher speaks PMIx, but its library libpmix.so.2 cannot be loaded: {}; install it (Debian: libpmix2) or "
                 "add its folder to LD_LIBRARY_PATH",
                 why == nullptr ? "no reason given" : why);
  }
  if (find(library, "PMIx_Init", &init) && find(library, "PMIx_Finalize", &finalize) && find(library, "PMIx_Put", &put) &&
      find(library, "PMIx_Commit", &commit) && find(library, "PMIx_Get", &get) && find(library, "PMIx_Get_nb", &get_nb) &&
      find(library, "PMIx_Error_string", &error_string)) {
    return Status();
  }
  return error(TUTTI_ERR_ENVIRONMENT, "the libpmix that was found lacks functions of the PMIx standard");
}

/// Answer to a question; lives until both sides have let go of it.
struct Reply {
  std::string value;
  PmixStatus status = kSuccess;
  std::atomic<bool> there{false};
};

void on_value(PmixStatus status, PmixValue* value, void* data) {
  const std::unique_ptr<std::shared_ptr<Reply>> held(static_cast<std::shared_ptr<Reply>*>(data));
  Reply& reply = **held;
  reply.status = status;
  try {
    if (status == kSuccess && value != nullptr && value->type == kString && value->data.string != nullptr) {
      reply.value = value->data.string;
    }
  } catch (...) {  // out of memory, on a thread of somebody else's: asked again
  }
  reply.there.store(true);
}

class PmixBoard final : public Board {
 public:
  PmixBoard(const LaunchInfo& launch, Poller& sleeper) : sleeper_(sleeper), size_(launch.size) {}
  ~PmixBoard() override {
    if (open_) library_.finalize(nullptr, 0);
  }

  Result<bool> post(std::string_view text) override {
    TUTTI_TRY(open());
    std::string copy(text);
    PmixValue value{};
    value.type = kString;
    value.data.string = copy.data();
    PmixStatus outcome = library_.put(kGlobal, kKey, &value);
    if (outcome == kSuccess) outcome = library_.commit();
    if (outcome != kSuccess) return failed("put", outcome);
    return true;
  }

  Result<bool> look(std::string* text) override {
    TUTTI_TRY(open());
    if (!reply_) {
      reply_ = std::make_shared<Reply>();
      PmixProc zero = self_;
      zero.rank = 0;
      auto held = std::make_unique<std::shared_ptr<Reply>>(reply_);
      const PmixStatus asked = library_.get_nb(&zero, kKey, nullptr, 0, on_value, held.get());
      if (asked != kSuccess) {
        reply_.reset();
        return failed("get", asked);
      }
      (void)held.release();  // on_value takes it
    }
    if (!reply_->there.load()) return false;
    if (reply_->status == kSuccess && !reply_->value.empty()) {
      *text = reply_->value;
      return true;
    }
    // Rank 0 has said something else so far, or nothing: ask again at the next look.
    reply_.reset();
    return false;
  }

  void wait(Deadline deadline) override {
    std::vector<uint64_t> ready;
    sleeper_.wait(deadline, &ready);
  }
  void keep(std::string_view text) noexcept override { keep_invitation(text); }
  std::string place() const override { return fmt::format("the PMIx server, namespace {}", self_.nspace); }
  int size() const noexcept override { return size_; }

 private:
  Status open() {
    if (open_) return Status();
    TUTTI_TRY(library_.load());
    const PmixStatus outcome = library_.init(&self_, nullptr, 0);
    if (outcome != kSuccess) return failed("init", outcome);
    open_ = true;
    if (size_ > 0) return Status();
    PmixProc job = self_;
    job.rank = kWildcard;
    PmixValue* value = nullptr;
    const PmixStatus got = library_.get(&job, "pmix.job.size", nullptr, 0, &value);
    if (got != kSuccess || value == nullptr || value->type != kUint32) return failed("get of the job's size", got);
    size_ = static_cast<int>(value->data.uint32);
    return Status();
  }
  Status failed(std::string_view what, PmixStatus outcome) const {
    return error(TUTTI_ERR_ENVIRONMENT, "PMIx {} failed: {} ({}); does libpmix fit the launcher?", what,
                 library_.error_string(outcome), outcome);
  }

  Poller& sleeper_;
  Library library_;
  PmixProc self_{};
  bool open_ = false;
  std::shared_ptr<Reply> reply_;
  int size_;
};

}  // namespace

std::unique_ptr<Board> make_pmix_board(const LaunchInfo& launch, Poller& sleeper) {
  return std::make_unique<PmixBoard>(launch, sleeper);
}

}  // namespace tutti
