"""Ranks that end early: the others end, too, in seconds and with one line of ours.

    python3 ends_test.py PROGRAM    FUSEBOOK_KILLS: how many ranks are killed
                                    FUSEBOOK_MPI: mpich, where it is that

PROGRAM NAME does as NAME in ends.cpp says.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
SECONDS = 60  # of a machine that does other things, too
KILLS = int(os.environ.get("FUSEBOOK_KILLS", "3"))
# MPICH's launcher kills the others at once, so that its own text is all there is.
IS_TOLD = os.environ.get("FUSEBOOK_MPI") != "mpich"
LAUNCH = pathlib.Path(__file__).resolve().parents[1] / "launch.sh"


def command(name, ranks, *rest):
    return ["sh", LAUNCH, "ranks", str(ranks), PROGRAM, name, *rest]


def run(name, ranks=4, *rest):
    """Exit code, lines of ours, and all that was printed."""
    done = subprocess.run(command(name, ranks, *rest), text=True,
                          capture_output=True, timeout=SECONDS, check=False)
    text = done.stdout + done.stderr
    return done.returncode, re.findall(r"^fusebook: .*$", text, re.M), text


class Ends(unittest.TestCase):
    def check(self, name, *wanted, rest=()):
        code, ours, text = run(name, 4, *rest)
        self.assertNotEqual(code, 0, text)
        self.assertEqual(len(ours), 1, text)
        for each in wanted:
            self.assertIn(each, ours[0])

    def test_a_run_that_ends_well(self):
        code, ours, text = run("well")
        self.assertEqual((code, ours), (0, []), text)
        self.assertEqual(text.count("done"), 4)

    def test_an_exception(self):
        self.check("throws", "rank 2 of 4", "no more data")

    def test_an_exception_that_the_program_catches(self):
        self.check("catches", "rank 2 has left the run", "in add_gradients at ")

    def test_one_that_returns_early(self):
        self.check("returns", "rank 2 has left the run", "in add_gradients at ")

    def test_one_that_calls_exit(self):
        self.check("exits", "rank 2 has left the run")

    def test_mpi_that_was_started_without_threads(self):
        self.check("without threads", "run_ranks: MPI was started without threads")

    def test_mpi_that_was_ended(self):
        code, ours, text = run("ended", 1)
        self.assertEqual(code, 1, text)
        self.assertEqual(ours, ["fusebook: run_ranks: MPI has been ended"], text)

    def test_ranks_that_differ(self):
        self.check("differs", "rank 2 has", "max_norm = 2")

    def in_pairs(self, how, *wanted):
        self.check("in pairs", *wanted, rest=[how])

    def test_ranks_that_differ_in_a_group_without_the_first(self):
        self.in_pairs("differs", "rank 1 has", "max_norm = 2")

    def test_an_exception_in_a_group_while_the_others_wait_for_all(self):
        self.in_pairs("throws", "rank 1 of 4", "no more data")

    def test_an_exception_in_a_group_that_the_program_catches(self):
        self.in_pairs("catches", "rank 1 of 4 has left a group of ranks")

    def test_one_that_returns_before_a_group(self):
        self.in_pairs("returns", "rank 1 has left the run", "in Ranks at ")

    def test_ranks_of_another_launcher(self):
        """Each would be alone; the first of them says so, the others wait for
        their end."""
        for name in "PMI", "OMPI_COMM_WORLD":
            others = [self.alone(name, rank) for rank in (1, 2)]
            code, text = self.told(self.alone(name, 0))
            self.assertEqual(code, 1, text)
            ours = re.findall(r"^fusebook: .*$", text, re.M)
            self.assertEqual(len(ours), 1, text)
            self.assertIn(f"has started 3 ranks ({name}_SIZE)", ours[0])
            for each in others:
                code, text = self.told(each)
                self.assertEqual((code, text), (1, ""))

    def alone(self, name, rank):
        """A process that a launcher of another library has started."""
        given = dict(os.environ)
        given.update({f"{name}_SIZE": "3", f"{name}_RANK": str(rank),
                      "FUSEBOOK_THREADS": "1"})
        return subprocess.Popen([PROGRAM, "well"], env=given, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def told(self, process):
        text, _ = process.communicate(timeout=SECONDS)
        return process.returncode, text

    def test_a_rank_that_is_killed(self):
        """The others end within seconds, and the last checkpoint loads."""
        moments = random.Random(18)
        for _ in range(KILLS):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "run.safetensors"
                self.kill_one(file, moments.randrange(4), moments.uniform(0, 1))
                code, ours, text = run("load", 3, file)
                self.assertEqual((code, ours), (0, []), text)
                self.assertEqual(text.count("loaded"), 3)

    def kill_one(self, file, rank, seconds):
        started = subprocess.Popen(
            command("on", 4, file), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        processes = {}
        while len(processes) < 4:
            found = re.match(r"rank (\d) is process (\d+)",
                             started.stdout.readline())
            if found:
                processes[int(found[1])] = int(found[2])
        while not file.exists():
            time.sleep(0.01)
        time.sleep(seconds)
        os.kill(processes[rank], signal.SIGKILL)
        text, _ = started.communicate(timeout=SECONDS)
        self.assertNotEqual(started.returncode, 0)
        ours = re.findall(r"^fusebook: .*$", text, re.M)
        told = [f"fusebook: rank {rank} of 4 has died, as process {processes[rank]}"]
        self.assertEqual(ours, told if IS_TOLD else [], text)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
