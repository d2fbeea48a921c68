// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "tutti/transport.h"

namespace tutti {

/// A transport whose table was checked: every function that its caps oblige it to have is there.
struct LoadedTransport {
  const tutti_tp_table_t* table;  ///< static in its plugin, which is never unloaded
  std::string origin;             ///< "built in", or the plugin's file
};

/// The transports that a context may use, in order of preference: plugins of the directories in the setting
/// `transport_path` (files tutti_<name>.so and libtutti_<name>.so, by directory, then by name), then the built-in ones. Of
/// two with one name the first counts, so that a plugin replaces the built-in transport of its name.
///
/// A plugin that cannot be used is skipped with one line of level warn. The setting `transports` restricts and orders the
/// result; a name in it that there is not is TUTTI_ERR_CONFIG, and the message lists what there is.
Result<std::vector<LoadedTransport>> load_transports(const Config& config, const Log& log,
                                                     std::span<const tutti_transport_entry_t> built_in);

}  // namespace tutti
