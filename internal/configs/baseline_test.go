package configs

import (
	"strings"
	"testing"
)

// A baseline is a plain word or a mapping, in the file and in what overrides it; a word in place of a mapping is all of it.
func TestBaselineIsAWordOrAMapping(t *testing.T) {
	plain := strings.Split(base, "sync:")[0]
	for _, c := range []struct {
		file       string
		set, env   []string
		name, keys string
	}{
		{"", nil, nil, "none", ""},
		{"baseline: pslite", nil, nil, "pslite", "tensor"},
		{"baseline: {name: pslite}", nil, nil, "pslite", "tensor"},
		{"baseline: {name: pslite, keys: list}", nil, nil, "pslite", "list"},
		{"baseline: {keys: scalar, name: pslite}", nil, nil, "pslite", "scalar"},
		{"baseline: {name: allreduce}", nil, nil, "allreduce", ""},
		{"baseline: {name: none}", nil, nil, "none", ""},
		{"", []string{"baseline=pslite"}, nil, "pslite", "tensor"},
		{"", []string{"baseline=pslite", "baseline.keys=scalar"}, nil, "pslite", "scalar"},
		{"", []string{"baseline.keys=scalar", "baseline.name=pslite"}, nil, "pslite", "scalar"},
		{"", []string{"baseline={name: pslite, keys: list}"}, nil, "pslite", "list"},
		{"baseline: pslite", []string{"baseline.keys=scalar"}, nil, "pslite", "scalar"},
		{"baseline: {name: pslite, keys: list}", []string{"baseline.keys=null"}, nil, "pslite", "tensor"},
		{"baseline: {name: pslite, keys: list}", []string{"baseline=allreduce"}, nil, "allreduce", ""},
		{"baseline: {name: pslite, keys: list}", []string{"baseline=null"}, nil, "none", ""},
		{"", nil, []string{"FLUENTPS_BASELINE=pslite", "FLUENTPS_BASELINE__KEYS=list"}, "pslite", "list"},
		{"baseline: pslite", nil, []string{"FLUENTPS_BASELINE__KEYS=list"}, "pslite", "list"},
		{"baseline: allreduce", []string{"baseline.name=pslite"}, nil, "pslite", "tensor"},
	} {
		cfg, origins := accept(t, plain+c.file+"\n", Options{Set: c.set, Env: c.env})
		if cfg.Baseline != c.name || cfg.BaselineKeys != c.keys {
			t.Errorf("%q, %v %v: %q with keys %q, want %q and %q", c.file, c.set, c.env, cfg.Baseline, cfg.BaselineKeys, c.name, c.keys)
		}
		roundTrip(t, cfg, origins, 0)
	}
	for set, want := range map[string]string{
		"baseline.keys=lists":   `"lists" is unknown; did you mean list?`,
		"baseline.kys=list":     "unknown key; did you mean baseline.keys (which needs baseline: pslite)?",
		"baseline=ps-lite":      `"ps-lite" is unknown; did you mean pslite?`,
		"baseline.name=ps-lite": `"ps-lite" is unknown; did you mean pslite?`,
		"baseline.keys=list":    "baseline.keys: belongs to baseline: pslite, not none; remove it, or change baseline",
	} {
		_, _, ds := Parse("base.yaml", []byte(plain), Options{Set: []string{set}})
		if !ds.Failed() || !strings.Contains(written(t, ds), want) {
			t.Errorf("--set %s: %s, want %s", set, written(t, ds), want)
		}
	}
}
