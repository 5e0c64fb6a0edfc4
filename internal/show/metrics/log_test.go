package metrics

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLoggerFile(t *testing.T) {
	var file, stderr writes
	l := NewLogger(LogSpec{Rank: 7, Role: RoleWorker, Tag: "w5", Host: "node-b", Level: slog.LevelInfo, File: &file, Stderr: &stderr})
	l.Debug("hidden")
	l.Info("started", "shards", 3)
	l.With("shard", 2).Warn("waits", "server", 1)
	if len(file) != 2 {
		t.Fatalf("%d lines %q, want 2", len(file), file)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(file[1]), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"level": "WARN", "msg": "waits", "rank": 7.0, "role": "worker",
		"host": "node-b", "shard": 2.0, "server": 1.0} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, got["time"].(string)); err != nil {
		t.Error(err)
	}
}

func TestLoggerStderr(t *testing.T) {
	var w writes
	l := NewLogger(LogSpec{Rank: 7, Role: RoleWorker, Tag: "w5", Stderr: &w})
	l.Info("hidden")
	l.Warn("waits for shard 2", "server", 1, "waited", 1500*time.Millisecond)
	l.Error("two words", "reason", "no route to host", "level", 3)
	l.With("shard", 2).WithGroup("peer").With("rank", 1).Warn("grouped", "host", "node-a")
	l.Warn("two\nlines")
	l.Error("run", "error", errors.New("it wrote:\n    Error: \"x\""), "rank", 2)
	l.Warn("")
	want := []string{
		"[w5] WARN: waits for shard 2 server=1 waited=1.5s\n",
		"[w5] ERROR: two words reason=\"no route to host\" level=3\n",
		"[w5] WARN: grouped shard=2 peer.rank=1 peer.host=node-a\n",
		"[w5] WARN: two\n[w5] lines\n",
		"[w5] ERROR: run rank=2 error: it wrote:\n[w5]     Error: \"x\"\n",
		"[w5] WARN: \n",
	}
	if strings.Join(w, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", w, want)
	}
}

func TestLoggerFromManyGoroutines(t *testing.T) {
	var file, stderr writes
	l := NewLogger(LogSpec{Tag: "s0", File: &file, Stderr: &stderr})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			mine := l.With("goroutine", g)
			for i := range 50 {
				mine.Warn("message", "i", i)
			}
		})
	}
	wg.Wait()
	if len(file) != 400 || len(stderr) != 400 {
		t.Errorf("%d and %d lines, want 400 each", len(file), len(stderr))
	}
	for _, line := range stderr {
		if !strings.HasPrefix(line, "[s0] WARN: message goroutine=") || strings.Count(line, "\n") != 1 {
			t.Fatalf("torn line %q", line)
		}
	}
}

func TestOpenLogAppends(t *testing.T) {
	dir := t.TempDir()
	if _, err := At(dir).OpenLog(7); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "log of rank 7") {
		t.Errorf("no logs folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o777); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := At(dir).OpenLog(7)
		if err != nil {
			t.Fatal(err)
		}
		NewLogger(LogSpec{Rank: 7, File: f}).Info("hello")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "logs", "rank-0007.log"))
	if err != nil || strings.Count(string(data), "\n") != 2 {
		t.Errorf("log %q, %v; want two lines", data, err)
	}
}
