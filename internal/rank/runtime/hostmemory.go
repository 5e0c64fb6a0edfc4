package runtime

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
)

// free is the memory that a host, or a control group on it, still has for this process; zero: not known.
type free struct {
	bytes int64
	of    string // what sets the bound
}

// memoryFree reads how much memory is free for this process, below the root of a file system: MemAvailable, or what its control groups
// leave if that is less. A batch system puts a job into a group of its own.
func memoryFree(root fs.FS) free {
	least := free{}
	take := func(n int64, of string) {
		if n = max(n, 1); least.of == "" || n < least.bytes {
			least = free{n, of}
		}
	}
	info, _ := fs.ReadFile(root, "proc/meminfo")
	if kib, ok := valueOf(info, "MemAvailable:"); ok {
		take(kib<<10, "MemAvailable")
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, limit, usage, reclaimable := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			at, limit, usage, reclaimable = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		case parts[0] != "0" || parts[1] != "":
			continue
		}
		for group := path.Join(at, parts[2]); ; group = path.Dir(group) { // each group bounds those below it
			most, bounded := numberIn(root, path.Join(group, limit))
			used, known := numberIn(root, path.Join(group, usage))
			if bounded && known {
				stat, _ := fs.ReadFile(root, path.Join(group, "memory.stat"))
				cache, _ := valueOf(stat, reclaimable)
				take(most-max(0, used-cache), limit+" of the control group "+cmp.Or(strings.TrimPrefix(group, at), "/"))
			}
			if group == at || !strings.HasPrefix(group, at+"/") {
				break
			}
		}
	}
	return least
}

// numberIn reads a file that holds one number; ok is false if it does not, as where a group has no limit ("max").
func numberIn(root fs.FS, name string) (n int64, ok bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// valueOf finds the number behind a word that begins a line.
func valueOf(text []byte, word string) (n int64, ok bool) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[0] == word {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// memoryFree is the function for this rank's host.
func (r *rank) memoryFree() free {
	if root := r.o.testing.hostRoot; root != nil {
		return memoryFree(root)
	}
	return memoryFree(os.DirFS("/"))
}

// checkHost has one rank of each host warn if its ranks together may need more memory than was free before they read their data.
// cluster.memory_max bounds each of them alone. Their programs are in memory already.
func (r *rank) checkHost(l *layout.Ledger, before free) {
	me := r.station.Me
	if l == nil || before.of == "" || slices.Index(r.station.Hosts, r.station.Hosts[me]) != me || r.o.Mode != ModeMPI && me != 0 {
		return
	}
	if r.o.Mode != ModeMPI {
		r.warnMemory("this process with its "+metrics.Count(len(r.station.Hosts), "rank"), l.Process()-layout.ProgramBytes, before)
		return
	}
	for _, h := range l.Hosts() {
		if h.Host == r.station.Hosts[me] {
			r.warnMemory("its "+metrics.Count(h.Ranks, "rank"), h.Total()-int64(h.Ranks)*layout.ProgramBytes, before)
		}
	}
}

func (r *rank) warnMemory(who string, need int64, before free) {
	if need <= before.bytes {
		return
	}
	r.station.Log.Warn(fmt.Sprintf("host %s: %s may need %s beside the program, and %s are free (%s), so the system "+
		"may kill a rank: use more hosts, or ask for more memory, in a job with sbatch --mem; plan lists what takes it",
		r.station.Hosts[r.station.Me], who, metrics.Size(need), metrics.Size(before.bytes), before.of))
}
