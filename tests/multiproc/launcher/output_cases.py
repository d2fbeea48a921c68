# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Standard streams and where the ranks run."""

import fcntl
import hashlib
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time

from harness import Skip, expect, wait_for

PYTHON = sys.executable


def stderr_of_a_crashing_rank_arrives_completely(b):
    script = ("import os,sys,signal,resource\n"
              "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
              "if os.environ['TUTTI_RANK'] != '1': signal.pause()\n"
              "os.write(1, b'partial x')\n"
              "for i in range(16384): os.write(2, b'%063d\\n' % i)\n"
              "os.write(2, b'last words')\n"
              "os.abort()\n")
    r = b.run("-np", "2", PYTHON, "-c", script)
    expect(r.code == 134 and r.out == "partial x", r)
    lines = r.err.split("\n")
    expect(lines[:16384] == ["%063d" % i for i in range(16384)], r)
    expect(lines[16384] == "last words" and lines[-2].startswith("tuttirun: rank 1 was killed by signal 6 (SIGABRT"), r)


TORN = ("import os,random\n"
        "r = os.environ['TUTTI_RANK']; g = random.Random(int(r))\n"
        "for i in range(400):\n"
        "    line = ('r%s.%d.' % (r, i)).encode(); line += b'x' * g.choice((1, 50, 5000, 70000 if i % 50 == 0 else 9)) + b'.end\\n'\n"
        "    while line: n = os.write(1 + i % 2, line[:g.randint(1, 9000)]); line = line[n:]\n")


def lines_are_never_torn(b):
    # Both streams into one pipe: lines of stdout and stderr must not mix either.
    r = b.run("-np", "8", PYTHON, "-c", TORN, stderr=subprocess.STDOUT)
    seen = {}
    for line in r.out.split("\n")[:-1]:
        match = re.fullmatch(r"r(\d)\.(\d+)\.x+\.end", line)
        expect(match, "torn:", line[:200])
        rank, number = int(match[1]), int(match[2])
        last = seen.setdefault((rank, number % 2), -1)
        expect(number > last, "out of order:", line[:50])
        seen[(rank, number % 2)] = number
    expect(r.code == 0 and r.out.count("\n") == 8 * 400, r.code, r.out.count("\n"))


def tags_name_the_rank_of_every_line(b):
    r = b.run("-np", "4", "--tag-output", "sh", "-c", "for i in 1 2 3; do echo o$TUTTI_RANK; echo e$TUTTI_RANK >&2; done; printf tail$TUTTI_RANK")
    expect(sorted(r.err.split("\n")[:-1]) == sorted(f"[{k}] e{k}" for k in range(4) for _ in range(3)), r)
    expect(sorted(r.out.split("\n")) == sorted([f"[{k}] o{k}" for k in range(4) for _ in range(3)] + [f"[{k}] tail{k}" for k in range(4)]), r)


def unfinished_last_lines_are_delivered(b):
    r = b.run("-np", "1", "printf", "no newline")
    expect(r.out == "no newline", r)
    r = b.run("-np", "3", "sh", "-c", "printf unfinished$TUTTI_RANK")
    expect(sorted(r.out.split("\n")) == ["unfinished0", "unfinished1", "unfinished2"], r)


def binary_output_is_not_changed(b):
    r = subprocess.run([b.program, "-np", "1", PYTHON, "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 9000)"], env=b.env, stdout=subprocess.PIPE)
    expect(r.stdout == bytes(range(256)) * 9000, len(r.stdout))


def endless_line_is_bounded(b):
    job = b.start("-np", "1", PYTHON, "-c", "import os\nfor _ in range(3200): os.write(1, b'y' * 10000)")
    total = 0
    while True:
        data = os.read(job.stdout.fileno(), 1 << 16)
        if not data:
            break
        total += len(data)
    expect(total == 32_000_000, total)
    b.finish(job)


def memory_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


def slow_reader_holds_the_ranks_back(b):
    job = b.start("-np", "2", PYTHON, "-c", "import os\nfor i in range(60000): os.write(1, b'%01000d\\n' % i)\nopen('done' + os.environ['TUTTI_RANK'], 'w')")
    # Wait until nothing moves any more; then there must still be something to come, and little in memory.
    last = -1
    while True:
        with open(f"/proc/{job.pid}/io") as file:
            now = int(re.search(r"rchar: (\d+)", file.read())[1])
        if now == last:
            break
        last = now
        time.sleep(0.3)
    expect(not os.path.exists(b.path("done0")) and not os.path.exists(b.path("done1")), "120 MB were swallowed")
    used = [memory_of(pid) for pid in b.marked()]
    expect(max(used) < 90_000, "kB of memory:", used)
    r = b.finish(job)
    expect(r.code == 0 and r.out.count("\n") == 120000, r.code, r.out.count("\n"))


def interrupt_works_while_nobody_reads(b):
    job = b.start("-np", "2", "--grace", "500ms", "sh", "-c", "echo $$ > pid$TUTTI_RANK; exec yes")
    expect(wait_for(lambda: os.path.exists(b.path("pid0")) and os.path.exists(b.path("pid1")), 5), "not started")
    job.send_signal(signal.SIGINT)
    pids = [int(open(b.path(f"pid{k}")).read()) for k in (0, 1)]
    expect(wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 5), "ranks live on")
    r = b.finish(job)
    expect(r.code == 130, r.code)


def closed_reader_ends_the_job(b):
    job = b.start("-np", "2", "yes")
    os.read(job.stdout.fileno(), 100)
    job.stdout.close()
    err = job.stderr.read().decode()
    expect(job.wait(10) == 141 and "closed" in err.split("\n")[-2], job.returncode, err)


def full_disk_is_reported(b):
    with open("/dev/full", "wb") as full:
        r = b.run("-np", "1", "echo", "x", stdout=full)
    expect(r.code == 1 and "cannot write standard output: No space left on device" in r.err, r)


def output_directory(b):
    r = b.run("-np", "3", "--output-dir", "out/put", "sh", "-c", "echo o$TUTTI_RANK; printf e$TUTTI_RANK >&2; [ $TUTTI_RANK != 1 ]")
    expect(r.code == 1 and r.out == "" and "rank-1.err" in r.err.split("\n")[-2], r)
    expect(open(b.path("out/put/rank-1.err")).read() == "e1", "file of rank 1")
    r = b.run("-np", "3", "--output-dir", "out/put", "sh", "-c", "echo o$TUTTI_RANK; printf e$TUTTI_RANK >&2")
    expect(r.code == 0 and r.out == "" and r.err == "", r)
    for k in range(3):
        expect(open(b.path(f"out/put/rank-{k}.out")).read() == f"o{k}\n", k)
        expect(open(b.path(f"out/put/rank-{k}.err")).read() == f"e{k}", k)


DIGEST = "import sys,hashlib; d = sys.stdin.buffer.read(); print(len(d), hashlib.md5(d).hexdigest())"


def standard_input_goes_to_rank_0(b):
    data = os.urandom(5_000_000)
    wanted = sorted([f"5000000 {hashlib.md5(data).hexdigest()}", f"0 {hashlib.md5(b'').hexdigest()}"])
    r = b.run("-np", "2", PYTHON, "-c", DIGEST, input=data)
    expect(sorted(r.out.split("\n")[:-1]) == wanted, r)
    with open(b.path("data"), "wb") as file:
        file.write(data)
    with open(b.path("data"), "rb") as file:
        r = b.run("-np", "2", PYTHON, "-c", DIGEST, stdin=file)
    expect(sorted(r.out.split("\n")[:-1]) == wanted, r)


def closed_standard_streams(b):
    r = b.run("-np", "2", "sh", "-c", "cat; echo x", prefix=("sh", "-c", 'exec "$@" <&-', "-"))
    expect(r.code == 0 and r.out == "x\nx\n", r)
    r = b.run("-np", "2", "sh", "-c", "echo x; echo y >&2", prefix=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "-"))
    expect(r.code == 0, r)


def unread_standard_input_does_not_hang(b):
    r = b.run("-np", "2", "sleep", "0.2", input=b"x" * 3_000_000)
    expect(r.code == 0 and r.seconds < 3, r)
    r = b.run("-np", "1", "head", "-c", "3", input=b"x" * 3_000_000)
    expect(r.code == 0 and r.out == "xxx", r)


def on_terminal(b, *args, background, script=None):
    """Runs tuttirun in a session with a terminal of its own, as a shell would in the foreground or background."""
    master, slave = pty.openpty()
    code = ("import os,sys,fcntl,termios,signal\n"
            "os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
            "a = termios.tcgetattr(0); a[3] |= termios.TOSTOP; a[3] &= ~termios.ECHO; a[1] &= ~termios.OPOST; termios.tcsetattr(0, termios.TCSANOW, a)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    os.setpgid(0, 0)\n"
            f"    if not {background}:\n"
            "        signal.signal(signal.SIGTTOU, signal.SIG_IGN); os.tcsetpgrp(0, os.getpid()); signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n"
            "    os.execv(sys.argv[1], sys.argv[1:])\n"
            "_, status = os.waitpid(pid, os.WUNTRACED)\n"
            "stopped = os.WIFSTOPPED(status)\n"
            "if stopped: os.kill(pid, 9)\n"
            "os._exit(99 if stopped else os.waitstatus_to_exitcode(status))\n")
    job = subprocess.Popen([PYTHON, "-c", code, b.program, *args], env=b.env, cwd=b.folder, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    os.set_blocking(master, False)
    return job, master


def drain(master, job, seconds=15):
    data = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            piece = os.read(master, 65536)
            data += piece
        except BlockingIOError:
            if job.poll() is not None:
                break
            time.sleep(0.01)
        except OSError:
            break
    job.wait(5)
    os.close(master)
    return data.decode(errors="replace")


def background_job_is_not_stopped_by_its_terminal(b):
    job, master = on_terminal(b, "-np", "2", "sh", "-c", "sleep 0.3; echo fine; echo fine >&2", background=True)
    os.write(master, b"typed for somebody else\n")
    text = drain(master, job)
    expect(job.returncode == 0 and text.count("fine") == 4, job.returncode, text)


def foreground_job_reads_its_terminal(b):
    job, master = on_terminal(b, "-np", "2", "sh", "-c", "[ $TUTTI_RANK = 0 ] || exit 0; read line; echo got $line", background=False)
    os.write(master, b"words\n")
    text = drain(master, job)
    expect(job.returncode == 0 and "got words" in text, job.returncode, text)


def control_c_of_a_terminal(b):
    job, master = on_terminal(b, "-np", "2", "sh", "-c", "touch up$TUTTI_RANK; exec sleep 100", background=False)
    expect(wait_for(lambda: os.path.exists(b.path("up0")) and os.path.exists(b.path("up1")), 5), "not started")
    os.write(master, b"\x03")
    text = drain(master, job)
    expect(job.returncode == 130, job.returncode, text)


AFFINITY = "import os; print(os.environ['TUTTI_RANK'], sorted(os.sched_getaffinity(0)))"


def affinities(r):
    return {int(line.split()[0]): line.split(None, 1)[1] for line in r.out.split("\n")[:-1]}


def ranks_are_bound_while_cores_last(b):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("needs two CPUs")
    with open(f"/sys/devices/system/cpu/cpu{cpus[0]}/topology/thread_siblings_list") as file:
        if file.read().strip() != str(cpus[0]):
            raise Skip("hardware threads share cores here")
    for bind in ((), ("--bind", "core")):
        found = affinities(b.run("-np", "2", *bind, PYTHON, "-c", AFFINITY))
        expect(found == {0: str([cpus[0]]), 1: str([cpus[1]])}, found)
    many = str(len(cpus) + 1)
    r = b.run("-np", many, PYTHON, "-c", AFFINITY)
    expect(set(affinities(r).values()) == {str(cpus)} and r.err == "", r)
    r = b.run("-np", many, "--bind", "core", PYTHON, "-c", AFFINITY)
    expect(set(affinities(r).values()) == {str(cpus)} and "no rank is bound" in r.err, r)
    r = b.run("-np", "2", "--bind", "none", PYTHON, "-c", AFFINITY)
    expect(set(affinities(r).values()) == {str(cpus)}, r)
    # Only what this process may use counts.
    r = b.run("-np", "2", PYTHON, "-c", AFFINITY, prefix=("taskset", "-c", str(cpus[1])))
    expect(set(affinities(r).values()) == {str([cpus[1]])}, r)


def numa_binding(b):
    r = b.run("-np", "2", "--bind", "numa", PYTHON, "-c", AFFINITY)
    allowed = os.sched_getaffinity(0)
    for text in affinities(r).values():
        expect(set(eval(text)) <= allowed and text != "[]", r)


def verbose_tells_what_happens(b):
    r = b.run("-np", "2", "-v", "--bind", "none", "true")
    expect(r.code == 0 and r.err.count("not bound") == 2 and "rendezvous at tcp://" in r.err, r)


HELPERS = ("memory_of", "on_terminal", "drain", "affinities")
CASES = [value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__ and name not in HELPERS]
