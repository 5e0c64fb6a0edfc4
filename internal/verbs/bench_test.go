package verbs

import (
	"bytes"
	"strings"
	"testing"
)

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]int64{"4KiB": 4096, "8B": 8, "17": 17, "64MiB": 64 << 20, "1GiB": 1 << 30} {
		if n, err := sizeOf(text); err != nil || n != want {
			t.Errorf("%s is %d (%v), want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "4XB", "four", "4 KiB"} {
		if n, err := sizeOf(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// Every scheme whose keys all have defaults, in one process.
func TestPushpullOfEveryScheme(t *testing.T) {
	var out, errOut bytes.Buffer
	app := newApp(&out, &errOut)
	args := strings.Fields("fluentps bench pushpull --local 4 --servers 2 --sizes 24KiB --shard-bytes 4KiB --rounds 5 " +
		"--format json --scheme bsp,asp,dssp,dsps,drop,softsync,vap,r2sp")
	if code := report(&errOut, app.Run(reorder(app.Commands, args))); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if n := strings.Count(out.String(), `"servers":2,"workers":2,`); n != 8 || strings.Count(out.String(), "\n") != 8 {
		t.Errorf("%d lines of 2 servers and 2 workers, want 8:\n%s", n, out.String())
	}
}
