//go:build cuemu && races

package cuemu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
	"fluentps/kernels/kerneltest"
)

// The order of threads does not matter here: two accesses have an order or have none, however the threads run.
func TestNoKernelHasRaces(t *testing.T) {
	all := os.Getenv("FLUENTPS_TEST_RACES") == "all"
	for _, k := range kernels.Table {
		t.Run(k.Name, func(t *testing.T) {
			few := *k
			few.Cases = func() []kernel.Case {
				if all {
					return k.Cases()
				}
				return small(k.Cases())
			}
			dev := New(false)
			kerneltest.RunKernel(t, dev, &few)
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// small leaves out the cases with most work, which take nearly all of the time.
func small(cases []kernel.Case) []kernel.Case {
	kept := slices.DeleteFunc(slices.Clone(cases), func(c kernel.Case) bool {
		results := 0
		for _, want := range c.Want {
			results += len(want)
		}
		return results*max(c.Terms, 1) > 1<<20
	})
	if len(kept) == 0 {
		return cases[:1]
	}
	return kept
}

func TestRacesAreReported(t *testing.T) {
	for _, c := range []struct {
		entry           string
		blocks, threads int
		want            string // "": no race
	}{
		{"with_barrier", 2, 64, ""},
		{"missing_barrier", 2, 64, "missing_barrier: thread (0,0,0) of block (0,0,0) reads byte 252 of shared memory, which no thread of the block has written, in faulty.cpp:"},
		{"hasty_warp", 1, 128, "hasty_warp: race on byte 4 of shared memory: thread (0,0,0) of block (0,0,0) reads it in faulty.cpp:"},
		{"same_element", 1, 64, ""},
		{"same_element", 3, 64, "same_element: race on element 2 of parameter 1: thread (0,0,0) of block (0,0,0) writes it in faulty.cpp:"},
		{"next_block", 1, 64, ""},
		{"next_block", 2, 64, "race on element 1 of parameter 1: thread (0,0,0) of block (0,0,0) reads it in faulty.cpp:"},
		{"next_block", 2, 64, ", thread (0,0,0) of block (1,0,0) writes it in faulty.cpp:"},
		{"warp_in_order", 1, 64, ""},
		{"warp_shuffled", 1, 64, "race on byte 124 of shared memory: thread (31,0,0) of block (0,0,0) writes it in faulty.cpp:"},
		{"all_lanes_wait", 1, 32, ""},
		{"half_of_lanes_wait", 1, 32, "race on byte "},
		{"forgotten", 1, 64, ""},
		{"forgotten", 2, 64, "forgotten: thread (40,0,0) of block (1,0,0) reads byte 160 of shared memory, which no thread of the block has written, in faulty.cpp:"},
	} {
		_, err := launch(t, c.entry, 128, [3]int{c.blocks, 1, 1}, [3]int{c.threads, 1, 1})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %d blocks: error %v, want %q in it", c.entry, c.blocks, err, c.want)
		}
	}
}
