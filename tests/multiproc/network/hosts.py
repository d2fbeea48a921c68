# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Hosts that are network namespaces, and what can be seen of sockets from outside."""

import json
import os
import subprocess
import uuid

from harness import Skip, wait_for


class Hosts:
    """Namespaces for as long as the `with` lasts. A host is known by a letter; its namespace has a name of its own."""

    def __init__(self, letters):
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        tag = uuid.uuid4().hex[:6]
        self.names = {letter: f"tt{tag}{letter}" for letter in letters}

    def ip(self, *words):
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"ip {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def on(self, host, *words):
        return self.ip("-n", self.names[host], *words)

    def __enter__(self):
        for name in self.names.values():
            try:
                done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
            except FileNotFoundError:
                raise Skip("no ip command")
            if done.returncode != 0:
                self.__exit__()
                raise Skip(f"no network namespaces here: {done.stderr.strip()}")
        for host in self.names:
            self.on(host, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def link(self, first, second, names, addresses):
        """A cable between two hosts: the interface's name and address/bits at each end ("": no address)."""
        hosts = (first, second)
        self.ip("link", "add", names[0], "netns", self.names[first], "type", "veth", "peer", "name", names[1], "netns", self.names[second])
        for host, name, address in zip(hosts, names, addresses):
            if address:
                self.address(host, name, address)
            self.on(host, "link", "set", name, "up")
        self.settle([(first, names[0]), (second, names[1])])

    def settle(self, ends):
        """The kernel tells a moment later, at most once a second, that a cable has two ends."""
        for host, name in ends:
            if not wait_for(lambda: json.loads(self.on(host, "-j", "link", "show", name))[0]["operstate"] == "UP", 5):
                raise AssertionError(f"{name} does not come up")

    def address(self, host, interface, address):
        # Duplicate address detection would keep an IPv6 address unusable for a second or two.
        self.on(host, "addr", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))

    def blind(self, host, interfaces):
        """Interfaces (name -> address/bits) that are up and lead nowhere."""
        for name, address in interfaces.items():
            self.on(host, "link", "add", name, "type", "veth", "peer", "name", f"{name}x")
            self.address(host, name, address)
            self.on(host, "link", "set", name, "up")
            self.on(host, "link", "set", f"{name}x", "up")
        self.settle([(host, name) for name in interfaces])

    def command(self, host, *words):
        return ["ip", "netns", "exec", self.names[host], *words]

    def received_bytes(self, host, interface):
        return json.loads(self.on(host, "-j", "-s", "link", "show", interface))[0]["stats64"]["rx"]["bytes"]


def sockets_of(pid):
    """Inodes of a process's sockets."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def listeners(pids, net="/proc/net"):
    """(address as the kernel prints it, port) of all that these processes listen on, TCP and UDP, IPv4 and IPv6."""
    own = set().union(*map(sockets_of, pids)) if pids else set()
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"{net}/{table}") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            listens = words[3] == "0A" or table.startswith("udp")
            if listens and words[9] in own:
                address, port = words[1].split(":")
                found.add((address, int(port, 16)))
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
