#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Header, symbol map and libraries name the same functions; nothing else is exported; names carry the versions they should."""
import argparse
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def declared(header):
    return set(re.findall(r"\bTUTTI_API\s[^;{]*?\b(tutti_\w+)\s*\(", header))


def undecorated(header):
    """Functions declared without TUTTI_API: they would be missing from the library without anybody noticing."""
    names = set(re.findall(r"^(?!.*TUTTI_API|typedef|\s).*\b(tutti_\w+)\s*\([^;]*\)\s*;", header, flags=re.M))
    return names - declared(header)


def mapped(text):
    """Names by version node. A wildcard among the globals is refused."""
    nodes = {}
    for node, body in re.findall(r"(\w+)\s*\{(.*?)\}", re.sub(r"#.*", "", without_comments(text)), flags=re.S):
        body = re.sub(r"local\s*:\s*\*\s*;", "", body)
        body = re.sub(r"\b(global|local)\s*:", "", body)
        nodes[node] = {name.strip() for name in body.split(";") if name.strip()}
    return nodes


def exported(library):
    """(name, version node) of what the dynamic linker sees."""
    names = set()
    for line in output_of("nm", "-D", "--defined-only", library).splitlines():
        _, kind, symbol = line.split(None, 2)
        if kind != "A":  # the version nodes themselves
            name, _, version = symbol.partition("@")
            names.add((name, version.lstrip("@")))
    return names


def defined_in(archive):
    """Global functions of the archive, as nm gives them: T for code, W for templates and inline functions."""
    return {line.split()[2] for line in output_of("nm", "--defined-only", "-g", archive).splitlines() if re.match(r"\w+ T ", line)}


def macro(header, name):
    found = re.search(rf"^#define {name} (\d+)$", header, flags=re.M)
    return found.group(1) if found else sys.exit(f"tutti.h defines no {name}")


def compare(what, expected, found):
    for name in sorted(expected - found):
        yield f"{what}: missing {name}"
    for name in sorted(found - expected):
        yield f"{what}: unexpected {name}"


def main():
    parser = argparse.ArgumentParser()
    for option in ["header", "map", "shared", "static", "version"]:
        parser.add_argument(f"--{option}", required=True)
    options = parser.parse_args()
    with open(options.header, encoding="utf-8") as file:
        header = without_comments(file.read())
    with open(options.map, encoding="utf-8") as file:
        nodes = mapped(file.read())
    names = declared(header)
    problems = [] if len(names) > 20 else [f"only {len(names)} functions found in tutti.h"]
    problems += [f"tutti.h: {name} is declared without TUTTI_API" for name in undecorated(header)]
    problems += [f"symbol map: pattern {name} instead of names" for node in nodes.values() for name in node if "*" in name]
    problems += compare("symbol map against header", names, set().union(*nodes.values()))
    expected = {(name, node) for node, members in nodes.items() for name in members}
    problems += compare("shared library against map", expected, exported(options.shared))
    problems += compare("static library against header", names, defined_in(options.static) & names)

    abi = macro(header, "TUTTI_ABI_VERSION")
    soname = re.search(r"SONAME.*\[(.*)\]", output_of("readelf", "-d", options.shared))
    if soname is None or soname.group(1) != f"libtutti.so.{abi}":
        problems.append(f"soname {soname and soname.group(1)} is not libtutti.so.{abi} (TUTTI_ABI_VERSION)")
    version = ".".join(macro(header, f"TUTTI_VERSION_{part}") for part in ["MAJOR", "MINOR", "PATCH"])
    if version != options.version:
        problems.append(f"tutti.h says version {version}, the build {options.version}")
    for problem in problems:
        print(problem)
    print(f"{len(names)} functions, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
