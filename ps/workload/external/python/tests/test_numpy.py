"""A model of numpy under a parent that checks every message."""

import os
import random
import subprocess
import unittest

import numpy as np

from fluentps import _wire as w
from tests import child_numpy as script_of
from tests.parent import TESTS, Parent, Wrong, script

BATCHES = [[int(r) for r in np.random.RandomState(9).randint(0, 100, 20)] for _ in range(6)] + [[5], [1, 2, 3]]


def reference(batches, lr):
    x, y = script_of.data(100, 1)
    p = script_of.initial()
    losses = []
    for rows in batches:
        h, q, loss, hits = script_of.forward(p, x[rows], y[rows])
        g = {k: np.zeros_like(v) for k, v in p.items()}
        script_of.backward(p, x[rows], y[rows], h, q, g)
        for k in p:
            p[k] -= np.float32(lr / len(rows)) * g[k]
        losses.append((loss, hits))
    return p, losses


def numpy_child(case="", **kw):
    return Parent(script("child_numpy.py", case), **kw)


class Training(unittest.TestCase):
    def same(self, parent, want):
        for name, value in zip(parent.names, parent.values):
            self.assertTrue(np.array_equal(value, want[name]), name)

    def trains(self, case, hits=True, slowly=False):
        want, losses = reference(BATCHES, 0.5)
        with numpy_child(case, lr=0.5) as p:
            p.start()
            self.assertEqual(p.layers, ["hidden", "out"])
            self.assertEqual(p.shapes, [(6, 8), (8,), (8, 4), (4,)])
            for i, rows in enumerate(BATCHES):
                loss, right, _ = p.step(rows, i, slowly)
                self.assertEqual((loss, right), (losses[i][0], losses[i][1] if hits else None))
                if i == 3:
                    p.place()  # other memory
            self.same(p, want)
            x, y = script_of.data(50, 2)
            _, _, loss, right = script_of.forward(want, x[:30], y[:30])
            self.assertEqual(p.evaluate(list(range(30))), (loss, right))
            p.step([0])
            p.bye()
            return p.order

    def test_values_are_those_of_plain_numpy(self):
        self.assertEqual(self.trains(""), [1, 0])

    def test_layers_are_waited_for_one_by_one(self):
        self.trains("by layer", slowly=True)

    def test_the_generator_reports_layers_that_the_script_does_not(self):
        self.trains("by generator")

    def test_gradients_that_the_script_does_not_write_are_0(self):
        with numpy_child("half") as p:
            p.start()
            _, _, gradients = p.step([1, 2, 3])
            self.assertEqual([bool((g == 0).all()) for g in gradients], [True, True, True, False])
            p.bye()

    def test_without_hits(self):
        self.trains("no hits", hits=False)

    def test_evaluation_steps_are_yielded_without_a_function(self):
        self.trains("report")

    def test_a_forked_process_closes_its_connection(self):
        self.trains("fork")

    def test_probe_ends_behind_bound(self):
        with numpy_child(mode="probe") as p:
            p.greet()
            p.bye()

    def test_alone_is_plain_descent(self):
        rows, order, batches = 100, random.Random(4), []
        for _ in range(3):
            all_rows = list(range(rows))
            order.shuffle(all_rows)
            batches += [all_rows[i : i + 20] for i in range(0, rows, 20)]
        want, _ = reference(batches, 0.5)
        r = subprocess.run(script("child_numpy.py"), env=dict(os.environ, PYTHONPATH=str(TESTS.parent)), timeout=60,
                           capture_output=True, text=True, check=True)
        lines = r.stdout.splitlines()
        self.assertEqual(len(lines), 4, r.stdout)
        self.assertRegex(lines[2], r"epoch 3 of 3: loss 0\.\d+, of test rows \d\.\d+, right \d+ of 50")
        got = np.array([float(v) for v in lines[3].split()[1:]], np.float32)
        np.testing.assert_allclose(got, want["hidden.bias"], rtol=0, atol=1e-7)


class Wrongs(unittest.TestCase):
    """The parent of these tests sees what is wrong, and so does the package."""

    def breaks(self, case, pattern, slowly=False):
        with numpy_child(case) as p:
            p.start()
            with self.assertRaisesRegex(Wrong, pattern):
                p.step([1, 2, 3], 0, slowly)

    def test_gradients_before_go(self):
        self.breaks("early", "before GO")

    def test_gradients_behind_ready(self):
        self.breaks("late", "behind READY")

    def test_parameters_written(self):
        self.breaks("writes", "was changed")

    def test_a_child_that_does_not_wait_reads_poison(self):
        with numpy_child("impatient") as p:
            p.start()
            self.assertTrue(np.isnan(p.step([1, 2, 3], 0, True)[0]))

    def fails(self, case, *texts):
        with numpy_child(case) as p:
            p.start()
            with self.assertRaises(Wrong) as caught:
                p.step([1, 2, 3])
            self.assertIn("FAIL", str(caught.exception))
            for text in texts:
                self.assertIn(text, str(caught.exception))
            return p.ended(0 if case == "leaves" else 1)[1]

    def test_ready_twice_is_an_error_of_the_script(self):
        self.assertIn("Traceback", self.fails("twice", "Error: layer out is ready a second time"))

    def test_an_exception_is_told_before_its_traceback(self):
        self.assertIn("ValueError: a bad\nrow", self.fails("raises", "b'ValueError: a bad row'"))

    def test_a_loop_that_is_left_early_is_told(self):
        self.fails("leaves", "has ended before the run")

    def test_other_rows_are_named(self):
        with numpy_child("rows", rows=100) as p:
            p.greet()
            text, _ = p.failed()
        self.assertIn("rows=99", text)
        self.assertIn("rows 100", text)

    def test_random_numbers_are_in_the_state(self):
        with numpy_child() as p:
            p.start()
            p.send(w.STATE)
            self.assertGreater(p.expect(w.STATE)[3], 100)  # the random numbers of Python and NumPy

    def test_a_parent_that_is_gone_ends_the_child_with_one_line(self):
        with numpy_child() as p:
            p.start()
            p.step([1])
            p.socket.close()
            _, err = p.ended(1)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn("the parent is gone", err)

    def test_messages_at_a_wrong_time_are_named(self):
        with numpy_child() as p:
            p.start()
            p.send(w.GO)
            self.assertIn("GO where STEP, EVAL or BYE", p.failed()[0])

    def test_a_place_outside_of_its_region_is_named(self):
        with numpy_child() as p:
            p.start()
            p.control.memory[p.table + 8 : p.table + 16] = (1 << 20).to_bytes(8, "little")
            p.send(w.PLACE, 1, 0, p.table)
            self.assertIn("hidden.weight", p.failed()[0])


if __name__ == "__main__":
    unittest.main()
