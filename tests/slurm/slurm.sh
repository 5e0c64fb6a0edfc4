#!/usr/bin/env bash
# A real Slurm on this one machine: munged, slurmctld and a slurmd for each node. See README.md.
#
#   slurm.sh up [--owner PID] [--wait S] [--plain] N
#       N nodes h1..hN, each a host of tests/net/hosts.sh. They live until `down`, or until the owner ends, however it
#       ends: by default the process that called this script. --plain: without hosts, all nodes on this machine's name
#   slurm.sh COMMAND [ARG...]    sbatch, srun, squeue, scancel, scontrol, sinfo, where they find this Slurm
#   slurm.sh ended [--wait S] JOB
#       waits until the job has ended for good; prints its state and exit code, as in: COMPLETED 0:0
#   slurm.sh crash NODE          kill -9 everything on a node, as a power cut would
#   slurm.sh revive NODE         its slurmd again
#   slurm.sh logs                what the daemons wrote
#   slurm.sh down [--force]
#
# Needs Debian's slurmctld, slurmd, slurm-client and munge; hosts need root. Nothing in /etc is read or written.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
SELF=$HERE/slurm.sh
HOSTS=$HERE/../net/hosts.sh
ON_HOSTS=/run/fluentps-net/slurm                 # removed with the hosts
PLAIN=${TMPDIR:-/tmp}/fluentps-slurm.$(id -u)    # without them
CPUS=8 GPUS=4                                    # of a node, whatever there is
PATH=$PATH:/usr/sbin:/sbin                       # of a user who is not root

die() {
	echo "slurm: $*" >&2
	exit 1
}
usage() {
	sed -n '2,/^set -/s/^# \{0,1\}//p' "$SELF" >&2
	exit 2
}

# where is the folder of the Slurm that is up.
where() {
	local dir
	for dir in "$ON_HOSTS" "$PLAIN"; do
		[ ! -s "$dir/ready" ] || { echo "$dir" && return 0; }
	done
	die "no Slurm is up: $SELF up N"
}

# on NODE COMMAND...: in the place of the node, with this Slurm.
on() {
	local node=$1
	shift
	if [ -e "$S/plain" ]; then
		"$@"
	else
		"$HOSTS" exec "$node" "$@"
	fi
}

# configure N writes what the daemons read. Timeouts are short: Slurm's own are 300 s until a node is given up and 30 s
# from the signal at the end of a job until the last.
configure() {
	local n=$1 head nodes k user
	user=$(id -un)
	if [ -e "$S/plain" ]; then
		head="$(hostname -s)(127.0.0.1)"
		nodes="NodeName=h[1-$n] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[17001-$((17000 + n))]"
	else
		head="head($(getent hosts head | cut -d ' ' -f 1))"
		nodes="NodeName=h[1-$n]"
	fi
	mkdir -p "$S"/{run,log,state}
	for k in $(seq "$n"); do
		mkdir -p "$S/spool-h$k" "$S/tmp-h$k"
	done
	(umask 077 && head -c 1024 /dev/urandom >"$S/munge.key")
	cat >"$S/slurm.conf" <<-END
		ClusterName=fluentps
		SlurmctldHost=$head
		SlurmctldPort=16817
		SlurmUser=$user
		SlurmdUser=$user
		AuthType=auth/munge
		# cred_expire is also how long a job that was requeued waits at least.
		AuthInfo=socket=$S/run/munge.sock,cred_expire=5
		StateSaveLocation=$S/state
		SlurmctldPidFile=$S/run/slurmctld.pid
		SlurmctldLogFile=$S/log/slurmctld.log
		SlurmdPidFile=$S/run/slurmd.%n.pid
		SlurmdLogFile=$S/log/slurmd.%n.log
		SlurmdSpoolDir=$S/spool-%n
		# Two nodes with one folder: their PMIx fails to start.
		TmpFS=$S/tmp-%n
		SlurmdParameters=config_overrides
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		# As on many clusters: srun needs --mpi=pmix.
		MpiDefault=none
		ReturnToService=2
		SlurmdTimeout=10
		SlurmctldTimeout=10
		KillWait=5
		MinJobAge=600
		SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2,requeue_delay=1
		AccountingStorageType=accounting_storage/none
		GresTypes=gpu
		$nodes CPUs=$CPUS RealMemory=64000 Gres=gpu:$GPUS State=UNKNOWN
		PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10 State=UP
		PartitionName=gpu Nodes=ALL MaxTime=INFINITE DefaultTime=10 State=UP
	END
	gpus >"$S/gres.conf"
}

# gpus describes GPUs that are none. Slurm wants device files, and takes a GPU's number from the end of the name.
gpus() {
	local k
	mkdir -p "$S/dev"
	for k in $(seq 0 $((GPUS - 1))); do
		ln -s /dev/null "$S/dev/gpu$k"
	done
	echo "Name=gpu File=$S/dev/gpu[0-$((GPUS - 1))]"
}

start() { # start NODE DAEMON [ARG...]
	on "$@" </dev/null >>"$S/log/start.log" 2>&1 9>&- || {
		tail -n 20 "$S/log/start.log" "$S"/log/*.log >&2
		die "$2 does not start on $1"
	}
}

# begin N starts the daemons and waits until all nodes are there. Debian's munged looks at who owns its folders.
begin() {
	local n=$1 k
	chmod 755 "$S" "$S/run"
	start head munged --force --key-file="$S/munge.key" --socket="$S/run/munge.sock" --pid-file="$S/run/munged.pid" \
		--log-file="$S/log/munged.log" --seed-file="$S/run/munged.seed" --num-threads=4
	export SLURM_CONF=$S/slurm.conf
	start head slurmctld -f "$SLURM_CONF"
	for k in $(seq "$n"); do
		start "h$k" slurmd -f "$SLURM_CONF" -N "h$k"
	done
	for k in $(seq 300); do
		if [ "$(on head sinfo -h -p main -t idle -o %D 2>/dev/null)" = "$n" ]; then
			echo "$n" >"$S/ready"
			return 0
		fi
		sleep 0.1
	done
	tail -n 20 "$S"/log/*.log >&2
	die "the $n nodes are not idle after $k looks"
}

# keep_plain is the process behind nodes without hosts: it starts them, holds the lock, and ends them with the owner.
keep_plain() {
	local n=$1 owner=$2 wait_s=$3
	S=$PLAIN
	exec 9>"$PLAIN.lock"
	flock -w "$wait_s" 9 || die "a Slurm is up already: wait for its end (--wait S), or type $SELF down --force"
	sweep_plain # what one left that was killed
	trap sweep_plain EXIT
	trap 'exit 0' TERM INT
	mkdir -p "$S"
	touch "$S/plain"
	echo $$ >"$S/keeper"
	configure "$n"
	begin "$n"
	while kill -0 "$owner" 2>/dev/null; do sleep 0.2 9>&-; done
}

# sweep_plain ends the jobs, which know this Slurm by their environment, and the daemons, by their own files.
sweep_plain() {
	local signal pids k
	for signal in TERM KILL; do
		pids=$(cat "$PLAIN"/run/*.pid 2>/dev/null || true)
		pids+=" $(grep -lsz "^SLURM_CONF=$PLAIN/slurm.conf\$" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 | grep -vx $$ | paste -sd ' ' || true)"
		# shellcheck disable=SC2086 # one argument per process
		kill -s "$signal" $pids 2>/dev/null || true
		for k in $(seq 20); do
			# shellcheck disable=SC2086 # the same
			kill -0 $pids 2>/dev/null || break
			sleep 0.1
		done
	done
	rm -rf --one-file-system "$PLAIN"
}

up_plain() { # up_plain N OWNER WAIT_S
	local log keeper
	log=$(mktemp)
	setsid --fork --wait bash "$SELF" --keep-plain "$@" </dev/null >"$log" 2>&1 &
	keeper=$!
	until [ -s "$PLAIN/ready" ] && [ "$(ps -o ppid= -p "$(cat "$PLAIN/keeper")" | tr -d ' ')" = "$keeper" ]; do
		if ! kill -0 "$keeper" 2>/dev/null; then
			cat "$log" >&2
			exit 1
		fi
		sleep 0.1
	done
	rm -f "$log"
	echo "slurm: $1 nodes up on one hostname"
}

up() {
	local owner=$PPID wait_s=0 plain="" n code=0 tool
	while [ $# -gt 1 ]; do
		case $1 in
		--owner) owner=$2 && shift ;;
		--wait) wait_s=$2 && shift ;;
		--plain) plain=1 ;;
		*) usage ;;
		esac
		shift
	done
	n=${1:-}
	if ! [[ $n =~ ^[1-9][0-9]?$ ]] || [ "$n" -lt 2 ]; then
		die "the number of nodes is \"$n\", must be 2 to 99"
	fi
	for tool in munged slurmctld slurmd srun; do
		command -v "$tool" >/dev/null || die "$tool is missing: type tests/deps.sh --slurm"
	done
	if [ -z "$plain" ]; then
		"$HOSTS" up --owner "$owner" --wait "$wait_s" "$n" none || code=$?
		[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || exit "$code"
		[ "$code" -eq 0 ] || echo "slurm: no hosts here, so all nodes have one hostname: that servers lie on different ones cannot be seen"
	fi
	if [ -n "$plain" ] || [ "$code" -eq 77 ]; then
		up_plain "$n" "$owner" "$wait_s"
		return
	fi
	S=$ON_HOSTS
	mkdir -p "$S"
	# head is known only to the hosts.
	if ! "$HOSTS" exec head "$SELF" --begin "$n"; then
		"$HOSTS" down --owner "$owner"
		exit 1
	fi
	echo "slurm: $n nodes up, h1 to h$n"
}

down() {
	local k keeper
	if [ -s "$PLAIN/keeper" ]; then
		keeper=$(cat "$PLAIN/keeper")
		kill -TERM "$keeper" 2>/dev/null || true
		for k in $(seq 100); do
			kill -0 "$keeper" 2>/dev/null || return 0
			sleep 0.1
		done
		die "process $keeper, which keeps the nodes, does not end after $k looks"
	fi
	if [ "${1:-}" = --force ]; then
		"$HOSTS" down --force
	else
		"$HOSTS" down --owner "$PPID"
	fi
}

# client COMMAND [ARG...]: root may start MPI's ranks; the ranks of all nodes share this machine's cores, and give them up
# when there is nothing to do.
client() {
	S=$(where)
	export SLURM_CONF=$S/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 \
		OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self
	if [ -e "$S/plain" ]; then
		# Ranks on two nodes of one name take each other for neighbours, and there is no shared memory between them.
		export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
		exec "$@"
	fi
	exec "$HOSTS" exec head "$@"
}

# ended: Slurm forgets jobs after a while, but only those that have ended.
ended() {
	local wait_s=120 deadline line
	if [ "${1:-}" = --wait ]; then
		wait_s=$2
		shift 2
	fi
	[ $# -eq 1 ] || usage
	deadline=$((SECONDS + wait_s))
	while :; do
		# Of an array or a job of several parts there is a line each, and the worst counts; the restart counter tells nothing.
		line=$("$SELF" scontrol show job -o "$1" | sed -E 's/.* JobState=([A-Z_]+) .* ExitCode=([0-9:]+) .*/\1 \2/' | sort -u)
		if ! grep -qE '^(PENDING|RUNNING|COMPLETING|CONFIGURING|REQUEUED|SUSPENDED)' <<<"$line"; then
			echo "$line"
			return 0
		fi
		if [ "$SECONDS" -ge "$deadline" ]; then
			echo "$line"
			die "job $1 has not ended within $wait_s s"
		fi
		sleep 0.3
	done
}

# crash leaves of a host only what holds its namespaces.
crash() {
	S=$(where)
	[ ! -e "$S/plain" ] || die "crash needs hosts: nodes without them have their processes in common"
	[ -d "$S/spool-$1" ] || die "there is no node $1"
	local anchor net pids
	anchor=$(cat "/run/fluentps-net/$1.pid")
	net=$(readlink "/proc/$anchor/ns/net")
	pids=$(find /proc/[0-9]*/ns/net -printf '%l %p\n' 2>/dev/null |
		awk -v net="$net" -v anchor="$anchor" '$1 == net { split($2, part, "/"); if (part[3] != anchor) print part[3] }' || true)
	[ -n "$pids" ] || die "nothing runs on $1"
	# shellcheck disable=SC2086 # one argument per process
	kill -KILL $pids
}

# revive: what the dead left would keep a step of the same number from starting.
revive() {
	S=$(where)
	[ -d "$S/spool-$1" ] || die "there is no node $1"
	rm -rf "$S/spool-$1"/stepd.slurm.pmix.* "$S/spool-$1"/pmix.* "$S/tmp-$1"/spmix_appdir_*
	export SLURM_CONF=$S/slurm.conf
	start "$1" slurmd -f "$SLURM_CONF" -N "$1"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
up | down | ended) "$verb" "$@" ;;
crash | revive)
	[ $# -eq 1 ] || usage
	"$verb" "$1"
	;;
logs)
	S=$(where)
	grep -vhE 'rmdir_recursive|Failed to remove|CPU frequency|differs from hardware' "$S"/log/*.log | sort | tail -n 60
	;;
sbatch | srun | salloc | squeue | scancel | scontrol | sinfo) client "$verb" "$@" ;;
--begin)
	S=$ON_HOSTS
	configure "$1"
	begin "$1"
	;;
--keep-plain) keep_plain "$@" ;;
*) usage ;;
esac
