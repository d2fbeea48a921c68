#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Programs outside the tree build against Tutti and run.

usage: test_installed.py pkg-config|cmake|subproject|devenv SOURCE_ROOT BUILD_ROOT

pkg-config and cmake use an installed tree that was moved to another place after installation; subproject builds Tutti as part
of an embedder's Meson project. Exit status 77 if the build tool of that name is not installed.
"""
import os
import pathlib
import shutil
import shlex
import subprocess
import sys
import tempfile

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]


def run(*command, env=None, **options):
    """Runs a command; its words are shown only if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, env=env, **options)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n")
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, command))}")
    return done.stdout


class Installed:
    """A prefix that was installed somewhere and then moved."""

    def __init__(self, build, folder):
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder / "first")
        places = [path.parents[2] for path in (folder / "first").rglob("include/tutti/tutti.h")]
        if len(places) != 1:
            sys.exit(f"tutti.h is installed {len(places)} times")
        self.prefix = folder / "moved here"
        places[0].rename(self.prefix)
        shutil.rmtree(folder / "first")
        self.library = self.only("libtutti.so").parent
        self.launcher = self.only("tuttirun")
        self.env = dict(os.environ, LD_LIBRARY_PATH=str(self.library), PKG_CONFIG_PATH=str(self.only("tutti.pc").parent))

    def only(self, name):
        found = list(self.prefix.rglob(name))
        return found[0] if len(found) == 1 else sys.exit(f"{name} is installed {len(found)} times below {self.prefix}")

    def job(self, ranks, program):
        return run(self.launcher, "-np", ranks, "--timeout", "60", program, env=self.env)


def expect_embed(text, ranks):
    lines = [line for line in text.splitlines() if "20 sums right" in line]
    if len(lines) != ranks:
        sys.exit(f"embed: {len(lines)} of {ranks} ranks reported:\n{text}")


def by_pkg_config(source, build, folder):
    installed = Installed(build, folder)

    def compile_c(program, *more):
        out = folder / program
        run("cc", *STRICT, source / "examples" / program / f"{program}.c", *more, "-o", out, env=installed.env)
        return out

    def flags(*options):
        return shlex.split(run("pkg-config", *options, "tutti", env=installed.env))

    shared = flags("--cflags", "--libs")
    if not any("moved here" in flag for flag in shared):
        sys.exit(f"pkg-config speaks of the first place: {shared}")
    installed.job(2, compile_c("hello", *shared))
    embed = compile_c("embed", *shared)
    expect_embed(run(embed, env=installed.env), 1)
    expect_embed(installed.job(3, embed), 3)

    # The static library: no libtutti.so beside the program when it runs.
    rest = [flag for flag in flags("--static", "--libs") if flag != "-ltutti"]
    embed = compile_c("embed", "-DTUTTI_STATIC", *flags("--cflags"), installed.only("libtutti.a"), *rest)
    installed.env["LD_LIBRARY_PATH"] = ""
    expect_embed(installed.job(2, embed), 2)


def by_cmake(source, build, folder):
    if shutil.which("cmake") is None:
        print("cmake is not installed: skipped")
        return 77
    installed = Installed(build, folder)
    out = folder / "cmake"
    run("cmake", "-S", source / "examples" / "embed", "-B", out, f"-DCMAKE_PREFIX_PATH={installed.prefix}")
    run("cmake", "--build", out)
    for program in ["embed", "embed_static"]:
        expect_embed(installed.job(2, out / program), 2)
    return 0


PARENT = """
project('parent', 'c', default_options: ['c_std=c99', 'werror=true', 'warning_level=2'])
executable('embed', 'embed.c', dependencies: dependency('tutti', fallback: 'tutti'))
"""


def by_subproject(source, build, folder):
    parent = folder / "parent"
    (parent / "subprojects").mkdir(parents=True)
    (parent / "subprojects" / "tutti").symlink_to(source)
    shutil.copy(source / "examples" / "embed" / "embed.c", parent)
    (parent / "meson.build").write_text(PARENT, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "PKG_CONFIG_PATH"}
    # Unoptimised: what is built is the question, and half of the time.
    run("meson", "setup", "-Doptimization=0", "--force-fallback-for=tutti", folder / "out", parent, env=env)
    run("ninja", "-C", folder / "out", "embed", env=env)
    expect_embed(run(folder / "out" / "embed", env=env), 1)
    expect_embed(run(build / "tools" / "tuttirun" / "tuttirun", "-np", 2, "--timeout", "60", folder / "out" / "embed", env=env), 2)


def by_devenv(_source, build, _folder):
    found = run("meson", "devenv", "-C", build, "sh", "-c", "command -v tuttirun && command -v tutti-perf && echo $LD_LIBRARY_PATH")
    if not all(str(build / part) in found for part in ["tools/tuttirun/tuttirun", "bench/tutti-perf/tutti-perf", "lib/capi"]):
        sys.exit(f"meson devenv does not know the programs: {found}")


def main():
    kinds = {"pkg-config": by_pkg_config, "cmake": by_cmake, "subproject": by_subproject, "devenv": by_devenv}
    with tempfile.TemporaryDirectory(prefix="tutti-installed-") as folder:
        return kinds[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), pathlib.Path(folder)) or 0


if __name__ == "__main__":
    sys.exit(main())
