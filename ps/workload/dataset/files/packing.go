package files

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// kind is what a file is, by its first bytes.
type kind struct {
	magic  string
	at     int // where the magic bytes stand
	name   string
	unpack func(r *bufio.Reader) (io.Reader, error) // nil: it is not read
	wayOut string                                   // if it is not read: what to do
}

const (
	gzipName     = "gzip"
	parquetMagic = "PAR1"
)

// kinds are those that no reader of text or images takes for its own.
var kinds = []kind{
	{magic: "\x1f\x8b", name: gzipName, unpack: newGunzip},
	{magic: "BZh", name: "bzip2", unpack: func(r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{magic: "\x28\xb5\x2f\xfd", name: "zstd", unpack: newUnzstd},
	{magic: "\xfd7zXZ\x00", name: "packed with xz", wayOut: "unpack it: xz --decompress --keep FILE"},
	{magic: "7z\xbc\xaf\x27\x1c", name: "an archive of 7-Zip", wayOut: "unpack it: 7z x FILE"},
	{magic: "PK\x03\x04", name: "an archive of zip, as .xlsx of a spreadsheet and .npz of NumPy are, too",
		wayOut: "unpack it (unzip FILE), save the sheet as CSV, or set data.set: npy"},
	{magic: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", name: "a file of Excel or another program of Office", wayOut: "save the sheet as CSV (UTF-8)"},
	{magic: "\x89HDF\r\n\x1a\n", name: "a file of HDF5", wayOut: "write its arrays as files of NumPy, which data.set: npy maps:\n" +
		"  import h5py, numpy as np\n  with h5py.File(\"FILE\") as f:\n      print(list(f))\n      np.save(\"x.npy\", f[\"x\"])\n" +
		"      np.save(\"y.npy\", f[\"y\"])"},
	{magic: parquetMagic, name: "a file of Parquet", wayOut: "set data.set: parquet, which takes the keys of csv"},
	{magic: "ARROW1", name: "a file of Arrow or Feather", wayOut: `write it as CSV: pandas.read_feather("FILE").to_csv("FILE.csv", index=False)`},
	{magic: "\x93NUMPY", name: "an array of NumPy", wayOut: "set data.set: npy, and data.path to the folder of the .npy files"},
	{magic: "SQLite format 3\x00", name: "a database of SQLite", wayOut: `write a table as CSV: sqlite3 -header -csv FILE "SELECT * FROM t" >t.csv`},
	{magic: "X\n\x00\x00\x00", name: "an object of R", wayOut: `write it as CSV: write.csv(readRDS("FILE"), "FILE.csv", row.names=FALSE)`},
	{magic: "RDX", name: "objects of R", wayOut: `load them and write one as CSV: load("FILE"); write.csv(NAME, "FILE.csv", row.names=FALSE)`},
	{magic: "%PDF-", name: "a PDF", wayOut: "find the table itself"},
	{magic: "\x89PNG\r\n\x1a\n", name: "a picture (PNG)", wayOut: "this set reads no pictures"},
	{magic: "\xff\xd8\xff", name: "a picture (JPEG)", wayOut: "this set reads no pictures"},
	{magic: "\xff\xfe", name: "text in UTF-16", wayOut: "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE >FILE.csv"},
	{magic: "\xfe\xff", name: "text in UTF-16", wayOut: "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE >FILE.csv"},
	{magic: "<!DOCTYPE", name: "a page of HTML, as a server sends it instead of a file that needs a login", wayOut: "fetch the file itself"},
	{magic: "<html", name: "a page of HTML, as a server sends it instead of a file that needs a login", wayOut: "fetch the file itself"},
	{magic: "version https://git-lfs.", name: "a pointer of Git LFS, not the file", wayOut: "fetch the file: git lfs pull"},
	{magic: "ustar", at: 257, name: "an archive of tar", wayOut: "unpack it: tar -xf FILE"},
}

// headBytes is how many bytes tell the kind of a file.
const headBytes = 262

func kindOf(head []byte) kind {
	for _, k := range kinds {
		if len(head) >= k.at && bytes.HasPrefix(head[k.at:], []byte(k.magic)) {
			return k
		}
	}
	return kind{}
}

// packedSuffixes are those of the names of packed files.
var packedSuffixes = []string{".gz", ".zst", ".bz2"}

// PackedSuffixes are those of the names of packed files.
func PackedSuffixes() []string { return slices.Clone(packedSuffixes) }

// unpackedName is a name without the suffix of its packing.
func unpackedName(name string) string {
	for _, suffix := range packedSuffixes {
		if plain, is := strings.CutSuffix(name, suffix); is {
			return plain
		}
	}
	return name
}

// otherNames are those of the same file, packed or unpacked: a user who has unpacked it need not edit the config.
func otherNames(path string) []string {
	if plain := unpackedName(path); plain != path {
		return []string{plain}
	}
	others := make([]string, len(packedSuffixes))
	for i, suffix := range packedSuffixes {
		others[i] = path + suffix
	}
	return others
}

// isOfSystem says whether an error is that of reading a file, not of what it holds.
func isOfSystem(err error) bool {
	var path *fs.PathError
	var number syscall.Errno
	return errors.As(err, &path) || errors.As(err, &number)
}

// gunzip unpacks the members of a file of gzip. Zeros behind the last one are padding, as tapes and some servers leave it.
type gunzip struct {
	r *bufio.Reader
	z *gzip.Reader
}

func newGunzip(r *bufio.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gunzip{r, z}, nil
}

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	if err != io.EOF {
		return n, err
	}
	for { // the next member, or padding
		switch next, err := g.r.Peek(1); {
		case err != nil:
			return n, err // io.EOF, after a whole member
		case next[0] == 0:
			_, _ = g.r.Discard(1) // which Peek has read
			continue
		}
		if err := g.z.Reset(g.r); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		g.z.Multistream(false)
		return n, nil
	}
}

// windowMax bounds the memory of a decoder of zstd: it is what the command line tool accepts without a flag.
const windowMax = 128 << 20

func newUnzstd(r *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(windowMax))
}
