package runtime

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/status"
)

// While a worker sleeps in its computing, the files of the ranks say so: it computes, the others wait, for it, at a
// shard of a server that holds back their pulls. When the run is over, all ranks say that they have ended.
func TestStatusOfARunningWorld(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := filepath.Join(t.TempDir(), "out")
	cfg := load(t, "model={name: mlp, layers: [6]}", "shards.slice=layer", `sync=[{match: "*", scheme: bsp}]`, "cluster.servers=2",
		"faults=[{worker: 2, slow: {sleep: 1200ms}}]", "train.stop={updates: 3}", "evaluate.every_epochs=0")
	over := make(chan error, 1)
	go func() {
		_, errs := world(t, cfg, 5, func(o *Options) {
			if o.Transport.Rank() == 0 {
				o.Lead.Folder = &metrics.FolderSpec{Out: dir}
			}
		})
		over <- errors.Join(errs...)
	}()
	seen, last := false, ""
	for running := true; running; {
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		case <-time.After(50 * time.Millisecond):
		}
		r, err := status.Read(dir, time.Now())
		if err != nil { // the folder is not there yet
			continue
		}
		last = r.Text(false)
		if strings.Contains(last, "w2 computes iteration") && strings.Contains(last, "holds back pulls of shard") &&
			strings.Contains(last, ", for w2 at iteration") && strings.Contains(last, "Waited for: w2, by 2 workers") {
			seen = true
		}
	}
	if !seen {
		t.Errorf("no picture shows that w2 is late; the last one is\n%s", last)
	}
	if n := strings.Count(last, string(status.Ended)); n != 5 || !strings.Contains(last, "\nended: ok\n") {
		t.Errorf("%d of 5 ranks have ended:\n%s", n, last)
	}
}
