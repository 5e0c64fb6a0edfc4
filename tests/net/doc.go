// Package net holds the tests that need several hosts. hosts.sh makes the hosts from namespaces on one machine, with links of a given
// rate. README.md describes its use by hand and in scripts.
package net
