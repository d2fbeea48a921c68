// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tutti/tutti.h"

namespace tutti {

/// Releases the handles of messages that were claimed on this communicator and never received. Before it is destroyed.
void release_messages(tutti_comm_t comm);

}  // namespace tutti
