package files

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func zstded(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

// bzipped is "1,2,0\n3,4,1\n" as bzip2 packs it.
func bzipped() []byte {
	b, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWRayW0AAAARYAAAQAAR8ACAAMQwBD1NHqSaxaQPF3JFOFCQFrJbQAA==")
	if err != nil {
		panic(err)
	}
	return b
}

func read(b []byte) (string, *Source, error) {
	s, err := NewSource("f", io.NopCloser(bytes.NewReader(b)), int64(len(b)))
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	text, err := io.ReadAll(s)
	return string(text), s, err
}

const text = "1,2,0\n3,4,1\n"

// A packed file has the bytes and the sum of the unpacked one: also of several members, with padding behind them.
func TestPackings(t *testing.T) {
	_, plain, err := read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"gzip": gzipped([]byte(text)), "two members": append(gzipped([]byte(text[:6])), gzipped([]byte(text[6:]))...),
		"padding": append(gzipped([]byte(text)), make([]byte, 70_000)...), "zstd": zstded([]byte(text)), "bzip2": bzipped(),
		"two frames": append(zstded([]byte(text[:6])), zstded([]byte(text[6:]))...),
	} {
		got, s, err := read(b)
		if err != nil || got != text || !s.Packed() || s.Sum().SHA256 != plain.Sum().SHA256 || s.Sum().Bytes != 12 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A packed file that is cut or damaged is an error that names the packing; nothing is accepted that is not the text.
func TestDamagedPackings(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	long := []byte(strings.Repeat("0.25,17,3,0\n", 1000))
	for name, b := range map[string][]byte{"gzip": gzipped(long), "zstd": zstded(long), "bzip2": bzipped()} {
		want := string(long)
		if name == "bzip2" {
			want = text
		}
		for i := range 600 {
			bad := bytes.Clone(b)
			if at := draw.IntN(len(bad)-4) + 4; i%2 == 0 {
				bad = bad[:at]
			} else {
				bad[at] ^= byte(1 << draw.IntN(8))
			}
			got, _, err := read(bad)
			if err == nil && got != want && !strings.HasPrefix(want, got) {
				t.Fatalf("%s: %q is accepted", name, got)
			}
			if err == nil && got != want && name != "zstd" { // frames of zstd without a checksum may end where a block ends
				t.Fatalf("%s, cut or changed at random: %d bytes are accepted", name, len(got))
			}
			if err != nil && !strings.HasPrefix(err.Error(), "data: f: ") {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	_, _, err := read(append(gzipped([]byte(text)), "more bytes, which are no member"...))
	if err == nil || !strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("other bytes behind gzip: %v", err)
	}
}

// What is not read is named, with a way out that names the file.
func TestOtherKinds(t *testing.T) {
	tar := make([]byte, 600)
	copy(tar[257:], "ustar")
	for want, b := range map[string]string{
		"f is packed with xz; unpack it: xz --decompress --keep f": "\xfd7zXZ\x00\x00", "an archive of 7-Zip": "7z\xbc\xaf\x27\x1c",
		"an archive of zip": "PK\x03\x04", "save the sheet as CSV": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", `h5py.File("f")`: "\x89HDF\r\n\x1a\n",
		"set data.set: parquet": "PAR1", "a file of Arrow": "ARROW1\x00\x00", "set data.set: npy": "\x93NUMPY\x01\x00",
		"a database of SQLite": "SQLite format 3\x00",
		"iconv -f UTF-16":      "\xff\xfe1\x00", "a page of HTML": "<!DOCTYPE html>",
		"git lfs pull": "version https://git-lfs.github.com/spec/v1",
		"tar -xf f":    string(tar), "write.csv(readRDS": "X\n\x00\x00\x00\x03", "is an archive of tar": string(gzipped(tar)),
		"a PDF": "%PDF-1.4", "a picture (PNG)": "\x89PNG\r\n\x1a\n", "a picture (JPEG)": "\xff\xd8\xff\xe0",
	} {
		if _, _, err := read([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", b, err, want)
		}
	}
}

// A file is found packed as well as unpacked.
func TestOtherNames(t *testing.T) {
	dir := t.TempDir()
	all := map[string][]byte{"a.gz": gzipped([]byte(text)), "b.zst": zstded([]byte(text)), "c.bz2": bzipped(), "d": []byte(text)}
	for name, b := range all {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d.gz", "d.zst"} {
		s, err := open(filepath.Join(dir, name), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(s); string(got) != text || err != nil || len(s.Sum().Name) != 1 {
			t.Errorf("%s: %q, %v, called %s", name, got, err, s.Sum().Name)
		}
		s.Close()
	}
	_, err := open(filepath.Join(dir, "e"), "look")
	if err == nil || !strings.Contains(err.Error(), "e.gz or ") || !strings.Contains(err.Error(), "look") {
		t.Errorf("a missing file: %v", err)
	}
}
