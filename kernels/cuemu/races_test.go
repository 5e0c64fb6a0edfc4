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
		{"missing_barrier", 2, 64, "missing_barrier: thread (0,0,0) of block (0,0,0) reads byte 252 of shared memory, " +
			"which no thread of the block has written, in faulty.cpp:"},
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
		{"forgotten", 2, 64, "forgotten: thread (40,0,0) of block (1,0,0) reads byte 160 of shared memory, which no " +
			"thread of the block has written, in faulty.cpp:"},
	} {
		_, err := launch(t, c.entry, 128, [3]int{c.blocks, 1, 1}, [3]int{c.threads, 1, 1})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %d blocks: error %v, want %q in it", c.entry, c.blocks, err, c.want)
		}
	}
}

// Operations of two streams need an event between them, or a host that waits.
func TestStreamsNeedAnOrder(t *testing.T) {
	dev := New(false)
	v, err := dev.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	host := make([]float32, 64)
	launch := func() error {
		return dev.Launch(faulty("with_barrier", [3]int{1, 1, 1}, [3]int{64, 1, 1}), kernels.Args{V: kernels.Vecs{v}})
	}
	for _, c := range []struct {
		what   string
		stream int
		before []uint32
		run    func() error
		want   string // "": ordered
	}{
		{"with_barrier", 0, nil, launch, ""},
		{"a copy", 1, []uint32{0}, func() error { return dev.Download(host, v) },
			"a copy: race on memory: with_barrier, in another stream, writes it in faulty.cpp:"},
		{"a copy", 1, []uint32{1}, func() error { return dev.Download(host, v) }, ""},
		{"with_barrier", 0, nil, launch, "race on element 0 of parameter 1: a copy, in another stream, reads it, thread " +
			"(0,0,0) of block (0,0,0) writes it in faulty.cpp:"},
		{"a copy", 1, []uint32{2}, func() error { return dev.Upload(v, host) }, ""},
		{"with_barrier", 0, []uint32{0, 2}, launch,
			"with_barrier: race on element 0 of parameter 1: a copy, in another stream, writes it, thread (0,0,0) of block " +
				"(0,0,0) reads it in faulty.cpp:"},
		{"with_barrier", 0, []uint32{0, 3}, launch, ""},
		{"a copy", 1, []uint32{4}, func() error { return dev.Upload(v, host) }, ""},
	} {
		begin(c.stream, c.before, c.what)
		if err := c.run(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s in stream %d, behind %d: error %v, want %q in it", c.what, c.stream, c.before, err, c.want)
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
