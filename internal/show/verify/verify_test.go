package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core/digest"
)

// folder makes the folder of a run with the files given.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a[1]*")
	if files["run.json"] == "" {
		files["run.json"] = `{"config_sha256": "x", "data_sha256": "y", "build": "z", "ranks": [{"kernel_set": "k"}, {}]}`
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func compare(t *testing.T, a, b map[string]string) (*Report, string) {
	t.Helper()
	r, err := Compare(folder(t, a), folder(t, b))
	if err != nil {
		t.Fatal(err)
	}
	return r, strings.Join(r.Lines, "\n")
}

func TestTheFirstVersionThatDiffersIsNamed(t *testing.T) {
	names := `{"per_shard": [{"shard": 0, "name": "a/0", "server": 0}, {"shard": 7, "name": "b/0", "server": 1}]}`
	first := map[string]string{"logs/rank-0000.digests": "1,0,a\n2,0,b\n3,0,c\n",
		"logs/rank-0001.digests": "1,7,d\n2,7,e\n3,7,f\n", "summary.json": names}
	second := map[string]string{"logs/rank-0003.digests": "1,0,a\n1,7,d\n2,7,0\n3,7,0\n2,0,b\n3,0,0\n2,7,1\n4,0,0\n", "summary.json": names}
	r, text := compare(t, first, second)
	if !r.Differ || r.Compared != 6 || !strings.Contains(text, "versions: DIFFER first in version 2, in shard 7 (b/0 "+
		"of s1); all before are equal") || !strings.Contains(text, "kernels: the same") {
		t.Errorf("%d compared:\n%s", r.Compared, text)
	}
	second["logs/rank-0003.digests"] = "3,7,f\n3,0,c\n9,0,1\n2,7" // the run was killed
	if r, text := compare(t, first, second); r.Differ || r.Compared != 2 ||
		!strings.Contains(text, "versions: equal, 2 checksums that both runs have, up to version 3") {
		t.Errorf("%d compared:\n%s", r.Compared, text)
	}
	second["logs/rank-0003.digests"] = "1,7,0\n1,0,0\n"
	if r, text := compare(t, first, second); !r.Differ ||
		!strings.Contains(text, "first in version 1, in shard 0 (a/0 of s0) and in 1 shard more; none before was compared") {
		t.Errorf("%d compared:\n%s", r.Compared, text)
	}
	far := map[string]string{"logs/rank-0000.digests": "9223372036854775807,0,0\n-9223372036854775808,0,0\n" +
		"-9223372036854775808,2147483647,0\n-9223372036854775808,-2147483648,0\n"}
	if r, text := compare(t,
		map[string]string{"logs/rank-0000.digests": strings.ReplaceAll(far["logs/rank-0000.digests"], ",0\n", ",1\n")},
		far); !r.Differ || !strings.Contains(text, "first in version -9223372036854775808, in shard -2147483648 and in 2 shards more") {
		t.Errorf("numbers that no run writes:\n%s", text)
	}
	second["summary.json"] = `{"per_shard": [{"shard": 0, "name": "all", "server": 0}]}`
	if r, text := compare(t, first, second); r.Differ || r.Compared != 0 ||
		!strings.Contains(text, "not compared, because the shards differ: 2 shards and 1 shard") {
		t.Errorf("%d compared:\n%s", r.Compared, text)
	}
}

func TestOriginsAndEndsAreCompared(t *testing.T) {
	r, text := compare(t, map[string]string{"summary.json": `{"parameters_sha256": "0123456789abcdef"}`},
		map[string]string{"summary.json": `{"parameters_sha256": "0123456789abcdeg"}`,
			"run.json": `{"config_sha256": "x2", "data_sha256": "` + `\u001b[2J` + `", "build": "z", "ranks": []}`})
	for _, want := range []string{"configuration: differs; compare resolved.yaml of both", `data: y and "\x1b[2J"`,
		"program: the same", `kernels: k and "": their last bits may differ`,
		"versions: not compared, because neither run has checksums",
		"parameters at the end: DIFFER, sha256 0123456789ab and 0123456789ab", "checkpoints: none of the first run's 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !r.Differ || r.Compared != 1 {
		t.Errorf("differ %v, %d compared", r.Differ, r.Compared)
	}
	if _, err := Compare(t.TempDir(), "x"); err == nil || !strings.Contains(err.Error(), "is not the folder of a run") {
		t.Errorf("error %v", err)
	}
}

// A damaged file is named, and all else is compared. Checksums count up to the first line that no run writes.
func TestDamagedFilesAreNamedAndLeftOut(t *testing.T) {
	good := map[string]string{"logs/rank-0000.digests": "1,0,a\n2,0,b\n", "summary.json": `{"parameters_sha256": "x"}`}
	for name, of := range map[string]struct{ file, text, want string }{
		"digests":  {"logs/rank-0000.digests", "1,0,a\n1\n2,0,b\n", "rank-0000.digests: line 2 has 1 fields"},
		"run":      {"run.json", "{", "run.json: unexpected end of JSON input"},
		"summary":  {"summary.json", "[]", "summary.json: json: cannot unmarshal array"},
		"manifest": {"checkpoints/000000000001/manifest.json", "{", "DAMAGED, and left out: "},
	} {
		t.Run(name, func(t *testing.T) {
			bad := map[string]string{}
			maps.Copy(bad, good)
			bad[of.file] = of.text
			r, text := compare(t, good, bad)
			if r.Damaged != 1 || r.Differ || r.Compared == 0 || !strings.Contains(text, "DAMAGED, and left out: ") ||
				!strings.Contains(text, of.want) || !strings.Contains(text, "versions: equal") {
				t.Errorf("%d compared, %d damaged:\n%s", r.Compared, r.Damaged, text)
			}
		})
	}
}

// The folder of an experiment stands for its newest run.
func TestAnExperimentStandsForItsNewestRun(t *testing.T) {
	run := folder(t, map[string]string{"summary.json": `{"parameters_sha256": "x"}`})
	of := filepath.Dir(run)
	if err := os.Symlink(filepath.Base(run), filepath.Join(of, "latest")); err != nil {
		t.Fatal(err)
	}
	if r, err := Compare(of, run); err != nil || r.Compared != 1 || r.Differ {
		t.Errorf("%+v, %v", r, err)
	}
}

// The report on digests agrees with a search through all keys.
func TestDigestsAgreeWithASearch(t *testing.T) {
	table := rapid.MapOf(rapid.Custom(func(t *rapid.T) digest.Key {
		return digest.Key{Version: rapid.Int64Range(0, 4).Draw(t, "version"), Shard: rapid.Int32Range(0, 3).Draw(t, "shard")}
	}), rapid.Uint32Range(0, 1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := &run{digests: table.Draw(t, "a")}, &run{digests: table.Draw(t, "b")}
		r := &Report{}
		r.compareDigests(a, b)
		compared, first := 0, ""
		for v := range int64(5) {
			for s := range int32(4) {
				x, inA := a.digests[digest.Key{Version: v, Shard: s}]
				y, inB := b.digests[digest.Key{Version: v, Shard: s}]
				if !inA || !inB {
					continue
				}
				compared++
				if x != y && first == "" {
					first = fmt.Sprintf("DIFFER first in version %d, in shard %d", v, s)
				}
			}
		}
		if r.Compared != compared && len(a.digests)*len(b.digests) > 0 || r.Differ != (first != "") || !strings.Contains(r.Lines[0], first) {
			t.Fatalf("%v of %d compared, want %q of %d", r.Lines, r.Compared, first, compared)
		}
	})
}

func TestCompareValues(t *testing.T) {
	bits := func(all ...float32) *bytes.Buffer {
		var b []byte
		for _, v := range all {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return bytes.NewBuffer(b)
	}
	nan := float32(math.NaN())
	for want, of := range map[string][2]*bytes.Buffer{
		"":                                 {bits(1, nan, 3), bits(1, nan, 3)},
		"2 of 3 values, by 2 at most":      {bits(1, 2, 3), bits(3, 2, 4)},
		"1 of 1 values, by 0 at most":      {bits(0), bits(float32(math.Copysign(0, -1)))},
		"2 of 2 values, by NaN at most":    {bits(nan, 1), bits(1, 2)},
		"1 of 2 values, by 0.0625 at most": {bits(1, 1), bits(1, 1.0625)},
	} {
		if got, err := compareValues(of[0], of[1]); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// Parameters at the end of an earlier start are not those of the newest one.
func TestTheEndOfAnEarlierStartIsNotCompared(t *testing.T) {
	other := `{"start": "s.1", "parameters_sha256": "0123456789abcdef"}`
	_, text := compare(t, map[string]string{"summary.json": other, "run.json": `{"start": "s.2"}`},
		map[string]string{"summary.json": `{"parameters_sha256": "0123456789abcdeg"}`})
	if !strings.Contains(text, "parameters at the end: not compared, because the first run") {
		t.Error(text)
	}
}
