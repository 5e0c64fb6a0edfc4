package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/disk/lock"
)

// A run that resumes from a checkpoint uses the same folder. The rows of its metrics files after the checkpoint are cut off, and
// logs are appended to.

// OpenRunFolder opens the folder of a run that resumes.
func OpenRunFolder(dir string) (*RunFolder, error) {
	f := At(dir)
	err := f.Err()
	if err == nil {
		err = f.checkOwner()
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

// IsRunFolder says whether a run has begun in the folder. A run makes logs first, then the lock, then all other files.
func IsRunFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if name := e.Name(); name == RunInfoName || name == lock.Name || name == "logs" && len(entries) == 1 {
			return true
		}
	}
	return false
}

// FindRun returns the run folder that a folder stands for: itself, or the newest run of an experiment. That is the one to which its link
// latest points, or the one of a job script, which makes no link, if it began later; or the only one. The points of a sweep are no
// experiment: one of them must be named.
func FindRun(dir string) (string, error) {
	if IsRunFolder(dir) {
		return dir, nil
	}
	entries, _ := os.ReadDir(dir) // what cannot be read has no runs
	newest, others := "", []string{}
	for _, e := range entries { // sorted by name, and those that run has named begin with the time
		switch name := e.Name(); {
		case !e.IsDir() || !IsRunFolder(filepath.Join(dir, name)):
		case isStamped(name):
			newest = name
		default:
			others = append(others, name)
		}
	}
	if link, err := os.Readlink(filepath.Join(dir, latestLink)); err == nil && IsRunFolder(filepath.Join(dir, link)) {
		newest = link
	}
	switch {
	case len(others) > 1:
		return "", fmt.Errorf("%s is not the folder of one run: it has %d, such as %s; name one of them", dir, len(others),
			foreign.Word(filepath.Join(dir, others[0])))
	case len(others) == 1 && (newest == "" || beganAt(filepath.Join(dir, others[0])).After(beganAt(filepath.Join(dir, newest)))):
		newest = others[0]
	case newest == "":
		return "", fmt.Errorf("%s is not the folder of a run: it has neither run.json nor run.lock; name the folder that "+
			"run printed as \"Run folder\", or the one of an experiment, with a run in it", dir)
	}
	return filepath.Join(dir, newest), nil
}

// isStamped says whether run gave a folder its name.
func isStamped(name string) bool {
	stamp, _, _ := strings.Cut(name, "-")
	_, err := time.Parse(stampLayout, stamp)
	return err == nil
}

// beganAt is when a run began for the last time: it then writes run.json.
func beganAt(run string) time.Time {
	info, err := os.Stat(filepath.Join(run, RunInfoName))
	if err != nil {
		info, err = os.Stat(run)
	}
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func sinkName(name string) string { return "metrics." + name }

// SinkSizes returns the bytes of the files of the sinks, by the name of the sink. A missing file has none.
func (f *RunFolder) SinkSizes(names []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range names {
		switch name {
		case sinkTensorBoard:
			sizes[name] = f.eventsSize()
		case sinkOpenMetrics: // it has no past
		default:
			if info, err := f.Lstat(sinkName(name)); err == nil {
				sizes[name] = info.Size()
			}
		}
	}
	return sizes
}

// ResumeSinks is OpenSinks for a run that resumes. An existing file is cut off at the size that it had at the checkpoint, and
// appended to. A file that lost its end in a crash is cut off after its last whole line. A table keeps its columns.
func (f *RunFolder) ResumeSinks(names []string, sizes map[string]int64, of Subject) (Sink, error) {
	var all sinks
	for _, name := range names {
		s, err := f.resumeSink(name, sizes[name], of)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

func (f *RunFolder) resumeSink(name string, size int64, of Subject) (Sink, error) {
	switch {
	case !slices.Contains(sinkNames, name):
		return nil, unknownSink(name)
	case name == sinkTensorBoard:
		return f.resumeEvents(size, of)
	case name == sinkOpenMetrics:
		return f.openOpenMetrics(of), nil
	}
	file, end, err := f.appendLines(sinkName(name), size)
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

// AppendLines opens a file of lines to append to it, and makes it if there is none. A kill can tear the last line of a file, and the next
// line would be joined to what is left of it: so what is torn is cut off.
func (f *RunFolder) AppendLines(name string) (*os.File, error) {
	file, _, err := f.appendLines(name, math.MaxInt64)
	return file, err
}

// appendLines cuts a file off behind the last whole line in its first size bytes, and opens it to append to it. end is its new size.
func (f *RunFolder) appendLines(name string, size int64) (file *os.File, end int64, err error) {
	if file, err = f.Append(name); err != nil {
		return nil, 0, err
	}
	if end, err = wholeLines(file, size); err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, end, nil
}

// wholeLines returns the end of the last whole line in the first size bytes of a file, which may be shorter. It needs the memory
// of one block, however large the file or size is.
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

// KeptIterations returns the rows of the iterations file that a run keeps when it resumes: those of each worker w before iteration
// starts[w]. lacks is the number of iterations before these that have no row. A part of a run writes the file when it ends, so a
// part that was killed leaves no rows, and perhaps no file.
func (f *RunFolder) KeptIterations(starts []int64) (kept []byte, lacks int64, err error) {
	for _, n := range starts {
		lacks += n
	}
	text, err := f.ReadFile(IterationsName, iterationsBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lacks, nil
	}
	if err != nil {
		return nil, lacks, fmt.Errorf("%s: %w; make it readable, or remove it, which loses the times of the earlier "+
			"iterations", IterationsName, err)
	}
	rows, found := bytes.CutPrefix(text, IterationsHeader())
	samples := ""
	if !found { // rows of an earlier version
		samples = ",0"
		rows, found = bytes.CutPrefix(text, []byte(headers[len(iterationColumns)-1]+"\n"))
	}
	if !found {
		return nil, lacks, fmt.Errorf("%s: line 1 is not the header of iterations, so no rows are added to it; remove "+
			"the file, or resume with the program that wrote it", IterationsName)
	}
	for row := range bytes.Lines(rows) {
		cells := bytes.SplitN(row, []byte{','}, 3)
		if len(cells) < 3 {
			continue
		}
		worker, errW := strconv.Atoi(string(cells[0]))
		iter, errI := strconv.ParseInt(string(cells[1]), 10, 64)
		if errW == nil && errI == nil && worker >= 0 && worker < len(starts) && iter < starts[worker] {
			kept = append(append(append(kept, bytes.TrimSuffix(row, []byte{'\n'})...), samples...), '\n')
			lacks--
		}
	}
	return kept, lacks, nil
}
