"""A session over a link that plays back messages."""

import unittest

import fluentps as fp
from fluentps import _session, _wire as w
from fluentps._model import Model, Tensor
from fluentps._step import Step


class Played(w.Link):
    """Answers with the messages of a list; notes what is sent."""

    def __init__(self, *messages):
        self.messages, self.sent, self.text = [(w.HELLO, 0, 1, 0), *messages], [], b"{}"

    def send(self, data):
        self.sent.append((data[0], w.HEAD.unpack_from(data)[3]))

    def receive(self, idle):
        return self.messages.pop(0)


class Sizes(Model):
    """A layer of each size."""

    def __init__(self, *sizes):
        self.tensors = [Tensor(f"l{i}", f"l{i}.w", (n,)) for i, n in enumerate(sizes)]


def session(sizes, *messages):
    ps = fp.Session(Played(*messages))
    ps._bind(Sizes(*sizes))
    ps.link.sent.clear()
    return ps


class Ready(unittest.TestCase):
    def test_small_layers_travel_with_the_next_large_one(self):
        ps = session((100_000, 10, 20_000, 10), (w.HAVE, 0, 2, 0), (w.HAVE, 0, 4, 0), (w.GO, 0, 0, 0))
        ps.forward(1.5, None, 8)
        self.assertEqual(ps.link.sent, [(w.FORWARD, 0)])
        ps.link.sent.clear()
        sent = []
        for layer in (3, 2, 1, 0):
            ps.ready(layer)
            sent.append([a for _, a in ps.link.sent])
            ps.link.sent.clear()
        self.assertEqual(sent, [[], [3, 2], [], [1, 0]])

    def test_the_last_is_not_held_and_none_is_sent_twice(self):
        ps = session((10, 10), (w.HAVE, 0, 2, 0), (w.GO, 0, 0, 0))
        ps.forward(1.5, 3, 8)
        ps.ready(0)
        with self.assertRaisesRegex(fp.Error, "layer l0 is ready a second time"):
            ps.ready(0)
        ps.ready_rest()
        self.assertEqual(ps.link.sent, [(w.FORWARD, 3), (w.READY, 0), (w.READY, 1)])
        self.assertEqual(ps.unready, 0)

    def test_the_last_and_what_is_held_leave_as_done(self):
        ps = session((100_000, 10, 10), (w.HAVE, 0, 3, 0), (w.GO, 0, 0, 0))
        ps.model.last_is_done = True
        ps.forward(1.5, 3, 8)
        for layer in (0, 2, 1):
            ps.ready(layer)
        self.assertEqual(ps.link.sent, [(w.FORWARD, 3), (w.READY, 0), (w.DONE, 0)])


class Misuse(unittest.TestCase):
    def test_messages_of_a_parent_that_is_wrong(self):
        with self.assertRaisesRegex(fp.Error, "DONE where HAVE may come"):
            session((1,), (w.DONE, 0, 0, 0)).wait(0)
        with self.assertRaisesRegex(fp.Error, "EVAL where GO may come"):
            session((1,), (w.HAVE, 0, 1, 0), (w.EVAL, 0, 0, 0)).forward(0.0, None, 1)
        for message, text in (((w.STEP, 0, 1, 0), "STEP before a PLACE"), ((w.EVAL, 0, 1, 0), "EVAL before PLACE"),
                              ((w.FILL, 0, 9, 0), "region 9, which is not mapped")):
            with self.assertRaisesRegex(fp.Error, text):
                next(session((1,), message).steps())

    def test_hits_have_a_range(self):
        with self.assertRaisesRegex(fp.Error, "correct=9 of 8 rows"):
            session((1,)).forward(0.0, 9, 8)

    def test_layers_of_a_tensor_stand_together(self):
        model = Sizes(1)
        model.tensors = [Tensor("a", "a.w", (1,)), Tensor("b", "b.w", (1,)), Tensor("a", "a.b", (1,))]
        with self.assertRaisesRegex(fp.Error, "a.b of layer a"):
            model.index()

    def test_two_models_and_no_tensor(self):
        with self.assertRaisesRegex(fp.Error, "bound already"):
            session((1,))._bind(Sizes(1))
        with self.assertRaisesRegex(fp.Error, "no parameter"):
            session(())

    def test_calls_at_a_wrong_time(self):
        ps = session((1,))
        step = ps.step = Step(ps, list(range(8)), 3)
        with self.assertRaisesRegex(fp.Error, "before s.forward"):
            step.ready(0)
        with self.assertRaisesRegex(fp.Error, r"accumulate\(9\): need 1 to 8"):
            step.accumulate(9)
        with self.assertRaisesRegex(fp.Error, "evaluate False"):
            step.report(1.0)
        with self.assertRaisesRegex(fp.Error, "no layer 'x'"):
            step.wait("x")
        with self.assertRaisesRegex(fp.Error, "step 3 has ended with no loss"):
            step._finish()
        ps.step = None
        with self.assertRaisesRegex(fp.Error, "has ended"):
            step.forward(1.0)

    def test_parts_hold_all_rows_once(self):
        ps = session((1,))
        step = ps.step = Step(ps, list(range(8)), 0)
        parts = list(step.parts(3))
        self.assertEqual([len(p) for p in parts], [2, 3, 3])
        self.assertEqual(sum(parts, []), step.rows)
        self.assertEqual(step._add(2.0, 1, True), (2, False))
        self.assertEqual(step._add(2.0, None, True), (3, False))
        self.assertEqual(step._add(1.0, 1, True), (3, True))
        self.assertEqual((step._loss, step._correct), (13.0, None))

    def test_alone(self):
        with self.assertRaisesRegex(fp.Error, r"batch=0"):
            fp.Alone(batch=0)
        ps = fp.Session(_session.AloneLink(fp.Alone()))
        ps._bind(Sizes(1))
        with self.assertRaisesRegex(fp.Error, "rows=len"):
            next(ps.steps())


if __name__ == "__main__":
    unittest.main()
