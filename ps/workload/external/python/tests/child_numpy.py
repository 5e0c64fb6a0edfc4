"""A softmax regression with a hidden layer, in numpy. The first argument says what is to go wrong."""

import os
import sys
import time

import numpy as np

import fluentps as fp

CASE = sys.argv[1] if len(sys.argv) > 1 else ""


def data(n, seed):
    r = np.random.RandomState(seed)
    x = r.randn(n, 6).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int) + 2 * (x[:, 1] > 0)


def initial():
    r = np.random.RandomState(3)
    return {"hidden.weight": (r.randn(6, 8) * 0.3).astype(np.float32), "hidden.bias": np.zeros(8, np.float32),
            "out.weight": (r.randn(8, 4) * 0.3).astype(np.float32), "out.bias": np.zeros(4, np.float32)}


def forward(w, x, y):
    h = np.tanh(x @ w["hidden.weight"] + w["hidden.bias"])
    z = h @ w["out.weight"] + w["out.bias"]
    z = z - z.max(1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    return h, p, float(-np.log(p[np.arange(len(y)), y]).sum()), int((p.argmax(1) == y).sum())


def backward(w, x, y, h, p, g, done=lambda layer: None):
    d = p.copy()
    d[np.arange(len(y)), y] -= 1
    g["out.weight"][...], g["out.bias"][...] = h.T @ d, d.sum(0)
    d = (d @ w["out.weight"].T) * (1 - h * h)
    done("out")
    g["hidden.weight"][...], g["hidden.bias"][...] = x.T @ d, d.sum(0)
    done("hidden")


def step(s, X, Y):
    x, y = X[s.rows], Y[s.rows]
    if CASE == "by layer":
        s.wait("hidden")
        _ = x @ s.params["hidden.weight"]
    if CASE != "impatient":
        s.wait()
    h, p, loss, hits = forward(s.params, x, y)
    if CASE == "early":
        s.grads["out.bias"][...] = 1
    if CASE == "writes":
        s.params["out.bias"] += 1
    s.forward(loss, None if CASE == "no hits" else hits)
    if CASE == "half":
        s.grads["out.bias"][...] = p.sum(0)
        return
    backward(s.params, x, y, h, p, s.grads, s.ready if CASE != "by generator" else lambda layer: None)
    if CASE == "twice":
        s.ready("out")
    if CASE == "late":
        time.sleep(0.3)  # the parent has seen READY
        s.grads["out.bias"][...] = 7
    if CASE == "raises":
        raise ValueError("a bad\nrow")


def main():
    X, Y = data(100, 1)
    XT, YT = data(50, 2)
    ps = fp.join(alone=fp.Alone(batch=20, epochs=3, lr=0.5, seed=4))
    w = ps.arrays(initial())

    def evaluate(rows):
        _, _, loss, hits = forward(w, XT[rows], YT[rows])
        return loss, hits

    if CASE == "rows":
        list(ps.steps(rows=99))
    for s in ps.steps(rows=100, test_rows=50, evaluate=None if CASE == "report" else evaluate):
        if s.evaluate:
            s.report(*evaluate(s.rows))
            continue
        if CASE == "leaves":
            break
        if CASE == "fork":
            child = os.fork()
            if child == 0:
                os._exit(0 if ps.link.closed else 1)
            assert os.waitpid(child, 0)[1] == 0
        step(s, X, Y)
    print("hidden.bias", " ".join(f"{v:.9e}" for v in w["hidden.bias"]))


if __name__ == "__main__":
    main()
