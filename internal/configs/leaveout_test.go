package configs

import (
	"fmt"
	"strings"
	"testing"
)

// Who overrides the scheme of a rule leaves out what only the old one has, and is told so.
func TestAnotherSchemeLeavesOutTheKeysOfTheOld(t *testing.T) {
	const src = `name: other
data: {set: generated}
model: {name: mlp, layers: [16, 8]}
train: {batch_per_worker: 32, optimizer: {lr: 0.1}, stop: {epochs: 1}}
sync:
  - {match: "fc1.*", scheme: pssp, staleness: 2, probability: 0.25, release: lazy, weight: 0.5}
  - {match: "*", schemes: [{scheme: ssp, staleness: 2, until: 50}, {scheme: bsp}]}
`
	var text strings.Builder
	for _, o := range []Options{
		{Set: []string{"sync[0].scheme=asp"}},
		{Set: []string{"sync[0].scheme=ssp"}},
		{Set: []string{"sync[0].scheme=pssp"}},
		{Set: []string{"sync[1].schemes[0].scheme=asp"}},
		{Env: []string{"FLUENTPS_SYNC__0__SCHEME=softsync"}},
		{Set: []string{"sync[0].staleness=5", "sync[0].scheme=asp"}},
		{Set: []string{"sync[0].scheme=asp", "sync[0].staleness=5"}}, // asked for after it: a mistake
		{Set: []string{"sync[0].scheme=aspp"}},
		{Set: []string{"sync[0].scheme=null", "sync[7].scheme=asp"}},
	} {
		fmt.Fprintf(&text, "%v %v\n", o.Env, o.Set)
		c, _, ds := Parse("other.yaml", []byte(src), o)
		sane(t, ds)
		text.WriteString(written(t, ds))
		if c != nil {
			fmt.Fprintf(&text, "%s %+v %+v\n", c.Sync[0].Schemes(), c.Sync[0].Common, c.Sync[0].Params)
			roundTrip(t, c, nil, ofValues(ds))
		}
	}
	golden(t, "testdata/leave-out.yaml", []byte(text.String()))
}
