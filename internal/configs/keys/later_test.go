package keys

import (
	"slices"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
	"fluentps/ps/scheme"
)

// TestLimitsOfOthers holds numbers in tags to those that the code goes by.
func TestLimitsOfOthers(t *testing.T) {
	top := Bind("", TopKeys, &settings.Config{})
	for path, want := range map[string]Span{"shards.max_bytes": from(shard.ElemBytes, comm.MessageMax),
		"train.optimizer.epsilon": from(optim.EpsilonMin, 1e30)} {
		if got := top.ByPath[path].Span; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// TestLaterIsNotLegal keeps the list of what is missing free of what is there.
func TestLaterIsNotLegal(t *testing.T) {
	legal := map[string][]string{}
	for _, k := range All() {
		legal[k.Path] = k.Values
	}
	for _, e := range scheme.All {
		for _, d := range scheme.Docs(e.Params()) {
			path := "sync[]." + d.Key
			legal[path] = append(legal[path], d.Values...)
		}
	}
	for _, n := range notYet {
		values, isKey := legal[n.path]
		if isKey != (n.values != nil || n.numbers) {
			t.Errorf("%s: key in the table: %v", n.path, isKey)
		}
		for _, v := range n.values {
			if slices.Contains(values, v) {
				t.Errorf("%s: %s is in this version", n.path, v)
			}
		}
	}
}
