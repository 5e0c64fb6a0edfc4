package verbs

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestManualHasEveryVerbAndFlag(t *testing.T) {
	var out bytes.Buffer
	app := newApp(&out, io.Discard)
	if err := app.Run([]string{"fluentps", "man"}); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(out.String(), `\-`, "-")
	var walk func(commands []*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			if c.Name == "help" {
				continue
			}
			if !strings.Contains(page, c.Name+"\n"+c.Usage) {
				t.Errorf("the manual has no section %s, or that says not what it is for", c.Name)
			}
			for _, f := range c.VisibleFlags() {
				if !strings.Contains(page, "--"+f.Names()[0]) {
					t.Errorf("the manual does not have --%s of %s", f.Names()[0], c.Name)
				}
			}
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
}
