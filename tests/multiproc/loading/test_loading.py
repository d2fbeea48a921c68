#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""libtutti opened and closed at run time: test_loading.py LOADER LIBRARY USER_PLUGIN TRANSPORT_PLUGINS [WORD...]

TRANSPORT_PLUGINS: the plugins' files, colon-separated; may be empty."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launcher"))
import harness  # noqa: E402
from harness import Skip, expect  # noqa: E402

LIBRARY = USER_PLUGIN = ""
TRANSPORT_PLUGINS = []


def good(bench, *args, env=None):
    result = bench.run(LIBRARY, *args, env=env, timeout=55)
    expect(result.code == 0 and result.out == "done\n", args, result)
    return result


def opened_and_closed_100_times(bench):
    expect(good(bench, "cycles", "100").err == "", "something was said")


def communicators_come_and_go(bench):
    for transports in ("shm", "tcp", "shm,tcp"):
        good(bench, "again", "20", transports)


def handles_that_were_destroyed(bench):
    good(bench, "handles")


def built_in_transports(bench):
    for transports in ("shm", "tcp"):
        good(bench, "transports", transports)


def transport_plugins(bench):
    if not TRANSPORT_PLUGINS:
        raise Skip("built without plugins")
    for plugin in TRANSPORT_PLUGINS:
        name = os.path.basename(plugin).split("_")[1].split(".")[0]
        result = good(bench, "transports", name, os.path.dirname(plugin), env={"TUTTI_LOG_LEVEL": "debug"})
        expect(plugin in result.err, "it was not the plugin:", result)


def another_s_plugin_that_uses_it(bench):
    good(bench, "plugin", USER_PLUGIN, "20")


CASES = [opened_and_closed_100_times, communicators_come_and_go, handles_that_were_destroyed, built_in_transports, transport_plugins,
         another_s_plugin_that_uses_it]


def main():
    global LIBRARY, USER_PLUGIN, TRANSPORT_PLUGINS
    loader, LIBRARY, USER_PLUGIN = (os.path.abspath(path) for path in sys.argv[1:4])
    TRANSPORT_PLUGINS = [os.path.abspath(path) for path in sys.argv[4].split(":") if path]
    return harness.run_cases(loader, [(case.__name__, case) for case in CASES], sys.argv[5:])


if __name__ == "__main__":
    sys.exit(main())
