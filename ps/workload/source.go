package workload

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
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// source reads a file, unpacks it when its first bytes say gzip, and sums what it delivers.
type source struct {
	path  string
	file  *os.File
	r     io.Reader
	gz    bool
	hash  hash.Hash
	bytes int64 // unpacked, so far
}

// missing is the error of a file that is not there: an fs.ErrNotExist.
type missing string

func (m missing) Error() string { return string(m) }

func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// open opens path, or path.gz where only that exists. hint says where to get a missing file.
func open(path, hint string) (*source, error) {
	if path == "" {
		return nil, errors.New("data: path is empty")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		other, isPacked := strings.CutSuffix(path, ".gz") // whoever unpacked the file need not edit the config
		if !isPacked {
			other = path + ".gz"
		}
		packed, err := os.Open(other)
		if err != nil {
			return nil, missing(fmt.Sprintf("data: %s does not exist, nor does %s; %s", path, other, hint))
		}
		f = packed
	} else if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("data: %s lies below a file; name the folder itself, not a file in it", path)
	} else if err != nil {
		return nil, fmt.Errorf("data: %w; check the file's permissions", err)
	}
	s := &source{path: f.Name(), file: f, hash: sha256.New()}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("data: %s is a folder, want a file", s.path)
	}
	buffered := bufio.NewReaderSize(f, 1<<16)
	s.r = buffered
	// Fewer than two bytes are no gzip; whoever parses them says what is missing.
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		s.gz = true
		if s.r, err = gzip.NewReader(buffered); err != nil {
			f.Close()
			return nil, s.broken(err)
		}
	}
	return s, nil
}

// Read makes errors name the file and the place.
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

// readAll returns the unpacked bytes.
func (s *source) readAll() ([]byte, error) {
	b, err := io.ReadAll(s)
	if err != nil {
		return nil, err // Read has named the file
	}
	return b, nil
}

// sum is for when everything has been read.
func (s *source) sum() FileSum {
	return FileSum{
		Path: s.path, Name: strings.TrimSuffix(filepath.Base(s.path), ".gz"),
		Bytes: s.bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil)),
	}
}

// readFile returns the unpacked bytes of a file and adds its sum to sums.
func readFile(path, hint string, sums *[]FileSum) ([]byte, error) {
	s, err := open(path, hint)
	if err != nil {
		return nil, err
	}
	defer s.file.Close()
	b, err := s.readAll()
	if err != nil {
		return nil, err
	}
	*sums = append(*sums, s.sum())
	return b, nil
}

// unmarked is a text without the byte order mark that some editors and spreadsheets put before it.
func unmarked(r io.Reader) io.Reader {
	text := bufio.NewReaderSize(r, 1<<16)
	if mark, _ := text.Peek(3); string(mark) == "\xef\xbb\xbf" {
		text.Discard(len(mark)) // which cannot fail: they are buffered
	}
	return text
}
