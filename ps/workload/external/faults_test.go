package external

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/external/externaltest"
)

// atStart are faults that Start ends with, by mode, and what the error says.
var atStart = map[string][]string{
	"ends":      {"has ended with exit code 0 before it greeted its parent", "exits with 0"},
	"exits":     {"has ended with exit code 3; it has written last:\n    first line\n    exits with 3"},
	"version":   {"speaks version 2 of the protocol, this program version 1", "install the package", "says something else"},
	"impolite":  {"has sent DONE where HELLO is expected"},
	"shortword": {"has sent a message of 3 bytes, need at least 16"},

	"shape":       {"has bound tensor hidden.weight with the shape [3 4], model.shapes has [4 3]", "fluentps probe"},
	"name":        {"has bound tensor hidden.other where model.shapes has hidden.weight"},
	"longname":    {"has sent TENSOR 0 with the layer", "need 1 to 200 visible characters"},
	"escapes":     {`has sent TENSOR 0 with the layer "a\x1b[31m"`},
	"layername":   {"has layer end as number 1, model.shapes has out"},
	"statistic":   {"has bound tensor hidden.mean as a parameter, model.shapes has it as a running statistic"},
	"swapped":     {"has bound tensor hidden.bias where model.shapes has hidden.weight"},
	"fewer":       {"has no tensor out.bias, which model.shapes has"},
	"more":        {"has bound tensor out.scale, which model.shapes does not have"},
	"onelayer":    {"has no layer out, which model.shapes has"},
	"threelayers": {"has bound layer last, which model.shapes does not have"},

	"twice":      {`has bound tensor "hidden.weight" twice`},
	"apart":      {`has bound tensor "hidden.scale" of layer "hidden" apart from the others of that layer`},
	"product":    {`has bound tensor "hidden.weight" of 11 elements, but its shape 4x3 has 12`},
	"shapetext":  {`has bound tensor "hidden.weight" with the shape "4xthree": need numbers from 1`},
	"zeroshape":  {`has bound tensor "hidden.weight" with the shape "4x0": need numbers from 1`},
	"hugeshape":  {`has bound tensor "hidden.weight" of more than 2147483647 elements`},
	"lines":      {"has sent TENSOR with 4 lines, need 3"},
	"index":      {"has sent TENSOR 7 where 1 comes next"},
	"none":       {"has bound no tensor"},
	"boundcount": {"says that it has bound 9 tensors, and has sent 5"},
}

// inValues are those that Values ends with.
var inValues = map[string][]string{
	"boundtwice":   {"has sent BOUND where FILLED is expected"},
	"filledregion": {"has sent FILLED of region 8 with 4 bytes, need region 1 with 140"},
	"filledbytes":  {"has sent FILLED of region 1 with 4 bytes, need region 1 with 140"},
}

// inPass are those that a step or an evaluation ends with.
var inPass = map[string][]string{
	"raises":  {"has failed: ValueError: the batch is too odd; it has written last:\n", "line 7"},
	"killed":  {"was killed by SIGKILL", "gets a signal"},
	"short":   {"has sent a message of 15 bytes, need at least 16"},
	"long":    {"has sent a message of more than 60016 bytes, the limit"},
	"empty":   {"has sent a message of 0 bytes, need at least 16"},
	"kind":    {"has sent a message of kind 20, which is not known; the last is 19"},
	"kind0":   {"has sent a message of kind 0, which is not known"},
	"flags":   {"has sent FORWARD with flags 2, the largest is 1"},
	"text":    {"has sent FORWARD with 5 bytes behind it"},
	"parents": {"has sent GO where FORWARD is expected"},
	"closes":  {"has closed its end of the connection, and goes on without its parent"},
	"forks":   {"has ended with exit code 0", "holder "},
	"leaves":  {"has ended with exit code 0", "holder "},
	"floods":  {"has sent FORWARD where "},

	"readyearly":    {"has sent READY where FORWARD is expected"},
	"hits":          {"FORWARD says that the model had 1000 samples right, of 2"},
	"beforego":      {"has sent READY"}, // READY 0 comes twice, too: the first may look as if it came behind GO
	"readytwice":    {"has sent READY of layer 1 a second time in one step"},
	"nolayer":       {"has sent READY of layer 2, but the model has 2 layers"},
	"doneearly":     {"has sent DONE, but layer 0 is not READY"},
	"doneflags":     {"has sent DONE with flags 2, the largest is 1"},
	"resultinstead": {"has sent RESULT where READY or DONE is expected"},

	"nohits":     {"has sent RESULT without the number of samples that the model has right", "data.accuracy: false"},
	"resulthits": {"RESULT says that the model had 1000 samples right, of 2"},
	"doneatend":  {"has sent DONE where RESULT is expected"},

	"statehuge":    {"has 1099511627776 bytes of state, the limit is 68719476736", "ps.state"},
	"stateresult":  {"has sent RESULT where STATE is expected"},
	"statebytes":   {"has answered STATE 1 of region ", "and 11 bytes with STATE 1 of region 2 and 3 bytes"},
	"stateregion":  {"and 11 bytes with STATE 1 of region 9 and 11 bytes"},
	"staterestore": {"has answered STATE 2 of region ", "with STATE 1 of region 2"},
}

// silent are those that say and compute nothing.
var silent = map[string][]string{
	"stopped":   {"was stopped by a signal, such as SIGSTOP, 1s ago (stall.peer)"},
	"waits":     {"has sent nothing and computed nothing for 1s (stall.peer), where FORWARD is expected", "raise stall.peer"},
	"neverdone": {"has sent nothing and computed nothing for 1s (stall.peer), where READY or DONE is expected"},
}

// ofProcess are faults with tests of their own.
var ofProcess = []string{"byeexits", "byekilled"}

// Each fault of a child is one error that says what is wrong, and whose child it is. Nothing is left of the child.
func TestFaultsOfChildren(t *testing.T) {
	known := slices.Clone(ofProcess)
	run := func(list map[string][]string, silence time.Duration, isAtStart bool) {
		for mode, want := range list {
			known = append(known, mode)
			t.Run(mode, func(t *testing.T) {
				leavesNothing(t)
				var h heard
				o := optionsOf(mode)
				o.Silence, o.Log = silence, h.add
				begun := time.Now()
				err := wholeRun(t, o, isAtStart)
				if took := time.Since(begun); took > patience {
					t.Errorf("it took %v", took)
				}
				mustSay(t, mode, err, append(want, `the child "`+o.Command[0], ", process ")...)
				if pid, forked := h.withPrefix("holder "); forked {
					n, _ := strconv.Atoi(pid)
					if mode == "leaves" { // that process is not of the child's group
						_ = unix.Kill(n, unix.SIGKILL)
					}
					if !within(patience, func() bool { return !isAlive(n) }) {
						t.Errorf("process %d, which the child has started, lives on", n)
					}
				}
			})
		}
	}
	run(atStart, patience, true)
	run(inValues, patience, false)
	run(inPass, patience, false)
	run(silent, time.Second, false)
	slices.Sort(known)
	if want := externaltest.Faults(); !slices.Equal(known, want) {
		t.Errorf("faults of these tests are %q, of externaltest %q", known, want)
	}
}

// A child that computes for longer than it may be silent goes on. One that never says a word does not.
func TestSilenceIsNotComputing(t *testing.T) {
	leavesNothing(t)
	c := started(t, "busy", func(o *Options) { o.Silence = time.Second })
	m := c.Model(Training)
	params, grads := externaltest.Values(0), apart()
	m.Bind(params, grads)
	step(t, m, params, grads, 1, 2)
	o := optionsOf("holds")
	o.Silence = time.Second
	_, err := Start(o, externaltest.Shapes())
	mustSay(t, "a child that does not greet", err, "has sent nothing and computed nothing for 1s (stall.peer), where HELLO is expected")
}

// wholeRun starts a child, trains, evaluates and ends it, up to the first error. Whatever is called then says the same.
func wholeRun(t *testing.T, o Options, failsAtStart bool) error {
	t.Helper()
	c, err := Start(o, externaltest.Shapes())
	if err != nil || failsAtStart {
		return err
	}
	defer c.Kill()
	err = c.Values(make([]float32, c.Shapes().Elements()))
	m, e := c.Model(Training), c.Model(Evaluation)
	m.Bind(externaltest.Values(0), apart())
	e.Bind(externaltest.Values(0), nil)
	if err == nil {
		_, _, err = m.Forward(rowsOf(1, 2), func(int) {})
	}
	if err == nil {
		err = m.Backward(func(int) {})
	}
	if err == nil {
		_, _, err = e.Eval(rowsOf(1, 2))
	}
	var state []float32
	var bytes int64
	if err == nil {
		state, bytes, err = c.State()
	}
	if err == nil {
		err = c.Restore(state, bytes)
	}
	if err == nil {
		t.Fatal("the whole run ended well")
	}
	_, _, again := m.Forward(rowsOf(1), nil)
	_, roomErr := c.Room(8)
	for _, later := range []error{again, roomErr, c.Values(make([]float32, c.Shapes().Elements())), c.err, c.Close()} {
		if later == nil || later.Error() != err.Error() {
			t.Errorf("after the error %q another call says %v", err, later)
		}
	}
	return err
}

// A program that cannot be started is named with the way out, before anything else happens.
func TestProgramsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		command string
		want    []string
	}{
		"no such file":   {filepath.Join(dir, "none"), []string{"none does not exist; give a path"}},
		"not in PATH":    {"fluentps-no-such-program", []string{"fluentps-no-such-program is not found in PATH"}},
		"not executable": {put("script.py", "#!/bin/sh\n", 0o600), []string{"script.py is not executable; chmod +x it, or name its interpreter"}},
		"no program":     {put("text", "hello\n", 0o700), []string{"text is no program; name its interpreter first"}},
		"a folder":       {dir, []string{"is a folder"}},
		"no interpreter": {put("py", "#!/no/such/interpreter\n", 0o700),
			[]string{"py cannot be started: what its first line names behind #! does not exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			o := optionsOf("")
			o.Command = []string{c.command, "x"}
			_, err := Start(o, externaltest.Shapes())
			mustSay(t, name, err, append(c.want, "model.command: ")...)
			_, err = Probe(o)
			mustSay(t, name, err, c.want...)
		})
	}
}
