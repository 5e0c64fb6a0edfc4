"""fluentps.evaluator beside what a script would write itself."""

import functools
import unittest

import fluentps as fp

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
except ImportError:
    torch = None

ROWS = [3, 1, 4, 1, 5, 9]


@unittest.skipIf(torch is None, "torch is not installed: modules of torch are not tested")
class Evaluator(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.net = nn.Linear(5, 3)
        self.x, self.y, self.real = torch.randn(20, 5), torch.randint(3, (20,)), torch.randn(20, 3)

    def test_classes(self):
        out = self.net(self.x[ROWS])
        want = F.cross_entropy(out, self.y[ROWS], reduction="sum").item()
        hits = int((out.argmax(1) == self.y[ROWS]).sum())
        self.assertLess(0, hits)
        summed = functools.partial(F.cross_entropy, reduction="sum")
        for loss in ([], [nn.CrossEntropyLoss()], [nn.CrossEntropyLoss(reduction="sum")], [summed]):
            total, right = fp.evaluator(self.net, TensorDataset(self.x, self.y), *loss)(ROWS)
            self.assertAlmostEqual(total, want, places=5)
            self.assertEqual(right, hits)

    def test_a_list_of_rows(self):
        data = [(x.numpy(), int(y)) for x, y in zip(self.x, self.y)]
        want = fp.evaluator(self.net, TensorDataset(self.x, self.y))(ROWS)
        self.assertEqual(fp.evaluator(self.net, data)(ROWS), want)

    def test_no_classes(self):
        total = fp.evaluator(self.net, TensorDataset(self.x, self.real), F.mse_loss)(ROWS)
        want = len(ROWS) * F.mse_loss(self.net(self.x[ROWS]), self.real[ROWS]).item()
        self.assertAlmostEqual(total, want, places=5)

    def test_refusals(self):
        data = TensorDataset(self.x, self.y)
        with self.assertRaisesRegex(fp.Error, "give its data set, loader.dataset"):
            fp.evaluator(self.net, DataLoader(data))
        with self.assertRaisesRegex(fp.Error, "a row of TensorDataset is not a pair"):
            fp.evaluator(self.net, TensorDataset(self.x))(ROWS)
        with self.assertRaisesRegex(fp.Error, "a loss with weight or ignore_index"):
            fp.evaluator(self.net, data, nn.CrossEntropyLoss(weight=torch.ones(3)))
        with self.assertRaisesRegex(fp.Error, "the loss is a float, need a tensor"):
            fp.evaluator(self.net, data, lambda out, y: 1.0)(ROWS)
        with self.assertRaisesRegex(fp.Error, "here dict and Tensor came of them"):
            fp.evaluator(self.net, [({"a": 1}, 2)] * 20)(ROWS)
        with self.assertRaisesRegex(fp.Error, r"the loss has the shape \(6,\), need a tensor of one number"):
            fp.evaluator(self.net, data, nn.CrossEntropyLoss(reduction="none"))(ROWS)


if __name__ == "__main__":
    unittest.main()
