// Package datasettest finds the real data sets that tests read.
package datasettest

import (
	"os"
	"path/filepath"
	"testing"
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
