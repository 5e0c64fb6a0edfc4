package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/ps/work"
)

// A record that cannot be replayed is named, with what is wrong and the way out.
func TestReplayNamesTheWayOut(t *testing.T) {
	c, _ := dealing(t, "dbs", 64, "epochs: 2", "scheme: bsp")
	if r, err := c.ReadReplay(1); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	header := string(work.RecordHeader())
	const row = "10,0,64,10,640,1.000000000,0.100000000\n"
	folder := t.TempDir()
	for name, k := range map[string]struct{ text, want string }{
		"none.csv":  {"", "none.csv: no such file or directory; name the work.csv of a run folder, or leave replay out"},
		"crlf.csv":  {strings.ReplaceAll(header+row, "\n", "\r\n"), "crlf.csv has lines that end in CR LF, and a run writes LF alone; take the file as the run wrote it"},
		"other.csv": {"a,b\n", "other.csv: line 1 is not the header of work.csv"},
		"good.csv":  {header + row, ""},
	} {
		c.Work.Replay = filepath.Join(folder, name)
		if k.text != "" {
			if err := os.WriteFile(c.Work.Replay, []byte(k.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		switch r, err := c.ReadReplay(1); {
		case k.want == "" && (err != nil || len(r) != 1):
			t.Errorf("%s: %v, %v", name, r, err)
		case k.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "work.replay: ") || !strings.Contains(err.Error(), k.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
