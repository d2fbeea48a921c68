// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernels.hpp"

/// From the command line.
tutti::CpuLevel level_under_test();
