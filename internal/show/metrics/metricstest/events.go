// Package metricstest reads event files back, by the description of their format: TFRecord of tensorflow.org,
// event.proto and summary.proto. It shares nothing with the writer, not even the checksum.
package metricstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Event is an event with the values of a record.
type Event struct {
	Wall   float64
	Step   int64
	Tags   []string
	Values map[string]float32

	version string
	status  int64 // of the session log
}

// CRC is CRC-32C, bit by bit.
func CRC(data []byte) uint32 {
	c := ^uint32(0)
	for _, b := range data {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0x82f63b78&-(c&1)
		}
	}
	return ^c
}

// MaskedCRC is the checksum of the format.
func MaskedCRC(data []byte) uint32 {
	c := CRC(data)
	return (c>>15 | c<<17) + 0xa282ead8
}

func little(b []byte) (v uint64) {
	for i := range b {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// Frames returns the events in a file, and how many bytes at its end are no whole one.
func Frames(data []byte) (all [][]byte, rest int) {
	for {
		if len(data) < 12 || MaskedCRC(data[:8]) != uint32(little(data[8:12])) {
			return all, len(data)
		}
		n := int(little(data[:8]))
		if len(data) < 16+n || MaskedCRC(data[12:12+n]) != uint32(little(data[12+n:16+n])) {
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

func parseEvent(b []byte) (e Event, err error) {
	fields, err := readMessage(b)
	if err != nil {
		return e, err
	}
	e.Values = map[string]float32{}
	for _, f := range fields {
		switch {
		case f.number == 1 && f.wire == 1:
			e.Wall = math.Float64frombits(f.value)
		case f.number == 2 && f.wire == 0:
			e.Step = int64(f.value)
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

func (e *Event) parseSummary(b []byte) error {
	values, err := readMessage(b)
	if err != nil {
		return err
	}
	for _, v := range values {
		fields, err := readMessage(v.bytes)
		if err != nil || v.number != 1 || len(fields) != 2 || fields[0].number != 1 || fields[0].wire != 2 ||
			fields[1].number != 2 || fields[1].wire != 5 {
			return fmt.Errorf("value %v, %v", fields, err)
		}
		tag := string(fields[0].bytes)
		e.Tags = append(e.Tags, tag)
		e.Values[tag] = math.Float32frombits(uint32(fields[1].value))
	}
	return nil
}

// ReadEvents reads whole event files as TensorBoard does: in the order of their names, and forgetting what the start of a later session
// forgets.
func ReadEvents(files ...[]byte) (all []Event, err error) {
	for _, data := range files {
		frames, rest := Frames(data)
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
				all = slices.DeleteFunc(all, func(old Event) bool { return old.Step >= e.Step })
			case i > 0:
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// SameAsJSONL compares events with the lines of a JSONL file, whose times count from began; the zero time: their wall
// times are not compared.
func SameAsJSONL(all []Event, lines []string, began time.Time) error {
	if len(all) != len(lines) {
		return fmt.Errorf("%d events, %d lines", len(all), len(lines))
	}
	for i, line := range lines {
		var object map[string]*float64
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		e := &all[i]
		if step := int64(*object["iteration"]); e.Step != step || len(e.Tags) != len(object)-1 || len(e.Values) != len(e.Tags) {
			return fmt.Errorf("event %d has the step %d and %d tags: %s", i, e.Step, len(e.Tags), line)
		}
		if wall := float64(began.Unix()) + *object["at_s"]; !began.IsZero() && math.Abs(e.Wall-wall) > 1e-6*math.Max(1, math.Abs(wall)/1e9) {
			return fmt.Errorf("event %d is at %v, not %v: %s", i, e.Wall, wall, line)
		}
		for tag, v := range e.Values {
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
