package scheme

// All is the table of schemes. Config keys, explain, README rows and conformance tests come from it, so a
// new scheme is one file and one line here; go test -run TestReadmeRows -rewrite writes its row.
var All = []Entry{
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

// Lookup finds the entry of that name; ok is false if there is none.
func Lookup(name string) (e Entry, ok bool) {
	for _, e := range All {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists the schemes in the order of the table.
func Names() []string {
	names := make([]string, len(All))
	for k, e := range All {
		names[k] = e.Name
	}
	return names
}
