package verbs

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	set := map[string]string{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		set[name] = value
	}
	return func(name string) string { return set[name] }
}

func TestOnlyTheFirstProcessOfALaunchSpeaks(t *testing.T) {
	for _, c := range []struct {
		env    string
		speaks bool
	}{
		{"", true},
		{"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0", true},
		{"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3", false},
		{"PMI_SIZE=2 PMI_RANK=1", false},
		{"SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_PROCID=1", false},
		{"SLURM_STEP_ID=4294967291 SLURM_NTASKS=2 SLURM_PROCID=0", true}, // a batch script
		{"SLURM_PROCID=1", true},                                         // left over from an allocation's shell
		{"OMPI_COMM_WORLD_SIZE=4", true},                                 // a launcher that does not say which
	} {
		if got := speaks(env(strings.Fields(c.env)...)); got != c.speaks {
			t.Errorf("%q: speaks is %v", c.env, got)
		}
	}
}

func TestUnknownNamesTheNearest(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"chekc", `there is no verb "chekc"; did you mean check?`},
		{"PLAN", `there is no verb "PLAN"; did you mean plan?`},
		{"rnu", `there is no verb "rnu"; did you mean run?`},
		{"pan", `there is no verb "pan"; did you mean plan or ban?`},
		{"x", `there is no verb "x"; there are: check, plan, run, ban`},
		{"bench", `there is no verb "bench"; there are: check, plan, run, ban`},
	} {
		if got := unknown("verb", c.word, []string{"check", "plan", "run", "ban"}); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestVerdictPrefersWhyTheWorldEnded(t *testing.T) {
	for _, c := range []struct {
		ends []outcome
		want int
	}{
		{[]outcome{{code: 0}, {code: 0}}, 0},
		{[]outcome{{code: 5}, {code: 5}}, 5},
		{[]outcome{{code: 0}, {code: 1, ended: true}}, 1},
		{[]outcome{{code: 4, ended: true}, {code: 1, ended: true}}, 4},
	} {
		if got := verdict(c.ends); got != c.want {
			t.Errorf("%+v: %d, want %d", c.ends, got, c.want)
		}
	}
}

func TestEnvironmentKeepsThePlaceButNoPassword(t *testing.T) {
	got := environment([]string{"HOME=/root", "SLURM_JOB_ID=7", "SLURM_JWT=secret", "OMPI_COMM_WORLD_SIZE=6",
		"OMPI_COMM_WORLD_RANK=1", "FLUENTPS_SEED=3", "GOGC="})
	if want := []string{"FLUENTPS_SEED", "GOGC", "OMPI_COMM_WORLD_SIZE", "SLURM_JOB_ID"}; !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

func TestCommandLineCanBePastedIntoAShell(t *testing.T) {
	got := commandLine([]string{"fluentps", "run", "a b.yaml", "--set", "sync=[{match: '*'}]", "", "x=1"})
	if want := `fluentps run 'a b.yaml' --set 'sync=[{match: '\''*'\''}]' '' x=1`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestWithoutPMIHintsOnlyWhereNothingConnectsTheTasks(t *testing.T) {
	for _, c := range []struct {
		env  string
		hint bool
	}{
		{"SLURM_STEP_ID=0 SLURM_NTASKS=4", true},
		{"SLURM_STEP_ID=0 SLURM_NTASKS=4 PMIX_NAMESPACE=slurm.pmix.5.0", false},
		{"SLURM_STEP_ID=0 SLURM_NTASKS=4 PMI_FD=9 PMI_SIZE=4", false},
		{"SLURM_STEP_ID=0 SLURM_NTASKS=1", false},
		{"SLURM_STEP_ID=0 SLURM_NTASKS=2 OMPI_COMM_WORLD_SIZE=6", false}, // mpirun inside a job
		{"SLURM_NTASKS=4", false},                                        // a batch script
	} {
		if got := withoutPMI(env(strings.Fields(c.env)...)) != ""; got != c.hint {
			t.Errorf("%s: hint is %v", c.env, got)
		}
	}
}

// A large live heap grows by a small part before a collection, and a small one is seldom collected.
func TestGCPercent(t *testing.T) {
	for alive, want := range map[uint64]int{0: 400, 1 << 20: 400, 4 << 20: 400, 8 << 20: 200, 16 << 20: 100, 256 << 20: 6, 1 << 40: 1} {
		if got := gcPercent(alive); got != want {
			t.Errorf("%d alive: %d %%, want %d", alive, got, want)
		}
	}
}
