"""What checkpoints hold of a script."""

import random
import struct
import unittest

import fluentps as fp
from fluentps._state import Registry, accessors, decode, encode, randoms
from tests.parent import Parent, script

try:
    import numpy as np
    import torch
except ImportError:
    np = torch = None

ROWS = [[i, i + 1, i + 2, 3 * i] for i in range(12)]


def anything(rng, depth=3):
    """A value of random shape."""
    kind = rng.randrange(12 if depth else 6)
    if kind < 6:
        return [None, rng.random() < 0.5, rng.randrange(-(10**30), 10**30), rng.gauss(0, 1e30), "t\u00e9xt$" * rng.randrange(3),
                rng.randbytes(rng.randrange(20))][kind]
    items = [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return items
    if kind == 7:
        return tuple(items)
    if kind == 8:
        return {rng.choice("ab$"): v for v in items}
    if kind == 9:
        return {(rng.randrange(9), "x"): v for v in items}
    if kind == 10:
        return {rng.randrange(5) for _ in items}
    return {i: v for i, v in enumerate(items)}


class Bytes(unittest.TestCase):
    def test_what_is_decoded_is_what_was_encoded(self):
        rng = random.Random(1)
        for _ in range(2000):
            value = anything(rng)
            back = decode(encode(value))
            self.assertEqual(back, value)
            self.assertEqual(repr(back), repr(value))  # 1, True and 1.0 are equal

    @unittest.skipIf(torch is None, "torch is not installed: its tensors are not tested")
    def test_arrays_and_tensors(self):
        for dtype in ("float32", "float64", "float16", "int64", "uint8", "bool", "complex64"):
            a = np.arange(6).reshape(2, 3).astype(dtype)
            b = decode(encode({"a": a.T}))["a"]
            self.assertTrue(b.dtype == a.dtype and np.array_equal(b, a.T) and b.flags.writeable)
        self.assertEqual(float(decode(encode(np.float32(0.1)))), float(np.float32(0.1)))
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64):
            t = torch.arange(6).view(2, 3).to(dtype).t()
            b = decode(encode([t, t[:0], t[0, 0]]))
            for got, want in zip(b, (t, t[:0], t[0, 0])):
                self.assertTrue(got.dtype == dtype and got.shape == want.shape and torch.equal(got, want))
        b.pop().add_(1)  # it can be written

    def test_an_optimizer_of_torch_goes_on(self):
        if torch is None:
            self.skipTest("torch is not installed: its optimizers are not tested")
        p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
        first, second = torch.optim.Adam([p], lr=0.1), torch.optim.Adam([q], lr=0.1)

        def step(x, optimizer, by):
            x.grad = torch.tensor([1.0, 2.0, 3.0]) * by
            optimizer.step()

        step(p, first, 1)
        q.data.copy_(p.data)
        accessors(second).set(decode(encode(accessors(first).get())))
        for x, o in ((p, first), (q, second)):
            step(x, o, 3)
        self.assertTrue(torch.equal(p, q))

    def test_values_that_cannot_be_held(self):
        for value, text in (({"a": [1, object()]}, r"state\['a'\]\[1\] is a object"), (print, "state is a builtin_function"),
                            ({"m": random}, r"state\['m'\] is a module")):
            with self.assertRaisesRegex(fp.Error, text + ".*cannot hold"):
                encode(value)
        if np is not None:
            with self.assertRaisesRegex(fp.Error, "is a ndarray"):
                encode(np.array([object()]))

    def test_damaged_bytes_are_an_error_and_nothing_else(self):
        rng = random.Random(2)
        good = encode({"a": [b"12345", (1, 2)], 3: {4}, "t": [np.ones(4, np.float32), torch.ones(3)] if torch else []})
        for _ in range(4000):
            data = bytearray(good)
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                decode(bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data)))) ]))
            except fp.Error as e:
                self.assertIn("cannot be read", str(e))
        for data in (b"", b"abc", struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"{"):
            with self.assertRaisesRegex(fp.Error, "cannot be read"):
                decode(data)


class Registered(unittest.TestCase):
    def test_names(self):
        r = Registry()
        r.add(random.Random(1), None)
        r.add(random.Random(2), None)
        r.add((lambda: 5, lambda _: None), None)
        r.add((lambda: 6, lambda _: None), "mine")
        self.assertEqual(list(decode(r.save())["states"]), ["Random", "Random2", "state", "mine"])
        with self.assertRaisesRegex(fp.Error, "'mine'.* second time"):
            r.add(random.Random(), "mine")
        with self.assertRaisesRegex(fp.Error, "got a object.*state_dict.*pair of functions"):
            r.add(object(), None)

    def test_states_of_the_checkpoint_are_those_of_the_script(self):
        one, other = Registry(), Registry()
        one.add(random.Random(1), "a")
        with self.assertRaisesRegex(fp.Error, "'a', which is not registered"):
            other.restore(one.save())
        with self.assertRaisesRegex(fp.Error, "'a' is registered, but the checkpoint has none"):
            one.restore(other.save())

    def test_generators_come_back(self):
        r = Registry()
        kept = r.save()
        draw = [lambda: random.random()] + ([lambda: float(np.random.rand()), lambda: torch.rand(1).item()] if torch else [])
        want = [d() for d in draw]
        self.assertNotEqual([d() for d in draw], want)
        r.restore(kept)
        self.assertEqual([d() for d in draw], want)
        self.assertEqual(len(randoms()), 3 if torch else 1)


@unittest.skipIf(torch is None, "torch is not installed: its states are not tested")
class Resumes(unittest.TestCase):
    def begin(self, case=""):
        return Parent(script("child_state.py", case), lr=0.3)

    def test_a_script_goes_on_with_its_bits(self):
        with self.begin() as p:
            p.start()
            for rows in ROWS[:5]:
                p.step(rows)
            state, values = p.state(), [v.copy() for v in p.values]
            self.assertEqual(p.state(), state)
            for rows in ROWS[5:8]:
                p.step(rows)
            p.evaluate([1, 2, 3])
            for rows in ROWS[8:]:
                p.step(rows)
            want = [v.copy() for v in p.values]
            p.bye()
        for case in ("", "again"):
            with self.begin(case) as p:
                p.start()
                p.values = [v.copy() for v in values]
                if case == "again":  # what the script has drawn before does not count
                    p.step(ROWS[0])
                    p.values = [v.copy() for v in values]
                p.restore(state)
                for rows in ROWS[5:]:
                    p.step(rows)
                for got, w in zip(p.values, want):
                    self.assertTrue(np.array_equal(got, w))
                self.assertIn("step 12", p.bye())

    def test_states_that_do_not_fit(self):
        with self.begin() as p:
            state = p.start().state()
        for case, text in (("forgets", "the state 'Generator', which is not registered"), ("lacks", "'Counter', which is not registered")):
            with self.begin(case) as p:
                p.start()
                with self.assertRaises(AssertionError):
                    p.restore(state)
                self.assertIn(text, p.ended(1)[1])
        with self.begin("strange") as p:  # it ends behind its first step, before a checkpoint needs the state
            p.start().step(ROWS[0])
            self.assertIn("state['states']['state']['net'][0] is a Sequential, which a checkpoint cannot hold", p.failed()[0])


class Late(unittest.TestCase):
    def test_a_state_behind_the_begin(self):
        from tests.test_session import session

        ps = session((1,), (19, 0, 0, 0))
        list(ps.steps())
        with self.assertRaisesRegex(fp.Error, "behind the begin of ps.steps"):
            ps.state(random.Random())
