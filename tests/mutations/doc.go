// Package mutations holds the test that changes what the program reads, in many ways, and sees that it is refused or read, at
// once, within its memory, without a panic, and that nothing beside it is written. FLUENTPS_MUTATIONS is how many changes are
// tried, FLUENTPS_MUTATIONS_SEED which.
package mutations
