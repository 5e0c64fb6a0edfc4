package dataset

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fluentps/internal/disk/durable"
)

// source reads a file, unpacks it if its first bytes are those of gzip, and hashes the unpacked bytes.
type source struct {
	path  string
	file  io.Closer
	r     io.Reader
	size  int64 // of the file on disk; -1: not known
	gz    bool
	hash  hash.Hash
	bytes int64 // unpacked, so far
}

// missing is the error for a missing file. It is an fs.ErrNotExist.
type missing string

func (m missing) Error() string { return string(m) }

func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// open opens path. If it does not exist, it opens path.gz, or path without .gz. hint says where to get a missing file.
func open(path, hint string) (*source, error) {
	if path == "" {
		return nil, errors.New("data: path is empty")
	}
	f, err := durable.OpenStream(path)
	if errors.Is(err, fs.ErrNotExist) {
		other, isPacked := strings.CutSuffix(path, ".gz") // a user who has unpacked the file need not edit the config
		if !isPacked {
			other = path + ".gz"
		}
		if f, err = durable.Open(other); errors.Is(err, fs.ErrNotExist) {
			return nil, missing(fmt.Sprintf("data: %s does not exist, nor does %s; %s", path, other, hint))
		}
	}
	var failed *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		way := "name the folder itself, not a file in it"
		if hint == textHint {
			way = "did you mean " + fileAbove(path) + "?"
		}
		return nil, fmt.Errorf("data: %s lies below a file; %s", path, way)
	case errors.As(err, &failed) && errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("data: %w; check the file's permissions", err)
	case err != nil && isFolder(path):
		return nil, fmt.Errorf("data: %s is a folder, want a file", path)
	case err != nil:
		return nil, fmt.Errorf("data: %w", err)
	}
	return newSource(f.Name(), f, sizeOf(f))
}

// textHint is the hint of readers of text files, whose keys have the paths themselves.
const textHint = "check path and test of the data set"

// fileAbove is the file in a path that cannot go on below it.
func fileAbove(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && !info.IsDir() || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// sizeOf is the size of a regular file, -1 of a pipe.
func sizeOf(f *os.File) int64 {
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return -1
}

// newSource makes the source of an open file. It closes the file if it cannot be unpacked.
func newSource(path string, file io.ReadCloser, size int64) (*source, error) {
	s := &source{path: path, file: file, size: size, hash: sha256.New()}
	buffered := bufio.NewReaderSize(file, 1<<16)
	s.r = buffered
	// A file of fewer than two bytes is not gzip. Its parser reports what is missing.
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		s.gz = true
		var err error
		if s.r, err = gzip.NewReader(buffered); err != nil {
			file.Close()
			return nil, s.broken(err)
		}
	}
	return s, nil
}

// Read adds the file and the place to errors.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.hash.Write(p[:n])
	s.bytes += int64(n)
	if err != nil && err != io.EOF {
		err = s.broken(err)
	}
	return n, err
}

func (s *source) broken(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || s.gz && errors.Is(err, io.EOF):
		return fmt.Errorf("data: %s: gzip data ends after %d unpacked bytes: the file is cut short; fetch it again", s.path, s.bytes)
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("data: %s: after %d unpacked bytes: %w: the file is damaged; fetch it again", s.path, s.bytes, err)
	}
	return fmt.Errorf("data: %s: after %d unpacked bytes: %w", s.path, s.bytes, err)
}

// deflateMost is the most bytes that one packed byte can unpack to, a limit of the format.
const deflateMost = 1032

// bytesMost is the most unpacked bytes that the file can have.
func (s *source) bytesMost() int64 {
	switch {
	case s.size < 0 || s.size > math.MaxInt64/deflateMost:
		return math.MaxInt64
	case s.gz:
		return s.size * deflateMost
	}
	return s.size
}

// sum identifies the file. It is called after everything has been read.
func (s *source) sum() FileSum {
	return FileSum{
		Path: s.path, Name: strings.TrimSuffix(filepath.Base(s.path), ".gz"),
		Bytes: s.bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil)),
	}
}
