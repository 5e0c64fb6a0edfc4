package verbs

import (
	"strings"
	"testing"

	ps "fluentps/ps/runtime"
)

// Of a start that is supervised 2 is a fatal error of the Go runtime, and never the word of the run, which says it otherwise.
func TestEndingOf(t *testing.T) {
	for launcher, want := range map[int]ending{
		0:             {code: 1},
		1:             {code: 1},
		2:             {code: 134, lost: true},
		3:             {code: 1},
		ps.CodeStall:  {code: 4, lost: true},
		ps.CodeTarget: {code: 5, said: true},
		ps.CodeAgain:  {code: 75, said: true},
		codeRefused:   {code: 2, said: true},
		127:           {code: 1}, // no such program
		134:           {code: 134, lost: true},
		137:           {code: 137, lost: true},
		205:           {code: 205, lost: true}, // mpirun, of a host that it cannot reach
		255:           {code: 255, lost: true},
	} {
		if got := endingOf(launcher); got != want {
			t.Errorf("%d: %+v, want %+v", launcher, got, want)
		}
	}
}

func TestOnlyASupervisedRunSaysItsCodeOtherwise(t *testing.T) {
	for line, want := range map[string]int{
		"fluentps run --supervised --local=4 -- a.yaml": codeRefused,
		"fluentps run --supervised --no-such-flag":      codeRefused,
		"fluentps run a.yaml":                           codeUsage,
		"fluentps run --local 4 --supervised -- a.yaml": codeRefused, // a launcher may have added words
		"fluentps run -- --supervised":                  codeUsage,   // a file
		"fluentps plan --supervised":                    codeUsage,
		"fluentps":                                      codeUsage,
	} {
		words := strings.Fields(line)
		if got := outward(codeUsage, words); got != want {
			t.Errorf("%s: 2 is said as %d, want %d", line, got, want)
		}
		for _, code := range []int{0, codeFailed, ps.CodeStall, ps.CodeTarget, ps.CodeAgain} {
			if got := outward(code, words); got != code {
				t.Errorf("%s: %d is said as %d", line, code, got)
			}
		}
	}
}
