# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Several hosts: interfaces, addresses and names as people have them; and hosts that vanish."""

import os
import time

from harness import expect, wait_for
from hosts import Hosts

JOB = SLOW_RESOLVER = ""
PORT = 29500
SECRET = "a secret of this test"


class Job:
    """Ranks started by hand on hosts; `places` has a host's letter for each rank."""

    def __init__(self, bench, hosts, places, meet, *mode, env=None, each=None):
        self.bench = bench
        self.started = []
        for rank, host in enumerate(places):
            full = {"TUTTI_RENDEZVOUS": f"tcp://{meet}:{PORT}", "TUTTI_SECRET": SECRET, "TUTTI_SIZE": str(len(places)), "TUTTI_RANK": str(rank),
                    "TUTTI_BOOTSTRAP_TIMEOUT": "15s", **(env or {}), **((each or {}).get(host, {}))}
            # One namespace is one host: each `ip netns exec` makes a mount namespace of its own, which would tell its ranks apart.
            if places.count(host) == len(places):
                full["TUTTI_NODE_ID"] = host
            full = {name: value for name, value in full.items() if value is not None}
            self.started.append(bench.start_command(hosts.command(host, JOB, *mode), env=full))

    def finish(self):
        return [self.bench.finish(process) for process in self.started]


def good(bench, hosts, places, meet, env=None, each=None, mode=("loop", "50", "65536"), seconds=8):
    results = Job(bench, hosts, places, meet, *mode, env=env, each=each).finish()
    expect(all(result.code == 0 for result in results), env, each, results)
    expect(max(result.seconds for result in results) < seconds, env, results)
    return results


def the_same_address_on_both_hosts(bench):
    with Hosts("ab") as hosts:
        for host in "ab":
            # The second has a name that gives nothing away.
            hosts.blind(host, {"docker0": "172.17.0.1/16", "ext0": "192.168.122.1/24"})
        hosts.link("a", "b", ("net0", "net0"), ("10.213.7.1/24", "10.213.7.2/24"))
        good(bench, hosts, "aabb", "10.213.7.1")
        good(bench, hosts, "abab", "10.213.7.1")


def twenty_interfaces(bench):
    with Hosts("a") as hosts:
        hosts.blind("a", {f"ext{k}": f"10.{100 + k}.0.1/24" for k in range(20)})
        for transports in ("tcp", "shm,tcp"):
            for result in good(bench, hosts, "aa", "10.100.0.1", env={"TUTTI_TRANSPORTS": transports}):
                expect(result.seconds < 3, transports, result)


def the_only_address_is_an_alias_of_lo(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("", ""))
        for host, own, other in (("a", "10.9.9.1", "10.9.9.2"), ("b", "10.9.9.2", "10.9.9.1")):
            hosts.address(host, "lo", f"{own}/32")
            hosts.on(host, "route", "add", f"{other}/32", "dev", "net0", "src", own)
        good(bench, hosts, "ab", "10.9.9.1")


def packets_come_from_another_address(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("10.213.7.1/24", "10.213.7.2/24"))
        hosts.address("a", "net0", "10.213.7.11/24")
        hosts.on("a", "route", "add", "10.213.7.2/32", "dev", "net0", "src", "10.213.7.11")
        good(bench, hosts, "ab", "10.213.7.1", each={"a": {"TUTTI_INTERFACE": "10.213.7.1"}})
        good(bench, hosts, "ba", "10.213.7.2", each={"a": {"TUTTI_INTERFACE": "10.213.7.1"}})


def interfaces_have_different_names(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("eth0", "ens5"), ("10.213.7.1/24", "10.213.7.2/24"))
        good(bench, hosts, "aabb", "10.213.7.1")
        result = bench.run("-np", "4", "-H", f"10.213.7.1:2,{hosts.names['b']}:2", "--rsh", "ip netns exec", JOB, "loop", "50", "65536",
                           prefix=hosts.command("a"))
        expect(result.code == 0 and "seconds" in result.out and result.seconds < 8, result)


def only_ipv6(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("fd00:7::1/64", "fd00:7::2/64"))
        good(bench, hosts, "aabb", "[fd00:7::1]")
        result = bench.run("-np", "2", "-H", f"localhost,{hosts.names['b']}", "--rsh", "ip netns exec", JOB, "loop", "50", "65536",
                           prefix=hosts.command("a"))
        expect(result.code == 0 and "seconds" in result.out and result.seconds < 8, result)


def interface_by_name_address_and_network(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("one", "one"), ("10.1.1.1/24", "10.1.1.2/24"))
        hosts.link("a", "b", ("two", "two"), ("10.2.2.1/24", "10.2.2.2/24"))
        for wish in ({"a": "two", "b": "two"}, {"a": "10.2.2.1", "b": "10.2.2.2"}, {"a": "10.2.0.0/16", "b": "10.2.0.0/16"},
                     {"a": "two", "b": "10.2.2.0/24"}):
            before = {name: hosts.received_bytes("a", name) for name in ("one", "two")}
            each = {host: {"TUTTI_INTERFACE": text} for host, text in wish.items()}
            good(bench, hosts, "ab", "10.1.1.1", each=each, mode=("loop", "20", "1000000"))
            taken = {name: hosts.received_bytes("a", name) - before[name] for name in before}
            expect(taken["two"] > 10_000_000 and taken["one"] < 100_000, wish, taken)
        for wish in ("nosuch0", "10.3.3.3", "10.3.0.0/16", "tw"):
            (result,) = Job(bench, hosts, "a", "10.1.1.1", "missing", env={"TUTTI_INTERFACE": wish, "TUTTI_SIZE": "2"}).finish()
            expect(result.out.startswith("TUTTI_ERR_CONFIG") and f"'{wish}'" in result.out and "10.2.2.1" in result.out and "two" in result.out, result)
        (result,) = Job(bench, hosts, "a", "10.1.1.1", "missing", env={"TUTTI_INTERFACE": "10.1.0.0/40", "TUTTI_SIZE": "2"}).finish()
        expect(result.out.startswith("TUTTI_ERR_CONFIG") and "10.1.0.0/40" in result.out, result)


def failures(results):
    return [[line.split(" ", 3) for line in result.out.splitlines() if line.startswith("failed")] for result in results]


def a_host_vanishes_in_the_middle_of_traffic(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("10.213.7.1/24", "10.213.7.2/24"))
        job = Job(bench, hosts, "aabb", "10.213.7.1", "victim", "99", env={"TUTTI_HEARTBEAT_TIMEOUT": "2s"})
        expect(wait_for(lambda: hosts.received_bytes("a", "net0") > 5_000_000, 15), "no traffic")
        hosts.on("b", "link", "set", "net0", "down")
        cut = time.monotonic()
        results = job.finish()
        for rank, lines in enumerate(failures(results)):
            expect(len(lines) == 1 and lines[0][2] == "TUTTI_ERR_PEER_FAILED", rank, results)
            expect(float(lines[0][1]) - cut < 3.5, rank, lines, results)
        print(f"    all knew after {max(float(lines[0][1]) for lines in failures(results)) - cut:.2f} s")


def a_host_vanishes_while_nothing_is_sent(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("10.213.7.1/24", "10.213.7.2/24"))
        # Rank 0 sleeps outside the library: the others wait for it, and nothing flows.
        job = Job(bench, hosts, "bbaa", "10.213.7.2", "idle", "6", env={"TUTTI_HEARTBEAT_TIMEOUT": "2s"})
        expect(wait_for(lambda: hosts.received_bytes("a", "net0") > 2000, 15), "no traffic")
        last = [-1]

        def quiet():
            now = hosts.received_bytes("a", "net0")
            same, last[0] = now == last[0], now
            return same
        expect(wait_for(quiet, 10), "never quiet")
        hosts.on("b", "link", "set", "net0", "down")
        cut = time.monotonic()
        waiting = job.started[2:]
        for process in waiting:
            result = bench.finish(process)
            expect(result.code == 1 and "TUTTI_ERR_PEER_FAILED" in result.err, result)
        print(f"    the ranks here knew after {time.monotonic() - cut:.2f} s")
        expect(time.monotonic() - cut < 3.5, time.monotonic() - cut)
        for process in job.started[:2]:
            result = bench.finish(process)
            expect(result.code == 1 and "TUTTI_ERR_PEER_FAILED" in result.err, result)


def without_a_secret(bench):
    with Hosts("ab") as hosts:
        hosts.link("a", "b", ("net0", "net0"), ("10.213.7.1/24", "10.213.7.2/24"))
        for result in Job(bench, hosts, "ab", "10.213.7.1", "missing", env={"TUTTI_SECRET": None}).finish():
            expect(result.out.startswith("TUTTI_ERR_CONFIG") and "TUTTI_SECRET_FILE" in result.out and "TUTTI_INSECURE=1" in result.out, result)
            expect(float(result.out.split()[1]) < 1, "at once", result)
        for result in good(bench, hosts, "ab", "10.213.7.1", env={"TUTTI_SECRET": None, "TUTTI_INSECURE": "1"}):
            expect("no secret" in result.err and "TUTTI_INSECURE" in result.err, result)
        path = bench.write("secret", "some random words", 0o600)
        good(bench, hosts, "ab", "10.213.7.1", env={"TUTTI_SECRET": None, "TUTTI_SECRET_FILE": path})
        os.chmod(path, 0o644)
        for result in Job(bench, hosts, "ab", "10.213.7.1", "missing", env={"TUTTI_SECRET": None, "TUTTI_SECRET_FILE": path}).finish():
            expect(result.out.startswith("TUTTI_ERR_") and path in result.out and "chmod 600" in result.out, result)


CASES = [the_same_address_on_both_hosts, twenty_interfaces, the_only_address_is_an_alias_of_lo, packets_come_from_another_address,
         interfaces_have_different_names, only_ipv6, interface_by_name_address_and_network, a_host_vanishes_in_the_middle_of_traffic,
         a_host_vanishes_while_nothing_is_sent, without_a_secret]
