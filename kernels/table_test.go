package kernels

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// A folder with a source for GPUs holds kernels. The heading of its README names them, its rows have these names, and the
// table lists each of them once.
func TestFoldersAndTableHaveTheSameKernels(t *testing.T) {
	folder := map[string]string{}
	for _, k := range Table {
		if _, twice := folder[k.Name]; twice {
			t.Errorf("%s: a second kernel of this name in the table", k.Name)
		}
		folder[k.Name] = ""
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for _, dir := range folders(t) {
		heading, _, _ := strings.Cut(read(path.Join(dir, "README.md")), "\n")
		for _, name := range strings.Split(strings.TrimPrefix(heading, "# "), ", ") {
			if other, listed := folder[name]; !listed {
				t.Errorf("%s: its README names the kernel %q, which has no line in table.go", dir, name)
			} else if other != "" {
				t.Errorf("%s: its README names the kernel %q, and so does the README of %s", dir, name, other)
			}
			folder[name] = dir
			if !strings.Contains(read(path.Join(dir, "kernel.go")), `"`+name+`"`) {
				t.Errorf("%s: its README names the kernel %q, but its kernel.go does not", dir, name)
			}
		}
	}
	for name, dir := range folder {
		if dir == "" {
			t.Errorf("%s: no folder with a .cu file has a README that names this kernel in its heading, as in # axpy, scale", name)
		}
	}
}

// folders returns the folders with a source for GPUs.
func folders(t *testing.T) (dirs []string) {
	names, err := fs.Glob(sources, "*/*.cu")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d sources, error %v", len(names), err)
	}
	for _, name := range names {
		if dir := path.Dir(name); len(dirs) == 0 || dirs[len(dirs)-1] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Every layer that the verb bench kernels times does some work.
func TestEveryKernelHasLayers(t *testing.T) {
	for _, k := range Table {
		if len(k.Bench.Layers) == 0 {
			t.Errorf("%s: no layers to time", k.Name)
		}
		for _, l := range k.Bench.Layers {
			need := k.Need(l.Sizes())
			vectors := 0
			for v := range need {
				if need[v] > 0 {
					vectors = v + 1
				}
			}
			for v, n := range need[:vectors] {
				if n == 0 {
					t.Errorf("%s at %s: sizes %v leave vector %d without elements", k.Name, l.Name, l.N, v)
				}
			}
			if _, bytes := k.Cost(l.Sizes()); vectors == 0 || !(bytes > 0) {
				t.Errorf("%s at %s: sizes %v give no work", k.Name, l.Name, l.N)
			}
		}
	}
}
