package resume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
)

// Any damage to the newest checkpoint is reported with its name, and the previous checkpoint is taken.
func TestEveryDamageLeadsToTheCheckpointBefore(t *testing.T) {
	origin := twoLeft(t)
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
			dir := copied(t, origin)
			newest := at(dir, 2)
			path := filepath.Join(newest, c.file)
			data, err := os.ReadFile(path)
			if err := errors.Join(err, c.damage(path, data)); err != nil {
				t.Fatal(err)
			}
			f := search{resume: dir}.restore(t, load(t), 6)
			f.mustTake(t, "000000000001")
			for _, text := range []string{"checkpoint " + newest, c.file, c.says, "going on from the one before checkpoint=" +
				at(dir, 1)} {
				if !strings.Contains(f.said, text) {
					t.Errorf("no word of %q in %s", text, f.said)
				}
			}
		})
	}
}

func TestACheckpointOfAnotherRunIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t), 6, 30)
	for _, c := range []struct {
		name   string
		ranks  int
		set    []string
		change search
		want   string
	}{
		{"another rate", 6, []string{"train.optimizer.lr=0.7", "train.schedule={name: step, every: 5}"}, search{},
			"\n  train.optimizer.lr: 0.1 in the checkpoint, 0.7 now\n  train.schedule.every: not set in the checkpoint, 5 now"},
		{"what to add", 6, []string{"train.optimizer.lr=0.7"}, search{}, "--allow-changed train.optimizer.lr"},
		{"more workers", 7, nil, search{}, "\n  workers: 4 in the checkpoint, 5 now\n  change it back, or resume with the new " +
			"values: --allow-changed workers"},
		{"more servers", 7, []string{"cluster.servers=3"}, search{}, "\n  cluster.servers: 2 in the checkpoint, 3 now"},
		{"other data", 6, []string{"seed=4"}, search{}, "use the files and values that the run began with\n  seed: 11 in the checkpoint, 4 now"},
		{"another run", 6, []string{"data.features=7", "model={name: mlp, layers: [9]}"}, search{},
			"the folder is that of another run, of model softmax (now mlp) and data of sha256 "},
		{"no checkpoint", 6, nil, search{resume: filepath.Dir(dir)}, "there is no checkpoint in "},
		{"another optimizer", 6, []string{"train.optimizer={name: sgd, lr: 0.1}"},
			search{allow: []string{"train.optimizer.name", "train.optimizer.momentum"}},
			"has 2 vectors, but the optimizer of the servers needs 1 now; resume with the optimizer and the " +
				"local.outer of the checkpoint"},
		{"another model", 6, []string{"model={name: mlp, layers: [9]}"},
			search{allow: []string{"model.name", "model.layers"}},
			"its parameters, or their groups by rules of sync, differ from those of this run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change.resume == "" {
				c.change.resume = dir
			}
			c.change.restore(t, load(t, c.set...), c.ranks).mustRefuse(t, c.want)
		})
	}
	search{resume: dir, allow: []string{"train.optimizer.lr"}}.restore(t, load(t, "train.optimizer.lr=0.05"), 6).mustTake(t, "000000000001")
}

// What muon trained as a matrix has no second moment, and adamw would divide by nearly nothing.
func TestMatricesOfMuonStayMatrices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mlp := []string{"model={name: mlp, layers: [9]}", "shards.slice=layer"}
	leave(t, dir, load(t, append(mlp, "train.optimizer={name: muon, lr: 0.02}")...), 6, 30)
	var allow []string
	for _, key := range []string{"name", "momentum", "nesterov", "scale", "beta1", "beta2", "epsilon", "others.match", "others.lr",
		"others.beta1", "others.beta2", "others.epsilon", "others.weight_decay"} {
		allow = append(allow, "train.optimizer."+key)
	}
	for _, set := range []string{"train.optimizer={name: adamw, lr: 0.02}",
		"train.optimizer={name: muon, lr: 0.02, others: {match: [fc2.weight]}}"} {
		search{resume: dir, allow: allow}.restore(t, load(t, append(mlp, set)...), 6).mustRefuse(t,
			"resume with train.optimizer.name and train.optimizer.others.match of the checkpoint, or begin a run with model.init")
	}
	set := "train.optimizer={name: muon, lr: 0.02, others: {lr: 0.5}}"
	search{resume: dir, allow: allow}.restore(t, load(t, append(mlp, set)...), 6).mustTake(t, "000000000001")
}

// --resume with the name of a missing checkpoint fails with the reason.
func TestANamedCheckpointThatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t), 6, 5)
	for name, want := range map[string]string{
		"000000000009": "000000000009; the newest of 1 in " + filepath.Join(dir, checkpoint.Folder) + " is 000000000001",
		"best":         "has no best checkpoint: checkpoint.best was none",
	} {
		search{resume: filepath.Join(dir, checkpoint.Folder, name)}.restore(t, load(t), 6).mustRefuse(t, want)
	}
}

// --resume with the name of a damaged checkpoint fails; it does not take another one.
func TestANamedCheckpointThatIsDamaged(t *testing.T) {
	dir := twoLeft(t)
	if err := os.Truncate(filepath.Join(at(dir, 2), checkpoint.ServerFile(0)), 100); err != nil {
		t.Fatal(err)
	}
	search{resume: at(dir, 2)}.restore(t, load(t), 6).mustRefuse(t,
		"--resume: the checkpoint is not complete; name another, or "+dir+" for its newest complete checkpoint")
}
