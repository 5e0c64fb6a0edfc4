#!/usr/bin/env bash
# What the program reads is changed in 20,000 ways: data files (packed ones, too, with valid checksums), configurations, the
# environment, host lists, locks, checkpoints (crafted ones with valid checksums included), frames and payloads. Nothing panics, takes longer
# than 10 s, takes more memory than it may, or writes anywhere else. What is read as something else without a word is listed, with
# the reason.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

FLUENTPS_MUTATIONS=${ACCEPT_MUTATIONS:-20000} FLUENTPS_MUTATIONS_SECONDS=10 FLUENTPS_MUTATIONS_SEED=${ACCEPT_SEED:-1} \
	go test ./tests/mutations -count=1 -v -timeout 90m >"$TMP/log" 2>&1 || shown "go test ./tests/mutations"
said() { sed -n "s/.*mutations_test.go:[0-9]*: $1: //p" "$TMP/log"; }

# Each kind of change that some reader took without a word, with how often.
said accepted
cat <<'END'
why what is accepted is accepted without a word:
  data        A text has no checksum: another digit, a row more or less, or a file that ends with a newline before its end, is another file
              that is as good. run.json has its sha256, `fluentps data` prints it, and a run refuses to go on with other data.
  configuration, FLUENTPS_*, --set
              Another value within its limits is another experiment; plan, run and resolved.yaml show it. A line of the environment that
              is no FLUENTPS_ name is somebody else's.
  SLURM_*, host list
              Other hosts, tasks or jobs of the same form. Without SLURM_JOB_ID there is no job. Ranks come from MPI, not from these.
  owner of a lock
              Who says to hold a folder is taken at its word; only the count in the file shows life.
  best.json   It may name another checkpoint, which is verified when it is read.
  frame, payload
              No checksum of their own: MPI has its own, and a rank sends what it wants. What no codec writes is refused.
  checkpoint  With valid checksums: parameters, moments and residuals within their limits are as good as others, and so are counters that
              nothing else in the checkpoint repeats (learning-rate clock, state of rank 0's metrics, names, the configuration of then where the key may
              change). A crc32c finds damage, and is no signature: who may write the folder may write another run.
END
while read -r line; do figure "$line"; done < <(said reader)
tried=$(said tried)
[ -n "$tried" ] || fail "no figures"
figure "$tried"
figure "no panic, none above 10 s, nothing written beside the folder; $(said accepted | wc -l) kinds of change of a reader are accepted now and then, with the reason above"
