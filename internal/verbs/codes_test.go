package verbs

import (
	"strings"
	"testing"

	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/rank/supervise"
)

func TestOnlyASupervisedRunSaysItsCodeOtherwise(t *testing.T) {
	for line, want := range map[string]int{
		"fluentps run --supervised --local=4 -- a.yaml": supervise.CodeRefused,
		"fluentps run --supervised --no-such-flag":      supervise.CodeRefused,
		"fluentps run a.yaml":                           codeUsage,
		"fluentps run --local 4 --supervised -- a.yaml": supervise.CodeRefused, // a launcher may have added words
		"fluentps run -- --supervised":                  codeUsage,             // a file
		"fluentps plan --supervised":                    codeUsage,
		"fluentps":                                      codeUsage,
	} {
		words := strings.Fields(line)
		if got := exitCodeFor(codeUsage, words); got != want {
			t.Errorf("%s: exit code 2 becomes %d, want %d", line, got, want)
		}
		for _, code := range []int{0, codeFailed, ps.CodeStall, ps.CodeTarget, ps.CodeAgain} {
			if got := exitCodeFor(code, words); got != code {
				t.Errorf("%s: exit code %d becomes %d", line, code, got)
			}
		}
	}
}
