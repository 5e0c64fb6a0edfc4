"""Modules of torch under a parent that checks every message, against the same training in plain torch."""

import os
import random
import subprocess
import unittest

import numpy as np

from tests.parent import TESTS, Parent, Wrong, script
from tests.rows import BATCHES

try:
    import torch
    import torch.nn.functional as F

    from tests import child_torch as script_of

    torch.set_num_threads(1)
except ImportError:
    torch = None


def plain(case, batches, lr, exact=False):
    """The same training in plain torch; exact: with the arithmetic of the parent, else with optim.SGD."""
    x, y = script_of.data(100, 1)
    net = script_of.build(case)
    if case == "norm frozen":
        net[1].eval()
    trained = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=lr)
    losses = []
    for rows in batches:
        optimizer.zero_grad()
        out = net(x[rows])
        loss = F.cross_entropy(out, y[rows], reduction="sum" if exact else "mean")
        loss.backward()
        if exact:
            with torch.no_grad():
                for p in trained:
                    if p.grad is not None:
                        p.sub_(p.grad * float(np.float32(lr / len(rows))))
        else:
            optimizer.step()
        losses.append((loss.item() * (1 if exact else len(rows)), int((out.argmax(1) == y[rows]).sum())))
    return net, losses


def torch_child(case="", **kw):
    return Parent(script("child_torch.py", case), **kw)


@unittest.skipIf(torch is None, "torch is not installed: modules of torch are not tested")
class Training(unittest.TestCase):
    def trains(self, case, exact=True, slowly=False, batches=BATCHES):
        """Trains under a parent and alone. Exact: parameters are bit-equal, else they differ by 1e-6 at most."""
        net, losses = plain(case, batches, 0.5, exact)
        with torch_child(case, lr=0.5) as p:
            p.start()
            for i, rows in enumerate(batches):
                loss, hits, gradients = p.step(rows, i, slowly and i in (0, 1, 2))
                np.testing.assert_allclose(loss, losses[i][0], rtol=0 if exact else 1e-5)
                self.assertEqual(hits, losses[i][1])
                if i == 2:
                    p.evaluate(list(range(50)))
                if i == 4:
                    p.place()
            want = net.state_dict()
            for name, value, is_stat in zip(p.names, p.values, p.stats):
                # A statistic goes through rows * value / rows.
                np.testing.assert_allclose(value, want[name].detach().numpy().reshape(value.shape), rtol=0,
                                           atol=1e-6 if is_stat or not exact else 0, err_msg=name)
            self.evaluates(p, net)
            order = list(p.order)
            p.step([0, 1])  # behind an evaluation
            p.bye()
        return p, order, gradients

    def evaluates(self, p, net):
        x, y = script_of.data(50, 2)
        net.eval()
        with torch.no_grad():
            for i, v in zip(p.names, p.values):
                net.state_dict()[i].copy_(torch.from_numpy(v).reshape(net.state_dict()[i].shape))
            out = net(x)
            want = F.cross_entropy(out, y, reduction="sum").item(), int((out.argmax(1) == y).sum())
        self.assertEqual(p.evaluate(list(range(50))), want)

    def test_an_mlp(self):
        p, order, _ = self.trains("")
        self.assertEqual((p.layers, order), (["0", "2"], [1, 0]))

    def test_layers_are_waited_for_one_by_one(self):
        self.trains("", slowly=True)

    def test_a_plain_backward(self):
        self.trains("plain")

    def test_means(self):
        self.trains("mean", exact=False)
        self.trains("plain mean", exact=False)

    def test_parts(self):
        self.trains("parts", exact=False, batches=BATCHES[:6] + [[1, 2, 3, 4]])

    def test_habits_with_zero_grad(self):
        self.trains("habits")

    def test_a_convolution(self):
        self.trains("conv")

    def test_tied_frozen_and_unused_tensors(self):
        for case in ("tied", "tied plain", "tied parts"):
            with self.subTest(case):
                p, order, g = self.trains(case, case != "tied parts", batches=BATCHES[:6] + [[1, 2, 3]])
                self.assertEqual(p.layers, ["net", "first", "second", "unused", "out"])
                self.assertEqual(p.names[0], "scale")
                self.assertEqual(p.shapes[0], (1,))
                self.assertNotIn("last.weight", p.names)
                for name, gradient in zip(p.names, g):
                    self.assertEqual(bool((gradient == 0).all()), name.startswith("unused"), name)

    def test_tied_layers_are_waited_for(self):
        self.trains("tied", slowly=True, batches=BATCHES[:4])

    def test_weights_that_a_parent_reads(self):
        p, _, _ = self.trains("attention", slowly=True)
        self.assertEqual(p.layers, ["inside", "attention", "attention.out_proj", "out"])

    def test_hooks_of_the_script_come_behind_ours(self):
        self.trains("weightnorm", slowly=True)

    def test_running_statistics(self):
        for case in ("norm", "norm plain", "norm frozen"):
            with self.subTest(case):
                p, _, _ = self.trains(case, slowly=case == "norm")
                self.assertEqual([n for n, s in zip(p.names, p.stats) if s],
                                 ["1.running_mean", "1.running_var", "3.running_mean", "3.running_var"])

    def test_16_bits_have_masters_of_32(self):
        with torch_child("low", lr=0.5) as p:
            p.start()
            net = script_of.build("low")
            x, y = script_of.data(100, 1)
            for rows in BATCHES:
                loss, _, gradients = p.step(rows)
                before = F.cross_entropy(net(x[rows]), y[rows], reduction="sum")
                self.assertAlmostEqual(loss, before.item(), places=4)
                net.zero_grad()
                before.backward()
                for name, g, v in zip(p.names, gradients, p.values):
                    q = dict(net.named_parameters())[name]
                    np.testing.assert_array_equal(q.grad.float().numpy(), g)
                    q.data.copy_(torch.from_numpy(v))
            low = p.values[p.names.index("low.weight")]
            self.assertTrue((low != torch.from_numpy(low).to(torch.bfloat16).float().numpy()).any())
            p.evaluate([1, 2])
            p.step([1])
            p.bye()

    def test_alone_is_plain_sgd(self):
        order, batches = random.Random(4), []
        for _ in range(2):
            rows = list(range(100))
            order.shuffle(rows)
            batches += [rows[i : i + 20] for i in range(0, 100, 20)]
        for case in ("", "norm", "tied"):
            net, _ = plain(case, batches, 0.5)
            env = dict(os.environ, PYTHONPATH=str(TESTS.parent))
            r = subprocess.run(script("child_torch.py", case), env=env, timeout=120, capture_output=True,
                               text=True, check=True)
            lines = r.stdout.splitlines()
            self.assertEqual(len(lines), 3)
            got = np.array([float(v) for v in lines[2].split()])
            np.testing.assert_allclose(got, next(net.parameters()).detach().numpy().ravel(), rtol=0, atol=2e-6)


@unittest.skipIf(torch is None, "torch is not installed: modules of torch are not tested")
class Wrongs(unittest.TestCase):
    def test_what_cannot_be_trained_is_refused_by_name(self):
        for case, texts in {
            "float64": ("parameter 0.weight", "net.float()"),
            "complex": ("parameter weight", "complex64"),
            "sparse": ("module net", "sparse=False"),
            "lazy": ("parameter weight", "run one batch"),
            "frozen": ("no parameter", "requires_grad"),
            "wrapped": ("DataParallel", "bind the module that it wraps"),
        }.items():
            with self.subTest(case), torch_child(case) as p:
                with self.assertRaises(Wrong) as caught:
                    p.greet()
                self.assertIn("FAIL", str(caught.exception))
                for text in texts:
                    self.assertIn(text, str(caught.exception))
                p.ended(1)

    def fails(self, case, *texts, steps=1):
        with torch_child(case) as p:
            p.start()
            with self.assertRaises(Wrong) as caught:
                for _ in range(steps):
                    p.step([1, 2, 3])
            for text in ("FAIL", *texts):
                self.assertIn(text, str(caught.exception))
            p.ended(1)

    def test_a_script_that_changes_parameters(self):
        self.fails("optimizer", "parameter 0.weight was changed", "optimizer.step()", steps=2)

    def test_a_parameter_that_is_elsewhere(self):
        self.fails("moves", "parameter 0.weight has left", "before ps.bind", steps=2)

    def test_a_network_that_is_cast_behind_bind(self):
        self.fails("cast", "0.weight is of torch.float64", "was of torch.float32", "before ps.bind")

    def test_backward_twice(self):
        self.fails("two backward", "s.accumulate(k)", steps=2)

    def test_a_step_without_a_loss(self):
        self.fails("skips", "step 0 has ended with no loss", steps=2)


if __name__ == "__main__":
    unittest.main()
