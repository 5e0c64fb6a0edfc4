package scheme

import "fluentps/internal/policy/named"

// All is the table of schemes. Config keys, explain, README rows and conformance tests come from it, so a
// new scheme is one file and one line here; go test -run TestReadmeRows -rewrite writes its row.
var All = named.Table[Entry]{
	bsp,
	asp,
	ssp,
	boundedDelay,
	dssp,
	pssp,
	dsps,
	drop,
	softsync,
	consgd,
	dynsgd,
	r2sp,
	vap,
	essp,
	ringmaster,
	rennala,
	ringleader,
	quorum,
	coded,
}

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }
