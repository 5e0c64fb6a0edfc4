// Package checkpoint writes and reads the checkpoints of a run: folders of files, one per server and per worker, and a
// manifest that names them all.
//
//	checkpoints/000000000007/        the newest is the one with the largest number
//	  server-0000.bin ...            parameters, optimizer state, counters of the shards of a server
//	  worker-0000.bin ...            what a worker keeps beside the parameters
//	  manifest.json                  written last: sizes and checksums of the others, where in them each parameter lies, the
//	                                 configuration, where the run was
//	checkpoints/best.json            names the one that did best on the test set, where that is asked for
//
// A checkpoint is there whole or not at all. Its folder has another name while it is written, every file and the folder
// are synced before it gets its own, and a crash at any time leaves a folder that nobody takes for a checkpoint. What a
// file system damages later is found when it is read: the manifest ends with a checksum of its own text.
//
// The package knows folders, files and checksums, and finds the tensors that a manifest lists (README.md is the page of the format,
// for readers in other languages). What the states mean is the caller's.
package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fluentps/ps/durable"
)

// Format is the number of the layout that this program writes. It reads FormatLined, too: a manifest without a list of parameters,
// whose checksum stands in a line behind the JSON.
const (
	Format      = 2
	FormatLined = 1
)

// Folder is the name of the folder of a run's checkpoints in its run folder.
const Folder = "checkpoints"

const (
	manifestName = "manifest.json"
	programName  = "fluentps" // so that another program's manifest.json is told from ours
	newName      = ".new"     // the folder that is being written
	oldPrefix    = ".old-"    // of one that is being removed
	nameDigits   = 12
	sumPrefix    = ",\n  \"crc32c\": \"" // of the last member of a manifest
	sumSuffix    = "\"\n}\n"
	linePrefix   = "crc32c " // of the last line of a manifest of FormatLined
	manifestMax  = 256 << 20 // bytes of one: of 100,000 workers and as many evaluations it has a tenth of that
)

// Manifest says what a checkpoint holds.
type Manifest struct {
	Program   string    `json:"program"`
	Format    int       `json:"format"`
	Number    int64     `json:"number"` // of the checkpoint, as in the name of its folder
	Written   time.Time `json:"written"`
	Build     string    `json:"build"` // version and commit of the program
	Iteration int64     `json:"iteration"`
	Samples   int64     `json:"samples"` // over all workers
	Servers   int       `json:"servers"`
	Workers   int       `json:"workers"`
	Computing int       `json:"computing"`   // ranks that compute for the workers
	Starts    []int64   `json:"starts"`      // by worker: the iteration that it computes next
	Data      string    `json:"data_sha256"` // of the data set
	// KernelSets are all that its parameters were computed with, each once, in order; none in checkpoints of versions that did not
	// tell them.
	KernelSets []string          `json:"kernel_sets,omitempty"`
	Digest     string            `json:"config_sha256"`
	Config     map[string]string `json:"config"` // every value by its path
	State      json.RawMessage   `json:"state"`  // of rank 0: what it counts and where its metrics ended
	Files      []Entry           `json:"files"`
	// Parameters are those of the model, in its order, and Optimizer what its rule keeps of them. Both are empty in checkpoints of
	// FormatLined, and of plans that cut into more than RangesMax ranges.
	Parameters []Tensor `json:"parameters,omitempty"`
	Optimizer  []Tensor `json:"optimizer,omitempty"`
}

// Entry is one file of a checkpoint.
type Entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"` // of all its bytes
}

// ServerFile and WorkerFile name the files of a server or worker by its index.
func ServerFile(i int) string { return fmt.Sprintf("server-%04d.bin", i) }

// WorkerFile is ServerFile of a worker.
func WorkerFile(i int) string { return fmt.Sprintf("worker-%04d.bin", i) }

// File is the entry of a name; an error says that the checkpoint does not have it.
func (m *Manifest) File(name string) (Entry, error) {
	i := slices.IndexFunc(m.Files, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, fmt.Errorf("%s names no %s, but %d others", manifestName, name, len(m.Files))
	}
	return m.Files[i], nil
}

// castagnoli is CRC-32C, for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// List gives the folders of the finished checkpoints in root, the newest first. There may be no root.
func List(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if _, ok := numberOf(e.Name()); ok && e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	slices.Sort(dirs)
	slices.Reverse(dirs)
	return dirs, nil
}

// numberOf reads the name of a finished checkpoint.
func numberOf(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n > 0 && name == nameOf(n)
}

func nameOf(n int64) string { return fmt.Sprintf("%0*d", nameDigits, n) }

// Open reads the manifest of a checkpoint. The errors say what is wrong with it: missing, damaged, of another program, of
// a later format.
func Open(dir string) (*Manifest, error) {
	text, err := durable.ReadFile(filepath.Join(dir, manifestName), manifestMax)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("checkpoint %s: there is no %s; it is no checkpoint, or was damaged", dir, manifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	m, err := parse(text)
	if n, finished := numberOf(filepath.Base(dir)); err == nil && finished && m.Number != n { // replicas lie in other folders
		err = fmt.Errorf("number is %d, and its folder is that of number %d: one of the two was changed", m.Number, n)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %s: %w", dir, manifestName, err)
	}
	return m, nil
}

func parse(text []byte) (*Manifest, error) {
	sealed, sum, ok := cutSum(string(text))
	if !ok {
		if !strings.Contains(string(text), strconv.Quote(programName)) {
			return nil, errors.New("it is not a manifest of " + programName)
		}
		return nil, fmt.Errorf("its last line, with the checksum, is missing: it was cut off after %d bytes", len(text))
	}
	if got := crc32.Checksum([]byte(sealed), castagnoli); got != sum {
		return nil, fmt.Errorf("its text is not what was written: crc32c %08x, and it says %08x", got, sum)
	}
	if text[len(text)-2] != '}' { // the line of FormatLined is no JSON
		text = []byte(sealed)
	}
	var head struct {
		Program string
		Format  int
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Program != programName {
		return nil, errors.New("it is not a manifest of " + programName)
	}
	if head.Format < FormatLined || head.Format > Format {
		return nil, fmt.Errorf("it has format %d, and this program reads %d to %d; resume with the program that wrote it", head.Format, FormatLined, Format)
	}
	m := new(Manifest)
	if err := Decode(text, m); err != nil {
		return nil, err
	}
	return m, m.check()
}

const sumDigits = 8

// cutSum takes the checksum off a manifest, and gives the text that it is of.
func cutSum(text string) (sealed string, sum uint32, ok bool) {
	for _, form := range [][2]string{{sumPrefix, sumSuffix}, {linePrefix, "\n"}} {
		head, ended := strings.CutSuffix(text, form[1])
		if at := len(head) - sumDigits - len(form[0]); ended && at >= 0 && strings.HasPrefix(head[at:], form[0]) {
			n, err := strconv.ParseUint(head[len(head)-sumDigits:], 16, 32)
			return text[:at], uint32(n), err == nil
		}
	}
	return "", 0, false
}

// Seal ends the JSON text of a manifest with its checksum: a last member, crc32c, of all bytes before the comma that it follows, in 8
// hexadecimal digits. In FormatLined the text is followed by a line with the word, a blank and the digits.
func Seal(text []byte, format int) []byte {
	if format == FormatLined {
		return fmt.Appendf(slices.Clip(text), "%s%0*x\n", linePrefix, sumDigits, crc32.Checksum(text, castagnoli))
	}
	text = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(text, " \n"), []byte("}")), " \n")
	return fmt.Appendf(slices.Clip(text), "%s%0*x%s", sumPrefix, sumDigits, crc32.Checksum(text, castagnoli), sumSuffix)
}

const (
	// CountMax bounds every count in a checkpoint, so that sums and differences of a few stay within their type.
	CountMax  = 1 << 60
	ranksMax  = 1 << 20
	fileBytes = 1 << 50
)

// Within says which field of a checkpoint has a value that no run gives it.
func Within(field string, value, least, most int64) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d, must be %d to %d: no run has written that", field, value, least, most)
	}
	return nil
}

// check holds a manifest to what its readers rely on.
func (m *Manifest) check() error {
	if m.Servers < 1 || m.Workers < 1 || len(m.Starts) != m.Workers {
		return fmt.Errorf("it names %d servers, %d workers and %d positions in the data", m.Servers, m.Workers, len(m.Starts))
	}
	problems := []error{Within("number", m.Number, 0, CountMax), Within("iteration", m.Iteration, 0, CountMax), Within("samples", m.Samples, 0, CountMax),
		Within("servers", int64(m.Servers), 1, ranksMax), Within("workers", int64(m.Workers), 1, ranksMax), Within("computing", int64(m.Computing), 0, ranksMax)}
	for w, start := range m.Starts {
		problems = append(problems, Within(fmt.Sprintf("starts[%d]", w), start, 0, CountMax))
	}
	seen := map[string]bool{}
	for _, e := range m.Files {
		if !isFile(e.Name) || e.Bytes < 0 || e.Bytes > fileBytes || seen[e.Name] {
			return fmt.Errorf("it names a file %q of %d bytes", e.Name, e.Bytes)
		}
		seen[e.Name] = true
		problems = append(problems, m.checkFile(e.Name))
	}
	problems = append(problems, m.checkTensors())
	return cmp.Or(problems...)
}

// checkFile says that a file is of a server or worker that there was none of.
func (m *Manifest) checkFile(name string) error {
	of, field, most := ServerFile, "servers", m.Servers
	if strings.HasPrefix(name, "worker") {
		of, field, most = WorkerFile, "workers", m.Workers
	}
	if i := fileIndex(name); i >= most {
		return fmt.Errorf("%s is %d, and it names a file %q: the last of as many is %q", field, most, name, of(most-1))
	}
	return nil
}

// isFile says whether a name is that of a server's or worker's file.
func isFile(name string) bool {
	for _, of := range []func(int) string{ServerFile, WorkerFile} {
		if n := fileIndex(name); n >= 0 && n < ranksMax && of(n) == name {
			return true
		}
	}
	return false
}

// fileIndex is the index in the name of a file, or -1.
func fileIndex(name string) int {
	_, digits, _ := strings.Cut(strings.TrimSuffix(name, ".bin"), "-")
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return -1
}
