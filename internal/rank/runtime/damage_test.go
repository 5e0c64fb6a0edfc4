package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
)

// Any damage to the newest checkpoint is reported with its name. The run resumes from the previous checkpoint, to the bits
// of a run that was never interrupted.
func TestEveryDamageLeadsToTheCheckpointBefore(t *testing.T) {
	want := mustTrain(t, load(t, "train.stop={updates: 12}"), 6).Summary.ParametersSHA256
	for _, c := range []struct {
		name, file string
		damage     func(path string, data []byte) error
		says       string
	}{
		{"cut off", "worker-0002.bin",
			func(path string, data []byte) error { return os.Truncate(path, int64(len(data))/2) }, "were written: it was cut off"},
		{"empty", "server-0000.bin", func(path string, _ []byte) error { return os.Truncate(path, 0) }, "it has 0 bytes"},
		{"one bit", "server-0001.bin", func(path string, data []byte) error {
			data[len(data)-1] ^= 1
			return os.WriteFile(path, data, 0o666)
		}, "its bytes are not those that were written"},
		{"missing", "server-0000.bin", func(path string, _ []byte) error { return os.Remove(path) }, "it is missing"},
		{"foreign", "server-0001.bin", func(path string, _ []byte) error {
			other, err := os.ReadFile(filepath.Join(filepath.Dir(path), "..", "000000000001", "server-0001.bin"))
			return errors.Join(err, os.WriteFile(path, other, 0o666))
		}, "its bytes are not those that were written"},
		{"no manifest", "manifest.json", func(path string, _ []byte) error { return os.Remove(path) }, "there is no manifest.json"},
		{"half a manifest", "manifest.json",
			func(path string, data []byte) error { return os.Truncate(path, int64(len(data))/2) }, "it was cut off"},
		{"a foreign manifest", "manifest.json",
			func(path string, _ []byte) error { return os.WriteFile(path, []byte("{}\n"), 0o666) }, "it is not a manifest of fluentps"},
		{"a later format", "manifest.json", func(path string, _ []byte) error {
			m, err := checkpoint.Open(filepath.Dir(path))
			if err != nil {
				return err
			}
			m.Format++
			return checkpoint.Amend(durable.Below(filepath.Dir(path)), m)
		}, "it has format 3, but this program reads formats 1 to 2; resume with the program that wrote it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			mustRunPart(t, load(t, "train.stop={updates: 5}"), 6, dir, "")
			mustRunPart(t, load(t, "train.stop={updates: 9}"), 6, dir, dir)
			newest := filepath.Join(dir, checkpoint.Folder, "000000000002")
			path := filepath.Join(newest, c.file)
			data, err := os.ReadFile(path)
			if err := errors.Join(err, c.damage(path, data)); err != nil {
				t.Fatal(err)
			}
			var warn lines
			res, errs := runPart(t, load(t, "train.stop={updates: 12}"), 6, dir, dir, func(o *Options) { o.Warn = &warn })
			if s := mustAgree(t, CodeOK, res, errs).Summary; s.ParametersSHA256 != want || s.Resumed.Iteration != 5 {
				t.Errorf("resumed at %+v to sha256 %s, want %s", s.Resumed, s.ParametersSHA256, want)
			}
			for _, text := range []string{"checkpoint " + newest, c.file, c.says, "going on from the one before checkpoint=" +
				filepath.Join(dir, checkpoint.Folder, "000000000001")} {
				if !strings.Contains(warn.String(), text) {
					t.Errorf("no word of %q in %s", text, warn.String())
				}
			}
		})
	}
}
