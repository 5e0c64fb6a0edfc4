package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

// synonym is the name of a key in other programs, for names that are not near the name of our key.
type synonym struct {
	words []string
	paths []string // the keys that may be meant
	hint  string   // replaces "did you mean"; workersWord: the hint of workersHint
}

var synonyms = []synonym{
	{words: []string{"workers", "num_workers", "n_workers", "nworkers"}, hint: workersWord},
	{words: []string{"ranks", "num_ranks", "world_size"}, hint: "the launcher sets the number of ranks: mpirun -n 6, srun -n 6, or --local 6"},
	{words: []string{"num_servers", "n_servers", "nservers"}, paths: []string{"cluster.servers"}},
	{words: []string{"learning_rate", "learningrate", "base_lr", "eta"}, paths: []string{"train.optimizer.lr"}},
	{words: []string{"batch_size", "batchsize", "batch", "minibatch"}, paths: []string{"train.batch_per_worker", "train.batch_global"},
		hint: "write train.batch_per_worker (samples of each worker) or train.batch_global (samples of all workers)"},
	{words: []string{"num_epochs", "max_epochs", "n_epochs"}, paths: []string{"train.stop.epochs"}},
	{words: []string{"iterations", "max_steps", "max_iterations", "max_iter"}, paths: []string{"train.stop.updates"},
		hint: "write train.stop.updates: the versions of the lead shard; under bsp, each iteration is a version"},
	{words: []string{"every_iterations", "every_steps", "eval_every", "eval_interval"},
		paths: []string{"evaluate.every_epochs", "evaluate.every_samples", "checkpoint.every_updates"},
		hint:  "write evaluate.every_epochs (0.5: twice an epoch) or evaluate.every_samples; for checkpoints checkpoint.every_updates"},
	{words: []string{"weightdecay", "wd", "l2"}, paths: []string{"train.optimizer.weight_decay"}},
	{words: []string{"gpu", "gpus"}, paths: []string{"device.kind"}, hint: "write device: {kind: cuda}"},
	{words: []string{"dataset", "data_set"}, paths: []string{"data.set"}},
	{words: []string{"num_classes", "n_classes", "nclasses"}, paths: []string{"data.classes"}},
	{words: []string{"eps"}, paths: []string{"train.optimizer.epsilon"}},
	{words: []string{"nesterov"}, paths: []string{"train.optimizer.name"}, hint: "write train.optimizer.name: nesterov"},
	{words: []string{"step_size", "decay_steps"}, paths: []string{"train.schedule.every"}},
	{words: []string{"milestones"}, paths: []string{"train.schedule.at"}},
	{words: []string{"t_max"}, paths: []string{"train.schedule.over"}},
}

// workersWord is the hint that stands for workersHint.
const workersWord = "workers"

// synonymOf looks up a word that is not a key.
func synonymOf(word string) (s synonym, ok bool) {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	i := slices.IndexFunc(synonyms, func(s synonym) bool { return slices.Contains(s.words, plain) })
	if i < 0 {
		return s, false
	}
	return synonyms[i], true
}

// meant returns the hint of a synonym. value is the value that the user gave to it.
func (w *walker) meant(s synonym, value string) string {
	switch s.hint {
	case workersWord:
		return w.workersHint(value)
	case "":
		return w.meantPaths(s.paths, s.paths)
	}
	return s.hint
}

// workersHint computes the number of ranks for a user who asks for a number of workers.
func (w *walker) workersHint(value string) string {
	const rule = "all ranks except cluster.servers are workers"
	workers, err := strconv.Atoi(value)
	cluster := &yaml.Node{}
	if w.Tree != nil {
		if n := diag.Child(w.Tree, "cluster"); n != nil {
			cluster = n
		}
	}
	servers := 1
	if text := diag.ValueOf(cluster, "servers"); text != "" {
		var err error
		if servers, err = strconv.Atoi(text); err != nil {
			return rule
		}
	}
	switch placement := diag.ValueOf(cluster, "placement"); {
	case err != nil || workers < 1:
		return rule + ": set the number of ranks with mpirun -n 6 or --local 6"
	case placement == "colocate" || placement == "mixed":
		return fmt.Sprintf("the launcher sets the number of ranks, and with %s servers work too: mpirun -n 6, or --local 6", placement)
	default:
		n := workers + servers
		return fmt.Sprintf("%s: start %d ranks with mpirun -n %d or --local %d, and %d of them work", rule, n, n, n, workers)
	}
}

// begun lists the legal words that begin with a word of three letters or more.
func begun(word string, legal []string) (found []string) {
	for _, l := range legal {
		if len(word) >= 3 && strings.HasPrefix(l, strings.ToLower(word)) {
			found = append(found, l)
		}
	}
	return found
}

// octal warns of a number with a leading 0, which YAML reads as octal.
func (w *walker) octal(l *keys.Leaf, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			w.octal(l, diag.Deref(item))
		}
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || !octalForm.MatchString(n.Value) {
		return
	}
	var is int64
	if as, err := strconv.ParseInt(n.Value, 10, 64); n.Decode(&is) == nil && err == nil && is != as {
		w.Report(diag.Warning, n, l.Path, fmt.Sprintf("write %d, or %d if you mean that", as, is),
			"YAML reads a number with a leading 0 as octal: %s is %d", diag.Clip(n.Value), is)
	}
}

var octalForm = regexp.MustCompile(`^[-+]?0[0-7]+$`)
