package runtime

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func filesOf(files map[string]string) fs.FS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

const meminfo = "MemTotal:       25165824 kB\nMemFree:          524288 kB\nMemAvailable:    1048576 kB\n"

func TestTheLeastMemoryThatIsFreeCounts(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		bytes int64
		of    string
	}{
		"nothing known": {map[string]string{}, 0, ""},
		"a host":        {map[string]string{"proc/meminfo": meminfo}, 1 << 30, "MemAvailable"},
		"no limit": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"},
			1 << 30, "MemAvailable"},
		"a group above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/job_7/step_0\n",
			"sys/fs/cgroup/job_7/step_0/memory.max": "max\n",
			"sys/fs/cgroup/job_7/memory.max":        "9000\n", "sys/fs/cgroup/job_7/memory.current": "5000\n",
			"sys/fs/cgroup/job_7/memory.stat": "anon 4000\ninactive_file 1000\n"},
			5000, "memory.max of the control group /job_7"},
		"a wider group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "99999999999\n", "sys/fs/cgroup/a/memory.current": "5\n"},
			1 << 30, "MemAvailable"},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/slurm/job_7\n0::/\n",
			"sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "9000\n", "sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes": "5000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000\n"},
			4000, "memory.limit_in_bytes of the control group /slurm/job_7"},
		"the root of a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9000\n",
			"sys/fs/cgroup/memory.current": "9500\n"},
			1, "memory.max of the control group /"},
	} {
		if got := memoryFree(filesOf(c.files)); got.bytes != c.bytes || got.of != c.of {
			t.Errorf("%s: %+v, want %d of %q", name, got, c.bytes, c.of)
		}
	}
}

// Ranks that each stay below cluster.memory_max may take more together than their host has: one of them says so, once per host.
func TestAHostWithTooLittleMemoryIsWarnedOf(t *testing.T) {
	big := []string{"data={set: generated, rows: 480, test_rows: 20, features: 100, classes: 3}",
		"model={name: mlp, layers: [2000]}", "train.stop={updates: 1}", "evaluate.every_epochs=0"}
	for name, c := range map[string]struct {
		mode, hosts string
		kib         string
		want        int // warnings
		says        string
	}{
		"processes on two hosts": {ModeMPI, "aaabbb", "2048", 2, "host b: its 3 ranks may need "},
		"one process":            {"local", "aaaaaa", "2048", 1, "this process with its 6 ranks may need "},
		"enough":                 {ModeMPI, "aaabbb", "999999999", 0, ""},
	} {
		var warn lines
		ts := hosted(c.hosts)
		_, errs := runOver(t, ts, load(t, big...), func(o *Options) {
			o.Host, o.Warn, o.Mode = c.hosts[o.Transport.Rank():][:1], &warn, c.mode
			o.testing.hostRoot = filesOf(map[string]string{"proc/meminfo": "MemAvailable: " + c.kib + " kB\n"})
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said := warn.String()
		if n := strings.Count(said, "so the system may kill a rank"); n != c.want || !strings.Contains(said, c.says) ||
			n > 0 && !strings.Contains(said, "2.00 MiB are free (MemAvailable)") {
			t.Errorf("%s: %d warnings, want %d, with %q:\n%s", name, n, c.want, c.says, said)
		}
	}
}
