package verbs

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// manSection is the section of the manual that holds programs.
const manSection = 1

func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page of all verbs",
		Description: "Read it with fluentps man | man -l -, or install it: fluentps man >/usr/local/share/man/man1/fluentps.1",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			app := *c.App
			app.Name, _ = programName()
			app.Description = asTyped(app.Description)
			app.Commands = described(app.Commands)
			page, err := app.ToManWithSection(manSection)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, page)
			return err
		},
	}
}

// described are the commands with their descriptions as part of the usage text: the library's page has no other place for them.
func described(commands []*cli.Command) (all []*cli.Command) {
	for _, c := range commands {
		if c.Name == "help" {
			continue
		}
		d := *c
		line := c.HelpName
		if len(c.Flags) > 0 {
			line += " [FLAGS]"
		}
		d.UsageText = strings.TrimRight(line+" "+c.ArgsUsage+"\n\n"+c.Description, "\n ")
		d.Subcommands = described(c.Subcommands)
		all = append(all, &d)
	}
	return all
}

// asTyped keeps the lines of a text in the library's Markdown.
func asTyped(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
