package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
)

type state struct {
	Name  string
	Count int64
}

// write makes a checkpoint of two server files in a run folder.
func write(t testing.TB, run string, n int64) string {
	t.Helper()
	d, err := checkpoint.Begin(durable.Below(run), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	m := manifest(n)
	for i := range 2 {
		e, err := checkpoint.WriteFile(d.In, checkpoint.ServerFile(i), state{"server", n + int64(i)},
			[]float32{1, 2, float32(n)}, nil, []float32{float32(math.Inf(1))})
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, e)
	}
	dir, err := d.Finish(m)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func manifest(n int64) *checkpoint.Manifest {
	return &checkpoint.Manifest{Iteration: n, Samples: 8 * n, Servers: 2, Workers: 1, Starts: []int64{n},
		Config: map[string]string{"seed": "7"}, State: json.RawMessage(`{}`)}
}

// read verifies all files of a checkpoint.
func read(dir string) error {
	m, err := checkpoint.Open(dir)
	if err != nil {
		return err
	}
	for _, e := range m.Files {
		var s state
		if _, err := checkpoint.ReadFile(dir, e, &s); err != nil {
			return err
		}
	}
	return nil
}

func TestFilesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "checkpoint-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var want [][]float32
		for i := range rapid.IntRange(0, 4).Draw(t, "vectors") {
			v := make([]float32, rapid.SampledFrom([]int{0, 1, 7, 1<<16 - 1, 1 << 16, 1<<16 + 1, 200000}).Draw(t, "length"))
			for k := range v {
				v[k] = math.Float32frombits(uint32(k*2654435761 + i)) // NaN and infinities too
			}
			want = append(want, v)
		}
		in := state{rapid.String().Draw(t, "name"), rapid.Int64().Draw(t, "count")}
		e, err := checkpoint.WriteFile(durable.Below(dir), "server-0000.bin", in, want...)
		if err != nil {
			t.Fatal(err)
		}
		var out state
		got, err := checkpoint.ReadFile(dir, e, &out)
		if err != nil || in.Count != out.Count || len(got) != len(want) {
			t.Fatalf("%+v and %d vectors came back as %+v and %d: %v", in, len(want), out, len(got), err)
		}
		for i := range want {
			same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
			if !slices.EqualFunc(got[i], want[i], same) {
				t.Fatalf("vector %d of %d elements came back otherwise", i, len(want[i]))
			}
		}
	})
}

func TestListIsNewestFirstAndPruneRemovesOldOnes(t *testing.T) {
	run := t.TempDir()
	root := filepath.Join(run, checkpoint.Folder)
	if dirs, err := checkpoint.List(root); err != nil || len(dirs) != 0 {
		t.Fatalf("%v, %v without a folder", dirs, err)
	}
	for n := range int64(4) {
		write(t, run, n)
	}
	for _, odd := range []string{"12", "latest", "000000000000"} {
		if err := os.Mkdir(filepath.Join(root, odd), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkpoint.Prune(durable.Below(run), 2); err != nil {
		t.Fatal(err)
	}
	dirs, err := checkpoint.List(root)
	if err != nil || len(dirs) != 2 || filepath.Base(dirs[0]) != "000000000004" || filepath.Base(dirs[1]) != "000000000003" {
		t.Fatalf("left are %v, %v", dirs, err)
	}
	if m, err := checkpoint.Open(dirs[0]); err != nil || m.Iteration != 3 || m.Config["seed"] != "7" {
		t.Errorf("the newest is %+v, %v", m, err)
	}
}

// A killed writer leaves nothing that a reader takes for a checkpoint, and the next writer removes what it left.
func TestAHalfWrittenCheckpointIsNone(t *testing.T) {
	run := t.TempDir()
	root := filepath.Join(run, checkpoint.Folder)
	whole := write(t, run, 1)
	d, err := checkpoint.Begin(durable.Below(run), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.WriteFile(d.In, "server-0000.bin", state{}, []float32{1}); err != nil {
		t.Fatal(err)
	}
	if dirs, err := checkpoint.List(root); err != nil || !slices.Equal(dirs, []string{whole}) {
		t.Fatalf("%v, %v", dirs, err)
	}
	next := write(t, run, 2)
	if filepath.Base(next) != "000000000002" {
		t.Errorf("the next one is %s", next)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v beside two checkpoints", entries, err)
	}
	abandoned, err := checkpoint.Begin(durable.Below(run), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := abandoned.Abandon(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v after one was abandoned", entries, err)
	}
}

func TestAmendReplacesTheManifest(t *testing.T) {
	dir := write(t, t.TempDir(), 5)
	m, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.State = json.RawMessage(`{"evaluations": 3}`)
	if err := checkpoint.Amend(durable.Below(dir), m); err != nil {
		t.Fatal(err)
	}
	again, err := checkpoint.Open(dir)
	if err != nil || !bytes.Contains(again.State, []byte("evaluations")) || len(again.Files) != 2 {
		t.Fatalf("%+v, %v", again, err)
	}
	if err := read(dir); err != nil {
		t.Error(err)
	}
}

// damage changes a file of a new checkpoint with f, and returns the error of reading the checkpoint.
func damage(t *testing.T, name string, f func(data []byte) []byte) error {
	t.Helper()
	dir := write(t, t.TempDir(), 3)
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = f(data); data == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read(dir)
}

func TestDamageIsFoundAndNamed(t *testing.T) {
	dir := write(t, t.TempDir(), 3)
	for _, name := range []string{"manifest.json", "server-0001.bin"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		put := func(data []byte) {
			t.Helper()
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for at := range whole {
			changed := bytes.Clone(whole)
			changed[at] ^= 0x10
			for _, data := range [][]byte{whole[:at], changed} {
				put(data)
				if err := read(dir); err == nil || !strings.Contains(err.Error(), name) {
					t.Fatalf("%s with %d of %d bytes, changed at %d: %v", name, len(data), len(whole), at, err)
				}
			}
		}
		put(whole)
	}
	if err := read(dir); err != nil {
		t.Fatal(err)
	}
}

// The checksum also covers bytes far after the header of a long file. Random places are cut off or changed in one bit.
func TestDamageOfALongFileIsFoundAndNamed(t *testing.T) {
	dir := t.TempDir()
	long := make([]float32, 150000)
	for i := range long {
		long[i] = float32(i)
	}
	e, err := checkpoint.WriteFile(durable.Below(dir), "server-0000.bin", state{"long", 1}, long[:100000], long)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, e.Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 0))
	for range 100 {
		at := random.IntN(len(whole))
		changed := bytes.Clone(whole)
		changed[at] ^= 1 << random.IntN(8)
		for _, c := range []struct {
			data []byte
			want string
		}{
			{whole[:at], fmt.Sprintf("server-0000.bin: it has %d bytes, and %d were written", at, len(whole))},
			{changed, "server-0000.bin: its bytes are not those that were written"},
		} {
			if err := os.WriteFile(path, c.data, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := checkpoint.ReadFile(dir, e, new(state)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("cut off or changed at %d: %v, want %q", at, err, c.want)
			}
		}
	}
}

func TestErrorsNameTheProblem(t *testing.T) {
	text := func(format string, args ...any) func([]byte) []byte {
		return func([]byte) []byte { return fmt.Appendf(nil, format, args...) }
	}
	for _, c := range []struct {
		name, file string
		f          func([]byte) []byte
		want       string
	}{
		{"no manifest", "manifest.json", func([]byte) []byte { return nil }, "there is no manifest.json"},
		{"another program's", "manifest.json", text(`{"name": "a web page"}`), "it is not a manifest of fluentps"},
		{"cut off", "manifest.json", func(b []byte) []byte { return b[:len(b)/2] }, "it was cut off"},
		{"missing", "server-0000.bin", func([]byte) []byte { return nil }, "server-0000.bin: it is missing"},
		{"shorter", "server-0000.bin", func(b []byte) []byte { return b[:len(b)-1] }, "were written: it was cut off"},
		{"longer", "server-0000.bin", func(b []byte) []byte { return append(b, 0) }, "were written: it was cut off or is another file"},
		{"changed", "server-0001.bin", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "its bytes are not those that were written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := damage(t, c.file, c.f); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	t.Run("another checkpoint's", func(t *testing.T) {
		root := t.TempDir()
		other, dir := write(t, root, 3), write(t, root, 4)
		data, err := os.ReadFile(filepath.Join(other, "server-0000.bin"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "server-0000.bin"), data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := read(dir); err == nil || !strings.Contains(err.Error(), "server-0000.bin: its bytes are not those that were written") {
			t.Error(err)
		}
	})
	t.Run("a later format", func(t *testing.T) {
		dir := write(t, t.TempDir(), 3)
		m, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Format = checkpoint.Format + 1
		if err := checkpoint.Amend(durable.Below(dir), m); err != nil {
			t.Fatal(err)
		}
		if err := read(dir); err == nil || !strings.Contains(err.Error(), "it has format 3, but this program reads "+
			"formats 1 to 2; resume with the program that wrote it") {
			t.Error(err)
		}
	})
}

func TestWriteErrorsSayWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Begin(durable.Below(filepath.Join(file, "below")), "7.1"); err == nil ||
		!strings.Contains(err.Error(), "checkpoint: ") {
		t.Error(err)
	}
	if _, err := checkpoint.WriteFile(durable.Below(file+"-none"), "server-0000.bin", state{}); err == nil ||
		!strings.Contains(err.Error(), "it was removed or moved during the run, or this host never had it") ||
		!strings.Contains(err.Error(), "a file system that all hosts share") {
		t.Error(err)
	}
}
