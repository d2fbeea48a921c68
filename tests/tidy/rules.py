# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""What tests/tidy/test_tidy.py holds the tree to. docs/architecture.md says why."""

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
# path -> why it may be longer. Keep short.
LONG_FILES_EXCUSED = {"lib/include/tutti/tutti.h": "the whole C ABI, and what documents it, in one place"}
# (path, function) -> why it may be longer.
LONG_FUNCTIONS_EXCUSED = {}

# Folder -> include folders of the library it may see ("tutti": the installed headers). The longest matching folder counts.
# Its own folder, the standard library and the system are free. Tests see everything.
LIBRARY = {"base", "schedule", "kernels", "topology", "transport", "engine", "bootstrap", "select", "comm", "session", "capi"}
MAY_INCLUDE = {
    "lib/include": {"tutti"},
    "lib/base": {"tutti"},
    "lib/schedule": {"tutti", "base"},
    "lib/kernels": {"tutti", "base"},
    "lib/topology": {"tutti", "base"},
    "lib/transport": {"tutti", "base"},
    "algorithms": {"schedule", "base"},
    "lib/select": {"tutti", "base", "schedule"},
    "lib/engine": {"tutti", "base", "schedule", "kernels", "transport"},
    "lib/bootstrap": {"tutti", "base", "transport", "topology"},
    "lib/comm": {"tutti", "base", "schedule", "kernels", "transport", "select", "engine", "bootstrap", "topology"},
    "lib/capi": {"tutti", "base", "comm"},
    "transports": {"tutti"},
    "transports/sim": {"tutti", "sim"},
    "tools": {"tutti", "base", "schedule", "select", "topology", "bootstrap"},
    "bench": {"tutti"},
    "bench/kernels": {"tutti", "kernels", "base"},
    "examples": {"tutti"},
    "tests/conformance": {"tutti", "base", "transport"},
}

LIB = ("lib/", "algorithms/", "transports/")
CODE = LIB + ("tools/", "bench/", "examples/")
ALL = CODE + ("tests/",)
# A call of a free function: not a member, not another class's, and not a declaration ("Outcome system(").
CALL = r"(?:(?<=return )|(?<![\w:.>])(?<!\w ))(?:std::|::)?(?:%s)\s*\("

# name, pattern (on code without comments and strings), where, excused files, why
BANNED = [
    ("environment", r"\b(?:secure_)?getenv\b", LIB, {"lib/bootstrap/environment.cpp"},
     "settings come through base/config; launchers' variables through bootstrap/environment.cpp"),
    ("environ", r"\benviron\b", LIB, {"lib/capi/creation_api.cpp"}, "one place reads the TUTTI_ variables"),
    ("setenv", CALL % "setenv|putenv|unsetenv|clearenv", CODE, set(), "not thread-safe, and the environment is not ours"),
    ("print", CALL % "v?f?printf|puts|putchar|perror" + r"|std::c(?:out|err|log)\b", LIB, set(), "a library speaks through base/log"),
    ("unbounded", CALL % "strcpy|strcat|v?sprintf|gets|strtok", CODE, set(), "no bound"),
    ("shell", CALL % "system|popen", ALL, set(), "no shell"),
    ("signals", CALL % "signal|sigaction", LIB, set(), "signal handlers belong to the application"),
    ("fence", r"\batomic_thread_fence\b", ALL, set(), "ThreadSanitizer does not see fences; order the accesses themselves"),
    ("regex", r"\bstd::w?regex\b", ALL, set(), "slow, and recursion without a bound"),
    ("random", CALL % "s?rand|drand48", ALL, set(), "base/clock.hpp has Random; tests seed a generator"),
    ("sleep", CALL % "usleep|nanosleep" + r"|(?<!\w)::sleep\s*\(|\bsleep_(?:for|until)\b", LIB, set(), "waits are on descriptors, with a deadline"),
    ("exit", CALL % "exit|_exit|quick_exit|abort|terminate", LIB, {"lib/base/clock.cpp"}, "a library does not end the process"),
    ("shm_open", CALL % "shm_open|shmget", ALL, set(), "leaves names behind; memfd does not"),
    ("handles", r"^struct tutti_tp_(?:endpoint|channel)\b(?!;)", ("transports/",), set(),
     "several transports share a library: what a handle points to has a name in the transport's own namespace"),
    ("goto", r"\bgoto\b", ALL, set(), "braided control flow"),
]
# On include lines.
BANNED_INCLUDES = [
    (r"<iostream>", LIB, set(), "static constructors, and nobody prints here"),
    (r"<regex>", ALL, set(), "see std::regex"),
    (r"[<\"]spdlog/", ALL, {"lib/base/log_spdlog.cpp"}, "one file knows spdlog"),
]
# On whole lines of every text file, comments included.
BANNED_WORDS = [
    (r"\b(?:TODO|FIXME|XXX)\b", "finish it, or write it down as an issue"),
    (r"\bnot (?:yet )?implemented\b", "there are no stubs here"),
    (r"(?<![\w.$}/-])/(?:work|root|home/\w+)/", "a path of one machine"),
]
