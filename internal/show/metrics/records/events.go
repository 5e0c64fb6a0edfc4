package records

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"fluentps/internal/disk/durable"
)

// The sink tensorboard writes event files, which TensorBoard reads: frames, and in each an Event as a protobuf message.
//
//	frame    length (8 bytes), masked CRC-32C of these, the event, masked CRC-32C of the event; little-endian
//	Event    1: wall_time (double)  2: step  3: file_version  5: Summary  7: SessionLog
//	Summary  1: Value, repeated: 1: tag  2: simple_value (float)
//
// A record is one Event with a Value for each column, in one Write. The step is the iteration.

// EventsFolder is the folder of a run folder with its event files.
const EventsFolder = "tb"

// eventsStem begins the name of every event file; TensorBoard finds them by the word tfevents, and reads them in the order of their
// names. eventsEnd ends the name of ours, so that a run that resumes leaves other files in the folder alone.
const (
	eventsStem = "events.out.tfevents."
	eventsEnd  = ".fluentps"
)

// EventsName is the name of the event file of a run, or of a part of it, that began at the given time.
func EventsName(began time.Time) string {
	return fmt.Sprintf("%s%010d%s", eventsStem, max(0, began.Unix()), eventsEnd)
}

// eventMax bounds an event in bytes. No number of rules makes one longer.
const eventMax = 1 << 20

type events struct {
	lines
	began   time.Time // At of records counts from here
	resumes int64     // the first step of a part that resumes; events from there on in earlier files count no more; -1: none
	headed  bool
	event   []byte // scratch
}

// Events writes event files for TensorBoard. At of the records counts from began. Times of a simulation count from time 0.
func Events(w io.Writer, began time.Time) Sink {
	return &events{lines: lines{w: w}, began: began, resumes: -1}
}

// head writes the version of the format, and where a part that resumes begins.
func (s *events) head(at time.Duration) error {
	if s.headed {
		return nil
	}
	s.event = appendText(s.eventAt(at, 0), 3, "brain.Event:2")
	s.buf = appendFrame(s.buf[:0], s.event)
	if s.resumes >= 0 {
		const start = 1 // SessionLog.status: TensorBoard forgets the steps from this one on
		s.event = appendText(s.eventAt(at, s.resumes), 7, string([]byte{1 << 3, start}))
		s.buf = appendFrame(s.buf, s.event)
	}
	err := s.flush()
	s.headed = err == nil
	return err
}

func (s *events) Record(r Record) error {
	if err := s.head(r.At); err != nil {
		return err
	}
	var summary []byte
	for c, name := range ColumnNames(len(r.Rules)) {
		v, ok := r.cell(c)
		if !ok || c == iterationCell {
			continue
		}
		value := appendText(nil, 1, name)
		value = binary.LittleEndian.AppendUint32(append(value, 2<<3|5), math.Float32bits(float32(v)))
		summary = appendText(summary, 1, string(value))
	}
	s.event = appendText(s.eventAt(r.At, r.Iteration), 5, string(summary))
	s.buf = appendFrame(s.buf[:0], s.event)
	return s.flush()
}

// Close writes the version even if there was no record, because TensorBoard warns of an empty file.
func (s *events) Close() error { return errors.Join(s.head(0), s.lines.Close()) }

// eventAt begins an event.
func (s *events) eventAt(at time.Duration, step int64) []byte {
	wall := float64(s.began.Add(at).UnixMicro()) / 1e6
	b := binary.LittleEndian.AppendUint64(append(s.event[:0], 1<<3|1), math.Float64bits(wall))
	if step == 0 { // the default of a field is not written
		return b
	}
	return binary.AppendUvarint(append(b, 2<<3), uint64(step))
}

// appendText appends a field of a message that is a text, or a message.
func appendText(b []byte, field byte, text string) []byte {
	return append(binary.AppendUvarint(append(b, field<<3|2), uint64(len(text))), text...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of the format: masked, because the checksum of data that holds checksums is weak.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// frameHead is the length of a frame before the event, frameTail that behind it.
const frameHead, frameTail = 12, 4

func appendFrame(b, event []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(event)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b[at:]))
	return binary.LittleEndian.AppendUint32(append(b, event...), maskedCRC(event))
}

// openEvents makes the first event file of a run.
func openEvents(run *durable.Folder, began time.Time) (Sink, error) {
	in := run.MakeIn(EventsFolder, 0o777)
	defer in.Close()
	file, err := in.CreateLog(EventsName(began))
	if err != nil {
		return nil, fmt.Errorf("metrics: open sink: %w", err)
	}
	return Events(file, began), nil
}

// eventFiles lists the event files of the run, in order, with their sizes.
func eventFiles(in *durable.Folder) (names []string, sizes []int64, err error) {
	all, err := in.List()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range all {
		if name := e.Name(); e.Type().IsRegular() && strings.HasPrefix(name, eventsStem) && strings.HasSuffix(name, eventsEnd) {
			info, err := e.Info()
			if err != nil {
				return nil, nil, err
			}
			names, sizes = append(names, name), append(sizes, info.Size())
		}
	}
	return names, sizes, nil
}

// eventsSize is the size of all event files together; 0 if there are none.
func eventsSize(run *durable.Folder) (sum int64) {
	in := run.In(EventsFolder)
	defer in.Close()
	if in.Err() != nil {
		return 0
	}
	_, sizes, _ := eventFiles(in)
	for _, n := range sizes {
		sum += n
	}
	return sum
}

// resumeEvents begins a new event file, because a TensorBoard that is running has read the old ones. It cuts these off, in their
// order, where they were at the checkpoint, so that all files together hold each record once. The new file tells a TensorBoard that
// has read more to forget it.
func resumeEvents(run *durable.Folder, size int64, of Subject) (Sink, error) {
	in := run.MakeIn(EventsFolder, 0o777)
	defer in.Close()
	s, err := resumeEventsIn(in, size, of)
	if err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	return s, nil
}

func resumeEventsIn(in *durable.Folder, size int64, of Subject) (Sink, error) {
	names, sizes, err := eventFiles(in)
	if err != nil {
		return nil, err
	}
	name := EventsName(of.Now)
	for i, old := range names {
		if old >= name { // the clock went back, or a part took less than a second
			name = after(old)
		}
		if size <= 0 {
			err = in.Remove(old)
		} else {
			err = cutEvents(in, old, min(size, sizes[i]))
		}
		if err != nil {
			return nil, err
		}
		size -= sizes[i]
	}
	file, err := in.CreateLog(name)
	if err != nil {
		return nil, err
	}
	return &events{lines: lines{w: file}, began: of.Began, resumes: of.Start + 1}, nil
}

// after is the name of the event file a second after another one.
func after(name string) string {
	var second int64
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, eventsStem), "%d", &second); err != nil || second < 0 {
		return name + eventsEnd // sorts behind it
	}
	return EventsName(time.Unix(second+1, 0))
}

// cutEvents cuts a file off behind the last whole event in its first size bytes.
func cutEvents(in *durable.Folder, name string, size int64) error {
	file, err := in.Append(name)
	if err != nil {
		return err
	}
	end, err := wholeEvents(file, size)
	if err == nil {
		err = file.Truncate(end)
	}
	return errors.Join(err, file.Close())
}

// wholeEvents returns the end of the last whole event in the first size bytes of a file. It needs the memory of one block.
func wholeEvents(file *os.File, size int64) (end int64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 1<<16)
	head := make([]byte, frameHead)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return end, ended(err)
		}
		n := binary.LittleEndian.Uint64(head)
		if n > eventMax || binary.LittleEndian.Uint32(head[8:]) != maskedCRC(head[:8]) {
			return end, nil
		}
		if _, err := r.Discard(int(n) + frameTail); err != nil {
			return end, ended(err)
		}
		end += frameHead + int64(n) + frameTail
	}
}

// ended turns the error at the end of a file into nil.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
