package mutations

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// experiment is the configuration of the checkpoints: a few iterations on a few numbers.
const experiment = `
name: test
seed: 11
cluster: {servers: 2, memory_max: 80MiB}
data: {set: generated, rows: 96, test_rows: 10, features: 6, classes: 3}
model: {name: mlp, layers: [5]}
shards: {slice: layer}
train:
  batch_per_worker: 4
  optimizer: {name: adam, lr: 0.01}
  stop: {updates: 12}
evaluate: {every_epochs: 1, where: after}
checkpoint: {keep: 1}
sync:
  - {match: "*", scheme: bsp}
`

// train runs ranks as goroutines. The report of a bug is an error.
func train(set []string, n int, dir, resume string, allowed ...string) (sum, said string, err error) {
	c, _, diags := configs.Parse("test.yaml", []byte(experiment), configs.Options{Set: set})
	if diags.Failed() {
		return "", "", fmt.Errorf("bug: %v", diags)
	}
	var mu sync.Mutex
	var warn strings.Builder
	ts := inproc.New(n, inproc.Options{PoolMax: 256 << 20})
	res, errs := make([]runtime.Result, n), make([]error, n)
	var all sync.WaitGroup
	for i, tr := range ts {
		o := runtime.Options{Config: c, Hash: "h", Build: "test", Mode: "local", Host: "here", PID: i, Transport: tr,
			Lead: runtime.LeadOptions{Out: io.Discard}, Resume: resume, AllowChanged: allowed,
			NewDevice: func() (kernels.Device, error) { return cpu.New(1), nil }, Warn: writer(func(p []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				return warn.Write(p)
			})}
		if i == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
		all.Go(func() {
			res[i], errs[i] = runtime.Run(o)
			var agreed *runtime.ExitError
			if errs[i] != nil && !errors.As(errs[i], &agreed) {
				tr.Abort(runtime.CodeFailed)
			}
			errs[i] = errors.Join(errs[i], tr.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", warn.String(), err
	}
	for i := range res {
		if res[i].Code != res[0].Code {
			return "", "", fmt.Errorf("bug: rank 0 leaves with %d, rank %d with %d", res[0].Code, i, res[i].Code)
		}
	}
	if res[0].Code != runtime.CodeOK {
		return "", warn.String(), fmt.Errorf("code %d: %s", res[0].Code, warn.String())
	}
	return res[0].Summary.ParametersSHA256, warn.String(), nil
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// checkpointReader resumes from the checkpoint of a run with the settings was. The resumed run has the settings now.
func checkpointReader(t testing.TB, name string, share, ranks int, was, now []string, allowed ...string) *reader {
	dir := filepath.Join(t.TempDir(), "out")
	if _, _, err := train(append(was, "train.stop.updates=6"), 4, dir, ""); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, checkpoint.Folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(root, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &reader{name: name, share: share, files: files, change: changeCheckpoint, read: func(dir string) (string, string, error) {
		only := filepath.Join(dir, checkpoint.Folder, "000000000001")
		return train(append(now, "checkpoint.keep=0"), ranks, dir, only, allowed...)
	}}
}

func checkpointReaders(t testing.TB) []*reader {
	dssp := []string{"sync=[{match: '*', scheme: dssp, s_l: 1, s_u: 4}]", "train.optimizer={name: momentum, lr: 0.05}"}
	topk := []string{"payload={push: topk, ratio: 0.3}"}
	asynchronous := checkpointReader(t, "checkpoint, dssp", 5, 4, dssp, dssp)
	asynchronous.varies = true
	return []*reader{
		asynchronous,
		checkpointReader(t, "checkpoint, bsp and adam", 10, 4, nil, nil),
		checkpointReader(t, "checkpoint, topk, other servers", 5, 3, topk, append(topk, "cluster.servers=1"), "cluster.servers"),
		checkpointReader(t, "checkpoint, topk, other workers", 5, 5, topk, append(topk, "cluster.servers=2"), "workers"),
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	folder   = checkpoint.Folder + "/000000000001/"
	manifest = folder + "manifest.json"
)

// changeCheckpoint changes any file without updating checksums, or changes a field or a number and makes all checksums valid again.
func changeCheckpoint(r *rand.Rand, files map[string][]byte) (kind string) {
	names := slices.Sorted(maps.Keys(files))
	name := names[r.IntN(len(names))]
	what := "server"
	switch {
	case name == manifest:
		what = "manifest"
	case strings.Contains(name, "worker"):
		what = "worker"
	}
	if r.IntN(4) == 0 {
		c := changes[r.IntN(len(changes))]
		files[name] = c.to(r, files[name])
		return what + ": " + c.name
	}
	if name == manifest {
		body := unsealed(files[name])
		if r.IntN(2) == 0 { // else most changes are of the list, which is long
			body = edited(body, dropLists)
		}
		body, kind := changeJSON(r, body)
		files[name] = checkpoint.Seal(body, checkpoint.Format)
		return what + ", sealed: " + kind
	}
	data := files[name]
	n := binary.LittleEndian.Uint32(data[12:])
	text, vectors := data[16:16+n], bytes.Clone(data[16+n:])
	switch k := r.IntN(6); {
	case k == 0 && len(vectors) > 0:
		x := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat32, 1e-45, 0}[r.IntN(7)]
		kind = fmt.Sprintf("an element %v", float32(x))
		binary.LittleEndian.PutUint32(vectors[4*r.IntN(len(vectors)/4):], math.Float32bits(float32(x)))
	case k == 1:
		kind = "vectors of other bytes"
		c := changes[r.IntN(len(changes))]
		vectors = c.to(r, vectors)
	case k == 2:
		kind = "another's file"
		data = files[names[r.IntN(len(names)-1)+1]] // not the manifest, which is the first
		n = binary.LittleEndian.Uint32(data[12:])
		text, vectors = data[16:16+n], data[16+n:]
	default:
		text, kind = changeJSON(r, text)
	}
	head := binary.LittleEndian.AppendUint32(bytes.Clone(data[:12]), uint32(len(text)))
	files[name] = joined(head, text, vectors)
	reseal(files, name)
	return what + ", sealed: " + kind
}

// unsealed is the JSON of a manifest without its last member, the checksum.
func unsealed(text []byte) []byte {
	return append(bytes.Clone(text[:bytes.LastIndex(text, []byte(",\n  \"crc32c\": "))]), "\n}\n"...)
}

// edited is a JSON object with another content.
func edited(text []byte, change func(m map[string]any)) []byte {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&m)
	if err == nil {
		change(m)
		text, err = json.Marshal(m)
	}
	if err != nil {
		panic(err)
	}
	return text
}

// dropLists takes the places of parameters out of a manifest.
func dropLists(m map[string]any) {
	delete(m, "parameters")
	delete(m, "optimizer")
}

// reseal notes the sum and the length of a file in the manifest. Its parameters may lie elsewhere now.
func reseal(files map[string][]byte, name string) {
	body := edited(unsealed(files[manifest]), func(m map[string]any) {
		dropLists(m)
		for _, f := range m["files"].([]any) {
			if e := f.(map[string]any); e["name"] == strings.TrimPrefix(name, folder) {
				e["bytes"], e["crc32c"] = len(files[name]), crc32.Checksum(files[name], castagnoli)
			}
		}
	})
	files[manifest] = checkpoint.Seal(body, checkpoint.Format)
}

// leaf is a place in JSON: its container, and its key there.
type leaf struct {
	in  any // map or slice
	key any
}

func leaves(v any, list []leaf) []leaf {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = leaves(v[k], append(list, leaf{v, k}))
		}
	case []any:
		for i := range v {
			list = leaves(v[i], append(list, leaf{v, i}))
		}
	}
	return list
}

// changeJSON replaces the value at one place, or removes it.
func changeJSON(r *rand.Rand, text []byte) ([]byte, string) {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text, "nothing"
	}
	all := leaves(v, nil)
	at := all[r.IntN(len(all))]
	values := []any{nil, "", "x\x1b[2J", []any{}, map[string]any{}, true, json.Number("-1"), json.Number("0"),
		json.Number("1"), json.Number("7"), json.Number("1e308"), json.Number("0.5"),
		json.Number("9223372036854775807"), json.Number("-9223372036854775808"), json.Number("1152921504606846976"),
		json.Number("4611686018427387904"), json.Number("99999999999999999999")}
	value := values[r.IntN(len(values))]
	field := ""
	kind := fmt.Sprintf("%v", value)
	if r.IntN(5) == 0 { // near the old value
		value, kind = near(r, get(at))
	}
	switch in := at.in.(type) {
	case map[string]any:
		field = at.key.(string)
		if r.IntN(6) == 0 {
			delete(in, field)
			kind = "missing"
		} else {
			in[field] = value
		}
	case []any:
		field = "an element"
		in[at.key.(int)] = value
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text, "nothing"
	}
	if kind != "missing" && kind != "near" {
		kind = "other"
	}
	if len(field) > 20 || strings.Contains(field, ".") {
		field = "a value of config"
	}
	return append(out, '\n'), field + " " + kind
}

func get(at leaf) any {
	if m, ok := at.in.(map[string]any); ok {
		return m[at.key.(string)]
	}
	return at.in.([]any)[at.key.(int)]
}

// near changes a number by a little, and a text by a letter.
func near(r *rand.Rand, v any) (any, string) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n + []int64{-1, 1, 2, 1 << 16}[r.IntN(4)], "near"
		}
	case string:
		if b := []byte(v); len(b) > 0 {
			b[r.IntN(len(b))] ^= 1
			return string(b), "near"
		}
	}
	return v, "near"
}
