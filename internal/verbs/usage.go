package verbs

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/disk/foreign"
)

// printError writes an error or a warning. A text of several lines that begins with a place in a file gets no prefix.
func printError(w io.Writer, text string) {
	text = strings.TrimRight(text, "\n")
	if !strings.Contains(text, "\n") || !filePlace.MatchString(text) {
		text = "fluentps: " + text
	}
	fmt.Fprintln(w, foreign.Visible(text))
}

var filePlace = regexp.MustCompile(`^\S[^\n]*:[0-9]+:[0-9]+: `)

// noVerb handles a command line without a verb, or with an unknown one.
func noVerb(c *cli.Context) error {
	if !c.Args().Present() {
		c.App.Writer = c.App.ErrWriter
		_ = cli.ShowAppHelp(c) // cannot fail: without ExtraInfo it returns nil
		return &exitError{code: codeUsage}
	}
	var verbs []string
	for _, v := range c.App.Commands {
		verbs = append(verbs, v.Name)
	}
	if info, err := os.Stat(c.Args().First()); err == nil && info.Mode().IsRegular() {
		return usagef("%s is a file, but the verb comes first: fluentps run %s, or one of: %s", c.Args().First(),
			c.Args().First(), strings.Join(verbs, ", "))
	}
	return usagef("%s", unknown("verb", c.Args().First(), verbs))
}

var (
	flagUnknown = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	flagEmpty   = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	flagWrong   = regexp.MustCompile(`^invalid (?:boolean )?value "((?s).*)" for (?:flag )?-+(\S+): `)
)

// flagError rewords an error of the flag package, with the way out.
func flagError(c *cli.Context, err error, _ bool) error {
	verb := verbOf(c) + ": "
	more := " (see fluentps " + verbOf(c) + " -h)"
	if c.Command.Name == c.App.Name {
		verb, more = "", " (flags come after the verb, as in fluentps run FILE --local 6)"
	}
	text := err.Error()
	if m := flagUnknown.FindStringSubmatch(text); m != nil {
		var legal []string
		for _, f := range c.Command.Flags {
			for _, name := range f.Names() {
				legal = append(legal, dashes(name))
			}
		}
		if hint := flagElsewhere(c.Command, m[1]); hint != "" {
			return usagef("%sthere is no flag %q; %s%s", verb, dashes(m[1]), hint, more)
		}
		return usagef("%s%s%s", verb, unknown("flag", dashes(m[1]), legal), more)
	}
	if m := flagEmpty.FindStringSubmatch(text); m != nil {
		return usagef("%s%s needs a value%s", verb, dashes(m[1]), more)
	}
	if m := flagWrong.FindStringSubmatch(text); m != nil {
		return usagef("%s%s is %q, must be %s%s", verb, dashes(m[2]), m[1], kindOf(c.Command, m[2]), more)
	}
	return usagef("%s%s%s", verb, text, more)
}

// flagElsewhere says how to express a flag of other verbs or programs, or a setting, with this verb. It returns "" for a name
// that it does not know.
func flagElsewhere(verb *cli.Command, name string) string {
	has := func(flag string) bool {
		return slices.ContainsFunc(verb.Flags, func(f cli.Flag) bool { return f.Names()[0] == flag })
	}
	switch name {
	case "n", "np", "ntasks", "ranks", "local", "nproc", "nproc_per_node":
		switch {
		case has("workers"):
			return "the modelled ranks are --workers N and --servers M"
		case has("ranks"):
			return "the number of ranks is --ranks N"
		case has("local"):
			return "the launcher sets the number of ranks, as in mpirun -n 6 or srun -n 6; without a launcher use --local N"
		}
	}
	if key := configs.SettingHint(name); has("set") && key != "" {
		return "it is a setting: --set " + key + "=VALUE"
	}
	return ""
}

// kindOf describes the values of a flag whose value could not be parsed.
func kindOf(verb *cli.Command, name string) string {
	for _, f := range verb.Flags {
		if _, ok := f.(*cli.DurationFlag); ok && slices.Contains(f.Names(), name) {
			return "a time with its unit, as in 200ms or 3h50m"
		}
	}
	if !takesValue(verb, name) {
		return "true or false"
	}
	for _, f := range verb.Flags {
		if _, ok := f.(*cli.Uint64Flag); ok && slices.Contains(f.Names(), name) {
			return "a whole number from 0 on"
		}
	}
	return "a whole number"
}

// verbOf is the verb that was typed, with its subcommand if it has one: "run", "bench comm".
func verbOf(c *cli.Context) string {
	name := c.Command.Name
	for _, v := range c.App.Commands {
		for _, below := range v.Subcommands {
			if below.Name == name {
				return v.Name + " " + name
			}
		}
	}
	return name
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknown says that there is no such verb, flag or scheme. It suggests the nearest ones, or lists all.
func unknown(kind, word string, legal []string) string {
	bare, prefix := make([]string, len(legal)), ""
	for i, l := range legal {
		bare[i] = strings.TrimLeft(l, "-")
	}
	if kind == "flag" {
		prefix = "--"
	}
	if near := configs.Nearest(strings.TrimLeft(word, "-"), bare); len(near) > 0 {
		return fmt.Sprintf("there is no %s %q; did you mean %s%s?", kind, word, prefix, strings.Join(near, " or "+prefix))
	}
	return fmt.Sprintf("there is no %s %q; there are: %s", kind, word, strings.Join(legal, ", "))
}

// wrapped writes text after head, in lines of at most 100 columns. The further lines are indented by the width of head.
func wrapped(w io.Writer, head, text string) {
	const columns = 100
	line := head
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > columns {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", len(head)) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// noArguments refuses arguments of a verb that takes none.
func noArguments(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("%s takes no arguments, got%s", verbOf(c), listed(c.Args().Slice()))
	}
	return nil
}
