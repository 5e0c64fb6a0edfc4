#!/usr/bin/env bash
# Linear regression on a set of scikit-learn ends where its SGDRegressor does, with the same epochs and rates, and near the least squares of numpy.
# Files of csv, LIBSVM and NumPy with the same rows give the same bits, over both transports and any number of servers; so does a run that resumes.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import sklearn, pandas' 2>/dev/null || fail "no scikit-learn for $PYTHON: apt-get install python3-sklearn python3-pandas"

"$PYTHON" - "$TMP" >"$TMP/theirs" <<'PROGRAM'
import sys, numpy as np, pandas as pd
from sklearn.datasets import load_diabetes, dump_svmlight_file
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import r2_score, mean_absolute_error, mean_squared_error
x, y = load_diabetes(return_X_y=True, scaled=False)
order = np.random.default_rng(3).permutation(len(x))
x, y = x[order], y[order]
train, test = slice(0, 352), slice(352, None)
x = ((x - x[train].mean(0)) / x[train].std(0)).astype(np.float32)
y = ((y - y[train].mean()) / y[train].std()).astype(np.float32)
folder = sys.argv[1]
for name, part in (("train", train), ("test", test)):
    table = pd.DataFrame(x[part]).assign(y=y[part])
    table.columns = [f"f{i}" for i in range(10)] + ["progression"]
    table.to_csv(f"{folder}/{name}.csv", index=False)
    with open(f"{folder}/{name}.svm", "w") as f:  # dump_svmlight_file rounds float32 in this version
        for row, t in zip(x[part], y[part]):
            f.write(repr(float(t)) + "".join(f" {i + 1}:{float(v)!r}" for i, v in enumerate(row)) + "\n")
np.savez(f"{folder}/set.npz", x_train=x[train], y_train=y[train], x_test=x[test], y_test=y[test])
model = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.001, max_iter=100, tol=None, random_state=1).fit(x[train], y[train])
found = model.predict(x[test])
a = np.c_[x[train], np.ones(352)].astype(float)
best = np.c_[x[test], np.ones(len(x) - 352)] @ np.linalg.lstsq(a, y[train].astype(float), rcond=None)[0]
print(r2_score(y[test], found), mean_squared_error(y[test], found), mean_absolute_error(y[test], found), r2_score(y[test], best))
PROGRAM
read -r r2 mse mae least <"$TMP/theirs"

# A sample moves the weights of SGDRegressor by eta0 times the error; here a batch of 32 moves them by lr times the mean of twice the error: lr is
# 16 times eta0.
config() {
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1}
		data: $2
		model: {name: linear}
		train: {batch_per_worker: 16, optimizer: {name: sgd, lr: 0.016}, stop: {epochs: 100}}
		evaluate: {where: online, every_epochs: 50}
		checkpoint: {every_updates: 500}
	END
}
config csv "{set: csv, path: $TMP/train.csv, test: $TMP/test.csv, label: progression, task: regress}"
config libsvm "{set: libsvm, path: $TMP/train.svm, test: $TMP/test.svm, task: regress}"
config npy "{set: npy, path: $TMP/set.npz, task: regress}"

for set in csv libsvm npy; do
	local_world 3 --out "$TMP/$set-local" "$TMP/$set.yaml"
	world 3 run --out "$TMP/$set-mpi" "$TMP/$set.yaml"
	world 5 run --out "$TMP/$set-more" --set cluster.servers=3 "$TMP/$set.yaml"
	world 3 run --out "$TMP/$set-parts" --set 'train.stop={updates: 500}' "$TMP/$set.yaml"
	world 4 run --resume "$TMP/$set-parts" --allow-changed train.stop,cluster.servers --set cluster.servers=2 "$TMP/$set.yaml"
	for run in local mpi more parts; do
		get "$TMP/$set-$run/summary.json" parameters_sha256
	done
done | sort | uniq -c >"$TMP/sums"
figure "12 runs: csv, LIBSVM and NumPy, each local, under mpirun, with 3 servers, and resumed with another number of servers: $(wc -l <"$TMP/sums") sum of parameters"
must "$(wc -l <"$TMP/sums") == 1 && $(awk '{ print $1 }' "$TMP/sums") == 12" "one sum"

ours() { get "$TMP/csv-mpi/summary.json" "$1"; }
figure "R2 $(ours test_r2), MSE $(ours test_mse), MAE $(ours test_mae); SGDRegressor $r2, $mse, $mae; least squares have R2 $least"
must "($(ours test_r2) - $r2) ^ 2 < 0.005 ^ 2 && ($(ours test_mse) / $mse - 1) ^ 2 < 0.01 ^ 2 && ($(ours test_mae) / $mae - 1) ^ 2 < 0.01 ^ 2" "as SGDRegressor"
must "($(ours test_r2) - $least) ^ 2 < 0.02 ^ 2" "near the least squares"
