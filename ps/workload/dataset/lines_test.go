package dataset

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// textSets has, for each set that is read from text, the lines of two rows.
var textSets = map[string][]string{
	"csv":     {"1,2,0", "3,4,1", "5,6,0"},
	"libsvm":  {"0 1:1", "1 2:1 3:4", "1 1:5"},
	"ratings": {"1,2,3", "4,5,6,881250949", "7,8,9"},
}

// LF, CR LF and CR end a line, also mixed, and also if the end crosses the border of a buffer.
func TestLineEnds(t *testing.T) {
	for name, rows := range textSets {
		for _, end := range []string{"\n", "\r\n", "\r", "\n\r", "\r\r\n\n"} {
			want := ""
			for _, times := range []int{1, 1000, 13001} { // the longer ones fill several buffers, with CR LF at every offset
				text := strings.Repeat(strings.Join(rows, end)+end, times)
				set, err := Load(Spec{Set: name, Path: filepath.Join(write(t, map[string]string{"a": text}), "a")})
				if err != nil {
					t.Fatalf("%s, lines that end with %q: %v", name, end, err)
				}
				if n := set.Train.Rows(); n != len(rows)*times || len(set.Notes) > 0 {
					t.Errorf("%s, lines that end with %q: %d rows of %d, notes %q", name, end, n, len(rows)*times, set.Notes)
				}
				x, y := rowsOf(set.Train, 0, 1, 2)
				if got := fmt.Sprint(x, y); want == "" {
					want = got
				} else if got != want {
					t.Errorf("%s, lines that end with %q: rows %s, want %s", name, end, got, want)
				}
			}
		}
	}
}

// A character that other programs take for the end of a line is refused with its place.
func TestOtherLineEndsAreRefused(t *testing.T) {
	for name, rows := range textSets {
		for end, want := range map[string]string{
			"\u0085": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029", "\v": "U+000B", "\f": "U+000C", "\x1e": "U+001E",
			"\x00": "a byte 0", "\x1b[2J": "U+001B",
		} {
			text := rows[0] + "\n" + rows[1] + end + rows[2] + "\n"
			_, err := Load(Spec{Set: name, Path: filepath.Join(write(t, map[string]string{"a": text}), "a")})
			if place := fmt.Sprintf("a:2:%d: ", len(rows[1])+1); err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), place) {
				t.Errorf("%s, lines that end with %q: %v; must name %s at %s", name, end, err, want, place)
			}
		}
	}
}

// The fields after a rating must be its time. Otherwise the line is refused, because it may hold several ratings.
func TestFieldsAfterARating(t *testing.T) {
	for text, fine := range map[string]bool{
		"1,2,3,978300760": true, "1,2,3,978300760.5": true, "1,2,3,2005-09-06": true, `1,2,3,"2005-04-02 23:53:47"`: true,
		"1,2,3,2005/09/06 7:00":      true,
		"1,2,3,2005-09-06T07:00:00Z": true, "1,2,3,2005-09-06T07:00:00.123+02:00": true, "1,2,3,06.09.2005": true,
		"1,2,3,20050906T070000Z": true, `1,2,3,"2005-09-06","7:00"`: true,
		"1,2,34,5,6": false, "1,2,3 4,5,6": false, "1,2,3,4,5,6": false, "1,2,3,Jumanji": false, "1,2,3,4 5": false, "1,2,3,1-2 3:4 5": false,
		"1,2,3,-": false, "1,2,3,T": false, "1,2,3,": false, "1,2,3,+1": false, "1,2,3,:": false, "1,2,3,4.5": false,
		"1,2,3,1-2": false, "1,2,3,Z": false, `1,2,3,""`: false, "1,2,3,2005-09-06T": false,
		"1,2,3,2005-09-06,": false, "1,2,3,,7:00": false, "1,2,3,..": false, "1,2,3,-- ::": false,
	} {
		_, err := Load(Spec{Set: "ratings", Path: filepath.Join(write(t, map[string]string{"a": "0,0,1\n" + text + "\n"}), "a")})
		if fine && err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if !fine && (err == nil || !strings.Contains(err.Error(), "a:2: ") || !strings.Contains(err.Error(), "after row,column,value")) {
			t.Errorf("%q: %v; must be refused, with its line", text, err)
		}
	}
}

// A file that was cut in the middle of a number may still be valid. A note says that its last line has no end.
func TestALastLineWithoutAnEndIsNoted(t *testing.T) {
	for name, rows := range textSets {
		dir := write(t, map[string]string{"a": strings.Join(rows, "\n"), "b": strings.Join(rows, "\n") + "\n"})
		for file, notes := range map[string]int{"a": 1, "b": 0} {
			set, err := Load(Spec{Set: name, Path: filepath.Join(dir, file)})
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Notes) != notes || notes > 0 && !strings.Contains(set.Notes[0], "line 3, the last, has no newline") {
				t.Errorf("%s of %s: notes %q", file, name, set.Notes)
			}
		}
	}
}

// bomb compresses so many bytes of a repeated text, without holding them in memory.
func bomb(t *testing.T, path, head, text string, times int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, _ := gzip.NewWriterLevel(f, gzip.BestSpeed)
	_, _ = io.WriteString(w, head)
	block := strings.Repeat(text, 1<<16/len(text))
	for range times * len(text) / len(block) {
		if _, err := io.WriteString(w, block); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// peak is the largest growth of the heap while something runs.
func peak(run func()) int64 {
	before := heap()
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), int64(m.HeapInuse)))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	run()
	close(stop)
	<-done
	return most.Load() - before
}

// A file that unpacks to more than the memory limit is refused before it exceeds the limit.
func TestReadersKeepWithinTheirMemory(t *testing.T) {
	const limit, unpacked = 8 << 20, 48 << 20
	zeros := strings.Repeat("\x00", 1<<10)
	for _, c := range []struct{ set, head, text, want string }{
		{"idx", idx(0x803, []uint32{unpacked / 784, 28, 28}), zeros, "cluster.memory_max"},
		{"idx", idx(0x803, []uint32{1, 1, 2}), zeros, "promise 2 bytes of values, the file has more"},
		{"idx", "", zeros, "magic number at offset 0 is 0x00000000"},
		{"cifar10", "", zeros, "cluster.memory_max"},
		{"csv", "", zeros, "longer than 1048576 bytes"},
		{"csv", "", "1", "longer than 1048576 bytes"},
		{"csv", "", "1,", "longer than 1048576 bytes"},
		{"csv", "", strings.Repeat("1,", 1<<10) + "0\n", "cluster.memory_max"},
		{"csv", "\"", "1,0\n", "quote"},
		{"csv", "", "1,0\n", "cluster.memory_max"},
		{"libsvm", "", "1 ", "longer than 1048576 bytes"},
		{"libsvm", "", "1 1:1 2:1\n", "cluster.memory_max"},
		{"libsvm", "", "1\n", "cluster.memory_max"},
		{"libsvm", "1 1:", "1", "longer than 1048576 bytes"},
		{"ratings", "", "1 ", "longer than 1048576 bytes"},
		{"ratings", "", "1 2 3\n", "cluster.memory_max"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		switch c.set {
		case "idx":
			path, dir = filepath.Join(dir, "train-images-idx3-ubyte.gz"), ""
		case "cifar10":
			path, dir = filepath.Join(dir, "data_batch_1.bin.gz"), ""
		}
		bomb(t, path, c.head, c.text, unpacked/len(c.text))
		spec := Spec{Set: c.set, Path: path, Memory: limit}
		if dir == "" {
			spec.Path = filepath.Dir(path)
		}
		var err error
		took := peak(func() { _, err = Load(spec) })
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s of %.10q: error %.200v, want %q in it", c.set, c.text, err, c.want)
		}
		if took > 3*limit+8<<20 { // up to half of it may be garbage that has not been collected yet
			t.Errorf("%s of %.10q: the heap grew by %d bytes, but rows may take %d", c.set, c.text, took, limit)
		}
	}
}

// A header that promises more values than the file can hold, compressed or not, is refused before memory is allocated for them.
func TestAPromiseThatTheFileCannotHold(t *testing.T) {
	head := idx(0x803, []uint32{1 << 20, 28, 28}, 1)
	for name, content := range map[string]string{"train-images-idx3-ubyte": head, "train-images-idx3-ubyte.gz": head} {
		var err error
		dir := write(t, map[string]string{name: content})
		took := peak(func() { _, err = Load(Spec{Set: "idx", Path: dir}) })
		if err == nil || !strings.Contains(err.Error(), "promise 822083584 bytes of values, the file has") || took > 16<<20 {
			t.Errorf("%s: %v, and the heap grew by %d bytes", name, err, took)
		}
	}
}

// A FIFO without a writer is not read, and neither is a device.
func TestDataAreRegularFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "train-images-idx3-ubyte"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "data_batch_1.bin.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, path, want string }{
		{"csv", fifo, "a FIFO"}, {"libsvm", fifo, "a FIFO"}, {"ratings", fifo, "a FIFO"}, {"idx", dir, "a FIFO"}, {"cifar10", dir, "a FIFO"},
		{"csv", "/dev/zero", "a device"}, {"libsvm", "/dev/null", "a device"},
	} {
		if _, err := Load(Spec{Set: c.set, Path: c.path}); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "must be a regular file") {
			t.Errorf("%s of %s: %v", c.set, c.path, err)
		}
	}
}

// An error about a value of megabytes quotes only its beginning.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	digits := strings.Repeat("7", 1<<19)
	for name, line := range map[string]string{"csv": "1," + long, "libsvm": "1 " + long, "ratings": "1,2," + long,
		"csv ": "1," + digits, "csv  ": digits + ",0", "libsvm ": digits + " 1:1", "libsvm  ": "1 " + digits + ":1", "libsvm   ": "1 1:" + digits,
		"ratings ": "1,2," + digits, "ratings  ": digits + ",2,-" + long, " ratings": "-" + digits + ",1,1", "  ratings": long + ",NA,1"} {
		name = strings.TrimSpace(name)
		_, err := Load(Spec{Set: name, Path: filepath.Join(write(t, map[string]string{"a": line + "\n"}), "a")})
		if err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: an error of %d bytes", name, len(fmt.Sprint(err)))
		}
	}
}

// The checksum of a set does not depend on the memory limit, and is that from before the limit existed.
func TestTheSumOfASetDoesNotKnowItsMemory(t *testing.T) {
	dir := write(t, map[string]string{"a": "1,2,0\n"})
	for _, memory := range []int64{0, 1 << 20} {
		set, err := Load(Spec{Set: "csv", Path: filepath.Join(dir, "a"), Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := set.SHA256(), "5b84a5edd9e101f28621f16a76bf2929b3baa994ad4c0c2bd134ca00c58777c5"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
