package configs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
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
	if w.tree != nil {
		if n := child(w.tree, "cluster"); n != nil {
			cluster = n
		}
	}
	servers := 1
	if text := valueOf(cluster, "servers"); text != "" {
		var err error
		if servers, err = strconv.Atoi(text); err != nil {
			return rule
		}
	}
	switch placement := valueOf(cluster, "placement"); {
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

// asText returns the hint for a text that would be a value of that tag without its quotes or its !!str.
func asText(n *yaml.Node, tag string) (hint string, ok bool) {
	bare := yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || bare.ShortTag() != tag {
		return "", false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return fmt.Sprintf("!!str makes it a text: write %s", clip(n.Value)), true
	}
	return fmt.Sprintf("quotes make it a text: write %s", clip(n.Value)), true
}

var (
	timeForm  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)
	clockForm = regexp.MustCompile(`^(?:([0-9]+)-)?([0-9]+):([0-9]{2})(?::([0-9]{2}))?$`)
	timeOf    = map[string]time.Duration{"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute,
		"min": time.Minute, "minute": time.Minute, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": 24 * time.Hour,
		"day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "msec": time.Millisecond, "usec": time.Microsecond}
	unitForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)
	sizeOf   = map[string]float64{"b": 1, "k": 1e3, "kb": 1e3, "kib": 1 << 10, "m": 1e6, "mb": 1e6, "mib": 1 << 20,
		"g": 1e9, "gb": 1e9, "gib": 1 << 30, "t": 1e12, "tb": 1e12, "tib": 1 << 40, "p": 1e15, "pb": 1e15, "pib": 1 << 50}
	sizeOrders = []string{"GiB", "GB", "MiB", "MB", "KiB", "KB", "B"}
)

// timeHint writes a time of another program in our units.
func timeHint(text string) string {
	const units = "write a unit, as in 30s, 10m or 1h30m"
	if m := timeForm.FindStringSubmatch(text); m != nil {
		unit := strings.ToLower(m[2])
		each, ok := timeOf[unit]
		if !ok {
			each, ok = timeOf[strings.TrimSuffix(unit, "s")]
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if d := v * float64(each); ok && err == nil && d < math.MaxInt64 {
			if each > time.Hour {
				return fmt.Sprintf("the units are h, m, s, ms, us: write %s", formatDuration(time.Duration(d)))
			}
			return "write " + formatDuration(time.Duration(d))
		}
	}
	if m := clockForm.FindStringSubmatch(text); m != nil {
		var n [4]int64
		for i := range n {
			n[i], _ = strconv.ParseInt("0"+m[i+1], 10, 32) // for a number that is too large, the next check reports the limit
		}
		return "write " + formatDuration(time.Duration(((n[0]*24+n[1])*60+n[2])*60+n[3])*time.Second)
	}
	return units
}

// sizeHint writes a size of another program in our units.
func sizeHint(text string) string {
	const units = "the units are B, KB, MB, GB, KiB, MiB, GiB"
	text = bytesOf(text)
	m := unitForm.FindStringSubmatch(text)
	if m == nil {
		return units + ", as in 64KiB, 4MiB or 1MB"
	}
	v, err := strconv.ParseFloat(m[1], 64)
	bytes := v * sizeOf[strings.ToLower(m[2])]
	if err != nil || bytes <= 0 || bytes >= 1<<53 || bytes != math.Trunc(bytes) {
		return units + ", as in 64KiB, 4MiB or 1MB"
	}
	binary := strings.HasSuffix(strings.ToLower(m[2]), "ib")
	for _, unit := range sizeOrders {
		if n := bytes / sizeUnits[unit]; n == math.Trunc(n) && strings.HasSuffix(unit, "iB") == (binary && unit != "B") {
			return fmt.Sprintf("%s: write %s%s", units, whole(n), unit)
		}
	}
	return units
}

// octal warns of a number with a leading 0, which YAML reads as octal.
func (w *walker) octal(l *leaf, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			w.octal(l, deref(item))
		}
		return
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || !octalForm.MatchString(n.Value) {
		return
	}
	var is int64
	if as, err := strconv.ParseInt(n.Value, 10, 64); n.Decode(&is) == nil && err == nil && is != as {
		w.report(Warning, n, l.path, fmt.Sprintf("write %d, or %d if you mean that", as, is),
			"YAML reads a number with a leading 0 as octal: %s is %d", clip(n.Value), is)
	}
}

var octalForm = regexp.MustCompile(`^[-+]?0[0-7]+$`)
