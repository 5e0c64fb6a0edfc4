// Package externaltest is a small child for tests of model external: a network with a hidden layer in Go. A test binary becomes that child
// when it is started with FLUENTPS_CHILD.
//
//	func TestMain(m *testing.M) {
//		if code, isChild := externaltest.Main(); isChild {
//			os.Exit(code)
//		}
//		os.Exit(m.Run())
//	}
//
// It reads PROTOCOL.md for itself, and shares no code with package external.
package externaltest

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Well is the mode of a child without a fault.
const Well = "well"

// variants are modes that obey the protocol. At the point they do something more.
var variants = map[string]fault{
	Well:        {},
	Draws:       {},
	Forgets:     {},
	"firstsent": {},                         // READY of the first layer comes first
	"unlike":    {},                         // each worker begins with values of its own
	"tells":     {at: atStart, do: tells},   // writes what it was started with
	"chatty":    {at: atStep, do: chats},    // writes more than a pipe holds
	"busy":      {at: atStep, do: computes}, // computes for 2.5 s
	"lastlines": {at: atBye, do: saves},     // writes much after BYE
	"holds":     {at: atStart, do: sleeps},  // does nothing, with the socket open: what the fault forks starts
}

// Command is the command of a child that is this test binary. A mode is Well, a variant or a fault. Behind an @ it may have the number of
// the worker that alone goes wrong, as in raises@1.
func Command(mode string) []string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{path, mode}
}

// Faults are the modes of children that go wrong.
func Faults() []string { return slices.Sorted(maps.Keys(faults)) }

// ending is thrown to end the child with an exit code.
type ending struct{ code int }

// Main returns at once in a process that was not started as a child. Otherwise it is the child until that ends, and returns its exit code.
func Main() (code int, isChild bool) {
	said, isChild := os.LookupEnv("FLUENTPS_CHILD")
	if !isChild {
		return 0, false
	}
	defer func() {
		if e, is := recover().(ending); is {
			code = e.code
		}
	}()
	var c child
	var version int
	if _, err := fmt.Sscanf(said, "fd=%d version=%d", &c.fd, &version); err != nil || version != 1 || len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "externaltest: FLUENTPS_CHILD is %q, and the arguments are %q\n", said, os.Args)
		return 1, true
	}
	c.choose(os.Args[1])
	c.run()
	return 0, true
}

// choose reads a mode.
func (c *child) choose(mode string) {
	name, only, one := strings.Cut(mode, "@")
	c.mode, c.only = name, -1
	if one {
		c.only, _ = strconv.Atoi(only)
	}
	f, known := faults[name]
	if !known {
		if f, known = variants[name]; !known {
			fmt.Fprintf(os.Stderr, "externaltest: there is no mode %q\n", name)
			panic(ending{2})
		}
	}
	c.fault = f
}

// at does what the mode does at a point, once. It says whether that replaces what a good child does there.
func (c *child) at(p point) (replaced bool) {
	if c.fault.do == nil || c.fault.at != p || c.only >= 0 && c.only != c.welcome.Worker {
		return false
	}
	do := c.fault.do
	c.fault.do = nil
	return do(c)
}

// tells writes the environment, what can be read, and what is open.
func tells(c *child) bool {
	for _, v := range os.Environ() {
		fmt.Println("env " + v)
	}
	n, err := os.Stdin.Read(make([]byte, 1))
	fmt.Println("stdin", n, err)
	open, _ := os.ReadDir("/proc/self/fd")
	for _, e := range open {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		fmt.Println("open", e.Name(), to)
	}
	return false
}

func chats(c *child) bool {
	for i := range 20_000 {
		fmt.Println("line", i)
	}
	return false
}

func computes(c *child) bool {
	sum := 0.0
	for begun := time.Now(); time.Since(begun) < 2500*time.Millisecond; {
		sum += noise(1, 2)
	}
	return math.IsNaN(sum)
}

func saves(*child) bool {
	for i := range 1000 {
		fmt.Println("saved", i)
	}
	return false
}

func sleeps(*child) bool {
	for {
		time.Sleep(time.Hour)
	}
}
