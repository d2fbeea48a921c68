// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/status.hpp"
#include "base/types.hpp"
#include "comm/arguments.hpp"
#include "tutti/tutti.h"

namespace tutti {

/// Of the library or of the caller; the latter move as bytes.
struct ElementType {
  DType dtype = DType::byte;
  uint32_t bytes = 1;
};
Result<ElementType> find_type(tutti_dtype_t dtype);

/// Sets dtype and element_bytes of a call.
Status take_type(tutti_dtype_t dtype, CollectiveArguments* arguments);

/// Sets what the operation says of a call, or refuses it for this type. After take_type.
Status take_operation(tutti_op_t op, tutti_dtype_t dtype, CollectiveArguments* arguments);

}  // namespace tutti
