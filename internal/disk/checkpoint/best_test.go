package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/durable"
)

// Pruning keeps the best checkpoint until another one is the best. With a damaged best.json, pruning removes nothing.
func TestTheBestIsNotPruned(t *testing.T) {
	run := durable.Below(t.TempDir())
	root := run.Path(Folder)
	for range 6 {
		d, err := Begin(run, "7.1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Finish(&Manifest{Servers: 1, Workers: 1, Starts: []int64{0}}); err != nil {
			t.Fatal(err)
		}
	}
	names := func() string {
		t.Helper()
		dirs, err := List(root)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, d := range dirs {
			text += d[len(d)-1:]
		}
		return text
	}
	if b, err := ReadBest(root); b != nil || err != nil {
		t.Fatalf("%+v, %v before there is one", b, err)
	}
	for _, step := range []struct {
		best string
		keep int
		left string
	}{{"000000000002", 3, "6542"}, {"000000000005", 2, "65"}, {"000000000005", 1, "65"}, {"000000000006", 1, "6"}} {
		want := Best{Checkpoint: step.best, By: "loss", Value: 0.25}
		if err := SetBest(run, want); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadBest(root); err != nil || *got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		if err := Prune(run, step.keep); err != nil {
			t.Fatal(err)
		}
		if got := names(); got != step.left {
			t.Errorf("with %s and keep %d there are %s, want %s", step.best, step.keep, got, step.left)
		}
	}
	for _, text := range []string{"", "{", `{"checkpoint":"../../etc"}`, `{"checkpoint":""}`} {
		if err := os.WriteFile(filepath.Join(root, bestFile), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Prune(run, 0); err == nil || !strings.Contains(err.Error(), "remove this file, and the next") {
			t.Errorf("best.json %q: %v", text, err)
		}
		if got := names(); got != "6" {
			t.Errorf("best.json %q: %s are left", text, got)
		}
	}
}
