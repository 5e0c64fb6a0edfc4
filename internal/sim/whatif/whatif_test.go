package whatif

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
)

func at(s float64) *float64 { return &s }

func answer() *Answer {
	return &Answer{Run: "bsp", Error: 0.013, Slow: []Slow{{3, 0.292}, {1, 0.05}}, Base: Outcome{Name: "bsp", Ratio: 1},
		Candidates: []Outcome{{Name: "asp", Ratio: 3.8, StalenessP50: 3, StalenessMax: 9},
			{Name: "drop(3 of 4)", Ratio: 3.6}, {Name: "dbs", Ratio: 2.4}, {Name: "r2sp", Ratio: 1.2}, {Name: "ssp(3)", Ratio: 1}},
		Refused: []string{"flexrr: no"}}
}

func TestTheAnswerInWords(t *testing.T) {
	a := answer()
	if got, want := a.Line(), "w3 cost 29 %, w1 cost 5 %. Simulated, speed only: asp 3.80 times as fast (staleness "+
		"p50 3), drop(3 of 4) 3.60, dbs 2.40, r2sp 1.20"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text := a.Text()
	for _, want := range []string{"(bsp); speed only: nothing was trained\n",
		"misses the time of the real one by 1.3 %\n", "  w3 cost 29 % of the time: ",
		"\nasp              3.80           3/9\n", "\nbsp (as it was)  1.00           0/0\n", "\nleft out: flexrr: no\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	a.Error = 0.3
	if a.Line() != "" || !strings.Contains(a.Text(), "NOTE: that is more than 20 %") {
		t.Errorf("models that miss by 30 %%: %q\n%s", a.Line(), a.Text())
	}
	a = answer()
	a.Gradients, a.Target, a.Candidates[1].Reached, a.Candidates[1].Accuracy = true, 0.9, at(12.5), at(0.91)
	if text := a.Text(); !strings.Contains(text, "with real gradients, up to a test accuracy of 0.9\n") ||
		!strings.Contains(text, "0.9100         12.50\n") {
		t.Error(text)
	}
}

// With gradients what reaches the target comes first, the sooner the better; all else, and all without gradients, by speed.
func TestTheBestComesFirst(t *testing.T) {
	fast, early, late := Outcome{Ratio: 9}, Outcome{Ratio: 2, Reached: at(1)}, Outcome{Ratio: 3, Reached: at(2)}
	for _, c := range []struct {
		a, b      Outcome
		gradients bool
	}{{early, late, true}, {late, fast, true}, {fast, late, false}, {late, early, false}, {fast, Outcome{Ratio: 1}, true}} {
		if c.a.compare(&c.b, c.gradients) >= 0 || c.b.compare(&c.a, c.gradients) <= 0 {
			t.Errorf("%+v is not before %+v (gradients %v)", c.a, c.b, c.gradients)
		}
	}
}

func TestAWorkerAsFastAsAnother(t *testing.T) {
	f := func(w int, factor float64) configs.Fault {
		return configs.Fault{Worker: w, Slow: straggler.Spec{Kind: "constant", Factor: factor}}
	}
	if got, want := asFast([]configs.Fault{f(3, 3), f(-1, 2), f(1, 1.5)}, 3, 1),
		[]configs.Fault{f(-1, 2), f(1, 1.5), f(3, 1.5)}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	m := configs.Simulate{PerWorker: []float64{1, 2, 3}}
	if got := sameModel(m, 2, 0); fmt.Sprint(got.PerWorker, got.FixedPerWorker) != "[1 2 1] []" || m.PerWorker[2] != 3 {
		t.Errorf("%v, and the model given is now %v", got.PerWorker, m.PerWorker)
	}
}

func TestNamesOfWhatRunsDo(t *testing.T) {
	for want, set := range map[string][]string{
		"bsp":                nil,
		"ssp(3)":             {`sync=[{match: "*", scheme: ssp, staleness: 3}]`},
		"flexrr":             {"work={policy: flexrr}"},
		"asp with dbs":       {`sync=[{match: "*", scheme: asp}]`, "work={policy: dbs}"},
		"ssp(2) and bsp":     {`sync=[{match: "fc1.*", scheme: ssp, staleness: 2}, {match: "*", scheme: bsp}]`},
		"bsp with averaging": {"local={policy: averaging, steps: 4}"},
	} {
		if got := NameOf(configstest.Load(t, set...)); got != want {
			t.Errorf("%v: %q, want %q", set, got, want)
		}
	}
}

// With gradients nothing is said of slow workers, and nothing is simulated for it.
func TestSlowWorkersAreOfSpeedOnly(t *testing.T) {
	times := func(s int) []timings.Iteration { return []timings.Iteration{{Compute: time.Duration(s) * time.Second}} }
	q := Question{Gradients: true, Recording: calibrate.Recording{Iterations: [][]timings.Iteration{times(1), times(1), times(9)}},
		Load: func([]string) (sim.Options, error) { return sim.Options{}, errors.New("simulated") }}
	if all, err := q.costs(make([]straggler.Trace, 3), run{}); len(all) > 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	q.Gradients = false
	if _, err := q.costs(make([]straggler.Trace, 3), run{}); err == nil {
		t.Error("a slow worker is not simulated")
	}
}
