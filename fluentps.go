// Package fluentps is the program as a library: with schemes and models of your own it is your parameter server, and has
// all verbs.
//
//	func main() { fluentps.Main(fluentps.With(alternate), fluentps.WithModel(elman)) }
//
// Your module may rely on this package, on the names of fluentps/ps/scheme that ps/scheme/OWN.md lists, on those of
// fluentps/ps/workload that ps/workload/OWN.md lists, and on the conformance suites fluentps/ps/scheme/schemetest and
// fluentps/ps/workload/modeltest. All other packages may change at any time.
package fluentps

import (
	"fluentps/internal/verbs"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// Option adds something of your module to the program.
type Option func() error

// With adds schemes to the table: `run`, `simulate`, `check`, `plan`, `explain`, `completion` and `sweep` know them by their names.
func With(entries ...scheme.Entry) Option {
	return func() error { return scheme.Add(entries...) }
}

// WithModel adds models to the table: `model: {name: ...}` may name them, and all verbs know them.
func WithModel(entries ...workload.ModelEntry) Option {
	return func() error { return workload.Add(entries...) }
}

// Main runs the verb of the process's command line, and ends the process with the exit code of the verb. An option that
// fails ends it with code 2. Call Main from main: MPI starts and ends on the main thread.
func Main(options ...Option) {
	var wrong []error
	for _, o := range options {
		wrong = append(wrong, o())
	}
	verbs.Main(wrong...)
}
