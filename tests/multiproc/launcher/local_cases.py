# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs on this host: environment, endings, what is left behind."""

import os
import re
import signal
import subprocess
import sys
import time

from harness import expect, wait_for

PYTHON = sys.executable


def ranks_know_who_they_are(b):
    r = b.run("-np", "3", "sh", "-c", "echo $TUTTI_RANK $TUTTI_SIZE $TUTTI_LOCAL_RANK $TUTTI_LOCAL_SIZE $TUTTI_JOB_ID $TUTTI_RENDEZVOUS")
    lines = sorted(r.out.split("\n")[:-1])
    expect(r.code == 0 and r.err == "" and len(lines) == 3, r)
    for rank, line in enumerate(lines):
        words = line.split()
        expect(words[:4] == [str(rank), "3", str(rank), "3"], r)
        expect(words[4] == lines[0].split()[4] and re.match(r"tcp://127\.0\.0\.1:\d+$", words[5]), r)


def two_jobs_have_different_ids(b):
    ids = {b.run("-np", "1", "sh", "-c", "echo $TUTTI_JOB_ID").out for _ in range(2)}
    expect(len(ids) == 2, ids)


def odd_environment_values_survive(b):
    values = {"ODD_A": "a b  c", "ODD_B": "line one\nline two\n", "ODD_C": "x=y=z", "ODD_D": "'\"$HOME`id`\\", "ODD_E": "",
              "ODD_F": "\udcff\udc80 not utf-8"}
    show = "import os,sys; sys.stdout.buffer.write(repr(sorted((k, v) for k, v in os.environ.items() if k[:4] == 'ODD_')).encode('ascii', 'backslashreplace') + b'\\n')"
    r = b.run("-np", "2", "-x", "ODD_X=1=2 3", "-x", "ODD_A", PYTHON, "-c", show, env=values)
    wanted = repr(sorted({**values, "ODD_X": "1=2 3"}.items())).encode("ascii", "backslashreplace").decode()
    expect(r.code == 0 and r.out == (wanted + "\n") * 2, r, wanted)


def secret_comes_through_a_descriptor_only(b):
    script = ("import os; fd = int(os.environ['TUTTI_SECRET_FD']); s = os.pread(fd, 1000, 0)\n"
              "env = open('/proc/self/environ','rb').read(); arg = open('/proc/self/cmdline','rb').read()\n"
              "par = open('/proc/%d/cmdline' % os.getppid(),'rb').read()\n"
              "print(s.hex(), len(os.read(fd, 1000)) == len(s), s in env or s in arg or s in par, sorted(k for k in os.environ if 'SECRET' in k))")
    r = b.run("-np", "3", PYTHON, "-c", script, env={"TUTTI_SECRET": "mine", "TUTTI_SECRET_FILE": "/nowhere"})
    lines = set(r.out.split("\n")[:-1])
    expect(r.code == 0 and len(lines) == 1, r)
    secret, own_position, leaked, names = lines.pop().split(" ", 3)
    expect(len(secret) >= 64 and own_position == "True" and leaked == "False" and names == "['TUTTI_SECRET_FD']", r)


def ranks_inherit_nothing_else(b):
    script = ("import os,signal; fd = os.environ['TUTTI_SECRET_FD']; names = set(os.listdir('/proc/self/fd')) - {fd}\n"
              "status = dict(l.split(':\\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\\t' in l)\n"
              "print(len(names), status['SigBlk'].strip(), os.getpgrp() == os.getpid(), signal.getsignal(signal.SIGTTIN) == signal.SIG_DFL)")
    r = b.run("-np", "2", PYTHON, "-c", script)
    expect(r.out == "4 0000000000000000 True True\n" * 2, r)  # the fourth is the directory being listed


def first_failure_ends_the_job(b):
    r = b.run("-np", "4", "sh", "-c", "if [ $TUTTI_RANK = 2 ]; then exit 1; fi; exec sleep 120")
    last = r.err.rstrip("\n").split("\n")[-1]
    expect(r.code == 1 and r.seconds < 3, r)
    expect(last.startswith("tuttirun: rank 2 exited with 1 (host ") and "pid " in last, r)
    rows = [line.split() for line in r.err.split("\n") if re.match(r"  \d", line)]
    expect([row[0] for row in rows] == ["0", "1", "2", "3"], r)
    expect(sum("first failure" in line for line in r.err.split("\n")) == 1, r)
    expect(all(row[2].isdigit() and int(row[2]) > 1 for row in rows), r)
    expect(sum("SIGTERM" in line for line in r.err.split("\n")) == 3, r)


def death_by_signal_is_a_failure(b):
    for number, name in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL"), (signal.SIGABRT, "SIGABRT")):
        r = b.run("-np", "3", "sh", "-c", f"if [ $TUTTI_RANK = 1 ]; then ulimit -c 0; kill -{int(number)} $$; fi; exec sleep 120")
        expect(r.code == 128 + number, r)
        expect(re.search(rf"rank 1 was killed by signal {int(number)} \({name}, [A-Z][a-z ]+\)", r.err.split("\n")[-2]), r)


def survivors_that_exit_with_0_do_not_hide_a_death(b):
    r = b.run("-np", "3", "sh", "-c", "trap 'exit 0' TERM; touch up$TUTTI_RANK; if [ $TUTTI_RANK = 1 ]; then while [ ! -e up0 ] || [ ! -e up2 ]; do sleep 0.01; done; kill -9 $$; fi; sleep 120 & wait")
    expect(r.code == 137 and "rank 1 was killed by signal 9" in r.err, r)


def ranks_that_ignore_term_are_killed_after_the_grace(b):
    r = b.run("-np", "3", "--grace", "500ms", "sh", "-c", "if [ $TUTTI_RANK = 0 ]; then while [ ! -e up1 ] || [ ! -e up2 ]; do sleep 0.01; done; exit 7; fi; trap '' TERM; touch up$TUTTI_RANK; while :; do sleep 1; done")
    expect(r.code == 7 and 0.4 < r.seconds < 4, r)
    expect(r.err.count("SIGKILL") == 2, r)


def stopped_ranks_are_ended_too(b):
    r = b.run("-np", "2", "--grace", "20s", "sh", "-c", "if [ $TUTTI_RANK = 0 ]; then until grep -q 'State:.T' /proc/$(cat pid 2>/dev/null)/status 2>/dev/null; do sleep 0.02; done; exit 5; fi; echo $$ > pid; kill -STOP $$; sleep 60")
    expect(r.code == 5 and r.seconds < 10, r)


def keep_going_lets_the_others_finish(b):
    r = b.run("-np", "3", "--keep-going", "sh", "-c", "if [ $TUTTI_RANK = 1 ]; then exit 4; fi; sleep 0.3; echo done")
    expect(r.code == 4 and r.out == "done\ndone\n", r)
    expect("rank 1 exited with 4" in r.err.split("\n")[-2] and r.err.count("exited with 0") == 2, r)


def does_not_wait_for_a_daemon(b):
    daemon = ("import os,time\n"
              "if os.environ['TUTTI_RANK'] == '0' and os.fork() == 0:\n"
              "    os.setsid(); open('daemon','w').write(str(os.getpid()))\n"
              "    if CLOSED:\n        [os.close(f) for f in (0, 1, 2)]\n"
              "    time.sleep(15); os._exit(0)\n"
              "if os.environ['TUTTI_RANK'] == '0':\n"
              "    while not (os.path.exists('daemon') and os.path.getsize('daemon')): time.sleep(0.01)\n"
              "print('said')\n")
    for closed in ("True", "False"):
        if os.path.exists(b.path("daemon")):
            os.unlink(b.path("daemon"))
        r = b.run("-np", "2", PYTHON, "-c", daemon.replace("CLOSED", closed))
        expect(r.code == 0 and r.seconds < 3 and r.out == "said\nsaid\n", closed, r)
        pid = int(open(b.path("daemon")).read())
        os.kill(pid, 0)  # a daemon of a job that went well is left alone
        os.kill(pid, signal.SIGKILL)
    # ... and ended with a job that did not.
    os.unlink(b.path("daemon"))
    r = b.run("-np", "2", PYTHON, "-c", daemon.replace("CLOSED", "True") + "raise SystemExit(3)")
    expect(r.code == 3 and b.gone_within(1), r, b.marked())


def background_children_of_a_rank_do_not_stay(b):
    r = b.run("-np", "2", "sh", "-c", "sleep 100 & exit 0")
    expect(r.code == 0 and r.seconds < 3 and not b.marked(), r)


def output_after_the_rank_still_arrives(b):
    r = b.run("-np", "1", "bash", "-c", "echo early > >(sleep 0.05; cat; echo late); exit 0")
    expect(r.out == "early\nlate\n", r)


def start_and_wait(b, *args, ranks=2, **options):
    job = b.start(*args, **options)
    expect(wait_for(lambda: sum(name.startswith("ready") for name in os.listdir(b.folder)) == ranks, 10), "ranks did not start")
    return job


def interrupt_is_passed_on_and_nothing_stays(b):
    # Shells ignore SIGINT here, and take a while to end on SIGTERM.
    job = start_and_wait(b, "-np", "2", "--grace", "400ms", "sh", "-c",
                         "trap 'sleep 0.2; touch ended$TUTTI_RANK; exit 0' TERM; trap : INT; touch ready$TUTTI_RANK; while :; do sleep 0.05; done")
    job.send_signal(signal.SIGINT)
    r = b.finish(job)
    expect(os.path.exists(b.path("ended0")) and os.path.exists(b.path("ended1")), r)
    expect(r.code == 0 and not b.marked(), r)


def interrupt_without_handlers_gives_130(b):
    job = start_and_wait(b, "-np", "2", PYTHON, "-c", "import os,time,signal; signal.signal(signal.SIGINT, signal.SIG_DFL); open('ready'+os.environ['TUTTI_RANK'],'w'); time.sleep(100)")
    job.send_signal(signal.SIGINT)
    r = b.finish(job)
    expect(r.code == 130 and r.seconds < 2 and r.err.endswith("tuttirun: ended by signal 2 (SIGINT, Interrupt)\n"), r)


def second_interrupt_kills_at_once(b):
    job = start_and_wait(b, "-np", "2", "--grace", "30s", "sh", "-c", "trap 'touch got$TUTTI_RANK' INT; trap '' TERM; touch ready$TUTTI_RANK; while :; do sleep 0.05; done")
    job.send_signal(signal.SIGINT)
    expect(wait_for(lambda: os.path.exists(b.path("got0")) and os.path.exists(b.path("got1")), 5), "SIGINT was not passed on")
    job.send_signal(signal.SIGINT)
    r = b.finish(job)
    expect(r.code == 130 and r.seconds < 3 and not b.marked(), r)


def term_lets_ranks_end_well(b):
    job = start_and_wait(b, "-np", "2", "sh", "-c", "trap 'echo saved; exit 0' TERM; touch ready$TUTTI_RANK; while :; do sleep 0.05; done")
    job.send_signal(signal.SIGTERM)
    r = b.finish(job)
    expect(r.code == 0 and r.out == "saved\nsaved\n", r)


def user_signals_reach_every_rank(b):
    job = start_and_wait(b, "-np", "2", "sh", "-c", "trap 'echo usr1; exit 0' USR1; touch ready$TUTTI_RANK; while :; do sleep 0.05; done")
    job.send_signal(signal.SIGUSR1)
    r = b.finish(job)
    expect(r.code == 0 and r.out == "usr1\nusr1\n", r)


def suspend_and_continue(b):
    job = start_and_wait(b, "-np", "2", "sh", "-c", "touch ready$TUTTI_RANK; while [ ! -e go ]; do sleep 0.02; done")
    states = lambda pids: {pid: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] for pid in pids}
    shells = [pid for pid in b.marked() if open(f"/proc/{pid}/comm").read() == "sh\n"]
    expect(len(shells) == 2, shells)
    job.send_signal(signal.SIGTSTP)
    expect(wait_for(lambda: set(states(shells + [job.pid]).values()) == {"T"}, 5), states(shells + [job.pid]))
    job.send_signal(signal.SIGCONT)
    b.write("go", "")
    r = b.finish(job)
    expect(r.code == 0, r)


def killed_launcher_leaves_nothing(b):
    # Ranks that ignore SIGTERM, with children in a session of their own.
    job = start_and_wait(b, "-np", "3", "--grace", "500ms", "sh", "-c", "trap '' TERM; setsid sleep 100 & sleep 100 & touch ready$TUTTI_RANK; while :; do sleep 0.1; done", ranks=3)
    job.kill()
    job.wait()
    expect(b.gone_within(4), "left behind:", b.marked())
    b.finish(job)


def killed_by_name_leaves_nothing(b):
    # What `pkill -9 tuttirun` hits: every process of that name. The one that cleans up has another.
    job = start_and_wait(b, "-np", "2", "--grace", "300ms", "sh", "-c", "setsid sleep 100 & touch ready$TUTTI_RANK; sleep 100")
    for pid in b.marked():
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read() == os.path.basename(b.program) + "\n":
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # the death of the first has its effect already
    expect(b.gone_within(4), "left behind:", b.marked())
    b.finish(job)


def a_job_inside_a_job(b):
    r = b.run("-np", "2", b.program, "-np", "2", "sh", "-c", "echo $TUTTI_RANK $TUTTI_SIZE $TUTTI_JOB_ID")
    lines = [line.split() for line in r.out.split("\n")[:-1]]
    expect(r.code == 0 and sorted(line[:2] for line in lines) == [["0", "2"]] * 2 + [["1", "2"]] * 2, r)
    expect(len({line[2] for line in lines}) == 2, r)


def killed_launcher_during_start_leaves_nothing(b):
    for delay in (0, 0.001, 0.003, 0.01, 0.02):
        job = b.start("-np", "16", "--grace", "300ms", "sh", "-c", "sleep 100")
        time.sleep(delay)
        job.kill()
        b.finish(job)
        expect(b.gone_within(4), "left behind:", b.marked())


def agent_of(b, job):
    def find():
        for pid in b.marked():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == job.pid:
                        return pid
            except OSError:
                pass
        return None
    return find()


def killed_agent_is_reported_and_leaves_nothing(b):
    job = start_and_wait(b, "-np", "2", "sh", "-c", "sleep 100 & touch ready$TUTTI_RANK; wait")
    os.kill(agent_of(b, job), signal.SIGKILL)
    r = b.finish(job)
    expect(r.code == 125 and "agent was killed by signal 9" in r.err.split("\n")[-2], r)
    expect(r.err.count("was lost with its host") == 2 and b.gone_within(2), r, b.marked())


def killed_launcher_and_agent_take_the_ranks_along(b):
    job = start_and_wait(b, "-np", "2", PYTHON, "-c", "import os,time; open('ready'+os.environ['TUTTI_RANK'],'w'); time.sleep(100)")
    agent = agent_of(b, job)
    os.kill(agent, signal.SIGSTOP)  # it cannot act
    job.kill()
    os.kill(agent, signal.SIGKILL)
    b.finish(job)
    expect(b.gone_within(2), b.marked())


def time_limit(b):
    r = b.run("-np", "2", "--timeout", "0.4", "sleep", "100")
    expect(r.code == 124 and 0.3 < r.seconds < 3, r)
    expect(r.err.rstrip("\n").split("\n")[-1].startswith("tuttirun: the job did not end within 400ms (--timeout)"), r)
    r = b.run("-np", "2", "--timeout", "20", "true")
    expect(r.code == 0 and r.seconds < 2, r)


def hanging_exit_handler_is_bounded(b):
    # One rank returns 1, the other hangs in its exit handler and does not mind SIGTERM.
    script = ("import atexit,os,signal,time\n"
              "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
              "atexit.register(time.sleep, 60)\n"
              "if os.environ['TUTTI_RANK'] == '1': open('up', 'w').close(); raise SystemExit(0)\n"
              "while not os.path.exists('up'): time.sleep(0.01)\n"
              "os._exit(1)\n")
    r = b.run("-np", "2", "--grace", "1s", PYTHON, "-c", script)
    expect(r.code == 1 and r.seconds < 5, r)


def command_that_cannot_run(b):
    b.write("plain", "data")
    r = b.run("-np", "2", "./missing")
    expect(r.code == 127 and "cannot run './missing': No such file or directory" in r.err.split("\n")[-2], r)
    r = b.run("-np", "2", "./plain")
    expect(r.code == 126 and "cannot run './plain': Permission denied" in r.err.split("\n")[-2], r)


def wrong_command_lines(b):
    b.write("hosts", "a:2\nb slots=x\n")
    b.write("empty", "# nothing\n")
    bad = [
        (("-np", "0", "true"), "'0'"), (("-np", "x", "true"), "'x'"), (("-np", "-3", "true"), "-3"), ((), "which command"),
        (("-np", "2"), "which command"), (("true",), "-np"), (("--bogus", "-np", "2", "true"), "--bogus"),
        (("-np", "2", "-H", "a:0", "true"), "a:0"), (("-np", "2", "-H", "a,,b", "true"), "host name"),
        (("-np", "2", "-H", "-oProxy=x", "true"), "-oProxy"), (("-np", "9", "-H", "localhost:2", "true"), "--oversubscribe"),
        (("--hostfile", "hosts", "true"), "line 2"), (("--hostfile", "empty", "true"), "no host"),
        (("--hostfile", "none", "true"), "'none'"), (("-np", "2", "--bind", "socket", "true"), "'socket'"),
        (("-np", "2", "--grace", "soon", "true"), "'soon'"), (("-np", "2", "--timeout", "-1", "true"), "-1"),
        (("-np", "2", "-x", "NOT_SET_ANYWHERE", "true"), "NOT_SET_ANYWHERE=VALUE"), (("-np", "2", "-x", "=3", "true"), "'=3'"),
        (("-np", "2", "--rsh", "'", "true"), "--rsh"), (("-np", "2", "--output-dir", "/proc/no", "true"), "/proc/no"),
    ]
    for args, wanted in bad:
        r = b.run(*args)
        expect(r.code == 2 and r.out == "" and r.err.count("\n") == 1 and r.err.startswith("tuttirun: "), args, r)
        expect(wanted in r.err, args, wanted, r)


def words_of_the_command_are_left_alone(b):
    r = b.run("-np", "1", "printf", "%s|", "-np", "--help", "a b", "", "-x")
    expect(r.out == "-np|--help|a b||-x|", r)
    r = b.run("-np", "1", "--", "echo", "-n", "x")
    expect(r.out == "x", r)


def help_and_version(b):
    r = b.run("--help")
    expect(r.code == 0 and "Examples:" in r.out and "Exit codes:" in r.out and "--agent " not in r.out and r.err == "", r)
    r = b.run("--version")
    expect(r.code == 0 and re.match(r"tuttirun \(Tutti\) \d+\.\d+\.\d+\n$", r.out), r)


def odd_temporary_directories_do_not_matter(b):
    for tmp in ("/" + "x" * 150, "/proc/nowhere", ""):
        r = b.run("-np", "2", "true", env={"TMPDIR": tmp})
        expect(r.code == 0 and r.err == "", tmp, r)


def starting_is_fast(b):
    best = min(b.run("-np", "8", "/bin/true").seconds for _ in range(5))
    expect(best < 0.05, f"8 ranks of /bin/true took {best * 1000:.0f} ms")


def many_ranks(b):
    r = b.run("-np", "64", "sh", "-c", "echo $TUTTI_RANK")
    expect(r.code == 0 and sorted(map(int, r.out.split())) == list(range(64)), r)


def few_descriptors(b):
    r = b.run("-np", "40", "sh", "-c", "ulimit -n", prefix=("bash", "-c", 'ulimit -Sn 64; exec "$@"', "-"))
    expect(r.code == 0 and r.out == "64\n" * 40, r)


def idle_job_uses_no_processor(b):
    job = b.start("-np", "2", "sleep", "1")
    _, status, usage = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    expect(job.returncode == 0 and usage.ru_utime + usage.ru_stime < 0.1, usage)


CASES = [value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__
         and name not in ("start_and_wait", "agent_of")]
