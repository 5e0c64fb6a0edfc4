package files

import (
	"bufio"
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

// Source reads a file, unpacks it if its first bytes are those of gzip, and hashes the unpacked bytes.
type Source struct {
	Path  string
	Bytes int64 // unpacked, so far
	Size  int64 // of the file on disk; -1: not known

	packing string // "": none
	file    io.Closer
	closer  interface{ Close() } // of the decoder; nil: it needs none
	r       io.Reader
	hash    hash.Hash
}

// Missing is the error for a missing file. It is an fs.ErrNotExist.
type Missing string

func (m Missing) Error() string { return string(m) }

func (m Missing) Is(target error) bool { return target == fs.ErrNotExist }

// open opens path. If it does not exist, it opens the packed file beside it, as path.gz, or the unpacked one, as path without .gz. hint
// says where to get a missing file.
func open(path, hint string) (*Source, error) {
	f, err := openFile(path, hint)
	if err != nil {
		return nil, err
	}
	return NewSource(f.Name(), f, sizeOf(f))
}

func openFile(path, hint string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("data: path is empty")
	}
	f, err := durable.OpenStream(path)
	if errors.Is(err, fs.ErrNotExist) {
		others := otherNames(path)
		for _, other := range others {
			if f, err = durable.Open(other); !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, Missing(fmt.Sprintf("data: %s does not exist, nor does %s; %s", path, strings.Join(others, " or "), hint))
		}
	}
	var failed *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		way := "name the folder itself, not a file in it"
		if hint == TextHint {
			way = "did you mean " + fileAbove(path) + "?"
		}
		return nil, fmt.Errorf("data: %s lies below a file; %s", path, way)
	case errors.As(err, &failed) && errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("data: %w; check the file's permissions", err)
	case err != nil && IsFolder(path):
		return nil, fmt.Errorf("data: %s is a folder, want a file", path)
	case err != nil:
		return nil, fmt.Errorf("data: %w", err)
	}
	return f, nil
}

// TextHint is the hint of readers of text files, whose keys have the paths themselves.
const TextHint = "check path and test of the data set"

// fileAbove is the file in a path that cannot go on below it.
func fileAbove(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && !info.IsDir() || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// IsFile says whether a path is that of a file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// IsFolder says whether a path is that of a folder.
func IsFolder(path string) bool {
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

// NewSource makes the source of an open file, and unpacks it if its first bytes are those of a packed one. It closes the file if it fails.
func NewSource(path string, file io.ReadCloser, size int64) (*Source, error) {
	s := &Source{Path: path, file: file, Size: size, hash: sha256.New()}
	buffered := bufio.NewReaderSize(file, 1<<16)
	s.r = buffered
	head, _ := buffered.Peek(headBytes) // of a shorter file there are fewer; its parser reports what is missing
	if kind := kindOf(head); kind.unpack != nil {
		s.packing = kind.name
		var err error
		if s.r, err = kind.unpack(buffered); err != nil {
			file.Close()
			return nil, s.broken(err)
		}
		unpacked := bufio.NewReaderSize(s.r, 1<<16)
		s.closer, _ = s.r.(interface{ Close() })
		s.r = unpacked
		head, _ = unpacked.Peek(headBytes) // an error comes again, with its place
	}
	if kind := kindOf(head); kind.wayOut != "" {
		s.Close()
		return nil, fmt.Errorf("data: %s is %s; %s", path, kind.name, strings.ReplaceAll(kind.wayOut, "FILE", path))
	}
	return s, nil
}

// Packed says whether the file is unpacked while it is read.
func (s *Source) Packed() bool { return s.packing != "" }

// Close closes the file.
func (s *Source) Close() error {
	if s.closer != nil {
		s.closer.Close()
	}
	return s.file.Close()
}

// Read adds the file and the place to errors.
func (s *Source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.hash.Write(p[:n])
	s.Bytes += int64(n)
	if err != nil && err != io.EOF {
		err = s.broken(err)
	}
	return n, err
}

func (s *Source) broken(err error) error {
	switch {
	case s.Packed() && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		return fmt.Errorf("data: %s: %s data ends after %d unpacked bytes: the file is cut short; fetch it again", s.Path, s.packing, s.Bytes)
	case s.Packed() && !isOfSystem(err):
		return fmt.Errorf("data: %s: after %d unpacked bytes: %w: the file is damaged; fetch it again", s.Path, s.Bytes, err)
	}
	return fmt.Errorf("data: %s: after %d unpacked bytes: %w", s.Path, s.Bytes, err)
}

// deflateMost is the most bytes that one packed byte can unpack to, a limit of the format.
const deflateMost = 1032

// BytesMost is the most unpacked bytes that the file can have.
func (s *Source) BytesMost() int64 {
	switch {
	case s.Size < 0 || s.Size > math.MaxInt64/deflateMost:
		return math.MaxInt64
	case s.packing == gzipName:
		return s.Size * deflateMost
	case s.Packed():
		return math.MaxInt64
	}
	return s.Size
}

// Sum identifies the content of a file by its unpacked bytes, so it is the same whether it is packed or not.
type Sum struct {
	Path   string // the path that was opened
	Name   string // the last element of Path, without .gz, .bz2 or .zst
	Bytes  int64  // unpacked
	SHA256 string // of the unpacked bytes, in hex
	// Sampled: the file is mapped, and SHA256 is that of its size and of blocks of it.
	Sampled bool
	// Whole is the SHA-256 of all bytes of a file that is sampled, if somebody has asked for it.
	Whole string
}

// Sum identifies the file. It is called after everything has been read.
func (s *Source) Sum() Sum {
	return Sum{
		Path: s.Path, Name: unpackedName(filepath.Base(s.Path)),
		Bytes: s.Bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil)),
	}
}
