package resume

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/local"
	"fluentps/internal/rank/station"
)

// workersKey stands for the number of workers in the list of changed keys. No key of the YAML sets that number.
const workersKey = "workers"

// fits refuses a checkpoint of another experiment, with the same error on all ranks.
func (r *Search) fits(m *checkpoint.Manifest) error {
	was, now := maps.Clone(m.Config), configs.Values(r.station.Config)
	changed := configs.Changed(m.Config, r.station.Config)
	if m.Workers != len(r.station.Roles.Workers) || m.Computing != r.station.Roles.Computes() {
		was[workersKey], now[workersKey] = workersText(m.Workers, m.Computing),
			workersText(len(r.station.Roles.Workers), r.station.Roles.Computes())
		changed = append(changed, workersKey)
	}
	var b strings.Builder
	model := false
	changed = slices.DeleteFunc(changed, func(key string) bool {
		model = model || strings.HasPrefix(key, "model.")
		return slices.Contains(r.o.AllowChanged, key)
	})
	for _, key := range changed {
		fmt.Fprintf(&b, "\n  %s: %s in the checkpoint, %s now", foreign.Text(key),
			foreign.Text(cmp.Or(was[key], "not set")), cmp.Or(now[key], "not set"))
	}
	data := fmt.Sprintf("data of sha256 %s, but this run has %.12s", foreign.Text(fmt.Sprintf("%.12s", m.Data)), r.station.Set.SHA256())
	switch other := m.Data != r.station.Set.SHA256(); {
	case other && model:
		return station.Usage("--resume: the folder is that of another run, of model %s (now %s) and %s; name this run's "+
			"own folder, or begin it: leave --resume out, and choose a new folder with --out%s",
			foreign.Text(was["model.name"]), now["model.name"], data, b.String())
	case other:
		return station.Usage("--resume: the checkpoint is of other %s; use the files and values that the run began with%s", data, b.String())
	case len(changed) > 0:
		if slices.ContainsFunc(changed, func(key string) bool { return !keyForm.MatchString(key) }) {
			return station.Usage("--resume: the checkpoint has keys that no configuration has, so another program wrote it:%s", b.String())
		}
		return station.Usage("--resume: the run is not that of the checkpoint:%s\n  change it back, or resume with the "+
			"new values: --allow-changed %s", b.String(), strings.Join(changed, ","))
	case !r.station.Config.Local.IsSet() && takesSteps(m):
		return station.Usage("--resume: the workers of the checkpoint take steps of their own (local.policy %s), and its "+
			"clocks count exchanges, but those of a run with local.policy none count steps: the run would train on the same "+
			"rows again; resume with the local section of the checkpoint, or with local.policy averaging, steps 1",
			foreign.Text(m.Config["local.policy"]))
	case was[optimizerKey] == "muon" && (now[optimizerKey] != "muon" || was[othersKey] != now[othersKey]):
		return station.Usage("--resume: muon kept no second moments of its matrices, so adamw would begin with steps that are far too large: "+
			"resume with %s and %s of the checkpoint, or begin a run with model.init, from what fluentps export writes", optimizerKey, othersKey)
	case layout.Reduces(r.station.Config):
		return station.Usage("--resume: baseline allreduce writes no checkpoints and cannot resume from one; set baseline: none")
	}
	return nil
}

const optimizerKey, othersKey = "train.optimizer.name", "train.optimizer.others.match"

// takesSteps reports whether the workers of a checkpoint take steps of their own.
func takesSteps(m *checkpoint.Manifest) bool {
	was := m.Config["local.policy"]
	return was != "" && was != local.None
}

// keyForm matches keys of a configuration. Only such keys are safe in the command that an error proposes.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]+$`)

func workersText(workers, computing int) string {
	if workers == computing {
		return fmt.Sprint(workers)
	}
	return fmt.Sprintf("%d of %d ranks", workers, computing)
}
