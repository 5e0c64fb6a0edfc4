package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/lock"
)

// A run that goes on from a checkpoint goes on in its folder: what its metrics files have behind the checkpoint is cut
// off, and logs are appended to.

// OpenRunFolder takes up the folder of a run that is to go on.
func OpenRunFolder(dir string) (*RunFolder, error) {
	f := At(dir)
	err := f.Err()
	if err == nil {
		err = f.admit()
	} else {
		err = folderError(dir, err)
	}
	if err == nil {
		logs := f.MakeIn("logs", 0o777)
		if err = errors.Join(logs.Err(), logs.Close()); err != nil {
			err = folderError(dir, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// IsRunFolder says whether a run has begun in the folder: it makes logs, then the lock, then the rest.
func IsRunFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if name := e.Name(); name == "run.json" || name == lock.Name || name == "logs" && len(entries) == 1 {
			return true
		}
	}
	return false
}

func sinkName(name string) string { return "metrics." + name }

// SinkSizes says how many bytes the files of the sinks have, by name; of one that is not there, 0.
func (f *RunFolder) SinkSizes(names []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range names {
		if info, err := f.Lstat(sinkName(name)); err == nil {
			sizes[name] = info.Size()
		}
	}
	return sizes
}

// ResumeSinks is OpenSinks where the files may be there: each is cut off at its size of then, and appended to. One that
// lost its end in a crash is cut off behind its last whole line. A table keeps the columns that it has.
func (f *RunFolder) ResumeSinks(names []string, sizes map[string]int64, rules int) (Sink, error) {
	var all sinks
	for _, name := range names {
		s, err := f.resumeSink(name, sizes[name], rules)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

func (f *RunFolder) resumeSink(name string, size int64, rules int) (Sink, error) {
	if !slices.Contains(sinkNames, name) {
		return nil, unknownSink(name)
	}
	file, err := f.Append(sinkName(name))
	if err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	end, err := wholeLines(file, size)
	if err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: resume sink: %w", err), file.Close())
	}
	if name == "jsonl" {
		return JSONL(file), nil
	}
	s := &csv{lines: lines{w: file}, names: ColumnNames(rules)}
	if end == 0 {
		return s, nil
	}
	if s.names, err = columnsOf(file, end); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: resume sink: %s: %w", sinkName(name), err), file.Close())
	}
	s.headed = true
	return s, nil
}

// wholeLines says where the last line ends that does so in the first bytes of a file, so many or as many as there are. It takes the
// memory of a block, however long the file is, or is said to be.
func wholeLines(file *os.File, size int64) (end int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 1<<16)
	for end = max(0, min(size, info.Size())); end > 0; {
		part := block[:min(end, int64(len(block)))]
		from := end - int64(len(part))
		if _, err := file.ReadAt(part, from); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// headMax is more bytes than the columns of a table have, however many rules there are.
const headMax = 1 << 20

// columnsOf are the names in the first line of a table of so many bytes.
func columnsOf(file io.ReaderAt, size int64) ([]string, error) {
	text := make([]byte, min(size, headMax))
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, err
	}
	at := bytes.IndexByte(text, '\n')
	if at < 0 {
		return nil, fmt.Errorf("line 1 has more than %d bytes, and is no header of ours; move the file out of the folder", headMax)
	}
	return strings.Split(string(text[:at]), ","), nil
}

// KeptIterations gives the rows of the iterations file of the run folder that come before the iteration which each of
// those that compute goes on with, and how many iterations before it have none. The file is written when a part of the run
// ends, so that one that was killed leaves no rows, and perhaps no file.
func (f *RunFolder) KeptIterations(starts []int64) (kept []byte, lacks int64, err error) {
	for _, n := range starts {
		lacks += n
	}
	text, err := f.ReadFile(IterationsName, iterationsBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lacks, nil
	}
	if err != nil {
		return nil, lacks, fmt.Errorf("%s: %w; make it readable, or remove it: the times before are lost then", IterationsName, err)
	}
	rows, found := bytes.CutPrefix(text, IterationsHeader())
	if !found {
		return nil, lacks, fmt.Errorf("%s: line 1 is not the header of iterations, so that no rows are added to it; remove the file, or go on with the program that wrote it", IterationsName)
	}
	kept = rows[:0]
	for row := range bytes.Lines(rows) {
		cells := bytes.SplitN(row, []byte{','}, 3)
		if len(cells) < 3 {
			continue
		}
		worker, errW := strconv.Atoi(string(cells[0]))
		iter, errI := strconv.ParseInt(string(cells[1]), 10, 64)
		if errW == nil && errI == nil && worker >= 0 && worker < len(starts) && iter < starts[worker] {
			kept = append(kept, row...)
			lacks--
		}
	}
	return kept, lacks, nil
}
