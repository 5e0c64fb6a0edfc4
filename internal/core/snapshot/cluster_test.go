package snapshot

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
)

var clusters = flag.Int("clusters", 400, "random clusters that are tried")

// machine is a coordinator, possibly with a fault.
type machine interface{ Step(e Event) []Effect }

// cluster is a run with random hosts, workers, disks and ends; only the coordinator is real. Messages arrive in random
// order, except that the messages of one rank keep theirs. A kill loses all messages.
type cluster struct {
	rng      *rand.Rand
	c        Config
	m        machine
	twin     *dumb
	host     []int // of each rank
	parts    []part
	inbox    [][]Event // by rank: messages to rank 0 that have not arrived
	work     []func()  // pending actions of goroutines and nodes, in any order
	now      time.Duration
	version  int64
	cut      int // checkpoints asked for so far; all files of one must belong to it
	version0 int // checkpoints asked for before this start

	draft  *folder
	named  map[string]folder // by name
	memory start             // replicas of this start
	old    *start            // replicas of an earlier start, from which the run has resumed; nil: none
	told   []map[int64]int   // by host: how often it was told of a version
	ends
	badDisk   float64 // share of files that cannot be written
	badMemory float64
	problems  []string
}

// ends are how far a run is, and how it ends.
type ends struct {
	stopsAt     int // steps after which the run is stopped; -1: the budget ends it
	spent       bool
	ending      bool // training was told to end
	short       bool // training was ended at once
	diverged    bool // the stop said that the run has diverged
	unevaluated bool // the last checkpoint must be evaluated, and was not
	paused      bool // the nodes were asked to stop
	done        bool // NodesDone was given, and training has ended
	open        int  // files that are being written
	saved       int64
	settled     bool
}

// part is a file of a checkpoint, and the rank that writes it.
type part struct {
	rank int
	file wire.FileSaved
}

type folder map[string]int // the cut of each complete file

// start is the replicas that one start of the run has in the memories of hosts.
type start struct {
	files    []map[int64]map[string]int // by host: of each version, the cut of each file
	complete []map[int64]bool           // by host: the versions that it was told are complete
	lost     int                        // hosts lost since, with the copies in their memory
}

func newStart(hosts int) (m start) {
	for range hosts {
		m.files, m.complete = append(m.files, map[int64]map[string]int{}), append(m.complete, map[int64]bool{})
	}
	return m
}

// without lists the files of a version in the memories of all hosts but one.
func (m *start) without(lost int, version int64) map[string]int {
	there := map[string]int{}
	for h := range m.files {
		if h != lost {
			maps.Copy(there, m.files[h][version])
		}
	}
	return there
}

// newest is the newest version that any host but one was told is complete.
func (m *start) newest(lost int) (newest int64, told bool) {
	for h := range m.complete {
		for v := range m.complete[h] {
			if h != lost && v >= newest {
				newest, told = v, true
			}
		}
	}
	return newest, told
}

func newCluster(rng *rand.Rand, made func(Config) machine) *cluster {
	k := &cluster{rng: rng, named: map[string]folder{}}
	ranks := 1 + rng.IntN(6)
	hosts := 1 + rng.IntN(3)
	for rank := range ranks {
		k.host = append(k.host, min(rank*hosts/ranks, hosts-1))
		if rank == 0 || rng.IntN(2) == 0 {
			k.parts = append(k.parts, part{rank, wire.FileSaved{Rank: int32(rank), Kind: wire.ServerFile, Index: int32(rank)}})
		}
		if rank > 0 || ranks == 1 || rng.IntN(2) == 0 {
			k.parts = append(k.parts, part{rank, wire.FileSaved{Rank: int32(rank), Kind: wire.WorkerFile, Index: int32(rank)}})
		}
	}
	hosts = k.host[ranks-1] + 1
	k.c = Config{Files: len(k.parts), Pauses: rng.IntN(2) == 0, Judges: rng.IntN(3) == 0}
	if rng.IntN(2) == 0 {
		k.c.Every = time.Duration(1+rng.IntN(20)) * time.Second
	} else {
		k.c.EveryUpdates = int64(1 + rng.IntN(20))
	}
	if rng.IntN(2) == 0 {
		for h := range hosts {
			k.c.Hosts = append(k.c.Hosts, int32(slices.Index(k.host, h)))
		}
		k.c.Copies = hosts > 1
	}
	k.memory = newStart(hosts)
	k.begin(made)
	return k
}

// begin starts the run, or restarts it.
func (k *cluster) begin(made func(Config) machine) {
	k.inbox, k.work, k.told = make([][]Event, len(k.host)), nil, nil
	for range k.memory.files {
		k.told = append(k.told, map[int64]int{})
	}
	k.badDisk, k.badMemory = []float64{0, 0, 0.1, 0.7}[k.rng.IntN(4)], []float64{0, 0, 0.1, 0.7}[k.rng.IntN(4)]
	if k.stopsAt = -1; k.rng.IntN(2) == 0 {
		k.stopsAt = k.rng.IntN(300)
	}
	k.draft, k.spent, k.ending, k.short, k.diverged, k.unevaluated, k.paused, k.done, k.settled = nil, false, false,
		false, false, false, false, false, false
	k.open, k.saved, k.version0 = 0, 0, k.cut
	if k.m = made(k.c); k.m == nil {
		k.m, k.twin = New(k.c, k.now, k.version), &dumb{c: k.c, at: k.now, version: k.version}
	}
}

// restart restarts a run that was killed, maybe without the memory of one host. It resumes from the newest complete
// checkpoint or replica.
func (k *cluster) restart(made func(Config) machine) {
	if n := len(k.memory.files); n > 1 && k.maybe(0.5) {
		h := k.rng.IntN(n)
		k.memory.files[h], k.memory.complete[h], k.memory.lost = map[int64]map[string]int{}, map[int64]bool{}, k.memory.lost+1
		if k.old != nil {
			k.old.files[h], k.old.complete[h], k.old.lost = map[int64]map[string]int{}, map[int64]bool{}, k.old.lost+1
		}
	}
	if _, told := k.memory.newest(-1); told {
		from := k.memory
		k.old = &from
	}
	k.memory = newStart(len(k.memory.files))
	k.begin(made)
}

func (k *cluster) fail(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

func (k *cluster) maybe(p float64) bool { return k.rng.Float64() < p }

// step tells the coordinator an event, compares it with its twin, and obeys.
func (k *cluster) step(e Event) {
	effects := slices.Clone(k.m.Step(e))
	for i := range effects {
		effects[i].Files = slices.Clone(effects[i].Files)
	}
	if k.twin == nil {
		// a faulty coordinator, which the laws must find
	} else if want := k.twin.Step(e); fmt.Sprint(effects) != fmt.Sprint(want) || !reflect.DeepEqual(normal(effects), normal(want)) {
		k.fail("twin: %v %+v: %v, and its twin says %v", e.Kind, e, effects, want)
	}
	for _, e := range effects {
		k.obey(e)
	}
}

func normal(list []Effect) (out []Effect) {
	for _, e := range list {
		if len(e.Files) == 0 {
			e.Files = nil
		}
		out = append(out, e)
	}
	return out
}

// later queues an action; chance decides when it runs.
func (k *cluster) later(f func()) { k.work = append(k.work, f) }

func (k *cluster) obey(e Effect) {
	switch e.Kind {
	case Begin:
		if k.draft != nil {
			k.fail("one at a time: a checkpoint is begun while another one is being made")
		}
		if k.ending {
			k.fail("stop: a checkpoint is begun after the run was stopped")
		}
		k.later(func() {
			if k.maybe(k.badDisk) {
				k.step(Event{Kind: Begun, Problem: "no space"})
				return
			}
			k.draft = &folder{}
			k.step(Event{Kind: Begun, Number: k.version})
		})
	case Name:
		k.cut++
		if k.ending && k.maybe(0.7) { // the run does not come to that version
			return
		}
		k.keepAll(k.cut)
	case Pause:
		k.cut++
		k.paused = true
		k.later(k.nodesDone)
	case GoOn:
		if k.ending || k.spent {
			k.fail("pause: nodes resume in a run that has ended")
		}
		k.keepAll(k.cut)
	case End:
		k.done = true
	case Finish:
		if k.diverged {
			k.fail("diverged: a checkpoint of a diverged run gets a name")
		}
		k.finish(e)
	case Abandon:
		k.later(func() {
			k.draft = nil
			k.step(Event{Kind: Finished, Problem: e.Problem})
		})
	case Made:
		k.unevaluated = k.c.Judges && !k.short
	case Judge:
		if k.short {
			k.fail("stop: a checkpoint is evaluated though training was ended at once")
		}
		k.unevaluated = false
		k.later(func() { k.step(Event{Kind: Judged}) })
	case Tell:
		k.tell(e)
	case Settled:
		if k.unevaluated {
			k.fail("judged: the run has settled, and its last checkpoint was not evaluated")
		}
		if coming := slices.ContainsFunc(k.inbox, func(list []Event) bool { return len(list) > 0 }); k.open > 0 || k.draft != nil || coming {
			k.fail("settled: %d files are being written, a folder without a name is there: %t, messages are in flight: %t",
				k.open, k.draft != nil, coming)
		}
		k.settled = true
	}
}

// nodesDone tells the coordinator that all nodes are done.
func (k *cluster) nodesDone() {
	if k.done {
		return
	}
	k.paused = false
	k.step(Event{Kind: NodesDone, Spent: k.spent})
}

// keepAll writes every part, into the folder and into memory.
func (k *cluster) keepAll(cut int) {
	version := int64(0) // of the replica: counts the replicas asked for
	if k.c.Hosts != nil {
		version = int64(cut - k.version0)
	}
	k.step(Event{Kind: Named})
	for _, p := range k.parts {
		k.open++
		k.later(func() {
			f := p.file
			f.Version, f.Failed = int64(cut), k.maybe(k.badDisk)
			if !f.Failed && k.draft != nil {
				(*k.draft)[fileText(&f)] = cut
			}
			k.open--
			k.send(p.rank, f)
		})
		if k.c.Hosts == nil {
			continue
		}
		k.open++
		k.later(func() {
			f := p.file
			f.Version, f.Place, f.Failed = version, wire.InMemory, k.maybe(k.badMemory)
			k.open--
			if k.send(p.rank, f); f.Failed {
				return
			}
			k.store(k.host[p.rank], version, &f, cut)
			if k.c.Copies {
				k.open++
				k.later(func() { k.copied(&p, version, cut) })
			}
		})
	}
}

// copied stores a file in the memory of the next host.
func (k *cluster) copied(p *part, version int64, cut int) {
	f := p.file
	to := (k.host[p.rank] + 1) % len(k.memory.files)
	f.Rank, f.Version, f.Place, f.Failed = int32(slices.Index(k.host, to)), version, wire.InNeighbor, k.maybe(k.badMemory)
	if !f.Failed {
		k.store(to, version, &f, cut)
	}
	k.open--
	k.send(int(f.Rank), f)
}

func (k *cluster) store(host int, version int64, f *wire.FileSaved, cut int) {
	if k.memory.files[host][version] == nil {
		k.memory.files[host][version] = map[string]int{}
	}
	k.memory.files[host][version][fileText(f)] = cut
}

// send sends rank 0 the message that a file was written, after this rank's earlier messages.
func (k *cluster) send(rank int, f wire.FileSaved) {
	k.saved++
	k.inbox[rank] = append(k.inbox[rank], Event{Kind: Saved, File: f})
}

// finish gives the folder its name, with the files that the manifest lists.
func (k *cluster) finish(e Effect) {
	k.later(func() {
		if k.maybe(k.badDisk) {
			k.draft = nil
			k.step(Event{Kind: Finished, Problem: "no space"})
			return
		}
		if k.draft == nil {
			k.fail("whole: a checkpoint gets a name and has no folder")
			return
		}
		name := fmt.Sprintf("%05d", k.cut)
		k.named[name] = *k.draft
		k.draft = nil
		k.checkWhole(name, e.Files)
		k.step(Event{Kind: Finished, Folder: name})
	})
}

// checkWhole checks that a checkpoint with a name has all files, each complete, all of one cut, and that its manifest
// lists each once.
func (k *cluster) checkWhole(name string, listed []wire.FileSaved) {
	names := map[string]bool{}
	for i := range listed {
		names[fileText(&listed[i])] = true
	}
	cuts := map[int]bool{}
	for _, cut := range k.named[name] {
		cuts[cut] = true
	}
	if len(k.named[name]) != k.c.Files || len(names) != k.c.Files || len(listed) != k.c.Files || len(cuts) != 1 {
		k.fail("whole: checkpoint %s has %v, and its manifest %d files %v", name, k.named[name], len(listed), slices.Sorted(maps.Keys(names)))
	}
}

// tell tells a host of a replica. A complete replica has all files on two hosts, or on the only one.
func (k *cluster) tell(e Effect) {
	host := k.host[e.Host]
	if k.told[host][e.Version]++; k.told[host][e.Version] > 1 {
		k.fail("replicas: host %d was told of version %d %d times", host, e.Version, k.told[host][e.Version])
	}
	if e.Problem == "" {
		k.checkReplica(e.Version)
		k.memory.complete[host][e.Version] = true
		if k.old != nil {
			k.old.files[host], k.old.complete[host] = map[int64]map[string]int{}, map[int64]bool{}
		}
	}
	for v := range k.memory.files[host] { // earlier versions are removed, or this one
		if v < e.Version && e.Problem == "" || v == e.Version && e.Problem != "" {
			delete(k.memory.files[host], v)
			delete(k.memory.complete[host], v)
		}
	}
	k.later(func() {
		k.inbox[e.Host] = append(k.inbox[e.Host],
			Event{Kind: Saved, File: wire.FileSaved{Rank: e.Host, Place: wire.OnHost, Kind: wire.ManifestFile}})
	})
}

// checkReplica checks that a version of which a host was told that it is complete has all files when any one host is
// lost.
func (k *cluster) checkReplica(version int64) {
	for lost := -1; lost < len(k.memory.files); lost++ {
		if lost == 0 && len(k.memory.files) == 1 {
			continue
		}
		if there := k.memory.without(lost, version); len(there) != k.c.Files {
			k.fail("replicas: without host %d there are %d files of version %d, which is complete", lost, len(there), version)
		}
	}
}

// run runs the cluster to its end, or to a kill after so many steps; -1: no kill.
func (k *cluster) run(kill int) {
	overSaid := false
	for n := 0; len(k.problems) == 0 && !k.settled && n != kill; n++ {
		if n == k.stopsAt && !k.ending {
			k.ending = true
			why := ""
			if k.diverged = k.maybe(0.3); k.diverged {
				why = "diverged"
			}
			k.short = k.diverged || k.maybe(0.5)
			k.step(Event{Kind: Stop, Cut: k.short, Problem: why})
			if !k.paused {
				k.later(k.nodesDone)
			}
		}
		if n > 400 && !k.spent && !k.ending { // the budget is used up
			k.spent = true
			if !k.paused {
				k.later(k.nodesDone)
			}
		}
		var ready []int // ranks with a message in flight
		for rank, list := range k.inbox {
			if len(list) > 0 {
				ready = append(ready, rank)
			}
		}
		pick := k.rng.IntN(len(ready) + len(k.work) + 2)
		switch {
		case pick < len(ready):
			rank := ready[pick]
			e := k.inbox[rank][0]
			k.inbox[rank] = k.inbox[rank][1:]
			k.step(e)
		case pick < len(ready)+len(k.work):
			i := pick - len(ready)
			f := k.work[i]
			k.work = slices.Delete(k.work, i, i+1)
			f()
		case k.done && !overSaid && k.open == 0: // each rank has waited for its writes, and reports their number
			overSaid = true
			k.step(Event{Kind: Over, Told: k.saved})
		case !k.done:
			k.now += time.Duration(k.rng.IntN(3000)) * time.Millisecond
			k.version += int64(k.rng.IntN(3))
			k.step(Event{Kind: Tick, At: k.now, Version: k.version, Spent: k.spent})
		case overSaid && len(ready)+len(k.work) == 0:
			k.fail("waits: nothing is left to happen, and the run has not settled")
		}
		if n > 20000 {
			k.fail("waits: the run has not settled after %d steps", n)
		}
	}
}

// checkLeft checks that the files left by a kill are complete, whichever host is lost besides.
func (k *cluster) checkLeft() {
	hosts := len(k.memory.files)
	for lost := -1; lost < hosts && (lost < 0 || hosts > 1); lost++ {
		m := &k.memory
		newest, told := m.newest(lost)
		if !told && k.old != nil {
			m = k.old
			newest, told = m.newest(lost)
		}
		if m.lost > 1 || m.lost == 1 && lost >= 0 { // two hosts lost are too many
			continue
		}
		if there := m.without(lost, newest); told && len(there) != k.c.Files {
			k.fail("replicas: a kill without host %d left %d files of version %d, which was the newest that is complete", lost, len(there), newest)
		}
	}
	for name, files := range k.named {
		if len(files) != k.c.Files {
			k.fail("whole: a kill left checkpoint %s with %d of %d files", name, len(files), k.c.Files)
		}
	}
}

func tryClusters(seeds int, of func(Config) machine) (problem string, seed, made int) {
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 16))
		k := newCluster(rng, of)
		for starts := 0; ; starts++ {
			kill := -1
			if rng.IntN(3) == 0 && starts < 4 {
				kill = rng.IntN(500)
			}
			k.run(kill)
			if k.checkLeft(); len(k.problems) > 0 {
				return strings.Join(k.problems, "\n"), seed, made
			}
			if k.settled {
				break
			}
			k.restart(of)
		}
		made += len(k.named)
	}
	return "", -1, made
}

// In random clusters, with failing and slow writes, kills and stops: one checkpoint is made at a time; a checkpoint
// with a name is complete and of one cut; a replica that a host was told is complete survives the loss of any one host;
// nobody waits for ever; nothing is begun after a stop; and the coordinator says what its dumb twin says.
func TestRandomClusters(t *testing.T) {
	problem, seed, made := tryClusters(*clusters, func(Config) machine { return nil })
	if problem != "" {
		t.Fatalf("seed %d: %s", seed, problem)
	}
	if made < *clusters {
		t.Errorf("%d checkpoints in %d clusters: that tries too little", made, *clusters)
	}
	t.Logf("%d clusters, %d checkpoints", *clusters, made)
}

// faulty is a coordinator with a fault: it loses or changes events, or changes effects.
type faulty struct {
	*Coordinator
	hear func(e *Event) bool // false: the event is lost
	say  func(e Event, effects []Effect) []Effect
}

func (f *faulty) Step(e Event) []Effect {
	if f.hear != nil && !f.hear(&e) {
		return nil
	}
	effects := f.Coordinator.Step(e)
	if f.say != nil {
		return f.say(e, slices.Clone(effects))
	}
	return effects
}

// For each law there is a fault that breaks it, and the clusters find that fault without the twin.
func TestFaultsAreFound(t *testing.T) {
	hears := func(hear func(e *Event) bool) func(Config) machine {
		return func(c Config) machine { return &faulty{Coordinator: New(c, 0, 0), hear: hear} }
	}
	fails := func(place wire.FilePlace) func(Config) machine {
		return hears(func(e *Event) bool {
			if e.Kind == Saved && e.File.Place == place {
				e.File.Failed = false
			}
			return true
		})
	}
	for _, fault := range []struct {
		name, law string
		of        func(Config) machine
	}{
		{"begins while one is made", "one at a time", func(c Config) machine {
			busy := false
			return &faulty{Coordinator: New(c, 0, 0), say: func(e Event, out []Effect) []Effect {
				if e.Kind == Begun && e.Problem == "" {
					busy = true
				}
				if e.Kind == Tick && busy && len(out) == 0 {
					busy = false
					return []Effect{{Kind: Begin}}
				}
				return out
			}}
		}},
		{"does not wait for the last file", "whole", func(c Config) machine {
			c.Files, c.Hosts = c.Files-1, nil
			return New(c, 0, 0)
		}},
		{"takes a file that could not be written", "whole", fails(wire.InFolder)},
		{"takes a replica that could not be written", "replicas", fails(wire.InMemory)},
		{"takes a copy that could not be written", "replicas", fails(wire.InNeighbor)},
		{"does not wait for copies", "replicas", func(c Config) machine {
			c.Copies = false
			return New(c, 0, 0)
		}},
		{"tells a host twice", "replicas", func(c Config) machine {
			return &faulty{Coordinator: New(c, 0, 0), say: func(_ Event, out []Effect) []Effect {
				if i := slices.IndexFunc(out, func(e Effect) bool { return e.Kind == Tell }); i >= 0 {
					return append(out, out[i])
				}
				return out
			}}
		}},
		{"does not hear that a host has acknowledged", "waits",
			hears(func(e *Event) bool { return e.Kind != Saved || e.File.Place != wire.OnHost })},
		{"does not hear that a checkpoint was evaluated", "waits", hears(func(e *Event) bool { return e.Kind != Judged })},
		{"does not hear that it is over", "waits", hears(func(e *Event) bool { return e.Kind != Over })},
		{"settles without the files in flight", "settled", hears(func(e *Event) bool { e.Told = 0; return true })},
		{"resumes nodes in a run that was stopped", "pause", func(c Config) machine {
			f := &faulty{Coordinator: New(c, 0, 0)}
			f.hear = func(e *Event) bool { return e.Kind != Stop || !f.Pausing() }
			return f
		}},
		{"resumes nodes when the budget is used up", "pause", hears(func(e *Event) bool { e.Spent = false; return true })},
		{"leaves its last checkpoint unevaluated", "judged", func(c Config) machine {
			c.Judges = false
			return New(c, 0, 0)
		}},
		{"does not hear of a stop", "stop", func(c Config) machine {
			c.Pauses = false
			return &faulty{Coordinator: New(c, 0, 0), hear: func(e *Event) bool { return e.Kind != Stop }}
		}},
		{"does not hear that it has diverged", "diverged",
			hears(func(e *Event) bool { e.Problem = strings.TrimPrefix(e.Problem, "diverged"); return true })},
	} {
		problem, _, _ := tryClusters(2000, fault.of)
		if !strings.Contains(problem, fault.law+":") {
			t.Errorf("a coordinator that %s breaks the law %q, and was found out by %q", fault.name, fault.law, problem)
		}
	}
}
