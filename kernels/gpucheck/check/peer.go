//go:build cuda

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"fluentps/kernels/gpucheck"
)

// torchVersion prints the version of PyTorch without loading it, which may take long.
const torchVersion = "import importlib.metadata; print(importlib.metadata.version('torch'))"

// torchBlind is the exit code of torchpeer.py if PyTorch does not see the GPU.
const torchBlind = 3

// The ways of torchpeer.py, with the checks that time them.
const eagerWay, graphWay, compiledWay = "eager", "graph", "compiled"

var wayNames = map[string]string{eagerWay: "eager", graphWay: "CUDA graph", compiledWay: "compiled"}

// startTime is how long PyTorch may take to load and to begin its first case.
const startTime = 60 * time.Second

// peerCase is a model in one class of precision.
type peerCase struct{ class, model string }

// peerLine is a line of torchpeer.py.
type peerLine struct {
	Case, State, Reason string
	MS                  float64
	WithoutMS           float64 `json:"without_ms"`
	SetupS              float64 `json:"setup_s"`
	Traced              bool    // a line with the trace follows
	Kernels             []struct {
		Name  string
		Count float64
		US    float64
	}
	BusyUS float64 `json:"busy_us"`
	Steps  float64
}

// peer takes PyTorch's steps in one way, and sends a row for each case. torchpeer.py takes them, case by case. If its process ends in
// a case, or does not end the case in time, another one goes on with the next: a case costs no other case more than the time it took.
type peer struct {
	*gpucheck.Report
	way     string // of torchpeer.py
	most    time.Duration
	end     time.Time // of the check
	version string
	ours    map[peerCase]figure

	todo  []peerCase    // which have not begun
	now   *peerCase     // the case that has begun, and has not ended; nil: none
	done  *figure       // of the case that has begun; nil: no time yet
	limit time.Duration // what the case that has begun may take; before the first one, what PyTorch may take to load
}

// torchWay returns a check of PyTorch's steps in one way.
func torchWay(way string) func(*gpucheck.Report) error {
	return func(r *gpucheck.Report) error {
		said, err := exec.Command("python3", "-c", torchVersion).Output()
		if err != nil {
			r.Skip(r.Name, peerModels(r.Sizes), "PyTorch is missing: %v", failure(err, nil))
			return nil
		}
		p := &peer{Report: r, way: way, most: r.Sizes.CaseTime, version: strings.TrimSpace(string(said)), ours: map[peerCase]figure{}}
		if way == compiledWay {
			p.most = r.Sizes.CompileTime
		}
		p.end = time.Now().Add(r.Budget - min(5*time.Second, r.Budget/10)) // this process sends its rows before it is ended
		if r.Budget == 0 {                                                 // started by hand
			p.end = time.Now().Add(time.Hour)
		}
		for _, model := range r.Sizes.PeerModels {
			for _, class := range classes {
				c := peerCase{class, model}
				if p.ours[c], err = ours(class, model, r.Sizes); err != nil { // not while PyTorch computes
					return err
				}
				p.todo = append(p.todo, c)
			}
		}
		if err := adopt(); err != nil {
			return err
		}
		for len(p.todo) > 0 {
			if time.Until(p.end) <= 0 {
				for _, c := range p.todo {
					p.Skip(p.rowOf(c), p.sizeOf(c), "no time is left of the %v of this check", r.Budget.Round(time.Second))
				}
				return nil
			}
			if more, err := p.session(); err != nil || !more {
				return err
			}
		}
		return nil
	}
}

func (p *peer) rowOf(c peerCase) string { return fmt.Sprintf("%s, %s: %s", p.Name, c.class, c.model) }

func (p *peer) traceRowOf(c peerCase) string {
	return fmt.Sprintf("%s by kernel, %s: %s", p.Name, c.class, c.model)
}

func (p *peer) sizeOf(c peerCase) string { return netSize(c.model)(p.Sizes) }

// argumentOf names a case as torchpeer.py does.
func (p *peer) argumentOf(c peerCase) string {
	return fmt.Sprintf("%s,%s,%s,%d", p.way, c.class, c.model, p.Sizes.Batch)
}

func peerModels(s gpucheck.Sizes) string {
	return fmt.Sprintf("%s, batch %d", strings.Join(s.PeerModels, " "), s.Batch)
}

// session runs torchpeer.py for all cases that have not begun, until it ends or must be ended. more says that another one may go on.
func (p *peer) session() (more bool, err error) {
	bench, err := beside("torchpeer.py")
	if err != nil {
		return false, err
	}
	args := []string{bench, "--trace", p.Sizes.TraceModel}
	for _, c := range p.todo {
		args = append(args, p.argumentOf(c))
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer out.Close()
	cmd, wrote := exec.Command("python3", args...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+os.Getenv(givenVar))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = outEnd, io.MultiWriter(os.Stderr, wrote), gpucheck.Grace
	err = cmd.Start()
	outEnd.Close()
	if err != nil {
		return false, err
	}
	before := len(p.todo)
	over, ended := p.follow(cmd, out)
	switch idle := before == len(p.todo); {
	case over && idle:
		return false, fmt.Errorf("PyTorch %s did not begin its first case in %v", p.version, min(p.limit, startTime).Round(time.Second))
	case over:
		p.over()
		return true, nil
	case idle && cmd.ProcessState.ExitCode() == torchBlind:
		p.Skip(p.Name, peerModels(p.Sizes), "PyTorch %s does not see the GPU", p.version)
		return false, nil
	}
	if ended == nil {
		ended = errors.New("it ended early")
	}
	if before == len(p.todo) {
		return false, fmt.Errorf("torchpeer.py: %w", failure(ended, wrote.Bytes()))
	}
	p.fell(failure(ended, wrote.Bytes()))
	return true, nil
}

// follow reads what the process says until it has ended, with all that it has started. over says that it had to be
// ended, because a case took too long.
func (p *peer) follow(cmd *exec.Cmd, out io.Reader) (over bool, err error) {
	waited, lines := make(chan error, 1), make(chan string)
	go func() { waited <- cmd.Wait() }()
	go func() {
		defer close(lines)
		for said := bufio.NewReader(out); ; {
			line, err := said.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	p.limit = min(startTime, time.Until(p.end))
	spent := time.NewTimer(p.limit)
	var grace <-chan time.Time
	for lines != nil || waited != nil {
		select {
		case line, more := <-lines:
			if !more {
				lines = nil
			} else if p.read(line) {
				p.limit = min(p.most, time.Until(p.end)*2/3) // a case leaves time for the next one
				spent.Reset(p.limit)
			}
		case err = <-waited:
			waited = nil
			endDescendants(cmd.Process.Pid)
			grace = time.After(gpucheck.Grace)
		case <-spent.C:
			if waited == nil {
				continue
			}
			over = true
			endDescendants(cmd.Process.Pid)
			grace = time.After(gpucheck.Grace)
		case <-grace: // a process that the system cannot end, because it hangs in a driver, is left behind
			return over, err
		}
	}
	return over, err
}

// rowNow is the row that the case which has begun, and has not ended, was to send next.
func (p *peer) rowNow() (name, size string) {
	if p.done != nil {
		return p.traceRowOf(*p.now), p.sizeOf(*p.now)
	}
	return p.rowOf(*p.now), p.sizeOf(*p.now)
}

// over sends the row of a case that took too long.
func (p *peer) over() {
	if p.now == nil {
		return // it was done, and the process did not go on
	}
	name, size := p.rowNow()
	row := gpucheck.Row{Name: name, Size: size, Outcome: gpucheck.Over, Text: fmt.Sprintf("ended after %v", p.limit.Round(time.Millisecond))}
	if p.limit < p.most {
		row.Outcome = gpucheck.Skipped
		row.Text += fmt.Sprintf(", because too little time was left; a case may take %v", p.most)
	}
	p.Send(row)
	p.now, p.done = nil, nil
}

// fell sends the row of a case in which the process ended.
func (p *peer) fell(why error) {
	if p.now == nil {
		return // a row says already what failed
	}
	name, size := p.rowNow()
	p.Fail(name, size, "torchpeer.py: %v", why)
	p.now, p.done = nil, nil
}

// read takes a line of torchpeer.py. begun says that a case has begun, or its next part.
func (p *peer) read(text string) (begun bool) {
	var l peerLine
	if json.Unmarshal([]byte(text), &l) != nil || l.State == "" {
		fmt.Fprintln(os.Stderr, text)
		return false
	}
	if i := slices.IndexFunc(p.todo, func(c peerCase) bool { return p.argumentOf(c) == l.Case }); i >= 0 && l.State == "begun" {
		c := p.todo[i]
		p.now, p.done, p.todo = &c, nil, slices.Delete(p.todo, i, i+1)
		return true
	}
	if p.now == nil || l.Case != p.argumentOf(*p.now) {
		fmt.Fprintln(os.Stderr, text)
		return false
	}
	c := *p.now
	switch l.State {
	case "ok":
		p.timed(c, l)
		if l.Traced {
			return true
		}
	case "skipped":
		p.Skip(p.rowOf(c), p.sizeOf(c), "%s", l.Reason)
	case "failed":
		p.Fail(p.rowOf(c), p.sizeOf(c), "%s", l.Reason)
	case "untraced":
		p.Fail(p.traceRowOf(c), p.sizeOf(c), "%s", l.Reason)
	case "trace":
		p.traced(c, l)
	}
	p.now, p.done = nil, nil
	return false
}

// timed sends the row of a case that has a time.
func (p *peer) timed(c peerCase, l peerLine) {
	f, us := figure{Way: wayNames[p.way], Class: c.class, Model: c.model, MS: l.MS, WithoutMS: l.WithoutMS}, p.ours[c]
	if !(f.MS > 0 && f.WithoutMS > 0) {
		p.Fail(p.rowOf(c), p.sizeOf(c), "torchpeer.py printed no time")
		return
	}
	p.done = &f
	text := fmt.Sprintf("%.3f ms, PyTorch %s %.3f ms: ours / PyTorch %.2f; without the optimizer %.3f ms and %.3f ms: "+
		"%.2f; PyTorch's first steps took %.1f s", us.MS, p.version, f.MS, us.MS/f.MS,
		us.WithoutMS, f.WithoutMS, us.WithoutMS/f.WithoutMS, l.SetupS)
	if us.Class != c.class {
		text += "; ours is in " + us.Class
	}
	if err := f.keep(); err != nil {
		text += fmt.Sprintf("; it is not kept for the best of all ways: %v", err)
	}
	p.OK(p.rowOf(c), p.sizeOf(c), "%s", text)
}

// traced sends the row of a case whose kernels are listed.
func (p *peer) traced(c peerCase, l peerLine) {
	var kernels []ran
	for _, k := range l.Kernels {
		kernels = append(kernels, ran{k.Name, k.Count / l.Steps, k.US / 1e3 / l.Steps})
	}
	if p.done == nil || len(kernels) == 0 || !(l.Steps > 0) {
		p.Fail(p.traceRowOf(c), p.sizeOf(c), "torchpeer.py printed no kernels")
		return
	}
	p.OK(p.traceRowOf(c), p.sizeOf(c), "%s", sharesOf(p.done.MS, l.BusyUS/1e3/l.Steps, kernels))
}
