#!/usr/bin/env bash
# Fashion-MNIST as an archive of NumPy and as pictures, and CIFAR-10 as pictures, give the parameters of the built-in readers to the bit, where a file
# names the pictures in their order. Pictures of every kind that Pillow writes are the pixels that Pillow reads: PNG exactly, JPEG within 3 on average.
# The rate of decoding is printed beside Pillow's on one core.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy, PIL' 2>/dev/null || fail "no Pillow for $PYTHON: apt-get install python3-pil python3-numpy"
FASHION=/usr/share/datasets/fashion-mnist
[ -d $FASHION ] || fail "no Fashion-MNIST: apt-get install dataset-fashion-mnist"

cat >"$TMP/made.py" <<'PROGRAM'
import gzip, os, sys, numpy as np
from PIL import Image
what, folder, rows = sys.argv[1], sys.argv[2], 4000
def write(part, x, y):
    os.makedirs(f"{folder}/{part}", exist_ok=True)
    with open(f"{folder}/{part}.csv", "w") as f:
        f.write("picture,class\n")
        for i, (p, c) in enumerate(zip(x, y)):
            Image.fromarray(p).save(f"{folder}/{part}/{i}.png")
            f.write(f"{part}/{i}.png,{c}\n")
if what == "fashion":
    source, small = sys.argv[3], sys.argv[4]
    os.makedirs(small)
    arrays = {}
    for part, name, n in (("train", "train", rows), ("test", "t10k", 1000)):
        x = np.frombuffer(gzip.open(f"{source}/{name}-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(-1, 28, 28)[:n]
        y = np.frombuffer(gzip.open(f"{source}/{name}-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)[:n]
        write(part, x, y)
        arrays |= {f"x_{part}": x, f"y_{part}": y}
        open(f"{small}/{name}-images-idx3-ubyte", "wb").write(b"".join(d.to_bytes(4, "big") for d in (0x803, n, 28, 28)) + x.tobytes())
        open(f"{small}/{name}-labels-idx1-ubyte", "wb").write(b"".join(d.to_bytes(4, "big") for d in (0x801, n)) + y.tobytes())
    np.savez(f"{folder}/set.npz", **arrays)
elif what == "cifar":
    for part, names in (("train", [f"data_batch_{i}" for i in range(1, 6)]), ("test", ["test_batch"])):
        raw = np.concatenate([np.frombuffer(gzip.open(f"{sys.argv[3]}/{n}.bin.gz").read(), np.uint8) for n in names]).reshape(-1, 3073)
        write(part, raw[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), raw[:, 0])
PROGRAM

config() {
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1}
		data: $2
		model: {name: lenet}
		train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.01}, stop: {epochs: 1}}
	END
	local_world 3 --no-report --no-what-if --out "$TMP/run-$1" "$TMP/$1.yaml"
	figure "$1: accuracy $(get "$TMP/run-$1/summary.json" test_accuracy), parameters $(get "$TMP/run-$1/summary.json" parameters_sha256 | head -c 12)"
}
same() {
	local first other
	first=$(get "$TMP/run-$1/summary.json" parameters_sha256)
	for other in "${@:2}"; do
		[ "$(get "$TMP/run-$other/summary.json" parameters_sha256)" = "$first" ] || fail "$other has other parameters than $1"
	done
}

"$PYTHON" "$TMP/made.py" fashion "$TMP/fashion" $FASHION "$TMP/idx"
config fashion-idx "{set: idx, path: $TMP/idx}"
config fashion-npy "{set: npy, path: $TMP/fashion/set.npz}"
config fashion-pictures "{set: images, path: $TMP/fashion/train.csv, test: $TMP/fashion/test.csv}"
same fashion-idx fashion-npy fashion-pictures

if [ -n "$EXTRA_DATA" ] && [ -d "$EXTRA_DATA/cifar-10" ]; then
	"$PYTHON" "$TMP/made.py" cifar "$TMP/cifar" "$EXTRA_DATA/cifar-10"
	# the built-in reader normalizes with four digits of the moments, so the same values come from its file as an array
	"$PYTHON" -c '
import gzip, sys, numpy as np
folder, out = sys.argv[1:]
arrays = {}
for part, names in (("train", [f"data_batch_{i}" for i in range(1, 6)]), ("test", ["test_batch"])):
    raw = np.concatenate([np.frombuffer(gzip.open(f"{folder}/{n}.bin.gz").read(), np.uint8) for n in names]).reshape(-1, 3073)
    arrays |= {f"x_{part}": raw[:, 1:].reshape(-1, 3, 32, 32), f"y_{part}": raw[:, 0]}
np.savez(out, **arrays)' "$EXTRA_DATA/cifar-10" "$TMP/cifar.npz"
	config cifar-npy "{set: npy, path: $TMP/cifar.npz}"
	config cifar-pictures "{set: images, path: $TMP/cifar/train.csv, test: $TMP/cifar/test.csv}"
	same cifar-npy cifar-pictures
fi

"$PYTHON" - "$TMP/kinds" <<'PROGRAM'
import os, sys, numpy as np
from PIL import Image
folder = sys.argv[1]
r = np.random.default_rng(1)
rgb = r.integers(0, 256, (24, 36, 3), dtype=np.uint8)
smooth = np.asarray(Image.fromarray(r.integers(0, 256, (2, 3, 3), dtype=np.uint8)).resize((36, 24), Image.BICUBIC))
kinds = {}
for mode in ("RGB", "L", "P", "RGBA", "LA", "1"):
    kinds[f"{mode}.png"] = Image.fromarray(rgb).convert(mode)
alpha = Image.fromarray(np.dstack([rgb, r.integers(0, 256, (24, 36), dtype=np.uint8)]))
kinds["alpha.png"] = alpha
palette = Image.fromarray(rgb).quantize(200)
palette.info["transparency"] = 3
kinds["palette.png"] = palette
for name, options in {"baseline": {}, "progressive": {"progressive": True}, "444": {"subsampling": 0}, "grey": {"grey": True}, "low": {"quality": 60}}.items():
    picture = Image.fromarray(smooth)
    if options.pop("grey", False):
        picture = picture.convert("L")
    os.makedirs(f"{folder}/{name}.jpg/a")
    picture.save(f"{folder}/{name}.jpg/a/p.jpg", **options)
for name, picture in kinds.items():
    os.makedirs(f"{folder}/{name}/a")
    picture.save(f"{folder}/{name}/a/p.png")
PROGRAM
exact=0
for kind in "$TMP"/kinds/*; do
	for color in rgb grey; do
		"$ACCEPT_TMP/inspect" pixels "$kind" $color >"$TMP/values"
		off=$("$PYTHON" -c '
import sys, glob, numpy as np
from PIL import Image
kind, color, values = sys.argv[1:]
p = Image.open(glob.glob(kind + "/a/*")[0]).convert("RGB")
want = np.asarray(p if color == "rgb" else p.convert("L")).astype(int)
got = np.fromfile(values, np.uint8).reshape(-1, 24, 36).transpose(1, 2, 0).squeeze().astype(int)
print(abs(got - want).max(), round(abs(got - want).mean(), 3))' "$kind" $color "$TMP/values")
		case $kind in
		*.png) must "${off% *} == 0" "$(basename "$kind") as $color differs from Pillow's by $off" && exact=$((exact + 1)) ;;
		*) figure "$(basename "$kind") as $color: differs from Pillow's by $off (largest, mean)" && must "${off#* } <= 3" "JPEG" ;;
		esac
	done
done
figure "$exact ways to read PNG are Pillow's to the bit"

rate() { FLUENTPS_TEST_PICTURES=$1 go test -count 1 -run '^$' -bench Pictures -benchtime 3x ./ps/workload/dataset/images | awk '/^BenchmarkPictures/ { for (i = 1; i < NF; i++) if ($(i + 1) == "pictures/s") print $i }'; }
"$PYTHON" - "$TMP/large" <<'PROGRAM'
import os, sys, time, numpy as np
from PIL import Image
r = np.random.default_rng(1)
os.makedirs(sys.argv[1] + "/a")
for i in range(200):
    Image.fromarray(r.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize((500, 375), Image.BICUBIC).save(f"{sys.argv[1]}/a/{i}.jpg", quality=90)
start = time.perf_counter()
for i in range(200):
    np.asarray(Image.open(f"{sys.argv[1]}/a/{i}.jpg").convert("RGB").resize((224, 224), Image.BILINEAR))
print("figure: Pillow on one core:", round(200 / (time.perf_counter() - start)), "pictures/s of 375 x 500 to 224 x 224, JPEG")
PROGRAM
figure "ours on $(nproc) cores: $(rate "$TMP/large") pictures/s"
