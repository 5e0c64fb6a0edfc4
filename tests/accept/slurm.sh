# Sourced after lib.sh by the scripts that submit jobs: tests/slurm/slurm.sh, a folder to submit from, how a job ended.
# shellcheck shell=bash

SLURM=$ROOT/tests/slurm/slurm.sh

# slurm_up N: N nodes until this script ends, each a host; then in a folder that looks like a user's.
slurm_up() {
	"$ROOT/tests/deps.sh" --slurm || fail "no Slurm"
	"$SLURM" up --wait 600 --owner $$ "$1" | tee "$TMP/up" || fail "no Slurm, see above"
	grep -q ", h1 to h$1$" "$TMP/up" || fail "the nodes share a hostname: that servers lie on different nodes cannot be shown"
	mkdir "$TMP/user"
	cd "$TMP/user" || exit
	ln -s "$ROOT/bin" bin
	ln -s "$ROOT/configs" configs
}

# submit SCRIPT [ARG...]: queues it, sets id.
submit() {
	local script=$1
	shift
	id=$("$SLURM" sbatch --parsable --output=%j.out "$@" "$script") || fail "sbatch $script"
	echo "job $id: $script"
}

# completed ID [SECONDS]: waits until it has ended well.
completed() {
	local ended
	ended=$("$SLURM" ended --wait "${2:-600}" "$1")
	[ "$ended" = "COMPLETED 0:0" ] || {
		tail -n 60 "$1".out
		"$SLURM" logs
		fail "job $1 ended $ended"
	}
}

# hosts_of DIR LETTER: the host of each server (s) or worker (w) of a run, in their order.
hosts_of() {
	paste -d ' ' <("$ACCEPT_TMP/inspect" get "$1/run.json" 'ranks.*.role') <("$ACCEPT_TMP/inspect" get "$1/run.json" 'ranks.*.host') |
		sed -n "s/^$2[0-9]* //p" | paste -sd ' '
}
# until_there SECONDS FILE...: waits for one of the files.
until_there() {
	local deadline=$((SECONDS + $1)) file
	shift
	while [ "$SECONDS" -lt "$deadline" ]; do
		for file in "$@"; do
			[ ! -e "$file" ] || return 0
		done
		sleep 0.1
	done
	fail "$* is not there in time"
}
