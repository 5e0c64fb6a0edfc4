// Package net holds the tests that need several hosts. hosts.sh makes them of namespaces on one machine, with links of a
// set rate; README.md tells how to use it by hand and in scripts.
package net
