// Command slowest reads the output of `go test -json` and `go tool test2json`. It passes on the output that `go test` has without
// -json: the whole output of failures and one closing line per package. It keeps the time of each test, and the skipped tests. From
// the records of all stages it lists the slowest tests, and counts the skipped ones.
//
//	go test -json ... | slowest STAGE FILE   pass on, and add to FILE
//	slowest FILE                             the list
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	listed    = 15
	skipped   = "skip"
	fieldsMax = 5
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch len(args) {
	case 1:
		data, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		return list(string(data), out)
	case 2:
		// The signal that stops a stage is for the programs that write to this one. Their output so far is passed on.
		signal.Ignore(syscall.SIGTERM)
		// Stages that run at the same time append to one file, with one line per write.
		file, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer file.Close()
		return pass(in, out, func(t kept) error {
			_, err := file.WriteString(t.line(args[0]))
			return err
		})
	}
	return fmt.Errorf("usage: slowest STAGE FILE, or slowest FILE")
}

// kept is the record of one test.
type kept struct {
	outcome, pkg, test string
	seconds            float64
}

func (t kept) line(stage string) string {
	return fmt.Sprintf("%s\t%.2f\t%s\t%s\t%s\n", t.outcome, t.seconds, stage, t.pkg, t.test)
}

// list writes the slowest of the tests, and per stage how many were skipped.
func list(lines string, out io.Writer) error {
	type entry struct {
		seconds float64
		fields  []string // outcome, seconds, stage, package, test
	}
	var ran []entry
	var stages []string
	skips := map[string][]string{}
	for line := range strings.Lines(lines) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", fieldsMax)
		if len(fields) < fieldsMax {
			return fmt.Errorf("%q: want %d fields", line, fieldsMax)
		}
		seconds, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		if fields[0] != skipped {
			ran = append(ran, entry{seconds, fields})
			continue
		}
		stage := fields[2]
		if skips[stage] == nil {
			stages = append(stages, stage)
		}
		if name := strings.TrimPrefix(fields[3], "fluentps/") + "." + fields[4]; !slices.Contains(skips[stage], name) {
			skips[stage] = append(skips[stage], name)
		}
	}
	slices.SortStableFunc(ran, func(a, b entry) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return 0
	})
	fmt.Fprintf(out, "the slowest %d of %d tests:\n", min(listed, len(ran)), len(ran))
	for _, e := range ran[:min(listed, len(ran))] {
		fmt.Fprintf(out, "%7.1f s  %-8s %s %s\n", e.seconds, e.fields[2], strings.TrimPrefix(e.fields[3], "fluentps/"), e.fields[4])
	}
	for _, stage := range stages {
		fmt.Fprintf(out, "skipped in %s: %s\n", stage, strings.Join(skips[stage], ", "))
	}
	return nil
}
