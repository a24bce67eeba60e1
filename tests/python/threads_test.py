"""The Python package among threads and processes.

    python threads_test.py [BUILD]
"""

import os
import sys
import threading
import time
import unittest
import warnings

import support  # noqa: F401  first: it finds the package

import fusebook
import numpy as np


class Threads(unittest.TestCase):
    def test_optimizers_step_in_threads_of_their_own(self):
        arrays = [np.zeros(1000) for _ in range(4)]

        def train(x):
            opt = fusebook.SGD([x], lr=1.0)
            for _ in range(200):
                opt.step([np.ones(1000)])

        threads = [threading.Thread(target=train, args=(x,)) for x in arrays]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for x in arrays:
            self.assertTrue((x == -200).all())

    def test_others_run_during_a_step(self):
        x, ones = np.zeros(1000), np.ones(1000)
        sgd = fusebook.SGD([x], lr=1.0)
        sgd.step([ones])
        runs, done = 0, False

        def run():
            nonlocal runs
            while not done:
                runs += 1
                time.sleep(0)

        other = threading.Thread(target=run)
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody has to give way
        try:
            other.start()
            before, steps = runs, 0
            while runs == before and steps < 100_000:
                sgd.step([ones])
                steps += 1
        finally:
            done = True
            sys.setswitchinterval(usual)
            other.join()
        self.assertLess(steps, 100_000)

    def test_one_function_is_mapped_in_two_threads(self):
        both = threading.Barrier(2, timeout=60)
        found = {}

        def shifted(p, by):
            both.wait()  # both threads are inside
            return p + by

        def run(by):
            found[by] = fusebook.foreach_map(shifted, [np.full(3, by)], by)[0][2]

        threads = [threading.Thread(target=run, args=(by,)) for by in (1.0, 2.0)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(found, {1.0: 2, 2.0: 4})

    def test_one_step_at_a_time(self):
        x = np.zeros(2)
        sgd = fusebook.SGD([x], lr=1.0)
        refused = []

        class Meddler:
            """A gradient that is lent while another step is tried."""

            def __dlpack__(self, **options):
                def step():
                    for call in (lambda: sgd.step([np.ones(2)]), sgd.report,
                                 lambda: sgd.add_param_group({"params": [x]})):
                        try:
                            call()
                        except fusebook.Error as error:
                            refused.append(str(error))

                other = threading.Thread(target=step)
                other.start()
                other.join()
                return np.ones(2).__dlpack__(**options)

        sgd.step([Meddler()])
        self.assertEqual(list(x), [-1, -1])
        self.assertEqual(len(refused), 3)
        for each in refused:
            self.assertIn("in a step of this optimizer", each)
        sgd.step([np.ones(2)])
        self.assertEqual(sgd.counters.launches, 2)

    def test_a_child_process_goes_on(self):
        x = np.zeros(100_000)
        adam = fusebook.Adam([x], lr=1.0)
        adam.step([np.ones(x.size)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            adam.step([np.ones(x.size)])
            good = adam.counters.launches == 2 and abs(x[-1] + 2) < 1e-6
            os._exit(0 if good else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertAlmostEqual(x[0], -1, delta=1e-6)
        adam.step([np.ones(x.size)])
        self.assertAlmostEqual(x[0], -2, delta=1e-6)


if __name__ == "__main__":
    unittest.main()
