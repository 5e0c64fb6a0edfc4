// Package datasettest finds the real data sets that tests read, and makes sources of bytes for fuzzers of readers.
package datasettest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"fluentps/ps/workload/dataset/files"
)

const fashionMNIST = "/usr/share/datasets/fashion-mnist"

// Folder returns a folder of the real sets. It skips the test if there is none.
func Folder(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("FLUENTPS_TEST_DATA")
	if root == "" {
		root = filepath.Join(repository(), "..", "shared", "data")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("real data set %s is not here; set FLUENTPS_TEST_DATA to a folder that has it", name)
	}
	return dir
}

// Fashion is the folder of Fashion-MNIST, where Debian puts it. It skips the test if the set is not there.
func Fashion(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(fashionMNIST); err != nil {
		t.Skip("Fashion-MNIST is not here: apt-get install dataset-fashion-mnist")
	}
	return fashionMNIST
}

// fuzzMemory is the memory limit of a reader for a file of a fuzzer.
const fuzzMemory = 4 << 20

// Source returns the source of a file with these bytes, which may be packed. It skips those that no source takes.
func Source(t testing.TB, b []byte) (*files.Source, *files.Reading) {
	t.Helper()
	src, err := files.NewSource("f", io.NopCloser(bytes.NewReader(b)), int64(len(b)))
	if err != nil {
		t.Skip(err)
	}
	return src, files.New(fuzzMemory)
}

// repository is the folder at or above the test's own that has a go.mod.
func repository() string {
	dir := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Join(dir, "..")
	}
	return dir
}
