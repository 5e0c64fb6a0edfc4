#!/usr/bin/env bash
# fluentps data --html of a table with four mistakes (a copy of the label, a column that numbers the rows, a constant, test rows that are training rows), of
# pictures with every augmentation, of ratings and of sparse rows: the page says each mistake, and a headless browser finds every picture and every text inside
# its picture, at two widths in both themes, with nothing loaded. A table without them says none. SCREENSHOTS=DIR keeps the pictures.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
	apt-get install -y --no-install-recommends chromium >"$TMP/apt" 2>&1 || fail "there is no Chromium, and apt-get cannot install one: $(tail -n 1 "$TMP/apt")"
	browser=$(command -v chromium)
fi
go build -o "$TMP/browser" ./tests/accept/browser
shots=${SCREENSHOTS:-$TMP/shots}
texts=0

# looked NAME ARG... FIGURE: writes the page of `fluentps data ARG...`, and looks at it.
looked() {
	local name=$1 figure=${*: -1}
	shift
	"$FLUENTPS" data "${@:1:$#-1}" --html "$TMP/$name.html" >"$TMP/log" 2>&1 || shown "data $name"
	mkdir -p "$shots/$name"
	texts=$((texts + $("$TMP/browser" "$browser" "$TMP/$name.html" "$shots/$name" "$figure" 2>"$TMP/complaints" || true)))
	[ ! -s "$TMP/complaints" ] || fail "$name: $(cut -c 1-300 "$TMP/complaints" | head)"
}
says() { grep -qF "$2" "$TMP/$1.html" || fail "the page $1 does not say: $2"; }
silent() { ! grep -qF "$2" "$TMP/$1.html" || fail "the page $1 says: $2"; }

awk 'BEGIN { srand(7); print "number,age,code,country,income,city,buys"
	for (i = 0; i < 900; i++) { age = int(20 + 50 * rand()); buys = (age + 20 * rand() > 50) ? "yes" : "no"
		printf "%d,%d,%s,DE,%.0f,%s,%s\n", i + 1, age, buys == "yes" ? 7 : 3, exp(9 + 2 * rand()), substr("RomeOsloBonn", 1 + 4 * int(3 * rand()), 4), buys } }' >"$TMP/bad.csv"
cut -d , -f 2,5- "$TMP/bad.csv" >"$TMP/good.csv"
{ head -n 1 "$TMP/bad.csv"; tail -n 60 "$TMP/bad.csv"; } >"$TMP/test.csv"
columns=(--set 'data.columns={city: onehot, country: onehot}')
looked bad csv "$TMP/bad.csv" --test "$TMP/test.csv" "${columns[@]}" figure-alone
says bad 'A guess from column code alone has accuracy 1.000: is it made from what is to be predicted?'
says bad 'Column number rises from row to row'
says bad 'Of 60 test rows looked at, 60 have the values of a training row looked at'
says bad 'Constant, so they tell nothing: country.'
looked good csv "$TMP/good.csv" --set 'data.columns={city: onehot}' --set 'data.split={test: 0.2}' figure-column-1
says good 'The best guess from one column alone is that from age'
for word in 'is it made from' 'rises from row' 'Constant, so' 'of a training row looked at'; do silent good "$word"; done

awk 'BEGIN { srand(3); for (i = 0; i < 3000; i++) print int(80 * rand()), int(40 * rand()), 1 + int(5 * rand()) }' >"$TMP/ratings"
looked ratings ratings "$TMP/ratings" figure-per-row
sets="bad good ratings"
if [ -n "$EXTRA_DATA" ]; then
	cat >"$TMP/cifar.yaml" <<-END
		name: cifar10
		data: {set: cifar10, path: $EXTRA_DATA/cifar-10, augment: {crop: 4, flip: true, rotate: 20, jitter: 0.2, cutout: 8}}
		model: {name: resnet20}
		train: {batch_per_worker: 16, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 1}}
	END
	looked cifar "$TMP/cifar.yaml" figure-shades-2
	says cifar 'Pictures as training changes them'
	[ "$(grep -c '<img ' "$TMP/cifar.html")" -eq 22 ] || fail "the page of CIFAR-10 has $(grep -c '<img ' "$TMP/cifar.html") strips of pictures"
	looked a9a libsvm "$EXTRA_DATA/libsvm/a9a.gz" figure-alone
	says a9a 'more columns are not drawn'
	sets="$sets cifar a9a"
fi
figure "pages of $sets: four mistakes said, none in a table without; $texts texts inside their pictures at 400 and 1280 pixels, in both themes"
