package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"fluentps/internal/disk/durable"
)

// A run that resumes from a checkpoint uses the same folder. The rows of its metrics files after the checkpoint are cut off.

func sinkName(name string) string { return "metrics." + name }

// Sizes returns the bytes of the files of the sinks, by the name of the sink. A missing file has none.
func Sizes(in *durable.Folder, names []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range names {
		switch name {
		case sinkTensorBoard:
			sizes[name] = eventsSize(in)
		case sinkOpenMetrics: // it has no past
		default:
			if info, err := in.Lstat(sinkName(name)); err == nil {
				sizes[name] = info.Size()
			}
		}
	}
	return sizes
}

// Resume is Open for a run that resumes. An existing file is cut off at the size that it had at the checkpoint, and
// appended to. A file that lost its end in a crash is cut off after its last whole line. A table keeps its columns.
func Resume(in *durable.Folder, names []string, sizes map[string]int64, of Subject) (Sink, error) {
	var all sinks
	for _, name := range names {
		s, err := resumeSink(in, name, sizes[name], of)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

func resumeSink(in *durable.Folder, name string, size int64, of Subject) (Sink, error) {
	switch {
	case !slices.Contains(sinkNames, name):
		return nil, unknownSink(name)
	case name == sinkTensorBoard:
		return resumeEvents(in, size, of)
	case name == sinkOpenMetrics:
		return openOpenMetrics(in, of), nil
	}
	file, end, err := in.AppendLinesAt(sinkName(name), size)
	if err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	if name == sinkJSONL {
		return JSONL(file), nil
	}
	s := &csv{lines: lines{w: file}, names: ColumnNames(len(of.Rules))}
	if end == 0 {
		return s, nil
	}
	if s.names, err = columnsOf(file, end); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: resume sink: %s: %w", sinkName(name), err), file.Close())
	}
	s.headed = true
	return s, nil
}

// headMax is the most bytes of the header of a table. No number of rules makes it longer.
const headMax = 1 << 20

// columnsOf returns the names in the header of a table of so many bytes.
func columnsOf(file io.ReaderAt, size int64) ([]string, error) {
	text := make([]byte, min(size, headMax))
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, err
	}
	at := bytes.IndexByte(text, '\n')
	if at < 0 {
		return nil, fmt.Errorf("line 1 has more than %d bytes, so fluentps has not written it; move the file out of the folder", headMax)
	}
	return strings.Split(string(text[:at]), ","), nil
}
