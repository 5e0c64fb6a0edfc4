#!/usr/bin/env bash
# Any set is written as one file that is mapped. Runs on the pack have the parameters of runs on the set to the bit, with a number of servers, over both
# transports, resumed with another number of servers, under DBS, and with skewed shares. Gathered batches are at least 0.95 times as fast as rows in memory,
# the median of 7 rounds in turn. The processes of 4 workers have at most 1.1 times one copy of the data in memory (Pss). A pack of 6 GiB trains with
# cluster.memory_max 1 GiB. Five lines of Python read it.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy' 2>/dev/null || fail "no NumPy for $PYTHON: apt-get install python3-numpy"

# sets NAME is the data section and the model of each set.
"$PYTHON" - "$TMP" <<'PROGRAM'
import sys, numpy as np
folder, r = sys.argv[1], np.random.default_rng(1)
with open(f"{folder}/t.csv", "w") as f:
    f.write("age,city,score,buys\n")
    for i in range(900):
        city = ["Rome", "Oslo", "Bern"][r.integers(3)]
        age = r.normal(40, 10)
        f.write(f"{age:.3f},{city},{r.normal():.5f},{'yes' if age + 5 * (city == 'Rome') > 42 else 'no'}\n")
with open(f"{folder}/t.svm", "w") as f:
    for i in range(900):
        f.write(f"{r.integers(2)} " + " ".join(f"{k + 1}:{r.normal():.4f}" for k in sorted(r.choice(200, 12, replace=False))) + "\n")
with open(f"{folder}/r.csv", "w") as f:
    f.write("user,item,rating\n" + "".join(f"u{r.integers(60)},i{r.integers(40)},{r.integers(1, 6)}\n" for _ in range(3000)))
np.savez(f"{folder}/t.npz", x_train=r.integers(0, 256, (600, 8, 8, 3), dtype=np.uint8), y_train=r.integers(0, 4, 600),
         x_test=r.integers(0, 256, (100, 8, 8, 3), dtype=np.uint8), y_test=r.integers(0, 4, 100))
PROGRAM
config() { # NAME DATA MODEL LR
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1}
		data: $2
		model: $3
		train: {batch_per_worker: 16, optimizer: {name: sgd, lr: $4}, stop: {updates: 60}}
		evaluate: {where: online, every_epochs: 1}
		checkpoint: {every_updates: 30}
	END
}
declare -A model=([csv]="{name: mlp, layers: [8]}" [libsvm]="{name: sparse_logistic}" [ratings]="{name: matrix_factorization, rank: 3}"
	[npy]="{name: softmax}" [targets]="{name: linear}" [fashion]="{name: softmax}")
declare -A data=([csv]="{set: csv, path: $TMP/t.csv, split: {test: 0.2}, columns: {city: onehot, age: standardize}}"
	[libsvm]="{set: libsvm, path: $TMP/t.svm, split: {test: 0.2}}" [ratings]="{set: ratings, path: $TMP/r.csv, split: {test: 0.2}}"
	[npy]="{set: npy, path: $TMP/t.npz}" [targets]="{set: csv, path: $TMP/t.csv, label: score, task: regress, drop: [buys], columns: {city: onehot, age: standardize}, split: {test: 0.2}}"
	[fashion]="{set: idx, path: /usr/share/datasets/fashion-mnist, normalize: true}")
sum() { get "$1/summary.json" parameters_sha256; }
pairs=0
for set in csv libsvm ratings npy targets fashion; do
	[ $set != fashion ] || [ -d /usr/share/datasets/fashion-mnist ] || continue
	config $set "${data[$set]}" "${model[$set]}" 0.05
	"$FLUENTPS" data pack "$TMP/$set.yaml" --out "$TMP/$set.fps" >"$TMP/log" 2>&1 || shown "data pack"
	task=""
	[ $set != targets ] || task=", task: regress"
	config $set-pack "{set: packed, path: $TMP/$set.fps$task}" "${model[$set]}" 0.05
	skew="data.partition.dirichlet=0.5"
	[ $set != ratings ] || skew="data.partition.by=row"
	[ $set != targets ] || skew="data.partition=disjoint_contiguous"
	for way in "local 3" "mpi 3" "servers 5" "dbs 3" "skew 3"; do
		read -r name ranks <<<"$way"
		for one in $set $set-pack; do
			more=()
			case $name in servers) more=(--set cluster.servers=3) ;; dbs) more=(--set "work={policy: dbs}") ;; skew) more=(--set "$skew") ;; esac
			if [ "$name" = local ]; then local_world "$ranks" --no-report --out "$TMP/run-$one-$name" "$TMP/$one.yaml"; else
				world "$ranks" run --no-report --out "$TMP/run-$one-$name" "${more[@]}" "$TMP/$one.yaml"; fi
		done
		if [ "$name" = dbs ]; then
			continue # deals by measured times, which differ from run to run
		fi
		[ "$(sum "$TMP/run-$set-$name")" = "$(sum "$TMP/run-$set-pack-$name")" ] || fail "$set, $name: the pack has other parameters"
		pairs=$((pairs + 1))
	done
	world 3 run --no-report --out "$TMP/part-$set" --set train.stop.updates=30 "$TMP/$set-pack.yaml"
	world 4 run --no-report --resume "$TMP/part-$set" --allow-changed train.stop,cluster.servers --set cluster.servers=2 "$TMP/$set-pack.yaml"
	[ "$(sum "$TMP/part-$set")" = "$(sum "$TMP/run-$set-local")" ] || fail "$set: the pack has other parameters after a resume with 2 servers"
	pairs=$((pairs + 1))
done
figure "$pairs pairs of runs on a set and on its pack have the same parameters; DBS ends on each"

go test -run '^$' -bench Packed -count 7 ./ps/workload/dataset >"$TMP/bench" || fail "the benchmark: $(tail -n 3 "$TMP/bench")"
for kind in bytes floats; do
	ratio=$(awk -v kind=$kind '$1 ~ kind "/pack" { p[++i] = $(NF - 1) } $1 ~ kind "/memory" { m[++j] = $(NF - 1) }
		END { for (k = 1; k <= i; k++) print p[k] / m[k] }' "$TMP/bench" | sort -g | sed -n 4p)
	figure "batches of $kind from a pack are gathered $(printf %.2f "$ratio") times as fast as from memory (at least 0.95)"
	must "$ratio >= 0.95" "batches from a pack"
done

# large FOLDER ROWS: an array of rows of 4 KiB, and its pack.
large() {
	"$PYTHON" -c '
import sys, numpy as np
folder, rows = sys.argv[1], int(sys.argv[2])
x = np.lib.format.open_memmap(f"{folder}-x.npy", mode="w+", dtype="f4", shape=(rows, 1024))
r = np.random.default_rng(1)
for i in range(0, rows, 8192):
    x[i:i + 8192] = r.random((len(x[i:i + 8192]), 1024), dtype="f4")
np.save(f"{folder}-y.npy", np.arange(rows) % 10)' "$1" "$2"
	mkdir "$1"
	mv "$1-x.npy" "$1/x.npy"
	mv "$1-y.npy" "$1/y.npy"
	"$FLUENTPS" data pack npy "$1" --out "$1.fps" >"$TMP/log" 2>&1 || shown "data pack"
	rm -r "$1"
}
config() {
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1, memory_max: 1GiB}
		data: {set: packed, path: $TMP/$1.fps}
		model: {name: softmax}
		train: {batch_per_worker: 64, optimizer: {name: sgd, lr: 0.01}, stop: {$2}}
		evaluate: {every_epochs: 0}
	END
}
large "$TMP/shared" 65536
config shared "time: 60s"
"${MPIRUN[@]}" -n 5 "$FLUENTPS" run --no-report --no-what-if --out "$TMP/shared-run" "$TMP/shared.yaml" >"$TMP/log" 2>&1 &
job=$!
most=0
for _ in $(seq 30); do
	sleep 0.5
	now=$(for pid in $(pgrep -f "$TMP/shared.yaml"); do
		awk -v file="$TMP/shared.fps" '/^[0-9a-f]+-/ { ours = $6 == file } ours && $1 == "Pss:" { kb += $2 } END { print kb + 0 }' "/proc/$pid/smaps" 2>/dev/null || true
	done | awk '{ s += $1 } END { print s * 1024 }')
	most=$(awk -v a="$most" -v b="$now" 'BEGIN { print (a > b ? a : b) }')
done
kill -INT "$job"
wait "$job" 2>/dev/null || true
job=""
size=$(stat -c %s "$TMP/shared.fps")
figure "4 workers have $(awk "BEGIN { printf \"%.2f\", $most / $size }") copies of $size bytes in memory (Pss, at most 1.1)"
must "$most <= 1.1 * $size && $most >= 0.5 * $size" "one copy for all ranks"

large "$TMP/big" 1572864
config big "epochs: 1"
start=$(now_ms)
"$ACCEPT_TMP/inspect" peak "$FLUENTPS" "$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/big-run" "$TMP/big.yaml" >"$TMP/log" 2>&1 || shown "run"
figure "a pack of $(stat -c %s "$TMP/big.fps") bytes: an epoch in $((($(now_ms) - start) / 1000)) s, $(get "$TMP/big-run/summary.json" samples_per_s) samples/s, with memory_max 1 GiB"

"$PYTHON" -c '
import json, struct, sys, numpy as np
f = open(sys.argv[1], "rb").read()
at, n = struct.unpack("<QQ", f[8:24])
sections = {s["name"]: s for s in json.loads(f[at:at + n])["sections"]}
x = {k: np.ndarray(s["shape"], s["type"], f, s["offset"]) for k, s in sections.items()}
assert x["train/x"].shape == (600, 192) and x["train/x"].dtype == np.uint8 and x["train/y"].max() == 3
y = np.load(sys.argv[2])
assert (x["train/x"].reshape(-1, 3, 8, 8).transpose(0, 2, 3, 1) == y["x_train"]).all()' "$TMP/npy.fps" "$TMP/t.npz"
figure "Python reads the pack of an array"
