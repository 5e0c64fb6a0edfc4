package keys

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
)

// otherWord is the name of a value in other programs or papers.
type otherWord struct {
	key   string // the end of the path
	words []string
	hint  string
}

var otherWords = []otherWord{
	{"scheme", []string{"async", "asynchronous", "dist_async", "tap", "hogwild", "downpour"}, "write asp: a pull is answered at once"},
	{"scheme", []string{"sync", "synchronous", "dist_sync", "full_sync"}, "write bsp: a pull waits for all workers"},
	{"baseline", []string{"horovod", "nccl", "ddp", "gloo", "mpi"}, "write allreduce: gradients are summed by MPI"},
	{"baseline.name", []string{"horovod", "nccl", "ddp", "gloo", "mpi"}, "write allreduce: gradients are summed by MPI"},
	{"send.order", []string{"p3"}, "write order: priority, and for P3's slices shards: {slice: slices, max_bytes: 200KB}"},
	{"send.order", []string{"bytescheduler"}, "write order: credit, the policy of ByteScheduler"},
	{"data.set", []string{"mnist", "fashion_mnist", "fashionmnist", "emnist", "kmnist"},
		"write idx, the format of MNIST's files, and their folder as path"},
	{"model.name", []string{"cnn", "convnet", "lenet5"}, "write lenet, a convolutional network, or one of the resnets"},
	{"schedule.name", []string{"multistep", "multisteplr", "steplr", "piecewise"},
		"write step with every: 30 and factor: 0.1, or step with at: [30, 60] and factor: 0.1"},
	{"schedule.name", []string{"onecycle", "onecyclelr"}, "write one_cycle, with over: the iterations of the cycle"},
	{"schedule.name", []string{"cosineannealing", "cosineannealinglr"}, "write cosine, with over: the iterations until the floor"},
	{"slow.kind", []string{"gaussian", "gauss"}, "write normal"},
	{"slow.kind", []string{"none", "factor", "sleep"}, "write factor or sleep without a kind"},
	{"slow.kind", []string{"shifted_exponential", "exp"}, "write exponential: what it adds to the computing time makes it shifted"},
	{"slow.kind", []string{"markov", "gilbert", "gilbert_elliott", "two_states"}, "write two_state"},
	{"payload.push", []string{"fp16", "half", "int8"}, "write float16 or bfloat16: 2 bytes an element; topk or threshold send fewer"},
	{"payload.pull", []string{"fp16", "half", "int8"}, "write float16 or bfloat16: 2 bytes an element"},
	{"payload.push", []string{"bf16"}, "write bfloat16"},
	{"payload.pull", []string{"bf16"}, "write bfloat16"},
}

// wordElsewhere returns the hint for a value of other programs.
func wordElsewhere(path, word string) (hint string, ok bool) {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	for _, o := range otherWords {
		if (path == o.key || strings.HasSuffix(path, "."+o.key)) && slices.Contains(o.words, plain) {
			return o.hint, true
		}
	}
	return "", false
}

// ruleWords are the names of rule keys in papers and other programs. A word stands for the first of its keys that the
// scheme of the rule has.
var ruleWords = map[string][]string{
	"s": {"staleness", "s_l", "s_max"}, "threshold": {"staleness", "tau"}, "slack": {"staleness", "tau"}, "delay": {"tau", "staleness"},
	"c": {"probability"}, "p": {"probability"}, "prob": {"probability"},
	"s_lower": {"s_l"}, "s_upper": {"s_u"}, "variant": {"mode"}, "n_t": {"required"},
	"param": {"match"}, "params": {"match"}, "parameter": {"match"}, "parameters": {"match"}, "pattern": {"match"}, "layer": {"match"},
}

// RuleWord returns the hint for a word of ruleWords, and excuses the key that it stands for.
func (t *Table) RuleWord(word string) (hint string, ok bool) {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	if strings.HasPrefix(plain, "backup") && t.ByPath["required"] != nil {
		t.Excuse("required")
		return "write required, the pushes that close an iteration: the number of workers minus the backup workers", true
	}
	for _, key := range ruleWords[plain] {
		if t.ByPath[key] != nil {
			t.Excuse(key)
			return "did you mean " + key + "?", true
		}
	}
	return "", false
}

// sectionExamples are sections in whose place users write one value.
var sectionExamples = map[string]string{
	"slow":   "slow: {sleep: 30ms} or slow: {factor: 2}",
	"pause":  "pause: {at: 30s, for: 5s}",
	"shards": "shards: {parts: 4}",
	"stop":   "stop: {epochs: 5}",
}

// WithWord shows the section with the word that was given in its place, if a key of it has that value, or an example of it.
func (t *Table) WithWord(rel, word string) string {
	for _, name := range []string{"name", "set", "kind", "push"} {
		if l := t.ByPath[diag.Join(rel, name)]; l != nil && slices.Contains(l.Values(), word) {
			return fmt.Sprintf("; write %s: {%s: %s} with the keys that it needs", diag.LastName(diag.Join(t.Prefix, rel)), name, word)
		}
	}
	if example := sectionExamples[diag.LastName(diag.Join(t.Prefix, rel))]; example != "" {
		return "; as in " + example
	}
	return ""
}

// severalHint returns the hint for a list in the place of one word.
func severalHint(path string, n *yaml.Node) string {
	switch {
	case n.Kind != yaml.SequenceNode:
	case path == "scheme":
		return "a rule has one scheme, or several in turn: " + SchemesExample
	case path == "match":
		return "write a rule for each pattern"
	}
	return ""
}

// wholeHint writes a whole number out that stands there with an exponent or a point.
func wholeHint(n *yaml.Node) string {
	var v float64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!float" || n.Decode(&v) != nil || v != math.Trunc(v) || math.Abs(v) >= 1<<53 {
		return ""
	}
	return "write " + diag.FormatWhole(v)
}

var (
	percentForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?%$`)
	commaForm   = regexp.MustCompile(`^([-+]?[0-9]+),([0-9]+)$`)
	rateForm    = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMGT])(?:bits?(?:/s|ps)?|b(?:/s|ps))$`)
)

// numberHint writes a percentage, and a number with a comma, as YAML has them.
func numberHint(n *yaml.Node) string {
	if m := percentForm.FindStringSubmatch(n.Value); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil {
			return "write " + strconv.FormatFloat(v/100, 'g', 6, 64)
		}
	}
	if m := commaForm.FindStringSubmatch(n.Value); m != nil {
		return fmt.Sprintf("that is a decimal comma: write %s.%s", m[1], m[2])
	}
	return ""
}

// bytesOf converts a rate to a size: it removes "per second", and converts bits to bytes. The unit may be one of another program.
func bytesOf(rate string) string {
	m := rateForm.FindStringSubmatch(rate)
	if m == nil {
		return strings.TrimSuffix(rate, "/s")
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return rate
	}
	return strconv.FormatFloat(v*sizeOf[strings.ToLower(m[2])]/8, 'f', -1, 64) + "B"
}

// FormatItem writes an item of a list that was given as one text: a number as it is.
func FormatItem(item string) string {
	if bare := (&yaml.Node{Kind: yaml.ScalarNode, Value: item}); bare.ShortTag() == "!!int" || bare.ShortTag() == "!!float" {
		return item
	}
	return diag.FormatString(item)
}
