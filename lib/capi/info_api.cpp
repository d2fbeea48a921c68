// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Version, names of statuses, types and operations, configuration.
#include <unistd.h>

#include "base/config.hpp"
#include "base/types.hpp"
#include "call.hpp"

using namespace tutti;

extern "C" tutti_status_t tutti_get_version(int* major, int* minor, int* patch) {
  if (major) *major = TUTTI_VERSION_MAJOR;
  if (minor) *minor = TUTTI_VERSION_MINOR;
  if (patch) *patch = TUTTI_VERSION_PATCH;
  return TUTTI_OK;
}

extern "C" const char* tutti_status_string(tutti_status_t status) { return status_name(status); }

namespace {

bool known_dtype(tutti_dtype_t dtype) { return dtype >= 0 && dtype < static_cast<tutti_dtype_t>(kDTypeCount); }

}  // namespace

extern "C" size_t tutti_dtype_size_bytes(tutti_dtype_t dtype) {
  return known_dtype(dtype) ? size_bytes(static_cast<DType>(dtype)) : 0;
}

extern "C" const char* tutti_dtype_name(tutti_dtype_t dtype) {
  return known_dtype(dtype) ? c_name(static_cast<DType>(dtype)) : "unknown";
}

extern "C" const char* tutti_op_name(tutti_op_t op) {
  return op >= 0 && op < static_cast<tutti_op_t>(kOpCount) ? c_name(static_cast<Op>(op)) : "unknown";
}

extern "C" tutti_status_t tutti_config_create(tutti_config_t* config) {
  return entry("tutti_config_create", [&]() -> Status {
    if (!config) return null_argument("config");
    auto created = std::make_unique<ConfigObject>(ConfigObject{Config(), ::getpid()});
    *config = static_cast<tutti_config_t>(handles().insert(HandleKind::config, created.get()));
    created.release();
    return Status();
  });
}

extern "C" tutti_status_t tutti_config_set(tutti_config_t config, const char* name, const char* value) {
  return entry("tutti_config_set", [&]() -> Status {
    Result<ConfigObject*> found = find_config(config);
    if (!found) return found.status();
    if (!name) return null_argument("name");
    if (!value) return null_argument("value");
    return (*found)->config.set(name, value);
  });
}

extern "C" tutti_status_t tutti_config_destroy(tutti_config_t config) {
  return entry("tutti_config_destroy", [&]() -> Status {
    Result<ConfigObject*> found = find_config(config);
    if (!found) return found.status();
    delete static_cast<ConfigObject*>(handles().remove(HandleKind::config, config));
    return Status();
  });
}
