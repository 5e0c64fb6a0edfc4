// Package checkpoint writes and reads the checkpoints of a run: folders of files, one per server and per worker, and a
// manifest that names them all.
//
//	checkpoints/000000000007/        the newest checkpoint is the one with the largest number
//	  server-0000.bin ...            parameters, optimizer state and counters of the shards of a server
//	  worker-0000.bin ...            the state of a worker
//	  manifest.json                  written last: sizes and checksums of the other files, the place of each parameter in them,
//	                                 the configuration, the position of the run
//	checkpoints/best.json            names the checkpoint with the best result on the test set, if checkpoint.best asks for one
//
// A checkpoint exists completely or not at all. While it is written, its folder has another name. Every file and the folder are synced
// before the folder gets its final name, so a crash at any time leaves a folder that no reader takes for a checkpoint. Damage by the file
// system is found when the checkpoint is read: the manifest has the checksums of all files, and ends with one of its own text.
//
// The package handles folders, files and checksums, and finds the tensors that a manifest lists. README.md describes the format for
// readers in other languages. The meaning of the states is up to the caller.
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

	"fluentps/internal/disk/durable"
)

// Format is the number of the layout that this program writes. The program also reads FormatLined: a manifest without a list of
// parameters, with the checksum in a line after the JSON.
const (
	Format      = 2
	FormatLined = 1
)

// Folder is the name of the folder of checkpoints in a run folder.
const Folder = "checkpoints"

const (
	manifestName = "manifest.json"
	programName  = "fluentps" // distinguishes our manifest.json from another program's
	newName      = ".new"     // begins the name of the folder of a checkpoint that is being written
	oldPrefix    = ".old-"    // begins the name of a folder that is being removed
	nameDigits   = 12
	sumPrefix    = ",\n  \"crc32c\": \"" // begins the last member of a manifest
	sumSuffix    = "\"\n}\n"
	linePrefix   = "crc32c " // begins the last line of a manifest of FormatLined
	manifestMax  = 256 << 20 // bytes of a manifest: ten times those of 100,000 workers with as many evaluations
)

// Targets says what a prediction p is in the unit of the files: Mean + Deviation*p.
type Targets struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// Manifest says what a checkpoint holds.
type Manifest struct {
	Program   string    `json:"program"`
	Format    int       `json:"format"`
	Number    int64     `json:"number"` // the number in the name of the folder
	Written   time.Time `json:"written"`
	Start     string    `json:"start,omitempty"` // token of the start that made it; "": of a version that had none
	Build     string    `json:"build"`           // version and commit of the program
	Iteration int64     `json:"iteration"`
	Samples   int64     `json:"samples"` // over all workers
	Servers   int       `json:"servers"`
	Workers   int       `json:"workers"`
	Computing int       `json:"computing"`         // ranks that compute for the workers
	Starts    []int64   `json:"starts"`            // by worker: its next iteration
	Data      string    `json:"data_sha256"`       // of the data set
	Classes   []string  `json:"classes,omitempty"` // their names, if they are not the numbers from 0
	// Inputs say how the columns of a table become the inputs of the model: a list of csv.Input. None: the data are no table.
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Targets *Targets        `json:"targets,omitempty"` // what predictions mean, if they are not numbers as the files have them
	// KernelSets are the kernel sets that computed the parameters, in order and without repetition. It is empty in checkpoints of
	// versions that did not record them.
	KernelSets []string          `json:"kernel_sets,omitempty"`
	Digest     string            `json:"config_sha256"`
	Config     map[string]string `json:"config"` // every value by its path
	State      json.RawMessage   `json:"state"`  // the counters of rank 0, and the lengths of its metrics files
	Files      []Entry           `json:"files"`
	// Parameters are the parameters of the model, in model order. Optimizer is the optimizer state of the servers. Both are empty in
	// checkpoints of FormatLined, and if the plan cuts the parameters into more than RangesMax ranges.
	Parameters []Tensor `json:"parameters,omitempty"`
	Optimizer  []Tensor `json:"optimizer,omitempty"`
}

// Entry is one file of a checkpoint.
type Entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"` // of all bytes of the file
}

// ServerFile returns the name of the file of server i.
func ServerFile(i int) string { return fmt.Sprintf("server-%04d.bin", i) }

// WorkerFile returns the name of the file of worker i.
func WorkerFile(i int) string { return fmt.Sprintf("worker-%04d.bin", i) }

// File returns the entry of a file. It fails if the checkpoint does not have that file.
func (m *Manifest) File(name string) (Entry, error) {
	i := slices.IndexFunc(m.Files, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, fmt.Errorf("%s does not list %s among its %d files", manifestName, name, len(m.Files))
	}
	return m.Files[i], nil
}

// castagnoli selects CRC-32C, for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// List returns the folders of the finished checkpoints in root, the newest first. It returns none if root does not exist.
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

// numberOf returns the number in the name of a finished checkpoint. The result is false for every other name.
func numberOf(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n > 0 && name == nameOf(n)
}

func nameOf(n int64) string { return fmt.Sprintf("%0*d", nameDigits, n) }

// Dir is the folder of the checkpoint of a number in a run folder, and NumberOf the number of such a folder; 0: it is none.
func Dir(run string, number int64) string { return filepath.Join(run, Folder, nameOf(number)) }

// NumberOf is the reverse of Dir.
func NumberOf(dir string) int64 {
	n, ok := numberOf(filepath.Base(dir))
	if !ok {
		return 0
	}
	return n
}

// Open reads the manifest of a checkpoint. It fails if the manifest is missing, damaged, of another program, or of a later format.
func Open(dir string) (*Manifest, error) {
	text, err := durable.ReadFile(filepath.Join(dir, manifestName), manifestMax)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("checkpoint %s: there is no %s; it is not a checkpoint, or it is damaged", dir, manifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	m, err := parse(text)
	// the folder of a replica has another kind of name
	if n, finished := numberOf(filepath.Base(dir)); err == nil && finished && m.Number != n {
		err = fmt.Errorf("number is %d, but the folder has number %d: one of the two was changed", m.Number, n)
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
		return nil, fmt.Errorf("its text is not what was written: its crc32c is %08x, but it says %08x", got, sum)
	}
	if text[len(text)-2] != '}' { // the last line of FormatLined is not JSON
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
		return nil, fmt.Errorf("it has format %d, but this program reads formats %d to %d; resume with the program that "+
			"wrote it", head.Format, FormatLined, Format)
	}
	m := new(Manifest)
	if err := Decode(text, m); err != nil {
		return nil, err
	}
	return m, m.check()
}

const sumDigits = 8

// cutSum splits a manifest into the checksum and the text that the checksum covers.
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

// Seal adds the checksum to the JSON text of a manifest. The checksum is the last member, crc32c: 8 hexadecimal digits that cover all
// bytes before the comma in front of that member. In FormatLined it is a line after the text: the word crc32c, a blank and the digits.
func Seal(text []byte, format int) []byte {
	if format == FormatLined {
		return fmt.Appendf(slices.Clip(text), "%s%0*x\n", linePrefix, sumDigits, crc32.Checksum(text, castagnoli))
	}
	text = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(text, " \n"), []byte("}")), " \n")
	return fmt.Appendf(slices.Clip(text), "%s%0*x%s", sumPrefix, sumDigits, crc32.Checksum(text, castagnoli), sumSuffix)
}

const (
	// CountMax bounds every count in a checkpoint, so that sums and differences of a few counts do not overflow.
	CountMax  = 1 << 60
	ranksMax  = 1 << 20
	fileBytes = 1 << 50
)

// Within returns an error if a field of a checkpoint has a value outside least to most, which no run writes.
func Within(field string, value, least, most int64) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d, must be %d to %d: no run writes such a value", field, value, least, most)
	}
	return nil
}

// check verifies what readers of a manifest rely on.
func (m *Manifest) check() error {
	if m.Servers < 1 || m.Workers < 1 || len(m.Starts) != m.Workers {
		return fmt.Errorf("it names %d servers, %d workers and %d positions in the data", m.Servers, m.Workers, len(m.Starts))
	}
	problems := []error{Within("number", m.Number, 0, CountMax), Within("iteration", m.Iteration, 0, CountMax),
		Within("samples", m.Samples, 0, CountMax),
		Within("servers", int64(m.Servers), 1, ranksMax), Within("workers", int64(m.Workers), 1, ranksMax),
		Within("computing", int64(m.Computing), 0, ranksMax)}
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

// checkFile returns an error if a file belongs to a server or worker that the run did not have.
func (m *Manifest) checkFile(name string) error {
	of, field, most := ServerFile, "servers", m.Servers
	if strings.HasPrefix(name, "worker") {
		of, field, most = WorkerFile, "workers", m.Workers
	}
	if i := fileIndex(name); i >= most {
		return fmt.Errorf("%s is %d, but it names a file %q: the last one must be %q", field, most, name, of(most-1))
	}
	return nil
}

// isFile reports whether a name is that of a server's or worker's file.
func isFile(name string) bool {
	for _, of := range []func(int) string{ServerFile, WorkerFile} {
		if n := fileIndex(name); n >= 0 && n < ranksMax && of(n) == name {
			return true
		}
	}
	return false
}

// fileIndex returns the index in the name of a file, or -1.
func fileIndex(name string) int {
	_, digits, _ := strings.Cut(strings.TrimSuffix(name, ".bin"), "-")
	if n, err := strconv.Atoi(digits); err == nil {
		return n
	}
	return -1
}

// Whole returns why a checkpoint cannot be read; nil if its manifest is whole and all its files have the lengths in it.
func Whole(dir string) error {
	m, err := Open(dir)
	if err != nil {
		return err
	}
	for _, e := range m.Files {
		f, err := openEntry(filepath.Join(dir, e.Name), e)
		if err != nil {
			return fmt.Errorf("checkpoint %s: %s: %w", dir, e.Name, err)
		}
		_ = f.Close()
	}
	return nil
}
