package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/params"
	"fluentps/ps/workload"
)

// exported writes the newest checkpoint of a run to a file, and gives what it holds and the sha256 of its parameters.
func exported(t testing.TB, run, out string, optimizer bool) (text []byte, sha string) {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(run, checkpoint.Folder))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	from, err := checkpoint.OpenTensors(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, sha, err = params.Export(from, out, optimizer); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	return text, sha
}

// still is a learning rate so small that a step changes no parameter, so that nothing but statistics moves.
const still = "train.optimizer={name: sgd, lr: 1.2e-38}"

// Parameters go out and come back to the bit: onto other servers, another slicing and placement, the ranks of allreduce; of
// every kind of model, with statistics and with rows.
func TestParametersGoOutAndComeBackToTheBit(t *testing.T) {
	mlp := []string{"model={name: mlp, layers: [16, 7]}"}
	images := []string{"data={set: generated, rows: 480, test_rows: 20, image: [1, 28, 28], classes: 3}",
		"model={name: lenet}", "train.batch_per_worker=2", "evaluate.every_epochs=0"}
	ratings := []string{"data={set: generated_ratings, rows: 480}", "model={name: matrix_factorization}", "evaluate.every_epochs=0"}
	for name, c := range map[string]struct {
		model  []string
		ranks  int
		second []string
	}{
		"5 servers":        {mlp, 9, []string{"cluster.servers=5"}},
		"slices":           {mlp, 9, []string{"cluster.servers=5", "shards={slice: slices, max_bytes: 64B}"}},
		"1 server, layers": {mlp, 5, []string{"cluster.servers=1", "shards.slice=layer"}},
		"colocate":         {mlp, 3, []string{"cluster={servers: 3, placement: colocate}"}},
		"mixed":            {mlp, 5, []string{"cluster.placement=mixed"}},
		"two groups":       {mlp, 7, []string{"cluster.servers=3", `sync=[{match: "*.bias", scheme: ssp}, {match: "*", scheme: asp}]`}},
		"copies":           {mlp, 6, []string{`sync=[{match: "*", scheme: ssp, staleness: 3, cache: true, push: delta}]`}},
		"allreduce":        {mlp, 4, []string{"baseline=allreduce", "checkpoint.keep=0"}},
		"lenet":            {images, 9, []string{"cluster.servers=5"}},
		"ratings":          {ratings, 7, []string{"cluster.servers=3"}},
	} {
		if underRace && name == "lenet" { // see runsInRaceMode
			continue
		}
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			first := filepath.Join(tmp, "first")
			want := mustRunPart(t, load(t, append([]string{"train.stop={updates: 5}"}, c.model...)...), 6, first, "").Summary.ParametersSHA256
			text, sha := exported(t, first, filepath.Join(tmp, "out.npz"), false)
			if sha != want {
				t.Fatalf("sha256 %s, and that of the summary is %s", sha, want)
			}
			for _, form := range params.Forms() {
				path, second := filepath.Join(tmp, "init"+form), filepath.Join(tmp, "second"+form)
				exported(t, first, path, false)
				set := slices.Concat([]string{"train.stop={updates: 2}", still}, c.model, c.second, []string{"model.init=" + path})
				if got := mustRunPart(t, load(t, set...), c.ranks, second, "").Summary.ParametersSHA256; got != want {
					t.Errorf("%s: sha256 %s, want %s", form, got, want)
				}
				if name == "allreduce" { // which leaves no checkpoint
					continue
				}
				if again, _ := exported(t, second, filepath.Join(tmp, "again.npz"), false); !bytes.Equal(text, again) {
					t.Errorf("%s: the file that the second run exports is another", form)
				}
			}
		})
	}
}

// A run that begins with a file trains to the same bits on any number of servers, statistics included, and to others than one that
// begins with the seed.
func TestTrainingFromAFileIsTheSameOnAnyServers(t *testing.T) {
	model := []string{"model={name: mlp, layers: [16, 7]}"}
	if !underRace { // see runsInRaceMode
		model = []string{"data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}",
			"model={name: resnet20}", "train.batch_per_worker=2", "evaluate.every_epochs=0"}
	}
	dir := filepath.Join(t.TempDir(), "out")
	path := filepath.Join(t.TempDir(), "init.safetensors")
	mustRunPart(t, load(t, slices.Concat(model, []string{"train.stop={updates: 3}"})...), 6, dir, "")
	exported(t, dir, path, false)
	stop := []string{"train.stop={updates: 4}"}
	seeded := mustTrain(t, load(t, slices.Concat(model, stop)...), 6).Summary.ParametersSHA256
	want := mustTrain(t, load(t, slices.Concat(model, stop, []string{"model.init=" + path})...), 6).Summary.ParametersSHA256
	if got := mustTrain(t,
		load(t, slices.Concat(model, stop, []string{"model.init=" + path, "cluster.servers=5", "shards.slice=range"})...),
		9).Summary.ParametersSHA256; got != want || got == seeded {
		t.Errorf("sha256 %s on 5 servers, %s on 2, %s from the seed", got, want, seeded)
	}
}

// A file that does not fit is refused with the same words and code on all ranks, before there is a run folder.
func TestAFileThatDoesNotFitIsRefusedOnAllRanks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	path := filepath.Join(t.TempDir(), "init.npz")
	mustRunPart(t, load(t, "model={name: mlp, layers: [16]}", "train.stop={updates: 1}"), 6, dir, "")
	exported(t, dir, path, false)
	for _, set := range [][]string{
		{"model={name: mlp, layers: [17]}", "model.init=" + path},
		{"model={name: mlp, layers: [17]}", "model.init=" + path, "baseline=allreduce"},
		{"model={name: mlp, layers: [16]}", "model.init=" + path + ".none.npz"},
	} {
		for _, resume := range []string{"", "auto"} {
			other := filepath.Join(t.TempDir(), "other")
			_, errs := runPart(t, load(t, set...), 6, other, resume, nil)
			for rank, err := range errs {
				var agreed *ExitError
				if !errors.As(err, &agreed) || agreed.Code != CodeUsage || agreed.Text != errs[0].Error() ||
					!strings.HasPrefix(agreed.Text, "model.init: ") {
					t.Fatalf("rank %d: %v; rank 0: %v", rank, err, errs[0])
				}
			}
			if _, err := os.Stat(other); resume == "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a run folder: %v", err)
			}
		}
	}
}

// Hosts that see unlike files under one name do not train: every rank says so, with the same code.
func TestRanksThatSeeUnlikeFilesAreRefused(t *testing.T) {
	tmp := t.TempDir()
	var paths []string
	for _, updates := range []string{"1", "2"} {
		dir, path := filepath.Join(tmp, updates), filepath.Join(tmp, updates+".npz")
		mustRunPart(t, load(t, "train.stop={updates: "+updates+"}"), 6, dir, "")
		exported(t, dir, path, false)
		paths = append(paths, path)
	}
	for _, set := range []string{"baseline=none", "baseline=allreduce"} {
		_, errs := runPart(t, load(t, set, "model.init="+paths[0]), 6, filepath.Join(tmp, "out"), "", func(o *Options) {
			if o.Transport.Rank() == 1 {
				o.testing.initFile = func(string) string { return paths[1] }
			}
		})
		for rank, err := range errs {
			var agreed *ExitError
			if !errors.As(err, &agreed) || agreed.Code != CodeUsage || !strings.Contains(agreed.Text, "put the same file on all hosts") {
				t.Errorf("%s: rank %d: %v", set, rank, err)
			}
		}
	}
}

// A run goes on from its checkpoint and not from the file, which may be gone, or another by then.
func TestTheCheckpointWinsOverTheFile(t *testing.T) {
	tmp := t.TempDir()
	first, second, path := filepath.Join(tmp, "first"), filepath.Join(tmp, "second"), filepath.Join(tmp, "init.npz")
	mustRunPart(t, load(t, "train.stop={updates: 3}"), 6, first, "")
	exported(t, first, path, false)
	want := mustTrain(t, load(t, "train.stop={updates: 12}", "model.init="+path), 6).Summary.ParametersSHA256
	mustRunPart(t, load(t, "train.stop={updates: 7}", "model.init="+path), 6, second, "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  []string
		says bool
	}{{[]string{"model.init=" + path}, false}, {[]string{"model.init=" + path + ".other.npz"}, true}, {nil, false}} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := os.CopyFS(dir, os.DirFS(second)); err != nil {
			t.Fatal(err)
		}
		var warn lines
		res, errs := runPart(t, load(t, append([]string{"train.stop={updates: 12}"}, c.set...)...), 6, dir, dir,
			func(o *Options) { o.Warn = &warn })
		if s := mustAgree(t, CodeOK, res, errs).Summary; s.ParametersSHA256 != want || s.Resumed.Iteration != 7 {
			t.Errorf("%q: resumed at %+v to sha256 %s, want %s", c.set, s.Resumed, s.ParametersSHA256, want)
		}
		if says := strings.Contains(warn.String(), "model.init has no effect"); says != c.says {
			t.Errorf("%q: %s", c.set, warn.String())
		}
	}
}

// A checkpoint of the first format is resumed to the bits of one of this, stays in its format, and is not exported.
func TestACheckpointOfTheFirstFormatIsResumed(t *testing.T) {
	want := mustTrain(t, load(t, "train.stop={updates: 12}"), 6).Summary.ParametersSHA256
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={updates: 5}"), 6, dir, "")
	at := filepath.Join(dir, checkpoint.Folder, "000000000001")
	m, err := checkpoint.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	m.Format, m.Parameters, m.Optimizer = checkpoint.FormatLined, nil, nil
	in := durable.Below(at)
	if err := errors.Join(checkpoint.Amend(in, m), in.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(at, "manifest.json"))
	if err != nil || !bytes.Contains(text, []byte("}\ncrc32c ")) {
		t.Fatalf("%s, %v", text, err)
	}
	if _, err := checkpoint.OpenTensors(at); err == nil || !strings.Contains(err.Error(), "an earlier version of the program wrote it") {
		t.Error(err)
	}
	if s := mustRunPart(t, load(t, "train.stop={updates: 12}"), 6, dir, dir).Summary; s.ParametersSHA256 != want || s.Resumed.Iteration != 5 {
		t.Errorf("resumed at %+v to sha256 %s, want %s", s.Resumed, s.ParametersSHA256, want)
	}
	if _, sha := exported(t, dir, filepath.Join(t.TempDir(), "out.npz"), false); sha != want {
		t.Errorf("exported %s, want %s", sha, want)
	}
}

// The places in a manifest are those of the parameters and of the optimizer, however they were cut.
func TestAManifestSaysWhereEachParameterLies(t *testing.T) {
	model := []string{"model={name: mlp, layers: [16, 7]}", "train.optimizer={name: adam, lr: 0.01}", "train.stop={updates: 8}"}
	tmp := t.TempDir()
	whole := filepath.Join(tmp, "whole")
	mustRunPart(t, load(t, append(model, "cluster.servers=1", "shards.slice=layer")...), 5, whole, "")
	want, sha := exported(t, whole, filepath.Join(tmp, "whole.npz"), true)
	for name, set := range map[string][]string{
		"even":   nil,
		"slices": {"shards={slice: slices, max_bytes: 64B}"},
		"range":  {"shards.slice=range"},
		"groups": {`sync=[{match: "*.bias", scheme: bsp}, {match: "fc2.*", scheme: bsp, servers: [1]}, {match: "*", scheme: bsp}]`},
		"ssp":    {`sync=[{match: "*", scheme: ssp, staleness: 0, fold: rank}]`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			got := mustRunPart(t, load(t, append(model, set...)...), 6, dir, "").Summary.ParametersSHA256
			text, other := exported(t, dir, filepath.Join(t.TempDir(), "out.npz"), true)
			if got != other {
				t.Errorf("sha256 %s, and that of the summary is %s", other, got)
			}
			if !bytes.Equal(text, want) || got != sha {
				t.Errorf("the file is another than that of one server")
			}
		})
	}
}

// The same of a checkpoint that is written while training goes on.
func TestAManifestOfTheWaySaysWhereEachParameterLies(t *testing.T) {
	const updates = 300
	set := func(updates int) []string {
		return []string{"model={name: mlp, layers: [16, 7]}", "shards={slice: slices, max_bytes: 100B}",
			fmt.Sprintf("train.stop={updates: %d}", updates)}
	}
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, append(set(updates), "checkpoint={every_updates: 20, keep: 99}")...), 6, dir, "")
	first := filepath.Join(dir, checkpoint.Folder, "000000000001")
	from, err := checkpoint.OpenTensors(first)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	at := int(from.Manifest.Iteration)
	if _, sha, err := params.Export(from, filepath.Join(t.TempDir(), "out.npz"), true); err != nil || at >= updates ||
		sha != mustTrain(t, load(t, set(at)...), 6).Summary.ParametersSHA256 {
		t.Errorf("at iteration %d sha256 %s, %v; that of a run up to there is another", at, sha, err)
	}
}

// After one step from zero the velocity of momentum is the gradient: w' = w - lr*v, element by element.
func TestTheStateOfTheOptimizerIsThatOfItsParameter(t *testing.T) {
	c := load(t, "model={name: mlp, layers: [16]}", "train.stop={updates: 1}", "shards={slice: slices, max_bytes: 64B}")
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, c, 6, dir, "")
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	a, err := layout.Architecture(c, set)
	if err != nil {
		t.Fatal(err)
	}
	path, all := filepath.Join(t.TempDir(), "out.npz"), params.Of(a.Params())
	exported(t, dir, path, true)
	for _, p := range a.Params() {
		all = append(all, params.Tensor{Name: "optimizer.velocity." + p.Name, Shape: p.Shape})
	}
	file, err := params.OpenInitial(path, all)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	moved := 0
	for k, p := range a.Params() {
		before, after, velocity := make([]float32, p.N()), make([]float32, p.N()), make([]float32, p.N())
		workload.Fill(before, c.Seed, p, 0)
		if err := errors.Join(file.Fill(after, k, 0), file.Fill(velocity, len(all)/2+k, 0)); err != nil {
			t.Fatal(err)
		}
		for i := range before {
			if want := before[i] - float32(c.Train.Optimizer.LR)*velocity[i]; math.Abs(float64(want-after[i])) > 1e-6 {
				t.Fatalf("%s[%d]: %v from %v with velocity %v", p.Name, i, after[i], before[i], velocity[i])
			}
			if velocity[i] != 0 {
				moved++
			}
		}
	}
	if moved < 100 {
		t.Errorf("%d elements have moved", moved)
	}
}

// An mlp that was exported, in float64 and with the axes that the page of the format tells, is right for as many rows as the
// summary says.
func TestAnExportedMLPIsRightForAsManyRows(t *testing.T) {
	c := load(t, "model={name: mlp, layers: [16, 7]}")
	dir := filepath.Join(t.TempDir(), "out")
	res := mustRunPart(t, c, 6, dir, "")
	path := filepath.Join(t.TempDir(), "out.npz")
	exported(t, dir, path, false)
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	widths := []int{set.Train.Cols(), 16, 7, 4}
	var model []params.Tensor
	for l := range 3 {
		name := fmt.Sprintf("fc%d", l+1)
		model = append(model, params.Tensor{Name: name + ".weight", Shape: []int{widths[l+1], widths[l]}},
			params.Tensor{Name: name + ".bias", Shape: []int{widths[l+1]}})
	}
	file, err := params.OpenInitial(path, model)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	right := 0
	x, y := make([]float32, widths[0]), make([]int32, 1)
	for row := range set.Test.Rows() {
		set.Test.Fill(x, y, []int32{int32(row)})
		in := make([]float64, len(x))
		for i, v := range x {
			in[i] = float64(v)
		}
		for l := range 3 {
			w, b := make([]float32, widths[l]*widths[l+1]), make([]float32, widths[l+1])
			if err := errors.Join(file.Fill(w, 2*l, 0), file.Fill(b, 2*l+1, 0)); err != nil {
				t.Fatal(err)
			}
			out := make([]float64, len(b))
			for o := range out {
				out[o] = float64(b[o])
				for i := range in {
					out[o] += float64(w[o*len(in)+i]) * in[i]
				}
				if l < 2 {
					out[o] = max(0, out[o])
				}
			}
			in = out
		}
		if slices.Index(in, slices.Max(in)) == int(y[0]) {
			right++
		}
	}
	if want := int(math.Round(float64(*res.Summary.TestAccuracy) * float64(set.Test.Rows()))); right != want {
		t.Errorf("%d of %d rows are right, and the summary says %d", right, set.Test.Rows(), want)
	}
}

// The reader on the page of the format is Python of at most 25 lines that reads a real checkpoint with the standard library.
func TestTheReaderOfThePageReadsACheckpoint(t *testing.T) {
	page, err := os.ReadFile("../../disk/checkpoint/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```python\n")
	code, _, found := strings.Cut(code, "```\n")
	if n := strings.Count(code, "\n"); !found || n > 25 {
		t.Fatalf("the reader has %d lines", n)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	dir := filepath.Join(t.TempDir(), "out")
	s := mustRunPart(t, load(t, "model={name: mlp, layers: [16, 7]}", "shards={slice: slices, max_bytes: 64B}"), 6, dir, "").Summary
	folder := filepath.Join(dir, checkpoint.Folder, "000000000001")
	sums, err := exec.Command(python, "-c", code, folder).CombinedOutput()
	if err != nil || !strings.Contains(string(sums), "fc1.weight [16, 20] ") || strings.Count(string(sums), "\n") != 6 {
		t.Errorf("%s%v", sums, err)
	}
	code = strings.Replace(code, `__name__ == "__main__"`, "False", 1) + `
import hashlib
sha = hashlib.sha256()
for name, (shape, elements) in read(sys.argv[1]).items():
    size = 1
    for d in shape:
        size *= d
    assert size == len(elements), name
    sha.update(elements.tobytes())
print(sha.hexdigest(), list(read(sys.argv[1], "optimizer"))[0])
`
	out, err := exec.Command(python, "-c", code, folder).CombinedOutput()
	if want := s.ParametersSHA256 + " optimizer.velocity.fc1.weight\n"; err != nil || string(out) != want {
		t.Errorf("%s%v, want %s", out, err, want)
	}
}
