// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Element types and operations of the caller's. Their numbers are short forms of handles, above all numbers of the library.
#include "user_types.hpp"

#include <memory>

#include "call.hpp"
#include "handles.hpp"

namespace tutti {
namespace {

struct UserType {
  uint32_t bytes;
};

struct UserOp {
  tutti_op_function_t function;  ///< nullptr: a scaled sum
  void* user;
  bool commutes;
  double factor;
};

bool is_known(tutti_dtype_t dtype) { return static_cast<uint32_t>(dtype) < kDTypeCount; }
bool is_known_op(tutti_op_t op) { return static_cast<uint32_t>(op) < kOpCount; }

template <class Object>
Result<int32_t> keep(HandleKind kind, const Object& object, const char* what) {
  auto kept = std::make_unique<Object>(object);
  void* handle = handles().insert(kind, kept.get());
  const std::optional<int32_t> number = HandleTable::short_form(handle);
  if (!number) {
    handles().remove(kind, handle);
    return error(TUTTI_ERR_RESOURCE, "too many handles for another {}: destroy what is not used", what);
  }
  static_cast<void>(kept.release());
  return *number;
}

template <class Object>
Status destroy(HandleKind kind, int32_t number, tutti_status_t code, const char* what) {
  const void* handle = handles().long_form(kind, number);
  auto* object = handle ? static_cast<Object*>(handles().remove(kind, handle)) : nullptr;
  if (!object) return error(code, "{} is no {} of the caller's: destroyed already?", number, what);
  delete object;
  return Status();
}

}  // namespace

Result<ElementType> find_type(tutti_dtype_t dtype) {
  if (dtype < HandleTable::kFirstShortForm) {
    const Result<DType> known = to_dtype(dtype);
    if (!known) return known.status();
    return ElementType{*known, static_cast<uint32_t>(size_bytes(*known))};
  }
  const auto* type = static_cast<const UserType*>(handles().find(HandleKind::type, handles().long_form(HandleKind::type, dtype)));
  if (!type) return error(TUTTI_ERR_TYPE, "data type {} is not one of the caller's that exists: destroyed already?", dtype);
  return ElementType{DType::byte, type->bytes};
}

Status take_type(tutti_dtype_t dtype, CollectiveArguments* arguments) {
  // The usual case, in few instructions.
  if (is_known(dtype)) {
    arguments->dtype = static_cast<DType>(dtype);
    arguments->element_bytes = static_cast<uint32_t>(size_bytes(arguments->dtype));
    return Status();
  }
  const Result<ElementType> type = find_type(dtype);
  if (!type) return type.status();
  arguments->dtype = type->dtype;
  arguments->element_bytes = type->bytes;
  return Status();
}

Status take_operation(tutti_op_t op, tutti_dtype_t dtype, CollectiveArguments* arguments) {
  if (is_known(dtype) && is_known_op(op) && defined(static_cast<DType>(dtype), static_cast<Op>(op))) {
    arguments->op = static_cast<Op>(op);
    return Status();
  }
  const bool own_type = dtype >= HandleTable::kFirstShortForm;
  if (op < HandleTable::kFirstShortForm) {
    const Result<Op> known = to_op(op);
    if (!known) return known.status();
    if (own_type) {
      return error(TUTTI_ERR_OP, "{} is not defined for a type of the caller's; use an operation of tutti_op_create",
                   name(*known));
    }
    arguments->op = *known;
    return check_defined(arguments->dtype, *known);
  }
  const auto* own = static_cast<const UserOp*>(handles().find(HandleKind::op, handles().long_form(HandleKind::op, op)));
  if (!own) return error(TUTTI_ERR_OP, "operation {} is not one of the caller's that exists: destroyed already?", op);
  arguments->op = Op::sum;
  if (own->function == nullptr) {
    if (own_type || !can_scale(arguments->dtype)) {
      return error(TUTTI_ERR_OP, "a scaled sum is for floats and complex numbers, not for {}",
                   own_type ? "a type of the caller's" : name(arguments->dtype));
    }
    arguments->factor = own->factor;
    arguments->scaled = true;
    return Status();
  }
  arguments->user_fold = {own->function, own->user, dtype, arguments->element_bytes};
  arguments->ordered = !own->commutes;
  return Status();
}

}  // namespace tutti

using namespace tutti;

extern "C" tutti_status_t tutti_type_create(size_t size_bytes, tutti_dtype_t* dtype) {
  return entry("tutti_type_create", [&]() -> Status {
    if (!dtype) return null_argument("dtype");
    if (size_bytes < 1 || size_bytes > TUTTI_MAX_TYPE_BYTES) {
      return error(TUTTI_ERR_ARGUMENT, "size_bytes is {}; an element has 1 to {} bytes: make a larger one of several", size_bytes,
                   TUTTI_MAX_TYPE_BYTES);
    }
    const Result<int32_t> number = keep(HandleKind::type, UserType{static_cast<uint32_t>(size_bytes)}, "type");
    if (!number) return number.status();
    *dtype = *number;
    return Status();
  });
}

extern "C" tutti_status_t tutti_type_destroy(tutti_dtype_t dtype) {
  return entry("tutti_type_destroy", [&] { return destroy<UserType>(HandleKind::type, dtype, TUTTI_ERR_TYPE, "data type"); });
}

extern "C" tutti_status_t tutti_op_create(tutti_op_function_t function, int commutes, void* user, tutti_op_t* op) {
  return entry("tutti_op_create", [&]() -> Status {
    if (!function) return null_argument("function");
    if (!op) return null_argument("op");
    const Result<int32_t> number = keep(HandleKind::op, UserOp{function, user, commutes != 0, 1}, "operation");
    if (!number) return number.status();
    *op = *number;
    return Status();
  });
}

extern "C" tutti_status_t tutti_op_create_scaled_sum(double factor, tutti_op_t* op) {
  return entry("tutti_op_create_scaled_sum", [&]() -> Status {
    if (!op) return null_argument("op");
    const Result<int32_t> number = keep(HandleKind::op, UserOp{nullptr, nullptr, true, factor}, "operation");
    if (!number) return number.status();
    *op = *number;
    return Status();
  });
}

extern "C" tutti_status_t tutti_op_destroy(tutti_op_t op) {
  return entry("tutti_op_destroy", [&] { return destroy<UserOp>(HandleKind::op, op, TUTTI_ERR_OP, "operation"); });
}
