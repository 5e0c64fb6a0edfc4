package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
)

// A run on a pack that is copied to the disk of the host has the parameters of the run on the set.
func TestAStagedPackTrainsAsItsSet(t *testing.T) {
	of := []string{"train.batch_per_worker=16", "train.stop={updates: 12}", `sync=[{match: "*", scheme: bsp}]`}
	c := load(t, append(of, "data={set: generated, rows: 300, test_rows: 40, features: 9, classes: 3}", "model={name: softmax}")...)
	want := trainTogether(t, c).Summary
	set, err := configstest.Data(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	path, dir := filepath.Join(t.TempDir(), "p.fps"), t.TempDir()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := set.Pack(f, "test", func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"", ", stage: " + dir} {
		got := trainTogether(t, load(t, append(of, "data={set: packed, path: "+path+stage+"}", "model={name: softmax}")...)).Summary
		if got.ParametersSHA256 != want.ParametersSHA256 || *got.TestLoss != *want.TestLoss {
			t.Errorf("stage %q: parameters %.12s and loss %v, want %.12s and %v", stage, got.ParametersSHA256, *got.TestLoss,
				want.ParametersSHA256, *want.TestLoss)
		}
	}
	if copies, _ := filepath.Glob(dir + "/fluentps-*.fps"); len(copies) != 1 {
		t.Errorf("copies %v", copies)
	}
}
