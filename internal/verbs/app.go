// Package verbs is the command line, one file per verb.
package verbs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/comm/mpi"
)

// MPI starts and ends on the main thread, so the goroutine of main stays there.
func init() { runtime.LockOSThread() }

// Main runs the verb that os.Args names and ends the process. programErrors are mistakes in the program itself, such as a
// scheme that cannot be registered; with one of them no verb runs.
func Main(programErrors ...error) {
	if err := errors.Join(programErrors...); err != nil {
		os.Exit(exitCodeFor(report(os.Stderr, usagef("%v", err)), os.Args))
	}
	out := &product{file: os.Stdout}
	app := newApp(out, os.Stderr)
	if last := len(os.Args) - 1; os.Args[last] == completing && slices.Contains(os.Args, "--") {
		return // the words after -- belong to another program, and the library would run the verb
	}
	if words := completeSet(os.Args); words != nil {
		fmt.Println(strings.Join(words, "\n"))
		return
	}
	err := app.Run(reorder(app.Commands, os.Args))
	if err == nil {
		err = out.delivered()
	}
	os.Exit(exitCodeFor(report(os.Stderr, err), os.Args))
}

// newApp returns the command line. Verbs write their results to out, and errors and warnings to errOut.
func newApp(out, errOut io.Writer) *cli.App {
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintln(c.App.Writer, "fluentps", buildText()) }
	app := &cli.App{
		Name:      "fluentps",
		Usage:     "a parameter server whose shards each choose how workers synchronize",
		UsageText: "fluentps VERB [ARGUMENTS] [FLAGS]      fluentps VERB -h describes a verb",
		Description: "A first run:    fluentps run --local 6 configs/examples/first.yaml\n" +
			"Under MPI:      mpirun -n 6 fluentps run configs/examples/fashion-mlp-mixed.yaml\n" +
			"Before a job:   fluentps check FILE; fluentps plan FILE --ranks 6\n\n" +
			"Exit codes: 0 done; 1 failed; 2 usage or config; 3 warnings (check --strict); 4 stalled;\n" +
			"5 target not reached or loss too high (run --require); 75 stopped early with a checkpoint. All ranks exit with the same code.\n\n" +
			"Completion:     fluentps completion -h",
		Version: buildText(),
		Commands: []*cli.Command{runCommand(), checkCommand(), planCommand(), simulateCommand(),
			sweepCommand(), benchCommand(), explainCommand(), schemaCommand(), infoCommand(), dataCommand(), probeCommand(),
			reportCommand(), runsCommand(), statusCommand(), verifyCommand(), whatIfCommand(), exportCommand(),
			completionCommand(), manCommand(), versionCommand()},
		Action:                    noVerb,
		OnUsageError:              flagError,
		ExitErrHandler:            func(*cli.Context, error) {}, // Main ends the process, with the code of report
		Suggest:                   true,
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true, // --set layers=[256,128] is one setting
		Writer:                    out,
		ErrWriter:                 errOut,
	}
	for _, c := range app.Commands {
		c.OnUsageError = flagError
		c.HideHelpCommand = true // otherwise a file named "help" could not be an argument
		c.CustomHelpTemplate = cli.CommandHelpTemplate
		for _, sub := range c.Subcommands {
			sub.OnUsageError, sub.HideHelpCommand, sub.CustomHelpTemplate = flagError, true, cli.CommandHelpTemplate
		}
	}
	return app
}

// exitError ends the process with its exit code. Its text is printed first, unless it is empty.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usagef returns an error for a mistake on the command line or in a file of the user.
func usagef(format string, args ...any) error {
	return &exitError{codeUsage, fmt.Sprintf(format, args...)}
}

// reportGrace is how long a rank that does not report waits before it exits: a launcher ends the job at the first process
// that fails, and rank 0 may not have printed the cause yet.
const reportGrace = 2 * time.Second

// report prints an error, once per launch, and returns the exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := codeFailed
	var exit *exitError
	var help cli.ExitCoder // from `help VERB`, if there is no such verb
	if errors.As(err, &exit) {
		code = exit.code
	} else if errors.As(err, &help) {
		code = codeUsage
	}
	switch {
	case err.Error() == "":
	case speaks(os.Getenv):
		printError(w, err.Error())
	default:
		time.Sleep(reportGrace)
	}
	return code
}

// speaks says whether this process reports errors that occur before the ranks know each other. Only the first process of a
// launch does.
func speaks(getenv func(string) string) bool {
	return !mpi.UnderLauncher(getenv) || launcherRank(getenv) <= 0
}
