"""Two processes that train one network by DistributedDataParallel, as one worker: they have the parameters of one process."""

import os
import subprocess
import sys
import unittest

import numpy as np

from tests.parent import TESTS, Parent, Wrong, script
from tests.rows import BATCHES

try:
    import torch
    import torch.distributed

    from tests.test_optimizer import plain

    has_gloo = torch.distributed.is_available() and torch.distributed.is_gloo_available()
except (ImportError, AttributeError):
    has_gloo = False

EVEN = BATCHES[:6]  # batches that two processes halve


def child(case="", sampler="script", **kw):
    return Parent(script("child_ddp.py", case), sampler=sampler, **kw)


@unittest.skipIf(not has_gloo, "torch with gloo is not installed: processes of one network are not tested")
class Processes(unittest.TestCase):
    def trains(self, case, clip=None):
        net, losses = plain("", EVEN, 0.5, clip)
        with child(case, lr=0.5) as p:
            p.start()
            for i, rows in enumerate(EVEN):
                loss, hits, _ = p.step([0] * len(rows), i, slowly=i == 1)
                np.testing.assert_allclose(loss, losses[i], rtol=1e-5)
                self.assertIsNotNone(hits)
                if i == 2:
                    p.evaluate(list(range(50)))
                if i == 4:
                    p.place()
            want = net.state_dict()
            for name, value in zip(p.names, p.values):
                np.testing.assert_allclose(value, want[name].numpy().reshape(value.shape), rtol=0, atol=1e-6, err_msg=name)
            return p.bye()

    def test_they_train_as_one(self):
        self.trains("")
        out = self.trains("plain")
        for rank in (0, 1):
            self.assertIn(f"rank {rank}: 6 steps, running False", out)

    def test_habits(self):
        self.trains("clips", clip=0.1)
        self.trains("accumulates")

    def test_a_probe_and_a_run_without_a_step(self):
        with child(mode="probe") as p:
            p.greet()
            self.assertEqual(p.bye(), "")
        with child("loop") as p:
            p.start()
            self.assertIn("rank 1: 0 steps, running False", p.bye())

    def test_alone(self):
        env = dict(os.environ, PYTHONPATH=str(TESTS.parent))
        r = subprocess.run(script("child_ddp.py", "loop"), env=env, timeout=120, capture_output=True, text=True, check=True)
        for said in ("epoch 2 of 2: ", "rank 0: 16 steps, running False", "rank 1: 16 steps, running False"):
            self.assertIn(said, r.stdout)

    def fails(self, case, *texts):
        with child(case) as p:
            with self.assertRaises(Wrong) as caught:
                p.start()
                p.step([0] * 20)
                p.evaluate([1, 2])
            for text in ("FAIL", *texts):
                self.assertIn(text, str(caught.exception), case)
            p.process.kill()  # as a parent does; its process may wait for the others
            out, err = p.process.communicate(timeout=60)
            return err

    def test_what_is_refused(self):
        self.fails("sums", "mean=False", "averages gradients")
        self.fails("evaluates", "call the network that it wraps")
        self.fails("swapped", "rank 1 of the process group has joined the run", "rank 0 calls")

    def test_a_program_that_closes_descriptors(self):
        """As torchrun does."""
        code = f"import subprocess, sys; sys.exit(subprocess.call({script('child_ddp.py')}))"
        with Parent([sys.executable, "-c", code], sampler="script") as p:
            self.assertIn("such as torchrun", p.ended(1)[1])

    def test_another_process_that_fails(self):
        self.assertIn("ValueError: the sample is too odd", self.fails("raises", "RuntimeError"))


if __name__ == "__main__":
    unittest.main()
