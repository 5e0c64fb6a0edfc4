#!/usr/bin/env bash
# An MLP that was trained on Fashion-MNIST and exported is right for as many test rows in NumPy as the summary says: from the
# npz, from the safetensors, and from the files of the checkpoint. It begins another run on 5 servers, whose export is the
# same to the byte. Debian's python3-numpy is installed if it is missing.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --numpy
python=/usr/bin/python3

example=configs/examples/fashion-mlp-mixed.yaml
world 6 run "$example" --set 'train.stop={epochs: 2}' --set evaluate.every_epochs=0 --out "$TMP/run"
for form in npz safetensors; do
	"$FLUENTPS" export "$TMP/run" "$TMP/model.$form" >"$TMP/log" 2>&1 || shown "export to $form"
done
rows=$(awk "BEGIN { printf \"%.0f\", 10000 * $(get "$TMP/run/summary.json" test_accuracy) }" </dev/null)

# shellcheck disable=SC2016 # a fence of Markdown
sed -n '/^```python$/,/^```$/p' internal/disk/checkpoint/README.md | sed '1d;$d' >"$TMP/reader.py"
cat >"$TMP/evaluate.py" <<'END'
import gzip, json, struct, sys
import numpy
import reader

def safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    return {name: numpy.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], "<f4").reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}

def right(model, images, labels):
    x = images.astype("f8") / 255
    for layer in "fc1", "fc2", "fc3":
        x = x @ model[layer + ".weight"].astype("f8").T + model[layer + ".bias"]
        if layer != "fc3":
            x = numpy.maximum(x, 0)
    return int((x.argmax(1) == labels).sum())

folder, npz, tensors, checkpoint = sys.argv[1:]
images = numpy.frombuffer(gzip.open(folder + "/t10k-images-idx3-ubyte.gz").read(), "u1", offset=16).reshape(10000, 784)
labels = numpy.frombuffer(gzip.open(folder + "/t10k-labels-idx1-ubyte.gz").read(), "u1", offset=8)
direct = {name: numpy.asarray(e).reshape(s) for name, (s, e) in reader.read(checkpoint).items()}
for model in dict(numpy.load(npz)), safetensors(tensors), direct:
    print(right(model, images, labels))
END
checkpoint=$(printf '%s\n' "$TMP"/run/checkpoints/0* | tail -n 1)
found=$("$python" "$TMP/evaluate.py" /usr/share/datasets/fashion-mnist "$TMP/model.npz" "$TMP/model.safetensors" "$checkpoint" | tr '\n' ' ')
[ "$found" = "$rows $rows $rows " ] || fail "right in NumPy from npz, safetensors, checkpoint: $found; the summary says $rows"

still="train.optimizer={name: sgd, lr: 1.2e-38}" # a step changes no parameter
world 9 run "$example" --set "model.init=$TMP/model.safetensors" --set cluster.servers=5 --set "$still" --set 'train.stop={updates: 10}' --set evaluate.every_epochs=0 --set 'shards={slice: slices, max_bytes: 50KB}' --out "$TMP/again"
"$FLUENTPS" export "$TMP/again" "$TMP/again.npz" >"$TMP/log" 2>&1 || shown "export again"
cmp "$TMP/model.npz" "$TMP/again.npz" || fail "exported from 5 servers it is another file"
figure "$rows of 10000 rows are right in NumPy and in the summary; 2 servers to 5 and out again: $(stat -c %s "$TMP/model.npz") bytes, all the same"
