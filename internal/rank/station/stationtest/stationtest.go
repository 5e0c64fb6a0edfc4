// Package stationtest makes stations without a run, for the tests of the two sides of a rank.
package stationtest

import (
	"testing"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
)

// New returns one of two ranks: 0 is the server and 1 the worker. There is one shard of elements elements in pieces of
// 64 bytes, under the test configuration with the given settings.
func New(t testing.TB, me, elements int, set ...string) *station.Station {
	t.Helper()
	cfg := configstest.Load(t, append(set, "cluster.servers=1")...)
	o := shard.Options{Slice: "even", MaxBytes: 64, Servers: 1, Rules: []string{"*"}}
	if codec := cfg.PushCodec(); codec != nil {
		o.PushBytes = codec.EncodedMax
	}
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: elements}}, o)
	if err != nil {
		t.Fatal(err)
	}
	tr := inproc.New(2, inproc.Options{})[me]
	st := &station.Station{Transport: tr, Net: link.New(tr, link.Options{}), Me: me, Config: cfg, Plan: plan,
		Roles: shard.Roles{Servers: []int{0}, Workers: []int{1}}}
	st.Routes = layout.NewRoutes(cfg, plan, st.Roles, nil, layout.Thresholds{})
	return st
}
