#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Tutti authors
# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh installs what is missing, and only that; where it cannot, it says so in one line.

usage: test_setup_script.py SOURCE_ROOT

Runs it with a PATH of its own, on which apt-get, sudo and id are fakes.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = ["bash", "cut", "tr", "sed", "mktemp", "tail", "rm", "env", "touch", "true"]
ROOT = pathlib.Path(sys.argv.pop(1))

APT = """#!/usr/bin/env bash
echo "$*" >>"$FAKES/calls"
case " $* " in
  *" update "*) touch "$FAKES/updated" ;;
  *" install "*)
    [ -e "$FAKES/lists-are-old" ] && ! [ -e "$FAKES/updated" ] && { echo "E: Unable to locate package" >&2; exit 100; }
    [ -e "$FAKES/refuses" ] && { echo "E: no space left" >&2; exit 100; }
    touch "$FAKES/here-now" ;;
esac
"""


class SetupScript(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-setup-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for tool in TOOLS:
            (self.folder / tool).symlink_to(shutil.which(tool))
        self.fake("apt-get", APT)
        self.fake("id", "#!/usr/bin/env bash\necho 0\n")

    def fake(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def state(self, name):
        (self.folder / name).touch()

    def install(self):
        needs = ("always-there|something common|true\n"
                 f"lib-a-dev|formats messages|test -e {self.folder}/here-now\n"
                 f"tool-b|builds things|test -e {self.folder}/here-now")
        script = f'set -euo pipefail; program=setup; . "{ROOT}/tools/setup.sh"; install_needs "$NEEDS"; echo END'
        env = {"PATH": str(self.folder), "FAKES": str(self.folder), "NEEDS": needs, "TMPDIR": str(self.folder)}
        return subprocess.run([str(self.folder / "bash"), "-c", script], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)

    def calls(self):
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def assert_one_line(self, done, *parts):
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("END", done.stdout)
        line = done.stderr.strip().splitlines()[-1]
        for part in parts:
            self.assertIn(part, line)

    def test_nothing_missing_does_nothing(self):
        self.state("here-now")
        done = self.install()
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.calls()), (0, "END\n", "", []))

    def test_installs_only_what_is_missing_and_says_why(self):
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"lib-a-dev +formats messages")
        self.assertRegex(done.stdout, r"tool-b +builds things")
        self.assertNotIn("always-there", done.stdout)
        self.assertEqual(len(self.calls()), 1)
        self.assertTrue(self.calls()[0].endswith("install -y --no-install-recommends lib-a-dev tool-b"))

    def test_updates_the_lists_if_they_do_not_know_the_packages(self):
        self.state("lists-are-old")
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([call.split(" install")[0].split()[-1] for call in self.calls()][1], "update")
        self.assertEqual(len(self.calls()), 3)

    def test_uses_sudo_if_not_root(self):
        self.fake("id", "#!/usr/bin/env bash\necho 1000\n")
        self.fake("sudo", '#!/usr/bin/env bash\n[ "$1" = -n ] && shift\necho "sudo $*" >>"$FAKES/sudo-calls"\nexec "$@"\n')
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("apt-get", (self.folder / "sudo-calls").read_text(encoding="utf-8"))

    def test_neither_root_nor_sudo_is_one_line_with_the_remedy(self):
        self.fake("id", "#!/usr/bin/env bash\necho 1000\n")
        self.assert_one_line(self.install(), "setup: missing: lib-a-dev tool-b", "apt-get install lib-a-dev tool-b")
        self.assertEqual(self.calls(), [])

    def test_sudo_with_a_password_and_no_terminal_is_one_line(self):
        self.fake("id", "#!/usr/bin/env bash\necho 1000\n")
        self.fake("sudo", "#!/usr/bin/env bash\nexit 1\n")
        self.assert_one_line(self.install(), "sudo wants a password", "sudo apt-get install lib-a-dev tool-b")

    def test_a_system_without_apt_is_one_line_with_the_names(self):
        os.unlink(self.folder / "apt-get")
        self.assert_one_line(self.install(), "no apt-get", "lib-a-dev tool-b")

    def test_apt_that_fails_shows_its_last_words(self):
        self.state("refuses")
        done = self.install()
        self.assert_one_line(done, "apt-get could not install: lib-a-dev tool-b")
        self.assertIn("no space left", done.stderr)

    def test_installed_but_not_usable_is_an_error(self):
        self.fake("apt-get", "#!/usr/bin/env bash\nexit 0\n")
        self.assert_one_line(self.install(), "still not usable: lib-a-dev tool-b")


if __name__ == "__main__":
    unittest.main()
