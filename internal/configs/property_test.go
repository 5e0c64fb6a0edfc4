package configs

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset/csv"
)

// also lists what else must be set for a key to be legal in the base file, beside the key that it belongs to.
var also = map[string][]string{
	"work.threads_max":         {"device={kind: cpu, threads: 1}"}, // threads move between workers on processors
	"checkpoint.best":          {"checkpoint.every=10m", "evaluate.where=online"},
	"data.set":                 {"data.path=p", "data.test=t"},
	"data.test":                {"data.set=csv", "data.path=p"},
	"data.scale":               {"data.set=csv", "data.path=p", "data.test=t"},
	"data.normalize":           {"data.set=idx", "data.path=p"},
	"data.augment.crop":        {"data.set=idx", "data.path=p"},
	"data.augment.flip":        {"data.set=idx", "data.path=p"},
	"data.augment.rotate":      {"data.set=idx", "data.path=p"},
	"data.augment.jitter":      {"data.set=idx", "data.path=p"},
	"data.augment.cutout":      {"data.set=idx", "data.path=p"},
	"data.stage":               {"data.set=packed", "data.path=p"},
	"model.name":               {"model.layers=null", "data.classes=2"},
	"train.batch_global":       {"train.batch_per_worker=null"},
	"train.schedule.factor":    {"train.schedule.name=step", "train.schedule.every=5"},
	"train.schedule.floor":     {"train.schedule.name=cosine", "train.schedule.over=5"},
	"train.schedule.start":     {"train.schedule.name=one_cycle", "train.schedule.over=5"},
	"train.schedule.rise":      {"train.schedule.name=one_cycle", "train.schedule.over=5"},
	"train.schedule.power":     {"train.schedule.name=poly", "train.schedule.over=5"},
	"train.schedule.name":      {"train.schedule.every=5", "train.schedule.over=5"},
	"train.stop.target":        {"evaluate.where=online"},
	"train.optimizer.name":     {"train.optimizer.momentum=null", "shards.slice=layer"},
	"send.tune.min":            {"send.order=credit", "send.tune.max=1048576GiB"},
	"send.tune.max":            {"send.order=credit", "send.tune.min=1B"},
	"stall.abort":              {"stall.warn=0s"},
	"baseline":                 {`sync=[{match: "*", scheme: bsp}]`},
	"baseline.keys":            {"baseline.name=pslite", `sync=[{match: "*", scheme: bsp}]`},
	"baseline.algorithm":       {"baseline.name=allreduce", `sync=[{match: "*", scheme: bsp}]`},
	"checkpoint.every":         {`sync=[{match: "*", scheme: bsp}]`},
	"checkpoint.replica":       {"checkpoint.every=1m", `sync=[{match: "*", scheme: bsp}]`},
	"checkpoint.every_updates": {`sync=[{match: "*", scheme: bsp}]`},
	"sync[1].cache":            {"sync[1].push=delta"},
	"evaluate.every_epochs":    {"evaluate.where=online"},
	"simulate.noise.kind":      {"simulate.noise.path=p"},
	"data.matrix.rows":         {"data.set=generated_ratings", "model={name: matrix_factorization}"},
	"data.matrix.columns":      {"data.set=generated_ratings", "model={name: matrix_factorization}"},
	"data.matrix.rank":         {"data.set=generated_ratings", "model={name: matrix_factorization}"},
	"data.matrix.noise":        {"data.set=generated_ratings", "model={name: matrix_factorization}"},
	"data.center":              {"data.set=ratings", "data.path=p", "data.test=t", "model={name: matrix_factorization}"},
	"data.targets":             {"data.task=regress"},
	"data.task":                {},
	"model.loss":               {"data.task=regress"},
	"model.huber_delta":        {"data.task=regress", "model.loss=huber"},
	"model.rank":               {"data.set=generated_ratings", "model.layers=null", "model.name=matrix_factorization"},
	"data.nonzeros":            {"data.set=generated_sparse", "data.features=1000000"},

	"train.optimizer.trust": {"train.optimizer.name=lars", "shards.slice=layer", `sync=[{match: "*", scheme: bsp}]`},
	"train.optimizer.beta1": {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
	"train.optimizer.beta2": {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
	"train.optimizer.l1":    {"train.optimizer.momentum=null", "train.optimizer.name=sgd", `sync=[{match: "*", scheme: bsp}]`},
	"local.host_steps": {"local.policy=averaging", "cluster.hierarchy=node", "train.optimizer.momentum=null",
		"train.optimizer.name=sgd", "local.steps="},
	"local.steps":              {"local.policy=hpsgd"},
	"local.period.name":        {"local.policy=averaging", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.alpha":       {"local.policy=averaging", "local.period.name=qsr"},
	"local.period.threshold":   {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.smoothing":   {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.warm":        {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.interval":    {"local.policy=averaging", "local.period.name=adacomm"},
	"local.state":              {"local.policy=averaging"},
	"local.fragments":          {"local.policy=streaming_diloco", "local.steps="},
	"local.delay":              {"local.policy=streaming_diloco", "local.fragments=1", "local.steps=1000000000"},
	"local.outer.momentum":     {"local.policy=averaging", "local.outer.name=nesterov"},
	"train.optimizer.epsilon":  {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
	"train.optimizer.nesterov": muon, "train.optimizer.scale": muon, "train.optimizer.others.match": muon, "train.optimizer.others.lr": muon,
	"train.optimizer.others.beta1": muon, "train.optimizer.others.beta2": muon, "train.optimizer.others.epsilon": muon,
	"train.optimizer.others.weight_decay": muon,
}

// muon is what the keys of muon need.
var muon = []string{"train.optimizer.name=muon"}

// needs drops what the drawn value does not allow.
func needs(l *keys.Leaf, value string) []string {
	var out []string
	path := l.Path
	if path == "work.policy" || l.Only != nil && l.Only.Path == "work.policy" {
		return append(out, needsOfWork(l, value)...)
	}
	if value == "external" || l.Only != nil && l.Only.Words()[0] == "external" { // the program and its data go together
		for _, s := range []string{"data.set=external", "model.layers=null", "model.name=external", "model.command=[python3]",
			"model.shapes=n.shapes"} {
			if !strings.HasPrefix(s, path+"=") {
				out = append(out, s)
			}
		}
		return out
	}
	if path == "train.clip.of" {
		return []string{"train.clip.norm=1", `sync=[{match: "*", scheme: drop, required: 1, contributors: step}]`}
	}
	if path == "data.partition.by" {
		return []string{"data.set=csv", "data.path=p", "data.test=t"}
	}
	if strings.HasPrefix(path, "data.partition.") {
		return nil // of generated rows
	}
	if l.Only != nil && l.Only.Path == "data.set" && slices.Contains(l.Only.Words(), "csv") {
		out = []string{"data.set=csv"}
		if path != "data.path" {
			out = append(out, "data.path=p")
		}
		if path != "data.test" && path != "data.split.test" {
			out = append(out, "data.test=t")
		}
		return out
	}
	if path == "data.index_base" {
		return []string{"data.set=libsvm", "data.path=p", "data.test=t"}
	}
	if strings.HasPrefix(path, "data.pictures.") {
		return []string{"data.set=images", "data.path=p"}
	}
	if strings.HasPrefix(path, "data.tokens.") {
		return []string{"data.set=tokens", "data.path=p", "data.test=t"}
	}
	if strings.HasPrefix(path, "data.arrays.") {
		return []string{"data.set=npy", "data.path=p"}
	}
	if also[path] == nil && l.Only != nil {
		return []string{l.Only.Path + "=" + l.Only.Words()[0]}
	}
	if targets, classes := workload.TakesTargets(value); path == "model.name" && targets && !classes {
		return []string{"model.layers=null", "data.task=regress"}
	}
	for _, s := range also[path] {
		switch {
		case path == "model.name" && workload.NeedsImages(value) && s == "data.classes=2":
			out = append(out, "data={set: idx, path: p}") // images, and no number of classes beside them
		case path == "model.name" && value == "matrix_factorization" && s == "data.classes=2":
			out = append(out, "data.set=generated_ratings")
		case path == "data.set" && strings.HasPrefix(value, "generated"),
			path == "data.set" && strings.HasPrefix(s, "data.test") && value != "csv" && value != "libsvm" && value != "ratings",
			path == "model.name" && (value == "mlp" || value == "synthetic") && strings.HasPrefix(s, "model."),
			path == "train.schedule.name" && s == "train.schedule.every=5" && value != "step",
			path == "train.schedule.name" && s == "train.schedule.over=5" && value != "cosine" && value != "poly" && value != "one_cycle",
			path == "simulate.noise.kind" && value != "trace":
		case s == "local.steps=": // fragments must divide them
			out = append(out, s+value)
		default:
			out = append(out, s)
		}
	}
	if path == "data.set" && strings.HasSuffix(value, "ratings") {
		out = append(out, "model={name: matrix_factorization}")
	}
	return out
}

// needsOfWork are those of the policy of the work axis, and of its keys.
func needsOfWork(l *keys.Leaf, value string) (out []string) {
	policy := value
	if l.Path != "work.policy" {
		words := l.Only.Words()
		policy = words[len(words)-1]
		out = append(slices.Clone(also[l.Path]), "work.policy="+policy)
	}
	e, _ := work.All.Lookup(policy)
	if e.Timed && l.Path != "work.time" {
		out = append(out, "work.time=1s")
	}
	if e.Scheme != "" {
		keys := ""
		if l.Path == "work.required" {
			keys = ", required: " + value
		}
		out = append(out, `sync=[{match: "*", scheme: `+e.Scheme+keys+`}]`)
	}
	return out
}

// draw makes a legal value of a leaf and puts it into the leaf; its text is what --set gets.
func draw(t *rapid.T, l *keys.Leaf) string {
	lo, hi := max(l.Span.Lo, 0), l.Span.Hi
	if !l.Span.Set || math.IsInf(hi, 1) {
		hi = 1e6
	}
	whole := func() int64 { return rapid.Int64Range(int64(math.Ceil(lo)), int64(hi)).Draw(t, l.Path) }
	switch p := l.Ptr.(type) {
	case *string:
		*p = "fc1.x"
		if len(l.Values()) > 0 {
			*p = rapid.SampledFrom(l.Values()).Draw(t, l.Path)
		}
		for _, example := range []string{"fc1.npz", "10Gbit", "fc1.shapes"} { // of files, and of link rates
			if l.Text != nil && !l.Text.MatchString(*p) {
				*p = example
			}
		}
	case *bool:
		*p = rapid.Bool().Draw(t, l.Path)
	case *int:
		*p = int(whole())
	case *int64:
		*p = whole()
	case *uint64:
		*p = rapid.Uint64().Draw(t, l.Path)
	case *float64:
		fits := func(v float64) bool { // stragglers that take no longer than the others are none
			return l.Span.Has(v) && l.InSingle(v, &yaml.Node{}) == nil && (l.Path != "work.code.alpha" || v == 0 || v > 1)
		}
		*p = rapid.Float64Range(lo, hi).Filter(fits).Draw(t, l.Path)
	case *time.Duration:
		fits := func(d int64) bool { // the shortest heartbeat limit is one, or none
			return l.Span.Has(time.Duration(d).Seconds()) && (l.Path != "stall.peer" || d == 0 || d >= int64(settings.PeerMin))
		}
		*p = time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Filter(fits).Draw(t, l.Path))
	case *workload.Cost:
		times := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "time"))
		})
		*p = workload.Cost{Fixed: 1 + times.Draw(t, l.Path), PerSample: times.Draw(t, l.Path)}
	case *csv.Columns:
		p.Kinds = csv.KindsOf([]string{"1", "a: \"b\"", csv.Others}, rapid.SliceOfN(rapid.SampledFrom(csv.KindNames()), 3, 3).Draw(t, l.Path))
	case *keys.ByteSize:
		*p = keys.ByteSize(whole())
	case *[]string:
		*p = []string{"csv"}
	case *[]int:
		if l.Path == "data.image" { // three, and not more values than features may be
			*p = []int{rapid.IntRange(1, 4).Draw(t, l.Path), rapid.IntRange(1, 500).Draw(t, l.Path), rapid.IntRange(1, 500).Draw(t, l.Path)}
			break
		}
		most := 9
		if strings.HasPrefix(l.Path, "data.pictures.") { // a size
			most = 2
		}
		*p = rapid.SliceOfN(rapid.IntRange(1, 5000), 1, most).Draw(t, l.Path)
	case *[]float64:
		*p = rapid.SliceOfN(rapid.Float64Range(lo, hi).Filter(l.Span.Has), 1, 9).Draw(t, l.Path)
	case *[]int64:
		*p = []int64{whole()}
	default:
		t.Fatalf("no value for %T", l.Ptr)
	}
	return keys.Format(l.Ptr)
}

// TestSetEveryPath sets a random key to a random legal value, by --set or by the environment, and finds it in
// the Config and in its origins.
func TestSetEveryPath(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		want := &settings.Config{Sync: make([]settings.Rule, 2)}
		params := &scheme.SSPParams{}
		leaves := keys.Bind("", keys.TopKeys, want).Leaves
		for _, p := range keys.BindParams(params) {
			leaves = append(leaves, &keys.Leaf{Spec: p.Spec, Ptr: p.Ptr, Path: "sync[1]." + p.Spec.Path})
		}
		l := rapid.SampledFrom(leaves).Filter(func(l *keys.Leaf) bool { return l.Path != "sync" && l.Path != "faults" }).Draw(t, "key")
		seen[l.Path] = true
		value := draw(t, l)
		o := Options{Set: needs(l, strings.Trim(value, `"`))}
		origin := "--set"
		if rapid.Bool().Draw(t, "env") {
			name := "FLUENTPS_" + strings.ToUpper(strings.NewReplacer(".", "__", "[", "__", "]", "").Replace(l.Path))
			o.Env, origin = []string{name + "=" + value}, "env "+name
		} else {
			o.Set = append(o.Set, l.Path+"="+value)
		}
		c, origins, ds := Parse("base.yaml", []byte(base), o)
		if ds.Failed() {
			t.Fatalf("%v is refused: %s", o, ds[0])
		}
		var resolved bytes.Buffer
		if err := keys.Resolved(&resolved, c, nil); err != nil {
			t.Fatal(err)
		}
		if err := fits(resolved.Bytes()); err != nil {
			t.Fatalf("the schema refuses %v: %v", o, err)
		}
		got := ""
		for _, g := range keys.Bind("", keys.TopKeys, c).Leaves {
			if g.Path == l.Path {
				got = keys.Format(g.Ptr)
			}
		}
		if name, ok := strings.CutPrefix(l.Path, "sync[1]."); ok {
			for _, g := range keys.BindParams(c.Sync[1].Params) {
				if g.Spec.Path == name {
					got = keys.Format(g.Ptr)
				}
			}
		}
		if got != value || origins.Of(l.Path) != origin {
			t.Fatalf("%s is %s from %s, want %s from %s", l.Path, got, origins.Of(l.Path), value, origin)
		}
	})
	if len(seen) < 20 {
		t.Errorf("only %d keys were tried", len(seen))
	}
}

// FuzzParse demands that nothing panics, that every problem has a place and a message, and that whatever is
// accepted survives the way through its resolved form.
func FuzzParse(f *testing.F) {
	all := everySource(f)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.Add(all[name], "seed=3", "DEVICE__THREADS=2")
	}
	f.Add([]byte(base), "sync[0]={match: x, scheme: ssp}", "SYNC__0__SCHEME=asp")
	f.Add([]byte(base), "faults[0].slow.factor=2", "FAULTS__0__WORKER=*")
	f.Add([]byte("\"a\\nb\": 1\n"), "seed=3", "DEV\n__THREADS=1") // line breaks in keys once broke a message in two
	f.Fuzz(func(t *testing.T, src []byte, set, env string) {
		c, origins, ds := Parse("fuzz.yaml", src, Options{Set: []string{set}, Env: []string{diag.EnvPrefix + env}})
		sane(t, ds)
		written(t, ds)
		ds.JSON()
		if (c == nil) != ds.Failed() {
			t.Fatalf("config %v with problems %v", c, ds)
		}
		if c != nil {
			roundTrip(t, c, origins, ofValues(ds))
		}
	})
}

// BenchmarkCheck is one file from text to diagnostics; about a millisecond keeps check instant.
func BenchmarkCheck(b *testing.B) {
	all := everySource(b)
	for _, file := range []string{"fashion-mlp-mixed.yaml", "everything.good.yaml", "unknown-keys.bad.yaml", "syntax-indent.bad.yaml"} {
		src := all[file]
		b.Run(file, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				_, _, ds := Parse(file, src, Options{Set: []string{"seed=3"}})
				_ = fmt.Sprint(len(ds))
			}
		})
	}
}
