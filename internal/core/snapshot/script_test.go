package snapshot

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// A script has lines of a configuration and of events. The coordinator's answers stand below each line, indented.
func TestScripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < 6 {
		t.Fatalf("%d scripts", len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(text) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	var b strings.Builder
	var c *Coordinator
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "\t"): // an answer
			continue
		case len(words) == 0, words[0] == "#":
			b.WriteString(line)
			continue
		}
		b.WriteString(line)
		if words[0] == "config" {
			c = New(configOf(t, words[1:]), 0, 0)
			continue
		}
		for _, e := range c.Step(eventOf(t, words)) {
			b.WriteString("\t" + e.String() + "\n")
		}
	}
	return b.String()
}

func configOf(t *testing.T, words []string) (c Config) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "every":
			c.Every, _ = time.ParseDuration(value)
		case "updates":
			c.EveryUpdates = int64(n)
		case "files":
			c.Files = n
		case "pauses":
			c.Pauses = true
		case "judges":
			c.Judges = true
		case "copies":
			c.Copies = true
		case "hosts":
			for h := range strings.SplitSeq(value, ",") {
				rank, _ := strconv.Atoi(h)
				c.Hosts = append(c.Hosts, int32(rank))
			}
		default:
			t.Fatalf("no key %q", key)
		}
	}
	return c
}

// eventOf reads an event: its name, then words. The words of saved: s0 or w1, in folder, memory or neighbor, maybe
// failed.
func eventOf(t *testing.T, words []string) (e Event) {
	kind := slices.Index(eventNames[:], words[0])
	if kind < 0 {
		t.Fatalf("no event %q", words[0])
	}
	e.Kind = EventKind(kind)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "at":
			e.At, _ = time.ParseDuration(value)
		case "version":
			e.Version = int64(n)
		case "number":
			e.Number = int64(n)
		case "spent":
			e.Spent = true
		case "cut":
			e.Cut = true
		case "folder":
			e.Folder = value
		case "problem":
			e.Problem = value
		case "told":
			e.Told = int64(n)
		case "rank":
			e.File.Rank = int32(n)
		case "failed":
			e.File.Failed = true
		case "memory":
			e.File.Place = wire.InMemory
		case "neighbor":
			e.File.Place = wire.InNeighbor
		case "host":
			e.File.Place = wire.OnHost
		default:
			index, err := strconv.Atoi(w[1:])
			if err != nil || w[0] != 's' && w[0] != 'w' {
				t.Fatalf("no word %q", w)
			}
			if e.File.Index = int32(index); w[0] == 'w' {
				e.File.Kind = wire.WorkerFile
			}
		}
	}
	return e
}

// String is an effect in the words of the scripts.
func (e Effect) String() string {
	text := e.Kind.String()
	for _, f := range e.Files {
		text += " " + fileText(&f)
	}
	if e.Folder != "" {
		text += " folder=" + e.Folder
	}
	if e.Kind == Tell {
		text += fmt.Sprintf(" host=%d version=%d number=%d", e.Host, e.Version, e.Number)
	}
	if e.Problem != "" {
		text += " problem=" + e.Problem
	}
	return text
}

func fileText(f *wire.FileSaved) string {
	if f.Kind == wire.WorkerFile {
		return fmt.Sprint("w", f.Index)
	}
	return fmt.Sprint("s", f.Index)
}
