package metrics

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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

// A reader of event files, from the description of the format: https://www.tensorflow.org/api_docs/python/tf/io/TFRecordWriter, event.proto and
// summary.proto. It shares nothing with the writer, not even the checksum.

type readEvent struct {
	wall    float64
	step    int64
	version string
	status  int64 // of the session log
	tags    []string
	values  map[string]float32
}

// slowCRC is CRC-32C bit by bit.
func slowCRC(data []byte) uint32 {
	c := ^uint32(0)
	for _, b := range data {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0x82f63b78&-(c&1)
		}
	}
	return ^c
}

func slowMask(data []byte) uint32 {
	c := slowCRC(data)
	return (c>>15 | c<<17) + 0xa282ead8
}

func little(b []byte) (v uint64) {
	for i := range b {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// readFrames returns the events in a file, and how many bytes at its end are no whole one.
func readFrames(data []byte) (all [][]byte, rest int) {
	for {
		if len(data) < 12 || slowMask(data[:8]) != uint32(little(data[8:12])) {
			return all, len(data)
		}
		n := int(little(data[:8]))
		if len(data) < 16+n || slowMask(data[12:12+n]) != uint32(little(data[12+n:16+n])) {
			return all, len(data)
		}
		all, data = append(all, data[12:12+n]), data[16+n:]
	}
}

// protoField is a field of a message of protocol buffers.
type protoField struct {
	number, wire uint64
	value        uint64 // of wire types 0, 1 and 5
	bytes        []byte // of wire type 2
}

func readMessage(b []byte) (fields []protoField, err error) {
	varint := func() (v uint64) {
		for shift := 0; ; shift += 7 {
			if len(b) == 0 || shift > 63 {
				err = errors.New("a torn varint")
				return 0
			}
			c := b[0]
			b = b[1:]
			if v |= uint64(c&0x7f) << shift; c < 0x80 {
				return v
			}
		}
	}
	take := func(n uint64) (part []byte) {
		if uint64(len(b)) < n {
			err = errors.New("a torn field")
			return nil
		}
		part, b = b[:n], b[n:]
		return part
	}
	for len(b) > 0 && err == nil {
		key := varint()
		f := protoField{number: key >> 3, wire: key & 7}
		switch f.wire {
		case 0:
			f.value = varint()
		case 1:
			f.value = little(take(8))
		case 2:
			f.bytes = take(varint())
		case 5:
			f.value = little(take(4))
		default:
			return nil, fmt.Errorf("wire type %d", f.wire)
		}
		fields = append(fields, f)
	}
	return fields, err
}

func parseEvent(b []byte) (e readEvent, err error) {
	fields, err := readMessage(b)
	if err != nil {
		return e, err
	}
	e.values = map[string]float32{}
	for _, f := range fields {
		switch {
		case f.number == 1 && f.wire == 1:
			e.wall = math.Float64frombits(f.value)
		case f.number == 2 && f.wire == 0:
			e.step = int64(f.value)
		case f.number == 3 && f.wire == 2:
			e.version = string(f.bytes)
		case f.number == 7 && f.wire == 2:
			log, err := readMessage(f.bytes)
			if err != nil || len(log) != 1 || log[0].number != 1 || log[0].wire != 0 {
				return e, fmt.Errorf("session log %v, %v", log, err)
			}
			e.status = int64(log[0].value)
		case f.number == 5 && f.wire == 2:
			if err := e.parseSummary(f.bytes); err != nil {
				return e, err
			}
		default:
			return e, fmt.Errorf("field %d of wire type %d", f.number, f.wire)
		}
	}
	return e, nil
}

func (e *readEvent) parseSummary(b []byte) error {
	values, err := readMessage(b)
	if err != nil {
		return err
	}
	for _, v := range values {
		fields, err := readMessage(v.bytes)
		if err != nil || v.number != 1 || len(fields) != 2 || fields[0].number != 1 || fields[0].wire != 2 || fields[1].number != 2 || fields[1].wire != 5 {
			return fmt.Errorf("value %v, %v", fields, err)
		}
		tag := string(fields[0].bytes)
		e.tags = append(e.tags, tag)
		e.values[tag] = math.Float32frombits(uint32(fields[1].value))
	}
	return nil
}

// readEvents reads whole event files as TensorBoard does: in the order of their names, and forgetting what the start of a later session
// forgets.
func readEvents(files ...[]byte) (all []readEvent, err error) {
	for _, data := range files {
		frames, rest := readFrames(data)
		if rest > 0 {
			return nil, fmt.Errorf("%d bytes are no event", rest)
		}
		for i, b := range frames {
			e, err := parseEvent(b)
			switch {
			case err != nil:
				return nil, err
			case (i == 0) != (e.version != "") || i == 0 && e.version != "brain.Event:2":
				return nil, fmt.Errorf("event %d has the version %q", i, e.version)
			case e.status == 1:
				all = slices.DeleteFunc(all, func(old readEvent) bool { return old.step >= e.step })
			case i > 0:
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// sameAsJSONL compares events with the lines of a JSONL file.
func sameAsJSONL(all []readEvent, lines []string, began time.Time) error {
	if len(all) != len(lines) {
		return fmt.Errorf("%d events, %d lines", len(all), len(lines))
	}
	for i, line := range lines {
		var object map[string]*float64
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		e := &all[i]
		if step := int64(*object["iteration"]); e.step != step || len(e.tags) != len(object)-1 || len(e.values) != len(e.tags) {
			return fmt.Errorf("event %d has the step %d and %d tags: %s", i, e.step, len(e.tags), line)
		}
		if wall := float64(began.Unix()) + *object["at_s"]; math.Abs(e.wall-wall) > 1e-6*math.Max(1, math.Abs(wall)/1e9) {
			return fmt.Errorf("event %d is at %v, not %v: %s", i, e.wall, wall, line)
		}
		for tag, v := range e.values {
			want, ok := object[tag]
			switch {
			case !ok:
				return fmt.Errorf("event %d has the tag %q: %s", i, tag, line)
			case want == nil: // not finite
				if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
					return fmt.Errorf("%s is %v: %s", tag, v, line)
				}
			case math.Abs(float64(v)-*want) > 1e-6*math.Abs(*want) && !math.IsInf(float64(float32(*want)), 0) && math.Abs(*want) > 1e-37:
				return fmt.Errorf("%s is %v, not %v: %s", tag, v, *want, line)
			}
		}
	}
	return nil
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
		if frames, rest := readFrames([]byte(b)); len(frames) != 1 || rest != 0 {
			t.Errorf("Write call %d holds %d events and %d bytes", i, len(frames), rest)
		}
	}
}

func TestChecksumsOfTheFormat(t *testing.T) {
	// The vectors of RFC 3720, section B.4.
	for text, want := range map[string]uint32{strings.Repeat("\x00", 32): 0x8a9136aa, strings.Repeat("\xff", 32): 0x62a8ab43, "123456789": 0xe3069283} {
		if got := slowCRC([]byte(text)); got != want {
			t.Errorf("CRC-32C of %q is %x, want %x", text, got, want)
		}
		if got, want := maskedCRC([]byte(text)), slowMask([]byte(text)); got != want {
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
		all, err := readEvents([]byte(strings.Join(e, "")))
		if err == nil {
			err = sameAsJSONL(all, j, began)
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
		s, err := At(dir).OpenSinks(names, of)
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
					made = append(made, checkpoint{At(dir).SinkSizes(names), iter})
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
			s, err = At(dir).ResumeSinks(names, from.sizes, of)
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			rt.Fatal(err)
		}
		_, files := tbFiles(t, dir)
		all, err := readEvents(files...)
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
		if err := sameAsJSONL(all, lines, of.Began); err != nil {
			rt.Fatal(err)
		}
	})
}

// Files of others in the folder stay, and a link there is not followed.
func TestEventsLeaveOtherFilesAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := At(dir).OpenSinks([]string{sinkTensorBoard}, subject(0))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, EventsFolder, "events.out.tfevents.1.host")
	treasure := filepath.Join(t.TempDir(), "treasure")
	link := filepath.Join(dir, EventsFolder, EventsName(time.Unix(5, 0)))
	if err := errors.Join(os.WriteFile(other, []byte("other"), 0o666), os.WriteFile(treasure, []byte("treasure"), 0o666), os.Symlink(treasure, link)); err != nil {
		t.Fatal(err)
	}
	s, err = At(dir).ResumeSinks([]string{sinkTensorBoard}, nil, subject(0))
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{other: "other", treasure: "treasure"} {
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, []byte(want)) {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}
