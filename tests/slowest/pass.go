package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// pkg is the output of a package so far.
type pkg struct {
	said    []string             // output outside tests
	tests   map[string]*[]string // output of tests that have not passed, in order
	order   []string
	ended   []kept
	closing bool // go test has written its own closing line
}

// pass reads events until the end of in.
func pass(in io.Reader, out io.Writer, keep func(kept) error) error {
	packages := map[string]*pkg{}
	read := bufio.NewReader(in)
	for {
		line, err := read.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line) // a line of go itself
			} else if err := take(e, packages, out, keep); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, p := range packages { // packages without an event for their end
		p.tell(out, "")
	}
	return nil
}

func take(e event, packages map[string]*pkg, out io.Writer, keep func(kept) error) error {
	if e.Action == "build-output" {
		_, err := io.WriteString(out, e.Output)
		return err
	}
	if e.Package == "" {
		return nil
	}
	p := packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*[]string{}}
		packages[e.Package] = p
	}
	over := e.Action == "pass" || e.Action == "fail" || e.Action == skipped
	switch {
	case e.Action == "output":
		p.output(e, out)
	case over && e.Test != "":
		p.end(e, out)
	case over:
		delete(packages, e.Package)
		p.tell(out, e.Action)
		if !p.closing && e.Action != skipped { // test2json alone writes no closing line
			fmt.Fprintf(out, "%-4s\t%s\t%.3fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Package, e.Elapsed)
		}
		for _, t := range p.ended {
			if p.covered(t) {
				continue
			}
			if err := keep(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pkg) output(e event, out io.Writer) {
	if e.Test == "" {
		if status, _, tabs := strings.Cut(e.Output, "\t"); tabs && slices.Contains([]string{"ok", "FAIL", "?"}, strings.TrimSpace(status)) {
			p.closing = true
			p.tell(out, strings.ToLower(strings.TrimSpace(status)))
			io.WriteString(out, e.Output)
			return
		}
		p.said = append(p.said, e.Output)
		return
	}
	said := p.tests[e.Test]
	if said == nil {
		said = new([]string)
		p.tests[e.Test], p.order = said, append(p.order, e.Test)
	}
	if !strings.HasPrefix(e.Output, "=== ") {
		*said = append(*said, e.Output)
	}
}

// end writes all output of a test that failed, its last line first. It drops the output of other tests.
func (p *pkg) end(e event, out io.Writer) {
	if said := p.tests[e.Test]; said != nil && e.Action == "fail" {
		k := slices.IndexFunc(*said, func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "--- FAIL: ") })
		if k >= 0 {
			io.WriteString(out, (*said)[k])
			*said = slices.Delete(*said, k, k+1)
		}
		for _, s := range *said {
			io.WriteString(out, s)
		}
	}
	delete(p.tests, e.Test)
	p.ended = append(p.ended, kept{e.Action, e.Package, e.Test, e.Elapsed})
}

// tell writes the output outside tests and of unfinished tests, unless the package passed.
func (p *pkg) tell(out io.Writer, action string) {
	if action == "" || action == "fail" {
		for _, name := range p.order {
			if said := p.tests[name]; said != nil {
				fmt.Fprintf(out, "--- unfinished: %s\n", name)
				for _, s := range *said {
					io.WriteString(out, s)
				}
			}
		}
		for _, s := range p.said {
			io.WriteString(out, s)
		}
	}
	p.said, p.order = nil, nil
}

// covered says whether a test is a part of another test that took as long. Parts that ran in parallel may take longer than the whole,
// as Go counts.
func (p *pkg) covered(t kept) bool {
	k := strings.LastIndexByte(t.test, '/')
	return k >= 0 && t.outcome != skipped && slices.ContainsFunc(p.ended, func(whole kept) bool {
		return whole.test == t.test[:k] && whole.seconds >= t.seconds
	})
}
