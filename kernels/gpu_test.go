package kernels

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A PTX file carries the hash of its source, so that a stale file is found without NVIDIA's compiler.
func TestPTXIsMadeOfTheSource(t *testing.T) {
	names, err := fs.Glob(sources, "*/*.cu")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d sources, error %v", len(names), err)
	}
	for _, name := range names {
		hash := sha256.New()
		headers, err := fs.Glob(sources, path.Dir(name)+"/*.cuh")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range slices.Concat([]string{name}, headers, []string{"gpu.cuh", "cuda/ptx/flags"}) {
			data, err := sources.ReadFile(part)
			if err != nil {
				t.Fatal(err)
			}
			hash.Write(data)
		}
		ptx, err := os.ReadFile(strings.TrimSuffix(name, ".cu") + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(ptx), "\n")
		if want := fmt.Sprintf("sha256 %x", hash.Sum(nil)); !strings.HasSuffix(first, want) {
			t.Errorf("%s is newer than its PTX: run make ptx", name)
		}
	}
}

var update = flag.Bool("update", false, "write the list of sources that the emulator compiles")

// The emulator compiles each source in a namespace of its own and lists the entries of the source.
func TestTheEmulatorHasEverySource(t *testing.T) {
	names, err := fs.Glob(sources, "*/*.cu")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("//go:build cuemu && !races\n\n// Made by make ptx: the kernels, compiled for the emulator, each " +
		"file in a namespace of its own, and its entries listed.\n" +
		"#include \"cuemu.h\"\n\n#include \"../gpu.cuh\"\n#include \"pick.h\"\n")
	for _, name := range names {
		ptx, err := os.ReadFile(strings.TrimSuffix(name, ".cu") + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		space := strings.TrimSuffix(path.Base(name), ".cu") + "_cu"
		fmt.Fprintf(&b, "\nnamespace %s {\n#include \"../%s\"\n", space, name)
		for _, m := range entryOf.FindAllStringSubmatch(string(ptx), -1) {
			b.WriteString("CUEMU_ENTRY(" + m[1])
			if bound := threadsMax(m[3]); bound > 0 {
				fmt.Fprintf(&b, ", %d", bound)
			}
			b.WriteString(")\n")
		}
		fmt.Fprintf(&b, "} // namespace %s\n", space)
	}
	const list = "cuemu/kernels.cpp"
	if *update {
		if err := os.WriteFile(list, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(list); err != nil || string(have) != b.String() {
		t.Errorf("%s does not list the entries of the sources and their PTX, error %v: run make ptx", list, err)
	}
}

var (
	entryOf  = regexp.MustCompile(`\.visible \.entry (\w+)\(([^)]*)\)\s*(?:\.maxntid ([0-9, ]+))?`)
	sharedOf = regexp.MustCompile(`(?m)^\s*\.shared .*?\b\w+\[(\d+)\];`)
)

// threadsMax returns how many threads the numbers behind .maxntid allow a block; 0: there are none.
func threadsMax(maxntid string) int {
	bound := 0
	for i, n := range strings.FieldsFunc(maxntid, func(r rune) bool { return r == ',' || r == ' ' }) {
		size, err := strconv.Atoi(n)
		if err != nil {
			panic(err)
		}
		if i == 0 {
			bound = 1
		}
		bound *= size
	}
	return bound
}

type entry struct{ parameters, threadsMax int }

// entries returns the entries of a PTX text.
func entries(ptx string) map[string]entry {
	found := map[string]entry{}
	for _, m := range entryOf.FindAllStringSubmatch(ptx, -1) {
		e := entry{strings.Count(m[2], ".param"), threadsMax(m[3])}
		if e.threadsMax == 0 {
			e.threadsMax = 1024
		}
		found[m[1]] = e
	}
	return found
}

// Every kernel with a CUDA source finds its entries in the PTX, each entry takes as many parameters as a launch passes,
// and no device refuses a launch.
func TestStepsFitThePTX(t *testing.T) {
	for _, k := range Table {
		if k.CUDA == nil {
			t.Errorf("%s has no CUDA source", k.Name)
			continue
		}
		parameters := k.CUDA.Vecs + k.CUDA.Sizes + k.CUDA.Scalars
		if k.CUDA.Scratch != nil {
			parameters++
		}
		found := entries(k.CUDA.PTX)
		for _, n := range []Sizes{
			{0, 0, 0, 0, 0, 1, 1, 0}, {1, 1, 1, 1, 1, 1, 1, 0}, {64, 10, 784, 1, 1, 1, 1, 0}, {128, 16, 32, 32, 16, 3, 1, 1},
			{128, 32, 16, 16, 64, 3, 2, 1},
			{4096, 4096, 4096, 1, 1, 1, 1, 0}, {70000, 3, 5, 7, 2, 5, 1, 2}, {128, 64, 8, 8, 64, 3, 1, 1}, {64, 6, 14, 14, 16, 5, 1, 0},
			// as long as a vector may be: channels of 268 million values and more
			{1 << 15, 1, 8193, 1, 1, 1, 1, 1}, {1 << 20, 1, 2040, 1, 1, 1, 1, 1},
		} {
			for _, s := range k.CUDA.Steps(n) {
				if s.Entry == "" {
					break
				}
				have, exists := found[s.Entry]
				if !exists || have.parameters != parameters {
					t.Errorf("%s %v: entry %s has %d parameters, the launch passes %d", k.Name, n, s.Entry, have.parameters, parameters)
				}
				threads := s.Block[0] * s.Block[1] * s.Block[2]
				if threads < 1 || threads > have.threadsMax || s.Grid[0] < 1 || s.Grid[1] < 1 || s.Grid[2] < 1 ||
					s.Grid[1] > 65535 || s.Grid[2] > 65535 {
					t.Errorf("%s %v: every device refuses grid %v block %v", k.Name, n, s.Grid, s.Block)
				}
			}
		}
	}
}

func TestStepsAllocateNothing(t *testing.T) {
	n := Sizes{128, 16, 32, 32, 16, 3, 1, 1}
	for _, k := range Table {
		if k.CUDA == nil {
			continue
		}
		allocs := testing.AllocsPerRun(10, func() {
			k.CUDA.Steps(n)
			if k.CUDA.Scratch != nil {
				k.CUDA.Scratch(n)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %g allocations", k.Name, allocs)
		}
	}
}

// A block has 48 KiB of shared memory unless it requests more. The emulator cannot tell how much one entry uses.
func TestSharedMemoryFits(t *testing.T) {
	for _, k := range Table {
		if k.CUDA == nil {
			continue
		}
		for _, body := range strings.Split(k.CUDA.PTX, ".visible .entry ")[1:] {
			total := 0
			for _, m := range sharedOf.FindAllStringSubmatch(body, -1) {
				size, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				total += size
			}
			if name, _, _ := strings.Cut(body, "("); total > 48<<10 {
				t.Errorf("%s: entry %s uses %d bytes of shared memory, at most 49152 are possible", k.Name, name, total)
			}
		}
	}
}
