#!/usr/bin/env bash
# The lines of Python on the page about checkpoints, as they are there, predict the rows of a table with the exported file of a run: texts, missing values and standardized numbers as
# training had them. They have the accuracy of the run on its test rows to the row, and of a regression the R2 to six digits.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy' 2>/dev/null || fail "no NumPy for $PYTHON: apt-get install python3-numpy"
awk '/^## Predict a row/ { here = 1 } here && /^```python/ { inside = 1; next } /^```/ { if (inside) exit } inside' internal/disk/checkpoint/README.md >"$TMP/predict.py"
grep -q 'def predict(row)' "$TMP/predict.py" || fail "the page has no such lines"
"$PYTHON" - "$TMP" <<'PROGRAM'
import csv, random, sys
random.seed(2)
for name, rows in [("train", 1500), ("test", 400)]:
    with open(f"{sys.argv[1]}/{name}.csv", "w", newline="") as f:
        w = csv.writer(f); w.writerow(["id", "age", "city", "income", "price", "buys"])
        for i in range(rows):
            age, city = random.gauss(40, 12), random.choice(["Rome", "Oslo", "São Paulo"])
            income = random.gauss(50, 9) + 12 * (city == "Oslo")
            price = 3 * age + income + random.gauss(0, 4)
            buys = random.choices(["no", "maybe", "yes"], [max(0.01, 60 - age), 20, max(0.01, income - 35)])[0]
            w.writerow([i, f"{age:.2f}" if random.random() > 0.05 else "", city if random.random() > 0.05 else "", f"{income:.3f}", f"{price:.3f}", buys])
PROGRAM
trained() { # trained NAME DATA MODEL
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1}
		data: {set: csv, path: $TMP/train.csv, test: $TMP/test.csv, missing: mean, columns: {city: onehot, age: standardize, income: standardize}, $2}
		model: $3
		train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.02}, stop: {epochs: 8}}
		sync: [{match: "*", scheme: bsp}]
	END
	local_world 3 --no-report --out "$TMP/$1" "$TMP/$1.yaml"
	"$FLUENTPS" export "$TMP/$1" "$TMP/$1.safetensors" >/dev/null
}
judged() { # judged NAME COLUMN
	"$PYTHON" - "$TMP/$1.safetensors" "$TMP" "$2" <<'PROGRAM'
import csv, sys
folder, column = sys.argv[2], sys.argv[3]
exec(open(folder + "/predict.py").read())
rows = list(csv.DictReader(open(folder + "/test.csv", newline="")))
got = [predict({k: v if v else None for k, v in r.items()}) for r in rows]
if column == "buys":
    print(sum(g == r[column] for g, r in zip(got, rows)) / len(rows))
else:
    y = np.array([float(r[column]) for r in rows]); e = np.array(got) - y
    print(1 - (e @ e) / ((y - y.mean()) @ (y - y.mean())))
PROGRAM
}
trained classes 'label: buys, drop: [id, price]' '{name: mlp, layers: [16, 8]}'
trained target 'label: price, drop: [id, buys], task: regress, targets: standardize' '{name: mlp, layers: [16]}'
accuracy=$(judged classes buys)
r2=$(judged target price)
must "$accuracy == $(get "$TMP/classes/summary.json" test_accuracy)" "accuracy in Python $accuracy"
must "$r2 - $(get "$TMP/target/summary.json" test_r2) < 1e-6 && $(get "$TMP/target/summary.json" test_r2) - $r2 < 1e-6" "R2 in Python $r2"
figure "the page's lines predict as the run did: accuracy $accuracy of 400 rows, R2 $r2"
