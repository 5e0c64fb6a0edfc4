package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/work"
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
		"none.csv": {"", "none.csv: no such file or directory; name the work.csv of a run folder, or leave replay out"},
		"crlf.csv": {strings.ReplaceAll(header+row, "\n", "\r\n"),
			"crlf.csv has lines that end in CR LF, and a run writes LF alone; take the file as the run wrote it"},
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

// What a policy of the work axis cannot be with so many workers is refused with the key, the number and the way out.
func TestWorkThatDoesNotFitTheWorkers(t *testing.T) {
	for _, c := range []struct{ work, want string }{
		{"policy: coded, code: {stragglers: 4}", "work.code.stragglers: is 4: 4 stragglers of 4 workers"},
		{"policy: coded, code: {stragglers: 1, alpha: 3}",
			"work.code.alpha: is 3: of the 1 samples of worker 0 a share of (1 + 1) / (1 + 3) is private, less than 1 " +
				"sample; set a smaller alpha or a larger batch, or alpha: 0"},
		{"policy: coded, code: {stragglers: 1}", ""},
		{"policy: partial, load: 5", "work.load: is 5, but there are 4 workers"},
		{"policy: partial, load: 2, required: 5", "work.required: is 5, but there are 4 partitions"},
	} {
		cfg, o, ds := configs.Parse("work.yaml", []byte("name: work\ndata: {set: generated, rows: 480}\nmodel: {name: "+
			"softmax}\ntrain: {batch_per_worker: 1, optimizer: {lr: 0.1}, stop: {samples: 480}}\nwork: {"+c.work+"}\n"), configs.Options{})
		if ds.Failed() {
			t.Fatal(ds)
		}
		got := ""
		for _, d := range idle.Misfit(cfg, o, settings.Facts{Workers: 4, Computes: 4, Servers: 1, Rows: 480}) {
			got += d.String()
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.work, got, c.want)
		}
	}
}
