# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""What a job listens on, strangers who come to its ports, and a resolver that does not answer."""

import contextlib
import os
import random
import re
import socket
import threading
import time

from harness import expect, wait_for
from hosts import LOOPBACK, listeners

JOB = SLOW_RESOLVER = ""
SECRET = "a secret of this test"
HELLOS = [
    random.Random(1).randbytes(200_000),
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    bytes.fromhex("16030100c8010000c40303") + bytes(100),  # a TLS client
    b"\xff\xff\xff\xff" * 4,
    b"TuttiTCP" + b"\xff" * 200,
    b"TuttiTCP",  # half a greeting
    b"",
]


def ranks_of(bench):
    def is_job(pid):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(JOB)
    return [pid for pid in bench.marked() if is_job(pid)]


def peak_kib(pid):
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{pid}/status").read())
        return int(found.group(1)) if found else 0
    return 0


class Strangers:
    """Comes to every port that the job listens on, again and again, says something else each time, and stays."""

    def __init__(self, bench, ports=None, idle=10):
        self.bench, self.ports, self.idle = bench, ports, idle
        self.held, self.visits, self.peak, self.seen = [], 0, {}, set()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for one in self.held:
            one.close()

    def visit(self, address, words):
        with contextlib.suppress(OSError):
            one = socket.create_connection(address, 0.2)
            one.settimeout(0.05)
            self.held.append(one)
            self.visits += 1
            if words:
                one.sendall(words)

    def run(self):
        while not self.stop.is_set():
            pids = self.bench.marked()
            found = {("127.0.0.1", port) for _, port in listeners(pids)} if self.ports is None else self.ports
            for address in found:
                if address not in self.seen:
                    for _ in range(self.idle):
                        self.visit(address, b"")
                self.seen.add(address)
                for words in HELLOS:
                    self.visit(address, words)
            for pid in ranks_of(self.bench):
                self.peak[pid] = max(self.peak.get(pid, 0), peak_kib(pid))
            while len(self.held) > 300:
                self.held.pop(0).close()
            self.stop.wait(0.02)


def only_loopback_for_a_local_job(bench):
    for transports in ("shm", "tcp", "shm,tcp"):
        running = bench.start("-np", "4", JOB, "forever", env={"TUTTI_TRANSPORTS": transports})
        expect(running.stdout.readline().strip() == b"running", transports)
        found = listeners(bench.marked())
        expect({address for address, _ in found} <= LOOPBACK, transports, found)
        # The launcher's one rendezvous, and one a rank.
        expect(len(found) <= 5 and (len(found) >= 4 or transports == "shm"), transports, found)
        running.terminate()
        bench.finish(running)


def strangers_in_the_steady_state(bench):
    for transports, count in (("tcp", 4000), ("shm,tcp", 50000)):
        peaks = []
        for hostile in (False, True):
            strangers = Strangers(bench, None if hostile else set())
            with strangers:
                # Again, if a fast job was over before enough of them came.
                give_up = time.monotonic() + 60
                while True:
                    result = bench.run("-np", "3", JOB, "loop", str(count), "8000", env={"TUTTI_TRANSPORTS": transports})
                    expect(result.code == 0 and "seconds" in result.out, transports, hostile, result)
                    if not hostile or strangers.visits > 50 or time.monotonic() > give_up:
                        break
            expect(not hostile or (len(strangers.seen) >= 3 and strangers.visits > 50), strangers.seen, strangers.visits)
            peaks.append(max(strangers.peak.values()))
        print(f"    {transports}: {strangers.visits} visits, {peaks[1] - peaks[0]} KiB more at the peak")
        expect(peaks[1] - peaks[0] < 8192, peaks)


def start_by_hand(bench, rank, size, port, mode="create", **env):
    return bench.start_command([JOB, mode], env={"TUTTI_RANK": str(rank), "TUTTI_SIZE": str(size), "TUTTI_SECRET": SECRET,
                                                 "TUTTI_RENDEZVOUS": f"tcp://127.0.0.1:{port}", **env})


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def strangers_during_the_start(bench):
    port = free_port()
    started = [start_by_hand(bench, rank, 4, port, TUTTI_TRANSPORTS="tcp") for rank in range(3)]
    expect(wait_for(lambda: port in {number for _, number in listeners(bench.marked())}, 5), "nobody listens")
    with Strangers(bench) as strangers:
        # The store and the ranks' own listeners are all beset before the last rank comes.
        expect(wait_for(lambda: len(strangers.seen) >= 4 and strangers.visits > 200, 10), strangers.seen, strangers.visits)
        began = time.monotonic()
        started.append(start_by_hand(bench, 3, 4, port, TUTTI_TRANSPORTS="tcp"))
        results = [bench.finish(process) for process in started]
        seconds = time.monotonic() - began
    expect(all(result.code == 0 for result in results), results)
    print(f"    {strangers.visits} visits to {len(strangers.seen)} ports; started {seconds:.2f} s after the last rank came")
    expect(seconds < 1, seconds)


def a_stranger_has_the_rendezvous(bench):
    for words in (None, b"", b"220 mail.example.org ESMTP\r\n", b"\xff" * 1000):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(16)
            stop = threading.Event()
            kept = []

            def serve():
                other.settimeout(0.05)
                while not stop.is_set():
                    with contextlib.suppress(OSError):
                        kept.append(other.accept()[0])
                        if words:
                            kept[-1].sendall(words)
            server = threading.Thread(target=serve) if words is not None else None
            if server:
                server.start()
            port = other.getsockname()[1]
            began = time.monotonic()
            started = [start_by_hand(bench, rank, 3, port, mode="missing", TUTTI_BOOTSTRAP_TIMEOUT="2s") for rank in range(3)]
            results = [bench.finish(process) for process in started]
            stop.set()
            if server:
                server.join()
            for one in kept:
                one.close()
        for result in results:
            expect(result.code == 0 and result.out.startswith("TUTTI_ERR_") and str(port) in result.out, words, result)
        expect(time.monotonic() - began < 4.5, words, time.monotonic() - began)


def a_resolver_that_does_not_answer(bench):
    # A sanitizer's library wants to be the first in the list.
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    slow = {"LD_PRELOAD": SLOW_RESOLVER, "ASAN_OPTIONS": options}
    for transports in ("shm", "tcp"):
        plain, result = (bench.run("-np", "2", JOB, "create", env={"TUTTI_TRANSPORTS": transports, **env}) for env in ({}, slow))
        expect(result.code == 0 and "done" in result.out and result.seconds < max(1, plain.seconds + 0.5), plain, result)
    port = free_port()
    started = [start_by_hand(bench, rank, 2, port, **slow) for rank in range(2)]
    for process in started:
        result = bench.finish(process)
        expect(result.code == 0 and result.seconds < 1, result)


def ports_of_a_range(bench):
    first = 41000
    env = {"TUTTI_TRANSPORTS": "tcp", "TUTTI_PORT_RANGE": f"{first}-{first + 30}"}
    for launched in (True, False):
        if launched:
            running = [bench.start("-np", "4", JOB, "forever", env=env)]
        else:
            running = [start_by_hand(bench, rank, 4, first + 30, mode="forever", **env) for rank in range(4)]
        expect(running[0].stdout.readline().strip() == b"running", launched)
        found = listeners(bench.marked())
        expect(len(found) >= 4 and all(first <= port <= first + 30 for _, port in found), launched, found)
        for process in running:
            process.terminate()
        for process in running:
            bench.finish(process)
    # Fewer ports than ranks: who finds none says so, and nobody waits for ever.
    short = f"{first}-{first + 2}"
    result = bench.run("-np", "4", JOB, "missing", env=dict(env, TUTTI_PORT_RANGE=short, TUTTI_BOOTSTRAP_TIMEOUT="3s", TUTTI_LOG_LEVEL="info"))
    expect("does not start here" in result.err and "Address already in use" in result.err and short in result.err, result)
    expect("TUTTI_ERR_CONNECT" in result.out and result.seconds < 5, result)


CASES = [only_loopback_for_a_local_job, strangers_in_the_steady_state, strangers_during_the_start, a_stranger_has_the_rendezvous,
         a_resolver_that_does_not_answer, ports_of_a_range]
