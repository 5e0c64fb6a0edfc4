#!/usr/bin/env bash
# A flat file of tokens, as nanoGPT's prepare.py writes train.bin, is rows of windows: it trains to the parameters of the same rows as one-hot arrays of NumPy, to the bit, with
# one and three servers, over both transports, and resumed. A text itself is a set of its bytes, and an n-gram network on it beats what the letters' frequencies alone
# tell. 2^30 tokens are open at once, in little memory.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy' 2>/dev/null || fail "no NumPy for $PYTHON: apt-get install python3-numpy"
"$PYTHON" - "$TMP" README.md ps/workload/README.md <<'PROGRAM'
import sys, numpy as np
folder, text = sys.argv[1], "".join(open(p).read() for p in sys.argv[2:])
letters = sorted(set(text))
ids = np.array([letters.index(c) for c in text], dtype=np.uint16)
n = int(len(ids) * 0.9)
ids[:n].tofile(folder + "/train.bin"); ids[n:].tofile(folder + "/val.bin")     # as nanoGPT's prepare.py does
open(folder + "/text", "w").write("".join(c if ord(c) < 128 else "?" for c in text))
W, V = 5, len(letters)
def rows(part):
    x = np.zeros((len(part) - W, W * V), dtype=np.uint8)
    for k in range(W):
        x[np.arange(len(x)), k * V + part[k:len(part) - W + k]] = 1
    return x, part[W:].astype(np.int64)
x, y = rows(ids[:n]); tx, ty = rows(ids[n:])
np.savez(folder + "/set.npz", x_train=x.astype(np.float32), y_train=y, x_test=tx.astype(np.float32), y_test=ty)
PROGRAM
config() { # config NAME DATA MODEL
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1}
		data: $2
		model: $3
		train: {batch_per_worker: 64, optimizer: {name: momentum, lr: 0.1}, stop: {updates: 300}}
		sync: [{match: "*", scheme: drop, contributors: step}]
	END
}
config tokens "{set: tokens, path: $TMP/train.bin, test: $TMP/val.bin, tokens: {window: 5}}" '{name: mlp, layers: [32]}'
config arrays "{set: npy, path: $TMP/set.npz}" '{name: mlp, layers: [32]}'
parameters() { get "$1/summary.json" parameters_sha256; }
local_world 3 --no-report --out "$TMP/arrays" "$TMP/arrays.yaml"
want=$(parameters "$TMP/arrays")
local_world 3 --no-report --out "$TMP/one" "$TMP/tokens.yaml"
[ "$(parameters "$TMP/one")" = "$want" ] || fail "tokens train to other parameters than their windows as arrays"
world 5 run --no-report --out "$TMP/three" "$TMP/tokens.yaml" --set cluster.servers=3
[ "$(parameters "$TMP/three")" = "$want" ] || fail "three servers under MPI have other parameters"
local_world 3 --no-report --out "$TMP/part" "$TMP/tokens.yaml" --set 'train.stop={updates: 120}'
local_world 3 --no-report --resume "$TMP/part" "$TMP/tokens.yaml"
[ "$(parameters "$TMP/part")" = "$want" ] || fail "a run that resumes has other parameters"

config text "{set: tokens, path: $TMP/text, split: {test: 0.1}, tokens: {type: uint8, window: 6}}" '{name: mlp, layers: [64]}'
local_world 3 --no-report --out "$TMP/text-run" "$TMP/text.yaml" --set 'train={batch_per_worker: 64, optimizer: {name: adam, lr: 0.003}, stop: {epochs: 4}}'
loss=$(get "$TMP/text-run/summary.json" test_loss)
"$FLUENTPS" data "$TMP/text.yaml" >"$TMP/log" 2>&1 || shown "data of a text"
letters=$("$PYTHON" - "$TMP/text" <<'PROGRAM'
import sys, numpy as np
b = np.fromfile(sys.argv[1], dtype=np.uint8); n = len(b) - int(0.1 * len(b))
p = np.bincount(b[:n], minlength=256) / n
print(f"{-np.log(np.maximum(p, 1e-9))[b[n + 6:]].mean():.4f}")
PROGRAM
)
must "$loss < $letters - 0.4" "loss of an n-gram network beside $letters nats of the letters' frequencies"

truncate -s 2G "$TMP/large.bin"
config large "{set: tokens, path: $TMP/large.bin, tokens: {window: 8, stride: 64, vocabulary: 128}}" '{name: softmax}'
local_world 2 --no-report --out "$TMP/large" "$TMP/large.yaml" --set cluster.memory_max=1GiB --set 'train.stop={updates: 20}'
figure "tokens are their windows as arrays to the bit (1 and 3 servers, MPI, resumed); 6-gram network on a text: $loss nats of $letters; 2^30 tokens trained on in $(get "$TMP/large/summary.json" wall_s) s"
