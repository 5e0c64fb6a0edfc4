package verbs

import (
	"errors"
	"testing"

	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// A set is read once as long as the same one is asked for. What could not be read is tried again.
func TestASetIsReadOnce(t *testing.T) {
	reads := 0
	load := loader(func(s workload.DataSpec) (*dataset.Set, error) {
		if reads++; s.Set == "bad" {
			return nil, errors.New("bad")
		}
		return &dataset.Set{Name: s.Path}, nil
	}).once()
	for i, c := range []struct {
		spec  workload.DataSpec
		reads int
	}{{workload.DataSpec{Path: "a"}, 1}, {workload.DataSpec{Path: "a"}, 1}, {workload.DataSpec{Path: "b"}, 2},
		{workload.DataSpec{Path: "b"}, 2},
		{workload.DataSpec{Set: "bad"}, 3}, {workload.DataSpec{Set: "bad"}, 4}, {workload.DataSpec{Path: "a", Seed: 1}, 5}} {
		set, err := load(c.spec)
		if (err != nil) != (c.spec.Set == "bad") || err == nil && set.Name != c.spec.Path || reads != c.reads {
			t.Errorf("%d: %v, %v, %d reads, want %d", i, set, err, reads, c.reads)
		}
	}
}
