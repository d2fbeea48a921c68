# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Runs test cases in this process, with a watchdog, and finds what a job left behind."""

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

CASE_SECONDS = 60
MARK = "TUTTITEST_MARK"


class Skip(Exception):
    pass


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"code {self.code}, {self.seconds:.2f}s\n--stdout--\n{self.out[-3000:]}\n--stderr--\n{self.err[-3000:]}"


class Bench:
    """What a case works with: the program under test, a folder of its own, a mark in the environment of all it starts."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.env = dict(os.environ)
        for name in list(self.env):
            if name.startswith("TUTTI_"):
                del self.env[name]
        self.env[MARK] = self.mark

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def start(self, *args, prefix=(), env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        full = dict(self.env, **(env or {}))
        return subprocess.Popen([*prefix, self.program, *args], env=full, cwd=self.folder, **options)

    def start_command(self, command, env=None):
        """Something else than the program under test."""
        return subprocess.Popen(command, env=dict(self.env, **(env or {})), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *args, timeout=30, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        began = time.monotonic()
        job = self.start(*args, **options)
        try:
            out, err = job.communicate(input=input, timeout=timeout)
        except subprocess.TimeoutExpired:
            dump_processes(self.marked())
            job.kill()
            raise AssertionError(f"{args} did not end in {timeout}s")
        text = lambda data: (data or b"").decode(errors="replace")
        return Result(job.returncode, text(out), text(err), time.monotonic() - began)

    def finish(self, job, timeout=30):
        began = time.monotonic()
        try:
            out, err = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            dump_processes(self.marked())
            job.kill()
            raise AssertionError(f"did not end in {timeout}s")
        return Result(job.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace"), time.monotonic() - began)

    def marked(self):
        """Processes with our mark, zombies included: whatever a job of this case still has."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
        return found

    def gone_within(self, seconds):
        return wait_for(lambda: not self.marked(), seconds)


def wait_for(condition, seconds):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.01)


def dump_processes(pids):
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode(errors="replace")
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            with open(f"/proc/{pid}/wchan") as file:
                where = file.read()
            print(f"    process {pid} {state} in {where}: {words}", flush=True)
        except OSError:
            pass


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def run_cases(program, cases, only):
    passed, failed, skipped = 0, 0, 0
    for name, case in cases:
        if only and not any(word in name for word in only):
            continue
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            bench = Bench(program, folder)
            began = time.monotonic()
            try:
                case(bench)
                expect(bench.gone_within(3), "processes left behind:", bench.marked())
                passed += 1
                print(f"PASS: {name} ({time.monotonic() - began:.2f}s)", flush=True)
            except Skip as reason:
                skipped += 1
                print(f"SKIP: {name}: {reason}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL: {name}", flush=True)
                traceback.print_exc(file=sys.stdout)
                dump_processes(bench.marked())
            for pid in bench.marked():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        faulthandler.cancel_dump_traceback_later()
    print(f"tutti-test: passed={passed} failed={failed} skipped={skipped}", flush=True)
    return 1 if failed else 0
