package verbs

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/disk/durable"
)

// setFlag is --set, which every verb that reads a configuration has.
func setFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "set",
		Usage: "change a value: `KEY=VALUE`, as in --set train.optimizer.lr=0.1 or --set 'sync[0].scheme=asp'; may be repeated"}
}

// traceFlag is --trace, of the verbs that write a timeline.
func traceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "trace", Usage: "record when each rank does what, as trace.json.gz for Perfetto; short " +
		"for --set metrics.trace=true"}
}

const precedence = "Values: default < file < FLUENTPS_* environment (FLUENTPS_TRAIN__STOP__EPOCHS=3) < --set."

// input is a configuration file and the result of parsing it.
type input struct {
	file    string
	src     []byte
	cfg     *configs.Config // nil if diags.Failed()
	origins *configs.Origins
	diags   configs.Diagnostics
}

// readLimit is the most bytes that are read of a configuration, so that a data set given by mistake does not fill the memory.
const readLimit = 8 << 20

// readInput loads a configuration. The settings in more overrule those of --set.
func readInput(c *cli.Context, file string, more ...string) *input {
	return readInputOver(c, file, nil, more...)
}

// readInputOver is readInput with the settings in under, which those of --set overrule. It reads the file once, so the file may
// be a pipe.
func readInputOver(c *cli.Context, file string, under []string, more ...string) *input {
	o := configs.Options{Set: slices.Concat(under, c.StringSlice("set"), more), Env: os.Environ()}
	in := &input{file: file}
	var err error
	if in.src, err = readFile(file); err != nil {
		in.cfg, in.origins, in.diags = configs.Load(file, o) // it fails in the same way and explains why
		return in
	}
	in.cfg, in.origins, in.diags = configs.Parse(file, in.src, o)
	return in
}

func readFile(name string) ([]byte, error) {
	f, err := durable.OpenStream(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, readLimit))
}

// problem returns nil for a valid configuration, otherwise an error with all its problems and their source lines.
func (in *input) problem() error {
	if !in.diags.Failed() {
		return nil
	}
	var b strings.Builder
	_ = in.diags.Write(&b) // a strings.Builder never fails
	return &exitError{codeUsage, strings.TrimRight(b.String(), "\n")}
}

// one returns the only argument of a verb. It fails if there is none, or more than one.
func one(c *cli.Context, what string) (string, error) {
	if n := c.NArg(); n != 1 {
		return "", usagef("%s takes one %s, got %d%s; see fluentps %s -h", c.Command.Name, what, n, listed(c.Args().Slice()), c.Command.Name)
	}
	return c.Args().First(), nil
}

func listed(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, " ")
}
