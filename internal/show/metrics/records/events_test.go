package records

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics/metricstest"
)

// subject is a run with so many rules.
func subject(rules int) Subject {
	began := time.Unix(1_700_000_000, 0)
	of := Subject{Run: "a", Began: began, Now: began}
	for i := range rules {
		of.Rules = append(of.Rules, Rule{Match: fmt.Sprintf("fc%d.*", i), Scheme: "bsp"})
	}
	return of
}

func TestEventsGolden(t *testing.T) {
	var w writes
	s := Events(&w, time.Unix(1_700_000_000, 0))
	for _, r := range records() {
		if err := s.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Every event file begins with these bytes, whoever writes it: the length 24 and its checksum.
	if want := "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7fK\""; len(w) != 4 || !strings.HasPrefix(w[0], want) {
		t.Errorf("%d Write calls, the first %q", len(w), w[0])
	}
	golden(t, "events.hex", hex.Dump([]byte(strings.Join(w, ""))))
	for i, b := range w {
		if frames, rest := metricstest.Frames([]byte(b)); len(frames) != 1 || rest != 0 {
			t.Errorf("Write call %d holds %d events and %d bytes", i, len(frames), rest)
		}
	}
}

func TestChecksumsOfTheFormat(t *testing.T) {
	// The vectors of RFC 3720, section B.4.
	for text, want := range map[string]uint32{strings.Repeat("\x00", 32): 0x8a9136aa,
		strings.Repeat("\xff", 32): 0x62a8ab43, "123456789": 0xe3069283} {
		if got := metricstest.CRC([]byte(text)); got != want {
			t.Errorf("CRC-32C of %q is %x, want %x", text, got, want)
		}
		if got, want := maskedCRC([]byte(text)), metricstest.MaskedCRC([]byte(text)); got != want {
			t.Errorf("masked: %x, want %x", got, want)
		}
	}
}

// The event file and metrics.jsonl hold the same.
func TestEventsEqualJSONL(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		var e, j writes
		events, lines := Events(&e, began), JSONL(&j)
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			r := Record{At: time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "at")), Iteration: rapid.Int64Range(0, 1<<50).Draw(t, "iteration"),
				Samples: rapid.Int64Range(0, 1<<50).Draw(t, "samples"), Epoch: rapid.Float64Range(0, 1e6).Draw(t, "epoch")}
			for c := range columnCount {
				if rapid.Bool().Draw(t, "set "+c.String()) {
					r.Set(c, rapid.Float64().Draw(t, c.String()))
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "rules") {
				n := rapid.SampledFrom([]int64{0, 0, 1, 1 << 40})
				r.Rules = append(r.Rules, Staleness{Pushes: n.Draw(t, "pushes"), P50: n.Draw(t, "p50"), P99: n.Draw(t, "p99"), Max: n.Draw(t, "max")})
			}
			if err := errors.Join(events.Record(r), lines.Record(r)); err != nil {
				t.Fatal(err)
			}
		}
		if err := events.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := metricstest.ReadEvents([]byte(strings.Join(e, "")))
		if err == nil {
			err = metricstest.SameAsJSONL(all, j, began)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// tbFiles reads the event files of a folder, by name.
func tbFiles(t *testing.T, dir string) (names []string, files [][]byte) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, EventsFolder, "*tfevents*.fluentps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names, files = append(names, filepath.Base(path)), append(files, data)
	}
	return names, files
}

// A run that is killed and resumes from some earlier checkpoint, again and again, has the same events and lines.
func TestEventsGoOnAfterResuming(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "run")
		if err != nil {
			rt.Fatal(err)
		}
		names := []string{sinkJSONL, sinkTensorBoard, sinkOpenMetrics}
		type checkpoint struct {
			sizes map[string]int64
			iter  int64
		}
		made := []checkpoint{{map[string]int64{}, 0}}
		of := subject(0)
		s, err := Open(durable.Below(dir), names, of)
		for part := range rapid.IntRange(1, 5).Draw(rt, "parts") {
			if err != nil {
				rt.Fatal(err)
			}
			iter := made[len(made)-1].iter
			for range rapid.IntRange(0, 4).Draw(rt, "records") {
				iter++
				r := Record{At: time.Duration(iter) * time.Second, Iteration: iter}
				r.Set(TrainLoss, float64(part)+float64(iter)/100)
				if err := s.Record(r); err != nil {
					rt.Fatal(err)
				}
				if rapid.Bool().Draw(rt, "checkpoint") {
					made = append(made, checkpoint{Sizes(durable.Below(dir), names), iter})
				}
			}
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "torn") { // a crash of the host loses the end of the newest file
				if files, data := tbFiles(t, dir); len(files) > 0 && int64(len(data)) >= 0 {
					path := filepath.Join(dir, EventsFolder, files[len(files)-1])
					if err := os.WriteFile(path, append(data[len(data)-1], "\x18\x00\x00"...), 0o666); err != nil {
						rt.Fatal(err)
					}
				}
			}
			made = made[:1+rapid.IntRange(0, len(made)-1).Draw(rt, "from")]
			from := made[len(made)-1]
			of.Start, of.Now = from.iter, of.Now.Add(time.Duration(rapid.IntRange(-1, 2).Draw(rt, "later"))*time.Second)
			s, err = Resume(durable.Below(dir), names, from.sizes, of)
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			rt.Fatal(err)
		}
		_, files := tbFiles(t, dir)
		all, err := metricstest.ReadEvents(files...)
		if err != nil {
			rt.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		if err != nil {
			rt.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(text) == 0 {
			lines = nil
		}
		if err := metricstest.SameAsJSONL(all, lines, of.Began); err != nil {
			rt.Fatal(err)
		}
	})
}

// Files of others in the folder stay, and a link there is not followed.
func TestEventsLeaveOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(durable.Below(dir), []string{sinkTensorBoard}, subject(0))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, EventsFolder, "events.out.tfevents.1.host")
	treasure := filepath.Join(t.TempDir(), "treasure")
	link := filepath.Join(dir, EventsFolder, EventsName(time.Unix(5, 0)))
	if err := errors.Join(os.WriteFile(other, []byte("other"), 0o666), os.WriteFile(treasure, []byte("treasure"), 0o666),
		os.Symlink(treasure, link)); err != nil {
		t.Fatal(err)
	}
	s, err = Resume(durable.Below(dir), []string{sinkTensorBoard}, nil, subject(0))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{other: "other", treasure: "treasure"} {
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, []byte(want)) {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}
