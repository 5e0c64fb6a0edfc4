// Package mutations holds the test that changes the inputs of the program in many ways. It checks that the program refuses or reads
// each one at once, within its memory limit, without a panic, and writes nothing elsewhere. FLUENTPS_MUTATIONS is the number of
// changes to try, FLUENTPS_MUTATIONS_SEED their seed, and FLUENTPS_MUTATIONS_OF what the names of the readers begin with.
package mutations
