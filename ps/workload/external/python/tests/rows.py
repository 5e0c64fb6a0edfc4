"""Rows of batches that tests train on."""

import numpy as np

BATCHES = [[int(r) for r in np.random.RandomState(9).randint(0, 100, 20)] for _ in range(6)] + [[5, 6], [1, 2, 3]]
