#!/usr/bin/env bash
# Several "hosts" on this one machine, joined by a switch with links of a set rate, and mpirun over them. See README.md.
#
#   hosts.sh up [--queue MS] [--owner PID] [--wait S] N RATE
#       N hosts h1..hN, each link at RATE in both directions ("200mbit", "1gbit", "none"). They live until
#       `down`, or until the owner ends, however it ends: by default the process that called this script.
#   hosts.sh rate HOST RATE              another rate for one host that is up
#   hosts.sh exec HOST COMMAND...        run a command on a host, with this environment and folder
#   hosts.sh mpirun [--mpich] [--map HOST,... | --per-host K] [--env NAME=VALUE]... PROGRAM [ARG...]
#       one rank per name in the map, in its order; or K ranks on each host, host by host (default 1). The variables that
#       choose kernels reach all of them: else ranks would compute other bits than a run on this machine
#   hosts.sh down [--owner PID | --force]
#       end everything on the hosts, and remove them; with --force whoever's they are
#
# Exit code 77: this machine does not let us, and why. Needs root, and Debian's iproute2 and util-linux.
set -euo pipefail

STATE=/run/fluentps-net # what is up; one set of hosts at a time
LOCK=/run/fluentps-net.lock
NET=10.77.0 # seen by nobody but the hosts
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
SELF=$HERE/hosts.sh

die() {
	echo "hosts: $*" >&2
	exit 1
}
cannot() {
	echo "hosts: $*" >&2
	exit 77
}
usage() {
	sed -n '2,/^set -/s/^# \{0,1\}//p' "$SELF" >&2
	exit 2
}

needs() {
	[ "$(id -u)" -eq 0 ] || cannot "only root can make network and mount namespaces; this is $(id -un)"
	local tool
	for tool in ip tc nsenter unshare setsid flock; do
		command -v "$tool" >/dev/null || cannot "$tool is missing (Debian: apt-get install iproute2 util-linux)"
	done
}

is_up() { [ -s "$STATE/ready" ] && [ -d "/proc/$(cat "$STATE/keeper")" ]; }
anchor() { cat "$STATE/$1.pid" 2>/dev/null; } # of a host: the process that holds its namespaces
on_net() {                                    # on_net HOST COMMAND...: in its network only, as this machine's tools
	local host=$1
	shift
	nsenter --target "$(anchor "$host")" --net "$@"
}
address() { [ "$1" = head ] && echo "$NET.254" || echo "$NET.${1#h}"; }

# alive PID START: the process is there and not another one that was given its number since.
alive() { [ "$(started "$1")" = "$2" ]; }
started() { awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$1/stat" 2>/dev/null; }

# shape HOST RATE QUEUE_MS: both directions of its link. burst is what may pass at full speed, 2 ms of the rate, but no less
# than one large segment. tbf and not netem, which many kernels lack.
shape() {
	local host=$1 rate=$2 queue=$3 bits burst
	on_net "$host" tc qdisc del dev eth0 root 2>/dev/null || true
	on_net switch tc qdisc del dev "$host" root 2>/dev/null || true
	[ "$rate" != none ] || return 0
	bits=$(awk -v r="$rate" 'BEGIN { unit["k"] = 1e3; unit["m"] = 1e6; unit["g"] = 1e9; printf "%d", r * unit[substr(r, length(r) - 3, 1)] }')
	burst=$((bits / 8 / 500))
	[ "$burst" -ge 16384 ] || burst=16384
	on_net "$host" tc qdisc add dev eth0 root tbf rate "$rate" burst "$burst" latency "${queue}ms" &&
		on_net switch tc qdisc add dev "$host" root tbf rate "$rate" burst "$burst" latency "${queue}ms"
}
good_rate() { [[ $1 == none || $1 =~ ^[0-9]+(\.[0-9]+)?[kmg]bit$ ]] || die "the rate is \"$1\", must be like 200mbit, or none"; }

# hold NAME: starts the anchor of a host. It dies with the keeper (--pdeathsig), and the namespaces with their last process:
# they have no names that could be left behind.
hold() {
	local name=$1
	# shellcheck disable=SC2016 # the inner shell expands
	setpriv --pdeathsig KILL unshare --net --uts --ipc --mount bash -euc '
		echo "$1" >/proc/sys/kernel/hostname
		mount -t tmpfs -o mode=1777 shm /dev/shm
		mount --bind "$2/hosts" /etc/hosts
		mount --bind "$2/resolv.conf" "$(readlink -f /etc/resolv.conf)" || true # no name server answers here
		mount --rbind /sys/fs/cgroup "$2/cgroup" || true
		mount -t sysfs sysfs /sys # with the devices of this host: UCX looks there
		mount --rbind "$2/cgroup" /sys/fs/cgroup || true
		ip link set lo up
		echo $$ >"$2/$1.pid.new"
		mv "$2/$1.pid.new" "$2/$1.pid"
		exec sleep infinity' hold "$name" "$STATE" 9>&- &
	local pid=$! k
	for k in $(seq 100); do
		[ ! -s "$STATE/$name.pid" ] || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	cannot "no namespaces for $name after $k tries: may this user make them?"
}

# plug HOST: a cable from its eth0 to the switch. cubic, as on most clusters: others pace, and soften contention.
plug() {
	local host=$1
	on_net "$host" ip link add eth0 type veth peer name "$host" netns "$(anchor switch)"
	on_net "$host" ip addr add "$(address "$host")/24" dev eth0
	on_net "$host" ip link set eth0 up
	on_net switch ip link set "$host" master br0 up
	on_net "$host" ip route replace "$NET.0/24" dev eth0 src "$(address "$host")" congctl cubic || true
}

# inhabitants: every process on one of the hosts, by the network it is in. The keeper itself is not.
inhabitants() {
	[ -s "$STATE/networks" ] || return 0
	find /proc/[0-9]*/ns/net -printf '%l %p\n' 2>/dev/null |
		awk 'NR == FNR { ours[$1]; next } $1 in ours { split($2, part, "/"); print part[3] }' "$STATE/networks" - || true
}

# sweep ends all of them and removes what was written.
sweep() {
	local signal pids k
	for signal in TERM KILL; do
		pids=$(inhabitants)
		# shellcheck disable=SC2086 # one argument per process
		[ -z "$pids" ] || kill -s "$signal" $pids 2>/dev/null || true
		for k in $(seq 20); do
			[ -n "$(inhabitants)" ] || break
			sleep 0.05
		done
	done
	rm -rf --one-file-system "$STATE"
}

# keep is the process behind the hosts: it makes them, holds the lock, and removes everything when it is told to, or when
# the owner is gone. Should it be killed itself, the anchors die with it, and the next `up` sweeps.
keep() {
	local n=$1 rate=$2 queue=$3 owner=$4 start=$5 wait_s=$6 token=$7 host k
	exec 9>"$LOCK"
	flock -w "$wait_s" 9 || die "hosts are up already$(sed -n 's/^/, of process /p' "$STATE/owner" 2>/dev/null): wait for its end (--wait S), or type $SELF down --force"
	sweep
	trap sweep EXIT
	trap 'exit 0' TERM INT
	mkdir -p "$STATE/cgroup"
	echo $$ >"$STATE/keeper"
	echo "$owner ($(tr '\0' ' ' <"/proc/$owner/cmdline" | cut -c1-80))" >"$STATE/owner"
	: >"$STATE/resolv.conf"
	: >"$STATE/names"
	{
		echo "127.0.0.1 localhost"
		echo "$(address head) head"
		for k in $(seq "$n"); do
			echo "$(address "h$k") h$k"
			echo "h$k" >>"$STATE/names"
		done
	} >"$STATE/hosts"
	hold switch
	on_net switch ip link add br0 type bridge stp_state 0 forward_delay 0
	on_net switch ip link set br0 up
	readlink "/proc/$(anchor switch)/ns/net" >"$STATE/networks"
	while read -r host; do
		hold "$host"
		readlink "/proc/$(anchor "$host")/ns/net" >>"$STATE/networks"
		plug "$host"
		[ "$host" = head ] || shape "$host" "$rate" "$queue" || cannot "tc refused the rate $rate: is the kernel's sch_tbf there?"
	done < <(echo head && cat "$STATE/names")
	echo "$queue" >"$STATE/queue"
	echo "$token" >"$STATE/ready"
	while alive "$owner" "$start"; do sleep 0.2 9>&-; done
}

up() {
	local queue=20 owner=$PPID wait_s=0
	while [ $# -gt 0 ]; do
		case $1 in
		--queue) queue=$2 ;;
		--owner) owner=$2 ;;
		--wait) wait_s=$2 ;;
		*) break ;;
		esac
		shift 2
	done
	[ $# -eq 2 ] || usage
	local n=$1 rate=$2
	if ! [[ $n =~ ^[1-9][0-9]?[0-9]?$ ]] || [ "$n" -gt 200 ]; then
		die "the number of hosts is \"$n\", must be 1 to 200"
	fi
	good_rate "$rate"
	[[ $queue =~ ^[1-9][0-9]*$ ]] || die "--queue is \"$queue\", must be a number of ms"
	local start log code=0
	start=$(started "$owner")
	[ -n "$start" ] || die "--owner: there is no process $owner"
	needs
	log=$(mktemp)
	# It outlives this script and keeps neither its terminal nor its output.
	setsid --fork --wait bash "$SELF" --keep "$n" "$rate" "$queue" "$owner" "$start" "$wait_s" $$ </dev/null >"$log" 2>&1 &
	local keeper=$!
	until [ "$(cat "$STATE/ready" 2>/dev/null)" = $$ ]; do
		if ! kill -0 "$keeper" 2>/dev/null; then
			wait "$keeper" || code=$?
			cat "$log" >&2
			rm -f "$log"
			exit "$((code ? code : 1))"
		fi
		sleep 0.05
	done
	rm -f "$log"
	echo "hosts: $n up, h1 to h$n, links at $rate"
}

down() {
	local owner=$PPID force="" keeper k
	case ${1:-} in
	--owner) owner=$2 ;;
	--force) force=1 ;;
	"") ;;
	*) usage ;;
	esac
	[ "$(id -u)" -eq 0 ] || cannot "only root can"
	if ! is_up; then # what one left that was killed; not what one is just making
		(flock -n 9 && sweep) 9>"$LOCK" || true
		return 0
	fi
	keeper=$(cat "$STATE/keeper")
	[ -n "$force" ] || grep -q "^$owner " "$STATE/owner" || die "they are the hosts of process $(cat "$STATE/owner"): type $SELF down --force to end them"
	kill -TERM "$keeper"
	for k in $(seq 100); do
		kill -0 "$keeper" 2>/dev/null || return 0
		sleep 0.05
	done
	die "process $keeper, which keeps the hosts, does not end after $k looks"
}

# enter HOST COMMAND...: instead of this script, so that a signal finds the command.
enter() {
	local host=$1 pid
	shift
	is_up || die "no hosts are up: $SELF up N RATE"
	pid=$(anchor "$host") || die "there is no host $host; there are head $(paste -sd ' ' "$STATE/names")"
	# shellcheck disable=SC2016 # the inner shell expands
	exec nsenter --target "$pid" --net --uts --ipc --mount sh -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' enter "$PWD" "$@"
}

# rsh HOST WORD...: what mpirun calls in the place of ssh, and as bare: of the environment only what a login gives.
rsh() {
	[ "$1" != -x ] || shift # Hydra's word to ssh
	local host=$1
	shift
	exec env -i HOME="${HOME:-/root}" USER="${USER:-root}" SHELL=/bin/sh PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$SELF" exec "$host" sh -c "$*"
}

run() {
	local mpich="" map="" per=1 variables=() name
	for name in $(compgen -e | grep -E '^(FLUENTPS_KERNELS|OPENBLAS|ONEDNN|DNNL)_'); do
		variables+=("$name=${!name}")
	done
	while [ $# -gt 0 ]; do
		case $1 in
		--mpich) mpich=1 && shift && continue ;;
		--map) map=$2 ;;
		--per-host) per=$2 ;;
		--env) variables+=("$2") ;;
		-*) usage ;;
		*) break ;;
		esac
		shift 2
	done
	[ $# -ge 1 ] || usage
	is_up || die "no hosts are up: $SELF up N RATE"
	local host ranks
	ranks=$(mktemp "$STATE/ranks.XXXXXX") # a line per rank
	if [ -n "$map" ]; then
		tr ',' '\n' <<<"$map" >"$ranks"
	else
		awk -v per="$per" '{ for (k = 0; k < per; k++) print }' "$STATE/names" >"$ranks"
	fi
	while read -r host; do
		grep -qx "$host" "$STATE/names" || die "there is no host $host; there are $(paste -sd ' ' "$STATE/names")"
	done <"$ranks"
	if [ -n "$mpich" ]; then
		# Hydra fills hosts in the order in which it meets them, each once.
		[ "$(uniq "$ranks" | sort | uniq -d)" = "" ] || die "with --mpich the ranks of a host must stand side by side in the map"
		uniq -c "$ranks" | awk '{ print $2 ":" $1 }' >"$ranks.hydra"
		# UCX takes ranks under one kernel for neighbours and would use what memory they share.
		enter head env UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 "${variables[@]}" \
			"$(command -v mpiexec.mpich || echo mpiexec)" -launcher ssh -launcher-exec "$HERE/rsh.sh" -f "$ranks.hydra" -n "$(wc -l <"$ranks")" "$@"
	fi
	# ob1 over TCP, and shared memory (vader) within a host. The hosts share this machine's cores: bind nothing, and give the
	# core up when there is nothing to do.
	enter head env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$(command -v mpirun.openmpi || echo mpirun)" \
		--hostfile "$ranks" --map-by seq --oversubscribe --bind-to none -n "$(wc -l <"$ranks")" \
		--mca plm rsh --mca plm_rsh_agent "$HERE/rsh.sh" --mca pml ob1 --mca btl tcp,vader,self \
		--mca btl_tcp_if_include "$NET.0/24" --mca oob_tcp_if_include "$NET.0/24" --mca mpi_yield_when_idle 1 \
		env "${variables[@]}" "$@"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
up | down) "$verb" "$@" ;;
mpirun) run "$@" ;;
rate)
	[ $# -eq 2 ] || usage
	good_rate "$2"
	is_up || die "no hosts are up: $SELF up N RATE"
	grep -qx "$1" "$STATE/names" || die "there is no host $1; there are $(paste -sd ' ' "$STATE/names")"
	shape "$1" "$2" "$(cat "$STATE/queue")"
	;;
exec)
	[ $# -ge 2 ] || usage
	enter "$@"
	;;
--rsh) rsh "$@" ;;
--keep) keep "$@" ;;
*) usage ;;
esac
