package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/lock"
)

// A run that goes on from a checkpoint goes on in its folder: what its metrics files have behind the checkpoint is cut
// off, and logs are appended to.

// OpenRunFolder takes up the folder of a run that is to go on.
func OpenRunFolder(dir string) (*RunFolder, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o777); err != nil {
		return nil, folderError(dir, err)
	}
	return &RunFolder{Dir: dir}, nil
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

// RunFolders lists the folders below Root/Name that runs of that name were given, the newest first.
func RunFolders(s FolderSpec) []string {
	entries, err := os.ReadDir(filepath.Join(s.Root, s.Name))
	if err != nil {
		return nil // there are none yet, or the new run will say why it can make none
	}
	var dirs []string
	for _, e := range entries { // by name, which begins with the time
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(s.Root, s.Name, e.Name()))
		}
	}
	slices.Reverse(dirs)
	return dirs
}

func sinkPath(dir, name string) string { return filepath.Join(dir, "metrics."+name) }

// SinkSizes says how many bytes the files of the sinks have, by name; of one that is not there, 0.
func SinkSizes(dir string, names []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range names {
		if info, err := os.Stat(sinkPath(dir, name)); err == nil {
			sizes[name] = info.Size()
		}
	}
	return sizes
}

// ResumeSinks is OpenSinks where the files may be there: each is cut off at its size of then, and appended to. One that
// lost its end in a crash is cut off behind its last whole line. A table keeps the columns that it has.
func ResumeSinks(dir string, names []string, sizes map[string]int64, rules int) (Sink, error) {
	var all sinks
	for _, name := range names {
		s, err := resumeSink(sinkPath(dir, name), name, sizes[name], rules)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, s)
	}
	return all, nil
}

func resumeSink(path, name string, size int64, rules int) (Sink, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return openSink(path, name, rules)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	text = text[:min(int64(len(text)), max(0, size))]
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	if err := os.Truncate(path, int64(len(text))); err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("metrics: resume sink: %w", err)
	}
	switch name {
	case "jsonl":
		return JSONL(f), nil
	case "csv":
		s := &csv{lines: lines{w: f}, names: ColumnNames(rules)}
		if head, _, found := strings.Cut(string(text), "\n"); found {
			s.names, s.headed = strings.Split(head, ","), true
		}
		return s, nil
	}
	return nil, errors.Join(fmt.Errorf("metrics: sink %q is not known", name), f.Close())
}

// KeptIterations gives the rows of the iterations file of the run folder that come before the iteration which each of
// those that compute goes on with, and how many iterations before it have none. The file is written when a part of the run
// ends, so that one that was killed leaves no rows, and perhaps no file.
func KeptIterations(dir string, starts []int64) (kept []byte, lacks int64, err error) {
	for _, n := range starts {
		lacks += n
	}
	text, err := os.ReadFile(filepath.Join(dir, IterationsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lacks, nil
	}
	if err != nil {
		return nil, lacks, fmt.Errorf("%s: %w", IterationsName, err)
	}
	rows, found := bytes.CutPrefix(text, IterationsHeader())
	if !found {
		return nil, lacks, fmt.Errorf("%s: line 1 is not the header of iterations", IterationsName)
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
