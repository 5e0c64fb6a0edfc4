#!/usr/bin/env bash
# Tables as pandas, NumPy, Python's csv, R, spreadsheets in two locales, scikit-learn, UCI, LIBSVM's collection, MovieLens and scipy write them are read as they
# are, to the values that were written, or refused with the sentence that names the dialect and the way out. At least 40 files.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy, openpyxl, pandas, scipy, sklearn' 2>/dev/null ||
	fail "missing for $PYTHON: apt-get install python3-numpy python3-openpyxl python3-pandas python3-scipy python3-sklearn"
for program in Rscript ssconvert; do
	command -v $program >/dev/null || fail "no $program: apt-get install r-base-core gnumeric"
done
"$PYTHON" -W ignore tests/accept/data/dialects.py "$FLUENTPS" "$TMP" >"$TMP/table" || {
	cat "$TMP/table" >&2
	fail "some files are neither read right nor refused right"
}
figure "$(tail -n 1 "$TMP/table")"
files=$(awk 'END { print $1 }' "$TMP/table")
must "$files >= 40" "number of files"
