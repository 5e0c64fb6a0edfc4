// Package cli runs the scripts in testdata against the real binary: the commands that a user types, their output and their exit
// codes. A script is a text archive. In addition to the commands of testscript it has
//
//	exits CODE COMMAND ARG...   run it; the exit code must be CODE
//	ranks N COMMAND ARG...      run it with N ranks, under the launcher of the MPI it is built for (needs [mpi])
//	foreign N COMMAND ARG...    the same under the launcher of the other MPI (needs [foreign])
//	exits CODE ranks N ...      both; also with foreign
//	says REGEXP...              each must match the last command's stdout and stderr together
//	field FILE PATH REGEXP      the JSON value at PATH (dots; numbers index lists) must match
//
// The environment has FLUENTPS_TEST_ROOT, the root of the repository, and with [mpi] also LAUNCH_4, the command line that starts 4
// ranks. [mpi] holds if the tests are built with the tag mpi, [mpich] if they are built for MPICH, [foreign] if this machine also has
// the launcher of the other MPI, [root] if the tests may make files of other users.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/configs"
)

var binDir string // holds the fluentps under test

func TestMain(m *testing.M) {
	os.Exit(withBinary(m))
}

// withBinary builds the binary with the tags of the tests, unless FLUENTPS_TEST_BIN names one. So a user without a Go toolchain or a
// writable cache can run the compiled tests.
func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fluentps-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	binary := filepath.Join(dir, "fluentps")
	if given := os.Getenv("FLUENTPS_TEST_BIN"); given != "" {
		err = os.Symlink(given, binary)
	} else {
		build := exec.Command("go", "build", "-tags", builtTags, "-o", binary, "fluentps/cmd/fluentps")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cli: no binary to test:", err)
		return 1
	}
	return m.Run()
}

// writeSchema writes the schema that the tables make into a folder.
func writeSchema(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "schema.json"), configs.Schema(), 0o644)
}

func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dependOnSources(t, root)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binDir+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			if err := writeSchema(filepath.Join(env.WorkDir, "made")); err != nil {
				return err
			}
			// Open MPI keeps its jobs below one folder in TMPDIR, so each script that runs in parallel needs its own. Paths there
			// must be short, and that of testscript is long.
			tmp, err := os.MkdirTemp("", "cli-")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(tmp) })
			env.Setenv("TMPDIR", tmp)
			env.Setenv("FLUENTPS_TEST_ROOT", root)
			if line, err := mpitest.Built.Line(4); err == nil && builtTags != "" {
				env.Setenv("LAUNCH_4", strings.Join(line, " "))
			}
			env.Vars = append(env.Vars, mpitest.Env()...)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "mpi":
				return builtTags != "", nil
			case "mpich":
				return builtTags != "" && mpitest.Built.Name == mpitest.MPICH.Name, nil
			case "foreign":
				_, err := mpitest.Other.Line(1)
				return builtTags != "" && err == nil, nil
			case "root":
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("no condition [%s]; there are [mpi], [mpich], [foreign] and [root]", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "ranks": launched("ranks"), "foreign": launched("foreign"), "says": says, "field": field,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// dependOnSources lists the folders of the sources. `go test` caches a result until a file or folder that the test has read changes,
// and does not know that the binary is built from the sources.
func dependOnSources(t *testing.T, root string) {
	for _, top := range []string{"cmd", "configs", "fluentps.go", "go.sum", "internal", "kernels", "ps", "slurm"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// command expands "ranks N ..." and "foreign N ..." into the line that starts the launcher.
func command(ts *testscript.TestScript, args []string) []string {
	if len(args) < 3 || args[0] != "ranks" && args[0] != "foreign" {
		return args
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 {
		ts.Fatalf("%s: %q is not a number of ranks", args[0], args[1])
	}
	mpi := mpitest.Built
	if args[0] == "foreign" {
		mpi = mpitest.Other
	}
	line, err := mpi.Line(n, args[2:]...)
	ts.Check(err)
	return line
}

func execute(ts *testscript.TestScript, args []string) (code int) {
	if len(args) == 0 {
		ts.Fatalf("no command")
	}
	args = command(ts, args)
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := execute(ts, args[1:]); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func launched(verb string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 {
			ts.Fatalf("usage: %s N COMMAND ARG...; with a code: exits CODE %s N ...", verb, verb)
		}
		if code := execute(ts, append([]string{verb}, args...)); code != 0 {
			ts.Fatalf("exit code %d, want 0", code)
		}
	}
}

func says(ts *testscript.TestScript, neg bool, args []string) {
	text := ts.ReadFile("stdout") + "\n" + ts.ReadFile("stderr")
	for _, pattern := range args {
		re, err := regexp.Compile("(?m)" + pattern)
		ts.Check(err)
		if re.MatchString(text) == neg {
			ts.Fatalf("output matches %q: %v", pattern, neg)
		}
	}
}

func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH REGEXP")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &value))
	for _, name := range strings.Split(args[1], ".") {
		switch at := value.(type) {
		case map[string]any:
			inner, ok := at[name]
			if !ok {
				ts.Fatalf("%s: no field %s of %s", args[0], name, args[1])
			}
			value = inner
		case []any:
			k, err := strconv.Atoi(name)
			if err != nil || k < 0 || k >= len(at) {
				ts.Fatalf("%s: no item %s of %s; there are %d", args[0], name, args[1], len(at))
			}
			value = at[k]
		default:
			ts.Fatalf("%s: %s ends before %s", args[0], args[1], name)
		}
	}
	text, err := json.Marshal(value)
	ts.Check(err)
	if regexp.MustCompile(args[2]).Match(text) == neg {
		ts.Fatalf("%s: %s is %s; matches %q: %v", args[0], args[1], text, args[2], neg)
	}
}
