"""The Python package with arrays on a GPU, whose driver is a stand-in: which work
waits for which.

    python gpu_test.py BUILD DRIVER
"""

import ctypes
import sys
import unittest

DRIVER = ctypes.CDLL(sys.argv.pop(2))
DRIVER.all_calls.restype = ctypes.c_char_p
DRIVER.forget_calls()

import support  # noqa: E402, F401  first: it finds the package

import fusebook  # noqa: E402
import lender  # noqa: E402
import numpy as np  # noqa: E402
from fusebook import _core  # noqa: E402

THEIRS = 0xabc0  # a stream of the other library


def on_gpu(values, kind=lender.Tensor):
    tensor = kind(values, np.float32)
    tensor.device = 2
    return tensor


def calls_of(work):
    """What a piece of work asks of the driver, without what every call does."""
    DRIVER.forget_calls()
    work()
    found = []
    for line in DRIVER.all_calls().decode().splitlines():
        name, *numbers = line.split()
        numbers = [int(each) for each in numbers]
        if name == "cuEventRecord":
            found.append(("record", *numbers))
        elif name == "cuStreamWaitEvent":
            found.append(("wait", *numbers[:2]))
        elif name in ("cuLaunchKernel", "cuLaunchCooperativeKernel"):
            found.append(("launch", numbers[8]))
        elif name.endswith("Synchronize"):
            found.append((name,))
    return found


class Turns(unittest.TestCase):
    def setUp(self):
        lender.STREAM = THEIRS

    def check(self, calls):
        """Theirs, ours, theirs; returns our stream."""
        (ours,) = {call[1] for call in calls if call[0] == "launch"}
        self.assertNotEqual(ours, THEIRS)
        events = [call[1] for call in calls if call[0] == "record"]
        wanted = [("record", events[0], THEIRS), ("wait", ours, events[0]),
                  ("launch", ours),
                  ("record", events[-1], ours), ("wait", THEIRS, events[-1])]
        self.assertEqual([call for call in calls if call[0] != "record"
                          or call[1] in (events[0], events[-1])], wanted)
        return ours

    def test_a_step_runs_after_the_gradients_and_before_what_follows(self):
        p, q = on_gpu([1, 2]), on_gpu([3])
        sgd = fusebook.SGD([p, q], lr=0.5)
        for each in (p, q):
            each.grad = on_gpu(each.array)
        sgd.step()
        for _ in range(3):
            self.check(calls_of(sgd.step))
        lender.STREAM = THEIRS + 64  # another one has become current
        calls = calls_of(sgd.step)
        self.assertEqual({call[1] for call in calls if call[0] == "wait"}
                         | {call[2] for call in calls if call[0] == "record"},
                         {lender.STREAM, calls[1][1]})

    def test_a_step_that_fails_gives_way_too(self):
        p = on_gpu([1, 2])
        sgd = fusebook.SGD([p], lr=0.5)
        p.grad = on_gpu([1, 2, 3])

        def step():
            with self.assertRaises(fusebook.Error):
                sgd.step()

        calls = calls_of(step)
        self.assertEqual(calls[-1][:2], ("wait", THEIRS))
        self.assertFalse(any(call[0] == "launch" for call in calls))

    def test_gradients_that_are_made_while_they_are_read(self):
        p, q = on_gpu([1, 2]), on_gpu([3])
        sgd = fusebook.SGD([p, q], lr=0.5)

        def grads():
            for each in (p, q):
                DRIVER.forget_calls()  # what is issued here comes before the step
                yield on_gpu(each.array)

        sgd.step(grads=grads())
        self.check(calls_of(lambda: sgd.step(grads=grads())))

    def test_memory_that_the_driver_manages(self):
        p = on_gpu([1, 2])
        p.device = 13  # kDLCUDAManaged
        sgd = fusebook.SGD([p], lr=0.5)
        for device in (2, 13):
            p.grad = on_gpu(p.array)
            p.grad.device = device
            sgd.step()
            self.check(calls_of(sgd.step))

    def test_gradients_of_another_library(self):
        lender.OTHER_STREAM = other = THEIRS + 128
        p = on_gpu([1, 2])
        sgd = fusebook.SGD([p], lr=0.5)
        p.grad = on_gpu([1, 2], lender.OtherTensor)
        sgd.step()
        calls = calls_of(sgd.step)
        at = [call[0] for call in calls].index("launch")
        for found in (
                [call[2] for call in calls[:at] if call[0] == "record"],
                [call[1] for call in calls[at:] if call[0] == "wait"]):
            self.assertEqual(found, [THEIRS, other])

    def test_parameters_of_two_libraries(self):
        lender.OTHER_STREAM = other = THEIRS + 128
        params = [on_gpu([1]), on_gpu([2], lender.OtherTensor), on_gpu([3])]
        sgd = fusebook.SGD(params, lr=0.5)
        for each in params:
            each.grad = on_gpu(each.array, type(each))
        sgd.step()
        calls = calls_of(sgd.step)
        self.assertEqual([call[2] for call in calls if call[0] == "record"][:2],
                         [THEIRS, other])

    def test_functions_of_elements(self):
        x = on_gpu([1, 2])

        def double():
            fusebook.foreach_map_(lambda a: a * 2, [x])

        double()
        self.check(calls_of(double))

    def test_what_is_lent_waits_both_ways(self):
        x = on_gpu([1, 2])
        (made,), = _core.Map()(lambda a: a * 2, [[x]], 0)
        self.assertEqual(made.__dlpack_device__(), (2, 0))
        for version in ((1, 0), None):
            lent = []
            calls = calls_of(lambda: lent.append(
                made.__dlpack__(stream=THEIRS, max_version=version)))  # noqa: B023
            (_, event, ours), (_, theirs, waited) = calls
            self.assertEqual((theirs, waited), (THEIRS, event))
            # Their stream may be gone by then.
            self.assertEqual(calls_of(lent.clear),
                             [("record", event, 0), ("wait", ours, event)])

        def unasked():
            del [made.__dlpack__(stream=-1)][0]

        self.assertEqual(calls_of(unasked),
                         [("record", event, 0), ("wait", ours, event)])
        self.assertEqual(calls_of(made.__dlpack__)[1], ("wait", 1, event))
        for stream in (0, -2):
            with self.assertRaisesRegex(fusebook.Error, f"stream {stream} is none"):
                made.__dlpack__(stream=stream)

    def test_arrays_in_host_memory_need_no_turns(self):
        p = lender.Tensor([1, 2])
        p.grad = lender.Tensor([1, 2])
        sgd = fusebook.SGD([p], lr=0.5)
        sgd.step()
        self.assertEqual(calls_of(sgd.step), [])


if __name__ == "__main__":
    unittest.main()
