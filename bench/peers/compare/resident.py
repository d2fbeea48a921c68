# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""A job of one contender that stays, asleep while another is measured. bench/peers/channel.hpp has the other end."""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time


class PeerError(Exception):
    """A contender that did not start, died, hung or said no. The text says who and why."""


class Lacking(PeerError):
    """The library has no such collective, and goes on."""


def new_folder():
    """Where a job's processes find what they share: in memory, if there is such a file system."""
    return pathlib.Path(tempfile.mkdtemp(prefix="tutti-peers.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))


def launch(name, ranks, launcher, line, variables, log):
    """[subprocess.Popen]: the launcher, or every rank where there is none. PeerError, with nothing left, if one cannot start."""
    line = [word.replace("{ranks}", str(ranks)) for word in launcher] + line
    processes = []
    for rank in range(1 if launcher else ranks):
        own = {} if launcher else {"PEERS_RANK": str(rank), "PEERS_RANKS": str(ranks)}
        try:
            processes.append(subprocess.Popen(line, env={**os.environ, **variables, **own}, stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log, start_new_session=True))
        except OSError as error:
            end(processes)
            raise PeerError(f"{name}: {line[0]}: {error.strerror}") from error
    return processes


def end(processes):
    """Ends launched processes and all that they have started."""
    for process in processes:
        for wanted in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, wanted)
                process.wait(3)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def first_words(log):
    """The first lines that say something."""
    log.seek(0)
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip(" -")]
    return "; ".join(lines[:3])


class Resident:
    """Started by start(); alive when wait_ready() has returned."""

    def __init__(self, name, ranks, cpus, program, launcher, environment, argument=""):
        self.name, self.ranks, self.version = name, ranks, ""
        self.folder = new_folder()
        self.commands = []
        for rank in range(ranks):
            os.mkfifo(self.folder / f"rank-{rank}")
            # For reading too, so that neither side waits for the other to open it. Closing ends the rank.
            self.commands.append(os.open(self.folder / f"rank-{rank}", os.O_RDWR))
        os.mkfifo(self.folder / "answers")
        (self.folder / "board").write_bytes(bytes(4096))
        self.answers = os.open(self.folder / "answers", os.O_RDWR | os.O_NONBLOCK)  # also for writing: no end of file between ranks
        self.unread, self.processes = b"", []
        variables = {**environment, "PEERS_FOLDER": str(self.folder), "PEERS_CPUS": ",".join(map(str, cpus))}
        self.log = open(self.folder / "log", "w+b")
        try:
            self.processes = launch(name, ranks, launcher, [program] + ([argument] if argument else []), variables, self.log)
        except PeerError:
            self.stop()
            raise

    def tail(self):
        return first_words(self.log) or "it printed nothing"

    def gather(self, timeout_s):
        """One line of each rank."""
        until, lines = time.monotonic() + timeout_s, {}
        while len(lines) < self.ranks:
            while b"\n" in self.unread and len(lines) < self.ranks:
                line, self.unread = self.unread.split(b"\n", 1)
                answer = json.loads(line)
                lines[answer["rank"]] = answer
            if len(lines) == self.ranks:
                break
            if select.select([self.answers], [], [], 0.5)[0]:
                self.unread += os.read(self.answers, 65536)
            elif any(process.poll() is not None for process in self.processes):
                raise PeerError(f"{self.name}, {self.ranks} ranks: ended: {self.tail()}")
            elif time.monotonic() > until:
                raise PeerError(f"{self.name}, {self.ranks} ranks: no answer within {timeout_s:.0f} s: {self.tail()}")
        failed = [answer["error"] for answer in lines.values() if "error" in answer]
        if failed:
            raise PeerError(f"{self.name}, {self.ranks} ranks: {failed[0]}")
        lacks = [answer["lacks"] for answer in lines.values() if "lacks" in answer]
        if lacks:
            raise Lacking(f"{self.name}: {lacks[0]}")
        return [lines[rank] for rank in sorted(lines)]

    def wait_ready(self, timeout_s=60):
        answers = self.gather(timeout_s)
        if answers[0]["ranks"] != self.ranks:
            raise PeerError(f"{self.name}: {answers[0]['ranks']} ranks found each other, not {self.ranks}")
        self.version = " ".join(answers[0]["version"].split())

    def ask(self, command, timeout_s=30):
        """The answers of all ranks to one command; all are asleep again, or about to be."""
        for fd in self.commands:
            os.write(fd, (command + "\n").encode())
        return self.gather(timeout_s)

    def stop(self):
        """Idempotent; leaves nothing behind."""
        for fd in self.commands:
            os.close(fd)
        self.commands = []
        until = time.monotonic() + 5
        for process in self.processes:
            try:
                process.wait(max(0.01, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        end(self.processes)
        self.processes = []
        if self.answers is not None:
            os.close(self.answers)
            self.answers = None
            self.log.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def busy_cpus(over_s=0.3):
    """CPUs' worth of time that others use now; None where /proc does not say."""
    def read():
        fields = [int(word) for word in pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
        return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
    try:
        before = read()
        time.sleep(over_s)
        return (read() - before) / over_s
    except (OSError, ValueError, IndexError):
        return None


class Probe(Resident):
    """Distance of two CPUs, in ns of a cache line's round trip; 0 where there is one CPU."""

    def __init__(self, program, cpus):
        self.alone = len(cpus) < 2
        if not self.alone:
            super().__init__("probe", 1, cpus[:2], program, [], {})
            self.wait_ready()

    def distance_ns(self):
        return 0.0 if self.alone else self.ask("distance", 10)[0]["ns"][0]

    def stop(self):
        if not self.alone:
            super().stop()
