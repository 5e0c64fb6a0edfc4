package snapshot

import "fluentps/comm/wire"

// replica is the part of a checkpoint in the memories of the hosts. A version of it is complete when every file is in memory,
// and where there is another host, there too; then all hosts are told, one after the other, that it is, or that it is not.
type replica struct {
	busy    bool // a version is made
	version int64
	number  int64 // of the checkpoint in the run folder
	missing int   // files in memory, and their copies
	files   []wire.FileSaved
	failed  string
	hosts   []int32 // that were not told yet
	telling bool    // one of them is told
}

// begin is told that a version will be made.
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

// saved is told of a file in memory or of its copy, and says whether it was the last one.
func (r *replica) saved(c *Config, f *wire.FileSaved, diverged string) bool {
	r.missing--
	if diverged != "" {
		r.failed = diverged
	}
	if f.Failed {
		r.failed = c.unwritten(f.Rank)
		if f.Place == wire.InMemory && c.Copies { // it sends nothing
			r.missing--
		}
	}
	if f.Place == wire.InMemory {
		r.files = append(r.files, *f)
	}
	if r.missing > 0 || r.telling {
		return false
	}
	r.hosts, r.telling = append(r.hosts[:0], c.Hosts...), true
	return true
}

// tellHost tells the next host whether the version is complete.
func (c *Coordinator) tellHost() {
	r := &c.replica
	if len(r.hosts) == 0 {
		r.telling, r.busy = false, false
		return
	}
	e := Effect{Kind: Tell, Host: r.hosts[0], Version: r.version, Number: r.number, Problem: r.failed}
	if r.failed == "" {
		e.Files = r.files
	}
	r.hosts = r.hosts[1:]
	c.say(e)
}
