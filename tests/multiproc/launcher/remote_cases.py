# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Other hosts: through a stand-in for ssh that stays on this machine, faulty ones, and network namespaces."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid

from harness import Skip, expect, wait_for

PYTHON = sys.executable


def rsh(b, body='exec "$@"'):
    """A command that takes a host and a command as ssh does. `body` is shell, $host is set."""
    return b.write("onhost", f"#!/bin/sh\nhost=$1; shift; export FAKE_HOST=$host\n{body}\n", 0o755)


def loopback(*args):
    # Ranks "on other hosts" are here as well, so this host is to be met on its loopback address.
    return ("--interface", "127.0.0.1", *args)


def last(r):
    return r.err.rstrip("\n").split("\n")[-1]


def ranks_are_placed_on_hosts(b):
    r = b.run(*loopback("-np", "5", "-H", "ha:2,localhost:1,hb:2", "--rsh", rsh(b), "sh", "-c",
                        "echo $TUTTI_RANK ${FAKE_HOST:-here} $TUTTI_LOCAL_RANK/$TUTTI_LOCAL_SIZE $TUTTI_SIZE $TUTTI_RENDEZVOUS $TUTTI_JOB_ID"))
    lines = sorted(r.out.split("\n")[:-1])
    expect(r.code == 0 and [" ".join(line.split()[:3]) for line in lines] == ["0 ha 0/2", "1 ha 1/2", "2 here 0/1", "3 hb 0/2", "4 hb 1/2"], r)
    expect(len({" ".join(line.split()[3:]) for line in lines}) == 1, r)


def host_file(b):
    b.write("hosts", "# machines\nha slots=2   # two\n\nhb:1\n")
    r = b.run(*loopback("--hostfile", "hosts", "--rsh", rsh(b), "sh", "-c", "echo $TUTTI_RANK $FAKE_HOST"))
    expect(sorted(r.out.split("\n")[:-1]) == ["0 ha", "1 ha", "2 hb"], r)
    r = b.run(*loopback("-np", "5", "--oversubscribe", "--hostfile", "hosts", "--rsh", rsh(b), "sh", "-c", "echo $TUTTI_RANK $FAKE_HOST"))
    expect(sorted(r.out.split("\n")[:-1]) == ["0 ha", "1 ha", "2 hb", "3 ha", "4 ha"], r)


def environment_and_directory_travel(b):
    value = "a b\n'c' \"d\"=\\ $HOME `x`;&"
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, 'cd /; exec env -i FAKE_HOST=$host TUTTITEST_MARK=$TUTTITEST_MARK "$@"'),
                        PYTHON, "-c", "import os; print(repr(os.environ['ODD']), os.getcwd())"), env={"ODD": value})
    expect(r.code == 0 and r.out == f"{value!r} {b.folder}\n" * 2, r)


def no_secret_on_command_lines(b):
    log = b.path("log")
    body = f'printf "%s\\n" "$@" >> {log}; env >> {log}; exec "$@"'
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, body), PYTHON, "-c",
                        "import os; print(os.pread(int(os.environ['TUTTI_SECRET_FD']), 1000, 0).hex())"), env={"PRIVATE": "1"})
    secrets = set(r.out.split())
    expect(r.code == 0 and len(secrets) == 1, r)
    seen = open(log, "rb").read()
    secret = bytes.fromhex(secrets.pop())
    expect(len(secret) >= 32 and secret not in seen and secret.hex().encode() not in seen and b"--agent" in seen, seen)


def banner_before_the_agent(b):
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, 'echo "Welcome to $host"; echo; printf "no newline"; echo warning >&2; exec "$@"'), "echo", "x"))
    expect(r.code == 0 and r.out == "x\nx\n" and sorted(r.err.split("\n")[:-1]) == ["[ha] warning", "[hb] warning"], r)


def host_that_never_answers(b):
    body = 'if [ $host = hb ]; then sleep 100; fi; exec "$@"'
    r = b.run(*loopback("-np", "3", "-H", "ha,hb,localhost", "--launch-timeout", "600ms", "--rsh", rsh(b, body), "touch", "started"))
    expect(r.code == 125 and 0.5 < r.seconds < 5 and "host 'hb': no answer within 600ms" in last(r), r)
    expect(not os.path.exists(b.path("started")) and not b.marked(), r, b.marked())


def several_hosts_that_never_answer(b):
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--launch-timeout", "300ms", "--rsh", rsh(b, "sleep 100"), "true"))
    expect(r.code == 125 and "'ha'" in last(r) and "'hb'" in last(r), r)


def host_that_ignores_term(b):
    body = "trap '' TERM; while :; do sleep 0.1; done"
    r = b.run(*loopback("-np", "1", "-H", "ha", "--launch-timeout", "200ms", "--grace", "300ms", "--rsh", rsh(b, body), "true"))
    expect(r.code == 125 and r.seconds < 4 and b.gone_within(1), r)


def password_prompt(b):
    log = b.path("log")
    body = f'printf "password for $host: " >&2; cat > {log}'
    r = b.run(*loopback("-np", "1", "-H", "ha", "--launch-timeout", "400ms", "--rsh", rsh(b, body), "true"))
    expect(r.code == 125 and "password for ha:" in last(r) and "host 'ha'" in last(r), r)
    expect(os.path.getsize(log) == 0, "something was sent before the agent had greeted")


def connection_refused(b):
    body = 'if [ $host = hb ]; then echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255; fi; exec "$@"'
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, body), "true"))
    expect(r.code == 125 and r.seconds < 3 and "host 'hb'" in last(r) and "exited with 255" in last(r) and "Connection refused" in last(r), r)


def program_missing_there(b):
    r = b.run(*loopback("-np", "1", "-H", "ha", "--agent-path", "/no/tuttirun", "--rsh", rsh(b), "true"))
    expect(r.code == 125 and "--agent-path" in last(r) and "/no/tuttirun" in last(r), r)
    r = b.run(*loopback("-np", "1", "-H", "ha", "--rsh", "/no/rsh", "true"))
    expect(r.code == 125 and "/no/rsh" in last(r), r)


def directory_missing_there(b):
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--chdir", "/no/folder", "--rsh", rsh(b), "true"))
    expect(r.code == 125 and "/no/folder" in last(r) and "--chdir" in last(r), r)


def garbage_instead_of_frames(b):
    bodies = ["head -c 300000 /dev/zero", "printf '\\n#tuttirun-agent-1#\\n\\377\\377\\377\\377\\100rest'; exec cat > /dev/null",
              "printf '\\n#tuttirun-agent-1#\\n\\003\\000\\000\\000\\100xxx'; exec cat > /dev/null",
              "printf '\\n#tuttirun-agent-1#\\n'; head -c 100000 /dev/urandom; exec cat > /dev/null"]
    for body in bodies:
        r = b.run(*loopback("-np", "1", "-H", "ha", "--launch-timeout", "500ms", "--grace", "300ms", "--rsh", rsh(b, body), "true"))
        expect(r.code == 125 and "host 'ha'" in last(r), body, r)


def failure_names_the_host(b):
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b), "sh", "-c", "[ $TUTTI_RANK = 1 ] && exit 6; exec sleep 100"))
    expect(r.code == 6 and "rank 1 exited with 6 (host hb, pid" in last(r) and r.seconds < 3, r)


def replaceable_by_a_variable_and_a_template(b):
    b.write("rsh2", '#!/bin/sh\n[ "$1" = "-p 22" ] && [ "$2" = "user@ha" ] || exit 9\nshift 2; exec "$@"\n', 0o755)
    r = b.run(*loopback("-np", "1", "-H", "ha", "echo", "x"), env={"TUTTI_RSH": f"{b.path('rsh2')} '-p 22' user@{{host}}"})
    expect(r.code == 0 and r.out == "x\n", r)


def odd_paths_survive_a_remote_shell(b):
    # As sshd does: one string for a shell.
    b.write("ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n', 0o755)
    os.symlink(b.program, b.path("it's a $(path)"))
    r = b.run(*loopback("-np", "1", "-H", "ha", "--rsh", b.path("ssh"), "--agent-path", b.path("it's a $(path)"), "echo", "x"))
    expect(r.code == 0 and r.out == "x\n", r)


def standard_input_reaches_a_remote_rank_0(b):
    r = b.run(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b), "wc", "-c"), input=b"z" * 1_000_000)
    expect(sorted(r.out.split()) == ["0", "1000000"], r)


def killed_launcher_leaves_nothing_elsewhere(b):
    job = b.start(*loopback("-np", "2", "-H", "ha,hb", "--grace", "400ms", "--rsh", rsh(b, '"$@"'), "sh", "-c", "trap '' TERM; sleep 100 & touch up$TUTTI_RANK; while :; do sleep 0.1; done"))
    expect(wait_for(lambda: os.path.exists(b.path("up0")) and os.path.exists(b.path("up1")), 5), "not started")
    job.kill()
    b.finish(job)
    expect(b.gone_within(5), "left behind:", b.marked())


def killed_launcher_leaves_no_waiting_ssh(b):
    job = b.start(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, "touch $host; sleep 100"), "true"))
    expect(wait_for(lambda: os.path.exists(b.path("ha")) and os.path.exists(b.path("hb")), 5), "not started")
    job.kill()
    b.finish(job)
    expect(b.gone_within(3), "left behind:", b.marked())


def killed_launcher_whose_own_ranks_have_ended(b):
    job = b.start(*loopback("-np", "2", "-H", "localhost,ha", "--grace", "300ms", "--rsh", rsh(b, '"$@"'), "sh", "-c", "if [ $TUTTI_RANK = 0 ]; then echo $$ > first; exit 0; fi; trap '' TERM; touch up; while :; do sleep 0.1; done"))
    expect(wait_for(lambda: os.path.exists(b.path("up")) and os.path.exists(b.path("first")) and open(b.path("first")).read(), 5), "not started")
    expect(wait_for(lambda: not os.path.exists(f"/proc/{open(b.path('first')).read().strip()}"), 5), "rank 0 was not reaped")
    job.kill()
    b.finish(job)
    expect(b.gone_within(3), "left behind:", b.marked())


def lost_host_is_named(b):
    body = 'echo $$ > agent-$host; exec "$@"'
    job = b.start(*loopback("-np", "2", "-H", "ha,hb", "--rsh", rsh(b, body), "sh", "-c", "touch up$TUTTI_RANK; exec sleep 100"))
    expect(wait_for(lambda: os.path.exists(b.path("up0")) and os.path.exists(b.path("up1")), 5), "not started")
    os.kill(int(open(b.path("agent-hb")).read()), signal.SIGKILL)
    r = b.finish(job)
    expect(r.code == 125 and "host 'hb'" in last(r) and "signal 9" in last(r) and r.seconds < 3, r)
    expect(b.gone_within(2), b.marked())


def interrupt_while_connecting(b):
    job = b.start(*loopback("-np", "1", "-H", "ha", "--rsh", rsh(b, "touch here; sleep 100"), "true"))
    expect(wait_for(lambda: os.path.exists(b.path("here")), 5), "not started")
    job.send_signal(signal.SIGINT)
    r = b.finish(job)
    expect(r.code == 130 and r.seconds < 3 and not b.marked(), r, b.marked())


def many_hosts(b):
    hosts = ",".join(f"h{k}:2" for k in range(100))
    r = b.run(*loopback("-np", "200", "-H", hosts, "--rsh", rsh(b), "sh", "-c", "echo $TUTTI_RANK"))
    expect(r.code == 0 and sorted(map(int, r.out.split())) == list(range(200)), r)


def own_address_counts_as_this_host(b):
    r = b.run("-np", "2", "-H", "127.0.0.1,localhost", "--rsh", "/no/rsh", "sh", "-c", "echo $TUTTI_LOCAL_SIZE")
    expect(r.code == 0 and r.out == "2\n2\n", r)


def wrong_interface(b):
    r = b.run("-np", "1", "-H", "ha", "--rsh", rsh(b), "--interface", "nosuch0", "true")
    expect(r.code == 125 and "'nosuch0'" in last(r) and "127.0.0.1" in last(r), r)


def agent_is_not_for_hand_use(b):
    master, slave = os.openpty()
    r = b.run("--agent", stdin=slave)
    os.close(master), os.close(slave)
    expect(r.code == 2 and r.err.count("\n") == 1, r)


class Namespaces:
    """Two network namespaces, joined by a veth pair: 10.213.7.1 in the first, 10.213.7.2 in the second."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        tag = uuid.uuid4().hex[:6]
        self.names = (f"tt{tag}a", f"tt{tag}b")

    def __enter__(self):
        def ip(*words):
            done = subprocess.run(["ip", *words], capture_output=True, text=True)
            if done.returncode != 0:
                self.__exit__()
                raise Skip(f"ip {' '.join(words)}: {done.stderr.strip()}")
        first, second = self.names
        try:
            ip("netns", "add", first)
        except FileNotFoundError:
            raise Skip("no ip command")
        ip("netns", "add", second)
        ip("link", "add", first, "type", "veth", "peer", "name", second)
        for index, name in enumerate(self.names):
            ip("link", "set", name, "netns", name)
            ip("-n", name, "addr", "add", f"10.213.7.{index + 1}/24", "dev", name)
            ip("-n", name, "link", "set", name, "up")
            ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def hosts_are_network_namespaces(b):
    with Namespaces() as net:
        first, second = net.names
        # The rendezvous has to be reachable from the other namespace, and from nowhere else.
        script = ("import os,socket,re\n"
                  "host, port = re.match('tcp://(.*):(.*)', os.environ['TUTTI_RENDEZVOUS']).groups()\n"
                  "socket.create_connection((host, int(port)), 5).close()\n"
                  "names = [n for _, n in socket.if_nameindex() if n != 'lo']\n"
                  "print(os.environ['TUTTI_RANK'], host, *names)\n")
        r = b.run("-np", "4", "-H", f"10.213.7.1:2,{second}:2", "--rsh", "ip netns exec", PYTHON, "-c", script, prefix=("ip", "netns", "exec", first))
        lines = sorted(r.out.split("\n")[:-1])
        expect(r.code == 0 and lines == [f"{k} 10.213.7.1 {first if k < 2 else second}" for k in range(4)], r)
        job = b.start("-np", "2", "-H", f"10.213.7.1,{second}", "--grace", "400ms", "--rsh", "ip netns exec", "sh", "-c", "trap '' TERM; setsid sleep 100 & touch up$TUTTI_RANK; while :; do sleep 0.1; done", prefix=("ip", "netns", "exec", first))
        expect(wait_for(lambda: os.path.exists(b.path("up0")) and os.path.exists(b.path("up1")), 5), "not started")
        job.kill()
        b.finish(job)
        expect(b.gone_within(5), "left behind:", b.marked())


CASES = [value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__
         and name not in ("rsh", "loopback", "last", "Namespaces")]
