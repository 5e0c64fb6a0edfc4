"""fluentps.Optimizer: scripts that keep their loop, under a parent that checks every message, against plain torch."""

import os
import subprocess
import sys
import unittest

import numpy as np

from tests.parent import TESTS, Parent, Wrong, script
from tests.rows import BATCHES

try:
    import torch
    import torch.nn.functional as F

    from tests import child_torch as networks

    torch.set_num_threads(1)
except ImportError:
    torch = None


def plain(case, batches, lr, clip=None):
    """Plain torch with means and SGD. A missing zero_grad adds gradients up there, too."""
    x, y = networks.data(100, 1)
    net = networks.build(case)
    if case == "loads":
        net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=lr)
    losses = []
    for rows in batches:
        if case != "never zero":
            optimizer.zero_grad()
        loss = F.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        losses.append(loss.item() * len(rows))
    return net, losses


def child(case="", sampler="script", **kw):
    return Parent(script("child_optimizer.py", case), sampler=sampler, **kw)


@unittest.skipIf(torch is None, "torch is not installed: modules of torch are not tested")
class Training(unittest.TestCase):
    def trains(self, case, clip=None, lr=0.5):
        """Parameters and losses are within 1e-6 of those of plain torch."""
        net, losses = plain(case, BATCHES, lr, clip)
        with child(case, lr=lr) as p:
            p.start()
            for i, rows in enumerate(BATCHES):
                loss, _, _ = p.step([0] * len(rows), i, slowly=i in (0, 2))
                np.testing.assert_allclose(loss, losses[i], rtol=1e-5)
                if i == 2:
                    p.evaluate(list(range(50)))
                if i == 4:
                    p.place()
            want = net.state_dict()
            for name, value in zip(p.names, p.values):
                np.testing.assert_allclose(value, want[name].detach().numpy().reshape(value.shape), rtol=0, atol=1e-6,
                                           err_msg=f"{case}: {name}")
            xt, yt = networks.data(50, 2)
            net.eval()
            loss, hits = p.evaluate(list(range(50)))
            with torch.no_grad():
                out = net(xt)
            self.assertEqual(hits, int((out.argmax(1) == yt).sum()))
            np.testing.assert_allclose(loss, F.cross_entropy(out, yt, reduction="sum").item(), rtol=1e-5)
            return p.bye()

    def test_a_script_of_torch(self):
        out = self.trains("")
        self.assertEqual(out, "")  # the next opt.step ends it

    def test_habits(self):
        for case in ("closure", "accumulates", "zeros", "never zero", "sums", "loads", "validates"):
            with self.subTest(case):
                self.trains(case, lr=0.05 if case == "never zero" else 0.5)

    def test_clipped_gradients(self):
        self.trains("clips", clip=0.1)

    def test_other_networks(self):
        for case in ("tied", "norm", "attention"):
            with self.subTest(case):
                self.trains(case)

    def test_a_script_asks_whether_the_run_goes_on(self):
        with child("asks") as p:
            p.start()
            for i in range(3):
                p.step([0] * 20, i)
            self.assertEqual(p.bye(), "asked\n")

    def test_a_run_without_a_step(self):
        for case, said in (("asks", "asked\n"), ("", ""), ("loop", None)):
            with self.subTest(case), child(case) as p:
                p.start()
                p.evaluate([1, 2])
                out = p.bye()
                self.assertIn("seen\n" if said is None else said, out)

    def test_a_probe(self):
        with child(mode="probe") as p:
            p.greet()
            self.assertEqual(p.bye(), "")

    def test_loops_over_a_loader(self):
        """Each pass has another order, and workers have other samples."""
        seen = []
        for worker, case in enumerate(("loop", "loop workers")):
            with child(case, worker=worker, workers=2) as p:
                p.start()
                for i in range(7):  # 3 batches in a pass
                    p.step([0] * 20, i)
                seen.append([int(r) for r in p.bye().splitlines()[0].split()[1:]])
        first, second = seen
        self.assertEqual((len(first), len(second)), (120, 120))
        for rows in (first[:50], second[:50]):
            self.assertEqual(len(set(rows)), 50)
        self.assertEqual(set(first[:50]) | set(second[:50]), set(range(100)))
        self.assertNotEqual(first[:50], first[50:100])

    def test_alone(self):
        """A loop of the script's ends by itself, ps.loop after the passes that Alone says."""
        def run(case):
            env = dict(os.environ, PYTHONPATH=str(TESTS.parent))
            env.pop("FLUENTPS_CHILD", None)
            return subprocess.run(script("child_optimizer.py", case), env=env, timeout=120, capture_output=True, text=True,
                                  check=True).stdout.splitlines()

        def close(line, net):
            got = np.array([float(v) for v in line.split()])
            np.testing.assert_allclose(got, next(net.parameters()).detach().numpy().ravel(), rtol=0, atol=1e-6)

        lines = run("alone ends")
        close(lines[0], plain("", BATCHES[:1], 0.5)[0])
        lines = run("loop")
        self.assertRegex(lines[0], r"^epoch 1 of 2: loss 1\.\d+, of test rows 1\.\d+, right \d+ of 50$")
        self.assertRegex(lines[1], r"^epoch 2 of 2: ")
        seen = [int(r) for r in lines[2].split()[1:]]
        self.assertEqual(len(seen), 200)
        close(lines[3], plain("", [seen[i : i + 20] for i in range(0, 200, 20)], 0.5)[0])


@unittest.skipIf(torch is None, "torch is not installed: modules of torch are not tested")
class Wrongs(unittest.TestCase):
    def test_calls_that_are_refused(self):
        with child("refused") as p:
            p.start()
            p.step([0] * 20)
            said = dict(line.split(": ", 1) for line in p.bye().splitlines())
        for name, texts in {
            "no optimizer": ("make the optimizer first",),
            "first": ("before the network was called",),
            "parameters": ("got a generator", "fluentps.Optimizer(ps, net)"),
            "no run": ("DistributedDataParallel", "what fluentps.join() returns"),
            "twice": ("a second time",),
            "empty": ("no batch in pass 1 over list",),
            "no gradient": ("call loss.backward()",),
            "closure": ("say opt.step(loss)",),
            "no loss": ("say opt.step(loss)",),
            "shape": ("the shape (20,)", "such as the mean"),
            "text": ("got a str",),
            "horovod": ("got lr: the servers own the optimizer", "train.optimizer"),
            "wraps": ("got a SGD first", "fluentps.Optimizer(ps, net)"),
            "scheduler": ("train.schedule", "lr_scheduler"),
            "plateau": ("train.schedule",),
            "group": ("train.optimizer",),
            "scaler": ("GradScaler", "bfloat16"),
            "state": ("fluentps run --resume",),
        }.items():
            for text in texts:
                self.assertIn(text, said.pop(name, "") if text == texts[-1] else said[name], name)
        self.assertEqual(said, {})

    def fails(self, case, *texts, steps=1, code=1, **welcome):
        with child(case, **welcome) as p:
            with self.assertRaises(Wrong) as caught:
                p.start()
                for i in range(steps):
                    p.step([0] * 20, i)
            for text in ("FAIL", *texts):
                self.assertIn(text, str(caught.exception), case)
            self.assertEqual(p.process.wait(60), code)

    def test_a_script_that_fails(self):
        self.fails("raises", "ValueError: the sample is too odd")

    def test_a_script_that_cannot_evaluate(self):
        self.fails("no evaluate", "evaluates 50 test rows", "evaluate=evaluate", "data.test_rows: 0")

    def test_the_entrance_and_the_key_go_together(self):
        self.fails("", "data.sampler is run", "data: {sampler: script}", "ps.steps", sampler="run")
        with Parent(script("child_torch.py"), sampler="script") as p:
            with self.assertRaises(Wrong) as caught:
                p.start()
                p.expect()  # nothing
            self.assertIn("data.sampler is script, but ps.steps", str(caught.exception))

    def test_a_loop_that_is_shorter_than_the_run(self):
        self.fails("short", "beyond the script's own loop", "ps.loop(loader)", steps=len(BATCHES) + 1, code=0)

    def test_what_can_be_iterated_once(self):
        self.fails("generator", "no batch in pass 2 over generator", steps=len(BATCHES) + 1)


class WithoutTorch(unittest.TestCase):
    def test_scripts_with_arrays_need_no_torch(self):
        code = "import sys, fluentps; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=str(TESTS.parent)), check=True)

    def test_names_that_are_not_there(self):
        import fluentps

        with self.assertRaises(AttributeError):
            fluentps.Optimiser


if __name__ == "__main__":
    unittest.main()
