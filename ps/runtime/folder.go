package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fluentps/configs"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
)

// rankInfo is one row of run.json's rank map.
type rankInfo struct {
	Rank int    `json:"rank"`
	Role string `json:"role"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Device is what it computes on, left out of a rank that does not.
	Device string `json:"device,omitempty"`
	// KernelSet is what decides the bits of what it computes.
	KernelSet string `json:"kernel_set,omitempty"`
	// CUDAAware says whether MPI reaches the memory of its GPU: yes, or why not.
	CUDAAware string `json:"cuda_aware_mpi,omitempty"`
}

func (r *rank) rankMap() []rankInfo {
	all := make([]rankInfo, len(r.hosts))
	for i := range all {
		all[i] = rankInfo{Rank: i, Role: r.roles.Name(i), Host: r.hosts[i], PID: r.pids[i], Device: r.units[i].Name, KernelSet: r.units[i].KernelSet, CUDAAware: r.units[i].CUDAAware}
	}
	return all
}

// writeStart writes what is known before training: a job that dies leaves it for whoever asks why.
func (r *rank) writeStart(f *metrics.RunFolder) error {
	for _, name := range slices.Sorted(maps.Keys(r.o.Files)) {
		if err := f.Write(name, r.o.Files[name]); err != nil {
			return err
		}
	}
	if err := f.Write("plan.txt", []byte(layout.Text(r.cfg, r.plan, r.roles, r.hosts, r.set))); err != nil {
		return err
	}
	info := map[string]any{"ranks": r.rankMap(), "data_sha256": r.set.SHA256(), "mode": r.o.Mode, "build": r.o.Build, "config_sha256": r.o.Hash}
	maps.Copy(info, r.o.RunInfo)
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return fmt.Errorf("run.json: %w", err)
	}
	return f.Write("run.json", append(text, '\n'))
}

// open starts the output of rank 0: the echo of the input, and the metrics files.
func (l *lead) open() error {
	r := l.r
	var b strings.Builder
	const shown = 16
	for i, q := range r.rankMap() {
		if i == shown {
			fmt.Fprintf(&b, "  ... and %d more, see run.json\n", len(r.hosts)-shown)
			break
		}
		fmt.Fprintf(&b, "  rank %-4d %-8s host %s pid %d", q.Rank, q.Role, q.Host, q.PID)
		if r.units[i].ID != "" {
			fmt.Fprintf(&b, " on %s", q.Device)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Plan: %s, %s, %s, %s", metrics.Count(len(r.roles.Servers), "server"), metrics.Count(len(r.roles.Workers), "worker"), metrics.Count(len(r.plan.Shards), "shard"), metrics.Count(r.plan.Arena, "parameter"))
	if r.cfg.Baseline != configs.BaselineNone {
		fmt.Fprintf(&b, "; baseline %s", metrics.BaselineText(r.cfg.Baseline, r.cfg.BaselineKeys))
	}
	fmt.Fprintf(&b, "; data %s: %d training rows, %d test rows\n", r.cfg.Data.Set, r.set.Train.Rows(), r.set.Test.Rows())
	if r.from != nil {
		if other := otherKernels(setsOf(r.from.manifest), kernelSets(r.units)); other != "" {
			fmt.Fprintf(&b, "WARNING: %s\n", other)
		}
	}
	for _, w := range slices.Concat(layout.Warnings(r.cfg, r.plan, r.roles), layout.ReplicaWarnings(r.cfg, r.hosts), unitWarnings(r.units, r.hosts)) {
		fmt.Fprintf(&b, "WARNING: %s\n", w)
	}
	if r.dir != "" {
		fmt.Fprintf(&b, "Run folder: %s\n", r.dir)
		if r.from != nil {
			b.WriteString(r.from.text())
		}
		sinks, err := r.openSinks()
		if err != nil {
			return err
		}
		l.sinks = sinks
	}
	l.say(b.String() + "\n")
	if r.cfg.Evaluate.Where == "online" && r.set.Test.Rows() > 0 {
		e, err := newEvaluator(r)
		if err != nil {
			return err
		}
		l.online = &online{l: l, e: e}
	}
	return nil
}

// writeEnd prints the breakdown and writes the summaries, each whole or not at all.
func (r *rank) writeEnd(s *metrics.Summary) error {
	var text strings.Builder
	if r.lead.saved != "" {
		fmt.Fprintf(&text, "Checkpoint: %s\n", r.lead.saved)
		if s.Finished != metrics.FinishedOK {
			fmt.Fprintf(&text, "  to go on from it: the same command with --resume %s, without --out\n", r.dir)
		}
	}
	if err := metrics.WriteText(&text, s, metrics.TextWidth); err != nil {
		return err
	}
	r.lead.say("\n" + text.String())
	if r.dir == "" {
		return nil
	}
	f := r.folder
	lacks := errors.Join(f.Write("summary.txt", []byte(text.String())), f.Write("histograms.csv", s.HistogramsCSV()))
	if lacks != nil && s.Finished == metrics.FinishedOK {
		s.Finished = "failed: " + lacks.Error()
	}
	data, err := s.JSON()
	if err != nil {
		return err
	}
	return errors.Join(lacks, f.Write(summaryName, data))
}

// summaryName is the file that is written last: it says whether a run has finished.
const summaryName = "summary.json"

// unfinish takes back what the part of the run before this one said at its end.
func (r *rank) unfinish() error {
	if r.me != 0 || r.from == nil && !r.again {
		return nil
	}
	return r.folder.Remove(summaryName)
}

// openFolder lets rank 0 make the run folder, and every rank its log in it.
func (r *rank) openFolder() error {
	var problem error
	if r.me == 0 && r.o.Folder != nil {
		f, err := r.takeFolder()
		if err != nil {
			problem = err
		} else {
			r.dir, r.folder = f.Dir, f
			for _, w := range f.Warnings {
				r.log.Warn(w)
			}
			problem = r.lockFolder()
		}
		if problem == nil {
			problem = r.writeStart(f) // of a run that goes on: its checkpoints have the values of then
		}
	}
	made := struct{ Dir, Problem string }{Dir: r.dir}
	if problem != nil {
		made.Problem = problem.Error()
	}
	if err := link.Spread(r.net, &made); err != nil {
		return err
	}
	if made.Problem != "" {
		return usage("%s", made.Problem)
	}
	r.dir = made.Dir
	role := r.roles.Name(r.me)
	spec := metrics.LogSpec{Rank: r.me, Role: role, Tag: role, Host: r.o.Host, Level: r.o.LogLevel, Stderr: r.o.Warn}
	if r.dir != "" {
		if r.folder == nil {
			r.folder = metrics.At(r.dir)
		}
		file, err := r.folder.OpenLog(r.me)
		if err != nil { // a host that does not share the file system trains all the same
			r.log.Warn("no log file on this rank", "error", err)
		} else {
			r.file, spec.File = file, file
		}
	}
	r.log = metrics.NewLogger(spec)
	r.known()
	r.log.Info("start", "pid", r.o.PID, "servers", len(r.roles.Servers), "workers", len(r.roles.Workers), "shards", len(r.plan.Shards))
	return nil
}
