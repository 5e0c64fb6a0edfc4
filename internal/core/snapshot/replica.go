package snapshot

import "fluentps/internal/comm/wire"

// replica is the part of a checkpoint in the memories of the hosts. A version of it is complete when every file is in
// its host's memory and, where there are several hosts, also in the next host's. Then all hosts are told, one after the
// other, whether it is complete.
type replica struct {
	busy        bool // a version is being made
	version     int64
	number      int64 // of the checkpoint in the run folder
	missing     int   // files in memory, and copies of files, that were not reported yet
	files       []wire.FileSaved
	failure     string
	untoldHosts []int32 // hosts that were not told yet
	telling     bool    // a host was told and has not answered
}

// begin notes that a version will be made.
func (r *replica) begin(c *Config, number int64) {
	if c.Hosts == nil {
		return
	}
	files := c.Files
	if c.Copies {
		files *= 2
	}
	*r = replica{busy: true, version: r.version + 1, number: number, missing: files, files: r.files[:0]}
}

// saved notes a file in memory or its copy, and says whether it was the last one.
func (r *replica) saved(c *Config, f *wire.FileSaved, diverged string) bool {
	r.missing--
	if diverged != "" {
		r.failure = diverged
	}
	if f.Failed {
		r.failure = c.unwritten(f.Rank)
		if f.Place == wire.InMemory && c.Copies { // the rank sends no copy either
			r.missing--
		}
	}
	if f.Place == wire.InMemory {
		r.files = append(r.files, *f)
	}
	if r.missing > 0 || r.telling {
		return false
	}
	r.untoldHosts, r.telling = append(r.untoldHosts[:0], c.Hosts...), true
	return true
}

// tellHost tells the next host whether the version is complete.
func (c *Coordinator) tellHost() {
	r := &c.replica
	if len(r.untoldHosts) == 0 {
		r.telling, r.busy = false, false
		return
	}
	e := Effect{Kind: Tell, Host: r.untoldHosts[0], Version: r.version, Number: r.number, Problem: r.failure}
	if r.failure == "" {
		e.Files = r.files
	}
	r.untoldHosts = r.untoldHosts[1:]
	c.emit(e)
}
