package verbs

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves the flags of a verb before its arguments, because the flag package stops at the first argument and
// people write `run FILE --local 6`. After -- everything is an argument.
func reorder(verbs []*cli.Command, args []string) []string {
	if args[len(args)-1] == completing { // after one of these flags the library completes nothing
		return slices.DeleteFunc(slices.Clone(args), func(word string) bool { return isHelp(word) || isVersion(word) })
	}
	if len(args) < 3 {
		return args
	}
	at := slices.IndexFunc(verbs, func(v *cli.Command) bool { return v.HasName(args[1]) })
	if at < 0 {
		return args
	}
	verb, head := verbs[at], 2
	if len(verb.Subcommands) > 0 {
		at = slices.IndexFunc(verb.Subcommands, func(v *cli.Command) bool { return v.HasName(args[2]) })
		switch {
		case at >= 0:
			verb, head = verb.Subcommands[at], 3
		case len(verb.Flags) == 0: // it does nothing by itself
			return args
		}
	}
	rest := args[head:]
	var flags, files []string
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--":
			files, rest = append(files, rest...), nil
		case len(word) < 2 || word[0] != '-':
			files = append(files, word)
		case isHelp(word):
			return slices.Concat(args[:head], []string{"-h"}) // with an argument the library would look for a verb of that name
		default:
			flags = append(flags, word)
			if strings.Contains(word, "=") || !takesValue(verb, strings.TrimLeft(word, "-")) {
				continue
			}
			if len(rest) == 0 { // no file may follow: it would be read as the value
				return slices.Concat(args[:head], flags)
			}
			flags = append(flags, rest[0])
			rest = rest[1:]
		}
	}
	if len(files) > 0 {
		files = append([]string{"--"}, files...)
	}
	return slices.Concat(args[:head], flags, files)
}

func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }

func isVersion(word string) bool { return word == "-v" || word == "-version" || word == "--version" }

// takesValue says whether the word after a flag is its value.
func takesValue(verb *cli.Command, name string) bool {
	for _, f := range verb.Flags {
		if slices.Contains(f.Names(), name) {
			_, isSwitch := f.(*cli.BoolFlag)
			return !isSwitch
		}
	}
	return false
}
