// Package verify compares two runs that should be equal: it finds the first version and shard at which their parameters differ.
package verify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"fluentps/internal/core/digest"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
)

// Report is what two runs have in common, and where they differ.
type Report struct {
	Lines []string // for people, one a line
	// Compared counts the versions, checkpoints and final parameters that both runs have. Differ says that some of these differ.
	Compared int
	Differ   bool
	Damaged  int // files that cannot be read, and so were not compared
}

// run is one of the two runs that are compared.
type run struct {
	dir         string
	info        info
	summary     summary
	digests     map[digest.Key]uint32
	checkpoints map[point]string // folders
	values      map[string]string
	damage      []error // of files that cannot be read
}

type info struct {
	Start string `json:"start"`
	Hash  string `json:"config_sha256"`
	Data  string `json:"data_sha256"`
	Build string `json:"build"`
	Ranks []struct {
		KernelSet string `json:"kernel_set"`
	} `json:"ranks"`
}

type summary struct {
	Start      string `json:"start"`
	Parameters string `json:"parameters_sha256"`
	Shards     []struct {
		Shard  int32
		Name   string
		Server int
		Bytes  int64
	} `json:"per_shard"`
}

// point is where in training a checkpoint was made.
type point struct{ samples, iteration int64 }

// jsonMax bounds the JSON files that are read.
const jsonMax = 1 << 28

// Compare compares the runs in two folders.
func Compare(a, b string) (*Report, error) {
	one, err := open(a)
	if err != nil {
		return nil, err
	}
	two, err := open(b)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, damage := range slices.Concat(one.damage, two.damage) {
		r.damaged(damage)
	}
	r.origins(one, two)
	r.compareDigests(one, two)
	r.compareCheckpoints(one, two)
	r.compareEnds(one, two)
	return r, nil
}

func (r *Report) say(format string, args ...any) {
	r.Lines = append(r.Lines, foreign.Visible(fmt.Sprintf(format, args...)))
}

// damaged notes a file that cannot be compared.
func (r *Report) damaged(err error) {
	r.Damaged++
	r.say("DAMAGED, and left out: %v", err)
}

func open(dir string) (*run, error) {
	dir, err := metrics.FindRun(dir)
	if err != nil {
		return nil, err
	}
	r := &run{dir: dir, digests: map[digest.Key]uint32{}, checkpoints: map[point]string{}}
	if err := readJSON(filepath.Join(dir, metrics.RunInfoName), &r.info); err != nil {
		r.damage = append(r.damage, err)
	}
	if err := readJSON(filepath.Join(dir, metrics.SummaryName), &r.summary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.damage = append(r.damage, err)
	}
	if metrics.IsOfEarlier(r.summary.Start, r.info.Start) { // what the newest start ended with is not known
		r.summary = summary{}
	}
	names, err := filepath.Glob(filepath.Join(escaped(dir), "logs", "rank-*.digests"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := r.readDigests(name); err != nil {
			r.damage = append(r.damage, fmt.Errorf("%s: %w", name, err))
		}
	}
	r.findCheckpoints()
	return r, nil
}

// readDigests reads a file of checksums, up to its first line that no run writes.
func (r *run) readDigests(name string) error {
	file, err := durable.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return digest.Parse(r.digests, file, digest.LinesMax)
}

// escaped keeps filepath.Glob from reading a pattern into the name of a folder.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func (r *run) findCheckpoints() {
	all, err := checkpoint.List(filepath.Join(r.dir, checkpoint.Folder))
	if err != nil {
		r.damage = append(r.damage, err)
	}
	for _, dir := range all {
		m, err := checkpoint.Open(dir)
		if err != nil {
			r.damage = append(r.damage, err)
			continue
		}
		r.checkpoints[point{m.Samples, m.Iteration}] = dir
		if r.values == nil {
			r.values = m.Config
		}
	}
}

func readJSON(path string, into any) error {
	data, err := durable.ReadFile(path, jsonMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// origins says in what the runs are alike before they train.
func (r *Report) origins(a, b *run) {
	var differ []string
	if a.values != nil && b.values != nil { // only checkpoints have them
		differ = differing(a.values, b.values)
	}
	switch {
	case a.info.Hash == b.info.Hash:
		r.say("configuration: the same values")
	case len(differ) > 0:
		r.say("configuration: differs in %s", strings.Join(differ, ", "))
	default:
		r.say("configuration: differs; compare resolved.yaml of both")
	}
	same := func(what, x, y, of string) {
		if x == y {
			r.say("%s: the same", what)
		} else {
			r.say("%s: %s and %s%s", what, foreign.Text(x), foreign.Text(y), of)
		}
	}
	same("data", a.info.Data, b.info.Data, "")
	same("program", a.info.Build, b.info.Build, "")
	same("kernels", a.kernels(), b.kernels(), ": their last bits may differ")
}

// differing lists the keys whose values differ, at most a few, without those that change no parameter.
func differing(a, b map[string]string) (all []string) {
	const shown = 8
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for k := range keys {
		if a[k] != b[k] {
			all = append(all, fmt.Sprintf("%s (%s and %s)", k, value(a[k]), value(b[k])))
		}
	}
	slices.Sort(all)
	if n := len(all); n > shown {
		all = append(all[:shown], fmt.Sprintf("%d keys more", n-shown))
	}
	return all
}

func value(v string) string {
	if v == "" {
		return "none"
	}
	return foreign.Text(v)
}

func (r *run) kernels() string {
	var all []string
	for _, rank := range r.info.Ranks {
		if rank.KernelSet != "" {
			all = append(all, rank.KernelSet)
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " + ")
}

// shardName says which shard an ID stands for.
func (r *run) shardName(id int32) string {
	for _, sh := range r.summary.Shards {
		if sh.Shard == id {
			return fmt.Sprintf("shard %d (%s of s%d)", id, foreign.Text(sh.Name), sh.Server)
		}
	}
	return fmt.Sprintf("shard %d", id)
}

// compareDigests finds the first version of a shard that differs.
func (r *Report) compareDigests(a, b *run) {
	if len(a.digests) == 0 || len(b.digests) == 0 {
		r.say("versions: not compared, because %s checksums; with metrics.digests: 1 in both runs each version of each "+
			"shard is compared", missing(len(a.digests) == 0, len(b.digests) == 0))
		return
	}
	if len(a.summary.Shards) > 0 && len(b.summary.Shards) > 0 && fmt.Sprint(a.summary.Shards) != fmt.Sprint(b.summary.Shards) {
		r.say("versions: not compared, because the shards differ: %s and %s", metrics.Count(len(a.summary.Shards), "shard"),
			metrics.Count(len(b.summary.Shards), "shard"))
		return
	}
	var common []digest.Key
	for key := range a.digests {
		if _, there := b.digests[key]; there {
			common = append(common, key)
		}
	}
	slices.SortFunc(common, func(x, y digest.Key) int {
		return cmp.Or(cmp.Compare(x.Version, y.Version), cmp.Compare(x.Shard, y.Shard))
	})
	r.Compared += len(common)
	var differ []digest.Key
	for _, key := range common {
		if a.digests[key] != b.digests[key] && (len(differ) == 0 || key.Version == differ[0].Version) {
			differ = append(differ, key)
		}
	}
	switch n := len(differ); {
	case len(common) == 0:
		r.say("versions: not compared, because no version has a checksum in both runs")
	case n == 0:
		r.say("versions: equal, %s that both runs have, up to version %d", metrics.Count(len(common), "checksum"), common[len(common)-1].Version)
	default:
		r.Differ = true
		text := ""
		if n > 1 {
			text = fmt.Sprintf(" and in %s more", metrics.Count(n-1, "shard"))
		}
		r.say("versions: DIFFER first in version %d, in %s%s%s", differ[0].Version, a.shardName(differ[0].Shard), text,
			before(common[0].Version < differ[0].Version))
	}
}

// before says how it was before the first difference.
func before(some bool) string {
	if some {
		return "; all before are equal"
	}
	return "; none before was compared"
}

func missing(a, b bool) string {
	switch {
	case a && b:
		return "neither run has"
	case a:
		return "the first run has no"
	}
	return "the second run has no"
}

// compareEnds compares the parameters that the runs ended with.
func (r *Report) compareEnds(a, b *run) {
	x, y := a.summary.Parameters, b.summary.Parameters
	switch {
	case x == "" || y == "":
		r.say("parameters at the end: not compared, because %s checksums of them in a summary", missing(x == "", y == ""))
		return
	case x == y:
		r.say("parameters at the end: equal, sha256 %.12s", x)
	default:
		r.Differ = true
		r.say("parameters at the end: DIFFER, sha256 %.12s and %.12s", x, y)
	}
	r.Compared++
}
