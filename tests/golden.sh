#!/usr/bin/env bash
# Rewrites the golden files from what the code says now. A golden is a promise: read the diff before you commit it.
# Packages with goldens of their own have a flag -update; those with datadriven scripts its flag -rewrite.
set -eu
cd "$(dirname "$0")/.."
packages() { grep -rlE --include='*_test.go' "$1" internal kernels ps tests | xargs -r -n 1 dirname | sort -u | sed 's|^|./|'; }
for package in $(packages 'flag\.Bool\("update"'); do
	go test -count=1 "$package" -update
done
for package in $(packages '"github.com/cockroachdb/datadriven"'); do
	go test -count=1 "$package" -rewrite
done
git --no-pager diff --stat 2>/dev/null || true
