package durable

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// ReadFile returns the content of a regular file of at most most bytes. A small file of a run that exceeds that is
// another file, and would only fill the memory.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, most)
}

func readAll(f *os.File, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%q has more than %d bytes, the limit: it is damaged, or another file", f.Name(), most)
	}
	return data, err
}

// OpenStream is Open that also accepts streams passed to the process: /dev/stdin, and the /dev/fd/N that a shell writes
// for <(command). These may be pipes, which have writers already. Other spellings of these paths are not accepted,
// because /dev/fd/../../tmp/fifo begins like them.
func OpenStream(path string) (*os.File, error) {
	if path != "/dev/stdin" && !isDescriptor(path) {
		return Open(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, Regular(path, info.Mode())
	}
	return f, nil
}

// isDescriptor returns whether a path is /dev/fd/N.
func isDescriptor(path string) bool {
	n, found := strings.CutPrefix(path, "/dev/fd/")
	return found && n != "" && strings.Trim(n, "0123456789") == ""
}
