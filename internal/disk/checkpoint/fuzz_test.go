package checkpoint

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/disk/durable"
)

// FuzzManifest: a manifest with a valid checksum is refused, or all its values are within their limits.
func FuzzManifest(f *testing.F) {
	m := Manifest{Program: programName, Format: Format, Servers: 2, Workers: 2, Computing: 2, Starts: []int64{3, 4},
		State: json.RawMessage(`{}`), Config: map[string]string{"seed": "7"},
		Files: []Entry{{Name: ServerFile(0), Bytes: 99, CRC32C: 7}, {Name: WorkerFile(1), Bytes: 9}}}
	text, err := json.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	m.Parameters = []Tensor{{Name: "fc1.weight", Shape: []int{2, 3}, DType: DType,
		Ranges: []Range{{ServerFile(0), 50, 16}, {WorkerFile(1), 0, 8}}}}
	if text, err = json.Marshal(m); err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"program":"fluentps","format":1,"servers":4611686018427387904,"workers":1,"starts":[-1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = parse(text)
		for _, format := range []int{FormatLined, Format} {
			m, err := parse(Seal(text, format))
			if err != nil {
				continue
			}
			if len(m.Starts) != m.Workers || m.Servers < 1 || m.Iteration < 0 || m.Samples < 0 {
				t.Fatalf("%+v", m)
			}
			size, left := map[string]int64{}, int64(0)
			for _, e := range m.Files {
				if strings.ContainsAny(e.Name, "/\x00") || e.Name == manifestName || !strings.HasSuffix(e.Name, ".bin") {
					t.Fatalf("a file %q", e.Name)
				}
				size[e.Name] = e.Bytes
				left += e.Bytes
			}
			for _, of := range slices.Concat(m.Parameters, m.Optimizer) {
				bytes := int64(0)
				for _, r := range of.Ranges {
					if r.Offset < 0 || r.Bytes < 1 || r.Offset+r.Bytes > size[r.File] {
						t.Fatalf("%+v in a file of %d bytes", r, size[r.File])
					}
					bytes += r.Bytes
				}
				left -= bytes
				if n, ok := Elements(of.Shape, 1<<50); !ok || n*elemBytes != bytes || left < 0 {
					t.Fatalf("%+v has %d bytes", of, bytes)
				}
			}
		}
	})
}

// FuzzFile: a file with a valid checksum is refused, or its vectors have the lengths in its header.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	type state struct {
		Next int64 `json:"next"`
	}
	in := durable.Below(dir)
	defer in.Close()
	e, err := WriteFile(in, ServerFile(0), state{3}, []float32{1, 2, 3}, nil, []float32{4})
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, e.Name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		head, vectors, err := readBody(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		bytes := 0
		for i, v := range vectors {
			bytes += 4 * len(v)
			if len(v) != head.Lengths[i] {
				t.Fatalf("vector %d has %d elements of %d", i, len(v), head.Lengths[i])
			}
		}
		if bytes > len(data) {
			t.Fatalf("%d bytes of vectors in %d", bytes, len(data))
		}
		_ = Decode(head.State, new(state))
	})
}

// Members of a text that no field reads take no memory.
func TestDecodeTakesNoMemoryForUnknownMembers(t *testing.T) {
	const lists = 1 << 20
	text := []byte(`{"a": 3, "x": [[]` + strings.Repeat(",[]", lists) + `]}`)
	var into struct {
		A int `json:"a"`
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Decode(text, &into)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || into.A != 3 || took > 1<<16 {
		t.Errorf("%d bytes for a text of %d, %v, %+v", took, len(text), err, into)
	}
}

// A field that is missing, or null though its type has no null, is named by its path.
func TestDecodeNamesTheMissingField(t *testing.T) {
	type inner struct {
		Version int64   `json:"version"`
		Memory  []byte  `json:"memory,omitempty"`
		At      *string `json:"at"`
	}
	type outer struct {
		Name  string
		List  []inner        `json:"list"`
		Sizes map[string]int `json:"sizes"`
	}
	type within struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
	}
	type around struct {
		within
		C int `json:"c"`
	}
	for text, want := range map[string]string{`{"a":1,"c":2}`: "", `{"c":2}`: "a", `{"a":null,"c":2}`: "a", `{"a":1}`: "c"} {
		err := Decode([]byte(text), new(around))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != "it has no "+want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"Name":"a","list":[{"version":1,"at":null}],"sizes":null}`:          "",
		`{"Name":"a","list":null,"sizes":{}}`:                                 "",
		`{"Name":"a","list":[{"version":1,"at":null},{"at":"x"}],"sizes":{}}`: "list[1].version",
		`{"Name":"a","list":[{"version":null,"at":null}],"sizes":{}}`:         "list[0].version",
		`{"Name":"a","list":[null],"sizes":{}}`:                               "list[0].version",
		`{"name":"a","list":[],"sizes":{}}`:                                   "Name",
		`{"Name":"a","list":[{"version":1,"memory":"AA==","at":"x"}]}`:        "sizes",
		`null`: "Name",
	} {
		err := Decode([]byte(text), new(outer))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != "it has no "+want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
