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

	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
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
	"model.name":               {"model.layers=null", "data.classes=2"},
	"train.batch_global":       {"train.batch_per_worker=null"},
	"train.schedule.factor":    {"train.schedule.name=step", "train.schedule.every=5"},
	"train.schedule.floor":     {"train.schedule.name=cosine", "train.schedule.over=5"},
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
	"model.rank":               {"data.set=generated_ratings", "model.layers=null", "model.name=matrix_factorization"},
	"data.nonzeros":            {"data.set=generated_sparse", "data.features=1000000"},

	"train.optimizer.trust": {"train.optimizer.name=lars", "shards.slice=layer", `sync=[{match: "*", scheme: bsp}]`},
	"train.optimizer.beta1": {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
	"train.optimizer.beta2": {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
	"train.optimizer.l1":    {"train.optimizer.momentum=null", "train.optimizer.name=sgd", `sync=[{match: "*", scheme: bsp}]`},
	"local.host_steps": {"local.policy=averaging", "cluster.hierarchy=node", "train.optimizer.momentum=null",
		"train.optimizer.name=sgd", "local.steps="},
	"local.steps":             {"local.policy=hpsgd"},
	"local.period.name":       {"local.policy=averaging", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.alpha":      {"local.policy=averaging", "local.period.name=qsr"},
	"local.period.threshold":  {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.smoothing":  {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.warm":       {"local.policy=averaging", "local.period.name=selsync", `sync=[{match: "*", scheme: bsp}]`},
	"local.period.interval":   {"local.policy=averaging", "local.period.name=adacomm"},
	"local.state":             {"local.policy=averaging"},
	"local.fragments":         {"local.policy=streaming_diloco", "local.steps="},
	"local.delay":             {"local.policy=streaming_diloco", "local.fragments=1", "local.steps=1000000000"},
	"local.outer.momentum":    {"local.policy=averaging", "local.outer.name=nesterov"},
	"train.optimizer.epsilon": {"train.optimizer.momentum=null", "train.optimizer.name=adam"},
}

// needs drops what the drawn value does not allow.
func needs(l *leaf, value string) []string {
	var out []string
	path := l.path
	if path == "work.policy" || l.only != nil && l.only.path == "work.policy" {
		return append(out, needsOfWork(l, value)...)
	}
	if also[path] == nil && l.only != nil {
		return []string{l.only.path + "=" + l.only.words()[0]}
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
			path == "train.schedule.name" && s == "train.schedule.over=5" && value != "cosine" && value != "poly",
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
func needsOfWork(l *leaf, value string) (out []string) {
	policy := value
	if l.path != "work.policy" {
		words := l.only.words()
		policy = words[len(words)-1]
		out = append(slices.Clone(also[l.path]), "work.policy="+policy)
	}
	e, _ := work.All.Lookup(policy)
	if e.Timed && l.path != "work.time" {
		out = append(out, "work.time=1s")
	}
	if e.Scheme != "" {
		keys := ""
		if l.path == "work.required" {
			keys = ", required: " + value
		}
		out = append(out, `sync=[{match: "*", scheme: `+e.Scheme+keys+`}]`)
	}
	return out
}

// draw makes a legal value of a leaf and puts it into the leaf; its text is what --set gets.
func draw(t *rapid.T, l *leaf) string {
	lo, hi := max(l.span.lo, 0), l.span.hi
	if !l.span.set || math.IsInf(hi, 1) {
		hi = 1e6
	}
	whole := func() int64 { return rapid.Int64Range(int64(math.Ceil(lo)), int64(hi)).Draw(t, l.path) }
	switch p := l.ptr.(type) {
	case *string:
		*p = "fc1.x"
		if len(l.values()) > 0 {
			*p = rapid.SampledFrom(l.values()).Draw(t, l.path)
		} else if example, ok := map[*textForm]string{&parameterFile: "fc1.npz", &linkRates: "10Gbit"}[l.text]; ok {
			*p = example
		}
	case *bool:
		*p = rapid.Bool().Draw(t, l.path)
	case *int:
		*p = int(whole())
	case *int64:
		*p = whole()
	case *uint64:
		*p = rapid.Uint64().Draw(t, l.path)
	case *float64:
		fits := func(v float64) bool { // stragglers that take no longer than the others are none
			return l.span.has(v) && l.inSingle(v, &yaml.Node{}) == nil && (l.path != "work.code.alpha" || v == 0 || v > 1)
		}
		*p = rapid.Float64Range(lo, hi).Filter(fits).Draw(t, l.path)
	case *time.Duration:
		fits := func(d int64) bool { // the shortest heartbeat limit is one, or none
			return l.span.has(time.Duration(d).Seconds()) && (l.path != "stall.peer" || d == 0 || d >= int64(PeerMin))
		}
		*p = time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Filter(fits).Draw(t, l.path))
	case *workload.Cost:
		times := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "time"))
		})
		*p = workload.Cost{Fixed: 1 + times.Draw(t, l.path), PerSample: times.Draw(t, l.path)}
	case *byteSize:
		*p = byteSize(whole())
	case *[]string:
		*p = []string{"csv"}
	case *[]int:
		if l.path == "data.image" { // three, and not more values than features may be
			*p = []int{rapid.IntRange(1, 4).Draw(t, l.path), rapid.IntRange(1, 500).Draw(t, l.path), rapid.IntRange(1, 500).Draw(t, l.path)}
			break
		}
		*p = rapid.SliceOfN(rapid.IntRange(1, 5000), 1, 9).Draw(t, l.path)
	case *[]float64:
		*p = rapid.SliceOfN(rapid.Float64Range(lo, hi).Filter(l.span.has), 1, 9).Draw(t, l.path)
	case *[]int64:
		*p = []int64{whole()}
	default:
		t.Fatalf("no value for %T", l.ptr)
	}
	return format(l.ptr)
}

// TestSetEveryPath sets a random key to a random legal value, by --set or by the environment, and finds it in
// the Config and in its origins.
func TestSetEveryPath(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		want := &Config{Sync: make([]Rule, 2)}
		params := &scheme.SSPParams{}
		leaves := bind("", topKeys, want).leaves
		for _, p := range paramsOf(params) {
			leaves = append(leaves, &leaf{spec: p.spec, ptr: p.ptr, path: "sync[1]." + p.spec.path})
		}
		l := rapid.SampledFrom(leaves).Filter(func(l *leaf) bool { return l.path != "sync" && l.path != "faults" }).Draw(t, "key")
		seen[l.path] = true
		value := draw(t, l)
		o := Options{Set: needs(l, strings.Trim(value, `"`))}
		origin := "--set"
		if rapid.Bool().Draw(t, "env") {
			name := "FLUENTPS_" + strings.ToUpper(strings.NewReplacer(".", "__", "[", "__", "]", "").Replace(l.path))
			o.Env, origin = []string{name + "=" + value}, "env "+name
		} else {
			o.Set = append(o.Set, l.path+"="+value)
		}
		c, origins, ds := Parse("base.yaml", []byte(base), o)
		if ds.Failed() {
			t.Fatalf("%v is refused: %s", o, ds[0])
		}
		var resolved bytes.Buffer
		if err := c.Resolved(&resolved, nil); err != nil {
			t.Fatal(err)
		}
		if err := fits(resolved.Bytes()); err != nil {
			t.Fatalf("the schema refuses %v: %v", o, err)
		}
		got := ""
		for _, g := range bind("", topKeys, c).leaves {
			if g.path == l.path {
				got = format(g.ptr)
			}
		}
		if name, ok := strings.CutPrefix(l.path, "sync[1]."); ok {
			for _, g := range paramsOf(c.Sync[1].Params) {
				if g.spec.path == name {
					got = format(g.ptr)
				}
			}
		}
		if got != value || origins.Of(l.path) != origin {
			t.Fatalf("%s is %s from %s, want %s from %s", l.path, got, origins.Of(l.path), value, origin)
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
		c, origins, ds := Parse("fuzz.yaml", src, Options{Set: []string{set}, Env: []string{envPrefix + env}})
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
