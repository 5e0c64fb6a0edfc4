package verbs

import (
	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the JSON Schema of configurations, for editors",
		Description: "An editor with a YAML language server completes keys, explains them and marks what check would refuse of one by itself:\n" +
			"   fluentps schema >schema.json\n" +
			"beside the configuration, whose first line is\n" +
			"   # yaml-language-server: $schema=schema.json",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			_, err := c.App.Writer.Write(configs.Schema())
			return err
		},
	}
}
