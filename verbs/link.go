package verbs

import (
	"github.com/urfave/cli/v2"

	"fluentps/ps/network"
)

func linkFlag() cli.Flag {
	return &cli.StringFlag{Name: "link", Usage: "show the least time of an iteration over network cards of this `RATE` each way, as in 10Gbit; hosts with another: 10Gbit,node3=1Gbit"}
}

// linkRates reads --link; nil where it is not given.
func linkRates(c *cli.Context, hosts []string) (*network.Rates, error) {
	if !c.IsSet("link") {
		return nil, nil
	}
	rates, err := network.ParseRates(c.String("link"), hosts)
	if err != nil {
		return nil, usagef("%s: --link: %v", verbOf(c), err)
	}
	return &rates, nil
}
