package externaltest

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// point is where a child does something of its own.
type point uint8

const (
	atStart   point = iota // before it says anything
	atHello                // instead of HELLO
	atBind                 // before it tells of its tensors
	atBound                // instead of BOUND
	atFill                 // instead of FILLED
	atStep                 // instead of a step
	atForward              // instead of FORWARD
	atGo                   // instead of all READY and DONE
	atDone                 // instead of DONE
	atEval                 // instead of an evaluation
	atSize                 // instead of the answer to STATE, by what that asks for
	atSave
	atRestore
	atBye // at BYE
)

// fault is what goes wrong, and where. do says whether it replaces what a good child does there.
type fault struct {
	at point
	do func(c *child) bool
}

// faults are the modes that go wrong, by name.
var faults = map[string]fault{
	"ends":  {atStart, exits(0)},
	"exits": {atStart, exits(3)},

	"version":   {atHello, sends(message{kind: msgHello, a: 2})},
	"impolite":  {atHello, sends(message{kind: msgDone})},
	"shortword": {atHello, raws(3)},

	"shape":     {atBind, binds(func(c *child) { c.tensors[0].shape = "3x4" })},
	"name":      {atBind, binds(func(c *child) { c.tensors[0].name = "hidden.other" })},
	"longname":  {atBind, binds(func(c *child) { c.tensors[0].name = strings.Repeat("w", 201) })},
	"escapes":   {atBind, binds(func(c *child) { c.tensors[0].layer = "a\x1b[31m" })},
	"layername": {atBind, binds(func(c *child) { c.tensors[3].layer, c.tensors[4].layer = "end", "end" })},
	"statistic": {atBind, binds(func(c *child) { c.tensors[2].stat = 0 })},
	"swapped": {atBind, binds(func(c *child) {
		c.tensors[0], c.tensors[1] = c.tensors[1], c.tensors[0]
		c.tensors[0].index, c.tensors[1].index = 0, 1
	})},
	"fewer": {atBind, binds(func(c *child) { c.tensors = c.tensors[:4] })},
	"more": {atBind, binds(func(c *child) {
		c.tensors = append(c.tensors, tensor{"out", "out.scale", "1", 0, 5, 1})
	})},
	"onelayer": {atBind, binds(func(c *child) { c.tensors = c.tensors[:3] })},
	"threelayers": {atBind, binds(func(c *child) {
		c.tensors = append(c.tensors, tensor{"last", "last.scale", "1", 0, 5, 1})
	})},
	"twice": {atBind, binds(func(c *child) { c.tensors[1].name = c.tensors[0].name })},
	"apart": {atBind, binds(func(c *child) {
		c.tensors = append(c.tensors, tensor{"hidden", "hidden.scale", "1", 0, 5, 1})
	})},
	"product":    {atBind, binds(func(c *child) { c.tensors[0].elements = 11 })},
	"shapetext":  {atBind, binds(func(c *child) { c.tensors[0].shape = "4xthree" })},
	"zeroshape":  {atBind, binds(func(c *child) { c.tensors[0].shape = "4x0" })},
	"hugeshape":  {atBind, binds(func(c *child) { c.tensors[0].shape = "2000000000x2000000000x2000000000" })},
	"lines":      {atBind, binds(func(c *child) { c.tensors[0].shape += "\n4" })},
	"index":      {atBind, binds(func(c *child) { c.tensors[1].index = 7 })},
	"none":       {atBind, binds(func(c *child) { c.tensors = nil })},
	"boundcount": {atBound, sends(message{kind: msgBound, a: 9})},
	"boundtwice": {atBound, sends(message{kind: msgBound, a: tensors}, message{kind: msgBound, a: tensors})},

	"filledregion": {atFill, func(c *child) bool {
		c.say(message{kind: msgFilled, a: c.asked.a + 7, b: 4})
		return true
	}},
	"filledbytes": {atFill, func(c *child) bool {
		c.say(message{kind: msgFilled, a: c.asked.a, b: 4})
		return true
	}},

	"raises":  {atStep, raises},
	"killed":  {atStep, signals(unix.SIGKILL)},
	"stopped": {atStep, signals(unix.SIGSTOP)},
	"waits": {atStep, func(c *child) bool {
		fmt.Println("waits")
		return sleeps(c)
	}},
	"short":   {atStep, raws(15)},
	"long":    {atStep, raws(16 + 60_001)},
	"empty":   {atStep, raws(0)},
	"kind":    {atStep, sends(message{kind: 20})},
	"kind0":   {atStep, sends(message{kind: 0})},
	"flags":   {atStep, sends(message{kind: msgForward, flags: 2})},
	"text":    {atStep, sends(message{kind: msgForward, text: "hello"})},
	"parents": {atStep, sends(message{kind: msgGo})}, // what only a parent says
	"closes":  {atStep, closes},
	"forks":   {atStep, forks(false)},
	"leaves":  {atStep, forks(true)},
	"floods":  {atStep, floods},

	"readyearly":    {atStep, sends(message{kind: msgReady})},
	"hits":          {atForward, sends(message{kind: msgForward, flags: 1, a: 1000})},
	"beforego":      {atForward, sends(message{kind: msgForward, b: math.Float64bits(1)}, message{kind: msgReady})},
	"readytwice":    {atGo, sends(message{kind: msgReady, a: 1}, message{kind: msgReady, a: 1})},
	"nolayer":       {atGo, sends(message{kind: msgReady, a: 2})},
	"doneearly":     {atGo, sends(message{kind: msgReady, a: 1}, message{kind: msgDone})},
	"doneflags":     {atDone, sends(message{kind: msgDone, flags: 2})},
	"neverdone":     {atDone, sleeps},
	"resultinstead": {atDone, sends(message{kind: msgResult, flags: 1})},

	"nohits":     {atEval, sends(message{kind: msgResult, b: math.Float64bits(1)})},
	"resulthits": {atEval, sends(message{kind: msgResult, flags: 1, a: 1000})},
	"doneatend":  {atEval, sends(message{kind: msgDone})},

	"statehuge":    {atSize, sends(message{kind: msgState, b: 1 << 40})},
	"stateresult":  {atSize, sends(message{kind: msgResult, flags: 1})},
	"statebytes":   {atSave, sends(message{kind: msgState, flags: 1, a: 2, b: 3})},
	"stateregion":  {atSave, sends(message{kind: msgState, flags: 1, a: 9, b: 11})},
	"staterestore": {atRestore, sends(message{kind: msgState, flags: 1, a: 2, b: 11})},

	"byeexits":  {atBye, exits(4)},
	"byekilled": {atBye, signals(unix.SIGKILL)},
}

// exits ends the child without a word to its parent.
func exits(code int) func(*child) bool {
	return func(*child) bool {
		fmt.Fprintf(os.Stderr, "first line\nexits with %d\n", code)
		panic(ending{code})
	}
}

// sends sends messages, and waits for what comes.
func sends(list ...message) func(*child) bool {
	return func(c *child) bool {
		fmt.Fprintln(os.Stderr, "says something else")
		for _, m := range list {
			c.say(m)
		}
		return true
	}
}

// raws sends a packet of so many bytes.
func raws(n int) func(*child) bool {
	return func(c *child) bool {
		c.raw(make([]byte, n))
		return sleeps(c)
	}
}

func binds(change func(*child)) func(*child) bool {
	return func(c *child) bool {
		change(c)
		return false
	}
}

func signals(s unix.Signal) func(*child) bool {
	return func(c *child) bool {
		fmt.Fprintln(os.Stderr, "gets a signal")
		_ = unix.Kill(os.Getpid(), s)
		return sleeps(c)
	}
}

// raises fails as Python does: with its report, and then a traceback.
func raises(c *child) bool {
	c.say(message{kind: msgFail, text: "ValueError: the batch is too odd"})
	fmt.Fprint(os.Stderr, "Traceback (most recent call last):\n  File \"train.py\", line 7\nValueError: the batch is too odd\n")
	panic(ending{1})
}

func closes(c *child) bool {
	_ = unix.Close(c.fd)
	return sleeps(c)
}

// forks leaves a process that has the socket, in the child's group or apart from it, and ends.
func forks(apart bool) func(*child) bool {
	return func(c *child) bool {
		holder := exec.Command(os.Args[0], "holds")
		holder.Stdout, holder.Stderr = os.Stdout, os.Stderr
		holder.ExtraFiles = []*os.File{os.NewFile(uintptr(c.fd), "parent")}
		holder.SysProcAttr = &syscall.SysProcAttr{Setsid: apart}
		if err := holder.Start(); err != nil {
			c.fail(err.Error())
		}
		fmt.Fprintln(os.Stderr, "holder", holder.Process.Pid)
		panic(ending{0})
	}
}

// floods sends without end.
func floods(c *child) bool {
	for {
		c.say(message{kind: msgForward})
	}
}
