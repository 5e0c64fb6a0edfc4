package slurm

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	const h, d = time.Hour, 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "90:30": 90*time.Minute + 30*time.Second, "4:00:00": 4 * h, "0:05:01": 5*time.Minute + time.Second,
		"2-0": 2 * d, "1-12": 36 * h, "1-12:30": 36*h + 30*time.Minute, "10-01:02:03": 10*d + h + 2*time.Minute + 3*time.Second,
		"3h50m": 3*h + 50*time.Minute, "90m": 90 * time.Minute, "1h": h, "100:00:00": 100 * h,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "1-", "-1", "1:2:3:4", "1-2:3:4:5", "UNLIMITED", "3 h", "99999999999:00", "1d"} {
		if got, err := ParseTime(text); err == nil && got >= 0 {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	// The script has the time that was given.
	for text, want := range map[string]string{"230": "0-03:50:00", "1-12": "1-12:00:00", "26h30m": "1-02:30:00"} {
		if limit, err := ParseTime(text); err != nil || clock(limit) != want {
			t.Errorf("%q becomes %s, want %s", text, clock(limit), want)
		}
	}
}

func TestCheckOption(t *testing.T) {
	for _, c := range []struct {
		text, want string // "": CheckOption accepts it
	}{
		{"--constraint=a100", ""}, {"-C a100|v100", ""}, {"--exclusive", ""}, {"--mem=16G", ""}, {"--no-requeue", ""},
		{`--comment="run #3, it's mine"`, ""}, {`--comment='a "b"'`, ""}, {`--comment=a\#b`, ""},
		{"--output=logs/%j.out", ""}, {"--mail-type=END --mail-user=a@b", ""},
		{"", "not an option"}, {"a100", "not an option"}, {" --exclusive", "not an option"}, {"hetjob", "not an option"},
		{"rm -rf x", "not an option"},
		{"--a\n#SBATCH --nodes=4", "line break"}, {"--a\nrm x", "line break"}, {"--a\r", "line break"},
		{"--a\u2028", "line break"}, {"--a\x00", "control character"}, {"--a\xff", "control character"},
		{"--comment=a#b", "comment"}, {"--comment=a # b", "comment"}, {`--comment="a`, `a quote " is not closed`},
		{"--comment='a", "quote ' is not closed"}, {`--comment=a\`, "backslash"},
		{"--nodes=4", "the flag --nodes sets it"}, {"-N4", "the flag --nodes sets it"},
		{"-N 4", "the flag --nodes sets it"}, {"--exclusive --time=3", "the flag --time sets it"},
		{`"--time"=3`, "not an option"}, {"--ntasks 4", "--ranks"}, {"--array=1-4", "sweep"},
		{"--signal=USR1", "depends on it"}, {"--requeue", "depends on it"}, {"--wrap=ls", "there is a script"},
		{`--"time"=3`, "the flag --time sets it"}, {"-A p", "--account"}, {"--qos=q", "--qos"},
	} {
		switch err := CheckOption(c.text); {
		case (err == nil) != (c.want == ""), err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	for text, want := range map[string]bool{"--mem=4G": true, "--exclusive --mem-per-cpu=2G": true,
		"--mem-per-gpu 1": true, "--memory": false, "--mem-bind=local": false, "-C a": false} {
		if AsksForMemory(text) != want {
			t.Errorf("%q asks for memory: %t", text, !want)
		}
	}
}

// Each option is in each part that it is for, before the first command, and nowhere else.
func TestScriptHasExactlyTheGivenOptions(t *testing.T) {
	s := templates()["servers-on-cpu-nodes.sbatch"]
	s.Account, s.QOS = "proj", "high"
	s.Parts[0].Memory, s.Parts[0].Options = 1, []string{"--constraint=cpu"}
	s.Parts[1].Memory, s.Parts[1].Options = 1<<30+1, []string{"--constraint=a100", "--exclusive"}
	head, _, _ := strings.Cut(s.Text(), "\nset -u\n")
	servers, workers, ok := strings.Cut(head, "#SBATCH hetjob\n")
	if !ok {
		t.Fatalf("no parts in\n%s", head)
	}
	for part, want := range map[string][]string{
		servers: {"--account=proj", "--qos=high", "--mem=64M", "--constraint=cpu"},
		workers: {"--account=proj", "--qos=high", "--mem=1088M", "--constraint=a100", "--exclusive"},
	} {
		for _, option := range []string{"--account=proj", "--qos=high", "--mem=64M", "--mem=1088M", "--constraint=cpu",
			"--constraint=a100", "--exclusive"} {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == option
			}
			if strings.Contains(part, "\n#SBATCH "+option+"\n") != wanted {
				t.Errorf("%s: want %t in\n%s", option, wanted, part)
			}
		}
	}
	if text := testScript().Text(); strings.Contains(text, "--mem") || strings.Contains(text, "--account") || strings.Contains(text, "--qos") {
		t.Errorf("has an option that was not given:\n%s", text)
	}
}
