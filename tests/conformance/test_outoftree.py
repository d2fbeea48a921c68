#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the transport in outoftree/ away from Tutti's tree, against the installed headers alone, and runs the
conformance suite on it as a plugin.

usage: test_outoftree.py SOURCE_FOLDER BUILD_ROOT CONFORMANCE [ARGUMENTS OF THE SUITE...]
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*command):
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nfailed with {done.returncode}:\n{done.stdout}")
    return done.stdout


def main():
    source, build_root, suite = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="tutti-outoftree-") as folder:
        place = pathlib.Path(folder)
        run("meson", "install", "-C", build_root, "--no-rebuild", "--tags", "devel", "--destdir", place / "installed")
        headers = list((place / "installed").rglob("tutti/transport.h"))
        if len(headers) != 1:
            sys.exit(f"expected one installed transport.h, found {headers}")
        # A copy, so that nothing of Tutti's tree is near it.
        shutil.copytree(source, place / "source")
        run("meson", "setup", place / "build", place / "source", f"-Dtutti_include={headers[0].parent.parent}")
        run("meson", "compile", "-C", place / "build")
        plugins = list((place / "build").glob("libtutti_queue.so"))
        if len(plugins) != 1:
            sys.exit(f"no plugin in {place / 'build'}")
        print(run(suite, "--transport", "queue", "--plugins", place / "build", *sys.argv[4:]))


if __name__ == "__main__":
    main()
